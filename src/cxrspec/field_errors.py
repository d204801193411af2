"""Own the words for faulty fields: pydantic's errors become `FieldIssue`s that say what is allowed and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, get_args

from cxrspec.errors import did_you_mean, listed
from cxrspec.fields import PATTERNS, FieldIssue, Fields

Path = tuple[str | int, ...]

_KINDS: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def mapping_at(value: Any, key: Any) -> Mapping[Any, Any]:
    """Return `value[key]` if both are mappings, else an empty mapping: raw documents may hold anything."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def list_at(value: Any, key: Any) -> Sequence[Any]:
    """Return `value[key]` if that is a list in a mapping, else an empty list."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, list) else []


def field_issue(model: type[Fields], document: Mapping[str, Any], error: Mapping[str, Any]) -> FieldIssue:
    """Turn one pydantic error of `model.model_validate(document)` into an issue with a path in the document."""
    path, tags = _document_path(document, error["loc"])
    kind, context, found = error["type"], error.get("ctx", {}), error.get("input")
    if kind == "missing":
        return FieldIssue(path, "field-missing", "this required field is missing")
    if kind == "extra_forbidden":
        allowed = sorted(_field_names(model, path[:-1], tags))
        message = f"unknown field '{path[-1]}'; allowed are {listed(allowed, 25)}"
        return FieldIssue(path, "field-unknown", message, did_you_mean(str(path[-1]), allowed))
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _tag_issue(path, kind, context)
    if kind == "literal_error":
        allowed = [word.strip("'") for word in context["expected"].replace(" or ", ", ").split(", ")]
        hint = did_you_mean(found, allowed) if isinstance(found, str) else ""
        return FieldIssue(path, "field-value", f"{_shown(found)} is not allowed; allowed are {listed(allowed)}", hint)
    if kind in _KINDS:
        hint = 'Write it in quotes, "..."' if kind == "string_type" and isinstance(found, int | float) else ""
        return FieldIssue(path, "field-type", f"{_shown(found)} is not {_KINDS[kind]}", hint)
    if kind == "string_pattern_mismatch":
        message = f"{_shown(found)} is not of the allowed form: {PATTERNS.get(context['pattern'], context['pattern'])}"
        return FieldIssue(path, "field-value", message)
    reason = str(context["error"]) if kind == "value_error" else error["msg"][:1].lower() + error["msg"][1:]
    return FieldIssue(path, "field-value", f"{_shown(found)}: {reason}")


def _tag_issue(path: Path, kind: str, context: Mapping[str, Any]) -> FieldIssue:
    field = context["discriminator"].strip("'")
    if kind == "union_tag_not_found":
        return FieldIssue((*path, field), "field-missing", f"this required field is missing: {field}")
    allowed = sorted(word.strip("'") for word in context["expected_tags"].split(", "))
    message = f"unknown {field} '{context['tag']}'; allowed are {listed(allowed)}"
    return FieldIssue((*path, field), "field-value", message, did_you_mean(str(context["tag"]), allowed))


def _document_path(document: Any, location: Sequence[str | int]) -> tuple[Path, set[str]]:
    """Drop from pydantic's location what is not in the document: union tags, `[key]`, fields made from short forms."""
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
    models: list[type[Fields]] = [model]
    for step in path:
        inner = [
            found
            for one in models
            if step in one.model_fields
            for found in _models_in(one.model_fields[str(step)].annotation)
        ]
        models = inner or models  # a key or an index inside a dict or list leaves the models as they are
    tagged = [one for one in models if tags & _literals(one)]
    return {name for one in tagged or models for name in one.model_fields}


def _models_in(annotation: Any) -> Iterator[type[Fields]]:
    if isinstance(annotation, type) and issubclass(annotation, Fields):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _literals(model: type[Fields]) -> set[str]:
    return {
        value
        for name in ("kind", "encoding")
        if name in model.model_fields
        for value in get_args(model.model_fields[name].annotation)
    }


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"a mapping of {listed(list(value), 3)}" if value else "an empty mapping"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if value is None:
        return "an empty value"
    return f"'{value}'" if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
