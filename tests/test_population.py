"""The worked example of the CheXpert competition: policies, readers and curves over 20 weighted cells, all exact."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from cxrspec.choices import POLICIES
from cxrspec.metrics import curve_points, is_below, reader_margin, reader_point, roc_auc
from cxrspec.metrics.policies import optimal_scores

EXPECTED = Path(__file__).parents[2] / "shared" / "expected" / "chexpert_population.json"
B, IS_AP = (column.ravel() for column in np.meshgrid(np.arange(10.0), [False, True], indexing="ij"))
SHARE = np.where(IS_AP, 0.4, 0.6) / 10
PRESENT = expit(B - 6)
UNCERTAIN = {  # P(uncertain label | cell, y = 0 and y = 1)
    "T1 borderline": [0.4 * np.exp(-(((B - 6) / 1.5) ** 2))] * 2,
    "T2 u-means-likely": [np.full(20, 0.05), np.full(20, 0.30)],
    "T3 view-driven": [np.where(IS_AP, 0.35, 0.05)] * 2,
    "T4 likely-on-AP": [np.full(20, 0.05), np.where(IS_AP, 0.45, 0.05)],
    "T5 unlikely-on-AP": [np.where(IS_AP, 0.45, 0.05), np.full(20, 0.05)],
}
CEILING = binom.sf(2, 5, expit(2 * (B - 6)))
READERS = {"R1": expit(1.5 * (B - 6)), "R2": expit(1.5 * (B - 7)), "R3": expit(B - 5)}
SCORES = (*POLICIES, "ceiling")
TASKS = tuple(UNCERTAIN)


def scores_of(task: str, score: str) -> np.ndarray:
    """Return the score of each cell [20], as it is before rounding."""
    if score == "ceiling":
        return CEILING
    given_0, given_1 = UNCERTAIN[task]
    uncertain = PRESENT * given_1 + (1 - PRESENT) * given_0
    positive = PRESENT * (1 - given_1) * 0.9 + (1 - PRESENT) * (1 - given_0) * 0.03
    return optimal_scores(score, np.stack([1 - positive - uncertain, positive, uncertain], axis=1))


LABELS = np.repeat([0, 1], 20)
"""Every cell twice: with a reference standard of 0 and of 1."""
WEIGHTS = np.concatenate([SHARE * (1 - CEILING), SHARE * CEILING])


def ranked(values: np.ndarray) -> np.ndarray:
    """Return scores [40] of the weighted items; rounded, so that exact ties stay ties."""
    return np.tile(np.round(values, 12), 2)


def auroc(values: np.ndarray) -> float:
    """Return the AUROC of a score over the cells."""
    return roc_auc(LABELS, ranked(values), WEIGHTS)


def margins(values: np.ndarray, line: str) -> list[float]:
    """Return the margin over each reader; an item is split by what the reader calls it."""
    points = curve_points(LABELS, ranked(values), WEIGHTS)
    found = []
    for calls in READERS.values():
        called = np.tile(calls, 2)
        split = np.concatenate([WEIGHTS * (1 - called), WEIGHTS * called])
        reader = reader_point(np.tile(LABELS, 2), np.repeat([0, 1], 40), split)
        found.append(reader_margin(points, reader, "roc", line))
    return found


def count(values: np.ndarray, line: str) -> int:
    """Count the readers below the curve."""
    return sum(is_below(margin, "strict") for margin in margins(values, line))


def discordant(values: np.ndarray, others: np.ndarray) -> int:
    """Count the pairs of cells that two scores order differently."""
    signs = [np.sign(np.round(one, 12)[:, None] - np.round(one, 12)) for one in (values, others)]
    return int((signs[0] * signs[1] < 0).sum()) // 2


@pytest.fixture(scope="module")
def expected() -> dict:
    """The published numbers, or a skip that says that they are missing."""
    if not EXPECTED.is_file():
        pytest.skip(f"the published numbers are not here: {EXPECTED}")
    return json.loads(EXPECTED.read_text())


@pytest.mark.parametrize("task", TASKS)
def test_auroc_to_six_decimals(expected, task):
    """The AUROC of every policy and of the ceiling."""
    found = {score: round(auroc(scores_of(task, score)), 6) for score in SCORES}
    assert expected["auroc"][task] == found


def test_mean_auroc_to_six_decimals(expected):
    """Their means over the five tasks."""
    found = {score: round(np.mean([auroc(scores_of(task, score)) for task in TASKS]), 6) for score in SCORES}
    assert expected["auroc"]["mean of 5 tasks"] == found


@pytest.mark.parametrize("line", ["step", "interpolated"])
@pytest.mark.parametrize("task", TASKS)
def test_readers_below_and_margins_to_four_decimals(expected, task, line):
    """Counts and margins of every score under both conventions."""
    found = {
        score: {
            "count": count(scores_of(task, score), line),
            "margins": np.round(margins(scores_of(task, score), line), 4).tolist(),
        }
        for score in SCORES
    }
    assert expected["readers_below_curve"][line][task] == found


@pytest.mark.parametrize("line", ["step", "interpolated"])
def test_totals(expected, line):
    """Total and mean over the five tasks."""
    totals = {score: sum(count(scores_of(task, score), line) for task in TASKS) for score in SCORES}
    found = {score: {"total": total, "mean": total / 5} for score, total in totals.items()}
    assert expected["readers_below_curve"][line]["total"] == found


@pytest.mark.parametrize("task", TASKS)
def test_discordant_pairs(expected, task):
    """How many pairs of cells each policy orders against the ceiling."""
    found = {policy: discordant(scores_of(task, policy), CEILING) for policy in POLICIES}
    assert expected["discordant_pairs"][task] == found


def test_interpolated_count_is_at_least_the_step_count():
    """Property 1: for every task and score."""
    for task in TASKS:
        for score in SCORES:
            values = scores_of(task, score)
            assert count(values, "interpolated") >= count(values, "step")


def test_breaking_ties_without_reordering_moves_the_step_count_only():
    """Property 2: the ceiling, told apart by the view, which says nothing about the reference standard."""
    broken = CEILING + np.where(IS_AP, 1e-9, 0)  # below every gap between cells that the ceiling tells apart by b
    broken = np.where(np.isclose(CEILING, 1, atol=1e-6) | (CEILING < 1e-6), CEILING, broken)
    assert (count(CEILING, "interpolated"), 3) == (count(broken, "interpolated"), count(broken, "step"))
    assert margins(CEILING, "interpolated") == pytest.approx(margins(broken, "interpolated"), abs=1e-12)
    assert count(CEILING, "step") == 2


def test_step_totals_reverse_the_order_of_auroc():
    """Property 3: U-Ones, U-Zeros and the ceiling rise in AUROC and fall in readers passed; no policy passes fewer."""
    aurocs = {score: np.mean([auroc(scores_of(task, score)) for task in TASKS]) for score in SCORES}
    totals = {score: sum(count(scores_of(task, score), "step") for task in TASKS) for score in SCORES}
    rising = ["U-Ones", "U-Zeros", "ceiling"]
    assert rising == sorted(rising, key=aurocs.get) == sorted(rising, key=totals.get, reverse=True)
    assert all(
        totals[policy] > totals["ceiling"] and aurocs[policy] <= aurocs["ceiling"] + 1e-15 for policy in POLICIES
    )


def test_gaps_are_not_rounded_before_they_are_compared():
    """Property 4: in T5 U-Zeros lies 4.0e-12 below the ceiling, for two discordant pairs."""
    values = scores_of("T5 unlikely-on-AP", "U-Zeros")
    assert 4.0e-12 == pytest.approx(auroc(CEILING) - auroc(values), abs=0.05e-12)
    assert discordant(values, CEILING) == 2
