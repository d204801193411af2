"""The tasks by name; one line here and one module beside it make a new one."""

from __future__ import annotations

from typing import Final

from cxrspec.tasks.cases import CasesTask
from cxrspec.tasks.findings import FindingsTask
from cxrspec.tasks.localization import LocalizationTask
from cxrspec.tasks.task import Curves, Drawing, Evaluation, EvaluationInput, Grades, PredictionNeed, Task
from cxrspec.tasks.vqa import VqaTask

__all__ = [
    "TASKS",
    "CasesTask",
    "Curves",
    "Drawing",
    "Evaluation",
    "EvaluationInput",
    "Grades",
    "PredictionNeed",
    "Task",
]

TASKS: Final[dict[str, type[Task]]] = {task.NAME: task for task in (FindingsTask, LocalizationTask, CasesTask, VqaTask)}
