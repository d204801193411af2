"""Own the points of ROC and precision-recall curves; pure functions of arrays, one point per distinct score."""

from __future__ import annotations

import numpy as np

from cxrspec.metrics.ranking import Floats, Labels, tie_groups


def roc_points(labels: Labels, scores: Floats) -> tuple[Floats, Floats] | None:
    """Return false and true positive rate [k + 1] from (0, 0) to (1, 1), or None where a class is missing.

    Args:
        labels: [n], 1 is positive and 0 negative.
        scores: [n], finite; tied items share one point.

    Raises:
        ValueError: the arrays differ in length or hold other values.
    """
    counts = _cumulative(labels, scores)
    if counts is None:
        return None
    true, false = counts
    return np.append(0.0, false / false[-1]), np.append(0.0, true / true[-1])


def precision_recall_points(labels: Labels, scores: Floats) -> tuple[Floats, Floats] | None:
    """Return recall and precision [k] by falling threshold, the last at recall 1; None where a class is missing.

    Average precision is the sum of the steps of recall times the precision at their end; nothing is interpolated.

    Args:
        labels: [n], 1 is positive and 0 negative.
        scores: [n], finite; tied items share one point.

    Raises:
        ValueError: the arrays differ in length or hold other values.
    """
    counts = _cumulative(labels, scores)
    if counts is None:
        return None
    true, false = counts
    return true / true[-1], true / (true + false)


def _cumulative(labels: Labels, scores: Floats) -> tuple[Floats, Floats] | None:
    """Return true and false positives [k] at each distinct score, highest first."""
    positives, negatives = (np.cumsum(groups[::-1]) for groups in tie_groups(labels, scores, None))
    return (positives, negatives) if len(positives) and positives[-1] and negatives[-1] else None
