"""Own the tree of a benchmark's versions: which supersedes which, with what verdict, and the commit that froze it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cxrspec.comparison import Comparison, Version, compare_versions, load_version
from cxrspec.errors import CxrspecError, Issue, RegistryError, listed
from cxrspec.reference import Reference
from cxrspec.registry import Registry

State = Literal["frozen", "authored", "faulty", "absent"]


@dataclass
class Node:
    """One definition version with those that supersede it."""

    reference: Reference
    state: State
    supersedes: str | None = None
    change: str | None = None
    subset_ids: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    """The commit that froze it; None where git does not know the lock."""
    comparison: Comparison | None = None
    """With the version that it supersedes, where both can be read."""
    children: list[Node] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the tree below as `--json` prints it."""
        verdict = self.comparison and self.comparison.verdict.as_json()
        return {
            "reference": str(self.reference),
            "state": self.state,
            "supersedes": self.supersedes,
            "change": self.change,
            "subsets": dict(self.subset_ids),
            "commit": self.commit,
            "verdict": verdict,
            "bump": self.comparison and self.comparison.bump.verdict,
            "superseded_by": [child.as_json() for child in self.children],
        }


def version_tree(benchmark: str, registry: Registry) -> list[Node]:
    """Return the versions of a benchmark as trees, each version below the one that it supersedes.

    A version that only a `supersedes` names stands at the root as absent; a circle is cut at its first version by name.

    Raises:
        RegistryError: if there is no such benchmark, or a lock is damaged.
    """
    every = {*registry.authored(), *registry.frozen()}
    references = sorted((one for one in every if one.benchmark == benchmark), key=str)
    if not references:
        known = listed(sorted({one.benchmark for one in every}))
        raise RegistryError(Issue("frozen-unknown", benchmark, f"is no benchmark here; there are {known or 'none'}"))
    versions = {one.version: _load(one, registry) for one in references}
    nodes = {name: _node(Reference(benchmark, name), one, registry) for name, one in versions.items()}
    for node in list(nodes.values()):
        if node.supersedes and node.supersedes not in nodes:
            nodes[node.supersedes] = Node(Reference(benchmark, node.supersedes), "absent")
    roots = []
    for name, node in sorted(nodes.items()):
        older, line = node.supersedes, _line(nodes, name)
        if older is None or (nodes[line[-1]].supersedes == name == min(line)):
            roots.append(node)
            continue
        nodes[older].children.append(node)
        before, after = versions.get(older), versions.get(name)
        node.comparison = compare_versions(before, after, registry) if before and after else None
    return roots


def _load(reference: Reference, registry: Registry) -> Version | None:
    """Load a version; None for a file that `validate` refuses."""
    try:
        return load_version(reference, registry)
    except CxrspecError:
        if registry.lock_path(reference).is_file():
            raise
        return None


def _node(reference: Reference, version: Version | None, registry: Registry) -> Node:
    if version is None:
        return Node(reference, "faulty")
    lock = version.lock
    commit = registry.git.first_commit(registry.lock_path(reference)) if lock else None
    return Node(
        reference,
        "frozen" if lock else "authored",
        supersedes=version.supersedes,
        change=version.description.get("change"),
        subset_ids=lock.subset_ids if lock else {},
        commit=commit.id if commit else None,
    )


def _line(nodes: Mapping[str, Node], name: str) -> list[str]:
    """Return a version and those before it, until there is none or one would come again."""
    line: list[str] = []
    here: str | None = name
    while here is not None and here not in line:
        line.append(here)
        here = nodes[here].supersedes
    return line
