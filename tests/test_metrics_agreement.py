"""Agreement of graders against scikit-learn and published worked tables."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from cxrspec.metrics import cohen_kappa, fleiss_kappa, krippendorff_alpha

O = np.nan  # noqa: E741
# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), section C: four observers, twelve units
KRIPPENDORFF = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, O, O, O],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, O, 3],
    [O, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, O],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, O],
]
# ten subjects, fourteen raters, five categories: the worked example of Fleiss' kappa in Wikipedia and statsmodels
FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
FIRST = [0, 0.5, 1, 1, 0, 0.5, 0.5, 1, 0, 1]
SECOND = [0, 1, 1, 0.5, 0, 0.5, 0, 1, 0.5, 1]


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_krippendorffs_alpha_is_that_of_his_own_example(level: str, alpha: float) -> None:
    """The published alpha of each level, to its three digits."""
    assert alpha == round(krippendorff_alpha(KRIPPENDORFF, level) or 0, 3)


def test_fleiss_kappa_is_that_of_the_worked_table() -> None:
    """The published value, to its three digits."""
    assert 0.210 == round(fleiss_kappa(FLEISS) or 0, 3)


@pytest.mark.parametrize(("first", "second"), [(FIRST, SECOND), (SECOND, FIRST), (FIRST, FIRST), (FIRST, FIRST[::-1])])
def test_cohens_kappa_is_scikit_learns(first: Sequence[float], second: Sequence[float]) -> None:
    """Two graders of ten answers."""
    peer = cohen_kappa_score(*([int(2 * grade) for grade in grades] for grades in (first, second)))
    assert pytest.approx(peer, abs=1e-12) == cohen_kappa(first, second)


def test_ordinal_alpha_by_its_definition() -> None:
    """Every pair of grades of one answer, and every pair at all, by the distance that the definition writes out."""
    ratings = np.array([FIRST, SECOND])
    counts = {level: int((ratings == level).sum()) for level in (0, 0.5, 1)}

    def distance(a: float, b: float) -> float:
        low, high = sorted((a, b))
        between = sum(n for level, n in counts.items() if low <= level <= high)
        return (between - (counts[low] + counts[high]) / 2) ** 2

    within = np.mean([distance(a, b) for a, b in ratings.T])
    among = np.mean([distance(a, b) for a, b in itertools.permutations(ratings.ravel(), 2)])
    assert pytest.approx(1 - within / among, abs=1e-12) == krippendorff_alpha(ratings, "ordinal")


def test_graders_who_agree_fully_have_one() -> None:
    """Kappa and alpha are 1 where every grade is the same and there is more than one grade."""
    assert [1, 1] == [cohen_kappa(FIRST, FIRST), krippendorff_alpha([FIRST, FIRST], "ordinal")]
    assert 1 == fleiss_kappa([[3, 0], [0, 3]])


def test_one_grade_throughout_is_undefined() -> None:
    """Chance alone would agree fully: None, not 1 and not NaN."""
    assert [None, None] == [cohen_kappa([1, 1], [1, 1]), krippendorff_alpha([[1, 1], [1, 1]], "ordinal")]
    assert None is fleiss_kappa([[3, 0], [3, 0]])


def test_ratings_that_pair_with_nothing_are_undefined() -> None:
    """One grader alone agrees with nobody."""
    assert None is krippendorff_alpha([[1, 2, 3]], "ordinal")


def test_graders_of_other_units_are_refused() -> None:
    """Kappa is of the same units, and Fleiss' of the same number of graders each."""
    for call in (lambda: cohen_kappa([1], [1, 0]), lambda: cohen_kappa([], []), lambda: fleiss_kappa([[2, 0], [1, 0]])):
        with pytest.raises(ValueError, match="graders"):
            call()
