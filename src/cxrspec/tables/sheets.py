"""Own the opening of one table file, delimited text or Parquet, as cells and heads; no column is chosen here.

Cells are handed on untouched. Which columns are needed and what a cell means is the business of the callers.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from cxrspec.errors import IDS_LISTED, Issue, SourceError, did_you_mean, listed
from cxrspec.tables.containers import MAX_BYTES, open_bytes, read_bounded, read_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cxrspec.tables.parquet import Grids, Vectors

PARQUET_MAGIC = b"PAR1"
_DELIMITERS = ",;\t"
_INDEX_HEAD = re.compile(r"\s*(Unnamed: 0)?\s*")


@dataclass(frozen=True, slots=True)
class Sheet:
    """The cells of one opened file, before any column is chosen."""

    name: str
    heads: Mapping[int, str]
    """Name by position of every named column; an index column (0, 1, 2, ...) is left out."""
    lines: Sequence[int]
    """1-based line that each row starts on, or its 1-based number in a Parquet file."""
    cells: Callable[[Sequence[int]], list[list[str]]]
    """Return the columns at the given positions; raises SourceError where one holds no text cells."""
    numbers: Callable[[Sequence[int]], NDArray[np.float64] | None] = lambda _: None
    """Return the columns at the given positions as [n_rows, n_columns] if the file stores all of them as numbers."""
    unnamed: tuple[int, ...] = ()
    """Positions of columns without a name that hold something."""
    delimiter: str = ""
    issues: tuple[Issue, ...] = ()
    """Rows of another length than the header; such rows are not among the cells."""
    nulls: Callable[[int], Sequence[int]] = lambda _: ()
    """Return the rows in which the column at a position has a null, whose cell is empty; only Parquet has such."""
    kinds: Mapping[int, str] = field(default_factory=dict)
    """How the columns are stored that do not hold texts; only Parquet tells."""
    vectors: Mapping[int, Callable[[], Vectors]] = field(default_factory=dict)
    """A reader for every column of lists of floats; only Parquet has such."""
    grids: Mapping[int, Callable[[], Grids]] = field(default_factory=dict)
    """A reader for every column of lists of numbers, or of lists of such lists; only Parquet has such."""

    def missing(self, column: str) -> Issue:
        """Return the issue that the file lacks a column, with the names that it has."""
        heads = list(self.heads.values())
        message = f"no column '{column}'; the file has {listed(heads) or 'no named column'}"
        return Issue("column-missing", self.name, message, did_you_mean(column, heads))

    def stray(self) -> Iterator[Issue]:
        """Yield an issue for every column without a name that holds something."""
        for position, cells in zip(self.unnamed, self.cells(self.unnamed), strict=True):
            row = next(row for row, cell in enumerate(cells) if cell.strip())
            yield Issue(
                "row-shape",
                f"{self.name}:{self.lines[row]} column {position + 1}",
                f"the cell '{cells[row]}' stands under a header without a name",
                "Name the column, or remove it",
                self.lines[row],
            )


def open_sheet(
    source: Path | bytes | BinaryIO,
    *,
    name: str,
    wanted: Sequence[str] = (),
    literal: bool = False,
    limit: int = MAX_BYTES,
) -> Sheet:
    """Open a table, packed or not; `wanted` are names that help to tell which delimiter splits the header.

    Raises:
        SourceError: The file cannot be read, is not a table, is in no supported encoding, or has an open quote.
    """
    from cxrspec.tables.parquet import open_parquet

    data = _whole_unless_parquet(source, name, limit)
    if isinstance(data, bytes):
        data = open_bytes(data, name, limit)
        if not data.startswith(PARQUET_MAGIC):
            return _text_sheet(to_text(data, name), name, wanted, literal)
    return open_parquet(data, name, limit)


def to_text(data: bytes, name: str) -> str:
    """Decode UTF-8 with or without its mark, or UTF-16 with its mark.

    Raises:
        SourceError: The bytes are in another encoding (the message says where), or there is no text at all.
    """
    marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if marked else "utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise _not_text(data, name, error.start) from error
    if "\0" in text:
        raise _not_text(data, name, 0 if marked else data.index(b"\0"))
    if not text.strip():
        raise SourceError(Issue("source-not-data", name, "the file is empty, not a table"))
    return text


def _whole_unless_parquet(source: Path | bytes | BinaryIO, name: str, limit: int) -> Path | bytes | BinaryIO:
    """Read the source whole, unless it is a Parquet file, whose columns are read when they are asked for."""
    if isinstance(source, bytes):
        return source
    if isinstance(source, Path):
        return source if _is_parquet(source) else read_file(source, name, limit)
    start = source.read(len(PARQUET_MAGIC))
    source.seek(0)
    return source if start == PARQUET_MAGIC else read_bounded(source, name, limit)


def _is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
    except OSError:
        return False  # whoever reads it says why


def _not_text(data: bytes, name: str, offset: int) -> SourceError:
    line = data.count(b"\n", 0, offset) + 1
    return SourceError(
        Issue(
            "encoding",
            f"{name}:{line}",
            f"byte 0x{data[offset]:02x} at offset {offset:,} is not UTF-8 text",
            "UTF-8, and UTF-16 with its mark, are read: save the file as UTF-8",
            line,
        )
    )


class _Records(NamedTuple):
    """Header and rows; all cells are one flat list, since a list per row would cost more than the parsing."""

    delimiter: str
    header: list[str]
    lines: Sequence[int]
    widths: Sequence[int]
    cells: list[str]


def _text_sheet(text: str, name: str, wanted: Sequence[str], literal: bool) -> Sheet:
    records = _quoted_records(text, wanted, name) if '"' in text and not literal else _plain_records(text, wanted)
    even = _even_rows(records)
    header, width = records.header, len(records.header)

    def columns(positions: Sequence[int]) -> list[list[str]]:
        return [even.cells[at::width] for at in positions]

    counted = [str(number) for number in range(len(even.lines))]
    is_index = _INDEX_HEAD.fullmatch(header[0]) and columns([0])[0] == counted
    heads = {at: head for at, head in enumerate(header) if at or not is_index}
    return Sheet(
        name=name,
        heads={at: head for at, head in heads.items() if head.strip()},
        lines=even.lines,
        cells=columns,
        unnamed=tuple(at for at, head in heads.items() if not head.strip() and any(map(str.strip, columns([at])[0]))),
        delimiter=records.delimiter,
        issues=tuple(_ragged(records, name)),
    )


def _allowed_widths(header: Sequence[str]) -> range:
    """Return how many cells a row may have: only trailing fields whose header has no name may be absent."""
    least = max((at + 1 for at, head in enumerate(header) if head.strip()), default=0)
    return range(least, len(header) + 1)


def _even_rows(records: _Records) -> _Records:
    """Leave out the rows of a width that is not allowed, and fill up the others with empty cells."""
    most = len(records.header)
    if set(records.widths) <= {most}:
        return records
    allowed = _allowed_widths(records.header)
    lines, cells = [], []
    for line, width, end in zip(records.lines, records.widths, accumulate(records.widths), strict=True):
        if width in allowed:
            lines.append(line)
            cells += records.cells[end - width : end] + [""] * (most - width)
    return _Records(records.delimiter, records.header, lines, [most] * len(lines), cells)


def _ragged(records: _Records, name: str) -> Iterator[Issue]:
    allowed = _allowed_widths(records.header)
    if set(records.widths) <= set(allowed):
        return
    bad = [(line, width) for line, width in zip(records.lines, records.widths, strict=True) if width not in allowed]
    found = listed([f"line {line} has {width}" for line, width in bad], IDS_LISTED)
    yield Issue(
        "row-shape",
        f"{name}:{bad[0][0]}",
        f"not the header's {allowed[-1]} cells in {len(bad):,} of {len(records.lines):,} rows: {found}",
        "Give every row one cell per column, and quote cells that hold the delimiter",
        bad[0][0],
    )


def _plain_records(text: str, wanted: Sequence[str]) -> _Records:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").split("\n")
    numbers: Sequence[int] = range(1, len(lines) + 1)
    if not all(lines):
        numbers = [number for number, line in zip(numbers, lines, strict=True) if line]
        lines = [line for line in lines if line]
    header, *rows = lines
    delimiter = _delimiter({candidate: header.split(candidate) for candidate in _DELIMITERS}, wanted)
    widths = [row.count(delimiter) + 1 for row in rows]
    cells = delimiter.join(rows).split(delimiter) if rows else []
    return _Records(delimiter, header.split(delimiter), numbers[1:], widths, cells)


def _quoted_records(text: str, wanted: Sequence[str], name: str) -> _Records:
    delimiter = _delimiter({candidate: _first_record(text, candidate) for candidate in _DELIMITERS}, wanted)
    lines, widths, cells = [], [], []
    line = 1
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if row:
                lines.append(line)
                widths.append(len(row))
                cells += row
            line = reader.line_num + 1
    except csv.Error as error:
        message = f"the quotes do not match ({error})"
        raise SourceError(Issue("row-shape", f"{name}:{line}", message, "Close or double the quote", line)) from error
    return _Records(delimiter, cells[: widths[0]], lines[1:], widths[1:], cells[widths[0] :])


def _first_record(text: str, delimiter: str) -> list[str]:
    try:
        return next(filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)))
    except csv.Error:
        return []


def _delimiter(headers: Mapping[str, Sequence[str]], wanted: Sequence[str]) -> str:
    """Choose the delimiter that yields the most wanted columns, then the most columns."""
    names = {name.strip().casefold() for name in wanted}

    def yields(delimiter: str) -> tuple[int, int]:
        header = headers[delimiter]
        return len(names & {head.strip().casefold() for head in header}), len(header)

    return max(headers, key=yields)
