"""Own the joining of a file's rows with the items of a subset, by canonical id and never by position.

It knows ids and rows only. What the rows hold, and whether repeated rows agree, is for `values`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cxrspec.errors import IDS_LISTED, Issue, listed
from cxrspec.ids import Canonicalizer, IdRule, nearest_ids


@dataclass(frozen=True, slots=True)
class ExpectedItems:
    """The items that a predictions file must cover, each exactly once, and what else may stand in it."""

    item_ids: Sequence[str]
    """The subset; every result has its order."""
    rule: IdRule
    id_columns: Sequence[str]
    """Accepted names of the id column; `item_id` always is."""
    known: Callable[[], Mapping[str, str]]
    """Return the split of every item of the roster; called only if the file has ids outside the subset."""
    reference: str
    """How messages call the subset: `nih-cxr14-fourteen@official-v1:test`."""
    known_labels: Sequence[str] = ()
    """Further labels of the data set: their columns are ignored with a count."""


ID_SHOWN: Final = 60
"""Characters of an id that a message shows."""


@dataclass(frozen=True, slots=True)
class IdColumn:
    """The id cell of every row of a file, with the lines that the rows stand on."""

    file: str
    lines: Sequence[int]
    cells: Sequence[str]

    def quoted(self, row: int) -> str:
        """Return a row's id and line as messages show them."""
        text = self.cells[row]
        return f"'{text if len(text) <= ID_SHOWN else text[:ID_SHOWN] + '…'}' in line {self.lines[row]}"


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a file that belong to items of the subset, in file order."""

    ids: IdColumn
    at: Sequence[int]
    """Their numbers among all rows of the file, counted from 0."""
    items: Sequence[int]
    """The position in the subset of each one's item."""
    views: Sequence[str]
    """The view file of each one, where the views of a study are aggregated: otherwise empty, as for a whole study."""
    n_left_aside: int
    notes: tuple[Issue, ...]
    issues: tuple[Issue, ...]

    def line(self, row: int) -> int:
        """Return the line of one of these rows."""
        return self.ids.lines[self.at[row]]

    def place(self, row: int) -> str:
        """Return line and id of one of these rows as messages show them."""
        return f"line {self.line(row)} ({self.ids.cells[self.at[row]]})"


def align(column: IdColumn, expected: ExpectedItems, *, by_view: bool = False, complete: bool = True) -> Rows:
    """Find the item of every row; with `by_view`, the rows of one study may be its views.

    Rows of other known items are left aside with a note. Unknown ids are issues, and so are items without a row
    unless `complete` is false.
    """
    canonicalizer = Canonicalizer.from_reference(expected.rule, expected.item_ids)
    ids, n_repadded = canonicalizer.canonical_all(column.cells)
    position = {item: at for at, item in enumerate(expected.item_ids)}
    found = [position.get(item, -1) for item in ids]
    at = [row for row, item in enumerate(found) if item >= 0]
    others = [row for row, item in enumerate(found) if item < 0]
    known = expected.known() if others else {}
    aside = Counter(known[ids[row]] for row in others if ids[row] in known)
    unknown = {row: ids[row] for row in others if ids[row] not in known}
    items = [found[row] for row in at]
    by_view = by_view and expected.rule.form == "study_path"
    views = canonicalizer.views([column.cells[row] for row in at]) if by_view else [""] * len(at)
    return Rows(
        ids=column,
        at=at,
        items=items,
        views=views,
        n_left_aside=aside.total(),
        notes=tuple(_notes(column.file, n_repadded, aside)),
        issues=(
            *(_missing(column.file, set(items), expected) if complete else ()),
            *_unknown(column, unknown, canonicalizer, known or position),
            *_mixed(column, at, items, views),
        ),
    )


def _notes(file: str, n_repadded: int, aside: Counter[str]) -> Iterator[Issue]:
    if n_repadded:
        yield Issue("note", file, f"{n_repadded:,} ids were re-padded (spreadsheet?)")
    if aside:
        splits = listed([f"{split or 'no split'} {n:,}" for split, n in sorted(aside.items())])
        yield Issue("note", file, f"rows of items outside the subset left aside: {aside.total():,} ({splits})")


def _missing(file: str, present: set[int], expected: ExpectedItems) -> Iterator[Issue]:
    missing = [item for at, item in enumerate(expected.item_ids) if at not in present]
    if missing:
        n_items = len(expected.item_ids)
        share = f"{100 * len(missing) / n_items:.3g} % of {expected.reference}"
        yield Issue(
            "prediction-missing",
            file,
            f"{len(missing):,} of {n_items:,} items missing ({share}): {listed(missing, IDS_LISTED)}",
            "Predict every item of the subset; nothing is scored on a part of it",
        )


def _unknown(
    column: IdColumn, unknown: Mapping[int, str], canonicalizer: Canonicalizer, known: Iterable[str]
) -> Iterator[Issue]:
    misfits = [row for row in unknown if not canonicalizer.fits(column.cells[row])]
    if misfits:
        yield Issue(
            "prediction-unknown",
            f"{column.file}:{column.lines[misfits[0]]}",
            f"no train/, valid/ or test/ folder in the id of {len(misfits):,} of {len(column.cells):,} rows: "
            f"{listed(map(column.quoted, misfits), IDS_LISTED)}",
            f"Write ids like '{min(known, default='valid/patient64541/study1')}'",
            column.lines[misfits[0]],
        )
    strangers = [row for row in unknown if canonicalizer.fits(column.cells[row])]
    if strangers:
        nearest = nearest_ids([unknown[row] for row in strangers[:IDS_LISTED]], known)
        shown = [f"{column.quoted(row)} (nearest '{near}')" for row, near in zip(strangers, nearest, strict=False)]
        yield Issue(
            "prediction-unknown",
            f"{column.file}:{column.lines[strangers[0]]}",
            f"an id that is not in the release in {len(strangers):,} of {len(column.cells):,} rows: "
            f"{listed([*shown, *strangers[IDS_LISTED:]], IDS_LISTED)}",
            "Correct the ids, or remove the rows",
            column.lines[strangers[0]],
        )


def _mixed(column: IdColumn, at: Sequence[int], items: Sequence[int], views: Sequence[str]) -> Iterator[Issue]:
    """Refuse a study that has a row of its own and rows of its views: which of them counts is anyone's guess."""
    viewed = {item for item, view in zip(items, views, strict=True) if view}
    both = [row for row, item, view in zip(at, items, views, strict=True) if not view and item in viewed]
    if both:
        yield Issue(
            "prediction-duplicate",
            f"{column.file}:{column.lines[both[0]]}",
            f"a row of the study beside rows of its views in {len(both):,} of {len(column.cells):,} rows: "
            f"{listed(map(column.quoted, both), IDS_LISTED)}",
            "Keep one row per study, or only the rows of views",
            column.lines[both[0]],
        )
