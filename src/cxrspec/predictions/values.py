"""Own the numbers of a predictions file: from cells to floats, and from rows to exactly one row per item.

Nothing is filled in, clipped or rounded; what is not a finite number becomes an issue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cxrspec.errors import IDS_LISTED, Issue, listed
from cxrspec.predictions.alignment import Rows
from cxrspec.tables.sheets import Sheet

Aggregate = Literal["max", "mean"]

_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+([eE][+-]?[0-9]+)?")
FINITE_HINT = "Every item needs a finite number; nothing is filled in"
_COMMA_HINT = "Write decimal points; commas are read only where ';' separates the columns and every value has one"
_VALUE_OF_BLANK_HEAD = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Cells read as numbers."""

    matrix: NDArray[np.float64]
    """[n_rows, n_columns], NaN where a cell is no number."""
    shown: Callable[[int, int], str]
    """Return what stands in the file at a row and column of the matrix, for messages."""
    decimal_commas: bool = False

    def of(self, rows: Sequence[int]) -> Numbers:
        """Return some of the rows, in the given order."""
        return Numbers(self.matrix[rows], lambda row, column: self.shown(rows[row], column), self.decimal_commas)


@dataclass(frozen=True, slots=True, eq=False)
class PerItem:
    """One row of values per item [n_items, n_columns], and what was noticed on the way there."""

    values: NDArray[np.float64]
    n_aggregated: int
    notes: tuple[Issue, ...]
    issues: tuple[Issue, ...]


def read_numbers(sheet: Sheet, positions: Sequence[int], rows: Sequence[int]) -> Numbers:
    """Read some rows of some columns of a sheet as numbers.

    Commas are decimal where `;` separates the columns and most values have one; then every value must have one.
    """
    stored = sheet.numbers(positions)
    if stored is not None:
        matrix = stored[rows]
        return Numbers(matrix, lambda row, column: str(matrix[row, column]))
    cells = [_picked(column, rows) for column in sheet.cells(positions)]
    commas = sheet.delimiter == ";" and _mostly_commas(cells)
    matrix = np.empty((len(rows), len(positions)))
    for at, column in enumerate(cells):
        matrix[:, at] = _to_floats(list(map(_pointed, column)) if commas else column)
    return Numbers(matrix, lambda row, column: cells[column][row], commas)


def not_finite(
    rows: Rows, numbers: Numbers, columns: Sequence[int], head: str, *, hint: str = FINITE_HINT
) -> Iterator[Issue]:
    """Yield one issue for the rows that are not finite in all the given columns, which messages call `head`."""
    finite = np.isfinite(numbers.matrix[:, columns])
    bad = np.flatnonzero(~finite.all(axis=1)).tolist()
    if not bad:
        return
    cells = [numbers.shown(row, columns[int(np.argmin(finite[row]))]) for row in bad]
    found = [f"'{cell}' in {rows.place(row)}" for cell, row in zip(cells, bad, strict=True)]
    yield Issue(
        "prediction-value",
        f"{rows.ids.file}:{rows.line(bad[0])} {head}",
        f"no finite number in {len(bad):,} of {len(finite):,} rows: {listed(found, IDS_LISTED)}",
        _COMMA_HINT if numbers.decimal_commas or any(map(_DECIMAL_COMMA.fullmatch, cells)) else hint,
        rows.line(bad[0]),
    )


def per_item(numbers: Numbers, rows: Rows, n_items: int, aggregate: Aggregate | None = None) -> PerItem:
    """Bring the values of rows [n_rows, n_columns] to items; an item without a row stays NaN.

    A row that repeats an id with the same values is dropped with a note, one with other values is an issue.
    Views of one study are aggregated in the order of their names, so that the order of rows never shows.
    """
    matrix = numbers.matrix
    names, codes = np.unique(np.array(rows.views, dtype=np.str_), return_inverse=True)
    keys = np.array(rows.items, dtype=np.int64) * len(names) + codes
    _, order, group = np.unique(keys, return_index=True, return_inverse=True)
    first = order[group]
    repeats = np.flatnonzero(first != np.arange(len(keys)))
    same = _is_same(matrix[repeats], matrix[first[repeats]])
    n_images = len(order) if any(rows.views) else 0
    return PerItem(
        values=_aggregated(matrix[order], keys[order] // max(len(names), 1), n_items, aggregate),
        n_aggregated=n_images,
        notes=(*comma_notes(rows, numbers), *_notes(rows, int(same.sum()), n_images, aggregate)),
        issues=tuple(_conflicts(rows, [(int(first[row]), int(row)) for row in repeats[~same]])),
    )


def score_notes(file: str, heads: Sequence[str], values: NDArray[np.float64]) -> Iterator[Issue]:
    """Yield notes on scores [n_items, n_columns] outside [0, 1] and on constant columns."""
    lowest, highest = values.min(axis=0), values.max(axis=0)
    outside = np.flatnonzero((lowest < 0) | (highest > 1)).tolist()
    if outside:
        span = f"{lowest[outside].min():g} to {highest[outside].max():g}"
        names = listed([f"'{heads[at]}'" for at in outside])
        yield Issue("note", file, f"values outside [0, 1] ({span}), taken as they are, in {names}")
    for at in np.flatnonzero((lowest == highest) & (len(values) > 1)).tolist():
        blank = (
            "; torchxrayvision gives 0.5 for a head that was not trained" if lowest[at] == _VALUE_OF_BLANK_HEAD else ""
        )
        message = f"the same value {lowest[at]:g} for all items: AUROC is 0.5 by construction{blank}"
        yield Issue("note", f"{file} column '{heads[at]}'", message)


def _picked(column: list[str], rows: Sequence[int]) -> list[str]:
    """Return the cells of some rows, in file order; all of them are not copied."""
    return column if len(rows) == len(column) else [column[row] for row in rows]


def _mostly_commas(columns: Sequence[Sequence[str]]) -> bool:
    n_commas = sum(_DECIMAL_COMMA.fullmatch(cell) is not None for column in columns for cell in column)
    return 2 * n_commas > sum(map(len, columns))


def _pointed(cell: str) -> str:
    return cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else ""


def _to_floats(cells: Sequence[str]) -> NDArray[np.float64]:
    """Read cells as Python's `float` does, in ASCII and without digit separators; NaN where that is no number."""
    joined = "".join(cells)
    if joined.isascii() and "_" not in joined:
        try:
            return np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
        except ValueError:
            pass  # some cell is no number: look at each
    return np.fromiter(map(_float_or_nan, cells), dtype=np.float64, count=len(cells))


def _float_or_nan(cell: str) -> float:
    try:
        return float(cell) if cell.isascii() and "_" not in cell else float("nan")
    except ValueError:
        return float("nan")


def _is_same(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = ((left == right) | (np.isnan(left) & np.isnan(right))).all(axis=1)
    return same


def _aggregated(
    matrix: NDArray[np.float64], items: NDArray[np.int64], n_items: int, aggregate: Aggregate | None
) -> NDArray[np.float64]:
    """Bring runs of rows [n_rows, n_columns] of one item to one row; `items` is ascending."""
    values = np.full((n_items, matrix.shape[1]), np.nan)
    present, starts, counts = np.unique(items, return_index=True, return_counts=True)
    if len(present) == len(items):
        values[items] = matrix
    elif aggregate == "mean":
        values[present] = np.add.reduceat(matrix, starts, axis=0) / counts[:, np.newaxis]
    else:
        values[present] = np.maximum.reduceat(matrix, starts, axis=0)
    return values


def comma_notes(rows: Rows, numbers: Numbers) -> Iterator[Issue]:
    """Yield the note that decimal commas were read, where they were."""
    if numbers.decimal_commas:
        yield Issue("note", rows.ids.file, "decimal commas read as decimal points")


def _notes(rows: Rows, n_dropped: int, n_images: int, aggregate: Aggregate | None) -> Iterator[Issue]:
    if n_dropped:
        yield Issue("note", rows.ids.file, f"repeated rows with the same values dropped: {n_dropped:,}")
    if n_images:
        message = f"{n_images:,} images -> {len(set(rows.items)):,} studies, agg={aggregate}"
        yield Issue("note", rows.ids.file, message)


def _conflicts(rows: Rows, differing: Sequence[tuple[int, int]]) -> Iterator[Issue]:
    if not differing:
        return
    found = [f"'{rows.ids.cells[rows.at[b]]}' in lines {rows.line(a)} and {rows.line(b)}" for a, b in differing]
    line = rows.line(differing[0][1])
    n_rows = f"{len(differing):,} of {len(rows.at):,} rows"
    message = f"an id repeated with other values in {n_rows}: {listed(found, IDS_LISTED)}"
    yield Issue("prediction-duplicate", f"{rows.ids.file}:{line}", message, "Keep one row per item", line)
