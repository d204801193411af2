"""Own the five policies for uncertain training labels (-1) as losses: how a label enters one, and what it aims at.

Pure functions of arrays. Nothing here fits a model or knows findings (logistic heads under the same policies are in
`uncertain`); a blank label is 0 by the time it gets here.
Source: Irvin et al., CheXpert: a large chest radiograph dataset with uncertainty labels and expert comparison, 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cxrspec.choices import Policy

Floats = NDArray[np.float64]
Labels = NDArray[np.integer[Any]]
NEGATIVE, POSITIVE, UNCERTAIN = range(3)
"""Columns of class weights and of class probabilities; only U-MultiClass has the third."""


def class_weights(policy: Policy, labels: Labels, soft: Floats | None = None) -> Floats:
    """Return how much each item counts as each class in the policy's loss: [n, 2], or [n, 3] under U-MultiClass.

    The loss of predicted class probabilities p [n, k] is -sum(W * log(p)): the (weighted) cross-entropy. A row sums to
    1, or to 0 where the policy leaves the item out; U-SelfTrained divides an uncertain item between both classes.

    Args:
        policy: one of the five.
        labels: [n], 1 positive, 0 negative (a blank too), -1 uncertain.
        soft: [n], P(positive) by a U-Ignore model; read where a label is -1, by U-SelfTrained.

    Raises:
        ValueError: labels hold other values, or U-SelfTrained lacks a probability of an uncertain item.
    """
    labels = np.asarray(labels)
    if not np.isin(labels, (-1, 0, 1)).all():
        raise ValueError("labels must be 1, 0 or -1")
    uncertain = labels == -1
    weights = np.zeros((len(labels), 3 if policy == "U-MultiClass" else 2))
    weights[:, NEGATIVE], weights[:, POSITIVE] = labels == 0, labels == 1
    if policy == "U-MultiClass":
        weights[uncertain, UNCERTAIN] = 1
    elif policy != "U-Ignore":
        positive = _soft(soft, uncertain) if policy == "U-SelfTrained" else float(policy == "U-Ones")
        weights[uncertain, POSITIVE] = positive
        weights[uncertain, NEGATIVE] = 1 - positive
    return weights


def _soft(soft: Floats | None, uncertain: NDArray[np.bool_]) -> Floats:
    found = np.full(len(uncertain), np.nan) if soft is None else np.asarray(soft, np.float64)
    if found.shape != uncertain.shape or not ((found[uncertain] >= 0) & (found[uncertain] <= 1)).all():
        raise ValueError("U-SelfTrained needs a probability in [0, 1] of each uncertain item, by a U-Ignore model")
    return found[uncertain]


def positive_score(probabilities: Floats) -> Floats:
    """Return P(positive) [n] among negative and positive, from class probabilities [n, 2] or [n, 3].

    Under U-MultiClass this is the softmax restricted to the two classes; of two classes it is the second.
    """
    decided = probabilities[:, [NEGATIVE, POSITIVE]]
    return np.asarray(decided[:, POSITIVE] / decided.sum(axis=1))


def optimal_scores(policy: Policy, label_probabilities: Floats) -> Floats:
    """Return the scores [n] that a model reaches which minimizes the policy's expected loss in every cell.

    Args:
        policy: one of the five.
        label_probabilities: [n, 3], per cell of equal inputs the probability of a negative, positive, uncertain label.
    """
    negative, positive, uncertain = np.asarray(label_probabilities, np.float64).T
    return _OPTIMA[policy](negative, positive, uncertain)


def _ignoring(negative: Floats, positive: Floats, _: Floats) -> Floats:
    return positive / (negative + positive)


_OPTIMA: Final[dict[Policy, Callable[[Floats, Floats, Floats], Floats]]] = {
    "U-Zeros": lambda _, positive, __: positive,
    "U-Ones": lambda _, positive, uncertain: positive + uncertain,
    "U-Ignore": _ignoring,
    "U-SelfTrained": lambda negative, positive, uncertain: (
        positive + uncertain * _ignoring(negative, positive, uncertain)
    ),
    "U-MultiClass": _ignoring,
}
