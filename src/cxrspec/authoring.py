"""Own the start of the next definition version: the last file copied with its comments, two fields set."""

from __future__ import annotations

import re

from cxrspec.errors import DefinitionError, Issue
from cxrspec.files import write_whole
from cxrspec.loader import load_definition
from cxrspec.reference import Reference
from cxrspec.registry import Registry


def start_version(reference: Reference, version: str, registry: Registry, *, change: str | None = None) -> Reference:
    """Write the next definition version from an existing one and return its reference.

    Comments, order and layout stay; `definition_version`, `supersedes` and `change` are set. No source is opened.

    Raises:
        DefinitionError: if the old file is faulty, or the new version exists or is no version.
    """
    old = registry.spec_path(reference)
    load_definition(old, shown_as=registry.name(old))
    try:
        new = Reference.parse(f"{reference.benchmark}@{version}")
    except ValueError:
        message = f"'{version}' is no version; write lower-case letters and digits joined by '-' or '.'"
        raise DefinitionError(Issue("field-value", "definition_version", message)) from None
    path = registry.spec_path(new)
    if path.exists():
        message = "exists already"
        raise DefinitionError(Issue("path-mismatch", registry.name(path), message, "Choose another version"))
    text = old.read_text(encoding="utf-8")
    text = _without(text, "supersedes", "change")
    said = change or f"What differs from {reference.version}, in one sentence."
    lines = f"definition_version: {_quoted(version)}\nsupersedes: {_quoted(reference.version)}\nchange: {_quoted(said)}"
    text = re.sub(r"^definition_version:.*$", lambda _: lines, text, count=1, flags=re.MULTILINE)
    write_whole(path, text.encode())
    load_definition(path, shown_as=registry.name(path))
    return new


def _without(text: str, *fields: str) -> str:
    """Drop top-level fields with their indented continuation lines."""
    for field in fields:
        text = re.sub(rf"^{field}:.*\n(?:[ \t]+.*\n)*", "", text, flags=re.MULTILINE)
    return text


def _quoted(text: str) -> str:
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9.-]*", text) and text.lower() not in {"yes", "no", "on", "off", "y", "n"}:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
