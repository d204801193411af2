"""Own the boxes of connected regions, read from the corners of an upsampled map instead of its pixels.

Between neighbouring corners of a row or column values are linear. So a pixel above the threshold is joined, along its
row and then an edge of its block, to a corner above it; and two neighbouring pixels always share a block. Hence regions
are labels of corners, their limits are where lattice edges cross the threshold, and only a block with two opposite
corners above can join two labels. Whatever rounding could decide is reported as in doubt, never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cxrspec.metrics.upsampling import Floats, Grid, Ints

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class _Regions:
    """The corners of B maps at one threshold, flat over [B, P, Q], with their 4-connected labels."""

    values: Floats
    """Value minus threshold; the frame is below."""
    above: Flags
    labels: NDArray[np.integer[Any]]
    """-1 is below; the other labels run over all maps."""
    n_labels: int
    rows: Ints
    """[P] pixel row of each row of corners, frame included."""
    cols: Ints
    tolerance: Floats
    """[B] distance to the threshold that may be rounding."""

    def map_of(self, corners: Ints) -> Ints:
        """Return the map that each flat corner belongs to."""
        return corners // (len(self.rows) * len(self.cols))


def lattice_boxes(
    values: Floats, tolerance: Floats, grid: Grid, *, strict: bool, diagonal: bool
) -> tuple[list[Ints], Flags]:
    """Return the boxes [b, 4] of each map, sorted, and which maps [B] are in doubt and must be read pixel by pixel.

    Args:
        values: [B, P, Q] corner values minus the threshold, framed by values below it.
        tolerance: [B] distance to the threshold that may be rounding; negative where values are exact.
        grid: that the corners belong to.
        strict: whether a region is `> 0`, or else `>= 0`.
        diagonal: whether regions join where their pixels touch at a corner.
    """
    regions = _label_corners(values, tolerance, grid, strict)
    limits = np.empty((regions.n_labels, 4), np.int64)
    limits[:, [0, 2]], owner, doubt_rows = _limits(regions, regions.rows, len(regions.cols))
    limits[:, [1, 3]], _, doubt_cols = _limits(regions, regions.cols, 1)
    pairs, doubt_pairs = _joined_pairs(regions, diagonal)
    doubt = np.abs(values).min(axis=(1, 2)) <= tolerance
    doubt[np.concatenate([doubt_rows, doubt_cols, doubt_pairs])] = True
    limits, owner = _merged(limits, owner, pairs)
    order = np.lexsort((*limits.T[::-1], owner))
    ends = np.cumsum(np.bincount(owner, minlength=len(values)))
    return np.split(limits[order], ends[:-1]), doubt


def _label_corners(values: Floats, tolerance: Floats, grid: Grid, strict: bool) -> _Regions:
    from scipy import ndimage

    above = values > 0 if strict else values >= 0
    labels, n_labels = ndimage.label(above.reshape(-1, values.shape[2]))  # the frame keeps the maps apart
    rows, cols = grid.rows.corners, grid.cols.corners
    return _Regions(values.ravel(), above.ravel(), labels.ravel() - 1, n_labels, rows, cols, tolerance)


def _reach(inside: Floats, outside: Floats, gap: Ints, tolerance: Floats) -> tuple[Ints, Flags]:
    """Count the pixels above the threshold on the way from a corner above it to one below it, `gap` pixels away.

    The corner itself does not count. Also tell where the last pixel above, or the first below, is within tolerance.
    """
    slope = np.maximum(inside - outside, np.finfo(np.float64).tiny) / gap  # in doubt, rounding can leave no difference
    crossing = inside / slope
    count = np.clip(np.ceil(crossing) - 1, 0, gap - 1)
    doubtful = np.minimum(crossing - count, count + 1 - crossing) * slope <= tolerance
    return count.astype(np.int64), doubtful


def _limits(regions: _Regions, corners: Ints, step: int) -> tuple[Ints, Ints, Ints]:
    """Return each label's first pixel and the one after its last along one axis [L, 2], its map [L], maps in doubt.

    `corners` are the pixels of the axis, `step` the distance of neighbours along it in the flat arrays.
    """
    before = np.flatnonzero(regions.above[:-step] != regions.above[step:])
    enters = regions.above[before + step]
    inside, outside = before + step * enters, before + step * ~enters
    index = before // step % len(corners)
    maps, labels = regions.map_of(inside), regions.labels[inside]
    gap = corners[index + 1] - corners[index]
    reach, doubtful = _reach(regions.values[inside], regions.values[outside], gap, regions.tolerance[maps])
    limits = np.repeat([[corners[-1], 0]], regions.n_labels, axis=0)
    np.minimum.at(limits[:, 0], labels[enters], (corners[index + 1] - reach)[enters])
    np.maximum.at(limits[:, 1], labels[~enters], (corners[index] + reach + 1)[~enters])
    owner = np.empty(regions.n_labels, np.int64)
    owner[labels] = maps
    return limits, owner, maps[doubtful]


def _crossed_blocks(regions: _Regions) -> Ints:
    """Return the flat corners A, B, C, D [4, n] of the blocks where just A and the opposite D are above.

    A is the upper one of the two, B lies beside A, C below A.
    """
    above, width = regions.above, len(regions.cols)
    a, b, c, d = above[: -width - 1], above[1:-width], above[width:-1], above[width + 1 :]
    block = np.flatnonzero((a == d) & (b == c) & (a != b))
    left, right = block + ~a[block], block + a[block]  # column of A, column of B
    return np.stack([left, right, left + width, right + width])


def _joined_pairs(regions: _Regions, diagonal: bool) -> tuple[Ints, Ints]:
    """Return the labels that meet inside a block, as pairs [2, n], and the maps in doubt.

    Say A's edge is above down to row r of its block, D's edge from row s on. If s <= r a whole row is above; if
    s > r + 1 an empty row lies between; else the runs of pixels in these two rows must touch.
    """
    corner = _crossed_blocks(regions)
    a, b, c, d = regions.values[corner]
    first = corner[:2].min(axis=0)
    height = np.diff(regions.rows)[first // len(regions.cols) % len(regions.rows)]
    tolerance = regions.tolerance[regions.map_of(first)]
    r = _reach(a, c, height, tolerance)[0]  # doubt on lattice edges is known from the limits
    s = height - _reach(d, b, height, tolerance)[0]
    close = np.flatnonzero(s == r + 1)
    met = s <= r
    met[close], doubtful = _runs_touch(regions, corner[:, close], r[close] / height[close], 1 / height[close], diagonal)
    return regions.labels[corner[::3, met]].astype(np.int64), regions.map_of(first[close[doubtful]])


def _runs_touch(regions: _Regions, corner: Ints, upper: Floats, row: Floats, diagonal: bool) -> tuple[Flags, Flags]:
    """Tell whether A's run in the row at share `upper` of the block touches D's run in the next row; and the doubt."""
    a, b, c, d = regions.values[corner]
    breadth = np.diff(regions.cols)[corner[:2].min(axis=0) % len(regions.cols)]
    tolerance = regions.tolerance[regions.map_of(corner[0])]
    lower = upper + row
    from_a, doubt_a = _reach(a + (c - a) * upper, b + (d - b) * upper, breadth, tolerance)
    from_d, doubt_d = _reach(b + (d - b) * lower, a + (c - a) * lower, breadth, tolerance)
    return from_a + from_d + int(diagonal) >= breadth, doubt_a | doubt_d


def _merged(limits: Ints, owner: Ints, pairs: Ints) -> tuple[Ints, Ints]:
    """Return the common limits, and the map, of labels that are joined in pairs."""
    if not pairs.size:
        return limits, owner
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(pairs.shape[1], np.int8), tuple(pairs)), shape=(len(owner), len(owner)))
    n, component = connected_components(links, directed=False)
    merged = np.repeat([[np.iinfo(np.int64).max] * 2 + [0] * 2], n, axis=0)
    np.minimum.at(merged[:, :2], component, limits[:, :2])
    np.maximum.at(merged[:, 2:], component, limits[:, 2:])
    common = np.empty(n, np.int64)
    common[component] = owner
    return merged, common
