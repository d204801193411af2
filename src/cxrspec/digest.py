"""Own the canonical forms and their SHA-256: JSON by RFC 8785, tables as sorted tab-separated text.

A stranger can recompute every digest with standard tools. Nothing here opens a file.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from operator import itemgetter, lt
from typing import Any, Final

ID_LENGTH = 16
"""A subset id (and a printed definition id) is the first 16 hex digits of the SHA-256."""

_NUMBER_LIST: Final = re.compile(r"\[\n([-+0-9.eE,\s]+)\]")
"""A line break inside JSON text is always between values, so brackets in a string are left alone."""

_PLAIN: Final = {"t": "\t", "n": "\n", "\\": "\\"}
_ESCAPE: Final = re.compile(r"\\([tn\\])")
_BAD_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\(?![tn\\])")


def sha256_hex(data: bytes) -> str:
    """Return the lower-case hex SHA-256 of `data`."""
    return hashlib.sha256(data).hexdigest()


def short_id(digest: str) -> str:
    """Return the first 16 hex digits of a digest, the form that is printed and quoted."""
    return digest[:ID_LENGTH]


def json_digest(value: Any) -> str:
    """Return the SHA-256 of the RFC 8785 canonical JSON of `value`."""
    import rfc8785

    return sha256_hex(rfc8785.dumps(value))


def json_text(value: Any) -> bytes:
    """Return the JSON form of files that live in git: sorted keys, two spaces, LF, lists of numbers in one line."""
    text = json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return (_NUMBER_LIST.sub(lambda found: f"[{' '.join(found[1].split())}]", text) + "\n").encode()


def number_text(value: float) -> str:
    """Return the shortest text that reads back as the same double, as RFC 8785 writes numbers (5.0 is `5`).

    Raises:
        ValueError: for NaN and infinity, which have no such form.
    """
    import rfc8785

    return rfc8785.dumps(float(value)).decode()


def seed_hash_order(seed: int, item_ids: Sequence[str]) -> list[int]:
    """Return the positions of the items ranked by SHA-256 of `"<seed>:<item_id>"`, smallest first.

    The rank of an item depends on nothing but the seed and its own id, so any row order gives the same ranking.
    """
    digests = [hashlib.sha256(f"{seed}:{item_id}".encode()).digest() for item_id in item_ids]
    return sorted(range(len(digests)), key=digests.__getitem__)


def combined_id(subset_digests: Mapping[str, str]) -> str:
    """Return one id over all subsets, for publications that quote a single one: the JSON digest of {name: sha256}."""
    return short_id(json_digest(dict(subset_digests)))


@dataclass(frozen=True)
class Table:
    """A frozen table by columns: every cell is NFC text, rows are sorted by the first column in code-point order."""

    header: tuple[str, ...]
    columns: tuple[list[str], ...]
    """One list per header name, all of the same length; the first is `item_id`, without duplicates."""

    @classmethod
    def sorted(cls, header: Sequence[str], columns: Sequence[Iterable[str]]) -> Table:
        """Build the table from columns in any row order.

        Raises:
            ValueError: if the first column holds one value twice, or the columns differ in length.
        """
        cells = [_normalized(list(column)) for column in columns]
        if len({len(column) for column in cells}) > 1 or len(cells) != len(header):
            raise ValueError("the columns of a table must be as many as its header and of equal length")
        if not _ascends(cells[0]):
            # itemgetter gathers a column in one call; out of order means two rows at least, so it returns tuples
            gather = itemgetter(*sorted(range(len(cells[0])), key=cells[0].__getitem__))
            cells = [list(gather(column)) for column in cells]
            if not _ascends(cells[0]):
                raise ValueError("item ids of a table must be unique")
        return cls(tuple(header), tuple(cells))

    @classmethod
    def decode(cls, data: bytes) -> Table:
        """Read the canonical text back.

        Raises:
            ValueError: if the bytes are not the canonical text of a table.
        """
        table = cls.parse(data)
        if not _ascends(table.item_ids):
            raise ValueError("the rows of the table are not in the order of their ids, each once")
        return table

    @classmethod
    def parse(cls, data: bytes) -> Table:
        """Read text of this form back, whatever the order of its rows; raises ValueError as `decode` does."""
        text = data.decode("utf-8")
        if not text.endswith("\n"):
            raise ValueError("the text of a table ends with a line feed")
        head, _, body = text[:-1].partition("\n")
        header = tuple(head.split("\t"))
        n_tabs = {line.count("\t") for line in body.split("\n")} if "\n" in text[:-1] else set()
        if n_tabs - {len(header) - 1}:
            raise ValueError("a row of the table has another number of cells than its header")
        cells = body.replace("\n", "\t").split("\t") if n_tabs else []
        if "\\" in text:
            cells = [_unescape(cell) for cell in cells]
        return cls(header, tuple(cells[i :: len(header)] for i in range(len(header))))

    @cached_property
    def text(self) -> bytes:
        """The canonical text: UTF-8, LF, header line, tab-separated; tab, line break and backslash escaped."""
        text = _joined(self.header, self.columns)
        n_cells = len(self.header) * (len(self) + 1)
        # almost no table needs escaping, and one that does has more marks than cells
        if "\\" in text or text.count("\t") + text.count("\n") != n_cells:
            text = _joined(self.header, [list(map(_escaped, column)) for column in self.columns])
        return text.encode("utf-8")

    @cached_property
    def digest(self) -> str:
        """SHA-256 of `text`; for a subset table its first 16 hex digits are the subset id."""
        return sha256_hex(self.text)

    @property
    def item_ids(self) -> list[str]:
        """The item ids, in code-point order."""
        return self.columns[0]

    def column(self, name: str) -> list[str]:
        """Return the cells of one column, in row order; raises ValueError for a name that is not in the header."""
        return self.columns[self.header.index(name)]

    def __len__(self) -> int:
        return len(self.columns[0])


def _normalized(cells: list[str]) -> list[str]:
    # one look at the joined text: almost every column is plain
    joined = "".join(cells)
    if joined.isascii() and "\r" not in joined:
        return cells
    return [unicodedata.normalize("NFC", cell).replace("\r\n", "\n").replace("\r", "\n") for cell in cells]


def _ascends(ids: list[str]) -> bool:
    """Say whether every id is greater than the one before it."""
    return all(map(lt, ids, islice(ids, 1, None)))


def _joined(header: Sequence[str], columns: Sequence[list[str]]) -> str:
    lines = map("\t".join, zip(*columns, strict=True))
    return "\n".join(["\t".join(header), *lines, ""])


def _escaped(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def _unescape(cell: str) -> str:
    if _BAD_ESCAPE.search(cell):
        raise ValueError("a backslash in a table is followed by t, n or a backslash")
    return _ESCAPE.sub(lambda found: _PLAIN[found[1]], cell) if "\\" in cell else cell
