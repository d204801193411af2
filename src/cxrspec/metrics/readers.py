"""Own empirical curves and the readers below them: vertices of ROC and precision-recall, readers' points, margins.

Pure functions of arrays; who is a reader, and which conventions count, is for the caller to say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from cxrspec.metrics.ranking import Labels, tie_groups

Floats = NDArray[np.float64]
Curve = Literal["roc", "precision_recall", "both"]
Line = Literal["step", "interpolated"]
Ties = Literal["strict", "inclusive"]

MARGIN: Final = 1e-12
"""Rates that differ by no more than this are equal."""


@dataclass(frozen=True, slots=True, eq=False)
class CurvePoints:
    """The vertices of an empirical curve, from the highest threshold down; the first calls no item positive."""

    thresholds: Floats
    """[k]: +infinity, then every distinct score; an item is called positive at or above it."""
    true_positives: Floats
    """[k], counts or weights."""
    false_positives: Floats
    """[k], counts or weights."""

    @property
    def true_positive_rate(self) -> Floats:
        """Sensitivity, which is recall [k], from 0 to 1."""
        return np.asarray(self.true_positives / self.true_positives[-1])

    @property
    def false_positive_rate(self) -> Floats:
        """1 - specificity [k], from 0 to 1."""
        return np.asarray(self.false_positives / self.false_positives[-1])

    @property
    def precision(self) -> Floats:
        """Share of the called items that are positive [k]; NaN where nothing is called."""
        called = self.true_positives + self.false_positives
        return np.asarray(np.divide(self.true_positives, called, out=np.full(len(called), np.nan), where=called > 0))


@dataclass(frozen=True, slots=True)
class ReaderPoint:
    """What one reader's yes and no come to against the reference standard."""

    sensitivity: float
    specificity: float
    precision: float | None
    """None where the reader calls nothing positive."""
    reason: str = ""
    """Why the precision is None."""

    @property
    def false_positive_rate(self) -> float:
        """1 - specificity."""
        return 1 - self.specificity


def curve_points(labels: Labels, scores: Floats, weights: Floats | None = None) -> CurvePoints | None:
    """Return the vertices of the empirical ROC and precision-recall curve, or None where a class is missing.

    Args:
        labels: [n], 1 is positive and 0 negative.
        scores: [n], finite; tied items share one threshold.
        weights: [n], finite and not negative; items of weight 0 do not exist.

    Raises:
        ValueError: the arrays differ in length or hold other values.
    """
    positives, negatives = (groups[::-1] for groups in tie_groups(labels, scores, weights))
    if not positives.sum() or not negatives.sum():
        return None
    there = np.asarray(scores, np.float64)
    distinct = np.unique(there if weights is None else there[np.asarray(weights) > 0])[::-1]
    true_positives, false_positives = (np.append(0.0, np.cumsum(groups)) for groups in (positives, negatives))
    return CurvePoints(np.append(np.inf, distinct), true_positives, false_positives)


def reader_point(labels: Labels, reads: Labels, weights: Floats | None = None) -> ReaderPoint | None:
    """Return sensitivity, specificity and precision of a reader's calls, or None where a class is missing.

    Args:
        labels: [n], 1 is positive and 0 negative.
        reads: [n], 1 where the reader calls the item positive, else 0.
        weights: [n], finite and not negative.

    Raises:
        ValueError: the arrays differ in length or hold other values.
    """
    if not np.isin(reads, (0, 1)).all():
        raise ValueError("reads must be 0 or 1")
    points = curve_points(labels, np.asarray(reads, np.float64), weights)
    if points is None:
        return None
    if 1 not in points.thresholds:
        return ReaderPoint(0.0, 1.0, None, "calls nothing positive")
    sensitivity, false_positive_rate = float(points.true_positive_rate[1]), float(points.false_positive_rate[1])
    return ReaderPoint(sensitivity, 1 - false_positive_rate, float(points.precision[1]))


def majority_vote(reads: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return the majority [n] of an odd number of readers' calls [n, n_readers].

    Raises:
        ValueError: the number of readers is even, so that a vote may be tied.
    """
    n_readers = reads.shape[1]
    if n_readers % 2 == 0:
        raise ValueError(f"{n_readers} readers may be tied")
    return np.asarray(2 * reads.sum(axis=1) > n_readers, np.int8)


def reader_margin(points: CurvePoints, reader: ReaderPoint, curve: Curve, line: Line) -> float | None:
    """Return how far the curve lies above a reader; None on precision-recall if the reader calls nothing positive.

    On ROC it is the true-positive rate of the curve at the reader's false-positive rate, minus the reader's. By `step`
    that is the best rate among thresholds whose false-positive rate does not exceed the reader's (0 left of the first
    vertex that calls anything), `interpolated` the straight line between the vertices. On precision-recall it is the
    best precision among thresholds whose recall is at least the reader's, minus the reader's; `interpolated` adds the
    precision that is achievable at the reader's recall (Davis and Goadrich 2006), which is no straight line. `both` is
    the smaller of the two.
    """
    margins = []
    if curve != "precision_recall":
        margins.append(curve_value(points, reader.false_positive_rate, "roc", line) - reader.sensitivity)
    if curve != "roc":
        if reader.precision is None:
            return None
        margins.append(curve_value(points, reader.sensitivity, "precision_recall", line) - reader.precision)
    return min(margins)


def curve_value(points: CurvePoints, at: float, curve: Literal["roc", "precision_recall"], line: Line) -> float:
    """Return how high the curve is that `reader_margin` holds a reader against: what it reads at a rate in [0, 1].

    On ROC the rate is a false-positive rate and the value a true-positive rate; on precision-recall it is a recall and
    the value a precision.
    """
    return (_ROC if curve == "roc" else _PRECISION)[line](points, at)


def is_below(margin: float, ties: Ties) -> bool:
    """Tell whether a reader counts as below: above by more than 1e-12, or `inclusive` of being on the curve."""
    return margin > MARGIN if ties == "strict" else margin >= -MARGIN


def _step_roc(points: CurvePoints, false_positive_rate: float) -> float:
    reached = points.false_positive_rate <= false_positive_rate + MARGIN
    return float(points.true_positive_rate[reached].max())


def _line_roc(points: CurvePoints, false_positive_rate: float) -> float:
    """Interpolate between the vertices; above a vertical piece the best of it, so never below the step."""
    step = _step_roc(points, false_positive_rate)
    return max(step, float(np.interp(false_positive_rate, points.false_positive_rate, points.true_positive_rate)))


def _step_precision(points: CurvePoints, recall: float) -> float:
    reached = points.true_positive_rate >= recall - MARGIN
    return float(np.nanmax(points.precision[reached]))


def _line_precision(points: CurvePoints, recall: float) -> float:
    """Take false positives as linear in true positives between two vertices, the fewest where several are possible."""
    best = _step_precision(points, recall)
    rates = points.true_positive_rate
    right = int(np.argmax(rates >= recall - MARGIN))
    if right == 0 or recall <= 0:
        return best
    part = (recall - rates[right - 1]) / (rates[right] - rates[right - 1])
    below, above = points.false_positives[[right - 1, right]]
    true_positives = recall * points.true_positives[-1]
    return max(best, float(true_positives / (true_positives + below + part * (above - below))))


_ROC: Final[dict[Line, Callable[[CurvePoints, float], float]]] = {"step": _step_roc, "interpolated": _line_roc}
_PRECISION: Final[dict[Line, Callable[[CurvePoints, float], float]]] = {
    "step": _step_precision,
    "interpolated": _line_precision,
}
