"""Own what a frozen definition says about itself today: titles, licences and caveats may be mended after freezing."""

from __future__ import annotations

from typing import Any, Final

from cxrspec.definition import Definition
from cxrspec.errors import CxrspecError
from cxrspec.loader import load_definition
from cxrspec.lock import Lock
from cxrspec.registry import Registry

IDENTITY: Final = ("benchmark", "definition_version", "supersedes")


def description_of(definition: Definition) -> dict[str, Any]:
    """Return what a definition says that cannot change a score, without what names it."""
    return {name: value for name, value in definition.descriptive().items() if name not in IDENTITY}


def current_description(lock: Lock, registry: Registry) -> dict[str, Any]:
    """Return the description that stands in the definition file, or the lock's where that is another definition.

    A caveat that was found after freezing is printed with every score; the lock itself is never rewritten.
    """
    path = registry.spec_path(lock.reference)
    if path.is_file():
        try:
            definition = load_definition(path, shown_as=registry.name(path))
        except CxrspecError:  # `validate` tells its faults
            return dict(lock.document["description"])
        if definition.digest == lock.definition_digest:
            return description_of(definition)
    return dict(lock.document["description"])
