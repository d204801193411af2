"""K3: 500 items of a pool by iterative stratification, against the package iterative-stratification.

Prints one JSON object a line. The peer is random: its size and its largest gap from the pool's shares are compared,
never its items. The choice is checked against the item-by-item algorithm on the small pool, or the script fails.

    python benchmarks/k3_stratify.py --repeats 5
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

from cxrspec.digest import seed_hash_order
from cxrspec.selection import stratified_choice

SIZE = 500
SEED = 20261006
PREVALENCE = [0.103, 0.025, 0.119, 0.177, 0.052, 0.056, 0.013, 0.047, 0.042, 0.021, 0.022, 0.015, 0.03, 0.002]
FIVE = [0, 1, 8, 9, 2]
# name: items, labels (of PREVALENCE), target ratio alone, target ratio with the hash ranks
CASES = {
    "500 of 3473, L=5": (3_473, FIVE, 8, 4),
    "500 of 3473, L=14": (3_473, list(range(14)), 8, 4),
    "500 of 86524, L=5": (86_524, FIVE, 20, 4),
    "500 of 86524, L=14": (86_524, list(range(14)), 20, 4),
}


def one_by_one(labels: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
    """Choose one item at a time, as `cxrspec.selection` describes it, without slices."""
    n = len(labels)
    counts = labels.sum(axis=0).astype(np.int64)
    desired, places = np.stack([size * counts, (n - size) * counts]), [size * n, (n - size) * n]
    side = np.full(n, -1)
    while (left := labels[side < 0].sum(axis=0)).any():
        label = int(np.argmin(np.where(left > 0, left, n + 1)))
        for item in np.flatnonzero((side < 0) & labels[:, label]):
            here, there = (desired[0, label], places[0]), (desired[1, label], places[1])
            side[item] = 0 if places[0] > 0 and here > there else 1
            desired[side[item]] -= n * labels[item]
            places[side[item]] -= n
    fill = np.concatenate([np.flatnonzero(side < 0), np.flatnonzero(side == 1)])
    side[fill[: size - (side == 0).sum()]] = 0
    return side == 0


def timed(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the median seconds of the repeats, after one run that is not timed, and the last result."""
    seconds, result = [], run()
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), result


def peer_choice(labels: NDArray[np.bool_]) -> Callable[[], NDArray[np.bool_]] | None:
    """Return one run of the peer, or None where it is not installed."""
    try:
        from iterstrat.ml_stratifiers import MultilabelStratifiedShuffleSplit
    except ImportError:
        return None
    rows, whole = np.arange(len(labels))[:, None], labels.astype(int)

    def run() -> NDArray[np.bool_]:
        split = MultilabelStratifiedShuffleSplit(n_splits=1, test_size=SIZE / len(labels), random_state=0)
        chosen = np.zeros(len(labels), dtype=np.bool_)
        chosen[next(split.split(rows, whole))[1]] = True
        return chosen

    return run


def gap(labels: NDArray[np.bool_], chosen: NDArray[np.bool_]) -> float:
    """Return the largest difference between a label's share of the choice and of the pool."""
    return float(np.abs(labels[chosen].mean(axis=0) - labels.mean(axis=0)).max())


def compare(case: str, repeats: int) -> None:
    """Time both in turn and print a line for each."""
    n, columns, target, target_ranked = CASES[case]
    labels = np.random.default_rng(0).random((n, 14))[:, columns] < np.array(PREVALENCE)[columns]
    ids = [f"nih-{i // 4:08d}_{i % 4:03d}" for i in range(n)]
    ranking, order = timed(lambda: seed_hash_order(SEED, ids), repeats)
    ranked = labels[order]
    seconds, chosen = timed(lambda: stratified_choice(ranked, SIZE), repeats)
    if n < 10_000 and not np.array_equal(chosen, one_by_one(ranked, SIZE)):
        raise SystemExit(f"{case}: not the choice of the item-by-item algorithm")
    row: dict[str, Any] = {
        "peer": "cxrspec, one thread",
        "seconds": round(seconds, 5),
        "seconds_of_ranks": round(ranking, 5),
        "picked": int(chosen.sum()),
        "largest_gap": round(gap(ranked, chosen), 5),
    }
    if run := peer_choice(labels):
        peer_seconds, picked = timed(run, max(1, repeats // 2))
        found = {"picked": int(picked.sum()), "largest_gap": round(gap(labels, picked), 5)}
        show(case, {"peer": "iterative-stratification", "seconds": round(peer_seconds, 4), **found})
        row |= {"ratio": round(peer_seconds / seconds, 1), "target": target}
        row |= {"ratio_with_ranks": round(peer_seconds / (seconds + ranking), 1), "target_with_ranks": target_ranked}
    else:
        show(case, {"peer": "iterative-stratification", "note": "peer not installed"})
    show(case, row)


def show(case: str, row: dict[str, Any]) -> None:
    """Print one line."""
    print(json.dumps({"kernel": "K3", "case": case} | row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="timed runs of cxrspec; the peer runs half as often")
    arguments = parser.parse_args()
    for case in CASES:
        compare(case, arguments.repeats)


if __name__ == "__main__":
    main()
