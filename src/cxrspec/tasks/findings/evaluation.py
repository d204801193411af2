"""Own how findings are scored: probes fitted, metrics per finding and averaged, intervals on shared resamples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from cxrspec.digest import Table, seed_hash_order
from cxrspec.errors import Issue, listed
from cxrspec.metrics import (
    RANKING_METRICS,
    ProbeSettings,
    bootstrap_ranking,
    count_distinct,
    fit_probe,
    is_coarse,
    mean_over_findings,
    stratified_folds,
    tied_pair_share,
    undefined_reason,
)
from cxrspec.tasks.task import Evaluation, EvaluationInput

if TYPE_CHECKING:
    from cxrspec.tasks.findings import FindingsTask, Metric, Probe
    from cxrspec.tasks.task import Interval

INVERTED_AUROC: Final = 0.35
INVERTED_POSITIVES: Final = 20

Floats = NDArray[np.float64]


def evaluate(task: FindingsTask, given: EvaluationInput) -> Evaluation:
    """Compute every metric of the protocol; undefined values are None with a reason."""
    result = Evaluation()
    metrics = [metric for metric in task.metrics if metric.protocol == given.protocol]
    scores = dict(given.predictions)
    undefined: dict[str, str] = {}
    if given.protocol == "probe" and task.protocols.probe:
        result.tolerance = task.protocols.probe.tolerance
        scores, undefined = _probe(task, task.protocols.probe, given, result)
    for subset in sorted({metric.scored_subset for metric in metrics}):
        scored = _ScoredSubset(task.column_names, subset, given.subsets[subset], scores[subset], given.seed, undefined)
        of_subset = [metric for metric in metrics if metric.scored_subset == subset]
        result.scores += [scored.score(metric) for metric in of_subset]
        result.resampled |= {metric.name: scored.resampled_means(metric) for metric in of_subset}
        result.notes += scored.notes(given.protocol)
    for score in result.scores:
        if score["value"] is None:
            del result.resampled[score["metric"]]
    order = [metric.name for metric in metrics]
    result.scores.sort(key=lambda score: order.index(score["metric"]))
    return result


@dataclass(frozen=True)
class _ScoredSubset:
    """The labels and scores of one subset, with the resamples that all its metrics share."""

    findings: Sequence[str]
    name: str
    table: Table
    scores: Floats
    seed: int
    undefined: dict[str, str]
    """Findings whose probe could not be fitted, with the reason."""

    @cached_property
    def labels(self) -> NDArray[np.int8]:
        return label_matrix(self.table, self.findings)

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        return np.unique(self.table.column("group_id"), return_inverse=True)[1].astype(np.int64)

    @cached_property
    def _resampled(self) -> dict[tuple[str, int], dict[str, Floats]]:
        return {}

    def score(self, metric: Metric) -> dict[str, Any]:
        """Return one metric with its per-finding values, counts and intervals."""
        per_finding = {name: self._finding(metric, column) for column, name in enumerate(self.findings)}
        missing = {name: entry["reason"] for name, entry in per_finding.items() if entry["value"] is None}
        values = [entry["value"] for entry in per_finding.values()]
        reason = f"undefined for {'; '.join(f'{name}: {why}' for name, why in missing.items())}" if missing else None
        return {
            "metric": metric.name,
            "kind": metric.kind,
            "protocol": metric.protocol,
            "average": metric.average,
            "subset": self.name,
            "n_items": len(self.table),
            "n_groups": int(self.groups.max()) + 1,
            "value": None if missing else sum(values) / len(values),
            "reason": reason,
            "intervals": [self._interval(metric, fields, None, reason) for fields in metric.interval],
            "findings": per_finding,
        }

    def _finding(self, metric: Metric, column: int) -> dict[str, Any]:
        labels, scores = self.labels[:, column], self.scores[:, column]
        n_positive = int(labels.sum())
        reason = self.undefined.get(self.findings[column]) or undefined_reason(labels) or None
        return {
            "value": None if reason else RANKING_METRICS[metric.kind](labels, scores),
            "reason": reason,
            "n_items": len(labels),
            "n_positive": n_positive,
            "n_negative": len(labels) - n_positive,
            "n_missing": 0,
            "n_excluded": 0,
            "intervals": [self._interval(metric, fields, column, reason) for fields in metric.interval],
        }

    def _interval(self, metric: Metric, fields: Interval, column: int | None, reason: str | None) -> dict[str, Any]:
        """Return the interval of one finding, or of the mean over the findings where `column` is None."""
        if reason is not None:
            return fields.entry(None, reason)
        values = self._resamples(fields.unit, fields.resamples)[metric.kind]
        return fields.entry(mean_over_findings(values) if column is None else values[:, column], None)

    def resampled_means(self, metric: Metric) -> list[Floats]:
        """Return the mean over the findings on each resample, for each interval of a metric."""
        return [
            mean_over_findings(self._resamples(fields.unit, fields.resamples)[metric.kind])
            for fields in metric.interval
        ]

    def _resamples(self, unit: str, resamples: int) -> dict[str, Floats]:
        key = (unit, resamples)
        if key not in self._resampled:
            self._resampled[key] = bootstrap_ranking(
                self.labels,
                self.scores,
                stream_key=f"{self.seed}:{self.name}:{unit}",
                resamples=resamples,
                unit_index=self.groups if unit == "group" else None,
            )
        return self._resampled[key]

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


def label_matrix(table: Table, findings: Sequence[str]) -> NDArray[np.int8]:
    """Return the labels [n_items, n_findings] of a table whose cells are all `1` or `0`."""
    return np.array([[cell == "1" for cell in table.column(name)] for name in findings], dtype=np.int8).T


def _probe(
    task: FindingsTask, probe: Probe, given: EvaluationInput, result: Evaluation
) -> tuple[dict[str, Floats], dict[str, str]]:
    """Fit one head per finding on the frozen subset; return the scores of every other subset, and what is undefined."""
    train = given.subsets[probe.fit_on]
    labels = label_matrix(train, task.column_names)
    order = np.array(seed_hash_order(given.seed, train.item_ids))
    settings = ProbeSettings(
        C=tuple(probe.C),
        folds=probe.folds,
        standardize=probe.standardize,
        select_by=probe.select_by,
        solver=probe.solver,
        max_iter=probe.max_iter,
        tol=probe.tol,
        class_weight=probe.class_weight,
    )
    names = sorted(given.predictions)
    bounds = np.cumsum([len(given.predictions[name]) for name in names])[:-1]
    stacked = np.concatenate([given.predictions[name] for name in names])
    columns, undefined = [], {}
    for column, finding in enumerate(task.column_names):
        folds = stratified_folds(labels[:, column], order, probe.folds)
        fit, reason = fit_probe(given.predictions[probe.fit_on], labels[:, column], stacked, settings, folds)
        if fit is None:
            undefined[finding] = reason
            columns.append(np.zeros(len(stacked)))
            result.fitted[finding] = {"reason": reason}
            continue
        columns.append(fit.scores)
        result.fitted[finding] = {
            "C": fit.C,
            "coefficients": fit.coefficients.tolist(),
            "intercept": fit.intercept,
            "converged": fit.converged,
            "n_cv_not_converged": fit.n_cv_not_converged,
            "cv_log_loss": {repr(C): loss for C, loss in fit.cv_log_loss.items()},
            "n_positive": int(labels[:, column].sum()),
            "n_items": len(train),
        }
    unconverged = [name for name, fit in result.fitted.items() if fit.get("converged") is False]
    if unconverged:
        text = f"the fit did not converge for {listed(unconverged)}"
        result.notes.append(Issue("note", "protocol probe", text, "Its scores depend on the machine"))
    return dict(zip(names, np.split(np.stack(columns, axis=1), bounds), strict=True)), undefined
