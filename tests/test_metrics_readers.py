"""Curves and readers below them: by hand, against scikit-learn's curves, and at the edges."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_curve, precision_score, recall_score, roc_curve

from cxrspec.metrics import ReaderPoint, curve_points, is_below, majority_vote, reader_margin, reader_point

LABELS = np.array([1, 0, 1, 0, 0, 1, 0, 0])
SCORES = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2])
"""ROC vertices (0, 0) (0, 1/3) (1/5, 1/3) (1/5, 2/3) (3/5, 2/3) (3/5, 1) (1, 1)."""


@st.composite
def read_items(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels of both classes, few distinct scores, and one reader who calls something."""
    n = draw(st.integers(3, 20))
    labels = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n).filter(lambda y: 0 < sum(y) < len(y)))
    reads = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n).filter(any))
    return np.array(labels), np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))) / 4, np.array(reads)


def margin(reader: ReaderPoint, curve: str, line: str) -> float:
    """Return the margin over a reader of the curve above."""
    return reader_margin(curve_points(LABELS, SCORES), reader, curve, line)


def test_vertices_are_those_of_scikit_learn():
    """Both curves, ties included."""
    scores = np.round(SCORES, 0)
    points = curve_points(LABELS, scores)
    fpr, tpr, thresholds = roc_curve(LABELS, scores, drop_intermediate=False)
    precision, recall, _ = precision_recall_curve(LABELS, scores)
    assert [fpr.tolist(), tpr.tolist()] == [points.false_positive_rate.tolist(), points.true_positive_rate.tolist()]
    assert thresholds.tolist() == points.thresholds.tolist()
    assert precision[:-1].tolist() == points.precision[:0:-1].tolist()
    assert recall[:-1].tolist() == points.true_positive_rate[:0:-1].tolist()


def test_reader_point_is_that_of_scikit_learn():
    """Sensitivity is the recall of class 1, specificity that of class 0."""
    reads = np.array([1, 0, 0, 1, 0, 1, 0, 0])
    found = reader_point(LABELS, reads)
    assert recall_score(LABELS, reads) == found.sensitivity
    assert recall_score(LABELS, reads, pos_label=0) == found.specificity
    assert precision_score(LABELS, reads) == found.precision


def test_an_item_of_weight_0_does_not_exist():
    """The threshold of an item without weight is no vertex."""
    left = np.arange(8) != 3
    expected, found = curve_points(LABELS[left], SCORES[left]), curve_points(LABELS, SCORES, left.astype(float))
    assert expected.thresholds.tolist() == found.thresholds.tolist()
    assert expected.false_positives.tolist() == found.false_positives.tolist()


# false-positive rate and sensitivity of the reader, margin by step, margin interpolated
ROC_BY_HAND = [
    (0.0, 0.0, 1 / 3, 1 / 3),  # at the vertical piece: the best of it
    (0.1, 0.25, 1 / 3 - 0.25, 1 / 3 - 0.25),
    (0.4, 0.5, 2 / 3 - 0.5, 2 / 3 - 0.5),
    (1.0, 1.0, 0.0, 0.0),
]


@pytest.mark.parametrize(("fpr", "sensitivity", "step", "line"), ROC_BY_HAND)
def test_roc_margins_by_hand(fpr, sensitivity, step, line):
    """At the reader's false-positive rate, the best true-positive rate minus the reader's."""
    reader = ReaderPoint(sensitivity, 1 - fpr, 0.5)
    assert [step, line] == pytest.approx([margin(reader, "roc", "step"), margin(reader, "roc", "interpolated")])


def test_interpolated_roc_is_a_straight_line_between_vertices():
    """One tie of a positive and a negative makes the curve the diagonal; the staircase waits for the vertex."""
    points = curve_points(np.array([1, 0]), np.array([0.5, 0.5]))
    reader = ReaderPoint(0.25, 0.6, 0.5)
    found = [reader_margin(points, reader, "roc", line) for line in ("step", "interpolated")]
    assert [-0.25, pytest.approx(0.15)] == found


def test_left_of_the_first_vertex_the_rate_is_0():
    """A reader without false positives meets a true-positive rate of 0 where the first called item is a negative."""
    points = curve_points(np.array([0, 1, 0]), np.array([0.9, 0.5, 0.1]))
    for line in ("step", "interpolated"):
        assert reader_margin(points, ReaderPoint(0.5, 1.0, 1.0), "roc", line) == -0.5


def test_precision_by_step_is_the_best_at_that_recall_or_more():
    """At a recall of 0.5 the thresholds 0.7 (2 of 3) and lower ones count; 0.9 (1 of 1) does not."""
    reader = ReaderPoint(0.5, 0.9, 0.6)
    assert pytest.approx(2 / 3 - 0.6) == margin(reader, "precision_recall", "step")


def test_precision_looks_beyond_the_first_threshold_that_reaches_the_recall():
    """A later threshold of higher precision counts too."""
    points = curve_points(np.array([0, 1, 1, 1]), np.array([0.9, 0.8, 0.7, 0.6]))
    assert reader_margin(points, ReaderPoint(1 / 3, 0.0, 0.5), "precision_recall", "step") == 0.25


def test_interpolated_precision_is_the_achievable_one():
    """Davis and Goadrich 2006, their example: TP 5 -> 10 of 20 and FP 5 -> 30; at TP 6 and 7, 10 and 15 false ones."""
    labels = np.repeat([1, 0, 1, 0, 1, 0], [5, 5, 5, 25, 10, 2000])
    scores = np.repeat([3.0, 3.0, 2.0, 2.0, 1.0, 1.0], [5, 5, 5, 25, 10, 2000])
    points = curve_points(labels, scores)
    precisions = [
        reader_margin(points, ReaderPoint(hits / 20, 1.0, 0.0), "precision_recall", "interpolated")
        for hits in range(5, 11)
    ]
    assert pytest.approx([0.500, 0.375, 0.318, 0.286, 0.265, 0.250], abs=5e-4) == precisions


def test_both_means_below_on_both():
    """The margin of `both` is the smaller one."""
    reader = ReaderPoint(0.5, 0.6, 0.6)
    found = [margin(reader, curve, "step") for curve in ("roc", "precision_recall", "both")]
    assert min(found[:2]) == found[2]


@settings(derandomize=True, deadline=None, max_examples=200)
@given(items=read_items())
def test_interpolated_is_never_below_the_step(items):
    """On every curve the interpolated margin is at least that of the step."""
    labels, scores, reads = items
    points, reader = curve_points(labels, scores), reader_point(labels, reads)
    for curve in ("roc", "precision_recall", "both"):
        step, line = (reader_margin(points, reader, curve, line) for line in ("step", "interpolated"))
        assert line >= step - 1e-15


@settings(derandomize=True, deadline=None, max_examples=100)
@given(items=read_items())
def test_a_reader_on_the_own_curve_has_no_margin(items):
    """A curve through the reader, who spares some negative: strict does not count that, inclusive does."""
    labels, _, reads = items
    points, reader = curve_points(labels, reads.astype(float)), reader_point(labels, reads)
    assume(reader.specificity > 0)  # otherwise the curve goes on to (1, 1) above the reader
    found = reader_margin(points, reader, "roc", "step")
    assert [pytest.approx(0, abs=1e-12), False, True] == [
        found,
        is_below(found, "strict"),
        is_below(found, "inclusive"),
    ]


def test_a_reader_who_calls_nothing_has_no_precision():
    """Precision is undefined without calls: on precision-recall there is no margin, on ROC there is."""
    reader = reader_point(LABELS, np.zeros(8, int))
    found = [margin(reader, curve, "step") for curve in ("roc", "precision_recall", "both")]
    assert [(0.0, 1.0, None), [1 / 3, None, None]] == [
        (reader.sensitivity, reader.specificity, reader.precision),
        found,
    ]


@pytest.mark.parametrize("labels", [[0, 0], [1, 1], []])
def test_no_curve_without_both_classes(labels):
    """C13: one class has no curve and no reader's point."""
    labels = np.array(labels, int)
    assert curve_points(labels, labels.astype(float)) is None
    assert reader_point(labels, labels) is None


def test_majority_of_readers():
    """More than half; an even number of readers has no majority to speak of."""
    assert majority_vote(np.array([[1, 1, 0], [0, 1, 0]])).tolist() == [1, 0]
    with pytest.raises(ValueError, match="2 readers may be tied"):
        majority_vote(np.array([[1, 0]]))


def test_reads_are_yes_or_no():
    """A probability is no read."""
    with pytest.raises(ValueError, match="reads must be 0 or 1"):
        reader_point(LABELS, SCORES)
