"""Own DeLong's variance of a ROC-AUC, its interval, and the paired test of two rankings of the same items.

Sources: DeLong, DeLong and Clarke-Pearson 1988; Sun and Xu 2014 (midranks); Pepe 2003, chapter 5 (logit scale). Every
sum is one of integers and every value is rounded once, so ties are exact. Items are independent here: groups are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cxrspec.metrics.intervals import Interval
from cxrspec.metrics.ranking import Labels, check_binary, count_groups, group_starts, tie_groups, undefined_reason

MAX_ITEMS: Final = 1 << 21
"""Above this the sums of squares could leave 64 bits."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def delong_variance(labels: Labels, scores: Floats) -> float | None:
    """Return DeLong's variance of the ROC-AUC, or None where a class has fewer than two items.

    Args:
        labels: [n], 1 is positive and 0 negative.
        scores: [n], finite; only their order matters.

    Raises:
        ValueError: the arrays differ in length or hold other values, or there are more than 2^21 items.
    """
    positives, negatives = tie_groups(*_checked(labels, scores), None)
    n_positive, n_negative = int(positives.sum()), int(negatives.sum())
    if min(n_positive, n_negative) < 2:
        return None
    of_positives = _doubled_below(negatives)
    of_negatives = _doubled_below(positives)
    return _variance(
        (n_positive, int((positives * of_positives).sum()), int((positives * of_positives**2).sum())),
        (n_negative, int((negatives * of_negatives).sum()), int((negatives * of_negatives**2).sum())),
    )


def delong_interval(labels: Labels, scores: Floats, level: float) -> Interval:
    """Return the interval of the ROC-AUC by DeLong's variance, symmetric on the logit scale, so inside (0, 1).

    There is none, with the reason, where a class has fewer than two items, and where the ROC-AUC is 0 or 1: the
    variance is 0 there, which says that it cannot be estimated, not that the value is certain.

    Raises:
        ValueError: as `delong_variance` does, or level is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"cannot take a {level} interval")
    variance = delong_variance(labels, scores)
    if variance is None:
        return Interval(None, None, 0, 0, undefined_reason(labels) or _FEW)
    right, wrong = _pairs(*tie_groups(*_checked(labels, scores), None))
    if not right or not wrong or not variance:
        return Interval(None, None, 0, 0, f"DeLong's variance is 0 at a ROC-AUC of {right / (right + wrong):g}")
    pairs = right + wrong
    half_width = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(variance) * (pairs / right) * (pairs / wrong)
    low, high = (1 / (1 + wrong / right * math.exp(sign * half_width)) for sign in (1, -1))
    return Interval(low, high, 0, 0)


@dataclass(frozen=True, slots=True)
class Difference:
    """ROC-AUC of the first ranking minus that of the second, with DeLong's test of it; undefined parts are None."""

    delta: float | None
    variance: float | None
    z: float | None
    p: float | None
    reason: str = ""
    """Why a part is None; empty where all are numbers."""


def delong_test(labels: Labels, first: Floats, second: Floats, *, one_sided: bool = False) -> Difference:
    """Test whether two rankings of the same items have the same ROC-AUC, against the normal distribution.

    The alternative is that they differ, or with `one_sided` that the first is larger. Where the variance of the
    difference is 0 nothing can be tested.

    Args:
        labels: [n], 1 is positive and 0 negative.
        first: [n], finite scores.
        second: [n], finite scores of the same items.
        one_sided: test for "larger" instead of "different".

    Raises:
        ValueError: as `delong_variance` does.
    """
    classes = np.asarray(labels) == 1
    differences = _placements(*_checked(labels, first)) - _placements(*_checked(labels, second))
    of_positives, of_negatives = (_sums(differences[chosen]) for chosen in (classes, ~classes))
    n_pairs = of_positives[0] * of_negatives[0]
    if not n_pairs:
        return Difference(None, None, None, None, undefined_reason(labels))
    delta = of_positives[1] / (2 * n_pairs)
    if min(of_positives[0], of_negatives[0]) < 2:
        return Difference(delta, None, None, None, _FEW)
    variance = _variance(of_positives, of_negatives)
    if not variance:
        return Difference(delta, variance, None, None, "DeLong's variance of the difference is 0")
    z = delta / math.sqrt(variance)
    p = math.erfc(z / math.sqrt(2)) / 2 if one_sided else math.erfc(abs(z) / math.sqrt(2))
    return Difference(delta, variance, z, p)


def adjusted_p_values(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Benjamini and Hochberg's (1995) adjusted p of each test; one that was not made stays None."""
    from scipy.stats import false_discovery_control

    made = [p for p in p_values if p is not None]
    adjusted = iter(false_discovery_control(made).tolist() if made else [])
    return [None if p is None else next(adjusted) for p in p_values]


_FEW: Final = "DeLong's variance needs two positives and two negatives"
_Sums = tuple[int, int, int]
"""Number, sum and sum of squares of the doubled placements of one class."""


def _checked(labels: Labels, scores: Floats) -> tuple[NDArray[np.bool_], Floats]:
    labels, scores = np.asarray(labels), np.asarray(scores, np.float64)
    check_binary(labels, scores, ndim=1)
    if len(labels) > MAX_ITEMS:
        raise ValueError(f"DeLong's variance is exact up to {MAX_ITEMS:,} items, not for {len(labels):,}")
    return labels == 1, scores


def _doubled_below(counts: Integers) -> Integers:
    """Return, per group, twice the items below it plus those in it: twice the midrank among them, an integer."""
    return 2 * np.cumsum(counts) - counts


def _pairs(positives: Integers, negatives: Integers) -> tuple[int, int]:
    """Return twice the pairs in the right and in the wrong order; a tie is half of each."""
    right = int((positives * _doubled_below(negatives)).sum())
    return right, 2 * int(positives.sum()) * int(negatives.sum()) - right


def _placements(positive: NDArray[np.bool_], scores: Floats) -> Integers:
    """Return twice each item's midrank among the items of the other class: [n]."""
    order = np.argsort(scores)
    ordered = positive[order]
    starts = group_starts(scores[order])
    positives, negatives = count_groups(ordered, starts)
    sizes = np.diff(starts, append=len(scores))
    below_negatives, below_positives = (np.repeat(_doubled_below(n), sizes) for n in (negatives, positives))
    placements = np.empty(len(scores), np.int64)
    placements[order] = np.where(ordered, below_negatives, below_positives)
    return placements


def _sums(doubled: Integers) -> _Sums:
    return len(doubled), int(doubled.sum()), int((doubled * doubled).sum())


def _variance(of_positives: _Sums, of_negatives: _Sums) -> float:
    """Return the variance of the mean placement of both classes, from doubled placements; Python's integers are exact.

    A placement is at most the size m of the other class, so the share is placement / (2 m).
    """
    total = 0.0
    for (n, first, second), (m, *_) in ((of_positives, of_negatives), (of_negatives, of_positives)):
        total += (n * second - first * first) / (4 * m * m * n * n * (n - 1))
    return total
