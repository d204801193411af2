"""Own the geometry of boxes and their matching: areas, intersections, IoU, IoBB, hits and false positives.

Boxes are half-open (row0, col0, row1, col1) in pixels, whole or not; integer boxes give exact areas. Nothing here knows
heatmaps, findings or images: a group is a number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Boxes = NDArray[Any]
"""[n, 4] real numbers, read as float64."""
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Criterion = Literal["iou", "iobb"]

TINY_SIDE = 6
"""Side of the tiny box, in pixels."""


@dataclass(frozen=True, slots=True, eq=False)
class BoxMatches:
    """What matching says at each of T values."""

    hit: Flags
    """[r, T] whether a reference box has at least one correct box of its group."""
    correct: Flags
    """[d, T] whether a detected box is correct for at least one reference box of its group; else a false positive."""


def box_areas(boxes: Boxes) -> Floats:
    """Return height x width of each box [n], in square pixels, without "+1"; 0 for an empty box.

    Raises:
        ValueError: not [n, 4], not finite, or an end before its start.
    """
    return _areas(_checked(boxes))


def intersections(a: Boxes, b: Boxes) -> Floats:
    """Return the area common to each box of a [n, 4] and each of b [m, 4]: [n, m], in square pixels.

    Raises:
        ValueError: as `box_areas`.
    """
    return _common(*_crossed(a, b))


def iou(detected: Boxes, reference: Boxes) -> Floats:
    """Return intersection over union of each detected [n, 4] and each reference box [m, 4]: [n, m] in [0, 1].

    One division of areas, so for integer boxes the nearest float64 to the fraction. 0 where both boxes are empty.

    Raises:
        ValueError: as `box_areas`.
    """
    return _iou(*_crossed(detected, reference))


def iobb(detected: Boxes, reference: Boxes) -> Floats:
    """Return the share of each detected box [n, 4] that lies in each reference box [m, 4]: [n, m] in [0, 1].

    Wang et al. 2017 (ChestX-ray8) call it intersection over the detected bounding box area. Never below `iou`, equal to
    it where the detected box contains the reference, 1 where it lies inside. Undefined for an empty detected box: 0.

    Raises:
        ValueError: as `box_areas`.
    """
    return _iobb(*_crossed(detected, reference))


def match_boxes(
    detected: Boxes,
    reference: Boxes,
    criterion: Criterion,
    t_values: Sequence[float],
    *,
    strict: bool = True,
    detected_group: NDArray[np.integer[Any]] | None = None,
    reference_group: NDArray[np.integer[Any]] | None = None,
) -> BoxMatches:
    """Match detected to reference boxes within each group, which is an (image, finding), at each T.

    A detected box is correct if its value with any reference box of the group is `> T`. Several may be correct for one
    reference box, one may be correct for several; none of these is a false positive.

    Args:
        detected: [d, 4].
        reference: [r, 4].
        criterion: `iou` or `iobb`.
        t_values: [T], in [0, 1].
        strict: whether correct is `> T`, or else `>= T`.
        detected_group: [d] group of each box; None puts all boxes into one group.
        reference_group: [r], likewise; both or neither.

    Raises:
        ValueError: boxes as `box_areas`, groups of another length, or an option that is none of these.
    """
    detected, reference = _checked(detected), _checked(reference)
    levels = _checked_levels(t_values)
    if criterion not in BOX_CRITERIA:
        raise ValueError(f"criterion must be one of {', '.join(BOX_CRITERIA)}, not {criterion!r}")
    one, other = _pairs(*_checked_groups(len(detected), len(reference), detected_group, reference_group))
    values = _PAIRED[criterion](detected[one], reference[other])
    best_detected, best_reference = np.full(len(detected), -1.0), np.full(len(reference), -1.0)
    np.maximum.at(best_detected, one, values)
    np.maximum.at(best_reference, other, values)
    above = np.greater if strict else np.greater_equal
    return BoxMatches(above(best_reference[:, None], levels), above(best_detected[:, None], levels))


def stack_boxes(boxes: Sequence[Boxes]) -> tuple[Floats, Ints]:
    """Return the boxes of all groups as one array [n, 4], and the group of each [n]: its place in the sequence.

    Raises:
        ValueError: as `box_areas`.
    """
    checked = [_checked(group) for group in boxes]
    stacked = np.concatenate([np.empty((0, 4)), *checked])
    return stacked, np.repeat(np.arange(len(checked)), [len(group) for group in checked])


def tiny_boxes(centres: NDArray[Any], *, output: tuple[int, int] = (1024, 1024)) -> Floats:
    """Return the 6 x 6 pixels around each centre (row, col) [k, 2]: rows r-3..r+3, columns c-3..c+3, as [k, 4].

    At the border of the output (rows, columns in pixels) the box is cut off, so it lies in the frame and is smaller.
    """
    centres = np.asarray(centres, np.float64).reshape(-1, 2)
    half = TINY_SIDE / 2
    return np.clip(np.hstack([centres - half, centres + half]), 0, np.tile(output, 2))


def whole_image_box(output: tuple[int, int] = (1024, 1024)) -> Floats:
    """Return the box [1, 4] that covers the output (rows, columns in pixels)."""
    return np.array([[0.0, 0.0, *output]])


def _checked(boxes: Boxes) -> Floats:
    checked = np.asarray(boxes, np.float64)
    checked = checked.reshape(0, 4) if checked.shape == (0,) else checked
    if checked.ndim != 2 or checked.shape[1] != 4 or not np.isfinite(checked).all():
        raise ValueError(f"boxes of shape {checked.shape} must be finite numbers [n, 4]")
    if (checked[:, 2:] < checked[:, :2]).any():
        raise ValueError(f"box {int(np.argmax((checked[:, 2:] < checked[:, :2]).any(axis=1)))} ends before it starts")
    return checked


def _checked_levels(t_values: Sequence[float]) -> Floats:
    levels = np.asarray(t_values, np.float64)
    if levels.ndim != 1 or not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(f"T values must be numbers in [0, 1], not {t_values}")
    return levels


def _checked_groups(
    n_detected: int,
    n_reference: int,
    detected_group: NDArray[np.integer[Any]] | None,
    reference_group: NDArray[np.integer[Any]] | None,
) -> tuple[Ints, Ints]:
    if detected_group is None and reference_group is None:
        return np.zeros(n_detected, np.int64), np.zeros(n_reference, np.int64)
    groups = np.asarray(detected_group), np.asarray(reference_group)
    if groups[0].shape != (n_detected,) or groups[1].shape != (n_reference,):
        raise ValueError(f"{n_detected} detected and {n_reference} reference boxes need as many group numbers")
    return groups


def _crossed(a: Boxes, b: Boxes) -> tuple[Floats, Floats]:
    return _checked(a)[:, None], _checked(b)[None]


def _areas(boxes: Floats) -> Floats:
    areas: Floats = (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    return areas


def _common(a: Floats, b: Floats) -> Floats:
    sides = np.maximum(np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2]), 0)
    common: Floats = sides[..., 0] * sides[..., 1]
    return common


def _share(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros(np.broadcast_shapes(part.shape, whole.shape)), where=whole > 0)


def _iou(detected: Floats, reference: Floats) -> Floats:
    common = _common(detected, reference)
    # In this order rounding cannot make the union smaller than the detected box, nor IoU larger than IoBB.
    return _share(common, _areas(detected) + (_areas(reference) - common))


def _iobb(detected: Floats, reference: Floats) -> Floats:
    return _share(_common(detected, reference), _areas(detected))


def _pairs(detected_group: Ints, reference_group: Ints) -> tuple[Ints, Ints]:
    """Return the places of all (detected, reference) pairs of one group, in the order of detection."""
    order = np.argsort(reference_group)
    ordered = reference_group[order]
    start = np.searchsorted(ordered, detected_group, side="left")
    count = np.searchsorted(ordered, detected_group, side="right") - start
    shift = np.repeat(start - (np.cumsum(count) - count), count)
    return np.repeat(np.arange(len(count)), count), order[np.arange(len(shift)) + shift]


BOX_CRITERIA: dict[str, Callable[[Boxes, Boxes], Floats]] = {"iou": iou, "iobb": iobb}
"""Name: function of (detected [n, 4], reference [m, 4]) to values [n, m]."""
_PAIRED: dict[str, Callable[[Floats, Floats], Floats]] = {"iou": _iou, "iobb": _iobb}
