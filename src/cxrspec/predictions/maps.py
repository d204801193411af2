"""Own the opening of heatmap files, Parquet with a list column or a NumPy archive, and one map of one size per pair.

Nothing is resized, transposed or filled in. Which pairs the maps belong to is for `pairs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cxrspec.errors import IDS_LISTED, Issue, SourceError, listed
from cxrspec.predictions.alignment import IdColumn, Rows
from cxrspec.predictions.archives import read_arrays, texts_of
from cxrspec.predictions.heads import (
    OWN_ID_COLUMN,
    id_issues,
    id_positions,
    ignored_notes,
    quoted,
    role_issues,
    spelled,
)
from cxrspec.predictions.pairs import ExpectedPairs, PairRows
from cxrspec.predictions.values import Numbers, not_finite, read_numbers
from cxrspec.spelling import plain_name
from cxrspec.tables.containers import is_numpy_archive
from cxrspec.tables.parquet import Grids
from cxrspec.tables.sheets import Sheet, open_sheet

_SIZE_HEADS = ("height", "width")
_NO_SQUARE = ("a list that is no square", "Give columns height and width, or lists of rows")
_NO_PRODUCT = ("a list that is not height x width long", "Correct the columns height and width")
_UNEVEN = ("rows of a map that are empty or differ in length", "Give every row of a map one length")


@dataclass(frozen=True, slots=True, eq=False)
class MapFile:
    """An opened heatmap file: one row per map."""

    ids: IdColumn
    findings: Sequence[str]
    """The cell that names each one's finding."""
    numbers: NDArray[np.floating[Any]]
    """The pixels of all maps one after the other, row by row, in single or double precision."""
    lengths: NDArray[np.int64]
    """How many pixels each map has."""
    sizes: NDArray[np.int64]
    """[n_rows, 2] height and width of each map; (0, 0) where the file tells of none."""
    fault: tuple[str, str] = _UNEVEN
    """What is wrong with a map without size, and how to mend it."""
    notes: tuple[Issue, ...] = ()
    issues: tuple[Issue, ...] = ()

    def pixels(self, rows: Sequence[int], n_pixels: int) -> NDArray[np.floating[Any]]:
        """Return [len(rows), n_pixels] of some maps that all have so many pixels."""
        ends = np.cumsum(self.lengths)
        picked = np.empty((len(rows), n_pixels), dtype=self.numbers.dtype)
        for at, row in enumerate(rows):
            picked[at] = self.numbers[ends[row] - n_pixels : ends[row]]
        return picked


@dataclass(frozen=True, slots=True, eq=False)
class PairMaps:
    """One map per pair, ordered by finding, then by item."""

    stack: NDArray[np.floating[Any]]
    """[n_pairs, height, width]"""
    items: NDArray[np.int64]
    findings: NDArray[np.int64]
    notes: tuple[Issue, ...]
    issues: tuple[Issue, ...]


def open_maps(data: bytes, name: str, expected: ExpectedPairs) -> MapFile:
    """Open a heatmap file; its first bytes say of which form it is.

    Raises:
        SourceError: Ids, findings or maps are not there, or cannot be told from something else.
    """
    if is_numpy_archive(data):
        return _from_archive(data, name, expected)
    names = expected.names_of_finding_column
    sheet = open_sheet(data, name=name, wanted=[*expected.items.id_columns, OWN_ID_COLUMN, *names])
    ids, findings = id_positions(sheet, expected.items), spelled(sheet, names)
    if not len(ids) == len(findings) == len(sheet.grids) == 1:
        roles = [*id_issues(sheet, ids, expected.items), *role_issues(sheet, findings, "finding", names)]
        raise SourceError([*sheet.issues, *roles, *_grid_issues(sheet)])
    [(position, read)] = sheet.grids.items()
    grids = read()
    sizes, fault, used, issues = _sizes(sheet, grids)
    id_cells, finding_cells = sheet.cells([ids[0], findings[0]])
    return MapFile(
        ids=IdColumn(name, sheet.lines, id_cells),
        findings=finding_cells,
        numbers=_floats(grids.numbers),
        lengths=grids.lengths,
        sizes=sizes,
        fault=fault,
        notes=tuple(ignored_notes(sheet, [ids[0], findings[0], position, *used], expected.items)),
        issues=(*sheet.issues, *issues),
    )


def per_pair(file: MapFile, pairs: PairRows, n_items: int) -> PairMaps:
    """Bring the maps of rows to pairs, in the precision of the file.

    A row that repeats a pair with the same map is dropped with a note, one with another map is an issue, and so are
    maps that are not of the size that most have, and values that are not finite.
    """
    sizes = file.sizes[np.array(pairs.rows.at, dtype=np.int64)]
    size = _most_common(sizes)
    fit = pairs.of(np.flatnonzero((sizes == size).all(axis=1)).tolist())
    keys = np.array(fit.findings, dtype=np.int64) * n_items + np.array(fit.rows.items, dtype=np.int64)
    keys, order, group = np.unique(keys, return_index=True, return_inverse=True)
    first = order[group]
    repeats = np.flatnonzero(first != np.arange(len(first))).tolist()
    n_pixels = int(size.prod())
    stack = file.pixels([fit.rows.at[row] for row in order], n_pixels)
    again = file.pixels([fit.rows.at[row] for row in repeats], n_pixels)
    differing = [
        (int(first[row]), row)
        for row, one in zip(repeats, again, strict=True)
        if not np.array_equal(one, stack[group[row]], equal_nan=True)
    ]
    return PairMaps(
        stack=stack.reshape(len(stack), *size.tolist()),
        items=keys % n_items,
        findings=keys // n_items,
        notes=tuple(_dropped_notes(file.ids.file, len(repeats) - len(differing))),
        issues=(
            *_size_issues(file, pairs.rows, sizes, size),
            *_conflicts(fit.rows, differing),
            *_not_finite(file, fit.of(np.sort(order).tolist()).rows, stack),
        ),
    )


def _grid_issues(sheet: Sheet) -> Iterator[Issue]:
    if not sheet.grids:
        message = f"no column of lists of numbers; the file has {listed(sheet.heads.values()) or 'no named column'}"
        hint = "Give the maps as a list column of Parquet, or as a NumPy archive (.npz)"
        yield Issue("column-missing", sheet.name, message, hint)
    elif len(sheet.grids) > 1:
        message = f"{len(sheet.grids)} columns hold lists of numbers: {quoted(sheet, sheet.grids)}"
        yield Issue("column-ambiguous", sheet.name, message, "Keep the one of the maps")


def _sizes(sheet: Sheet, grids: Grids) -> tuple[NDArray[np.int64], tuple[str, str], list[int], list[Issue]]:
    """Return the sizes [n_rows, 2], what is wrong where there is none, the columns that were used, and issues."""
    if grids.heights is not None:
        return _checked_sizes(grids.heights, grids.lengths // np.maximum(grids.heights, 1), grids), _UNEVEN, [], []
    columns = [spelled(sheet, [head]) for head in _SIZE_HEADS]
    used = [at for positions in columns for at in positions]
    if not used:
        side = np.rint(np.sqrt(grids.lengths)).astype(np.int64)
        return _checked_sizes(side, side, grids), _NO_SQUARE, used, []
    if [len(positions) for positions in columns] != [1, 1]:
        message = f"one column height and one column width are needed; the file has {quoted(sheet, used)}"
        issue = Issue(
            "column-missing", sheet.name, message, "Give both, or lists of rows, or neither if maps are square"
        )
        return np.zeros((len(grids.lengths), 2), np.int64), _NO_PRODUCT, used, [issue]
    given = read_numbers(sheet, used, range(len(sheet.lines))).matrix
    is_count = (given >= 1) & (given <= np.maximum(grids.lengths, 1)[:, np.newaxis]) & (given == np.rint(given))
    height, width = np.where(is_count, given, 0).astype(np.int64).T
    return _checked_sizes(height, width, grids), _NO_PRODUCT, used, []


def _checked_sizes(height: NDArray[np.int64], width: NDArray[np.int64], grids: Grids) -> NDArray[np.int64]:
    sizes = np.column_stack([height, width])
    sizes[height * width != grids.lengths] = 0
    return sizes


def _floats(array: NDArray[Any]) -> NDArray[np.floating[Any]]:
    """Return numbers in single precision where that holds them exactly, else in double."""
    is_single = np.result_type(array.dtype, np.float32) == np.float32
    return array.astype(np.float32 if is_single else np.float64, copy=False)


def _most_common(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the size that most rows have that have one; of equally common ones the smallest."""
    known, counts = np.unique(sizes[(sizes > 0).all(axis=1)], axis=0, return_counts=True)
    return known[np.argmax(counts)] if len(known) else np.zeros(2, dtype=np.int64)


def _size_issues(file: MapFile, rows: Rows, sizes: NDArray[np.int64], size: NDArray[np.int64]) -> Iterator[Issue]:
    has_size = (sizes > 0).all(axis=1)
    unknown = [(row, f"{file.lengths[rows.at[row]]:,} numbers") for row in np.flatnonzero(~has_size).tolist()]
    if not file.issues:  # without columns of sizes no row has one, and that is told already
        yield from _odd_rows(rows, unknown, *file.fault)
    other = [(row, _shown(sizes[row])) for row in np.flatnonzero(has_size & (sizes != size).any(axis=1)).tolist()]
    yield from _odd_rows(rows, other, f"not the {_shown(size)} that most maps have", "All maps must have one size")


def _shown(size: NDArray[np.int64]) -> str:
    return " x ".join(map(str, size.tolist()))


def _odd_rows(rows: Rows, odd: Sequence[tuple[int, str]], fault: str, hint: str) -> Iterator[Issue]:
    if odd:
        found = listed([f"{rows.ids.quoted(rows.at[row])} has {what}" for row, what in odd], IDS_LISTED)
        line = rows.line(odd[0][0])
        message = f"{fault} in {len(odd):,} of {len(rows.at):,} rows: {found}"
        yield Issue("row-shape", f"{rows.ids.file}:{line}", message, hint, line)


def _conflicts(rows: Rows, differing: Sequence[tuple[int, int]]) -> Iterator[Issue]:
    if differing:
        found = [f"'{rows.ids.cells[rows.at[b]]}' in lines {rows.line(a)} and {rows.line(b)}" for a, b in differing]
        line = rows.line(differing[0][1])
        n_rows = f"{len(differing):,} of {len(rows.at):,} rows"
        message = f"an (image, finding) pair repeated with another map in {n_rows}: {listed(found, IDS_LISTED)}"
        yield Issue("prediction-duplicate", f"{rows.ids.file}:{line}", message, "Keep one map per pair", line)


def _dropped_notes(file: str, n_dropped: int) -> Iterator[Issue]:
    if n_dropped:
        yield Issue("note", file, f"repeated rows with the same map dropped: {n_dropped:,}")


def _not_finite(file: MapFile, rows: Rows, stack: NDArray[np.floating[Any]]) -> Iterator[Issue]:
    """Yield an issue if some map is not finite; `rows` are those of the maps, in file order."""
    if not np.isfinite(stack).all():
        matrix = file.pixels(rows.at, stack.shape[1]).astype(np.float64)
        numbers = Numbers(matrix, lambda row, pixel: str(matrix[row, pixel]))
        hint = "Every pixel needs a finite number; nothing is filled in"
        yield from not_finite(rows, numbers, range(matrix.shape[1]), "map", hint=hint)


def _from_archive(data: bytes, name: str, expected: ExpectedPairs) -> MapFile:
    """Take ids and maps [n, height, width] of a NumPy archive: one array for all findings, or one for each."""
    arrays = read_arrays(data, name)
    texts = [key for key, array in arrays.items() if array.ndim == 1 and array.dtype.kind in "US"]
    findings = _keys(texts, [*expected.names_of_finding_column, "findings"])
    others = [key for key in texts if key not in findings]
    ids = _keys(others, [*expected.items.id_columns, OWN_ID_COLUMN, "id", "ids"]) or others
    stacks = [key for key, array in arrays.items() if array.ndim == 3 and array.dtype.kind in "fiu"]
    if len(ids) != 1 or not stacks or len(findings) > 1 or (findings and len(stacks) > 1):
        raise SourceError(_archive_issue(name, arrays))
    _refuse_lengths(name, {key: len(arrays[key]) for key in [*ids, *findings, *stacks]})
    cells = texts_of(arrays[ids[0]])
    ignored = [key for key in arrays if key not in {*ids, *findings, *stacks}]
    sizes = np.repeat([arrays[key].shape[1:] for key in stacks], len(cells), axis=0).astype(np.int64)
    return MapFile(
        ids=IdColumn(name, [*range(1, len(cells) + 1)] * len(stacks), cells * len(stacks)),
        findings=texts_of(arrays[findings[0]]) if findings else [key for key in stacks for _ in cells],
        numbers=np.concatenate([_floats(arrays[key]).ravel() for key in stacks]),
        lengths=sizes.prod(axis=1),
        sizes=sizes,
        notes=(Issue("note", name, f"other arrays ignored: {listed(ignored)}"),) if ignored else (),
    )


def _keys(keys: Sequence[str], names: Sequence[str]) -> list[str]:
    accepted = set(map(plain_name, names))
    return [key for key in keys if plain_name(key) in accepted]


def _archive_issue(name: str, arrays: dict[str, NDArray[Any]]) -> Issue:
    found = listed([f"{key} {array.dtype}{list(array.shape)}" for key, array in arrays.items()])
    message = (
        f"ids (text [n]), findings (text [n]) and maps (numbers [n, height, width]) are needed; the file has {found}"
    )
    hint = "Save them as item_id, finding and maps, or item_id and one array of maps for each finding, under its name"
    return Issue("column-missing", name, message, hint)


def _refuse_lengths(name: str, lengths: dict[str, int]) -> None:
    if len(set(lengths.values())) > 1:
        found = listed([f"{key} {length:,}" for key, length in lengths.items()])
        message = f"arrays of different lengths: {found}"
        raise SourceError(Issue("row-shape", name, message, "Give one id and one finding per map"))
