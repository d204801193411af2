"""Own the probes of the findings task: one head per finding, fitted on the frozen subset as the definition says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from cxrspec.digest import seed_hash_order
from cxrspec.errors import Issue, listed
from cxrspec.metrics import ProbeSettings, fit_probe, stratified_folds
from cxrspec.metrics.uncertain import policy_labels
from cxrspec.tasks.findings.labels import BLANK, NEGATIVE, POSITIVE, UNCERTAIN
from cxrspec.tasks.task import Evaluation, EvaluationInput

if TYPE_CHECKING:
    from cxrspec.tasks.findings import FindingsTask, Probe

Floats = NDArray[np.float64]

_NUMBERS: Final = {POSITIVE: 1, NEGATIVE: 0, UNCERTAIN: -1, BLANK: 0}
"""What a training label is fitted as; a finding that is not mentioned counts as negative."""


def fit_probes(
    task: FindingsTask, probe: Probe, given: EvaluationInput, result: Evaluation
) -> tuple[dict[str, Floats], dict[str, str]]:
    """Fit one head per finding on the frozen subset; return the scores of every other subset, and what is undefined."""
    train = given.subsets[probe.fit_on]
    order = np.array(seed_hash_order(given.seed, train.item_ids))
    names = sorted(given.predictions)
    bounds = np.cumsum([len(given.predictions[name]) for name in names])[:-1]
    stacked = np.concatenate([given.predictions[name] for name in names])
    columns, undefined = [], {}
    for finding in task.finding_names:
        cells, settings = train.column(finding), _settings(probe, finding)
        labels = policy_labels(np.array([_NUMBERS[cell] for cell in cells], dtype=np.int8), settings.uncertain)
        folds = stratified_folds(labels, order, probe.folds)
        fit, reason = fit_probe(given.predictions[probe.fit_on], labels, stacked, settings, folds)
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
            "n_positive": cells.count(POSITIVE),
            "n_items": len(train),
        }
        if settings.uncertain:
            counts = {"n_uncertain": cells.count(UNCERTAIN), "n_blank": cells.count(BLANK)}
            result.fitted[finding] |= {"uncertain": settings.uncertain, **counts}
    result.notes += _notes(probe, result.fitted)
    return dict(zip(names, np.split(np.stack(columns, axis=1), bounds), strict=True)), undefined


def _settings(probe: Probe, finding: str) -> ProbeSettings:
    return ProbeSettings(
        C=tuple(probe.C),
        folds=probe.folds,
        standardize=probe.standardize,
        select_by=probe.select_by,
        solver=probe.solver,
        max_iter=probe.max_iter,
        tol=probe.tol,
        class_weight=probe.class_weight,
        uncertain=(probe.uncertain or {}).get(finding),
    )


def _notes(probe: Probe, fitted: Mapping[str, Mapping[str, Any]]) -> Iterator[Issue]:
    """Yield notes on fits that did not converge, and on what was made of uncertain and blank labels."""
    if unconverged := [name for name, fit in fitted.items() if fit.get("converged") is False]:
        text = f"the fit did not converge for {listed(unconverged)}"
        yield Issue("note", "protocol probe", text, "Its scores depend on the machine")
    counts = {name: fit for name, fit in fitted.items() if fit.get("uncertain")}
    if counts:
        shown = listed([f"{name} {fit['n_uncertain']:,} by {fit['uncertain']}" for name, fit in counts.items()], 20)
        text = f"uncertain labels of {probe.fit_on}: {shown}"
        n_blank = sum(fit["n_blank"] for fit in counts.values())
        yield Issue("note", "protocol probe", f"{text}; blank ones counted as negative: {n_blank:,}")
