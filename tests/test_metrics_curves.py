"""Points of curves against scikit-learn, and the areas under them against the metrics that they belong to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_curve, roc_curve

from cxrspec.metrics import average_precision, precision_recall_points, roc_auc, roc_points

RANKED = st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=2, max_size=40).filter(
    lambda rows: len({label for label, _ in rows}) == 2
)


def columns(rows: list[tuple[bool, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and scores."""
    return np.array([label for label, _ in rows], np.int8), np.array([score for _, score in rows], np.float64)


@given(RANKED)
def test_roc_points_are_those_of_scikit_learn(rows: list[tuple[bool, int]]) -> None:
    """One point per distinct score, ties shared."""
    labels, scores = columns(rows)
    false, true, _ = roc_curve(labels, scores, drop_intermediate=False)
    found = roc_points(labels, scores)
    assert found is not None
    np.testing.assert_allclose(found, (false, true))


@given(RANKED)
def test_precision_recall_points_are_those_of_scikit_learn(rows: list[tuple[bool, int]]) -> None:
    """By falling threshold, without the point that scikit-learn adds at recall 0."""
    labels, scores = columns(rows)
    precision, recall, _ = precision_recall_curve(labels, scores)
    found = precision_recall_points(labels, scores)
    assert found is not None
    np.testing.assert_allclose(found, (recall[-2::-1], precision[-2::-1]))


@given(RANKED)
def test_the_area_under_a_curve_is_its_metric(rows: list[tuple[bool, int]]) -> None:
    """Trapezia under ROC give ROC-AUC; steps of recall times precision give average precision."""
    labels, scores = columns(rows)
    roc, steps = roc_points(labels, scores), precision_recall_points(labels, scores)
    assert roc is not None
    assert steps is not None
    assert np.trapezoid(roc[1], roc[0]) == pytest.approx(roc_auc(labels, scores))
    assert (np.diff(steps[0], prepend=0) * steps[1]).sum() == pytest.approx(average_precision(labels, scores))


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_has_no_curve(label: int) -> None:
    """Where a class is missing there is nothing to draw."""
    labels, scores = np.full(3, label, np.int8), np.arange(3.0)
    assert (None, None) == (roc_points(labels, scores), precision_recall_points(labels, scores))
