"""Own the joining of a file's rows with (image, finding) pairs: images by canonical id, findings by their spellings.

It knows ids, names and rows only. What the rows hold is for `maps` and `boxes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cxrspec.errors import IDS_LISTED, Issue, did_you_mean, listed
from cxrspec.predictions.alignment import ExpectedItems, IdColumn, Rows, align
from cxrspec.predictions.heads import NO_FINDING, ColumnNames
from cxrspec.spelling import plain_name

OWN_FINDING_COLUMN = "finding"

_Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ExpectedPairs:
    """The (image, finding) pairs that a localizer is asked about, and how files may spell them."""

    items: ExpectedItems
    findings: Sequence[ColumnNames]
    """Every result has their order. A `head` is the submission's own spelling of the finding, and then the only one."""
    pairs: Collection[tuple[str, str]]
    """Item id and our name of the finding; rows of other pairs are left aside."""
    frame: tuple[int, int]
    """Width and height, in pixels, of the frame that results are in."""
    finding_columns: Sequence[str] = ("Finding Label",)
    """Accepted names of the finding column; `finding` always is."""

    @classmethod
    def of_all(cls, items: ExpectedItems, findings: Sequence[ColumnNames], *, frame: tuple[int, int]) -> ExpectedPairs:
        """Expect every finding on every image."""
        return cls(items, findings, {(item, finding.name) for item in items.item_ids for finding in findings}, frame)

    @property
    def names_of_finding_column(self) -> list[str]:
        """All accepted names of the finding column."""
        return [*self.finding_columns, OWN_FINDING_COLUMN]

    def positions(self) -> list[_Pair]:
        """Return the positions of item and finding of every pair, in ascending order."""
        items = {item: at for at, item in enumerate(self.items.item_ids)}
        findings = {finding.name: at for at, finding in enumerate(self.findings)}
        return sorted((items[item], findings[finding]) for item, finding in self.pairs)


@dataclass(frozen=True, slots=True)
class PairRows:
    """The rows of a file that belong to expected pairs, in file order."""

    rows: Rows
    """`rows.items` are positions in the subset; messages call a row by its id and finding."""
    findings: Sequence[int]
    """The position of each one's finding."""

    def of(self, picks: Sequence[int]) -> PairRows:
        """Return some of these rows, in the given order."""
        rows = self.rows
        picked = replace(
            rows,
            at=[rows.at[pick] for pick in picks],
            items=[rows.items[pick] for pick in picks],
            views=[rows.views[pick] for pick in picks],
        )
        return PairRows(picked, [self.findings[pick] for pick in picks])


def align_pairs(ids: IdColumn, findings: Sequence[str], expected: ExpectedPairs, *, complete: bool) -> PairRows:
    """Find the pair of every row; `findings` are the cells that name them, and with `complete` every pair has a row.

    Rows of other known images, of other labels of the data set and of pairs that are not expected are left aside with
    notes. Unknown images and findings are issues.
    """
    rows = align(ids, expected.items, complete=False)
    cells = [findings[row] for row in rows.at]
    spellings = _Spellings(expected, rows, cells)
    found = [spellings.finding.get(cell, -1) for cell in cells]
    wanted = expected.positions()
    asked = set(wanted)
    pairs = list(zip(rows.items, found, strict=True))
    picks = [row for row, pair in enumerate(pairs) if pair in asked]
    n_unasked = sum(finding >= 0 for finding in found) - len(picks)
    missing = set(wanted).difference(pairs) if complete else ()
    named = replace(
        rows,
        ids=replace(ids, cells=[f"{item} {finding}" for item, finding in zip(ids.cells, findings, strict=True)]),
        n_left_aside=rows.n_left_aside + spellings.others.total() + n_unasked,
        notes=(*rows.notes, *spellings.notes(), *_unasked_notes(ids.file, n_unasked)),
        issues=(*rows.issues, *spellings.issues(), *_missing(ids.file, sorted(missing), expected)),
    )
    return PairRows(named, found).of(picks)


class _Spellings:
    """What the finding cells of the rows of a subset's items mean."""

    def __init__(self, expected: ExpectedPairs, rows: Rows, cells: Sequence[str]) -> None:
        self.expected, self.rows = expected, rows
        self.first = {cell: row for row, cell in reversed(list(enumerate(cells)))}
        self.fitting = _fitting(self.first, expected.findings)
        self.finding = {cell: fits[0] for cell, fits in self.fitting.items() if len(fits) == 1}
        labels = {NO_FINDING, *map(plain_name, expected.items.known_labels)}
        counts = Counter(cell for cell in cells if not self.fitting[cell])
        self.others = Counter({cell: n_rows for cell, n_rows in counts.items() if plain_name(cell) in labels})
        self.unknown = counts - self.others

    def notes(self) -> Iterator[Issue]:
        """Yield notes on aliases, and on rows of other labels."""
        for cell, at in sorted(self.finding.items()):
            finding = self.expected.findings[at]
            own = {plain_name(spelling) for spelling in (finding.name, *finding.fits[:1])}
            if finding.head is None and plain_name(cell) not in own:
                yield Issue("note", self.rows.ids.file, f"finding '{cell}' is read as {finding.name} (alias)")
        if self.others:
            names = listed([f"'{cell}' {n_rows:,}" for cell, n_rows in sorted(self.others.items())])
            message = f"rows of other labels of the data set left aside: {self.others.total():,} ({names})"
            yield Issue("note", self.rows.ids.file, message)

    def issues(self) -> Iterator[Issue]:
        """Yield an issue for each spelling that fits two findings, and one for all that fit none."""
        names = [finding.name for finding in self.expected.findings]
        for cell in [cell for cell, fits in self.fitting.items() if len(fits) > 1]:
            message = f"finding '{cell}' fits {listed([names[at] for at in self.fitting[cell]])}"
            yield self._issue(cell, "column-ambiguous", message, "Write our name of the finding")
        if self.unknown:
            shown = [f"'{cell}' from line {self._line(cell)} on ({n:,})" for cell, n in self.unknown.items()]
            message = (
                f"no finding of {self.expected.items.reference} in {self.unknown.total():,} of "
                f"{len(self.rows.at):,} rows: {listed(shown, IDS_LISTED)}"
            )
            first = next(iter(self.unknown))
            spellings = [spelling for finding in self.expected.findings for spelling in (finding.name, *finding.fits)]
            hint = f"The findings are {listed(names, len(names))}. {did_you_mean(first, spellings)}"
            yield self._issue(first, "finding-unknown", message, hint.rstrip())

    def _issue(self, cell: str, code: str, message: str, hint: str) -> Issue:
        return Issue(code, f"{self.rows.ids.file}:{self._line(cell)}", message, hint, self._line(cell))

    def _line(self, cell: str) -> int:
        """Return the first line on which a spelling stands."""
        return self.rows.line(self.first[cell])


def _fitting(cells: Iterable[str], findings: Sequence[ColumnNames]) -> dict[str, list[int]]:
    """Return for each cell the positions of the findings that it may name."""
    exact: dict[str, list[int]] = {}
    spelled: dict[str, list[int]] = {}
    for at, finding in enumerate(findings):
        if finding.head is not None:
            exact.setdefault(finding.head, []).append(at)
        else:
            for spelling in {plain_name(spelling) for spelling in (finding.name, *finding.fits)}:
                spelled.setdefault(spelling, []).append(at)
    return {cell: [*exact.get(cell, ()), *spelled.get(plain_name(cell), ())] for cell in cells}


def _unasked_notes(file: str, n_unasked: int) -> Iterator[Issue]:
    if n_unasked:
        yield Issue("note", file, f"rows of (image, finding) pairs that are not asked for left aside: {n_unasked:,}")


def _missing(file: str, missing: Sequence[_Pair], expected: ExpectedPairs) -> Iterator[Issue]:
    if missing:
        names = [finding.name for finding in expected.findings]
        by_finding = Counter(finding for _, finding in missing)
        counts = listed([f"{names[finding]} {n:,}" for finding, n in sorted(by_finding.items())])
        pairs = [f"{expected.items.item_ids[item]} {names[finding]}" for item, finding in missing]
        share = f"{100 * len(missing) / len(expected.pairs):.3g} % of {expected.items.reference}: {counts}"
        yield Issue(
            "prediction-missing",
            file,
            f"{len(missing):,} of {len(expected.pairs):,} (image, finding) pairs missing ({share}): "
            f"{listed(pairs, IDS_LISTED)}",
            "Give one map for every pair; nothing is scored on a part of them",
        )
