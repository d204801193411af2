"""Own the numbers: pure functions of arrays, and `RANKING_METRICS`, the one dictionary that is their registry.

Nothing here reads files, knows items or definitions, or imports SciPy and scikit-learn before they are used.
"""

from __future__ import annotations

from collections.abc import Callable

from cxrspec.metrics.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha
from cxrspec.metrics.answers import Reading, Readings, clashing_phrases, exact_match, leading_polarity, token_f1, words
from cxrspec.metrics.boxes import match_boxes, stack_boxes
from cxrspec.metrics.delong import adjusted_p_values, delong_interval, delong_test, delong_variance
from cxrspec.metrics.heatmaps import heatmap_boxes
from cxrspec.metrics.intervals import (
    BLOCK,
    Interval,
    bootstrap_p_value,
    bootstrap_ranking,
    mean_over_findings,
    percentile_interval,
    resample_counts,
    resample_indices,
)
from cxrspec.metrics.probe import ProbeFit, ProbeSettings, fit_probe, stratified_folds, undefined_probe_reason
from cxrspec.metrics.ranking import (
    average_precision,
    count_distinct,
    is_coarse,
    is_constant,
    roc_auc,
    tied_pair_share,
    undefined_reason,
)
from cxrspec.metrics.readers import (
    CurvePoints,
    ReaderPoint,
    curve_points,
    curve_value,
    is_below,
    majority_vote,
    reader_margin,
    reader_point,
)

RANKING_METRICS: dict[str, Callable[..., float | None]] = {
    "roc_auc": roc_auc,
    "average_precision": average_precision,
}
"""Name: point function of (labels, scores, weights=None). `bootstrap_ranking` knows the same names."""

__all__ = [
    "BLOCK",
    "RANKING_METRICS",
    "CurvePoints",
    "Interval",
    "ProbeFit",
    "ProbeSettings",
    "ReaderPoint",
    "Reading",
    "Readings",
    "adjusted_p_values",
    "average_precision",
    "bootstrap_p_value",
    "bootstrap_ranking",
    "clashing_phrases",
    "cohen_kappa",
    "count_distinct",
    "curve_points",
    "curve_value",
    "delong_interval",
    "delong_test",
    "delong_variance",
    "exact_match",
    "fit_probe",
    "fleiss_kappa",
    "heatmap_boxes",
    "is_below",
    "is_coarse",
    "is_constant",
    "krippendorff_alpha",
    "leading_polarity",
    "majority_vote",
    "match_boxes",
    "mean_over_findings",
    "percentile_interval",
    "reader_margin",
    "reader_point",
    "resample_counts",
    "resample_indices",
    "roc_auc",
    "stack_boxes",
    "stratified_folds",
    "tied_pair_share",
    "token_f1",
    "undefined_probe_reason",
    "undefined_reason",
    "words",
]
