"""Own what a pixel of an upsampled heatmap is: which map values it reads, with which weights, in which order summed.

Bilinear and nearest on the centred grid. Nothing here knows thresholds, regions or boxes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Upsampling = Literal["bilinear", "nearest"]

SCALE = 255.0
"""Upper end of a rescaled map."""
TIE = 1e-9
"""Share of the range within which two values may be one: far above rounding, far below what a map can mean."""

_ROUNDINGS = 64  # that a rescaled value may have suffered, generously


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """How the N pixels of one output axis read the S values of a map, and the corners of its linear pieces.

    Pixel o lies at (o + 1/2) S/N - 1/2 of the map, edge values held. Weights are whole numbers that sum to 2N, so they
    are exact for every N; the scale disappears when a map is rescaled.
    """

    low: Ints
    """[N] index of the lower neighbour."""
    high: Ints
    low_weight: Floats
    high_weight: Floats
    corners: Ints
    """[P] first and last pixel of each linear piece, ascending without repeats, framed by -1 and N."""
    corner_weights: Floats
    """[P, S] weights of the map values at `corners`; zero in the frame."""

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The rows and columns of the upsampled map."""

    rows: Axis
    cols: Axis
    copies: bool
    """Whether each pixel is a copy of one map value, without rounding."""

    @property
    def n_pixels(self) -> int:
        """Pixels of the upsampled map."""
        return len(self.rows) * len(self.cols)

    @property
    def n_corners(self) -> int:
        """Corners of the lattice, with its frame."""
        return len(self.rows.corners) * len(self.cols.corners)


def make_grid(size: tuple[int, int], output: tuple[int, int], upsampling: Upsampling) -> Grid:
    """Lay the grid of maps of this size (rows, columns) on the output.

    Raises:
        ValueError: the map is empty or larger than the output, or upsampling is not one of the two.
    """
    if not all(0 < s <= n for s, n in zip(size, output, strict=True)):
        raise ValueError(f"maps of {size[0]} x {size[1]} must not be empty, or larger than {output[0]} x {output[1]}")
    if upsampling not in ("bilinear", "nearest"):
        raise ValueError(f"upsampling must be 'bilinear' or 'nearest', not {upsampling!r}")
    read = _read_linear if upsampling == "bilinear" else _read_nearest
    rows, cols = (_axis(n, s, *read(s, n)) for s, n in zip(size, output, strict=True))
    return Grid(rows, cols, copies=upsampling == "nearest")


def full_values(one: Floats, grid: Grid) -> Floats:
    """Return the upsampled map [N1, N2] times 4 N1 N2: the definition of a value, to the last bit.

    The four products (value x row weight) x column weight are summed from upper left to lower right, and the map's own
    range bounds what rounding could leave it. For N a power of two the bits are those of scikit-image's
    `resize(order=1 or 0, mode="edge")`, which is SciPy's `zoom`, times that power of two. Maps of integers below 2**22
    are exact, for every N up to 1024.

    Args:
        one: [S1, S2], finite.
        grid: of that size.
    """
    rows, cols = grid.rows, grid.cols
    upper = one[rows.low] * rows.low_weight[:, None]
    lower = one[rows.high] * rows.high_weight[:, None]
    total = upper.take(cols.low, axis=1) * cols.low_weight
    total += upper.take(cols.high, axis=1) * cols.high_weight
    total += lower.take(cols.low, axis=1) * cols.low_weight
    total += lower.take(cols.high, axis=1) * cols.high_weight
    scale = 4.0 * grid.n_pixels
    return np.clip(total, one.min() * scale, one.max() * scale, out=total)


def corner_values(maps: Floats, grid: Grid) -> tuple[Floats, Floats]:
    """Return the corners [B, P, Q] of rescaled maps, framed by -255, and how far rounding can have moved them [B].

    A map's extremes lie on corners. Where pixels are copies the values are exactly those of the full map, and the
    distance is -1: nothing is in doubt.

    Args:
        maps: [B, S1, S2], finite; a constant one gives zeros.
        grid: of that size.
    """
    values = grid.rows.corner_weights @ maps @ grid.cols.corner_weights.T
    inner = values[:, 1:-1, 1:-1]
    low, high = inner.min(axis=(1, 2)), inner.max(axis=(1, 2))
    spread = np.where(high > low, high - low, 1.0)
    values -= low[:, None, None]
    values *= SCALE
    values /= spread[:, None, None]
    values[:, [0, -1], :] = values[:, :, [0, -1]] = -SCALE
    if grid.copies:
        return values, np.full(len(maps), -1.0)
    return values, SCALE * (TIE + _rounding(maps, grid) / spread)


def _rounding(maps: Floats, grid: Grid) -> Floats:
    """Return how far rounding can move an upsampled value, times the longest line of pixels [B].

    The factor makes two neighbours on a line that crosses the threshold differ by more than rounding.
    """
    limits = np.finfo(np.float64)
    largest: Floats = np.abs(maps).max(axis=(1, 2)) * 4 * grid.n_pixels
    return _ROUNDINGS * max(len(grid.rows), len(grid.cols)) * (limits.eps * largest + limits.tiny)


def _read_linear(size: int, length: int) -> tuple[Ints, Ints]:
    """Return the map value below each pixel's centre, -1 to S - 1, and the share of the next one in 1/2N."""
    below, share = np.divmod((2 * np.arange(length) + 1) * size - length, 2 * length)
    return below, share


def _read_nearest(size: int, length: int) -> tuple[Ints, Ints]:
    """Return the same for nearest: half-way between two values the later one counts, as in SciPy."""
    below = (2 * np.arange(length) + 1) * size // (2 * length)
    return below, np.zeros_like(below)


def _axis(length: int, size: int, below: Ints, share: Ints) -> Axis:
    low, high = np.clip(below, 0, size - 1), np.clip(below + 1, 0, size - 1)  # both the edge value beyond the edge
    change = below[1:] != below[:-1]
    corners = np.flatnonzero(np.append(True, change) | np.append(change, True))
    weights = np.zeros((len(corners) + 2, size))
    at = 1 + np.arange(len(corners))
    weights[at, low[corners]] += 2 * length - share[corners]
    weights[at, high[corners]] += share[corners]
    framed = np.concatenate([[-1], corners, [length]])
    return Axis(low, high, (2 * length - share).astype(np.float64), share.astype(np.float64), framed, weights)
