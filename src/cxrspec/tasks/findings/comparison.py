"""Own the comparison of two systems on the same items: differences per finding and of their mean, each with a test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cxrspec.metrics import adjusted_p_values, bootstrap_p_value, delong_test, mean_over_findings
from cxrspec.tasks.findings.evaluation import ScoredSubset, scored_subsets
from cxrspec.tasks.findings.readers import ReadersMetric
from cxrspec.tasks.interval import Interval
from cxrspec.tasks.task import Evaluation, EvaluationInput

if TYPE_CHECKING:
    from cxrspec.tasks.findings import FindingsTask, Metric

Floats = NDArray[np.float64]

NO_BOOTSTRAP = "the metric has no bootstrap interval whose resamples could be shared"


def compare(
    task: FindingsTask, first: EvaluationInput, second: EvaluationInput, *, one_sided: bool
) -> Iterator[dict[str, Any]]:
    """Yield, per ranking metric of the protocol, the first system minus the second on the same items.

    A ROC-AUC is tested by DeLong, any other metric and every mean by the paired bootstrap of the metric's own interval,
    whose resamples both systems share. Findings are adjusted together (Benjamini and Hochberg), means are not.
    """
    pairs = zip(scored_subsets(task, first, Evaluation()), scored_subsets(task, second, Evaluation()), strict=True)
    for one, other in pairs:
        for metric in task.metrics:
            ours = metric.protocol == first.protocol and metric.scored_subset == one.name
            if ours and not isinstance(metric, ReadersMetric):
                yield _Pair(metric, one, other, one_sided).compared()


class _Pair:
    """One metric of two systems on one subset."""

    def __init__(self, metric: Metric, first: ScoredSubset, second: ScoredSubset, one_sided: bool) -> None:
        self.metric, self.first, self.second, self.one_sided = metric, first, second, one_sided
        self.interval = next((one for one in metric.interval if isinstance(one, Interval)), None)
        self.scores = first.score(metric), second.score(metric)

    def compared(self) -> dict[str, Any]:
        """Return the differences as plain values."""
        one, other = self.scores
        resampled = self._resampled()
        findings = {
            name: self._finding(at, one["findings"][name], other["findings"][name], resampled)
            for at, name in enumerate(self.first.findings)
        }
        adjusted = adjusted_p_values([entry["p"] for entry in findings.values()])
        for entry, p in zip(findings.values(), adjusted, strict=True):
            entry["p_adjusted"] = p
        return {
            **{key: one[key] for key in ("metric", "kind", "protocol", "subset", "n_items", "n_groups")},
            "unit": self.interval.unit if self.interval else None,
            "findings": findings,
            "mean": self._difference(one, other, None if resampled is None else mean_over_findings(resampled)),
        }

    def _resampled(self) -> Floats | None:
        """Return the difference of every finding on every resample [R, F], or None where the metric has none."""
        if self.interval is None:
            return None
        size = self.interval.unit, self.interval.resamples
        first, second = (one.resamples(*size)[self.metric.kind] for one in (self.first, self.second))
        return np.asarray(first - second)

    def _finding(self, at: int, one: dict[str, Any], other: dict[str, Any], resampled: Floats | None) -> dict[str, Any]:
        """Return the difference of one finding; DeLong's test stands in place of the bootstrap's for a ROC-AUC."""
        entry = self._difference(one, other, None if resampled is None else resampled[:, at])
        if self.metric.kind != "roc_auc":
            return entry
        if entry["delta"] is None:
            return entry | {"test": "DeLong", "z": None, "p": None}
        labels, first, second = self.first.labels[:, at], self.first.scores[:, at], self.second.scores[:, at]
        found = delong_test(labels, first, second, one_sided=self.one_sided)
        return entry | {"test": "DeLong", "z": found.z, "p": found.p, "reason": found.reason or None}

    def _difference(self, one: dict[str, Any], other: dict[str, Any], values: Floats | None) -> dict[str, Any]:
        """Return the difference with its interval and the p of the paired bootstrap; values [R] are its resamples."""
        interval, p = None, None
        reason = one["reason"] or other["reason"] or (None if self.interval else NO_BOOTSTRAP)
        if self.interval and values is not None:
            interval = self.interval.entry(None if reason else values, reason)
            reason = interval["reason"]
            p = None if reason else bootstrap_p_value(values, one_sided=self.one_sided)
        defined = None not in (one["value"], other["value"])
        return {
            "first": one["value"],
            "second": other["value"],
            "delta": one["value"] - other["value"] if defined else None,
            "interval": interval,
            "test": "paired bootstrap" if self.interval else None,
            "p": p,
            "reason": reason,
        }
