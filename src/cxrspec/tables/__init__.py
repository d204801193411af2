"""Own the reading of named columns out of one table file; the same reader serves sources and predictions.

Columns are found by name, never by position, and all that is wrong with a file is reported at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final
from unicodedata import normalize

from cxrspec.errors import Issue, SourceError, listed
from cxrspec.tables.containers import MAX_BYTES, open_bytes
from cxrspec.tables.sheets import PARQUET_MAGIC, Sheet, open_sheet, to_text

__all__ = ["MAX_BYTES", "Table", "open_bytes", "read_lines", "read_table", "to_text"]

_NO_TABLE: Final = "source-not-data"
_LIST: Final = "Write a text file with one entry a line"


@dataclass(frozen=True, slots=True)
class Table:
    """The requested columns of one file as text cells, under the names that were asked for."""

    name: str
    columns: dict[str, list[str]]
    lines: Sequence[int]

    def line_of(self, row: int) -> int:
        """Return the 1-based line that a row (counted from 0) starts on; in a Parquet file, its 1-based number."""
        return self.lines[row]


def read_table(
    source: Path | bytes | BinaryIO,
    *,
    name: str,
    columns: Sequence[str] | None = None,
    literal: bool = False,
    limit: int = MAX_BYTES,
) -> Table:
    """Read the named columns, or all that have a name, of a delimited text or Parquet file, packed or not.

    Args:
        source: A path, the whole file, or an open file (of Parquet only the named columns are read).
        name: How messages call the file.
        columns: Names to look up: exactly first, then trimmed and caseless. `image.path` names a field of a struct.
        literal: Quote characters stand for themselves and never enclose a cell.
        limit: Largest number of bytes, once unpacked.

    Raises:
        SourceError: All that is wrong with the file: container, encoding, ragged rows, missing or ambiguous columns.
    """
    sheet = open_sheet(source, name=name, wanted=columns or (), literal=literal, limit=limit)
    wanted = dict.fromkeys(sheet.heads.values() if columns is None else columns)
    found = {column: _positions(sheet.heads, column) for column in wanted}
    issues = [*sheet.issues, *sheet.stray(), *_lookup_issues(sheet, found)]
    if issues:
        raise SourceError(issues)
    cells = sheet.cells([positions[0] for positions in found.values()])
    if literal and (issues := list(_enclosed_issues(sheet, dict(zip(found, cells, strict=True))))):
        raise SourceError(issues)
    return Table(name, dict(zip(found, cells, strict=True)), sheet.lines)


def read_lines(data: bytes, *, name: str, limit: int = MAX_BYTES) -> list[str]:
    """Read a list of one entry a line, packed or not; blank lines count for nothing.

    Raises:
        SourceError: the container or the encoding is refused.
    """
    try:
        data = open_bytes(data, name, limit)
    except SourceError as error:
        raise SourceError(
            [replace(one, hint=_LIST) if one.code == _NO_TABLE else one for one in error.issues]
        ) from None
    if data.startswith(PARQUET_MAGIC):
        raise SourceError(Issue(_NO_TABLE, name, "the file is a Parquet table, not a list", _LIST))
    text = to_text(data, name)
    return [line.strip() for line in text.splitlines() if line.strip()]


def _positions(heads: Mapping[int, str], wanted: str) -> list[int]:
    wanted = normalize("NFC", wanted)
    composed = {position: normalize("NFC", head) for position, head in heads.items()}
    exact = [position for position, head in composed.items() if head == wanted]
    plain = wanted.strip().casefold()
    return exact or [position for position, head in composed.items() if head.strip().casefold() == plain]


def _enclosed_issues(sheet: Sheet, columns: Mapping[str, Sequence[str]]) -> Iterator[Issue]:
    """Refuse cells with doubled quotes inside quotes: whoever wrote the file meant them to enclose cells."""
    for column, cells in columns.items():
        rows = [row for row, cell in enumerate(cells) if len(cell) > 3 and cell[0] == cell[-1] == '"' and '""' in cell]
        if rows:
            line = sheet.lines[rows[0]]
            message = f"quotes seem to enclose {len(rows):,} cells, in which others are doubled; here they are plain"
            hint = "Leave out 'quotes: plain' where the definition names the file"
            yield Issue("row-shape", f"{sheet.name}:{line} column '{column}'", message, hint, line)


def _lookup_issues(sheet: Sheet, found: Mapping[str, Sequence[int]]) -> Iterator[Issue]:
    for column, positions in found.items():
        if not positions:
            yield sheet.missing(column)
        elif len(positions) > 1:
            heads = listed([f"'{sheet.heads[position]}' (column {position + 1})" for position in positions])
            message = f"{len(positions)} columns fit '{column}': {heads}"
            yield Issue("column-ambiguous", sheet.name, message, "Keep one of them")
