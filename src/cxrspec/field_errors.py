"""Own the words for faulty fields: pydantic's errors become `FieldIssue`s that say what is allowed and what to do.

No word of pydantic's own reaches a message: models, validators and tags mean nothing to who writes a definition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from cxrspec.digest import number_text
from cxrspec.errors import did_you_mean, listed
from cxrspec.fields import PATTERNS, FieldIssue, Fields

Path = tuple[str | int, ...]

NAMES_LISTED: Final = 25
"""Enough for all fields of a definition: the one that is meant should be among them."""
_SHOWN_LENGTH: Final = 60

_KINDS: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a number that a computer can hold",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_BOUNDS: Final = {
    "greater_than": ("gt", "numbers above"),
    "greater_than_equal": ("ge", "numbers from"),
    "less_than": ("lt", "numbers below"),
    "less_than_equal": ("le", "numbers up to"),
}


def mapping_at(value: Any, key: Any) -> Mapping[Any, Any]:
    """Return `value[key]` if both are mappings, else an empty mapping: raw documents may hold anything."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def list_at(value: Any, key: Any) -> Sequence[Any]:
    """Return `value[key]` if that is a list in a mapping, else an empty list."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, list) else []


def field_issue(
    model: type[Fields], document: Mapping[str, Any], error: Mapping[str, Any], *, beside: Sequence[type[Fields]] = ()
) -> FieldIssue:
    """Turn one pydantic error of `model.model_validate(document)` into an issue with a path in the document.

    `beside` are models whose fields stand in the same mapping: a definition file is its own fields and its task's.
    """
    path, tags = document_path(document, error["loc"])
    kind, found = error["type"], error.get("input")
    if kind == "missing":
        return FieldIssue(path, "field-missing", "this required field is missing")
    if kind == "extra_forbidden":
        models = (model, *beside) if len(path) == 1 else (model,)
        return unknown_field(path, {name for one in models for name in _field_names(one, path[:-1], tags)})
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _tag_issue(path, kind, error["ctx"])
    if kind in _KINDS:
        hint = _quoting(found) if kind == "string_type" else ""
        return FieldIssue(path, "field-type", f"{shown(found)} is not {_KINDS[kind]}", hint)
    if kind == "short_form":
        return _short_form_issue(path, found, error["ctx"])
    if kind == "literal_error":
        allowed = _allowed_literals(model, path)
        hint = did_you_mean(found, allowed) if isinstance(found, str) else ""
        return FieldIssue(path, "field-value", f"{shown(found)} is not allowed; allowed are {listed(allowed)}", hint)
    message, hint = _value_words(kind, found, error.get("ctx", {}))
    return FieldIssue(path, "field-value", message, hint)


def unknown_field(path: Path, allowed: set[str]) -> FieldIssue:
    """Return the issue of a field that does not exist, with those that do."""
    message = f"unknown field '{path[-1]}'; allowed are {listed(sorted(allowed), NAMES_LISTED)}"
    return FieldIssue(path, "field-unknown", message, did_you_mean(str(path[-1]), sorted(allowed)))


def shown(value: Any) -> str:
    """Return a faulty value as messages show it: text quoted, in one line and cut short; a container in words."""
    if isinstance(value, Mapping):
        return f"a mapping of {listed(list(value), 3)}" if value else "an empty mapping"
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    if value is None:
        return "an empty value"
    text = str(value).lower() if isinstance(value, bool) else " ".join(str(value).split())
    text = text if len(text) <= _SHOWN_LENGTH else f"{text[: _SHOWN_LENGTH - 1]}…"
    return f"'{text}'" if isinstance(value, str) else text


def _quoting(found: Any) -> str:
    return 'Write it in quotes, "..."' if isinstance(found, int | float) else ""


def _short_form_issue(path: Path, found: Any, context: Mapping[str, Any]) -> FieldIssue:
    message = f"{shown(found)} is neither {context['allowed']}"
    hint = did_you_mean(found, context["words"]) if isinstance(found, str) else ""
    return FieldIssue(path, "field-type", message, hint or (_quoting(found) if context["takes_text"] else ""))


def _tag_issue(path: Path, kind: str, context: Mapping[str, Any]) -> FieldIssue:
    field = context["discriminator"].strip("'")
    if kind == "union_tag_not_found":
        return FieldIssue((*path, field), "field-missing", "this required field is missing")
    allowed = sorted(word.strip("'") for word in context["expected_tags"].split(", "))
    message = f"unknown {field} {shown(context['tag'])}; allowed are {listed(allowed)}"
    return FieldIssue((*path, field), "field-value", message, did_you_mean(str(context["tag"]), allowed))


def _value_words(kind: str, found: Any, context: Mapping[str, Any]) -> tuple[str, str]:
    """Return message and hint for a value of the right type that is not allowed."""
    if kind == "string_pattern_mismatch":
        form = PATTERNS.get(context["pattern"], context["pattern"])
        return f"{shown(found)} is not of the allowed form: {form}", ""
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"{shown(found)} is out of range; allowed are {words} {number_text(context[name])}", ""
    if kind in ("string_too_short", "too_short"):
        unit = "character" if isinstance(found, str) else "entry"
        return f"{shown(found)} is too short; at least {context['min_length']} {unit} is needed", ""
    if kind == "string_too_long":
        return f"{shown(found)} has {len(found):,} characters; at most {context['max_length']} are allowed", ""
    if kind == "value_error":
        reason = str(context["error"])
        return (reason if isinstance(found, Mapping) else f"{shown(found)}: {reason}"), ""
    return f"{shown(found)} is not allowed here", ""


def _plain(literal: str) -> str:
    return {"True": "true", "False": "false"}.get(literal, literal.strip("'"))


def document_path(document: Any, location: Sequence[str | int]) -> tuple[Path, set[str]]:
    """Drop from a location what is not in the document: union tags, `[key]`, what short forms are expanded to.

    Returns the path in the document and the dropped words, among them the tags of unions.
    """
    path: list[str | int] = []
    tags: set[str] = set()
    here: Any = document
    for i, step in enumerate(location):
        in_list = isinstance(here, list) and isinstance(step, int) and step < len(here)
        if in_list or (isinstance(here, Mapping) and step in here):
            path.append(step)
            here = here[step]
        elif isinstance(here, Mapping) and i == len(location) - 1 and step != "[key]":
            path.append(step)
        elif isinstance(step, str):
            tags.add(step)
    return tuple(path), tags


def _field_names(model: type[Fields], path: Path, tags: set[str]) -> set[str]:
    """Return the field names that the models at `path` allow; `tags` chooses between the models of a union."""
    found: list[Any] = [model]
    for step in path:
        found = [inner for one in _chosen(found, tags) for inner in _inside(one, step)]
    chosen = _chosen(found, tags)
    # a list that was written as its one mapping has no index in the path
    chosen += _chosen([get_args(one)[0] for one in chosen if get_origin(one) is list], tags)
    return {name for one in chosen if is_fields(one) for name in one.model_fields}


def _chosen(annotations: Sequence[Any], tags: set[str]) -> list[Any]:
    """Take unions apart, and keep the models that a tag names where one does."""
    arms = [arm for one in annotations for arm in union_arms(one)]
    return [arm for arm in arms if tags & _literals(arm)] or arms


def union_arms(annotation: Any) -> Iterator[Any]:
    """Yield what a type may be, without marks: the members of a union, else the type itself."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from union_arms(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for arm in get_args(annotation):
            yield from union_arms(arm)
    else:
        yield annotation


def is_fields(annotation: Any) -> bool:
    """Say whether a type is one of our mappings of fields."""
    return isinstance(annotation, type) and get_origin(annotation) is None and issubclass(annotation, Fields)


def _inside(annotation: Any, step: str | int) -> Iterator[Any]:
    """Yield the types one step below; a name steps through a list that was written as its one mapping."""
    if is_fields(annotation):
        if step in annotation.model_fields:
            yield annotation.model_fields[step].annotation
    elif get_origin(annotation) is dict:
        yield get_args(annotation)[1]
    elif get_origin(annotation) is list:
        if isinstance(step, int):
            yield get_args(annotation)[0]
        else:
            yield from (found for arm in union_arms(get_args(annotation)[0]) for found in _inside(arm, step))


def _literals(model: Any) -> set[str]:
    fields = model.model_fields if is_fields(model) else {}
    named = (fields[name] for name in ("kind", "encoding", "method") if name in fields)
    return {value for field in named for value in get_args(field.annotation)}


def _allowed_literals(model: type[Fields], path: Path) -> list[str]:
    """Return the words that the models at a path allow in its last field: a union says those of all its members."""
    found: list[Any] = [model]
    for step in path[:-1]:
        found = [inner for one in _chosen(found, set()) for inner in _inside(one, step)]
    found = _chosen(found, set())
    found += _chosen([get_args(one)[0] for one in found if get_origin(one) is list], set())
    fields = [one.model_fields[path[-1]] for one in found if is_fields(one) and path[-1] in one.model_fields]
    arms = [arm for field in fields for arm in union_arms(field.annotation) if get_origin(arm) is Literal]
    return list(dict.fromkeys(_plain(str(word)) for arm in arms for word in get_args(arm)))
