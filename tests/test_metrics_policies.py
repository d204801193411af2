"""Uncertainty policies: what each makes of a label of -1, and closed forms against a numerical minimizer."""

import numpy as np
import pytest
from scipy.optimize import minimize

from cxrspec.choices import POLICIES
from cxrspec.metrics.policies import class_weights, optimal_scores, positive_score

LABELS = np.array([1, 0, -1])
UNCERTAIN_COUNTS_AS = {
    "U-Ignore": [0, 0],
    "U-Zeros": [1, 0],
    "U-Ones": [0, 1],
    "U-SelfTrained": [0.75, 0.25],
    "U-MultiClass": [0, 0, 1],
}
CELLS = np.array([[0.6, 0.1, 0.3], [0.05, 0.9, 0.05], [0.3, 0.3, 0.4], [0.97, 0.02, 0.01]])


def minimized(policy: str, cell: np.ndarray, soft: float) -> float:
    """Return the score of the class probabilities that minimize the expected loss in one cell, found numerically."""
    weights = cell[[1, 0, 2]] @ class_weights(policy, LABELS, np.full(3, soft))  # LABELS begin with positive

    def loss(logits: np.ndarray) -> float:
        return -weights @ (logits - np.log(np.exp(logits).sum()))

    found = minimize(loss, np.zeros(len(weights)), method="BFGS", options={"gtol": 1e-9, "maxiter": 1000})
    return positive_score(np.exp(found.x)[None] / np.exp(found.x).sum())[0]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_decided_label_counts_alike_under_every_policy(policy):
    """C4: only the uncertain label is a matter of policy."""
    weights = class_weights(policy, LABELS, np.full(3, 0.25))
    assert [[0, 1], [1, 0]] == weights[:2, :2].tolist()


@pytest.mark.parametrize(("policy", "expected"), UNCERTAIN_COUNTS_AS.items())
def test_an_uncertain_label_counts_as_the_policy_says(policy, expected):
    """C4: -1 is left out, 0, 1, what a first model says, or a class of its own; never the number -1."""
    assert expected == class_weights(policy, LABELS, np.full(3, 0.25))[2].tolist()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cell", CELLS)
def test_optimal_scores_are_those_of_a_numerical_minimizer(policy, cell):
    """The closed form is what minimizing the policy's own loss gives, to 1e-5."""
    soft = optimal_scores("U-Ignore", cell[None])[0]
    assert minimized(policy, cell, soft) == pytest.approx(optimal_scores(policy, cell[None])[0], abs=1e-5)


@pytest.mark.parametrize("soft", [None, np.array([0.5]), np.array([np.nan] * 3), np.array([0, 0, 1.5])])
def test_self_training_needs_a_first_model(soft):
    """U-SelfTrained without probabilities of the uncertain items is refused, not filled in."""
    with pytest.raises(ValueError, match="needs a probability"):
        class_weights("U-SelfTrained", LABELS, soft)


def test_labels_of_other_values_are_refused():
    """C4: a number that is no label is no number for a loss either."""
    with pytest.raises(ValueError, match="1, 0 or -1"):
        class_weights("U-Zeros", np.array([2, 0]))
