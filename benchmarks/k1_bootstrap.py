"""K1: the bootstrap of ROC-AUC and average precision against a scikit-learn loop over the very same resamples.

Prints one JSON object a line. The loop runs on the first resamples only and is scaled linearly; on those every value
must agree to 1e-12, or the script fails. Only ratios of one run mean anything.

    python benchmarks/k1_bootstrap.py --repeats 5
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score
from threadpoolctl import threadpool_limits

from cxrspec.metrics import BLOCK, bootstrap_ranking, resample_indices

RESAMPLES = 1000
STREAM_KEY = "20261006:test:item"
PREVALENCE = [0.103, 0.025, 0.119, 0.177, 0.052, 0.056, 0.013, 0.047, 0.042, 0.021, 0.022, 0.015, 0.03, 0.002]
# name: items, findings (of PREVALENCE), decimals of the scores, resamples that the peer runs, target ratio
CASES = {
    "n=25596,F=14": (25596, list(range(14)), 4, 6, 150),
    "n=1013,F=5": (1013, [0, 1, 2, 8, 9], 3, BLOCK, 200),
}


def synthetic(n: int, findings: list[int], decimals: int) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """Return labels of NIH's prevalences and rounded, hence tied, scores: [n, F] each."""
    rng = np.random.default_rng(0)
    labels = (rng.random((n, len(findings))) < np.array(PREVALENCE)[findings]).astype(np.int8)
    log_odds = rng.normal(size=labels.shape) + 1.2 * labels - 2
    return labels, np.round(1 / (1 + np.exp(-log_odds)), decimals)


def sklearn_loop(labels: NDArray[np.int8], scores: NDArray[np.float64], part: int) -> dict[str, NDArray[np.float64]]:
    """Run both metrics on the first `part` resamples, finding by finding."""
    values: dict[str, list[Any]] = {"roc_auc": [], "average_precision": []}
    for items in resample_indices(STREAM_KEY, 0, len(labels), rows=part):
        resampled = labels[items], scores[items]
        values["roc_auc"].append(roc_auc_score(*resampled, average=None))
        values["average_precision"].append(average_precision_score(*resampled, average=None))
    return {kind: np.array(value) for kind, value in values.items()}


def timed(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the median seconds of the repeats and the last result."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), result


def compare(case: str, repeats: int) -> None:
    """Time both in turn, check that they agree, and print a line for each."""
    n, findings, decimals, part, target = CASES[case]
    labels, scores = synthetic(n, findings, decimals)
    sklearn_loop(labels[:, :1], scores[:, :1], 1)  # first calls are not timed
    peer_seconds, peer = timed(lambda: sklearn_loop(labels, scores, part), max(1, repeats // 2))
    seconds, product = timed(
        lambda: bootstrap_ranking(labels, scores, stream_key=STREAM_KEY, resamples=RESAMPLES), repeats
    )
    gap = max(np.abs(product[kind][:part] - peer[kind]).max() for kind in peer)
    if not gap <= 1e-12:  # NaN fails too
        raise SystemExit(f"{case}: values differ by {gap}")
    scaled = peer_seconds * RESAMPLES / part
    peer_row = {
        "peer": "scikit-learn loop",
        "seconds": round(scaled, 3),
        "scaled_from": f"{part} of {RESAMPLES} resamples",
    }
    row = {
        "peer": "cxrspec, one thread",
        "seconds": round(seconds, 4),
        "ratio": round(scaled / seconds),
        "target": target,
    }
    for line in (peer_row, row | {"largest_gap": float(gap)}):
        print(json.dumps({"kernel": "K1", "case": case} | line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="timed runs of cxrspec; the loop runs half as often")
    arguments = parser.parse_args()
    with threadpool_limits(limits=1):
        for case in CASES:
            compare(case, arguments.repeats)


if __name__ == "__main__":
    main()
