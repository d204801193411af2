"""Own what metrics of every task have in common: the subset that is scored, and names of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cxrspec.errors import listed
from cxrspec.field_errors import list_at
from cxrspec.fields import FieldIssue, Fields, SubsetName


class ScoredMetric(Fields):
    """Base of the metrics of all tasks."""

    subset: SubsetName | None = None
    """The subset that is scored; `test` where absent."""

    @property
    def scored_subset(self) -> str:
        """Name of the subset that is scored."""
        return self.subset or "test"


def check_scored(document: Mapping[str, Any], declared: Mapping[str, Sequence[str]]) -> Iterator[FieldIssue]:
    """Yield metrics of one name, and those that score the subset `test` where there is none."""
    seen: dict[str, int] = {}
    for i, metric in enumerate(list_at(document, "metrics")):
        if not isinstance(metric, Mapping):
            continue
        name = metric.get("name")
        if isinstance(name, str) and seen.setdefault(name, i) != i:
            message, hint = f"metrics[{seen[name]}] is also called '{name}'", "Give each metric a name of its own"
            yield FieldIssue(("metrics", i, "name"), "reference-conflict", message, hint)
        if metric.get("subset") is None and "test" not in declared["subset"]:
            message = f"a metric scores 'test' unless it names a subset; declared are {listed(declared['subset'])}"
            yield FieldIssue(("metrics", i, "subset"), "reference-unknown", message)
