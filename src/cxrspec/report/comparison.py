"""Own what a comparison of two systems says, as rows of text: the findings of a metric, then their mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def comparison_rows(metric: Mapping[str, Any], first: str, second: str) -> Iterator[tuple[str, ...]]:
    """Yield the heading, then per finding and for the mean: both values, difference, interval, p and adjusted p."""
    level = (metric["mean"]["interval"] or {}).get("level")
    yield ("finding", first, second, "difference", f"{level:.0%} interval" if level else "interval", "p", "adjusted p")
    for name, entry in (*metric["findings"].items(), ("mean", metric["mean"])):
        values = (_number(entry[key], form) for key, form in (("first", ".3f"), ("second", ".3f"), ("delta", "+.4f")))
        adjusted = _number(entry["p_adjusted"], ".3g") if "p_adjusted" in entry else ""
        yield (name, *values, _bounds(entry["interval"]), _number(entry["p"], ".3g", entry["reason"]), adjusted)


def _bounds(interval: Mapping[str, Any] | None) -> str:
    if interval is None or interval["low"] is None:
        return "none"
    return f"[{interval['low']:+.4f}, {interval['high']:+.4f}]"


def _number(value: float | None, form: str, reason: str | None = None) -> str:
    if value is None:
        return f"undefined ({reason})" if reason else "undefined"
    return format(value, form)
