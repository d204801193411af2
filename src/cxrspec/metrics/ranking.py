"""Own the point values of the ranking metrics, and what makes a column of scores suspicious.

Pure functions of arrays. Undefined is None, never 0 or NaN; nothing here resamples, averages or prints.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

COARSE_DISTINCT = 50
"""Fewer distinct scores than this call a column coarse."""
COARSE_TIED_SHARE = 0.01
"""A larger share of tied positive/negative pairs than this calls a column coarse."""

Labels = NDArray[np.integer[Any] | np.bool_]
Floats = NDArray[np.float64]
Sums = NDArray[Any]
"""Integers without weights, floats with them."""


def roc_auc(labels: Labels, scores: Floats, weights: Floats | None = None) -> float | None:
    """Return the area under the ROC curve, or None where a class is missing.

    It is the probability that a positive scores higher than a negative, a tie counting one half (Hanley and
    McNeil 1982). Without weights every sum is one of integers, so the only rounding is the last division.

    Args:
        labels: [n], 1 is positive and 0 negative.
        scores: [n], finite; only their order matters.
        weights: [n], finite and not negative; items of weight 0 do not exist.

    Raises:
        ValueError: the arrays differ in length or hold other values.
    """
    positives, negatives = tie_groups(labels, scores, weights)
    pairs = positives.sum() * negatives.sum()
    if not pairs:
        return None
    negatives_below = np.cumsum(negatives) - negatives
    return float((positives * (2 * negatives_below + negatives)).sum() / (2 * pairs))


def average_precision(labels: Labels, scores: Floats, weights: Floats | None = None) -> float | None:
    """Return average precision by scikit-learn's definition, or None where a class is missing.

    AP = sum over thresholds of (R_k - R_(k-1)) P_k, without interpolation; tied items share one threshold. It is
    undefined without positives, and called so without negatives too, where it could only be 1.

    Args:
        labels: [n], 1 is positive and 0 negative.
        scores: [n], finite; only their order matters.
        weights: [n], finite and not negative; items of weight 0 do not exist.

    Raises:
        ValueError: the arrays differ in length or hold other values.
    """
    positives, negatives = (groups[::-1] for groups in tie_groups(labels, scores, weights))
    if not positives.sum() or not negatives.sum():
        return None
    true_positives = np.cumsum(positives)
    precision = true_positives / (true_positives + np.cumsum(negatives))
    return float((positives * precision).sum() / true_positives[-1])


def undefined_reason(labels: Labels) -> str:
    """Say why a ranking metric of these labels [n] is undefined; an empty string where it is defined."""
    n, n_positive = len(labels), int(np.count_nonzero(labels))
    if not n:
        return "no items"
    if 0 < n_positive < n:
        return ""
    return f"no {'negative' if n_positive else 'positive'} among {n:,} item{'s' if n > 1 else ''}"


def count_distinct(scores: Floats) -> int:
    """Count the distinct values of a column of scores [n]."""
    return int(np.unique(scores).size)


def is_constant(scores: Floats) -> bool:
    """Tell whether every item has the same score, which makes the ROC-AUC 0.5 by construction."""
    return count_distinct(scores) == 1


def tied_pair_share(labels: Labels, scores: Floats) -> float | None:
    """Return the share of positive/negative pairs with equal scores, in [0, 1]; None where a class is missing.

    Raises:
        ValueError: the arrays differ in length or hold other values than `roc_auc` takes.
    """
    positives, negatives = tie_groups(labels, scores, None)
    pairs = positives.sum() * negatives.sum()
    return float((positives * negatives).sum() / pairs) if pairs else None


def is_coarse(labels: Labels, scores: Floats) -> bool:
    """Tell whether rounding made so many ties that the ranking rests on few values.

    Coarse is fewer than 50 distinct scores (fewer than n where n is smaller), or more than 1 % tied
    positive/negative pairs.

    Raises:
        ValueError: the arrays differ in length or hold other values than `roc_auc` takes.
    """
    share = tied_pair_share(labels, scores) or 0.0
    return count_distinct(scores) < min(COARSE_DISTINCT, len(scores)) or share > COARSE_TIED_SHARE


def check_binary(labels: Labels, scores: Floats, ndim: int) -> None:
    """Refuse labels other than 0 and 1, scores that are not finite, and shapes that differ or are not `ndim`-D.

    Raises:
        ValueError: any of these; the caller has let unread values through.
    """
    if labels.shape != scores.shape or labels.ndim != ndim:
        raise ValueError(f"labels of shape {labels.shape} and scores of shape {scores.shape} must be equal, {ndim}-D")
    if not ((labels == 0) | (labels == 1)).all():
        raise ValueError("labels must be 0 or 1")
    if not np.isfinite(scores).all():
        raise ValueError("scores must be finite")


def tie_groups(labels: Labels, scores: Floats, weights: Floats | None) -> tuple[Sums, Sums]:
    """Return the weight of positives and of negatives at each distinct score, ascending; integers without weights."""
    labels, scores = np.asarray(labels), np.asarray(scores, np.float64)
    check_binary(labels, scores, ndim=1)
    weight = _checked_weights(weights, len(labels))
    labels, scores, weight = labels[weight > 0], scores[weight > 0], weight[weight > 0]
    order = np.argsort(scores)
    ordered, positive = scores[order], (weight * (labels == 1))[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    if not starts.size:
        return positive, positive
    return np.add.reduceat(positive, starts), np.add.reduceat(weight[order] - positive, starts)


def _checked_weights(weights: Floats | None, n: int) -> Sums:
    if weights is None:
        return np.ones(n, np.int64)
    weight = np.asarray(weights, np.float64)
    if weight.shape != (n,) or not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError(f"weights must be {n} finite numbers, none negative")
    return weight
