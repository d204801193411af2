"""The tasks by name; one line here and one module beside it make a new one."""

from __future__ import annotations

from typing import Final

from cxrspec.tasks.findings import FindingsTask
from cxrspec.tasks.localization import LocalizationTask
from cxrspec.tasks.task import Curves, Drawing, Evaluation, EvaluationInput, PredictionNeed, Task

__all__ = ["TASKS", "Curves", "Drawing", "Evaluation", "EvaluationInput", "PredictionNeed", "Task"]

TASKS: Final[dict[str, type[Task]]] = {task.NAME: task for task in (FindingsTask, LocalizationTask)}
