"""Point values of the ranking metrics against hand counts and scikit-learn."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from cxrspec.metrics import (
    RANKING_METRICS,
    average_precision,
    count_distinct,
    is_coarse,
    is_constant,
    roc_auc,
    tied_pair_share,
    undefined_reason,
)

SKLEARN = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}
# (labels, scores, ROC-AUC, average precision), counted by hand
KNOWN = [
    ([0, 1], [0.1, 0.9], 1.0, 1.0),
    ([1, 0], [0.1, 0.9], 0.0, 0.5),
    ([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], 0.75, (1 + 2 / 3) / 2),
    ([1, 0], [0.5, 0.5], 0.5, 0.5),
    ([1, 1, 0, 0], [0.7, 0.5, 0.5, 0.5], 0.75, (1 + 2 / 4) / 2),
    ([1, 0, 1, 0, 0], [3, 3, 2, 2, 1], (2.5 + 1.5) / 6, (1 / 2 + 2 / 4) / 2),
]


@st.composite
def tied_items(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels of both classes, scores from few values, small whole weights with both classes present."""
    n = draw(st.integers(2, 25))
    labels = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n).filter(lambda y: 0 < sum(y) < len(y)))
    scores = draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n))
    weights = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    weights[labels.index(0)] = weights[labels.index(1)] = 1
    return np.array(labels), np.array(scores) / 4, np.array(weights)


@pytest.mark.parametrize(("labels", "scores", "expected", "_"), KNOWN)
def test_roc_auc_by_hand(labels, scores, expected, _):
    """A pair in the right order counts 1, a tie 1/2."""
    assert expected == roc_auc(np.array(labels), np.array(scores))


@pytest.mark.parametrize("threshold", [0.03, 0.5, 0.9])
@pytest.mark.parametrize("kind", RANKING_METRICS)
def test_calibration_around_a_threshold_moves_no_ranking(kind, threshold):
    """S10: torchxrayvision maps each head's threshold to 0.5, piece by piece; the values change, the metrics do not."""
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 500), rng.permutation(500) / 500
    calibrated = np.where(scores < threshold, scores / (2 * threshold), 1 - (1 - scores) / (2 * (1 - threshold)))
    assert RANKING_METRICS[kind](labels, scores) == RANKING_METRICS[kind](labels, calibrated)


@pytest.mark.parametrize(("labels", "scores", "_", "expected"), KNOWN)
def test_average_precision_by_hand(labels, scores, _, expected):
    """Each positive counts the precision at its own threshold, which tied items share."""
    assert expected == pytest.approx(average_precision(np.array(labels), np.array(scores)), abs=1e-15)


@pytest.mark.parametrize("kind", RANKING_METRICS)
@settings(derandomize=True, deadline=None, max_examples=150)
@given(items=tied_items())
def test_ties_are_those_of_scikit_learn(kind, items):
    """With ties the values are scikit-learn's to 1e-12."""
    labels, scores, _ = items
    assert SKLEARN[kind](labels, scores) == pytest.approx(RANKING_METRICS[kind](labels, scores), abs=1e-12)


@pytest.mark.parametrize("kind", RANKING_METRICS)
@settings(derandomize=True, deadline=None, max_examples=100)
@given(items=tied_items())
def test_a_weight_is_a_number_of_copies(kind, items):
    """Weight w, 0 included, gives the value of w copies of the item."""
    labels, scores, weights = items
    expected = RANKING_METRICS[kind](np.repeat(labels, weights), np.repeat(scores, weights))
    assert expected == pytest.approx(RANKING_METRICS[kind](labels, scores, weights), abs=1e-12)


@pytest.mark.parametrize("kind", RANKING_METRICS)
def test_fractional_weights_are_those_of_scikit_learn(kind):
    """Weights need not be whole numbers."""
    rng = np.random.default_rng(0)
    labels, scores, weights = rng.integers(0, 2, 200), rng.integers(0, 30, 200) / 30, rng.random(200)
    expected = SKLEARN[kind](labels, scores, sample_weight=weights)
    assert expected == pytest.approx(RANKING_METRICS[kind](labels, scores, weights), abs=1e-12)


@pytest.mark.parametrize("kind", RANKING_METRICS)
@pytest.mark.parametrize("labels", [[0, 0], [1, 1], []])
def test_a_missing_class_is_undefined(kind, labels):
    """Trap S1: with one class only the value is None, not 0, 1 or NaN."""
    assert RANKING_METRICS[kind](np.array(labels, int), np.array([0.1, 0.9][: len(labels)])) is None


@pytest.mark.parametrize("kind", RANKING_METRICS)
def test_a_class_without_weight_is_undefined(kind):
    """Items of weight 0 do not exist, so they cannot stand for a class."""
    assert RANKING_METRICS[kind](np.array([0, 1]), np.array([0.1, 0.9]), np.array([1.0, 0.0])) is None


@pytest.mark.parametrize(
    ("expected", "labels"),
    [
        ("no positive among 1,200 items", [0] * 1200),
        ("no negative among 1 item", [1]),
        ("no items", []),
        ("", [0, 1]),
    ],
)
def test_the_reason_names_the_missing_class(expected, labels):
    """The reason of an undefined value says which class is missing among how many items."""
    assert expected == undefined_reason(np.array(labels))


@pytest.mark.parametrize("kind", RANKING_METRICS)
@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [
        ([0, 1], [0.1, np.nan], "finite"),
        ([0, 1], [0.1, np.inf], "finite"),
        ([-1, 1], [0.1, 0.2], "0 or 1"),
        ([0, 1, 1], [0.1, 0.2], "shape"),
        ([[0, 1]], [[0.1, 0.2]], "1-D"),
    ],
)
def test_unread_values_are_refused(kind, labels, scores, message):
    """Values that the reader of predictions must refuse never become a number."""
    with pytest.raises(ValueError, match=message):
        RANKING_METRICS[kind](np.array(labels), np.array(scores))


@pytest.mark.parametrize("weights", [[1.0, -1.0], [1.0, np.nan], [1.0]])
def test_faulty_weights_are_refused(weights):
    """A weight is finite, not negative, and there is one per item."""
    with pytest.raises(ValueError, match="weights must be 2"):
        roc_auc(np.array([0, 1]), np.array([0.1, 0.2]), np.array(weights))


def test_only_the_order_of_scores_matters():
    """Trap S6: log-odds give the ROC-AUC of the probabilities, outside [0, 1] or not."""
    labels, log_odds = np.array([0, 1, 0, 1, 1]), np.array([-3.2, 4.1, 0.3, -1.0, 0.2])
    assert roc_auc(labels, 1 / (1 + np.exp(-log_odds))) == roc_auc(labels, log_odds)


def test_rounding_makes_scores_coarse():
    """Trap S7: 200 items rounded to one decimal leave 11 values, which is coarse."""
    labels, scores = np.arange(200) % 2, np.linspace(0, 1, 200)
    assert (200, False) == (count_distinct(scores), is_coarse(labels, scores))
    assert (11, True) == (count_distinct(scores.round(1)), is_coarse(labels, scores.round(1)))


def test_many_tied_pairs_are_coarse_whatever_the_distinct_values():
    """Trap S7: more than 1 % tied positive/negative pairs are coarse among 90 distinct scores too."""
    labels, scores = np.arange(100) % 2, np.maximum(np.arange(100), 10)
    assert 90 == count_distinct(scores)
    assert 30 / 2500 == tied_pair_share(labels, scores)
    assert is_coarse(labels, scores)


def test_few_items_are_not_coarse_by_their_number():
    """Three items with three scores are not called coarse for having fewer than 50."""
    assert not is_coarse(np.array([0, 1, 1]), np.array([0.1, 0.2, 0.3]))


def test_tied_pairs_are_undefined_without_a_class():
    """Without pairs there is no share of them."""
    assert tied_pair_share(np.array([1, 1]), np.array([0.5, 0.5])) is None


def test_a_constant_column_is_named_and_scores_one_half():
    """Trap S11: the same score for every item is constant, and its ROC-AUC is 0.5 by construction."""
    labels, scores = np.array([0, 1, 0]), np.full(3, 0.5)
    assert is_constant(scores)
    assert 0.5 == roc_auc(labels, scores)
    assert not is_constant(np.array([0.5, 0.5, 0.51]))


def test_importing_metrics_leaves_scipy_and_scikit_learn_alone():
    """Commands start fast: the heavy libraries are imported where they are used."""
    code = "import sys, cxrspec.metrics; print(sorted({'scipy', 'sklearn', 'pandas'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == done.stdout.strip()
