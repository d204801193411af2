"""K6: five logistic probes, C chosen from 10 values by 5-fold cross-validation, against LogisticRegressionCV.

Prints one JSON object a line. Both get the same rows, folds and grid; LogisticRegressionCV gets features that are
standardised once, cxrspec standardises each fold. The peer runs one head, scaled to five, at its default tolerance and
at one that gives losses as exact as ours; --peer-threads 1 2 also tries two BLAS threads (much slower at d = 2048).
Every cxrspec refit must agree with a scikit-learn refit at the chosen C to 1e-6, or the script fails. Only ratios of
one run mean anything.

    python benchmarks/k6_probe.py --repeats 3 --dims 768 2048
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from threadpoolctl import threadpool_limits

from cxrspec.metrics import ProbeFit, ProbeSettings, fit_probe, stratified_folds

N_TRAIN, N_TEST, HEADS, FOLDS = 500, 1000, 5, 5
GRID = tuple(np.logspace(-5, 1, 10).tolist())
PRODUCT_SETTINGS = {
    "newton-cg, tol 1e-6": ProbeSettings(C=GRID, folds=FOLDS, tol=1e-6, solver="newton-cg"),
    "lbfgs, tol 1e-6": ProbeSettings(C=GRID, folds=FOLDS, tol=1e-6, solver="lbfgs"),
}
PEER_SETTINGS: dict[str, dict[str, Any]] = {
    "lbfgs, tol 1e-4, max_iter 100 (defaults)": {},
    "lbfgs, tol 1e-8": {"tol": 1e-8, "max_iter": 5000},  # losses as exact as those of newton-cg at 1e-6
}
Floats = NDArray[np.float64]


def synthetic(d: int) -> tuple[Floats, NDArray[np.int64]]:
    """Return features with a decaying spectrum and labels of chest radiograph prevalences: [n, d] and [n, HEADS]."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(N_TRAIN + N_TEST, 64)) * np.linspace(3, 0.3, 64)
    x = latent @ rng.normal(size=(64, d)) + rng.normal(size=(len(latent), d))
    log_odds = latent @ rng.normal(size=(64, HEADS)) * 0.25 + rng.logistic(size=(len(latent), HEADS))
    cuts = np.quantile(log_odds, [0.85, 0.9, 0.92, 0.94, 0.7], axis=0).diagonal()
    return x, (log_odds > cuts).astype(np.int64)


def run_product(
    x: Floats, y: NDArray[np.int64], folds: list[NDArray[np.int64]], settings: ProbeSettings
) -> list[ProbeFit]:
    """Fit all heads; every one of them is defined on these data."""
    fits = [fit_probe(x[:N_TRAIN], y[:N_TRAIN, h], x[N_TRAIN:], settings, folds[h])[0] for h in range(HEADS)]
    return [fit for fit in fits if fit is not None]


def run_peer(z: Floats, y: NDArray[np.int64], folds: NDArray[np.int64], settings: dict[str, Any]) -> None:
    """Fit one head on standardised features."""
    split = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(FOLDS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LogisticRegressionCV(Cs=GRID, cv=split, scoring="neg_log_loss", **settings).fit(z, y)


def largest_gap(fits: list[ProbeFit], z: Floats, y: NDArray[np.int64]) -> float:
    """Compare log-odds of the test rows with scikit-learn's refit at the chosen C, in all d dimensions."""
    gaps = []
    for h, fit in enumerate(fits):
        model = LogisticRegression(C=fit.C, solver="newton-cg", tol=1e-11, max_iter=500).fit(
            z[:N_TRAIN], y[:N_TRAIN, h]
        )
        gaps.append(np.abs(model.decision_function(z[N_TRAIN:]) - fit.scores).max())
    return float(max(gaps))


def median_seconds(run: Callable[[], object], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def emit(case: str, peer: str, seconds: float, **more: object) -> None:
    print(json.dumps({"kernel": "K6", "case": case, "peer": peer, "seconds": round(seconds, 3)} | more), flush=True)


def compare(d: int, repeats: int, peer_threads: list[int]) -> None:
    """Time the peer at its better number of threads, then the product, and print a line for each."""
    case = f"{N_TRAIN} x {d}, {HEADS} heads, {len(GRID)} C, {FOLDS} folds"
    x, y = synthetic(d)
    z = (x - x[:N_TRAIN].mean(axis=0)) / x[:N_TRAIN].std(axis=0)
    folds = [stratified_folds(y[:N_TRAIN, h], np.arange(N_TRAIN), FOLDS) for h in range(HEADS)]
    best: dict[str, float] = {}
    for name, settings in PEER_SETTINGS.items():
        for threads in peer_threads:
            with threadpool_limits(limits=threads):
                one = median_seconds(lambda s=settings: run_peer(z[:N_TRAIN], y[:N_TRAIN, 0], folds[0], s), repeats)
            best[name] = min(best.get(name, np.inf), one * HEADS)
            emit(
                case,
                f"LogisticRegressionCV {name}, {threads} thread(s)",
                one * HEADS,
                scaled_from=f"1 of {HEADS} heads",
            )
    for name, settings in PRODUCT_SETTINGS.items():
        seconds = median_seconds(lambda s=settings: run_product(x, y, folds, s), repeats)
        gap = largest_gap(run_product(x, y, folds, settings), z, y)
        if not gap <= 1e-6:
            raise SystemExit(f"{case}: log-odds differ by {gap}")
        ratios = {f"ratio to {peer}": round(peer_seconds / seconds, 1) for peer, peer_seconds in best.items()}
        emit(case, f"cxrspec {name}", seconds, **ratios, largest_gap=gap)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--dims", type=int, nargs="+", default=[768, 2048])
    parser.add_argument(
        "--peer-threads", type=int, nargs="+", default=[1], help="BLAS threads of the peer: 1 2 tries both"
    )
    arguments = parser.parse_args()
    for d in arguments.dims:
        compare(d, arguments.repeats, arguments.peer_threads)


if __name__ == "__main__":
    main()
