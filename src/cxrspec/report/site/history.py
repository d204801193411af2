"""Own the versions of a benchmark as the site shows them: what each changed, and which commit froze it."""

from __future__ import annotations

from typing import Any

from cxrspec.errors import DefinitionError
from cxrspec.loader import load_definition
from cxrspec.reference import Reference
from cxrspec.registry import Registry


def versions(benchmark: str, registry: Registry) -> list[dict[str, Any]]:
    """Return every version of a benchmark, each after the one that it supersedes.

    Raises:
        RegistryError: if a lock is damaged, or git cannot tell what froze it.
    """
    frozen = {one for one in registry.frozen() if one.benchmark == benchmark}
    authored = {one for one in registry.authored() if one.benchmark == benchmark}
    found = {
        one.version: _frozen(one, registry) if one in frozen else _authored(one, registry)
        for one in sorted(frozen | authored, key=str)
    }
    return sorted(found.values(), key=lambda one: (_ancestors(one, found), one["version"]))


def _frozen(reference: Reference, registry: Registry) -> dict[str, Any]:
    lock = registry.read_lock(reference)
    commit = registry.git.first_commit(registry.lock_path(reference))
    description = lock.document["description"]
    return {
        "version": reference.version,
        "state": "frozen",
        "title": description.get("title", ""),
        "supersedes": lock.document.get("supersedes"),
        "change": description.get("change"),
        "commit": commit.id[:12] if commit else None,
        "subsets": lock.subset_ids,
    }


def _authored(reference: Reference, registry: Registry) -> dict[str, Any]:
    """Return a version that nothing can be scored against yet; one that is faulty is shown as such."""
    path = registry.spec_path(reference)
    found: dict[str, Any] = {"version": reference.version, "state": "not frozen", "title": "", "subsets": {}}
    try:
        definition = load_definition(path, shown_as=registry.name(path))
    except DefinitionError:
        return {**found, "state": "faulty", "supersedes": None, "change": None, "commit": None}
    said = {"supersedes": definition.supersedes, "change": definition.change, "commit": None}
    return {**found, **said, "title": definition.title}


def _ancestors(version: dict[str, Any], known: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    """Return the chain of versions that lead to this one, oldest first; a circle ends where it closes."""
    line = [version["version"]]
    while (before := known.get(line[0], {}).get("supersedes")) and before not in line:
        line.insert(0, before)
    return tuple(line)
