"""Own the opening of embedding files: NumPy archives, Parquet with a list column, tables with a column per feature.

Every form ends as ids and one matrix. Which items the rows belong to is for `alignment`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cxrspec.errors import IDS_LISTED, Issue, SourceError, listed
from cxrspec.predictions.alignment import ExpectedItems, IdColumn
from cxrspec.predictions.archives import read_arrays, texts_of
from cxrspec.predictions.heads import OWN_ID_COLUMN, id_issues, id_positions, ignored_notes, is_blank, is_label
from cxrspec.predictions.values import Numbers, read_numbers
from cxrspec.spelling import plain_name
from cxrspec.tables.containers import is_numpy_archive
from cxrspec.tables.sheets import Sheet, open_sheet


@dataclass(frozen=True, slots=True)
class VectorFile:
    """An opened embedding file."""

    ids: IdColumn
    numbers: Numbers
    """All rows of the file; without features if the rows differ in length."""
    feature_names: tuple[str, ...] | None
    notes: tuple[Issue, ...] = ()
    issues: tuple[Issue, ...] = ()


def open_vectors(data: bytes, name: str, expected: ExpectedItems, *, what: str = "embeddings") -> VectorFile:
    """Open a file of embeddings, or `what` messages call its numbers; its first bytes say of which form it is.

    Raises:
        SourceError: There is no id column, or the file holds no embeddings.
    """
    if is_numpy_archive(data):
        return vectors_of(read_arrays(data, name), name, expected, what)
    sheet = open_sheet(data, name=name, wanted=[*expected.id_columns, OWN_ID_COLUMN])
    ids = id_positions(sheet, expected)
    if len(ids) != 1:
        raise SourceError([*sheet.issues, *id_issues(sheet, ids, expected)])
    if sheet.grids and not sheet.vectors:
        found = listed([f"'{sheet.heads[at]}'" for at in sheet.grids])
        message = f"{found} holds lists of integers or lists of lists; {what} are one list of floats per row"
        raise SourceError(Issue("column-missing", sheet.name, message, "Store them as float32 or float64"))
    column = IdColumn(sheet.name, sheet.lines, *sheet.cells(ids))
    return (_from_lists if sheet.vectors else _from_columns)(sheet, column, ids[0], expected)


def _from_columns(sheet: Sheet, ids: IdColumn, id_position: int, expected: ExpectedItems) -> VectorFile:
    """Take every column that is no label as a feature, in the order of their names."""
    heads = {at: head for at, head in sheet.heads.items() if at != id_position}
    order = sorted((head, at) for at, head in heads.items() if not is_blank(head) and not is_label(head, expected))
    names, positions = [head for head, _ in order], [at for _, at in order]
    return VectorFile(
        ids=ids,
        numbers=read_numbers(sheet, positions, range(len(ids.cells))),
        feature_names=tuple(names),
        notes=tuple(ignored_notes(sheet, [id_position, *positions], expected)),
        issues=(*sheet.issues, *_feature_issues(sheet.name, names)),
    )


def _feature_issues(file: str, names: Sequence[str]) -> Iterator[Issue]:
    repeated = [name for name, n_uses in Counter(names).items() if n_uses > 1]
    if repeated:
        message = f"features whose name stands twice: {listed(repeated)}"
        yield Issue("column-ambiguous", file, message, "Features are ordered by name: give each its own")


def _from_lists(sheet: Sheet, ids: IdColumn, id_position: int, expected: ExpectedItems) -> VectorFile:
    """Take the one column of number lists of a Parquet file."""
    if len(sheet.vectors) > 1:
        found = listed([f"'{sheet.heads[at]}'" for at in sheet.vectors])
        message = f"{len(sheet.vectors)} columns hold lists of numbers: {found}"
        raise SourceError(Issue("column-ambiguous", sheet.name, message, "Keep the one of the embeddings"))
    [(position, read)] = sheet.vectors.items()
    numbers, lengths = read()
    width = int(np.bincount(lengths).argmax()) if len(lengths) else 0
    issues = (*sheet.issues, *_uneven(ids, lengths, width))
    matrix = np.empty((len(lengths), 0)) if issues else numbers.reshape(len(lengths), width)
    return VectorFile(
        ids=ids,
        numbers=_stored(matrix),
        feature_names=None,
        notes=tuple(ignored_notes(sheet, [id_position, position], expected)),
        issues=issues,
    )


def _stored(matrix: NDArray[np.float64]) -> Numbers:
    return Numbers(matrix, lambda row, feature: str(matrix[row, feature]))


def _uneven(ids: IdColumn, lengths: NDArray[np.int64], width: int) -> Iterator[Issue]:
    bad = np.flatnonzero(lengths != width).tolist()
    if bad:
        found = listed([f"{ids.quoted(row)} has {lengths[row]:,}" for row in bad], IDS_LISTED)
        line = ids.lines[bad[0]]
        message = f"not the {width:,} numbers that most have in {len(bad):,} of {len(lengths):,} rows: {found}"
        yield Issue("row-shape", f"{ids.file}:{line}", message, "All lists must have one length", line)


def vectors_of(
    arrays: Mapping[str, NDArray[Any]], name: str, expected: ExpectedItems, what: str = "embeddings"
) -> VectorFile:
    """Take the ids and the matrix of the arrays of a NumPy archive; raises SourceError as `open_vectors` does."""
    accepted = {plain_name(key) for key in (*expected.id_columns, OWN_ID_COLUMN, "id", "ids")}
    texts = [key for key, array in arrays.items() if array.ndim == 1 and array.dtype.kind in "US"]
    ids = [key for key in texts if plain_name(key) in accepted] or texts
    tables = [key for key, array in arrays.items() if array.ndim == 2 and array.dtype.kind == "f"]
    tables = [key for key in tables if plain_name(key) == plain_name(what)] or tables
    if len(ids) != 1 or len(tables) != 1:
        found = listed([f"{key} {array.dtype}{list(array.shape)}" for key, array in arrays.items()])
        message = f"one array of ids (text [n]) and one of {what} (float [n, d]) are needed; the file has {found}"
        raise SourceError(Issue("column-missing", name, message, f"Save them as item_id and {what}"))
    cells, matrix = texts_of(arrays[ids[0]]), arrays[tables[0]].astype(np.float64)
    if len(cells) != len(matrix):
        message = f"{len(cells):,} ids, but {len(matrix):,} rows of {what}"
        raise SourceError(Issue("row-shape", name, message, "Give one id per row"))
    others = [key for key in arrays if key not in {ids[0], tables[0]}]
    return VectorFile(
        ids=IdColumn(name, range(1, len(matrix) + 1), cells),
        numbers=_stored(matrix),
        feature_names=None,
        notes=(Issue("note", name, f"other arrays ignored: {listed(others)}"),) if others else (),
    )
