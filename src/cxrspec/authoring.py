"""Own the start of a definition: the next version as the last file with three fields set, or a template to fill in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from typing import Final

from cxrspec.errors import DefinitionError, Issue, did_you_mean, listed
from cxrspec.files import write_whole
from cxrspec.loader import load_definition
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.schema import SCHEMA_LINE
from cxrspec.strict_yaml import dump_document
from cxrspec.tasks import TASKS

MAX_NAME: Final = 64
_CONTINUED: Final = r"(?:[ \t]+\S.*\n?|[ \t]*\n(?=(?:[ \t]*\n)*[ \t]+\S))*"
"""The lines that continue a field: indented ones, and blank ones between those."""


def start_version(reference: Reference, version: str, registry: Registry, *, change: str | None = None) -> Reference:
    """Write the next definition version from an existing one and return its reference.

    Comments, order and layout stay; `definition_version`, `supersedes` and `change` are set. No source is opened.

    Raises:
        DefinitionError: if the old file is faulty, or the new version exists or is no version.
    """
    path = registry.spec_path(reference)
    definition = load_definition(path, shown_as=registry.name(path))
    new = _named(reference.benchmark, version)
    said = change or f"What differs from {reference.version}, in one sentence."
    fields = {"definition_version": new.version, "supersedes": reference.version, "change": said}
    text = _with_fields(path.read_text(encoding="utf-8-sig"), fields)
    if "yaml-language-server:" not in text:
        text = f"{SCHEMA_LINE}\n{text}"
    with registry.writing():
        _write_absent(registry, new, text)
        _refuse_difference(registry, new, digest=definition.digest)
    return new


def start_benchmark(benchmark: str, version: str, task: str, registry: Registry) -> Reference:
    """Write the first definition of a benchmark from the commented template of its task, and return its reference.

    What only its author knows is left empty, and `validate` names each of these fields.

    Raises:
        DefinitionError: if the benchmark or version is no name, the version exists, or the task has no template.
    """
    new = _named(benchmark, version)
    template = resources.files("cxrspec") / "templates" / f"{task}.yaml"
    if task not in TASKS or not template.is_file():
        message = f"unknown task '{task}'; allowed are {listed(sorted(TASKS))}"
        raise DefinitionError(Issue("field-value", "task", message, did_you_mean(task, TASKS)))
    names = dump_document({"benchmark": new.benchmark, "definition_version": new.version}).decode()
    with registry.writing():
        _write_absent(registry, new, f"{SCHEMA_LINE}\n{names}{template.read_text(encoding='utf-8')}")
    return new


def _named(benchmark: str, version: str) -> Reference:
    """Return the reference of a definition; raises DefinitionError for what is no name."""
    forms = (
        ("benchmark", benchmark, f"{benchmark}@v", "'-'"),
        ("definition_version", version, f"b@{version}", "'-' or '.'"),
    )
    issues = [
        Issue(
            "field-value",
            field,
            f"'{said}' is no {field}; write at most {MAX_NAME} lower-case letters and digits joined by {marks}",
        )
        for field, said, text, marks in forms
        if len(said) > MAX_NAME or not _is_definition(text)
    ]
    if issues:
        raise DefinitionError(issues)
    return Reference(benchmark, version)


def _is_definition(text: str) -> bool:
    try:
        return (found := Reference.parse(text)) == found.definition
    except ValueError:
        return False


def _write_absent(registry: Registry, new: Reference, text: str) -> None:
    path = registry.spec_path(new)
    if path.exists():
        raise DefinitionError(Issue("path-mismatch", registry.name(path), "exists already", "Choose another version"))
    write_whole(path, text.encode())


def _refuse_difference(registry: Registry, new: Reference, *, digest: str) -> None:
    """Read the file back: only the three fields may differ, or it is removed again."""
    path = registry.spec_path(new)
    try:
        if load_definition(path, shown_as=registry.name(path)).digest == digest:
            return
        message = "the three fields of a new version cannot be set in this layout"
        hint = "Write definition_version, supersedes and change in lines of their own"
        raise DefinitionError(Issue("yaml-syntax", registry.name(path), message, hint))
    except DefinitionError:
        path.unlink()
        raise


def _with_fields(text: str, fields: Mapping[str, str]) -> str:
    """Set top-level fields, all in the place of the first one."""
    first, *others = fields
    for name in others:
        text = re.sub(rf"^{name}:.*\n?{_CONTINUED}", "", text, flags=re.MULTILINE)
    lines = dump_document(fields).decode()
    return re.sub(rf"^{first}:.*\n?{_CONTINUED}", lambda _: lines, text, count=1, flags=re.MULTILINE)
