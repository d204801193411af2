"""Own the `vqa` task: free-text answers to questions about cases.

Closed-ended answers are read by their words, open-ended ones are graded by people or by a judge that is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from cxrspec.digest import Table
from cxrspec.errors import Issue
from cxrspec.field_errors import mapping_at
from cxrspec.fields import Column, FieldIssue, Fields, Identifier, Names, Text, Texts, one_or_list
from cxrspec.tasks.interval import Interval
from cxrspec.tasks.scored import ScoredMetric
from cxrspec.tasks.task import (
    Evaluation,
    EvaluationInput,
    ItemColumns,
    PredictionColumn,
    PredictionNeed,
    Task,
)
from cxrspec.tasks.vqa.reference import COLUMNS, ClosedEnded, QuestionColumns, decode_questions
from cxrspec.tasks.vqa.rules import check_questions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["AnswerMetric", "Phrases", "VqaTask"]

CLOSED_KINDS: Final = ("accuracy", "balanced_accuracy", "yes_rate")
OPEN_KINDS: Final = ("exact_match", "token_f1")
GRADED_KINDS: Final = ("mean_grade", "overall_grade")


class Phrases(Fields):
    """How answers are read beside a leading yes or no; every phrase counts only where an answer begins with it."""

    affirmative: Texts
    negative: Texts
    refusal: Texts
    """What an answer begins with that is none; it is wrong, and counted by itself."""


class FreeText(Fields):
    """The submission brings one answer per question."""

    prompt: Text | None = None
    """What every system must have been told before each question."""


class AnswerProtocols(Fields):
    """The ways in which a system may be scored."""

    answers: FreeText


class AnswerMetric(ScoredMetric):
    """One number on the closed-ended, the open-ended or all questions."""

    name: Identifier
    kind: Literal["accuracy", "balanced_accuracy", "yes_rate", "exact_match", "token_f1", "mean_grade", "overall_grade"]
    """Of closed-ended questions `accuracy`, `balanced_accuracy` (mean of the shares right where the reference says yes
    and where it says no) and `yes_rate`; of open-ended ones `exact_match` and `token_f1`, which compare words with the
    reference answer, and `mean_grade`; of all `overall_grade`: grades where open-ended, else right or wrong. The last
    two are computed per grader, and only where there are grades."""
    protocol: Annotated[Literal["answers"], Names("protocol")]
    reading: Literal["strict", "lenient"] | None = None
    """How closed-ended answers become yes or no; not for metrics of open-ended questions alone."""
    interval: Annotated[list[Interval], one_or_list("an interval nor a list of intervals"), Field(min_length=1)]


class VqaTask(Task):
    """Answers to questions; an item is a question, its group the case that it is about."""

    NAME: ClassVar[str] = "vqa"
    TALLIES: ClassVar[Mapping[str, str | None]] = {
        **dict.fromkeys(("closed", "open", "closed_percent", "yes", "no")),
        "questions": "question_type",
        "cases": "condition",
    }
    STRATA: ClassVar[str] = "question_type"
    GRADES: ClassVar[tuple[float, ...]] = (0.0, 0.5, 1.0)

    columns: QuestionColumns
    closed_ended: ClosedEnded
    question_types: dict[Identifier, Texts] | None = None
    """Our name: the file's own words for it; case, blanks, `_` and `-` never matter."""
    conditions: dict[Identifier, Texts] | None = None
    """Likewise for the condition that a case was chosen for."""
    phrases: Phrases
    protocols: AnswerProtocols
    metrics: Annotated[list[AnswerMetric], Field(min_length=1)]

    @classmethod
    def declared(cls, document: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return question types, conditions, and the protocols that are not left empty."""
        protocols = mapping_at(document, "protocols")
        return {
            "question_type": list(mapping_at(document, "question_types")),
            "condition": list(mapping_at(document, "conditions")),
            "protocol": [name for name, fields in protocols.items() if fields is not None],
        }

    @classmethod
    def check_references(
        cls, document: Mapping[str, Any], declared: Mapping[str, Sequence[str]]
    ) -> Iterator[FieldIssue]:
        """Yield what contradicts itself among names, phrases and metrics."""
        closed = (*CLOSED_KINDS, "overall_grade")
        yield from check_questions(document, declared, closed_kinds=closed)

    def source_columns(self) -> Sequence[Column]:
        """Return the columns of questions, and the one that says which are closed-ended."""
        return [*self.columns.declared, *([self.closed_ended.column] if self.closed_ended.column else [])]

    def varying_columns(self) -> Sequence[Column]:
        """Return the column of images: several images of a study are one item."""
        return [self.columns.image] if self.columns.image else []

    @property
    def column_names(self) -> tuple[str, ...]:
        """What the frozen table of a subset holds of each question."""
        return COLUMNS

    def reference_columns(self, items: ItemColumns) -> list[list[str]]:
        """Return question, reference answer, whether it is closed-ended, type, condition and images."""
        return decode_questions(self, items)

    @property
    def strata_names(self) -> tuple[str, ...]:
        """The question types in code-point order."""
        return tuple(sorted(self.question_types or ()))

    def strata(self, columns: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
        """Return which questions are of a type [n_items, n_types]."""
        import numpy as np

        types = columns[COLUMNS.index("question_type")]
        return np.array([[cell == name for cell in types] for name in self.strata_names], dtype=np.bool_).T

    def tally(self, columns: Sequence[Sequence[str]]) -> dict[str, Any]:
        """Count closed- and open-ended questions, what the closed-ended ones' answers say, and questions by type."""
        from cxrspec.metrics import leading_polarity

        cells = dict(zip(COLUMNS, columns, strict=True))
        pairs = zip(cells["answer"], cells["closed_ended"], strict=True)
        said = [leading_polarity(answer) for answer, closed in pairs if closed == "1"]
        n_items, types = len(cells["answer"]), cells["question_type"]
        return {
            "closed": len(said),
            "open": n_items - len(said),
            "closed_percent": round(100 * len(said) / n_items) if n_items else 0,
            "yes": said.count("yes"),
            "no": said.count("no"),
            "questions": {name: list(types).count(name) for name in self.strata_names},
        }

    def tally_groups(self, columns: Sequence[Sequence[str]], groups: Sequence[str]) -> dict[str, Any]:
        """Count the cases by condition."""
        if self.conditions is None:
            return {}
        pairs = set(zip(columns[COLUMNS.index("condition")], groups, strict=True))
        return {"cases": {name: sum(condition == name for condition, _ in pairs) for name in sorted(self.conditions)}}

    def check_subset(self, name: str, columns: Sequence[Sequence[str]]) -> list[Issue]:
        """Accept every subset: what has no question of a kind is undefined, and said so, when it is scored."""
        return []

    @property
    def protocol_names(self) -> tuple[str, ...]:
        """The declared protocols."""
        return ("answers",)

    def prediction_need(self, protocol: str) -> PredictionNeed:
        """One answer per question of the scored subsets."""
        scored = tuple(sorted({metric.scored_subset for metric in self.metrics}))
        columns = (("answer", "response", "prediction"), ("question", self.columns.question.column))
        return PredictionNeed("answers", scored, tuple(PredictionColumn(names[0], names[1:]) for names in columns))

    def reported_metrics(self, counts: Mapping[str, Mapping[str, Any]] | None = None) -> list[dict[str, str]]:
        """Return the metrics that need no grades; the others are there once per grader, if there is what to grade."""
        nothing_open = {name for name, subset in (counts or {}).items() if subset.get("open") == 0}
        return [
            {"name": one.name, "kind": one.kind, "protocol": one.protocol, "average": "items"}
            for one in self.metrics
            if one.kind not in GRADED_KINDS or one.scored_subset in nothing_open
        ]

    def to_grade(self, table: Table) -> dict[str, dict[str, str]]:
        """Return question, reference answer and images of every open-ended question; none if no metric needs grades."""
        if not any(metric.kind in GRADED_KINDS for metric in self.metrics):
            return {}
        shown = {"question": "question", "reference_answer": "answer", "image": "image"}
        cells = {head: table.column(name) for head, name in shown.items()}
        closed = table.column("closed_ended")
        return {
            item: {head: column[row] for head, column in cells.items()}
            for row, item in enumerate(table.item_ids)
            if closed[row] == "0"
        }

    def evaluate(self, given: EvaluationInput) -> Evaluation:
        """Compute every metric, by question type and together, with intervals; graded ones once per grader."""
        from cxrspec.tasks.vqa.evaluation import evaluate

        return evaluate(self, given)
