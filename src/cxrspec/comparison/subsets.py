"""Own the comparison of subsets: items added, removed and relabelled, patients, prevalence; by counts and digests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Final

from cxrspec.comparison.version import Version, document_changes
from cxrspec.digest import Table, sha256_hex, short_id
from cxrspec.errors import RegistryError, listed
from cxrspec.registry import Registry

PREVALENCE: Final = ("positives", "images_with")
"""Counts of items per finding, which over all items are its prevalence."""
COMPILED_FROM: Final = ("sources", "items", "splits", "subsets")
"""The fields of every definition that items follow from, beside those of its task."""


@dataclass(frozen=True)
class ItemSet:
    """Some items, known by their ids."""

    ids: tuple[str, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of the ids, one a line, in code-point order."""
        return sha256_hex("".join(f"{item}\n" for item in self.ids).encode())

    def as_json(self, *, with_ids: bool) -> dict[str, Any]:
        """Return count and digest, with the ids if asked."""
        return {"count": len(self.ids), "sha256": self.digest, **({"ids": list(self.ids)} if with_ids else {})}


@dataclass(frozen=True)
class SubsetComparison:
    """One subset in two definition versions."""

    name: str
    before: Mapping[str, Any] | None
    """What the lock counts; None where there is no such subset, or no lock."""
    after: Mapping[str, Any] | None
    in_both: bool = True
    is_same: bool = False
    """Whether items, groups and the columns that both have are the same, by digest or by what they follow from."""
    reason: str = ""
    """Why the items were not compared; empty where they were, or are the same."""
    items: Mapping[str, ItemSet] = field(default_factory=dict)
    """added, removed, relabelled (another label, box or group; in the columns that both have), kept."""
    groups: Mapping[str, int] = field(default_factory=dict)
    """Groups added and removed."""

    @property
    def n_kept(self) -> int:
        """Items that are in both with the same labels and group."""
        return len(self.items["kept"].ids) if self.items else 0

    @property
    def n_apart(self) -> int:
        """Items that are in one only, or have other labels or another group."""
        return sum(len(self.items[name].ids) for name in ("added", "removed", "relabelled")) if self.items else 0

    @property
    def is_unknown(self) -> bool:
        """Whether both versions have it, and what its items have in common cannot be told."""
        return bool(self.reason) and self.in_both

    @property
    def holds_all(self) -> bool:
        """Whether every item is in both, with the same labels in the columns that both have."""
        return self.is_same or (bool(self.items) and not self.n_apart)

    @property
    def prevalence(self) -> dict[str, dict[str, list[int] | None]]:
        """Per finding: [items with it, items] before and after; None where it is not counted."""
        sides = {"before": _prevalence(self.before), "after": _prevalence(self.after)}
        findings = sorted({*sides["before"], *sides["after"]})
        return {finding: {side: counts.get(finding) for side, counts in sides.items()} for finding in findings}

    def as_json(self, *, with_ids: bool = False) -> dict[str, Any]:
        """Return the comparison as `--json` prints it."""
        return {
            "same": self.is_same,
            "before": _counted(self.before),
            "after": _counted(self.after),
            "not_compared": self.reason or None,
            "items": {name: one.as_json(with_ids=with_ids) for name, one in self.items.items()},
            "groups": dict(self.groups),
            "prevalence": self.prevalence,
        }


def _counted(side: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {"id": short_id(side["digest"]), "sha256": side["digest"], "items": side["items"], "groups": side["groups"]}


def _prevalence(side: Mapping[str, Any] | None) -> dict[str, list[int]]:
    if side is None:
        return {}
    counts: Mapping[str, int] = next((side[name] for name in PREVALENCE if name in side), {})
    return {finding: [count, side["items"]] for finding, count in counts.items()}


def compare_subsets(before: Version, after: Version, registry: Registry) -> dict[str, SubsetComparison]:
    """Compare every subset of either version."""
    names = sorted({*before.document["subsets"], *after.document["subsets"]})
    return {name: _compare(name, before, after, registry) for name in names}


def _compare(name: str, before: Version, after: Version, registry: Registry) -> SubsetComparison:
    first, second = (version.lock.subsets.get(name) if version.lock else None for version in (before, after))
    if any(name not in version.document["subsets"] for version in (before, after)):
        return SubsetComparison(name, first, second, in_both=False)
    if first is None or second is None:
        fields = _compiled_otherwise(name, before, after)
        reason = _unfrozen(before, after, fields) if fields else ""
        return SubsetComparison(name, first, second, is_same=not fields, reason=reason)
    if first["digest"] == second["digest"]:
        return SubsetComparison(name, first, second, is_same=True)
    try:
        old = registry.read_table(before.reference, name, first["digest"])
        new = registry.read_table(after.reference, name, second["digest"])
    except RegistryError as error:
        return SubsetComparison(name, first, second, reason=str(error.issues[0]))
    return SubsetComparison(name, first, second, items=_item_sets(old, new), groups=_group_counts(old, new))


def _unfrozen(before: Version, after: Version, fields: Iterable[str]) -> str:
    names = sorted(str(version.reference) for version in (before, after) if version.lock is None)
    return f"{listed(names)} {'is' if len(names) == 1 else 'are'} not frozen, and items may differ by {listed(fields)}"


def _compiled_otherwise(name: str, before: Version, after: Version) -> list[str]:
    """Return the paths at which what a subset is compiled from differs, in the columns that both have."""
    both = {*before.task.column_names} & {*after.task.column_names}
    old, new = (_compiled_from(name, version, both) for version in (before, after))
    return [change.path for change in document_changes(old, new)]


def _compiled_from(name: str, version: Version, columns: Set[str]) -> dict[str, Any]:
    document, own, every = version.document, version.task.COMPILED, {*version.task.column_names}
    subsets = document["subsets"]
    parts = {field: document[field] for field in (*COMPILED_FROM, *own) if field in document}
    parts["subsets"] = {one: subsets[one] for one in (name, subsets[name].get("disjoint_from")) if one}
    if "stratified" in subsets[name]["select"]:  # which follows from the seed and from every column
        return parts | {"seed": document["seed"]}
    by_column = [field for field in own if field in parts and every >= {*parts[field]}]
    return parts | {
        field: {name: parts[field][name] for name in parts[field] if name in columns} for field in by_column
    }


def _item_sets(before: Table, after: Table) -> dict[str, ItemSet]:
    columns = [name for name in before.header[1:] if name in after.header]
    rows = [
        dict(zip(table.item_ids, zip(*(table.column(name) for name in columns), strict=True), strict=True))
        for table in (before, after)
    ]
    both = rows[0].keys() & rows[1].keys()
    relabelled = {item for item in both if rows[0][item] != rows[1][item]}
    found = {
        "added": rows[1].keys() - both,
        "removed": rows[0].keys() - both,
        "relabelled": relabelled,
        "kept": both - relabelled,
    }
    return {name: ItemSet(tuple(sorted(ids))) for name, ids in found.items()}


def _group_counts(before: Table, after: Table) -> dict[str, int]:
    first, second = (set(table.column("group_id")) for table in (before, after))
    return {"added": len(second - first), "removed": len(first - second)}
