"""What the findings task says about scores that a reader should look at twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cxrspec.digest import Table
from cxrspec.tasks import Evaluation, EvaluationInput
from cxrspec.tasks.findings import FindingsTask

INTERVAL = {"method": "bootstrap", "unit": "item", "resamples": 100, "level": 0.95}
N_ITEMS, N_POSITIVE = 200, 40


def evaluate(scores: np.ndarray, **interval: Any) -> Evaluation:
    """Evaluate scores of one finding of which the first 40 of 200 items are positive, two items a patient."""
    task = FindingsTask.model_validate(
        {
            "findings": {"edema": "Edema"},
            "labels": {"encoding": "yes_no"},
            "protocols": {"zero_shot": {}},
            "metrics": [
                {
                    "name": "auroc",
                    "kind": "roc_auc",
                    "protocol": "zero_shot",
                    "average": "macro",
                    "interval": [INTERVAL | interval],
                }
            ],
        }
    )
    ids = [f"i{number:03d}" for number in range(N_ITEMS)]
    labels = ["1"] * N_POSITIVE + ["0"] * (N_ITEMS - N_POSITIVE)
    groups = [f"p{number // 2:03d}" for number in range(N_ITEMS)]
    table = Table.sorted(("item_id", "group_id", "edema"), (ids, groups, labels))
    return task.evaluate(EvaluationInput("zero_shot", 1, {"test": table}, {"test": scores[:, None]}))


def spread(sign: float) -> np.ndarray:
    """Return distinct scores that rank the positives highest, or lowest where the sign is negative."""
    return sign * -np.arange(N_ITEMS, dtype=np.float64)


def test_scores_that_look_inverted_are_noted_and_never_flipped() -> None:
    """S12: An AUROC of 0 stays 0, with a note that the sign may be wrong."""
    result = evaluate(spread(-1))
    assert 0.0 == result.scores[0]["value"]
    assert ["ROC-AUC 0.000 looks inverted; it is reported as it is"] == [note.message for note in result.notes]
    assert [] == evaluate(spread(1)).notes


def test_coarse_scores_are_noted_with_their_ties() -> None:
    """S7: Scores of two values are scored with ties as halves, and called coarse."""
    result = evaluate((spread(1) > -20).astype(np.float64))
    assert 0.75 == result.scores[0]["value"]
    assert ["scores are coarse: 2 distinct values, 50.0% of pairs tied"] == [note.message for note in result.notes]


def test_the_interval_resamples_the_declared_unit() -> None:
    """S4: By patient the resamples are others than by item, and the report says which unit it was."""
    noisy = spread(1) + 150 * np.sin(np.arange(N_ITEMS))
    by_item, by_group = (evaluate(noisy, unit=unit).scores[0]["intervals"][0] for unit in ("item", "group"))
    assert ("item", "group") == (by_item["unit"], by_group["unit"])
    assert by_item["low"] != by_group["low"]


@pytest.mark.parametrize("allowed", [0.0, 1.0])
def test_defined_resamples_give_an_interval_at_any_allowed_share(allowed: float) -> None:
    """S2: With 40 positives no resample lacks a class, so nothing is left out."""
    interval = evaluate(spread(1), max_left_out=allowed).scores[0]["intervals"][0]
    assert (0, True) == (interval["n_left_out"], interval["low"] is not None)
