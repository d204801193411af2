"""Own the opening of scores files: tables whose columns have names, and matrices that a head map gives names to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cxrspec.errors import Issue, SourceError, listed
from cxrspec.predictions.alignment import ExpectedItems
from cxrspec.predictions.head_maps import HEAD_MAPS, HeadMap
from cxrspec.predictions.heads import id_positions, spelled
from cxrspec.predictions.vectors import VectorFile, open_vectors
from cxrspec.tables.containers import is_numpy_archive
from cxrspec.tables.sheets import Sheet, open_sheet

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAPPED = "If its columns are the heads of a known classifier, name it: --head-map (head_map in submission.yaml)"


def open_scores(
    data: bytes, name: str, wanted: Sequence[str], expected: ExpectedItems, head_map: HeadMap | None
) -> tuple[Sheet, list[Issue]]:
    """Open a scores file as a sheet with named columns, and return it with notes.

    `wanted` are names that help to read the header. A NumPy archive and a Parquet file with a column of lists hold a
    matrix [n_rows, n_heads]: its columns are the heads of the map, in the order of the map.

    Raises:
        SourceError: The file is no table, or a matrix that no head map fits.
    """
    if is_numpy_archive(data):
        return _named(open_vectors(data, name, expected, what="scores"), head_map, expected)
    sheet = open_sheet(data, name=name, wanted=wanted)
    is_named = set(spelled(sheet, wanted)) > set(id_positions(sheet, expected))
    if (head_map and (sheet.vectors or sheet.grids)) or (sheet.vectors and not is_named):
        return _named(open_vectors(data, name, expected, what="scores"), head_map, expected)
    return sheet, []


def _named(file: VectorFile, head_map: HeadMap | None, expected: ExpectedItems) -> tuple[Sheet, list[Issue]]:
    """Give the columns of a matrix the names of the heads; those without a name are dropped."""
    matrix, name = file.numbers.matrix, file.ids.file
    if file.issues:
        raise SourceError(file.issues)
    if head_map is None:
        raise SourceError(Issue("column-missing", name, f"{matrix.shape[1]} columns of scores without names", _MAPPED))
    heads = HEAD_MAPS[head_map]
    if matrix.shape[1] != len(heads):
        fitting = [one for one, names in HEAD_MAPS.items() if len(names) == matrix.shape[1]]
        message = f"{matrix.shape[1]} columns of scores, but {head_map} has {len(heads)} heads"
        hint = f"As many heads have {listed(fitting)}" if fitting else "Give one column per head, blank ones too"
        raise SourceError(Issue("row-shape", name, message, hint))
    trained = [at for at, head in enumerate(heads) if head]
    names = {1 + i: heads[at] for i, at in enumerate(trained)}
    blank = f"; {len(heads) - len(trained)} blank heads dropped" if len(trained) < len(heads) else ""
    note = f"columns taken in the order of {head_map}: {listed([heads[at] for at in trained], len(heads))}{blank}"
    sheet = _sheet(file, {0: expected.id_columns[0], **names}, matrix[:, trained])
    return sheet, [*file.notes, Issue("note", name, note)]


def _sheet(file: VectorFile, heads: dict[int, str], matrix: NDArray[np.float64]) -> Sheet:
    """Return ids (column 0) and a matrix (the columns after it) as a sheet."""

    def cells(positions: Sequence[int]) -> list[list[str]]:
        return [list(file.ids.cells) if at == 0 else list(map(str, matrix[:, at - 1].tolist())) for at in positions]

    def numbers(positions: Sequence[int]) -> NDArray[np.float64] | None:
        return matrix[:, [at - 1 for at in positions]] if 0 not in positions else None

    return Sheet(file.ids.file, heads, file.ids.lines, cells, numbers)
