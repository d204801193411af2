"""Own the versions of a benchmark as the site shows them: what each changed, with what verdict, and who froze it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from cxrspec.comparison.history import Node, version_tree
from cxrspec.description import current_description
from cxrspec.errors import DefinitionError
from cxrspec.loader import load_definition
from cxrspec.registry import Registry

STATES: Final = {"authored": "not frozen"}
"""States that a page calls otherwise."""


def versions(benchmark: str, registry: Registry) -> list[dict[str, Any]]:
    """Return every version of a benchmark, each after the one that it supersedes.

    Raises:
        RegistryError: if a lock is damaged, or git cannot tell what froze it.
    """
    return [one for root in version_tree(benchmark, registry) for one in _line(root, registry)]


def _line(node: Node, registry: Registry) -> Iterator[dict[str, Any]]:
    """Yield a version, then those that supersede it."""
    found = node.comparison
    yield {
        "version": node.reference.version,
        "state": STATES.get(node.state, node.state),
        "title": _title(node, registry),
        "supersedes": node.supersedes,
        "change": node.change,
        "commit": node.commit[:12] if node.commit else None,
        "subsets": node.subset_ids,
        "verdict": found.verdict.verdict if found else None,
        "why": "; ".join(found.verdict.why) if found else "",
        "bump": found.bump.verdict if found else None,
    }
    for child in node.children:
        yield from _line(child, registry)


def _title(node: Node, registry: Registry) -> str:
    if node.state == "frozen":
        return str(current_description(registry.read_lock(node.reference), registry).get("title", ""))
    try:
        return load_definition(registry.spec_path(node.reference)).title if node.state == "authored" else ""
    except DefinitionError:
        return ""
