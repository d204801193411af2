"""The tasks by name; one line here and one module beside it make a new one."""

from __future__ import annotations

from typing import Final

from cxrspec.tasks.findings import FindingsTask
from cxrspec.tasks.localization import LocalizationTask
from cxrspec.tasks.task import Drawing, Evaluation, EvaluationInput, PredictionNeed, RankedScores, Task

__all__ = ["TASKS", "Drawing", "Evaluation", "EvaluationInput", "PredictionNeed", "RankedScores", "Task"]

TASKS: Final[dict[str, type[Task]]] = {task.NAME: task for task in (FindingsTask, LocalizationTask)}
