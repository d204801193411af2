"""Own the reading of Parquet files by column projection, as the same cells that delimited text gives.

Only the columns that are asked for are read, so a file of images costs no more than its labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from cxrspec.errors import Issue, SourceError
from cxrspec.tables.sheets import Sheet

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LIST_JOINT = "|"
_GRID_DEPTHS = (1, 2)
_ROWS_A_BATCH = 1 << 16
_SHOWN = 120
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


class Vectors(NamedTuple):
    """A column of number lists: all numbers in row order, and how many belong to each row."""

    numbers: NDArray[np.float64]
    lengths: NDArray[np.int64]


class Grids(NamedTuple):
    """A column of number lists, or of lists of such lists."""

    numbers: NDArray[Any]
    """All numbers, in row order and of the type that the file stores; NaN for a null."""
    lengths: NDArray[np.int64]
    """How many numbers belong to each row of the file."""
    heights: NDArray[np.int64] | None
    """Of how many lists each row of the file consists, 0 where their lengths differ; None if no list is nested."""


def open_parquet(source: Path | bytes | BinaryIO, name: str, limit: int) -> Sheet:
    """Open a Parquet file; its columns are read when they are asked for.

    A null is an empty cell, a truth value 1 or 0, a number its shortest round-trip form, and a list is joined by `|`,
    as the NIH writes its labels. The field of a struct is named `image.path`.

    Raises:
        SourceError: The file is damaged; later, from the sheet: a column is too large or holds no text cells.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _undamaged(name):
        file = pq.ParquetFile(pa.BufferReader(source) if isinstance(source, bytes) else source, pre_buffer=True)
    fields = [(path, kind) for path, kind in _fields(file.schema_arrow) if not _PANDAS_INDEX.fullmatch(path)]
    paths = [path for path, _ in fields]
    elements = {position: _element(kind) for position, (_, kind) in enumerate(fields) if _is_list(kind)}

    def cells(positions: Sequence[int]) -> list[list[str]]:
        table = _read(file, [paths[position] for position in positions], name, limit)
        return [_cells(table.column(paths[position]), paths[position], name) for position in positions]

    def numbers(positions: Sequence[int]) -> NDArray[np.float64] | None:
        if not all(_is_number(fields[position][1]) for position in positions):
            return None
        table = _read(file, [paths[position] for position in positions], name, limit)
        return _matrix([table.column(paths[position]) for position in positions], table.num_rows)

    return Sheet(
        name=name,
        heads=dict(enumerate(paths)),
        lines=range(1, file.metadata.num_rows + 1),
        cells=cells,
        numbers=numbers,
        nulls=lambda position: _nulls(_read(file, [paths[position]], name, limit).column(paths[position])),
        kinds={position: str(kind) for position, (_, kind) in enumerate(fields) if not _is_text(kind)},
        vectors={
            position: partial(_vectors, file, paths[position], name, limit)
            for position, (element, depth) in elements.items()
            if depth == 1 and pa.types.is_floating(element)
        },
        grids={
            position: partial(_grids, file, paths[position], name, limit)
            for position, (element, depth) in elements.items()
            if depth in _GRID_DEPTHS and _is_number(element)
        },
    )


def _nulls(column: Any) -> list[int]:
    """Return the rows without a value."""
    return [row for row, is_null in enumerate(column.is_null().to_pylist()) if is_null] if column.null_count else []


def _fields(fields: Iterable[Any], parent: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and type of every column, those of structs by their fields."""
    import pyarrow as pa

    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _fields((field.type.field(at) for at in range(field.type.num_fields)), f"{parent}{field.name}.")
        else:
            yield f"{parent}{field.name}", field.type


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _element(kind: Any) -> tuple[Any, int]:
    """Return what lists hold in the end, and how deep they are nested."""
    if not _is_list(kind):
        return kind, 0
    element, depth = _element(kind.value_type)
    return element, depth + 1


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _read(file: Any, paths: Sequence[str], name: str, limit: int) -> Any:
    """Read the columns as a table whose names are their paths, batch by batch so as to stop at the limit."""
    import pyarrow as pa

    columns = list(dict.fromkeys(paths))
    batches, size = [], 0
    with _undamaged(name):
        for batch in file.iter_batches(_ROWS_A_BATCH, columns=columns):
            batches.append(batch)
            size += batch.nbytes
            if size > limit:
                raise _refusal(name, f"more than {limit:,} bytes once unpacked", "Is it the right file?")
        table = pa.Table.from_batches(batches) if batches else file.read(columns=columns)
        if table.num_rows != file.metadata.num_rows:
            raise OSError("a column has another number of rows than the file")
    while not set(paths) <= set(table.column_names):
        table = table.flatten()
    return table


def _cells(column: Any, path: str, name: str) -> list[str]:
    import pyarrow as pa

    kind = column.type
    of_list = _is_list(kind)
    element = kind.value_type if of_list else kind
    if pa.types.is_nested(element) or pa.types.is_binary(element) or pa.types.is_large_binary(element):
        raise _refusal(name, f"column '{path}' holds {kind}, which is no text", "Name a column of texts or numbers")
    with _undamaged(name):
        values = column.to_pylist()
    if not of_list:
        return list(map(_cell, values))
    rows = [list(map(_cell, value or ())) for value in values]
    if any(LIST_JOINT in cell for cells in rows for cell in cells):
        raise _refusal(name, f"column '{path}' has lists whose texts hold '{LIST_JOINT}'", "Write one text per cell")
    return list(map(LIST_JOINT.join, rows))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))  # a column of whole numbers is one of floats as soon as a null was in it
    return str(value)


def _matrix(columns: Sequence[Any], n_rows: int) -> NDArray[np.float64]:
    import numpy as np

    matrix = np.empty((n_rows, len(columns)))
    for at, column in enumerate(columns):
        matrix[:, at] = column.to_numpy()
    return matrix


def _vectors(file: Any, path: str, name: str, limit: int) -> Vectors:
    import numpy as np
    import pyarrow.compute as pc

    column = _read(file, [path], name, limit).column(path)
    return Vectors(pc.list_flatten(column).to_numpy().astype(np.float64), _lengths(column))


def _grids(file: Any, path: str, name: str, limit: int) -> Grids:
    import numpy as np
    import pyarrow.compute as pc

    column = _read(file, [path], name, limit).column(path)
    lengths, inner = _lengths(column), pc.list_flatten(column)
    if not _is_list(column.type.value_type):
        return Grids(inner.to_numpy(), lengths, None)
    widths, owners = _lengths(inner), np.repeat(np.arange(len(lengths)), lengths)
    totals = np.zeros(len(lengths), dtype=np.int64)
    np.add.at(totals, owners, widths)
    uneven = owners[widths * lengths[owners] != totals[owners]]
    heights = lengths.copy()
    heights[uneven] = 0
    return Grids(pc.list_flatten(inner).to_numpy(), totals, heights)


def _lengths(column: Any) -> NDArray[np.int64]:
    """Return how many elements each list of a column has; a null has none."""
    import numpy as np
    import pyarrow.compute as pc

    lengths: NDArray[np.int64] = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
    return lengths


def column_kinds(source: Path | BinaryIO, columns: Sequence[str], name: str) -> list[str]:
    """Return of what kind each column is, by its path: `text`, `number`, or another of Arrow's types.

    Raises:
        SourceError: The file is damaged.
    """
    import pyarrow.parquet as pq

    with _undamaged(name):
        kinds = dict(_fields(pq.ParquetFile(source).schema_arrow))
    found = []
    for path in columns:
        kind, depth = _element(kinds[path])
        found.append("text" if _is_text(kind) else "number" if _is_number(kind) else str(kind))
        found[-1] += " list" * depth
    return found


@contextmanager
def _undamaged(name: str) -> Iterator[None]:
    """Turn what pyarrow raises over a damaged file into a refusal; texts that are no UTF-8 are damage too."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        first_line = str(error).partition("\n")[0]
        raise _refusal(name, f"the Parquet file is damaged ({first_line[:_SHOWN]})", "Get it again") from error


def _refusal(name: str, message: str, hint: str) -> SourceError:
    return SourceError(Issue("container", name, message, hint))
