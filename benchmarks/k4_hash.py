"""K4: the canonical digest of a frozen subset of 112,120 rows, against canonical JSON and pandas.

Prints one JSON object a line. Rows come in the order of their ids, as the compiler hands them on, or shuffled, for
cxrspec and its peers alike. Both orders must give one digest, that of the same text by hand, or the script fails.

    python benchmarks/k4_hash.py --repeats 5
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from cxrspec.digest import Table

N_ROWS = 112_120
PREVALENCE = [0.103, 0.025, 0.119, 0.177, 0.052, 0.056, 0.013, 0.047, 0.042, 0.021, 0.022, 0.015, 0.03, 0.002]
FINDINGS = tuple(f"finding_{i:02d}" for i in range(14))
HEADER = ("item_id", "group_id", *FINDINGS)
TARGETS = {"canonical JSON": 10, "pandas sort + to_csv": 3}


def synthetic(*, shuffle: bool) -> list[list[str]]:
    """Return the columns of a table with NIH's number of rows and shares of labels."""
    rng = np.random.default_rng(0)
    labels = rng.random((N_ROWS, 14)) < PREVALENCE
    ids = [f"nih-{i // 4:08d}_{i % 4:03d}" for i in range(N_ROWS)]
    columns = [
        ids,
        [str(i // 4) for i in range(N_ROWS)],
        *(["01"[cell] for cell in column] for column in labels.T.tolist()),
    ]
    order = rng.permutation(N_ROWS).tolist() if shuffle else range(N_ROWS)
    return [[column[i] for i in order] for column in columns]


def timed(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the median seconds of the repeats, after one run that is not timed, and the last result."""
    seconds, result = [], run()
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), result


def canonical_json(columns: list[list[str]]) -> str:
    """Digest a JSON list of one object per row, sorted by id."""
    rows = sorted(
        (dict(zip(HEADER, row, strict=True)) for row in zip(*columns, strict=True)), key=lambda r: r["item_id"]
    )
    return hashlib.sha256(json.dumps(rows, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def compare(state: str, columns: list[list[str]], repeats: int) -> str:
    """Time cxrspec and its peers on the same rows, print a line for each, and return the digest."""
    frame = pd.DataFrame(dict(zip(HEADER, columns, strict=True))).astype(dict.fromkeys(FINDINGS, np.int8))
    peers = {
        "canonical JSON": lambda: canonical_json(columns),
        "pandas sort + to_csv": lambda: hashlib.sha256(frame.sort_values("item_id").to_csv(index=False).encode()),
    }
    seconds_of = {name: timed(run, max(1, repeats // 2))[0] for name, run in peers.items()}
    for name, seconds in seconds_of.items():
        show(state, {"peer": name, "seconds": round(seconds, 4)})
    seconds, digest = timed(lambda: Table.sorted(HEADER, columns).digest, repeats)
    ratios = {name: round(peer / seconds, 1) for name, peer in seconds_of.items()}
    show(state, {"peer": "cxrspec", "seconds": round(seconds, 4), "ratios": ratios, "targets": TARGETS})
    return str(digest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="timed runs of cxrspec; the peers run half as often")
    repeats = parser.parse_args().repeats
    states = {"in order": synthetic(shuffle=False), "shuffled": synthetic(shuffle=True)}
    found = {compare(state, columns, repeats) for state, columns in states.items()}
    rows = sorted(zip(*states["shuffled"], strict=True))
    text = "".join("\t".join(row) + "\n" for row in (HEADER, *rows))
    if found != {hashlib.sha256(text.encode()).hexdigest()}:
        raise SystemExit("the digests differ")


def show(state: str, row: dict[str, Any]) -> None:
    """Print one line."""
    print(json.dumps({"kernel": "K4", "case": f"{N_ROWS} rows, two ids + 14 labels, {state}"} | row), flush=True)


if __name__ == "__main__":
    main()
