"""Own one side of a comparison: a definition version as its lock says, or as its file does while it is not frozen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cxrspec.description import current_description, description_of
from cxrspec.errors import Issue, RegistryError, listed
from cxrspec.loader import load_definition
from cxrspec.lock import Lock
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.submission import task_of
from cxrspec.tasks import Task


@dataclass(frozen=True)
class Version:
    """A definition version with everything that two of them are compared by."""

    reference: Reference
    document: Mapping[str, Any]
    """Everything that can change a score."""
    description: Mapping[str, Any]
    supersedes: str | None
    task: Task
    lock: Lock | None

    @property
    def metrics(self) -> dict[str, Mapping[str, Any]]:
        """The metrics by name."""
        return {metric["name"]: metric for metric in self.document.get("metrics", ())}

    def scored_subset(self, metric: str) -> str:
        """Return the subset that a metric scores."""
        return str(self.metrics[metric].get("subset", "test"))

    def fitted_subsets(self, metric: str) -> list[str]:
        """Return the further subsets that the metric's protocol needs: those that it is fitted on."""
        protocol = self.metrics[metric]["protocol"]
        scored = {self.scored_subset(name) for name, one in self.metrics.items() if one["protocol"] == protocol}
        return [name for name in self.task.prediction_need(protocol).subsets if name not in scored]


def load_version(reference: Reference, registry: Registry) -> Version:
    """Load a definition version from its lock, or from its file if it has none.

    Raises:
        RegistryError: if the lock is damaged, or there is no such version.
        DefinitionError: if it is not frozen and its file is faulty.
    """
    if registry.lock_path(reference).is_file():
        lock = registry.read_lock(reference)
        said = current_description(lock, registry)
        return Version(lock.reference, lock.definition, said, lock.document.get("supersedes"), task_of(lock), lock)
    path = registry.spec_path(reference)
    if not path.is_file():
        raise RegistryError(_unknown(reference, registry))
    definition = load_definition(path, shown_as=registry.name(path))
    return Version(
        definition.reference,
        definition.score_relevant(),
        description_of(definition),
        definition.supersedes,
        definition.task,
        None,
    )


def _unknown(reference: Reference, registry: Registry) -> Issue:
    """Say that there is no such version, and which there are."""
    every = sorted({*map(str, registry.authored()), *map(str, registry.frozen())})
    known = [one for one in every if one.startswith(f"{reference.benchmark}@")] or every
    return Issue("frozen-unknown", str(reference), f"is no definition here; there are {listed(known) or 'none'}")


@dataclass(frozen=True, slots=True)
class Change:
    """One part of a definition that differs; None stands for a part that is not there."""

    path: str
    before: Any
    after: Any

    def as_json(self) -> dict[str, Any]:
        """Return the change as `--json` prints it."""
        return {"path": self.path, "before": self.before, "after": self.after}


def document_changes(before: Any, after: Any, path: str = "") -> Iterator[Change]:
    """Yield what differs between two plain documents; key order never matters, nor that of lists with names.

    >>> list(document_changes({"seed": 1, "metrics": [{"name": "a"}]}, {"seed": 2, "metrics": [{"name": "a"}]}))
    [Change(path='seed', before=1, after=2)]
    """
    before, after = _by_name(before), _by_name(after)
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            yield from document_changes(before.get(key), after.get(key), f"{path}.{key}" if path else key)
    elif before != after:
        yield Change(path, before, after)


def _by_name(value: Any) -> Any:
    """Return a list of mappings that have names as a mapping of them."""
    if isinstance(value, list) and value and all(isinstance(one, Mapping) and "name" in one for one in value):
        return {one["name"]: one for one in value}
    return value
