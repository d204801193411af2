"""K2: DeLong's variance and paired test, against confidenceinterval and MLstatkit in one run.

Prints one JSON object a line. z must agree with MLstatkit to 1e-12 of itself, the variance with confidenceinterval to
1e-6 (it holds midranks in float32), or the script fails. Only ratios of one run mean anything. A peer that is not
installed is said and left out.

    pip install MLstatkit confidenceinterval
    python benchmarks/k2_delong.py --repeats 21
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cxrspec.metrics import delong_test, delong_variance

N_ITEMS, PREVALENCE = 25_596, 0.119
TARGETS = {"variance": 15, "paired test": 12}
Floats = NDArray[np.float64]


def synthetic() -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return labels of one NIH finding's prevalence, rounded (hence tied) scores, and those of a related system."""
    rng = np.random.default_rng(0)
    labels = (rng.random(N_ITEMS) < PREVALENCE).astype(np.int64)
    first = np.round(1 / (1 + np.exp(-(rng.normal(size=N_ITEMS) + 1.2 * labels - 2))), 4)
    return labels, first, np.round(first + 0.1 * rng.normal(size=N_ITEMS), 6)


def timed(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the median seconds of the repeats and the last result; the first call is not timed."""
    run()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), result


def peer(module: str, name: str) -> Callable[..., Any] | None:
    """Return a peer's function, or say that it is not installed."""
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except ImportError as error:
        print(json.dumps({"kernel": "K2", "peer": module, "left_out": str(error)}))
        return None
    return found


def show(case: str, name: str, peer_seconds: float, seconds: float, gap: float) -> None:
    """Print a line for the peer and one for cxrspec."""
    row = {"seconds": round(seconds, 6), "ratio": round(peer_seconds / seconds, 1), "target": TARGETS[case]}
    for line in (
        {"peer": name, "seconds": round(peer_seconds, 6)},
        {"peer": "cxrspec, one thread", **row, "largest_gap": gap},
    ):
        print(json.dumps({"kernel": "K2", "case": f"n={N_ITEMS}, {case}"} | line), flush=True)


def require(gap: float, allowed: float, what: str) -> float:
    """End the script where two results differ; NaN does too."""
    if not gap <= allowed:
        raise SystemExit(f"{what} differs by {gap}")
    return gap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=21, help="timed runs of each")
    repeats = parser.parse_args().repeats
    labels, first, second = synthetic()
    with threadpool_limits(limits=1):
        if of_one := peer("confidenceinterval.delong", "delong_roc_variance"):
            peer_seconds, (_, variance) = timed(lambda: of_one(labels, first), repeats)
            seconds, ours = timed(lambda: delong_variance(labels, first), repeats)
            gap = require(abs(float(variance) / ours - 1), 1e-6, "the variance")
            show("variance", "confidenceinterval delong_roc_variance", peer_seconds, seconds, gap)
        if of_two := peer("MLstatkit.delong", "Delong_test"):
            peer_seconds, theirs = timed(lambda: of_two(labels, first, second), repeats)
            seconds, found = timed(lambda: delong_test(labels, first, second), repeats)
            gap = require(abs(theirs[0] / found.z + 1), 1e-12, "z")  # theirs is the second minus the first
            show("paired test", "MLstatkit Delong_test", peer_seconds, seconds, gap)


if __name__ == "__main__":
    main()
