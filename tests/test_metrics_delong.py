"""DeLong's variance, interval and test against O(n^2) computations in exact fractions, ties included."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import false_discovery_control, norm
from sklearn.metrics import roc_auc_score

from cxrspec.metrics.delong import (
    MAX_ITEMS,
    adjusted_p_values,
    delong_interval,
    delong_test,
    delong_variance,
)


def placements(labels: np.ndarray, scores: np.ndarray) -> tuple[list[Fraction], list[Fraction]]:
    """Return the share of the other class that each positive, and each negative, is on the right side of."""
    kernel = {True: Fraction(1), False: Fraction(0)}
    pairs = [
        [Fraction(1, 2) if p == n else kernel[p > n] for n in scores[labels == 0].tolist()]
        for p in scores[labels == 1].tolist()
    ]
    rows = [sum(row) / len(row) for row in pairs]
    return rows, [sum(column) / len(column) for column in zip(*pairs, strict=True)]


def variance_of_mean(values: list[Fraction]) -> Fraction:
    """Return the sample variance divided by the number of values."""
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)


def pairwise_variance(labels: np.ndarray, *rankings: np.ndarray) -> float:
    """Return DeLong's variance of one ROC-AUC, or of the first minus the second."""
    found = [placements(labels, scores) for scores in rankings]
    if len(found) == 1:
        return float(sum(map(variance_of_mean, found[0])))
    first, second = found
    differences = [[a - b for a, b in zip(*pair, strict=True)] for pair in zip(first, second, strict=True)]
    return float(sum(map(variance_of_mean, differences)))


@st.composite
def tied_items(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels with two of each class, and two rankings of few distinct scores."""
    n = draw(st.integers(4, 20))
    labels = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n).filter(lambda y: 2 <= sum(y) <= len(y) - 2))
    scores = [draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n)) for _ in range(2)]
    return np.array(labels), np.array(scores[0]) / 4, np.array(scores[1]) / 4


def synthetic(n: int, shift: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels and two related rankings rounded to three decimals."""
    rng = np.random.default_rng(0)
    labels = (rng.random(n) < 0.2).astype(np.int8)
    first = np.round(rng.normal(size=n) + shift * labels, 3)
    return labels, first, np.round(first + 0.3 * rng.normal(size=n), 3)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(items=tied_items())
def test_variance_is_that_of_all_pairs(items):
    """With ties the variance is that of the O(n^2) placements, to 1e-12 of itself."""
    labels, scores, _ = items
    assert pairwise_variance(labels, scores) == pytest.approx(delong_variance(labels, scores), rel=1e-12)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(items=tied_items())
def test_variance_of_a_difference_is_that_of_all_pairs(items):
    """The paired variance counts what both rankings share, to 1e-12 of itself."""
    labels, first, second = items
    assert pairwise_variance(labels, first, second) == pytest.approx(
        delong_test(labels, first, second).variance, rel=1e-12
    )


def test_variance_keeps_its_digits_near_one():
    """At a ROC-AUC of 0.9999 no digit is lost to the subtraction of nearly equal numbers."""
    labels, scores = np.repeat([0, 1], [150, 150]), np.arange(300.0)
    scores[[149, 150]] = scores[[150, 149]]
    assert pairwise_variance(labels, scores) == pytest.approx(delong_variance(labels, scores), rel=1e-15)


def test_difference_is_that_of_scikit_learn():
    """Delta is the first ROC-AUC minus the second."""
    labels, first, second = synthetic(500)
    expected = roc_auc_score(labels, first) - roc_auc_score(labels, second)
    assert expected == pytest.approx(delong_test(labels, first, second).delta, abs=1e-15)


@pytest.mark.parametrize("one_sided", [False, True])
def test_p_is_that_of_the_normal_distribution(one_sided):
    """The z is delta over its standard error; the two-sided p doubles the tail of |z|."""
    labels, first, second = synthetic(500)
    found = delong_test(labels, first, second, one_sided=one_sided)
    z = found.delta / math.sqrt(pairwise_variance(labels, first, second))
    assert (norm.sf(z) if one_sided else 2 * norm.sf(abs(z))) == pytest.approx(found.p, rel=1e-12)


def test_swapping_the_rankings_mirrors_the_test():
    """First against second and second against first share the two-sided p; the one-sided ones add up to 1."""
    labels, first, second = synthetic(500)
    there, back = (delong_test(labels, *pair) for pair in ((first, second), (second, first)))
    sides = [delong_test(labels, *pair, one_sided=True).p for pair in ((first, second), (second, first))]
    assert (-there.delta, there.p, 1.0) == (back.delta, back.p, pytest.approx(sum(sides)))


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_interval_is_symmetric_on_the_logit_scale(level):
    """logit(AUROC) plus and minus the normal quantile times the standard error on that scale."""
    labels, scores, _ = synthetic(400)
    auc = roc_auc_score(labels, scores)
    half = norm.isf((1 - level) / 2) * math.sqrt(delong_variance(labels, scores)) / (auc * (1 - auc))
    found = delong_interval(labels, scores, level)
    assert [expit(logit(auc) - half), expit(logit(auc) + half)] == pytest.approx([found.low, found.high], rel=1e-12)


@pytest.mark.parametrize("side", [1, -1])
def test_interval_near_one_stays_inside(side):
    """Where the plain interval would leave [0, 1], this one does not, and it holds the value."""
    labels, scores = np.repeat([0, 1], 20), side * np.arange(40.0)
    scores[[19, 20]] = scores[[20, 19]]
    auc, reach = roc_auc_score(labels, scores), norm.isf(0.025) * math.sqrt(delong_variance(labels, scores))
    found = delong_interval(labels, scores, 0.95)
    assert min(auc - reach, 1 - auc - reach) < 0 < found.low < auc < found.high < 1


@pytest.mark.parametrize(
    ("labels", "scores", "reason"),
    [
        ([0, 0, 1, 1], [1, 2, 3, 4], "variance is 0 at a ROC-AUC of 1"),
        ([1, 1, 0, 0], [1, 2, 3, 4], "variance is 0 at a ROC-AUC of 0"),
        ([0, 0, 1, 1], [5, 5, 5, 5], "variance is 0 at a ROC-AUC of 0.5"),
        ([0, 0, 1], [1, 3, 2], "two positives and two negatives"),
        ([0, 0], [1, 3], "no positive among 2 items"),
        ([], [], "no items"),
    ],
)
def test_no_interval_without_a_variance(labels, scores, reason):
    """S1: where the variance cannot be estimated there is no interval, and the reason says why."""
    found = delong_interval(np.array(labels, int), np.array(scores, float), 0.95)
    assert found.low is None
    assert reason in found.reason


@pytest.mark.parametrize(
    ("labels", "scores", "reason"),
    [
        ([0, 1, 0, 1], [1, 2, 3, 4], "difference is 0"),
        ([0, 0, 1], [1, 3, 2], "two positives"),
        ([1, 1], [1, 2], "no negative"),
    ],
)
def test_no_test_without_a_variance(labels, scores, reason):
    """Rankings that order every pair alike, and too few items, give no p and say why."""
    scores = np.array(scores, float)
    found = delong_test(np.array(labels), scores, 2 * scores)
    assert found.p is None
    assert reason in found.reason


def test_too_many_items_for_exact_sums():
    """Beyond 64-bit sums the variance is refused, not wrong."""
    many = np.zeros(MAX_ITEMS + 1)
    with pytest.raises(ValueError, match="up to 2,097,152 items"):
        delong_variance(many.astype(np.int8), many)


def test_largest_sums_fit():
    """At the limit the sums of squares stay within 64 bits: the variance is that of the formula without ties."""
    n = MAX_ITEMS // 2
    labels, scores = np.tile([0, 1], n), np.arange(2.0 * n)
    # positive i (0-based) is above i + 1 of n negatives, negative j below n - j of n positives
    expected = 2 * (n + 1) * n / 12 / n**2 / n
    assert expected == pytest.approx(delong_variance(labels, scores), rel=1e-12)


def test_level_outside_its_range_is_refused():
    """A level is a share."""
    with pytest.raises(ValueError, match=r"1.5 interval"):
        delong_interval(np.array([0, 1]), np.array([0.0, 1.0]), 1.5)


def test_adjusted_p_by_hand():
    """Benjamini-Hochberg: p times tests over rank, made monotone from the largest down."""
    third = 4 * 0.021 / 3  # below 4 * 0.02 / 2, which is taken down to it
    assert pytest.approx([0.04, third, third, 0.02]) == adjusted_p_values([0.04, 0.021, 0.02, 0.005])


def test_tests_that_were_not_made_are_not_counted():
    """A null p stays null and does not enlarge the family."""
    expected = false_discovery_control([0.01, 0.04]).tolist()
    assert [expected[0], None, expected[1]] == adjusted_p_values([0.01, None, 0.04])
    assert [None] == adjusted_p_values([None])


def compared(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return twice how many of the others are below each value, a tie counting half, over all pairs."""
    below, tied = np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
    for part in np.array_split(others, 64):
        below += (part < values[:, None]).sum(axis=1)
        tied += (part == values[:, None]).sum(axis=1)
    return 2 * below + tied


def test_at_the_size_of_the_nih_test_list_every_pair_counts():
    """At n = 25,596, with ties, variance and paired test are those of all 66 million pairs, to 1e-12 of themselves."""
    labels, first, second = synthetic(25_596)
    found = []
    for scores in (first, second):
        positives, negatives = scores[labels == 1], scores[labels == 0]
        found.append((compared(positives, negatives), 2 * len(positives) - compared(negatives, positives)))
    sizes = [2 * len(found[0][1]), 2 * len(found[0][0])]
    single, paired = (
        sum(np.var(np.array(d) / size, ddof=1) / len(d) for d, size in zip(of_both, sizes, strict=True))
        for of_both in (found[0], [a - b for a, b in zip(*found, strict=True)])
    )
    assert single == pytest.approx(delong_variance(labels, first), rel=1e-12)
    assert paired == pytest.approx(delong_test(labels, first, second).variance, rel=1e-12)
