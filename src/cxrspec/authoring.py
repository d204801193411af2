"""Own the start of the next definition version: the last file copied with its comments, two fields set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from cxrspec.errors import DefinitionError, Issue
from cxrspec.files import write_whole
from cxrspec.loader import load_definition
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.strict_yaml import dump_document

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
    try:
        new = Reference.parse(f"{reference.benchmark}@{version}")
        if new != new.definition:
            raise ValueError
    except ValueError:
        message = f"'{version}' is no version; write lower-case letters and digits joined by '-' or '.'"
        raise DefinitionError(Issue("field-value", "definition_version", message)) from None
    said = change or f"What differs from {reference.version}, in one sentence."
    fields = {"definition_version": new.version, "supersedes": reference.version, "change": said}
    text = _with_fields(path.read_text(encoding="utf-8-sig"), fields)
    with registry.writing():
        _write_new(registry, new, text, digest=definition.digest)
    return new


def _write_new(registry: Registry, new: Reference, text: str, *, digest: str) -> None:
    """Write the file and read it back: only the three fields may differ."""
    path = registry.spec_path(new)
    if path.exists():
        raise DefinitionError(Issue("path-mismatch", registry.name(path), "exists already", "Choose another version"))
    write_whole(path, text.encode())
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
