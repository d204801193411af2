"""Own the pictures of the site: inline SVG whose colours are classes of the style sheet, so light and dark both work.

It draws what it is given. A strip is stretched to its cell of a table: only lines, whose width does not scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup, escape

from cxrspec.report.svg import svg_number

MOST_TICKS: Final = 5

_LANES: Final = {1: (10.0,), 2: (7.0, 14.0), 3: (4.0, 10.0, 16.0)}  # heights of the intervals in a strip of 20
_MARKS: Final = {
    "held": "M7 12.5l3.5 3.5L17 8.5",
    "broken": "M8 8l8 8M16 8l-8 8",
    "not checked": "M8 12h8",
}


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from `low` to `high` with round ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def over(cls, values: Iterable[float], *, whole: bool = False) -> Scale:
        """Return the axis that holds all values, with at most `MOST_TICKS` steps between round or `whole` numbers."""
        found = list(values) or [0.0, 1.0]
        low, high = min(found), max(found)
        span = (high - low) or abs(high) or 1.0
        step = _round_step(max(span / (MOST_TICKS - 1), float(whole)))
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        last += first == last
        ticks = tuple(round(at * step, 10) for at in range(first, last + 1))
        return cls(ticks[0], ticks[-1], ticks)

    def percent(self, value: float) -> float:
        """Return where a value stands, in percent of the axis."""
        return 100 * (value - self.low) / (self.high - self.low)

    def axis(self, unit: str = "") -> Markup:
        """Return the ticks, each with its unit, as HTML that stands over a stretched strip."""
        marks = (
            f'<span style="left:{_number(self.percent(at))}%">{_tick(at)}{escape(unit)}</span>' for at in self.ticks
        )
        return Markup(f'<span class="axis" aria-hidden="true">{"".join(marks)}</span>')  # noqa: S704 - only numbers


def forest_scale(entries: Iterable[Mapping[str, Any]], reference: float | None = None) -> Scale:
    """Return the axis that holds the values and intervals of scores, and a reference line."""
    found = [] if reference is None else [reference]
    for entry in entries:
        ends = [end for one in entry["intervals"] for end in (one["low"], one["high"])]
        found += [number for number in (entry["value"], *ends) if number is not None]
    return Scale.over(found)


def strip(entry: Mapping[str, Any], scale: Scale, words: str, reference: float | None = None) -> Markup:
    """Draw a score with its intervals, each in a lane of its own; nothing but the words where it is undefined."""
    lanes = _LANES[min(max(len(entry["intervals"]), 1), 3)]
    marks = [] if reference is None else [_line("chance", scale.percent(reference), 0, scale.percent(reference), 20)]
    for lane, interval in enumerate(entry["intervals"][:3]):
        if interval["low"] is not None:
            low, high = scale.percent(interval["low"]), scale.percent(interval["high"])
            marks.append(_line(f"interval lane{lane}", low, lanes[lane], high, lanes[lane]))
    if entry["value"] is not None:
        at = scale.percent(entry["value"])
        marks.append(_line("point", at, lanes[0], at, lanes[0]))  # a round cap of no length: a dot that never distorts
    return _svg("strip", "0 0 100 20", words, marks)


def bar(value: float, scale: Scale, words: str) -> Markup:
    """Draw a bar from the start of the axis to a value."""
    width = _number(scale.percent(value))
    return _svg("strip", "0 0 100 20", words, [f'<rect class="bar" y="4" width="{width}" height="12"/>'])


def stack(counts: Mapping[str, int], words: str) -> Markup:
    """Draw the shares of a whole, side by side in the order given."""
    total, at, marks = sum(counts.values()) or 1, 0.0, []
    for position, count in enumerate(counts.values()):
        width = 100 * count / total
        place = f'x="{_number(at)}" y="3" width="{_number(width)}" height="14"'
        marks.append(f'<rect class="part part{position % 4}" {place}/>')
        at += width
    return _svg("strip", "0 0 100 20", words, marks)


def icon(state: str) -> Markup:
    """Draw a link's state: a tick, a cross, or a dash."""
    name = state.replace(" ", "-")
    marks = ['<circle cx="12" cy="12" r="11"/>', f'<path d="{_MARKS[state]}"/>']
    return _svg(f"icon {name}", "0 0 24 24", state, marks, stretched=False)


def _line(name: str, x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f'x1="{_number(x1)}" y1="{_number(y1)}" x2="{_number(x2)}" y2="{_number(y2)}"'
    return f'<line class="{name}" {ends}/>'


def _svg(name: str, box: str, words: str, marks: Iterable[str], *, stretched: bool = True) -> Markup:
    fit = ' preserveAspectRatio="none"' if stretched else ""
    head = f'<svg class="{name}" role="img" viewBox="{box}"{fit}><title>{escape(words)}</title>'
    return Markup(f"{head}{''.join(marks)}</svg>")  # noqa: S704 - the marks hold numbers, the words are escaped


def _tick(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() else f"{value:g}"


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is not below `least`."""
    power: float = 10.0 ** math.floor(math.log10(least))
    return next((power * factor for factor in (1, 2, 5) if power * factor >= least * (1 - 1e-9)), power * 10)


def _number(value: float) -> str:
    return svg_number(round(value, 2))
