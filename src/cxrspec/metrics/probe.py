"""Own the logistic probe: one head on frozen features, its C chosen by cross-validation.

scikit-learn solves every problem; this module only chooses. It knows no items, no subsets and no random numbers: the
folds come in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cxrspec.choices import POLICIES, Policy
from cxrspec.metrics.logistic import Floats, Labels
from cxrspec.metrics.uncertain import policy_head, policy_labels

FINAL_TOL = 1e-10
"""Largest gradient component of the refit: its optimum is then the same on every machine to about 1e-8."""


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
    uncertain: Policy | None = None
    """What is made of training labels of -1; without a policy they are refused."""

    def __post_init__(self) -> None:
        if not self.C or not all(0 < C < math.inf for C in self.C) or len(set(self.C)) < len(self.C):
            raise ValueError(f"C must be distinct positive numbers, not {self.C}")
        if self.folds < 2 or self.max_iter < 1 or not self.tol > 0:
            raise ValueError("folds must be at least 2, max_iter at least 1 and tol positive")
        if self.select_by != "log_loss" or self.solver not in ("lbfgs", "newton-cg"):
            raise ValueError(f"cannot select by {self.select_by!r} or solve with {self.solver!r}")
        if self.class_weight not in (None, "balanced"):
            raise ValueError(f"class_weight must be None or 'balanced', not {self.class_weight!r}")
        if self.uncertain not in (None, *POLICIES):
            raise ValueError(f"uncertain must be one of {POLICIES}, not {self.uncertain!r}")

    @property
    def pinned(self) -> dict[str, Any]:
        """What a head is prepared with."""
        names = ("standardize", "solver", "tol", "max_iter", "class_weight")
        return {name: getattr(self, name) for name in names}


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
    """Deal items into folds, [n] numbers in [0, folds), round robin in rank order: positives, negatives, uncertain.

    Args:
        labels: [n], 1 is positive, 0 negative and -1 uncertain.
        rank_order: [n], the positions of the items from first to last in rank.
        folds: how many.

    Raises:
        ValueError: rank_order is not a permutation of the items.
    """
    labels, rank_order = np.asarray(labels), np.asarray(rank_order)
    if not np.array_equal(np.sort(rank_order), np.arange(len(labels))):
        raise ValueError(f"rank_order must be a permutation of {len(labels)} items")
    ranked = labels[rank_order]
    fold = np.empty(len(labels), np.int64)
    dealt = np.concatenate([rank_order[ranked == label] for label in (1, 0, -1)])
    fold[dealt] = np.arange(len(labels)) % folds
    return fold


def undefined_probe_reason(train_y: Labels, fold: NDArray[np.integer[Any]], folds: int) -> str:
    """Say which fold lacks a class, so that no probe can be chosen; an empty string where none does."""
    for k in range(folds):
        held_out = train_y[fold == k]
        for name, label in (("positive", 1), ("negative", 0)):
            if not np.count_nonzero(held_out == label):
                total = np.count_nonzero(train_y == label)
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

    A policy for uncertain labels is followed in every fold. A held-out row counts in the loss where the policy gives
    it a label of 1 or 0: all rows under U-Zeros and U-Ones, only the decided ones under the other three.

    Args:
        train_x: [n, d], finite.
        train_y: [n], 1 is positive, 0 negative and, under a policy, -1 uncertain.
        test_x: [m, d], finite.
        settings: what the definition pins.
        folds: [n], the fold of each training row in [0, settings.folds).

    Raises:
        ValueError: shapes differ, or a value is none of these.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    train_y = policy_labels(train_y, settings.uncertain)
    _check_arrays(train_x, train_y, test_x, settings, folds)
    if reason := undefined_probe_reason(train_y, folds, settings.folds):
        return None, reason
    with threadpool_limits(limits=1, user_api="blas"):
        losses, n_not_converged = _cross_validate(train_x, train_y, settings, folds)
        C = min(losses, key=lambda C: (losses[C], C))
        # L-BFGS stops when the loss no longer falls by more than rounding, where log-odds can still be off by 1e-4
        exactly = settings.pinned | {"solver": "newton-cg", "tol": FINAL_TOL}
        head = policy_head(train_x, train_y, settings.uncertain, **exactly)
        converged = head.fit(C)
        scores = head.space.standardized(test_x) @ head.coefficients + head.intercept
    return ProbeFit(scores, C, head.coefficients, head.intercept, converged, losses, n_not_converged), ""


def _check_arrays(
    train_x: Floats, train_y: Labels, test_x: Floats, settings: ProbeSettings, folds: NDArray[np.integer[Any]]
) -> None:
    n, d = train_x.shape
    if train_y.shape != (n,) or folds.shape != (n,) or test_x.shape != (len(test_x), d):
        raise ValueError(f"{train_x.shape} features need {n} labels and folds, and {d} test features")
    if not (np.isfinite(train_x).all() and np.isfinite(test_x).all()):
        raise ValueError("features must be finite")
    allowed = (0, 1) if settings.uncertain is None else (-1, 0, 1)
    if not np.isin(train_y, allowed).all():
        raise ValueError(f"labels must be {' or '.join(map(str, allowed))}")
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
        fitted, counted = folds != k, (folds == k) & (y != -1)
        head = policy_head(x[fitted], y[fitted], settings.uncertain, warm_start=True, **settings.pinned)
        held_out = head.space.place(x[counted])
        for column, C in enumerate(grid):
            n_not_converged += not head.fit(C)
            losses[k, column] = _log_loss(y[counted], head.log_odds(held_out))
    return dict(zip(grid, losses.mean(axis=0).tolist(), strict=True)), n_not_converged


def _log_loss(labels: Labels, log_odds: Floats) -> float:
    """Return the mean of -log p(label), in nats, without rounding p to 0 or 1."""
    return float(np.mean(np.logaddexp(0, log_odds) - labels * log_odds))
