"""Own the label encodings: how the cells of a source become `1`, `0`, `-1` (uncertain) or blank (not mentioned)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Annotated, Final, Literal

from pydantic import Discriminator

from cxrspec.errors import IDS_LISTED, NAMES_LISTED, DefinitionError, Issue, listed
from cxrspec.field_errors import shown
from cxrspec.fields import Column, ColumnRef, Fields, SourceName, Text
from cxrspec.spelling import plain_name
from cxrspec.tasks.four_value import four_value
from cxrspec.tasks.task import ItemColumns

POSITIVE, NEGATIVE, UNCERTAIN, BLANK = "1", "0", "-1", ""
LABEL_CELLS: Final = (POSITIVE, NEGATIVE, UNCERTAIN, BLANK)


class SeparatedLabels(Fields):
    """One column holds the names of all findings present, joined by a separator."""

    encoding: Literal["separated_list"]
    column: ColumnRef
    separator: Text
    negative: Text | None = None
    """The name that stands for "none of them" (`No Finding`); beside another name it is refused."""
    vocabulary: list[Text] | None = None
    """Every name that may occur beside the findings' own: any other is refused, so no label is lost by its spelling."""

    def columns(self, findings: Mapping[str, str]) -> list[Column]:
        """Return the source columns that are read."""
        return [self.column]

    def decode(self, items: ItemColumns, findings: Mapping[str, Sequence[str]]) -> list[list[str]]:
        """Return one column of `1`/`0` per finding; `findings` maps our name to all spellings of the source.

        Case, blanks, `_` and `-` of a name never matter.
        """
        owner = {plain_name(name): ours for ours, spellings in findings.items() for name in spellings}
        allowed = {*owner, *map(plain_name, (*(self.vocabulary or ()), *([self.negative] if self.negative else [])))}
        cells = items.cells(self.column)
        kinds: dict[str, list[str]] = {}
        faults: dict[str, str] = {}
        for text in set(cells):
            names = [name.strip() for name in text.split(self.separator)]
            if fault := self._fault(names, allowed):
                faults[text] = fault
            present = {owner.get(plain_name(name)) for name in names}
            kinds[text] = [POSITIVE if ours in present else NEGATIVE for ours in findings]
        if faults:
            raise DefinitionError(_cell_issues(items, self.column, cells, faults))
        rows = zip(*(kinds[text] for text in cells), strict=True)
        return [list(column) for column in rows] if cells else [[] for _ in findings]

    def _fault(self, names: Sequence[str], allowed: Set[str]) -> str:
        if names == [""]:
            return "an empty cell says neither a finding nor that there is none"
        plain = list(map(plain_name, names))
        if self.negative and plain_name(self.negative) in plain and len(set(plain)) > 1:
            return f"'{self.negative}' stands beside another name"
        unknown = [f"'{name}'" for name, key in zip(names, plain, strict=True) if key not in allowed]
        return f"{listed(unknown)} is neither a finding's label or alias nor in the vocabulary" if unknown else ""


class ColumnLabels(Fields):
    """One column per finding: `YES`/`NO`, or the numbers 1, 0, -1 (uncertain) and blank (not mentioned)."""

    encoding: Literal["yes_no", "four_value"]
    source: SourceName | None = None
    """Where the columns stand; the items source where absent."""
    vocabulary: list[Text] | None = None
    """Every column of labels that the sources have, the findings' own among them: `majority_of` is checked in all."""
    majority_of: Literal["reference"] | None = None
    """Says that every label is the majority of `readers.reference`; freezing checks every cell."""

    def checked(self, findings: Mapping[str, str]) -> list[str]:
        """Return the columns in which `majority_of` is checked."""
        return self.vocabulary or list(findings.values())

    def columns(self, findings: Mapping[str, str]) -> list[Column]:
        """Return the source columns that are read."""
        return [Column(column=theirs, source=self.source) for theirs in findings.values()]

    def decode(self, items: ItemColumns, findings: Mapping[str, Sequence[str]]) -> list[list[str]]:
        """Return one column of label cells per finding; the first spelling names the source column."""
        read = _yes_no if self.encoding == "yes_no" else four_value
        issues: list[Issue] = []
        decoded = []
        for spellings in findings.values():
            column = Column(column=spellings[0], source=self.source)
            cells = items.cells(column)
            kinds = {text: read(text) for text in set(cells)}
            allowed = "YES or NO" if self.encoding == "yes_no" else "1, 0, -1 or blank"
            faults = {text: f"allowed is {allowed}" for text, label in kinds.items() if label is None}
            issues += _cell_issues(items, column, cells, faults)
            decoded.append([kinds[text] or "" for text in cells])
        if issues:
            raise DefinitionError(issues)
        return decoded


Labels = Annotated[SeparatedLabels | ColumnLabels, Discriminator("encoding")]


def _yes_no(text: str) -> str | None:
    return {"YES": POSITIVE, "NO": NEGATIVE}.get(text.strip().upper())


def _cells(rows: Sequence[int]) -> str:
    return "1 cell" if len(rows) == 1 else f"{len(rows):,} cells"


def _cell_issues(items: ItemColumns, column: Column, cells: Sequence[str], faults: Mapping[str, str]) -> list[Issue]:
    rows: dict[str, list[int]] = {}
    for row, text in enumerate(cells):
        if text in faults:
            rows.setdefault(text, []).append(row)
    issues = [
        Issue(
            "value-unknown",
            items.place(column, found[0]),
            f"{shown(text)} in {_cells(found)}, of {listed([items.item_ids[r] for r in found], IDS_LISTED)}: "
            f"{faults[text]}",
            "Mend the encoding of the definition, or pin the file that it was written for",
        )
        for text, found in sorted(rows.items())
    ]
    if len(issues) <= NAMES_LISTED:
        return issues
    message = f"{len(issues) - NAMES_LISTED:,} more kinds of cells in the column '{column.column}' are not allowed"
    return [*issues[:NAMES_LISTED], Issue("value-unknown", column.source or "", message)]
