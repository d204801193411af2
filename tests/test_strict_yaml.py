"""Strict YAML: YAML 1.2 core scalars, no anchors, tags or repeated keys, a place for every issue."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cxrspec.errors import DefinitionError
from cxrspec.fields import FieldIssue
from cxrspec.strict_yaml import MAX_BYTES, dump_document, field_text, load_document, located


@pytest.fixture
def load(tmp_path: Path) -> Any:
    """Load text or bytes as a file that messages call `x.yaml`."""

    def read(text: str | bytes) -> Any:
        path = tmp_path / "x.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return load_document(path, shown_as="x.yaml")

    return read


def refusals(load: Any, text: str | bytes) -> list[str]:
    """Return every issue of a text as it is printed, whether or not the text could be read."""
    try:
        return [str(issue) for issue in load(text)[2]]
    except DefinitionError as error:
        return [str(issue) for issue in error.issues]


@pytest.mark.parametrize("word", ["yes", "no", "on", "off", "y", "n", "Yes", "NO", "oN", "Y"])
def test_y1_bare_words_are_refused(load: Any, word: str) -> None:
    """Y1: a word that YAML 1.1 makes a truth value must be quoted, and the message says how."""
    expected = f"bare '{word}' is a truth value to some readers and text to others. Write \"{word}\", or true or false"
    assert [f"x.yaml:1:9 answer: {expected}"] == refusals(load, f"answer: {word}")


def test_y1_bare_words_are_refused_as_keys(load: Any) -> None:
    """Y1: a key is no truth value either."""
    assert ["x.yaml:2:3 a: bare 'no' is ambiguous. Write \"no\""] == refusals(load, "a:\n  no: 1")


def test_y1_quoted_words_are_text(load: Any) -> None:
    """Y1: quotes of either kind settle it."""
    assert {"a": "yes", "b": "NO", "n": "y"} == load('a: "yes"\nb: \'NO\'\n"n": "y"')[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 0.0001),
        ("1E+2", 100.0),
        ("-0.5", -0.5),
        ("5.0", 5.0),
        ("1.0e-8", 1e-8),
        ("-0", 0),
        ("0", 0),
        ("12", 12),
    ],
)
def test_y2_numbers_are_those_of_json(load: Any, text: str, value: float) -> None:
    """Y2: the number grammar of JSON, a whole number without point or exponent."""
    found = load(f"tol: {text}")[0]["tol"]
    assert (value, type(value)) == (found, type(found))


@pytest.mark.parametrize(
    "text",
    ["00000001_000", "007", "0o17", "0x1F", "1_000", "12:30:45", "2020-01-01", "+5", ".5", "5.", ".inf", ".nan", "1e"],
)
def test_y3_all_else_is_text(load: Any, text: str) -> None:
    """Y3: octal, underscores, sexagesimals, dates and ids with leading zeros stay the text that they are."""
    assert text == load(f"id: {text}")[0]["id"]


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), ("~", None), ("null", None), ("", None)])
def test_the_words_of_yaml_1_2(load: Any, text: str, value: object) -> None:
    """True, false and null in their spellings of YAML 1.2, and an empty value."""
    assert value is load(f"a: {text}")[0]["a"]


def test_digits_without_end_are_text(load: Any) -> None:
    """A number of thousands of digits is no crash; the field that wants a number refuses the text."""
    assert "1" * 5000 == load(f"seed: {'1' * 5000}")[0]["seed"]


def test_t8_text_and_keys_are_composed(load: Any) -> None:
    """T8: both ways to write an accent are one text."""
    assert {"caf\u00e9": "caf\u00e9"} == load("cafe\u0301: cafe\u0301")[0]


def test_y4_a_repeated_key_names_both_lines(load: Any) -> None:
    """Y4: last wins nowhere."""
    expected = "x.yaml:3:1 seed: the key 'seed' is repeated; it first stands in line 1. Keep one of them"
    assert [expected] == refusals(load, "seed: 1\na: 2\nseed: 2")


@pytest.mark.parametrize("text", ["{a: 1, a: 2}", "a: 1\n'a': 2", '1: x\n"1": z', "e\u0301: 1\n\u00e9: 2"])
def test_y4_keys_are_compared_as_text(load: Any, text: str) -> None:
    """Y4: flow, quoted, numeric and differently composed keys repeat each other too."""
    (found,) = refusals(load, text)
    assert "is repeated" in found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &x 1", "'&x' is an anchor or alias"),
        ("a: *x", "'*x' is an anchor or alias"),
        ("&k a: 1", "merge keys and anchors are not allowed"),
        ("<<: {a: 1}", "merge keys and anchors are not allowed"),
        ("a: [&x {b: 1}]", "'&x' is an anchor or alias"),
    ],
)
def test_y5_anchors_aliases_and_merges_are_refused(load: Any, text: str, words: str) -> None:
    """Y5: nothing overrides quietly, and nothing multiplies."""
    assert any(words in found for found in refusals(load, text))


def test_y5_an_alias_bomb_is_refused_at_once(load: Any) -> None:
    """Y5: an alias is never followed, so nine levels of nine are nine lines."""
    levels = "\n".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 10))
    assert 9 * 9 + 10 == len(refusals(load, f"l0: &l0 lol\n{levels}"))


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("a: !!python/object:os.system x", "!!python/object:os.system"),
        ("a: !x 1", "!x"),
        ("!!str a: 1", "!!str"),
        ("a: ! x", "!"),
    ],
)
def test_y5_tags_are_refused(load: Any, text: str, tag: str) -> None:
    """Y5: on values and on keys; nothing is ever built from a tag."""
    (found,) = refusals(load, text)
    assert f"the tag '{tag}' is not allowed. Remove it" in found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "x.yaml:1:1: the file must hold a mapping of fields"),
        ("- 1", "x.yaml:1:1: the file must hold a mapping of fields"),
        ("a: 1\n---\nb: 2", "x.yaml:2:1: a second document begins here. Keep one to a file"),
        ("? [a]\n: 1", "x.yaml:1:3: a key must be a word. Use a plain or quoted word"),
        ("a: b: c", "x.yaml:1:5: mapping values are not allowed in this context"),
        ("a: x\nb: \u2028y", "x.yaml:2:4: the invisible character U+2028 is not allowed. Remove it"),
        ("a: \x00", "x.yaml:1:4: the invisible character U+0000 is not allowed. Remove it"),
        (b"a: \xff", "x.yaml: is not UTF-8 at byte 3"),
        ("a: " + "[" * 45 + "]" * 45, "x.yaml:1:43: nested more than 40 deep"),
        (b"#" * (MAX_BYTES + 1), "x.yaml: has 1,048,577 bytes; allowed are 1,048,576"),
    ],
)
def test_what_is_no_definition_file(load: Any, text: str | bytes, expected: str) -> None:
    """Text that cannot be read as one mapping says where and why."""
    assert [expected] == refusals(load, text)


def test_a_syntax_error_hides_no_earlier_fault(load: Any) -> None:
    """What was found before the text became unreadable is reported too."""
    assert ["x.yaml:2:1 a", "x.yaml:3:3"] == [found.split(": ")[0] for found in refusals(load, "a: 1\na: 2\n b: 3")]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """A missing file is an issue, not a traceback."""
    with pytest.raises(DefinitionError, match=r"gone\.yaml: cannot be read: No such file"):
        load_document(tmp_path / "gone.yaml", shown_as="gone.yaml")


def test_a_mark_at_the_start_of_the_file_is_left_aside(load: Any) -> None:
    """A UTF-8 mark is no part of the first key."""
    assert {"a": 1} == load(b"\xef\xbb\xbfa: 1")[0]


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_t7_line_breaks_of_any_system(load: Any, line_break: str) -> None:
    """T7: the same values, the same lines."""
    document, places, _ = load(f"a: 1{line_break}b: [x,{line_break}  y]{line_break}")
    assert ({"a": 1, "b": ["x", "y"]}, (3, 3)) == (document, places["b", 1])


def test_every_field_has_a_place(load: Any) -> None:
    """Keys and items are found by line and column, counted from 1."""
    places = load("a:\n  - {b: 1}\n  - c: 2\n")[1]
    assert {(): (1, 1), ("a",): (1, 1), ("a", 0): (2, 5), ("a", 0, "b"): (2, 6)}.items() <= places.items()
    assert (3, 5) == places["a", 1, "c"]


def test_a_missing_field_stands_at_the_nearest_field_above() -> None:
    """A place that the file does not have is that of its parent, with the whole path said."""
    issue = located(FieldIssue(("a", 1, "b", "c"), "field-missing", "gone"), "x.yaml", {(): (1, 1), ("a",): (4, 2)})
    assert ("x.yaml:4:2 a[1].b.c", 4) == (issue.where, issue.line)


def test_a_path_is_written_as_it_is_read() -> None:
    """Names with dots, positions in brackets."""
    assert "metrics[1].kind" == field_text(("metrics", 1, "kind"))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        ["yes", "No", "1e-4", "007", "0x1F", "12:30", "2020-01-01", "~", "", "<<", "=", "5.", "null", "- a"]
    )
    | st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=12).map(
        lambda text: unicodedata.normalize("NFC", text)
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.dictionaries(st.sampled_from(["a", "yes", "n", "1", "on"]), VALUES, max_size=3))
def test_what_is_written_reads_back(tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any]) -> None:
    """No text changes its kind on the way through a file."""
    path = tmp_path_factory.getbasetemp() / "written.yaml"
    path.write_bytes(dump_document(document))
    found, _, refused = load_document(path, shown_as="written.yaml")
    assert (document, []) == (found, refused)


def test_y5_a_value_that_stands_in_two_places_is_written_twice(load: Any) -> None:
    """Y5: what is written holds no anchor, which would be refused."""
    shared = {"level": 0.95}
    assert {"a": shared, "b": [shared]} == load(dump_document({"a": shared, "b": [shared]}))[0]
    assert [] == refusals(load, dump_document({"a": shared, "b": [shared]}))
