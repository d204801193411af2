"""Own the `cases` task: cases with their conditions from a label table, chosen and frozen; nothing is scored on them.

An author chooses cases so, and then asks questions about them (see `vqa`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, NoReturn

from pydantic import Field

from cxrspec.errors import IDS_LISTED, DefinitionError, Issue, listed
from cxrspec.field_errors import mapping_at, shown
from cxrspec.fields import Column, FieldIssue, Identifier, SourceName, Text, Texts
from cxrspec.tasks.four_value import four_value
from cxrspec.tasks.task import Evaluation, EvaluationInput, ItemColumns, PredictionNeed, Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FIRST_COLUMNS: Final = ("item_id", "group_id")
"""What the frozen table of a subset begins with; no condition may be called so."""
_PRECEDENCE: Final = ("1", "-1", "0", "")
"""Of several labels of one condition, the one that stands first here is the condition's."""
_TALLIES: Final = {"positives": "1", "negatives": "0", "uncertain": "-1", "blank": ""}


class CasesTask(Task):
    """Cases with their conditions: 1, 0, -1 (uncertain) or blank (not mentioned)."""

    NAME: ClassVar[str] = "cases"
    TALLIES: ClassVar[Mapping[str, str | None]] = dict.fromkeys(_TALLIES, "condition")
    STRATA: ClassVar[str] = "condition"

    labeler: Text
    """What made the label table: tables of one form, by CheXpert or by NegBio, hold other labels."""
    labels: SourceName | None = None
    """Where the label columns stand; the items source where absent."""
    conditions: Annotated[dict[Identifier, Texts], Field(min_length=1)]
    """Our name: the label column, or several of which one that is positive is enough. The frozen columns stand in
    code-point order of our names."""

    @classmethod
    def declared(cls, document: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return the conditions."""
        return {"condition": list(mapping_at(document, "conditions"))}

    @classmethod
    def check_references(
        cls, document: Mapping[str, Any], declared: Mapping[str, Sequence[str]]
    ) -> Iterator[FieldIssue]:
        """Yield conditions that are called like another column of the frozen table."""
        for name in FIRST_COLUMNS:
            if name in declared["condition"]:
                message = f"'{name}' is a column of every table"
                yield FieldIssue(("conditions", name), "reference-conflict", message, "Choose another name")

    def source_columns(self) -> Sequence[Column]:
        """Return the label columns."""
        return [self._column(label) for name in self.column_names for label in self.conditions[name]]

    def _column(self, label: str) -> Column:
        return Column(column=label, source=self.labels)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The conditions in code-point order."""
        return tuple(sorted(self.conditions))

    @property
    def strata_names(self) -> tuple[str, ...]:
        """The conditions in code-point order."""
        return self.column_names

    def reference_columns(self, items: ItemColumns) -> list[list[str]]:
        """Return one column of `1`, `0`, `-1` or blank per condition."""
        issues: list[Issue] = []
        columns = []
        for name in self.column_names:
            labels = [_decoded(items, self._column(label), issues) for label in self.conditions[name]]
            columns.append([min(row, key=_PRECEDENCE.index) for row in zip(*labels, strict=True)])
        if issues:
            raise DefinitionError(issues)
        return columns

    def strata(self, columns: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
        """Return which cases are positive [n_items, n_conditions]."""
        import numpy as np

        return np.array([[cell == "1" for cell in column] for column in columns], dtype=np.bool_).T

    def tally(self, columns: Sequence[Sequence[str]]) -> dict[str, Any]:
        """Count each label per condition."""
        cells = dict(zip(self.column_names, columns, strict=True))
        return {
            name: {condition: list(column).count(label) for condition, column in cells.items()}
            for name, label in _TALLIES.items()
        }

    def check_subset(self, name: str, columns: Sequence[Sequence[str]]) -> list[Issue]:
        """Accept every subset."""
        return []

    @property
    def protocol_names(self) -> tuple[str, ...]:
        """None: nothing is submitted."""
        return ()

    def prediction_need(self, protocol: str) -> PredictionNeed:
        """Refuse: there is no protocol."""
        _refuse_scoring()

    def reported_metrics(self, counts: Mapping[str, Mapping[str, Any]] | None = None) -> list[dict[str, str]]:
        """None."""
        return []

    def evaluate(self, given: EvaluationInput) -> Evaluation:
        """Refuse: there is nothing to score."""
        _refuse_scoring()


def _refuse_scoring() -> NoReturn:
    raise ValueError("cases have no protocol")


def _decoded(items: ItemColumns, column: Column, issues: list[Issue]) -> list[str]:
    """Return the label of every case; a cell that is none is blank, with an issue."""
    cells = items.cells(column)
    labels = {text: four_value(text) for text in set(cells)}
    for text in sorted(text for text, label in labels.items() if label is None):
        rows = [row for row, cell in enumerate(cells) if cell == text]
        named = listed([items.item_ids[row] for row in rows], IDS_LISTED)
        message = f"{shown(text)} in {len(rows):,} cells, of {named}: allowed is 1, 0, -1 or blank"
        issues.append(
            Issue("value-unknown", items.place(column, rows[0]), message, "Pin the label table that is meant")
        )
    return [labels[text] or "" for text in cells]
