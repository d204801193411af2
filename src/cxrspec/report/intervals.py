"""Own how an interval is said in words, for pages and exports alike; whatever fields a task gives it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def interval_kind(interval: Mapping[str, Any]) -> str:
    """Say what an interval is, without its numbers: `95 % interval by item (bootstrap, 1,000 resamples)`."""
    level = f"{100 * interval['level']:g} % interval" if "level" in interval else "interval"
    by = f" by {interval['unit']}" if "unit" in interval else ""
    resamples = f", {interval['resamples']:,} resamples" if interval.get("resamples") else ""
    return f"{level}{by} ({interval.get('method', 'method not stated')}{resamples})"


def interval_ends(interval: Mapping[str, Any]) -> str:
    """Write the ends of an interval, `[0.551, 0.601]`, or why there are none."""
    if interval["low"] is None:
        return f"no interval: {interval['reason']}"
    return f"[{interval['low']:.3f}, {interval['high']:.3f}]"
