"""Own the way from heatmaps to boxes: rescaling, threshold, connected regions, and a map's peak.

Boxes are always those of the full-resolution map; the corner lattice is only the fast way there. Nothing here knows
findings, references or criteria.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cxrspec.metrics.lattice import lattice_boxes
from cxrspec.metrics.upsampling import SCALE, Floats, Grid, Ints, Upsampling, corner_values, full_values, make_grid

LARGEST = 1e290
"""Map values of this size or more are refused: their weighted sums could overflow."""

_BATCH_CORNERS = 200_000  # corners at work at once: a few MB in all, about 45 maps of 32 x 32
_LATTICE_SHARE = 0.25  # of the pixels; a lattice with more corners than this does not pay


@dataclass(frozen=True, slots=True)
class _Rules:
    """How a threshold cuts regions out of a map."""

    levels: tuple[float, ...]
    strict: bool
    diagonal: bool
    """Whether regions join where their pixels touch at a corner (8-connectivity)."""


def heatmap_boxes(
    maps: NDArray[Any],
    *,
    output: tuple[int, int] = (1024, 1024),
    thresholds: Sequence[float] = (60.0, 180.0),
    upsampling: Upsampling = "bilinear",
    strict: bool = True,
    connectivity: Literal[4, 8] = 8,
) -> list[list[Ints]]:
    """Return the boxes around the connected regions of each map above each threshold: result[map][threshold].

    The protocol of Wang et al. 2017 (ChestX-ray8), its open choices as arguments. Each map is brought to `output` on
    the centred grid (pixel centres at (i + 1/2) S/N - 1/2 of the map, edge values held), rescaled in float64 by
    255 (u - min) / (max - min), the extremes those of the upsampled map, and compared with the threshold. A constant
    map has no range and yields no box.

    Args:
        maps: [k, S1, S2], any real type; read as float64.
        output: rows and columns of the upsampled map, in pixels; at least S1 and S2.
        thresholds: in [0, 255].
        upsampling: `bilinear`, or `nearest` (half-way between two values the later one counts).
        strict: whether a region is `>` its threshold, or else `>=`.
        connectivity: 8 joins regions that touch at a corner, 4 does not.

    Returns:
        For each map and threshold an array [b, 4] of half-open (row0, col0, row1, col1) in pixels, sorted.

    Raises:
        ValueError: a map has NaN, infinity or values beyond 1e290, is empty or larger than the output; or an option is
            none of these.
    """
    grid = _grid_of(maps, output, upsampling)
    rules = _checked_rules(thresholds, strict, connectivity)
    boxes: list[list[Ints]] = []
    for batch in _batches(maps, grid):
        constant = _is_constant(batch)
        found = iter(_batch_boxes(batch[~constant], grid, rules))
        boxes += [[_no_boxes() for _ in rules.levels] if flat else next(found) for flat in constant]
    return boxes


def peak_pixels(
    maps: NDArray[Any], *, output: tuple[int, int] = (1024, 1024), upsampling: Upsampling = "bilinear"
) -> Ints:
    """Return the (row, col) of the largest value of each upsampled map: [k, 2].

    Of equal peaks, closer than 1e-9 of the range so that rounding does not choose, the first in row-major order.

    Args:
        maps: [k, S1, S2], any real type; read as float64.
        output: rows and columns of the upsampled map, in pixels.
        upsampling: as in `heatmap_boxes`.

    Raises:
        ValueError: a map is constant, or not what `heatmap_boxes` takes.
    """
    grid = _grid_of(maps, output, upsampling)
    peaks = [np.empty((0, 2), np.int64)]
    for batch in _batches(maps, grid):
        if _is_constant(batch).any():
            raise ValueError("a constant map has no peak")
        values, tolerance = corner_values(batch, grid)
        values = values[:, 1:-1, 1:-1].reshape(len(batch), -1)
        lowest = values.max(axis=1) - np.maximum(tolerance, 0)
        first = np.argmax(values >= lowest[:, None], axis=1)
        row, col = np.divmod(first, len(grid.cols.corners) - 2)
        peaks.append(np.stack([grid.rows.corners[row + 1], grid.cols.corners[col + 1]], axis=1))
    return np.concatenate(peaks)


def _grid_of(maps: NDArray[Any], output: tuple[int, int], upsampling: Upsampling) -> Grid:
    maps = np.asarray(maps)
    if maps.ndim != 3 or maps.dtype.kind not in "fiub":
        raise ValueError(f"maps must be real numbers [k, S1, S2], not {maps.dtype} of shape {maps.shape}")
    return make_grid(maps.shape[1:], output, upsampling)


def _checked_rules(thresholds: Sequence[float], strict: bool, connectivity: int) -> _Rules:
    if not all(0 <= threshold <= SCALE for threshold in thresholds):
        raise ValueError(f"thresholds must be in [0, 255], not {thresholds}")
    if connectivity not in (4, 8):
        raise ValueError(f"connectivity must be 4 or 8, not {connectivity!r}")
    return _Rules(tuple(float(threshold) for threshold in thresholds), strict, connectivity == 8)


def _batches(maps: NDArray[Any], grid: Grid) -> Iterator[Floats]:
    """Give the maps as float64, as many at a time as keep memory small; refuse values that cannot be upsampled."""
    n = max(1, _BATCH_CORNERS // grid.n_corners)
    for start in range(0, len(maps), n):
        batch = np.asarray(maps[start : start + n], np.float64)
        usable = (np.abs(batch) < LARGEST).all(axis=(1, 2))  # NaN is not
        if not usable.all():
            raise ValueError(f"map {start + int(np.argmin(usable))} has values not finite or beyond {LARGEST}")
        yield batch


def _is_constant(maps: Floats) -> NDArray[np.bool_]:
    constant: NDArray[np.bool_] = maps.min(axis=(1, 2)) == maps.max(axis=(1, 2))
    return constant


def _batch_boxes(maps: Floats, grid: Grid, rules: _Rules) -> list[list[Ints]]:
    """Return result[map][threshold] for maps [B, S1, S2] that are not constant, by the lattice where it pays."""
    if grid.n_corners > _LATTICE_SHARE * grid.n_pixels:
        return [_full_boxes(one, grid, rules, rules.levels) for one in maps]
    boxes: list[list[Ints]] = [[] for _ in maps]
    values, tolerance = corner_values(maps, grid)
    for level in rules.levels:
        found, doubt = lattice_boxes(values - level, tolerance, grid, strict=rules.strict, diagonal=rules.diagonal)
        for i, mine in enumerate(boxes):
            mine += _full_boxes(maps[i], grid, rules, [level]) if doubt[i] else [found[i]]
    return boxes


def _full_boxes(one: Floats, grid: Grid, rules: _Rules, levels: Sequence[float]) -> list[Ints]:
    """Return the boxes of one map at each level, read pixel by pixel."""
    from scipy import ndimage

    values = full_values(one, grid)
    low, high = values.min(), values.max()
    if low == high:
        return [_no_boxes() for _ in levels]
    values = SCALE * (values - low) / (high - low)
    boxes = []
    for level in levels:
        above = values > level if rules.strict else values >= level
        labels, _ = ndimage.label(above, np.ones((3, 3)) if rules.diagonal else None)
        found = sorted((r.start, c.start, r.stop, c.stop) for r, c in ndimage.find_objects(labels))
        boxes.append(np.array(found, np.int64).reshape(-1, 4))
    return boxes


def _no_boxes() -> Ints:
    return np.empty((0, 4), np.int64)
