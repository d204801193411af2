"""Own one logistic head: rows standardised and rotated once, then solved by scikit-learn at any C.

It chooses nothing: the rows, the labels and C come in.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

Floats = NDArray[np.float64]
Labels = NDArray[np.integer[Any] | np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """Features standardised by some rows, in an orthonormal basis of what those rows span.

    The penalty |w|^2 does not change under rotation and the optimal w lies in the span of the rows, so the optimum is
    the same vector, found in n dimensions instead of d.
    """

    mean: Floats | None
    """[d]; None where features stay as they are."""
    scale: Floats | None
    basis: Floats | None
    """[d, n]; None where d <= n, and nothing is rotated."""
    rows: Floats
    """The rows that it is made from, in it."""

    @classmethod
    def of(cls, rows: Floats, *, standardize: bool) -> Space:
        """Make the space of rows [n, d]: population variance, a constant column only centred."""
        mean = scale = basis = None
        if standardize:
            mean, scale = rows.mean(axis=0), rows.std(axis=0)
            constant = rows.min(axis=0) == rows.max(axis=0)  # its computed deviation can be rounding instead of 0
            scale[constant | (scale == 0)] = 1.0
            rows = (rows - mean) / scale
        if rows.shape[1] > rows.shape[0]:
            basis, coordinates = np.linalg.qr(rows.T)
            rows = np.ascontiguousarray(coordinates.T)
        return cls(mean, scale, basis, rows)

    def standardized(self, rows: Floats) -> Floats:
        """Return other rows [m, d] standardised by those of the space."""
        return rows if self.mean is None or self.scale is None else (rows - self.mean) / self.scale

    def place(self, rows: Floats) -> Floats:
        """Return other rows [m, d] in the space."""
        placed = self.standardized(rows)
        return placed if self.basis is None else placed @ self.basis


class Head:
    """Log-odds of positive (1) against negative (0), from rows of two classes, or of three where -1 is among them.

    Two classes are a binary regression, three a multinomial one, whose log-odds are those of its softmax restricted to
    negative and positive.
    """

    def __init__(self, x: Floats, y: Labels, *, standardize: bool, **pinned: Any) -> None:
        """Prepare the rows [n, d] with labels [n]; `pinned` are settings of scikit-learn's LogisticRegression."""
        from sklearn.linear_model import LogisticRegression

        self.space = Space.of(x, standardize=standardize)
        self.labels = y
        self.model = LogisticRegression(**pinned)  # its default penalty is L2, with a free intercept

    def fit(self, C: float) -> bool:
        """Fit at one C; tell whether the optimum was reached."""
        return converges(self.model.set_params(C=C), self.space.rows, self.labels)

    def log_odds(self, placed: Floats) -> Floats:
        """Return the log-odds [m] of rows placed in the head's space."""
        decision = np.asarray(self.model.decision_function(placed))
        return decision if decision.ndim == 1 else decision[:, -1] - decision[:, -2]

    @property
    def coefficients(self) -> Floats:
        """Its weights [d], of the standardised features."""
        weights = self.model.coef_
        direction: Floats = weights[0] if len(weights) == 1 else weights[-1] - weights[-2]
        return direction if self.space.basis is None else self.space.basis @ direction

    @property
    def intercept(self) -> float:
        """Its log-odds where every standardised feature is zero."""
        offsets = self.model.intercept_
        return float(offsets[0] if len(offsets) == 1 else offsets[-1] - offsets[-2])


def converges(model: LogisticRegression, x: Floats, y: Labels, *weights: Floats) -> bool:
    """Fit a model in place, with weights of the rows if any; tell whether it reached its tolerance within max_iter."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.filterwarnings("always", message="Line Search failed")
        model.fit(x, y, *weights)
    return not any(
        issubclass(warning.category, ConvergenceWarning) or "Line Search" in str(warning.message) for warning in caught
    )
