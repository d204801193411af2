"""Own the logistic probe: one head on frozen features, its C chosen by cross-validation.

scikit-learn solves every problem; this module only rotates, standardises and chooses. It knows no items, no
subsets and no random numbers: the folds come in.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

FINAL_TOL = 1e-10
"""Largest gradient component of the refit: its optimum is then the same on every machine to about 1e-8."""

Floats = NDArray[np.float64]
Labels = NDArray[np.integer[Any] | np.bool_]


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """What a definition pins about a probe. `C`, `tol`, `max_iter` and `class_weight` mean what scikit-learn means.

    Raises:
        ValueError: a value is out of range or not supported.
    """

    C: tuple[float, ...]
    """The grid, in any order."""
    folds: int = 5
    standardize: bool = True
    """Subtract the mean and divide by the standard deviation of the rows that are fitted."""
    select_by: Literal["log_loss"] = "log_loss"
    solver: Literal["newton-cg", "lbfgs"] = "newton-cg"
    """Solver of the fits on folds: lbfgs needs a tol 100 times smaller for losses as exact, and twice the time. The
    refit at the chosen C always runs to the optimum, which is the same for every solver."""
    max_iter: int = 1000
    tol: float = 1e-6
    class_weight: Literal["balanced"] | None = None

    def __post_init__(self) -> None:
        if not self.C or not all(0 < C < math.inf for C in self.C) or len(set(self.C)) < len(self.C):
            raise ValueError(f"C must be distinct positive numbers, not {self.C}")
        if self.folds < 2 or self.max_iter < 1 or not self.tol > 0:
            raise ValueError("folds must be at least 2, max_iter at least 1 and tol positive")
        if self.select_by != "log_loss" or self.solver not in ("lbfgs", "newton-cg"):
            raise ValueError(f"cannot select by {self.select_by!r} or solve with {self.solver!r}")
        if self.class_weight not in (None, "balanced"):
            raise ValueError(f"class_weight must be None or 'balanced', not {self.class_weight!r}")


@dataclass(frozen=True, slots=True, eq=False)
class ProbeFit:
    """One fitted head and what it says of the test rows."""

    scores: Floats
    """[m] log-odds of the test rows: a probability would round its largest values to ties."""
    C: float
    coefficients: Floats
    """[d], of the standardised features."""
    intercept: float
    converged: bool
    """Whether the refit reached its optimum."""
    cv_log_loss: dict[float, float]
    """C: mean over the folds of the mean held-out log loss, in nats; ascending C."""
    n_cv_not_converged: int
    """Fits on folds, of folds x len(C), that stopped at max_iter."""


def stratified_folds(labels: Labels, rank_order: NDArray[np.integer[Any]], folds: int) -> NDArray[np.int64]:
    """Deal items into folds, [n] numbers in [0, folds): positives, then negatives, round robin in rank order.

    Args:
        labels: [n], 1 is positive and 0 negative.
        rank_order: [n], the positions of the items from first to last in rank.
        folds: how many.

    Raises:
        ValueError: rank_order is not a permutation of the items.
    """
    labels, rank_order = np.asarray(labels), np.asarray(rank_order)
    if not np.array_equal(np.sort(rank_order), np.arange(len(labels))):
        raise ValueError(f"rank_order must be a permutation of {len(labels)} items")
    positive = labels[rank_order] == 1
    fold = np.empty(len(labels), np.int64)
    fold[np.concatenate([rank_order[positive], rank_order[~positive]])] = np.arange(len(labels)) % folds
    return fold


def undefined_probe_reason(train_y: Labels, fold: NDArray[np.integer[Any]], folds: int) -> str:
    """Say which fold lacks a class, so that no probe can be chosen; an empty string where none does."""
    for k in range(folds):
        held_out = train_y[fold == k]
        for name, n in (("positive", np.count_nonzero(held_out)), ("negative", np.count_nonzero(held_out == 0))):
            if not n:
                total = np.count_nonzero(train_y) if name == "positive" else np.count_nonzero(train_y == 0)
                return f"fold {k + 1} of {folds} has no {name} ({total:,} among {len(train_y):,} training items)"
    return ""


def fit_probe(
    train_x: Floats,
    train_y: Labels,
    test_x: Floats,
    settings: ProbeSettings,
    folds: NDArray[np.integer[Any]],
) -> tuple[ProbeFit | None, str]:
    """Choose C, refit on all training rows and score the test rows; (None, reason) where a fold lacks a class.

    The chosen C has the smallest mean held-out log loss, the smallest C among equals. Each fold is standardised by its
    own training rows. Within a fold C ascends and each fit starts from the previous one, as in scikit-learn's
    LogisticRegressionCV. BLAS is held to one thread, so the number of threads changes neither bits nor time.

    Args:
        train_x: [n, d], finite.
        train_y: [n], 1 is positive and 0 negative.
        test_x: [m, d], finite.
        settings: what the definition pins.
        folds: [n], the fold of each training row in [0, settings.folds).

    Raises:
        ValueError: shapes differ, or a value is none of these.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    _check_arrays(train_x, train_y, test_x, settings, folds)
    if reason := undefined_probe_reason(train_y, folds, settings.folds):
        return None, reason
    with threadpool_limits(limits=1, user_api="blas"):
        losses, n_not_converged = _cross_validate(train_x, train_y, settings, folds)
        C = min(losses, key=lambda C: (losses[C], C))
        train, test = _standardized(train_x, test_x, settings.standardize)
        coefficients, intercept, converged = _refit(train, train_y, C, settings)
        scores = test @ coefficients + intercept
    return ProbeFit(scores, C, coefficients, intercept, converged, losses, n_not_converged), ""


def _check_arrays(
    train_x: Floats, train_y: Labels, test_x: Floats, settings: ProbeSettings, folds: NDArray[np.integer[Any]]
) -> None:
    n, d = train_x.shape
    if train_y.shape != (n,) or folds.shape != (n,) or test_x.shape != (len(test_x), d):
        raise ValueError(f"{train_x.shape} features need {n} labels and folds, and {d} test features")
    if not (np.isfinite(train_x).all() and np.isfinite(test_x).all()):
        raise ValueError("features must be finite")
    if not ((train_y == 0) | (train_y == 1)).all():
        raise ValueError("labels must be 0 or 1")
    if not ((folds >= 0) & (folds < settings.folds)).all():
        raise ValueError(f"folds must be in [0, {settings.folds})")


def _cross_validate(
    x: Floats, y: Labels, settings: ProbeSettings, folds: NDArray[np.integer[Any]]
) -> tuple[dict[float, float], int]:
    """Return the mean held-out log loss of each C, ascending, and how many fits did not converge."""
    grid = sorted(float(C) for C in settings.C)
    losses = np.empty((settings.folds, len(grid)))
    n_not_converged = 0
    for k in range(settings.folds):
        held_out = folds == k
        train, test = _standardized(x[~held_out], x[held_out], settings.standardize)
        train, basis = _rotated(train)
        test = test if basis is None else test @ basis
        model = _logistic_regression(settings, warm_start=True)
        for column, C in enumerate(grid):
            n_not_converged += not _converges(model.set_params(C=C), train, y[~held_out])
            losses[k, column] = _log_loss(y[held_out], model.decision_function(test))
    return dict(zip(grid, losses.mean(axis=0).tolist(), strict=True)), n_not_converged


def _refit(x: Floats, y: Labels, C: float, settings: ProbeSettings) -> tuple[Floats, float, bool]:
    """Return coefficients, intercept and whether they are the optimum, by Newton steps to `FINAL_TOL`.

    L-BFGS stops when the loss no longer falls by more than rounding, where log-odds can still be off by 1e-4.
    """
    rotated, basis = _rotated(x)
    model = _logistic_regression(settings, C=C, solver="newton-cg", tol=FINAL_TOL)
    converged = _converges(model, rotated, y)
    coefficients = model.coef_[0] if basis is None else basis @ model.coef_[0]
    return coefficients, float(model.intercept_[0]), converged


def _standardized(train: Floats, test: Floats, standardize: bool) -> tuple[Floats, Floats]:
    """Standardise both by the training rows (population variance); a constant column is only centred."""
    if not standardize:
        return train, test
    mean, scale = train.mean(axis=0), train.std(axis=0)
    constant = train.min(axis=0) == train.max(axis=0)  # its computed deviation can be rounding instead of 0
    scale[constant | (scale == 0)] = 1.0
    return (train - mean) / scale, (test - mean) / scale


def _rotated(x: Floats) -> tuple[Floats, Floats | None]:
    """Return the rows in an orthonormal basis of their span, and that basis [d, n]; as they are where d <= n.

    The penalty |w|^2 does not change under rotation and the optimal w lies in the span of the rows, so the optimum is
    the same vector, found in n dimensions instead of d.
    """
    if x.shape[1] <= x.shape[0]:
        return x, None
    basis, coordinates = np.linalg.qr(x.T)
    return np.ascontiguousarray(coordinates.T), basis


def _logistic_regression(settings: ProbeSettings, **changes: Any) -> LogisticRegression:
    from sklearn.linear_model import LogisticRegression

    pinned: dict[str, Any] = {
        "solver": settings.solver,
        "tol": settings.tol,
        "max_iter": settings.max_iter,
        "class_weight": settings.class_weight,
    }
    return LogisticRegression(**pinned | changes)  # its default penalty is L2, with a free intercept


def _converges(model: LogisticRegression, x: Floats, y: Labels) -> bool:
    """Fit the model in place; tell whether it reached its tolerance within max_iter."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.filterwarnings("always", message="Line Search failed")
        model.fit(x, y)
    return not any(
        issubclass(warning.category, ConvergenceWarning) or "Line Search" in str(warning.message) for warning in caught
    )


def _log_loss(labels: Labels, log_odds: Floats) -> float:
    """Return the mean of -log p(label), in nats, without rounding p to 0 or 1."""
    return float(np.mean(np.logaddexp(0, log_odds) - labels * log_odds))
