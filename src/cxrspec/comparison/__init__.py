"""Own the comparison of two definition versions: what differs, whether scores stay comparable, the honest bump.

It reads locks, definition files and frozen tables, never a source; what it could not compare it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from cxrspec.comparison.subsets import ItemSet, SubsetComparison, compare_subsets
from cxrspec.comparison.verdict import (
    COMPARABLE,
    NO_SCORE,
    NOT_COMPARABLE,
    SHARED_ONLY,
    THE_SAME,
    Verdict,
    honest_bump,
    metric_verdicts,
    overall_verdict,
    unscored_verdict,
)
from cxrspec.comparison.version import Change, Version, document_changes, load_version
from cxrspec.errors import Issue, RegistryError
from cxrspec.reference import Reference
from cxrspec.registry import Registry

__all__ = [
    "COMPARABLE",
    "NOT_COMPARABLE",
    "NO_SCORE",
    "SHARED_ONLY",
    "THE_SAME",
    "Change",
    "Comparison",
    "ItemSet",
    "SubsetComparison",
    "Verdict",
    "Version",
    "comparable_pairs",
    "compare",
    "compare_versions",
    "load_version",
]


@dataclass(frozen=True)
class Comparison:
    """Everything that differs between two definition versions, and what follows from it."""

    before: Reference
    after: Reference
    changes: list[Change]
    """Of everything that can change a score."""
    described: list[Change]
    """Of titles, licences, caveats, expectations."""
    subsets: Mapping[str, SubsetComparison]
    metrics: Mapping[str, Verdict]
    verdict: Verdict
    bump: Verdict

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return not (self.changes or self.described) and all(one.is_same for one in self.subsets.values())

    def as_json(self, *, with_ids: bool = False) -> dict[str, Any]:
        """Return the comparison as `--json` prints it."""
        return {
            "before": str(self.before),
            "after": str(self.after),
            "verdict": self.verdict.as_json(),
            "bump": {"bump": self.bump.verdict, "why": list(self.bump.why)},
            "metrics": {name: one.as_json() for name, one in self.metrics.items()},
            "changes": [change.as_json() for change in self.changes],
            "described": [change.as_json() for change in self.described],
            "subsets": {name: one.as_json(with_ids=with_ids) for name, one in self.subsets.items()},
        }


def compare(before: Reference, after: Reference, registry: Registry, *, restricted: bool = True) -> Comparison:
    """Compare two definition versions, of one benchmark or of two.

    With `restricted` false, item ids of sources that may not be passed on are refused: the caller means to show them.

    Raises:
        RegistryError: if a lock is damaged, or ids may not be shown.
        DefinitionError: if a version is not frozen and its file is missing or faulty.
    """
    versions = load_version(before, registry), load_version(after, registry)
    closed = [str(one.reference) for one in versions if one.lock and not one.lock.redistribute]
    if closed and not restricted:
        message = "its item ids come from a source that may not be passed on"
        raise RegistryError(Issue("restricted", closed[0], message, "Add --restricted to see them yourself"))
    return compare_versions(*versions, registry)


def compare_versions(before: Version, after: Version, registry: Registry) -> Comparison:
    """Compare two versions that are loaded; tables that are not here, or were altered, are named as not compared."""
    changes = list(document_changes(before.document, after.document))
    described = list(document_changes(before.description, after.description))
    subsets = compare_subsets(before, after, registry)
    metrics = metric_verdicts(before, after, subsets)
    bump = honest_bump(before, after, [*changes, *described], subsets, metrics)
    verdict = overall_verdict(metrics)
    if not (before.metrics or after.metrics):
        same = not changes and all(subset.is_same for subset in subsets.values())
        verdict = unscored_verdict(subsets, is_same=same)
    return Comparison(before.reference, after.reference, changes, described, subsets, metrics, verdict, bump)


def comparable_pairs(benchmarks: Iterable[str], registry: Registry) -> list[dict[str, Any]]:
    """Compare every two frozen versions of each benchmark, as plain values: the verdict, and that of each metric."""
    frozen = registry.frozen()
    pairs = []
    for benchmark in sorted(benchmarks):
        versions = [load_version(one, registry) for one in frozen if one.benchmark == benchmark]
        for before, after in combinations(versions, 2):
            found = compare_versions(before, after, registry).as_json()
            pairs.append({name: found[name] for name in ("before", "after", "verdict", "metrics")})
    return pairs
