"""Own what a logistic head makes of uncertain training labels (-1) under each of the five policies.

Their losses for any model, and the scores that these losses aim at, are in `policies`; their source is there too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cxrspec.choices import Policy
from cxrspec.metrics.logistic import Floats, Head, Labels, converges


def policy_labels(labels: Labels, policy: Policy | None) -> Labels:
    """Return labels [n] of 1, 0 and -1 with each -1 made 0 (U-Zeros) or 1 (U-Ones); other policies leave it."""
    decided = {"U-Zeros": 0, "U-Ones": 1}.get(policy or "")
    return labels if decided is None else np.where(labels == -1, decided, labels).astype(labels.dtype)


def policy_head(x: Floats, y: Labels, policy: Policy | None, **pinned: Any) -> Head:
    """Return the head of a policy for rows [n, d] with labels [n] of 1, 0 and -1, prepared but not fitted.

    U-MultiClass has -1 for a third class. Without a row of -1 all policies have the one binary head.
    """
    decided = y != -1
    if decided.all() or policy == "U-MultiClass":
        return Head(x, y, **pinned)
    if policy == "U-SelfTrained":
        return SelfTrainedHead(x, y, **pinned)
    return Head(x[decided], y[decided], **pinned)


class SelfTrainedHead(Head):
    """U-SelfTrained: a U-Ignore head predicts the uncertain rows, and a second head is fitted with what it says.

    An uncertain row with the U-Ignore head's probability p counts twice: as a positive of weight p, as a negative of
    weight 1 - p. Both heads have one C; the first is standardised by its own rows, the second by all.
    """

    def __init__(self, x: Floats, y: Labels, *, standardize: bool, **pinned: Any) -> None:
        """Prepare both heads."""
        super().__init__(x, y, standardize=standardize, **pinned)
        decided, uncertain = np.flatnonzero(y != -1), np.flatnonzero(y == -1)
        self.first = Head(x[decided], y[decided], standardize=standardize, **pinned)
        self.uncertain = self.first.space.place(x[uncertain])
        soft = np.repeat([1, 0], len(uncertain)).astype(y.dtype)
        self.labels = np.concatenate([y[decided], soft])
        self.rows = self.space.rows[np.concatenate([decided, uncertain, uncertain])]
        self.n_decided = len(decided)

    def fit(self, C: float) -> bool:
        """Fit both at one C; tell whether both reached their optimum."""
        from scipy.special import expit

        is_first_fitted = self.first.fit(C)
        log_odds = self.first.log_odds(self.uncertain)
        weights = np.concatenate([np.ones(self.n_decided), expit(log_odds), expit(-log_odds)])
        return converges(self.model.set_params(C=C), self.rows, self.labels, weights) and is_first_fitted
