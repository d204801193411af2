"""Constrained types, short forms, the split of fields, and the words of every message about a faulty field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import pytest
from pydantic import TypeAdapter, ValidationError

from cxrspec.definition import Definition, parse_definition
from cxrspec.field_errors import document_path, field_issue, is_fields, shown, union_arms
from cxrspec.fields import PATTERNS, Column, ColumnRef, Fields, Seed
from cxrspec.reference import Reference
from cxrspec.reported import Reported
from cxrspec.submission import Submission
from cxrspec.tasks import TASKS

JUNK: list[Any] = [
    None, True, 0, -1, 2**53, 10**400, 1.5, 1e999, "", "x", "é" * 100, "a\nb", [], [None], [5], [[]], {}, {"x": None}
]  # fmt: skip
JARGON = re.compile(
    r"pydantic|validat|\binput\b|\bInput\b|should|\bdict\b|dictionary|\bstr\b|string|\bint\b|integer|\bbool|"
    r"instance|literal|\bmodel\b|None|True|False|\bregex\b"
)


def walk_models(annotation: Any) -> Iterator[type[Fields]]:
    """Yield every mapping of fields that a type holds, itself included."""
    for arm in union_arms(annotation):
        if is_fields(arm):
            yield arm
            for field in arm.model_fields.values():
                yield from walk_models(field.annotation)
        elif get_origin(arm) in (dict, list):
            for part in get_args(arm):
                yield from walk_models(part)


MODELS = sorted({m for top in (Definition, Submission, Reported, *TASKS.values()) for m in walk_models(top)}, key=str)


def messages(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (code, message) of every issue of a definition."""
    return [(issue.code, issue.message) for issue in parse_definition(document)[1]]


def message_at(document: dict[str, Any], *path: str | int) -> str:
    """Return message and hint of the one issue at a path."""
    (issue,) = [issue for issue in parse_definition(document)[1] if issue.path == path]
    return f"{issue.message} {issue.hint}".rstrip()


def test_a_column_may_be_written_by_its_name_alone() -> None:
    """A text is the column of the items source."""
    assert Column(column="View") == TypeAdapter(ColumnRef).validate_python("View")


def test_a_text_that_is_no_short_form_is_told_the_short_form_too(tiny_document: dict[str, Any]) -> None:
    """`select: al` names `all` and the mapping, and guesses."""
    tiny_document["subsets"]["test"]["select"] = "al"
    expected = "'al' is neither 'all' nor a mapping of where, in_list, stratified or per_condition Did you mean 'all'?"
    assert expected == message_at(tiny_document, "subsets", "test", "select")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (("items", "covariates", "age"), "neither the name of a column nor a mapping of source and column"),
        (("sources", "tiny", "files", "labels"), "neither a path nor a mapping of path and sha256"),
        (("splits", "test", "in_list"), "neither a source nor a mapping of source and column"),
        (("splits", "test", "where"), "neither a condition nor a list of conditions"),
        (("metrics", 0, "interval"), "neither an interval nor a list of intervals"),
        (
            ("expect", "test", "items"),
            "neither a whole number nor a mapping of value and within, of any_of, or of stated",
        ),
    ],
)
def test_every_field_with_a_short_form_names_both_forms(
    tiny_document: dict[str, Any], path: tuple[Any, ...], words: str
) -> None:
    """A value of another kind is told what both forms look like, whichever field it is."""
    here: Any = tiny_document
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = True
    assert words in message_at(tiny_document, *path)


def test_a_number_in_place_of_a_text_is_told_to_be_quoted(tiny_document: dict[str, Any]) -> None:
    """`one_of: 1` may be meant as text."""
    tiny_document["splits"]["test"] = {"where": {"column": "Set", "one_of": 1}}
    found = message_at(tiny_document, "splits", "test", "where", "one_of")
    assert '1 is neither a text nor a list of texts Write it in quotes, "..."' == found


def test_an_unknown_field_of_the_file_lists_the_fields_of_definition_and_task(tiny_document: dict[str, Any]) -> None:
    """Both kinds stand in one mapping, so both are allowed there."""
    tiny_document["subset"] = {}
    found = message_at(tiny_document, "subset")
    assert all(word in found for word in ("benchmark", "expect", "findings", "metrics", "Did you mean 'subsets'?"))


def test_an_unknown_field_inside_a_union_lists_the_chosen_model_only(tiny_document: dict[str, Any]) -> None:
    """A `file` source is told the fields of a `file` source."""
    tiny_document["sources"]["tiny"]["revision"] = "main"
    expected = "unknown field 'revision'; allowed are attribution, doi, files, kind, licence, namesakes, redistribute"
    assert expected == message_at(tiny_document, "sources", "tiny", "revision")


def test_an_unknown_field_below_a_source_called_like_a_field(tiny_document: dict[str, Any]) -> None:
    """A source that is called `files` hides no field names."""
    tiny_document["sources"]["files"] = {**tiny_document["sources"]["tiny"], "pin": 1}
    found = message_at(tiny_document, "sources", "files", "pin")
    assert found == "unknown field 'pin'; allowed are attribution, doi, files, kind, licence, namesakes, redistribute"


def test_an_unknown_field_in_a_condition_that_stands_alone(tiny_document: dict[str, Any]) -> None:
    """A list that is written as its one mapping has no index in the path, and its fields are named all the same."""
    tiny_document["splits"]["test"] = {"where": {"colum": "Set", "one_of": "test"}}
    expected = "unknown field 'colum'; allowed are column, one_of Did you mean 'column'?"
    assert expected == message_at(tiny_document, "splits", "test", "where", "colum")


def test_an_unknown_kind_of_source_lists_the_kinds(tiny_document: dict[str, Any]) -> None:
    """The four kinds are named, and the closest is guessed."""
    tiny_document["sources"]["tiny"]["kind"] = "wheels"
    expected = "unknown kind 'wheels'; allowed are file, hf_dataset, url, wheel Did you mean 'wheel'?"
    assert expected == message_at(tiny_document, "sources", "tiny", "kind")


@pytest.mark.parametrize("revision", ["main", "v1.0", "932bcdb", "932BCDBA9D7D9590704D4F20BC70FC2C3A1BBAD7"])
def test_f3_a_revision_is_a_full_commit_id(tiny_document: dict[str, Any], revision: str) -> None:
    """F3: a branch, a tag and a short commit id are refused with what to do."""
    hub = {"kind": "hf_dataset", "repository": "a/b", "revision": revision, "files": {"x": "x.csv"}}
    tiny_document["sources"]["hub"] = {**hub, "licence": "CC0", "attribution": "nobody"}
    assert "a branch or tag can move, so resolve and pin it" in message_at(tiny_document, "sources", "hub", "revision")


@pytest.mark.parametrize("pattern", ["([", "no-group", "(a)(b)"])
def test_a_pattern_without_exactly_one_group_is_refused(tiny_document: dict[str, Any], pattern: str) -> None:
    """A pattern that cannot be compiled, or that yields no one group id, never reaches the data."""
    tiny_document["items"]["group_id"] = {"pattern": pattern}
    assert f"'{pattern}'" in message_at(tiny_document, "items", "group_id")


@pytest.mark.parametrize("field", ["max_iter", "folds"])
def test_a_number_beyond_json_is_refused(tiny_document: dict[str, Any], field: str) -> None:
    """A number that RFC 8785 cannot write is a faulty field, not a crash when the digest is made."""
    tiny_document["protocols"]["probe"][field] = 2**53
    assert "out of range" in message_at(tiny_document, "protocols", "probe", field)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_no_message_holds_jargon(model: type[Fields]) -> None:
    """Whatever stands in whatever field, the message speaks of texts, numbers, lists and mappings."""
    for name, field in model.model_fields.items():
        for junk in (value for value in JUNK if name != "task"):
            document = {name: junk}
            try:
                model.model_validate(document)
            except ValidationError as error:
                for detail in error.errors(include_url=False):
                    issue = field_issue(model, document, detail)
                    assert not JARGON.search(issue.message.replace(name, "")), (field, junk, issue)


def test_every_pattern_of_a_field_is_said_in_words() -> None:
    """No regular expression is printed where words exist."""
    patterns = set()
    for model in MODELS:
        for field in model.model_fields.values():
            patterns |= set(re.findall(r"pattern='(.*?)'", repr(field).replace("\\\\", "\\")))
    assert set() == patterns - set(PATTERNS)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\nb", "'a b'"),
        ("x" * 100, f"'{'x' * 59}…'"),
        (True, "true"),
        (None, "an empty value"),
        ({"a": 1}, "a mapping of a"),
        ([], "an empty list"),
    ],
)
def test_a_value_is_shown_short_and_in_one_line(value: Any, text: str) -> None:
    """Long text is cut, and containers are named, not printed."""
    assert text == shown(value)


def test_a_path_drops_what_the_document_does_not_hold() -> None:
    """Tags of unions and steps of expanded short forms are no places in a file."""
    document = {"sources": {"nih": {"files": {"labels": "x.csv"}}}}
    location = ("sources", "nih", "wheel", "files", "labels", "path")
    assert (("sources", "nih", "files", "labels"), {"wheel", "path"}) == document_path(document, location)


@pytest.mark.parametrize("seed", [0, 2**53 - 1])
def test_a_seed_is_a_whole_number(seed: int) -> None:
    """Zero and the largest number that every JSON reader holds are seeds."""
    assert seed == TypeAdapter(Seed).validate_python(seed, strict=True)


@pytest.mark.parametrize("seed", [-1, 2**53, 1.0, "1", True])
def test_a_seed_is_nothing_else(seed: Any) -> None:
    """RFC 8785 numbers are doubles, so a seed stays below 2**53; nothing is converted."""
    with pytest.raises(ValidationError):
        TypeAdapter(Seed).validate_python(seed, strict=True)


def test_the_halves_of_a_definition_never_overlap(tiny_document: dict[str, Any]) -> None:
    """A field is score-relevant or descriptive, never both."""
    definition, _ = parse_definition(tiny_document)
    assert definition is not None
    halves = [set(_leaves(half)) for half in (definition.score_relevant(), definition.descriptive())]
    assert set() == halves[0] & halves[1]


def _leaves(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict | list) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in pairs:
            yield from _leaves(item, f"{path}.{key}")
    else:
        yield path


def test_a_reference_round_trips() -> None:
    """What is printed is read back."""
    for text in ("a-b@v1.2", "a@v:test", "a@v/sys_1.0"):
        assert text == str(Reference.parse(text))
