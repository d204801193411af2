"""Canonical forms against independent reimplementations and standard tools."""

from __future__ import annotations

import hashlib
import json
import subprocess
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cxrspec.digest import (
    Table,
    combined_id,
    json_digest,
    json_text,
    number_text,
    seed_hash_order,
    sha256_hex,
    short_id,
)

CELLS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
HEADER = ("item_id", "group_id", "edema")
ROWS = [("b", "2", "0"), ("a", "1", "1"), ("c", "2", "-1"), ("a0", "3", "")]


def by_hand(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> bytes:
    """Write the canonical text as the design says it, character by character."""
    marks = {"\t": "\\t", "\n": "\\n", "\\": "\\\\"}

    def cell(text: str) -> str:
        text = unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n")
        return "".join(marks.get(char, char) for char in text)

    ordered = sorted(rows, key=lambda row: unicodedata.normalize("NFC", row[0]))
    return "".join("\t".join(map(cell, row)) + "\n" for row in (header, *ordered)).encode("utf-8")


def table_of(rows: list[tuple[str, ...]], header: tuple[str, ...] = HEADER) -> Table:
    """Build a table from rows."""
    return Table.sorted(header, [list(column) for column in zip(*rows, strict=True)])


def test_the_text_is_the_one_that_the_design_describes() -> None:
    """Header, one line per item in code-point order, tabs, LF at every end."""
    expected = b"item_id\tgroup_id\tedema\na\t1\t1\na0\t3\t\nb\t2\t0\nc\t2\t-1\n"
    assert expected == table_of(ROWS).text == by_hand(HEADER, ROWS)


def test_escapes() -> None:
    """Tab, line break and backslash inside a value are written as two characters."""
    assert b"item_id\tgroup_id\tedema\na\t\\\\t\tx\\ty\\nz\n" == table_of([("a", "\\t", "x\ty\nz")]).text


def test_a_table_without_rows_is_its_header() -> None:
    """No item leaves one line, which reads back."""
    table = Table.sorted(HEADER, [[], [], []])
    assert b"item_id\tgroup_id\tedema\n" == table.text
    assert table == Table.decode(table.text)


def test_t8_text_is_composed_before_it_is_hashed() -> None:
    """T8, H1: the two ways to write an accent give one digest, also where they change the order."""
    composed, decomposed = [("caf\u00e9", "1", "0"), ("cafz", "2", "1")], [("cafe\u0301", "1", "0"), ("cafz", "2", "1")]
    assert table_of(composed).digest == table_of(decomposed).digest


@pytest.mark.parametrize("line_break", ["\r\n", "\r", "\n"])
def test_t7_line_breaks_inside_cells_are_one(line_break: str) -> None:
    """T7: the line break of a system is no part of the hash."""
    assert table_of([("a", "1", "x\ny")]).digest == table_of([("a", "1", f"x{line_break}y")]).digest


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.dictionaries(CELLS, st.tuples(CELLS, CELLS), max_size=8), st.randoms(use_true_random=False))
def test_any_table_is_written_as_by_hand_and_reads_back(cells: dict[str, tuple[str, str]], random: Any) -> None:
    """H1: any text survives, and the row order changes nothing."""
    unique = {unicodedata.normalize("NFC", key).replace("\r", "\n"): value for key, value in cells.items()}
    rows = [(key, *value) for key, value in unique.items()]
    shuffled = random.sample(rows, len(rows))
    table = Table.sorted(HEADER, [[row[i] for row in shuffled] for i in range(3)])
    assert by_hand(HEADER, rows) == table.text
    assert table == Table.decode(table.text)


def test_the_digest_is_that_of_sha256sum() -> None:
    """A stranger's `sha256sum` of the text gives the digest, and its first 16 digits the id."""
    table = table_of(ROWS)
    printed = subprocess.run(["sha256sum"], input=table.text, capture_output=True, check=True).stdout.split()[0]
    assert printed.decode() == table.digest
    assert printed.decode()[:16] == short_id(table.digest)


def test_sort_gives_the_order_of_the_text() -> None:
    """`LC_ALL=C sort` of the first column is the order of the items, beyond ASCII too."""
    ids = ["z", "a-1", "a_1", "a1", "A", "\u00e9", "\uffee", "\U0001f600", "10", "9"]
    done = subprocess.run(["sort"], input="\n".join(ids).encode(), capture_output=True, check=True, env={"LC_ALL": "C"})
    table = Table.sorted(("item_id",), [ids])
    assert done.stdout.decode().split() == table.item_ids


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"item_id\tx",
        b"item_id\tx\na\n",
        b"item_id\tx\na\t1\n\n",
        b"item_id\tx\nb\t1\na\t1\n",
        b"item_id\tx\na\t1\na\t1\n",
        b"item_id\tx\na\t\\x\n",
        b"item_id\tx\na\t1\\\n",
        b"item_id\tx\na\t\xff\n",
    ],
)
def test_what_is_not_canonical_is_not_read(data: bytes) -> None:
    """No end, ragged rows, another order, repeated ids, unknown escapes, other encodings: refused, never mended."""
    with pytest.raises(ValueError, match=r".+"):
        Table.decode(data)


@pytest.mark.parametrize("columns", [[["a", "a"], ["1", "2"]], [["a"], ["1", "2"]], [["a"]]])
def test_a_table_has_unique_ids_and_even_columns(columns: list[list[str]]) -> None:
    """Repeated ids and columns of unequal length never become a table."""
    with pytest.raises(ValueError, match=r"unique|length"):
        Table.sorted(("item_id", "x"), columns)


def test_ids_that_are_one_after_composition_are_repeated() -> None:
    """Two spellings of one id are two rows of one item."""
    with pytest.raises(ValueError, match="unique"):
        Table.sorted(("item_id",), [["\u00e9", "e\u0301"]])


def test_a_column_is_found_by_its_name() -> None:
    """Cells come in row order."""
    assert ["1", "3", "2", "2"] == table_of(ROWS).column("group_id")


SIMPLE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(st.characters(codec="ascii")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="ascii")), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(SIMPLE)
def test_the_json_digest_is_that_of_sorted_compact_json(value: Any) -> None:
    """For ASCII text and whole numbers RFC 8785 is what the json module writes sorted and without blanks."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert hashlib.sha256(text.encode()).hexdigest() == json_digest(value)


def test_the_json_digest_of_the_rfc_example() -> None:
    """The numbers and the key order (by UTF-16) of RFC 8785's own example."""
    value = {"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew", "1": "One", "\U0001f600": "Emoji"}
    text = '{"\\r":"Carriage Return","1":"One","\u20ac":"Euro Sign","\U0001f600":"Emoji","\ufb33":"Hebrew"}'
    assert sha256_hex(text.encode()) == json_digest(value)
    numbers = [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001]
    assert sha256_hex(b"[333333333.3333333,1e+30,4.5,0.002,1e-27]") == json_digest(numbers)


@pytest.mark.parametrize(
    ("value", "text"),
    [(5.0, "5"), (-0.0, "0"), (0.1 + 0.2, "0.30000000000000004"), (1e21, "1e+21"), (5e-324, "5e-324"), (1e-7, "1e-7")],
)
def test_a_number_is_its_shortest_text(value: float, text: str) -> None:
    """The text that RFC 8785 writes, which reads back as the same double."""
    assert text == number_text(value)
    assert value == float(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_no_number_text_for_what_is_no_number(value: float) -> None:
    """NaN and infinity never reach a file."""
    with pytest.raises(ValueError, match=r".+"):
        number_text(value)


def test_json_text_keeps_lists_of_numbers_in_one_line() -> None:
    """Sorted keys, two blanks, LF at the end; long lists of numbers stay readable."""
    assert b'{\n  "a": [1.0, -2.5e-07],\n  "b": [\n    "x"\n  ]\n}\n' == json_text({"b": ["x"], "a": [1.0, -2.5e-7]})


@pytest.mark.parametrize("text", ["[1,   2]", "[ 1 ]", "see [1,\n 2]", "[  ]", "[12"])
def test_json_text_never_touches_brackets_inside_text(text: str) -> None:
    """A caveat that quotes an interval reads back as it was written."""
    assert {"caveat": [text, text]} == json.loads(json_text({"caveat": [text, text]}))


def test_the_combined_id_is_the_json_digest_of_all_subset_digests() -> None:
    """One id over the subsets, recomputed with the json module."""
    digests = {"train": "b" * 64, "test": "a" * 64}
    text = '{"test":"' + "a" * 64 + '","train":"' + "b" * 64 + '"}'
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == combined_id(digests)


@settings(derandomize=True, deadline=None)
@given(st.integers(0, 2**53 - 1), st.lists(st.text(st.characters(exclude_categories=["Cs"])), unique=True))
def test_ranks_are_the_order_of_seed_and_id_hashed(seed: int, ids: list[str]) -> None:
    """An item's rank is its SHA-256 of `seed:item_id`, and nothing else."""
    expected = sorted(ids, key=lambda one: hashlib.sha256(f"{seed}:{one}".encode()).hexdigest())
    assert expected == [ids[i] for i in seed_hash_order(seed, ids)]


def test_ranks_do_not_depend_on_the_row_order() -> None:
    """The same ids in another order are ranked alike."""
    ids = [f"nih-{i:08d}" for i in range(50)]
    forward, backward = seed_hash_order(7, ids), seed_hash_order(7, ids[::-1])
    assert [ids[i] for i in forward] == [ids[::-1][i] for i in backward]


def test_ranks_are_those_of_sha256sum() -> None:
    """The first of three by hand: `printf 7:b | sha256sum` begins with the smallest digits."""
    ids = ["a", "b", "c"]
    sums = [subprocess.run(["sha256sum"], input=f"7:{i}".encode(), capture_output=True, check=True).stdout for i in ids]
    assert sorted(range(3), key=sums.__getitem__) == seed_hash_order(7, ids)
