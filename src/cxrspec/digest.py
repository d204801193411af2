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
from itertools import pairwise
from typing import Any, Final

ID_LENGTH = 16
"""A subset id (and a printed definition id) is the first 16 hex digits of the SHA-256."""

_NUMBER_LIST: Final = re.compile(r"\[([-+0-9.eE,\s]+)\]")


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
    start = hashlib.sha256(f"{seed}:".encode())
    digests = []
    for item_id in item_ids:
        one = start.copy()
        one.update(item_id.encode())
        digests.append(one.digest())
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
        ids = cells[0]
        order = sorted(range(len(ids)), key=ids.__getitem__)
        if any(ids[a] == ids[b] for a, b in pairwise(order)):
            raise ValueError("item ids of a table must be unique")
        return cls(tuple(header), tuple([column[i] for i in order] for column in cells))

    @classmethod
    def decode(cls, data: bytes) -> Table:
        """Read the canonical text back.

        Raises:
            ValueError: if the bytes are not the canonical text of a table.
        """
        lines = data.decode("utf-8").split("\n")
        if lines.pop() != "":
            raise ValueError("the text of a table ends with a line feed")
        header = tuple(lines[0].split("\t"))
        rows = [line.split("\t") for line in lines[1:]]
        if any(len(row) != len(header) for row in rows):
            raise ValueError("a row of the table has another number of cells than its header")
        columns: list[list[str]] = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in header]
        if b"\\" in data:
            columns = [[_unescape(cell) for cell in column] for column in columns]
        return cls(header, tuple(columns))

    @cached_property
    def text(self) -> bytes:
        """The canonical text: UTF-8, LF, header line, tab-separated; tab, line break and backslash escaped."""
        columns = [_escaped(column) for column in self.columns]
        tails: dict[tuple[str, ...], str] = {}
        lines = ["\t".join(self.header)]
        # label rows repeat (836 kinds in 112,120 images), so the text of each kind is built once
        for key, *rest in zip(*columns, strict=True):
            tail = tuple(rest[1:])
            text = tails.get(tail)
            if text is None:
                text = tails[tail] = "".join(f"\t{cell}" for cell in tail)
            lines.append(f"{key}\t{rest[0]}{text}" if rest else key)
        return ("\n".join(lines) + "\n").encode("utf-8")

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
    if all(map(str.isascii, cells)) and not any("\r" in cell for cell in cells):
        return cells
    return [unicodedata.normalize("NFC", cell).replace("\r\n", "\n").replace("\r", "\n") for cell in cells]


def _escaped(cells: list[str]) -> list[str]:
    # one search of the joined text: almost no column needs escaping
    joined = "".join(cells)
    if not any(mark in joined for mark in "\\\t\n"):
        return cells
    return [cell.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n") for cell in cells]


def _unescape(cell: str) -> str:
    if "\\" not in cell:
        return cell
    plain = {"t": "\t", "n": "\n", "\\": "\\"}
    pieces = iter(cell)
    return "".join(plain[next(pieces)] if char == "\\" else char for char in pieces)
