"""Own the agreement of several graders on the same units: Cohen's and Fleiss' kappa, Krippendorff's alpha.

Every function returns None where the coefficient is undefined: chance alone would agree fully, or nothing is paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def cohen_kappa(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Cohen's kappa of two graders (Cohen 1960): agreement beyond what their own shares give by chance.

    Raises:
        ValueError: if they graded another number of units, or none.
    """
    if not len(first) or len(first) != len(second):
        raise ValueError(f"two graders of the same units are needed, not of {len(first)} and {len(second)}")
    levels = np.unique([*first, *second])
    table = (np.equal.outer(levels, first).astype(np.float64) @ np.equal.outer(levels, second).T) / len(first)
    chance = float(table.sum(axis=0) @ table.sum(axis=1))
    return _beyond(float(np.trace(table)), chance)


def fleiss_kappa(counts: ArrayLike) -> float | None:
    """Return Fleiss' kappa (Fleiss 1971) of [n_units, n_levels] counts of graders per level.

    Raises:
        ValueError: unless every unit has the same number of graders, two at least.
    """
    table = np.asarray(counts, dtype=np.float64)
    n_graders = table.sum(axis=1)
    if not len(table) or n_graders[0] < 2 or (n_graders != n_graders[0]).any():
        raise ValueError("every unit needs the same number of graders, two at least")
    n = n_graders[0]
    agreeing = ((table**2).sum(axis=1) - n) / (n * (n - 1))
    shares = table.sum(axis=0) / table.sum()
    return _beyond(float(agreeing.mean()), float((shares**2).sum()))


def krippendorff_alpha(ratings: ArrayLike, level: Literal["nominal", "ordinal", "interval"]) -> float | None:
    """Return Krippendorff's alpha (Krippendorff 2011) of [n_graders, n_units] ratings; NaN where a grader left one out.

    A unit with fewer than two ratings is paired with nothing and counts for nothing.
    """
    values = np.asarray(ratings, dtype=np.float64)
    levels = np.unique(values[~np.isnan(values)])
    counts = (values[:, :, np.newaxis] == levels).sum(axis=0).astype(np.float64)
    counts = counts[counts.sum(axis=1) >= 2]
    if not len(counts):
        return None
    weights = 1 / (counts.sum(axis=1) - 1)
    coincidences = (counts * weights[:, np.newaxis]).T @ counts - np.diag(weights @ counts)
    totals = coincidences.sum(axis=0)
    distances = _distances(levels, totals, level)
    expected = (np.outer(totals, totals) - np.diag(totals)) / (totals.sum() - 1)
    disagreeing, by_chance = float((coincidences * distances).sum()), float((expected * distances).sum())
    return 1 - disagreeing / by_chance if by_chance else None


def _distances(levels: Floats, totals: Floats, level: str) -> Floats:
    """Return the squared difference of every pair of levels, [n_levels, n_levels]."""
    if level == "nominal":
        return 1 - np.eye(len(levels))
    if level == "interval":
        return np.asarray(np.subtract.outer(levels, levels) ** 2)
    middles = np.cumsum(totals) - totals / 2  # all ratings below a level, and half of its own
    return np.asarray(np.subtract.outer(middles, middles) ** 2)


def _beyond(agreeing: float, chance: float) -> float | None:
    return (agreeing - chance) / (1 - chance) if chance < 1 else None
