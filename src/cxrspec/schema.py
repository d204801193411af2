"""Own the JSON Schema of definition files, by which editors complete and check them; `validate` checks more.

It is derived from the models alone: a new field or task is in it without an edit here.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any, Final

from cxrspec.definition import Definition
from cxrspec.fields import Fields
from cxrspec.tasks import TASKS, Task

SCHEMA_PATH: Final = "specs/definition.schema.json"
"""Where a project keeps the schema that its definitions name."""
SCHEMA_LINE: Final = "# yaml-language-server: $schema=../definition.schema.json"
"""The comment by which a definition names it; a comment is in no digest."""


def definition_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 7) of a definition: one flat mapping per task, told apart by `task`."""
    definitions: dict[str, Any] = {}
    common = _model_schema(Definition, definitions)
    del common["properties"]["task"], definitions["Task"]
    for name, task in TASKS.items():
        definitions[task.__name__] = _flat(common, _model_schema(task, definitions), name)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A definition of cxrspec",
        "type": "object",
        "properties": {"task": {"enum": sorted(TASKS)}},
        "required": ["task"],
        "allOf": [_where(name, task) for name, task in TASKS.items()],
        "$defs": dict(sorted(definitions.items())),
    }


def _model_schema(model: type[Fields], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of one model; the models inside it go to the definitions."""
    schema: dict[str, Any] = _plain(model.model_json_schema())
    definitions |= schema.pop("$defs", {})
    models = {one.__name__: one for one in _subclasses(Fields)}
    for name, one in ((model.__name__, schema), *definitions.items()):
        for field, text in _field_docstrings(models[name]).items() if name in models else ():
            if field in one.get("properties", {}):
                one["properties"][field]["description"] = text
    return schema


def _subclasses(model: type[Fields]) -> Iterator[type[Fields]]:
    for one in model.__subclasses__():
        yield one
        yield from _subclasses(one)


@cache
def _field_docstrings(model: type[Fields]) -> dict[str, str]:
    """Return the text that stands under each field of a model and of its bases."""
    found: dict[str, str] = {}
    for one in reversed([base for base in model.__mro__ if issubclass(base, Fields)]):
        body = ast.parse(textwrap.dedent(inspect.getsource(one))).body[0].body  # type: ignore[attr-defined]
        for field, below in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(field.target, ast.Name):
                text = ast.literal_eval(below.value) if isinstance(below.value, ast.Constant) else ""
                found[field.target.id] = " ".join(str(text).split())
    return found


def _flat(common: dict[str, Any], own: dict[str, Any], name: str) -> dict[str, Any]:
    """Put the fields of a task beside those of every definition."""
    return {
        "description": own["description"],
        "type": "object",
        "properties": {**common["properties"], "task": {"const": name}, **own["properties"]},
        "required": [*(field for field in common["required"] if field != "task"), "task", *own["required"]],
        "additionalProperties": False,
    }


def _where(name: str, task: type[Task]) -> dict[str, Any]:
    said = {"properties": {"task": {"const": name}}, "required": ["task"]}
    return {"if": said, "then": {"$ref": f"#/$defs/{task.__name__}"}}


def _plain(schema: Any) -> Any:
    """Leave out what says nothing (titles made of names, null as default), and close what pydantic leaves open."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _plain(value) for key, value in schema.items() if not _is_noise(key, value)}
    if "patternProperties" in found:
        found["additionalProperties"] = False  # a key that fits no pattern is wrong
    if "oneOf" in found:
        found["anyOf"] = found.pop("oneOf")  # `{value: 3}` is both a count and counts by name, and that is fine
    return found


def _is_noise(key: str, value: Any) -> bool:
    return (key == "title" and isinstance(value, str)) or key == "discriminator" or (key == "default" and value is None)
