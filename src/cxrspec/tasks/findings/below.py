"""Own the count of readers below a curve as a report holds it: margins and points per reader, and the majority vote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cxrspec.digest import Table
from cxrspec.metrics import (
    CurvePoints,
    curve_points,
    is_below,
    majority_vote,
    reader_margin,
    reader_point,
)
from cxrspec.tasks.findings.readers import ReadersMetric, read_column

Labels = NDArray[np.int8]


def reads_of(table: Table, readers: Sequence[str], finding: str) -> Labels:
    """Return what the readers say of a finding [n_items, n_readers], from a frozen table whose reads are decided."""
    columns = [[cell == "1" for cell in table.column(read_column(reader, finding))] for reader in readers]
    return np.array(columns, dtype=np.int8).T


def readers_below(
    metric: ReadersMetric, labels: Labels, scores: NDArray[np.float64], reads: Labels, names: Sequence[str]
) -> dict[str, Any]:
    """Return the count of readers below the curve, with each one's margin and point; the vote is shown, not counted.

    Args:
        metric: the convention.
        labels: [n], both classes there.
        scores: [n].
        reads: [n, n_readers].
        names: the readers.
    """
    points = curve_points(labels, scores)
    if points is None:
        raise ValueError("both classes are needed")
    entries = {name: _reader(metric, points, labels, reads[:, at]) for at, name in enumerate(names)}
    unknown = [f"reader {name} {entry['reason']}" for name, entry in entries.items() if entry["margin"] is None]
    vote = _reader(metric, points, labels, majority_vote(reads)) if len(names) % 2 else {}
    vote.pop("below", None)
    return {
        "value": None if unknown else sum(entry["below"] for entry in entries.values()),
        "reason": "; ".join(unknown) or None,
        "readers": entries,
        "majority_vote": vote or None,
    }


def _reader(metric: ReadersMetric, points: CurvePoints, labels: Labels, reads: Labels) -> dict[str, Any]:
    point = reader_point(labels, reads)
    if point is None:
        raise ValueError("both classes are needed")
    margin = reader_margin(points, point, metric.curve, metric.line)
    return {
        "margin": margin,
        "below": None if margin is None else is_below(margin, metric.ties),
        "sensitivity": point.sensitivity,
        "specificity": point.specificity,
        "precision": point.precision,
        "reason": point.reason or None,
    }
