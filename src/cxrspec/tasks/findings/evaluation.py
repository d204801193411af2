"""Own how findings are scored: metrics per finding, averaged and by stratum, intervals on shared resamples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from cxrspec.digest import Table
from cxrspec.errors import Issue
from cxrspec.metrics import (
    RANKING_METRICS,
    bootstrap_ranking,
    count_distinct,
    is_coarse,
    mean_over_findings,
    tied_pair_share,
    undefined_reason,
)
from cxrspec.tasks.findings.below import readers_below, reads_of
from cxrspec.tasks.findings.delong import OF_ONE_FINDING, DeLongInterval
from cxrspec.tasks.findings.probing import fit_probes
from cxrspec.tasks.findings.readers import ReadersMetric
from cxrspec.tasks.findings.strata import Strata, missing_note
from cxrspec.tasks.task import Evaluation, EvaluationInput

if TYPE_CHECKING:
    from cxrspec.tasks.findings import FindingsTask, Metric
    from cxrspec.tasks.interval import Interval

INVERTED_AUROC: Final = 0.35
INVERTED_POSITIVES: Final = 20

Floats = NDArray[np.float64]


def evaluate(task: FindingsTask, given: EvaluationInput) -> Evaluation:
    """Compute every metric of the protocol; undefined values are None with a reason."""
    result = Evaluation()
    metrics = [metric for metric in task.metrics if metric.protocol == given.protocol]
    for scored in scored_subsets(task, given, result):
        of_subset = [metric for metric in metrics if metric.scored_subset == scored.name]
        divided = _Divided(scored, given.covariates.get(scored.name))
        scores = [scored.score(metric) | divided.scores(metric) for metric in of_subset]
        result.scores += scores
        result.resampled |= {
            metric.name: scored.resampled_means(metric)
            for metric, score in zip(of_subset, scores, strict=True)
            if score["value"] is not None
        }
        result.notes += scored.notes(given.protocol) + divided.notes
        result.notes += scored.dependence(of_subset)
    order = [metric.name for metric in metrics]
    result.scores.sort(key=lambda score: order.index(score["metric"]))
    return result


def scored_subsets(task: FindingsTask, given: EvaluationInput, result: Evaluation) -> Iterator[ScoredSubset]:
    """Yield every subset that a metric of the protocol scores; what a probe came to is added to the result."""
    scores = dict(given.predictions)
    undefined: dict[str, str] = {}
    if given.protocol == "probe" and task.protocols.probe:
        result.tolerance = task.protocols.probe.tolerance
        scores, undefined = fit_probes(task, task.protocols.probe, given, result)
    readers = task.readers.comparison_names if task.readers else ()
    for name in sorted({metric.scored_subset for metric in task.metrics if metric.protocol == given.protocol}):
        table, stream = given.subsets[name], f"{given.seed}:{name}"
        yield ScoredSubset(task.finding_names, name, table, scores[name], stream, undefined, readers)


@dataclass(frozen=True)
class ScoredSubset:
    """The labels and scores of one subset, with the resamples that all its metrics share."""

    findings: Sequence[str]
    name: str
    table: Table
    scores: Floats
    stream: str
    """Key of the resamples before their unit: `<seed>:<subset>`, for a stratum `:<covariate>=<stratum>` after it."""
    undefined: dict[str, str]
    """Findings whose probe could not be fitted, with the reason."""
    readers: Sequence[str] = ()
    """Who is compared with the scores."""

    @cached_property
    def labels(self) -> NDArray[np.int8]:
        """The labels [n_items, n_findings]."""
        return label_matrix(self.table, self.findings)

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """The number of each item's group [n_items]."""
        return np.unique(self.table.column("group_id"), return_inverse=True)[1].astype(np.int64)

    @cached_property
    def _resampled(self) -> dict[tuple[str, int], dict[str, Floats]]:
        return {}

    def score(self, metric: Metric | ReadersMetric) -> dict[str, Any]:
        """Return one metric with what it is, and its values."""
        return {
            "metric": metric.name,
            "kind": metric.kind,
            "protocol": metric.protocol,
            "average": metric.average,
            "subset": self.name,
            **self.values(metric),
        }

    def values(self, metric: Metric | ReadersMetric) -> dict[str, Any]:
        """Return the value of one metric with its per-finding values, counts and intervals."""
        per_finding = {name: self._finding(metric, column) for column, name in enumerate(self.findings)}
        missing = {name: entry["reason"] for name, entry in per_finding.items() if entry["value"] is None}
        values = [entry["value"] for entry in per_finding.values()]
        reason = f"undefined for {'; '.join(f'{name}: {why}' for name, why in missing.items())}" if missing else None
        return {
            "n_items": len(self.table),
            "n_groups": len(set(self.table.column("group_id"))),
            "value": None if missing else sum(values) / len(values),
            "reason": reason,
            "intervals": [self._interval(metric, fields, None, reason) for fields in metric.interval],
            **(metric.summary(values) if isinstance(metric, ReadersMetric) else {}),
            "findings": per_finding,
        }

    def _finding(self, metric: Metric | ReadersMetric, column: int) -> dict[str, Any]:
        labels, scores = self.labels[:, column], self.scores[:, column]
        n_positive = int(labels.sum())
        reason = self.undefined.get(self.findings[column]) or undefined_reason(labels) or None
        ranking = None if reason else RANKING_METRICS.get(metric.kind)
        return {
            "value": ranking(labels, scores) if ranking else None,
            "reason": reason,
            "n_items": len(labels),
            "n_positive": n_positive,
            "n_negative": len(labels) - n_positive,
            "n_missing": 0,
            "n_excluded": 0,
            "intervals": [self._interval(metric, fields, column, reason) for fields in metric.interval],
            **self._readers(metric, column, reason),
        }

    def _readers(self, metric: Metric | ReadersMetric, column: int, reason: str | None) -> dict[str, Any]:
        """Return what a metric of readers says of one finding beside the counts; nothing for any other metric."""
        if not isinstance(metric, ReadersMetric) or reason:
            return {}
        reads = reads_of(self.table, self.readers, self.findings[column])
        return readers_below(metric, self.labels[:, column], self.scores[:, column], reads, self.readers)

    def _interval(
        self, metric: Metric | ReadersMetric, fields: Interval | DeLongInterval, column: int | None, reason: str | None
    ) -> dict[str, Any]:
        """Return the interval of one finding, or of the mean over the findings where `column` is None."""
        if isinstance(fields, DeLongInterval):
            if column is None or reason:
                return fields.entry(None, None, reason or OF_ONE_FINDING)
            return fields.entry(self.labels[:, column], self.scores[:, column], None)
        if reason is not None:
            return fields.entry(None, reason)
        values = self.resamples(fields.unit, fields.resamples)[metric.kind]
        return fields.entry(mean_over_findings(values) if column is None else values[:, column], None)

    def resampled_means(self, metric: Metric | ReadersMetric) -> list[Floats]:
        """Return the mean over the findings on each resample, for each bootstrap interval of a metric."""
        drawn = [fields for fields in metric.interval if not isinstance(fields, DeLongInterval)]
        return [mean_over_findings(self.resamples(one.unit, one.resamples)[metric.kind]) for one in drawn]

    def resamples(self, unit: str, resamples: int) -> dict[str, Floats]:
        """Return every ranking metric of each finding on each resample [resamples, n_findings], drawn once."""
        key = (unit, resamples)
        if key not in self._resampled:
            self._resampled[key] = bootstrap_ranking(
                self.labels,
                self.scores,
                stream_key=f"{self.stream}:{unit}",
                resamples=resamples,
                unit_index=self.groups if unit == "group" else None,
            )
        return self._resampled[key]

    def stratum(self, covariate: str, name: str, rows: Sequence[int]) -> ScoredSubset:
        """Return the items of one stratum, which are resampled among themselves by a stream of their own."""
        table = Table(self.table.header, tuple([column[row] for row in rows] for column in self.table.columns))
        return replace(self, table=table, scores=self.scores[rows], stream=f"{self.stream}:{covariate}={name}")

    def dependence(self, metrics: Sequence[Metric | ReadersMetric]) -> Iterator[Issue]:
        """Yield the note that DeLong's intervals take items of one group as independent, where there are such items."""
        n_groups = int(self.groups.max()) + 1
        by_delong = any(isinstance(fields, DeLongInterval) for metric in metrics for fields in metric.interval)
        if by_delong and n_groups < len(self.table):
            text = f"DeLong's intervals take {len(self.table):,} items of {n_groups:,} groups as independent"
            yield Issue("note", f"subset {self.name}", text, "Read the bootstrap by group beside them")

    def notes(self, protocol: str) -> list[Issue]:
        """Return what a reader of the scores should know: coarse or apparently inverted columns."""
        notes = []
        for column, name in enumerate(self.findings):
            labels, scores = self.labels[:, column], self.scores[:, column]
            where = f"subset {self.name}, finding {name}"
            n_positive = int(labels.sum())
            value = None if name in self.undefined else RANKING_METRICS["roc_auc"](labels, scores)
            if value is None:
                continue
            if protocol != "probe" and is_coarse(labels, scores):
                share = tied_pair_share(labels, scores) or 0.0
                text = f"scores are coarse: {count_distinct(scores):,} distinct values, {share:.1%} of pairs tied"
                notes.append(Issue("note", where, text))
            if value < INVERTED_AUROC and n_positive >= INVERTED_POSITIVES:
                text = f"ROC-AUC {value:.3f} looks inverted; it is reported as it is"
                notes.append(Issue("note", where, text, "Check the sign of the scores"))
        return notes


class _Divided:
    """The strata of one subset, each with the resamples that all metrics which ask for it share."""

    def __init__(self, scored: ScoredSubset, covariates: Table | None) -> None:
        self.scored = scored
        self.covariates = covariates
        self.notes: list[Issue] = []
        self._strata: dict[tuple[str, Any], tuple[dict[str, ScoredSubset], int]] = {}

    def scores(self, metric: Metric | ReadersMetric) -> dict[str, Any]:
        """Return the scores of every stratum that a metric asks for, and how many items are in none."""
        if isinstance(metric, ReadersMetric) or not metric.strata:
            return {}
        found = {name: self._divided(name, strata) for name, strata in sorted(metric.strata.items())}
        return {
            "strata": {
                name: {stratum: part.values(metric) for stratum, part in parts.items()}
                for name, (parts, _) in found.items()
            },
            "n_in_no_stratum": {name: n_missing for name, (_, n_missing) in found.items()},
        }

    def _divided(self, name: str, strata: Strata) -> tuple[dict[str, ScoredSubset], int]:
        key = (name, tuple(strata.bands or ()))
        if key not in self._strata:
            if self.covariates is None or self.covariates.item_ids != self.scored.table.item_ids:
                raise ValueError(f"the covariates of {self.scored.name} are not those of its items")
            cells = self.covariates.column(name)
            parts = {one: self.scored.stratum(name, one, rows) for one, rows in strata.rows(name, cells).items()}
            missing = strata.missing(name, cells)
            if missing:
                self.notes.append(missing_note(self.scored.name, name, missing, len(cells)))
            self._strata[key] = (parts, missing.total())
        return self._strata[key]


def label_matrix(table: Table, findings: Sequence[str]) -> NDArray[np.int8]:
    """Return the labels [n_items, n_findings] of a table whose cells are all `1` or `0`."""
    return np.array([[cell == "1" for cell in table.column(name)] for name in findings], dtype=np.int8).T
