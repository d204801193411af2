"""Box geometry against pixel counts and fractions, and matching against pairs counted one at a time."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cxrspec.metrics.boxes import (
    BOX_CRITERIA,
    box_areas,
    intersections,
    iobb,
    iou,
    match_boxes,
    stack_boxes,
    tiny_boxes,
    whole_image_box,
)

SIDE = 12
REFERENCE = (400, 400, 500, 500)
WHOLE = [(0, 0, 4, 4)]
T_VALUES = (0.1, 0.25, 0.5, 0.75, 0.9)

spans = st.tuples(st.integers(0, SIDE), st.integers(0, SIDE)).map(sorted)
integer_boxes = st.builds(lambda rows, cols: (rows[0], cols[0], rows[1], cols[1]), spans, spans)
coordinates = st.floats(0, 1024, allow_subnormal=False)
real_boxes = st.lists(coordinates, min_size=4, max_size=4).map(
    lambda x: (min(x[0], x[2]), min(x[1], x[3]), max(x[0], x[2]), max(x[1], x[3]))
)


def pixels(box: tuple[int, int, int, int]) -> np.ndarray:
    """The pixels of a half-open box in a small image."""
    image = np.zeros((SIDE, SIDE), bool)
    image[box[0] : box[2], box[1] : box[3]] = True
    return image


def lists_of(boxes: st.SearchStrategy, largest: int = 4) -> st.SearchStrategy:
    """Lists of boxes, empty ones too."""
    return st.lists(boxes, max_size=largest)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(a=integer_boxes, b=integer_boxes)
def test_areas_and_intersections_are_pixel_counts(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """On integer boxes, empty ones included, areas and intersections count pixels exactly."""
    assert [pixels(a).sum()] == box_areas([a]).tolist()
    assert [[(pixels(a) & pixels(b)).sum()]] == intersections([a], [b]).tolist()


@settings(derandomize=True, deadline=None, max_examples=150)
@given(a=integer_boxes, b=integer_boxes)
def test_integer_boxes_give_the_float_nearest_to_the_fraction(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """IoU and IoBB are pixel counts divided once; with nothing to divide by they are 0, without a warning."""
    common, union, area = (int(x.sum()) for x in (pixels(a) & pixels(b), pixels(a) | pixels(b), pixels(a)))
    assert (float(Fraction(common, union)) if union else 0.0) == iou([a], [b])[0, 0]
    assert (float(Fraction(common, area)) if area else 0.0) == iobb([a], [b])[0, 0]


@settings(derandomize=True, deadline=None, max_examples=300)
@given(detected=real_boxes, reference=real_boxes)
def test_iobb_is_never_below_iou(detected: tuple[float, ...], reference: tuple[float, ...]) -> None:
    """0 <= IoU <= IoBB <= 1 holds for boxes in floating-point pixels too, whatever the rounding."""
    assert 0 <= iou([detected], [reference])[0, 0] <= iobb([detected], [reference])[0, 0] <= 1


@settings(derandomize=True, deadline=None, max_examples=200)
@given(outer=real_boxes, shares=st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_iobb_of_a_box_that_contains_or_lies_inside(outer: tuple[float, ...], shares: list[float]) -> None:
    """IoBB is IoU where the detected box contains the reference and 1 where it lies inside: to the last bit."""
    low, high = np.array(outer[:2]), np.array(outer[2:])
    points = np.clip(low + (high - low) * np.sort(np.reshape(shares, (2, 2)), axis=0), low, high)
    inner = points.ravel()
    assert iou([outer], [inner])[0, 0] == iobb([outer], [inner])[0, 0]
    if box_areas([inner])[0]:
        assert iobb([inner], [outer])[0, 0] == 1


def test_an_empty_box_has_no_share() -> None:
    """IoBB of an empty detected box, undefined, is 0; so is IoU of two empty boxes."""
    empty = (3, 3, 3, 9)
    assert [[0.0, 0.0]] == iobb([empty], [(0, 0, 9, 9), empty]).tolist()
    assert [[0.0, 0.0]] == iou([empty], [(0, 0, 9, 9), empty]).tolist()


def test_boxes_that_share_an_edge_do_not_overlap() -> None:
    """Ends are exclusive: no "+1" anywhere."""
    assert [[0.0]] == intersections([(0, 0, 4, 4)], [(4, 0, 8, 4)]).tolist()


def test_real_boxes_are_taken_as_they_are() -> None:
    """Coordinates between pixels are not rounded."""
    assert [0.75] == box_areas([(0.25, 0.5, 1.75, 1.0)]).tolist()
    assert [[0.125]] == intersections([(0.25, 0.5, 1.75, 1.0)], [(1.5, 0, 9, 9)]).tolist()


@pytest.mark.parametrize("boxes", [[(0, 0, 1)], [(0, 0, 1, np.nan)], [(0, 0, np.inf, 1)], [[(0, 0, 1, 1)]]])
def test_what_is_no_box_is_refused(boxes: list[object]) -> None:
    """Another shape, NaN and infinity are refused."""
    with pytest.raises(ValueError, match="finite numbers"):
        box_areas(boxes)


def test_a_negative_size_is_refused() -> None:
    """A box whose end lies before its start is named by its place."""
    with pytest.raises(ValueError, match="box 1 ends before it starts"):
        iou([(0, 0, 1, 1), (0, 5, 9, 4)], WHOLE)


def test_a_box_twice_as_large_is_exactly_on_a_quarter() -> None:
    """On T itself a box is wrong where the rule is strict and correct where it is not."""
    double = [(350, 350, 550, 550)]
    for criterion in BOX_CRITERIA:
        assert not match_boxes(double, [REFERENCE], criterion, [0.25]).hit.any()
        assert match_boxes(double, [REFERENCE], criterion, [0.25], strict=False).hit.all()


def test_one_tenth_is_met_exactly() -> None:
    """A share of exactly 1/10 is the float64 that T = 0.1 is."""
    assert not match_boxes([(0, 0, 1, 10)], [(0, 0, 1, 1)], "iobb", [0.1]).hit.any()
    assert match_boxes([(0, 0, 1, 10)], [(0, 0, 1, 1)], "iobb", [0.1], strict=False).hit.all()


def test_several_boxes_may_match_one_reference() -> None:
    """Each of two correct boxes is correct, so neither is a false positive; the third is one."""
    matches = match_boxes([(0, 0, 4, 4), (0, 0, 3, 4), (4, 4, 8, 8)], WHOLE, "iou", [0.5])
    assert [[True]] == matches.hit.tolist()
    assert [[True], [True], [False]] == matches.correct.tolist()


def test_one_box_may_hit_two_references() -> None:
    """A box that is correct for two reference boxes hits both."""
    assert [[True], [True]] == match_boxes([(0, 0, 4, 2)], [*WHOLE, (0, 0, 4, 1)], "iou", [0.4]).hit.tolist()


def test_boxes_match_only_within_their_group() -> None:
    """The same box is correct in one group, and a false positive where the group has no such reference box."""
    matches = match_boxes(
        WHOLE * 3,
        [(4, 4, 8, 8), *WHOLE],
        "iou",
        [0.5],
        detected_group=np.array([7, 2, 5]),
        reference_group=np.array([7, 2]),
    )
    assert [[False], [True]] == matches.hit.tolist()
    assert [[False], [True], [False]] == matches.correct.tolist()


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    groups=st.lists(st.tuples(lists_of(integer_boxes), lists_of(integer_boxes)), min_size=1, max_size=4),
    criterion=st.sampled_from(["iou", "iobb"]),
    strict=st.booleans(),
)
def test_groups_at_once_are_groups_one_by_one(groups: list, criterion: str, strict: bool) -> None:
    """Matching all groups in one call gives what pair after pair gives, compared as fractions of pixels."""
    (detected, d_group), (reference, r_group) = stack_boxes([g[0] for g in groups]), stack_boxes([g[1] for g in groups])
    matches = match_boxes(
        detected, reference, criterion, T_VALUES, strict=strict, detected_group=d_group, reference_group=r_group
    )
    hit, correct = [], []
    for mine, theirs in groups:
        table = BOX_CRITERIA[criterion](mine, theirs)[:, :, None]
        above = table > T_VALUES if strict else table >= T_VALUES
        hit += above.any(axis=0).tolist()
        correct += above.any(axis=1).tolist()
    assert (hit, correct) == (matches.hit.tolist(), matches.correct.tolist())


@pytest.mark.parametrize("criterion", ["iou", "iobb"])
def test_the_oracle_is_always_right(criterion: str) -> None:
    """The reference boxes themselves hit everything at every T, without a false positive."""
    boxes = np.array([(10.3, 20.7, 110.1, 99.9), REFERENCE, (0.1, 0.2, 0.3, 0.7)])
    group = np.arange(3)
    matches = match_boxes(boxes, boxes, criterion, T_VALUES, detected_group=group, reference_group=group)
    assert matches.hit.all()
    assert matches.correct.all()


def test_no_boxes_at_all() -> None:
    """Without detections nothing is hit; without references every detection is a false positive."""
    assert [[False]] == match_boxes([], WHOLE, "iou", [0.0]).hit.tolist()
    assert [[False]] == match_boxes(WHOLE, [], "iou", [0.0], strict=False).correct.tolist()
    assert (0, 1) == match_boxes([], [], "iou", [0.1]).hit.shape


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"criterion": "IoU"}, "criterion must be one of iou, iobb, not 'IoU'"),
        ({"t_values": [10]}, "T values"),
        ({"t_values": [np.nan]}, "T values"),
        ({"detected_group": np.array([0])}, "group numbers"),
        ({"detected_group": np.array([0, 1]), "reference_group": np.array([0])}, "group numbers"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], said: str) -> None:
    """An unknown criterion, a T outside [0, 1] and groups of another length are refused."""
    with pytest.raises(ValueError, match=said):
        match_boxes(WHOLE, WHOLE, **{"criterion": "iou", "t_values": [0.5], **options})


def test_tiny_boxes_are_six_pixels_wide_and_cut_off_at_the_border() -> None:
    """Rows r-3..r+3 and columns c-3..c+3; whole and broken centres; never outside the frame."""
    assert [[97, 197, 103, 203], [97.5, 197, 103.5, 203]] == tiny_boxes([(100, 200), (100.5, 200)]).tolist()
    assert [[0, 46, 3.5, 50]] == tiny_boxes([(0.5, 49)], output=(300, 50)).tolist()


def test_the_whole_image_is_one_box() -> None:
    """It covers every pixel of the frame."""
    assert [[0, 0, 300, 50]] == whole_image_box((300, 50)).tolist()
