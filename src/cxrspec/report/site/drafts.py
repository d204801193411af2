"""Own what a page says of a definition that is not frozen: what it declares and claims, and what freezing waits for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cxrspec.compiler import unnamed_shards
from cxrspec.definition import Definition
from cxrspec.description import description_of
from cxrspec.errors import DefinitionError, listed
from cxrspec.loader import load_definition
from cxrspec.pins import FileSource
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.report.site import content
from cxrspec.reported import load_reported


def is_readable(reference: Reference, registry: Registry) -> bool:
    """Return whether a definition file is without fault."""
    try:
        return load_definition(registry.spec_path(reference)).reference == reference
    except DefinitionError:
        return False


def draft(reference: Reference, registry: Registry) -> dict[str, Any]:
    """Return what is known of a definition that has no lock.

    Raises:
        DefinitionError: with every issue of its file, or of the results that others reported.
        RegistryError: if there is no such file.
    """
    path = registry.spec_path(reference)
    if not path.is_file():
        registry.read_lock(reference)  # tells what there is instead
    definition = load_definition(path, shown_as=registry.name(path))
    reported = [one.as_json() for one in load_reported(registry, reference.benchmark)]
    description = description_of(definition)
    return {
        "definition": definition.score_relevant(),
        "description": description,
        "digest": definition.digest,
        "supersedes": definition.supersedes,
        "restricted": not definition.redistribute,
        "waiting": list(_waiting(definition, registry)) or [f"nobody has run 'cxrspec freeze {reference}' here"],
        "claims": list(content.claims(description.get("expect", {}))),
        "selections": {
            name: content.selection_rule(subset) for name, subset in definition.score_relevant()["subsets"].items()
        },
        "reported": [one for one in reported if one.get("reference") in (None, str(reference))],
    }


def _waiting(definition: Definition, registry: Registry) -> Iterator[str]:
    """Yield why nobody can freeze it here, as far as that can be told without opening a source."""
    if registry.known_lock(definition.reference):
        yield "git knows its lock, which is not here"
    for place, said in unnamed_shards(definition):
        yield f"{place}: {said}. 'cxrspec discover {definition.reference}' looks for them"
    files = [
        file.path for one in definition.sources.values() if isinstance(one, FileSource) for file in one.files.values()
    ]
    if missing := [name for name in files if not (registry.root / name).exists()]:
        yield f"it reads files of the user's own, which are not here: {listed(missing)}"
