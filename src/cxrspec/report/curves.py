"""Own the pictures of ROC and precision-recall curves with the readers' points: an SVG of its own, panels of a page.

They draw the very lines that readers are held against, sampled on a grid; nothing is read or chosen here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from cxrspec.metrics import ReaderPoint, curve_value
from cxrspec.report.svg import svg_line, svg_number, svg_text

if TYPE_CHECKING:
    from cxrspec.tasks import Curves

Curve = Literal["roc", "precision_recall"]
CURVES: Final[tuple[Curve, ...]] = ("roc", "precision_recall")

GRID: Final = 400
"""A curve keeps its points on a grid of this many cells a side: finer than a screen shows, coarser than a row."""
STYLE: Final = """\
.frame { fill: none; stroke: #8a949e; }
.grid { stroke: #e3e7ea; fill: none; }
.chance { stroke: #8a949e; stroke-width: 1.6; stroke-dasharray: 2 4; fill: none; }
.curve { stroke: #0b5fa5; stroke-width: 1.6; fill: none; }
.curve.between { stroke-dasharray: 6 4; }
.mark { fill: #d55e00; stroke: #ffffff; stroke-width: 1.5; }
.mark.vote { fill: none; stroke: #5b2a86; }
"""
"""How the lines and marks look in a picture of its own; a page has a style sheet that knows the same names."""

_LEFT: Final = 48  # of a panel's square, in SVG units, as all lengths here
_TOP: Final = 8
_SMALL: Final = 174  # side of a panel of a page
_SIDE: Final = 300  # side of a panel of a picture
_PITCH: Final = _SIDE + 84
_HEAD: Final = 56
_WIDTH: Final = 60 + _PITCH + _SIDE + 24
_LINE: Final = 20
_SHAPES: Final = (
    "M0 -6L6 5H-6z",
    "M-5 -5H5V5H-5z",
    "M0 -7L6 0L0 7L-6 0z",
    "M-6 -5H6L0 6z",
    "M-6 -2H-2V-6H2V-2H6V2H2V6H-2V2H-6z",
)
"""Marks that tell readers apart by shape; a sixth reader begins again."""
_RING: Final = "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0 -5 0z"
_AXES: Final[dict[Curve, tuple[str, str]]] = {
    "roc": ("1 - specificity", "sensitivity"),
    "precision_recall": ("sensitivity (recall)", "precision"),
}
_NAMES: Final[dict[Curve, str]] = {"roc": "ROC curve", "precision_recall": "Precision-recall curve"}
_LINES: Final = {
    "curve": "thresholds of the system",
    "curve between": "achievable between them",
    "chance": "without skill",
}


def curves_picture(title: str, curves: Curves) -> str:
    """Draw both curves of one finding as an SVG that needs nothing else: staircase, achievable line, readers."""
    legend = list(_legend(curves))
    height = _HEAD + _SIDE + 60 + len(legend) * _LINE
    size = f'width="{_WIDTH}" height="{height}"'
    root = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} viewBox="0 0 {_WIDTH} {height}"'
    top = height - len(legend) * _LINE
    lines = (f'<g transform="translate(60 {top + i * _LINE})">{one}</g>' for i, one in enumerate(legend))
    panels = (
        f'<g class="{curve}" transform="translate({60 + at * _PITCH} {_HEAD})">{"".join(_panel(curve, curves, 4))}</g>'
        for at, curve in enumerate(CURVES)
    )
    return "\n".join(
        (
            f'{root} font-family="sans-serif" font-size="13" fill="#17212b">',
            f"<title>{svg_text(title)}</title>",
            f"<desc>{svg_text(_description(curves))}</desc>",
            f"<style>{STYLE}</style>",
            f'<rect {size} rx="6" fill="#ffffff"/>',
            svg_line(title, 60, 30, ' font-size="16" font-weight="600"'),
            *panels,
            *lines,
            "</svg>\n",
        )
    )


def panel_picture(curve: Curve, finding: str, curves: Curves) -> str:
    """Draw one curve of a finding as an inline SVG that a page's style sheet colours."""
    words = f"<title>{svg_text(f'{_NAMES[curve]} of {finding}')}</title><desc>{svg_text(_description(curves))}</desc>"
    box = f"0 0 {_LEFT + _SMALL + 10} {_TOP + _SMALL + 40}"
    marks = "".join(_panel(curve, curves, 2, _SMALL))
    place = f'<g class="{curve}" transform="translate({_LEFT} {_TOP})">'
    return f'<svg class="panel" role="img" viewBox="{box}">{words}{place}{marks}</g></svg>'


def legend_keys(curves: Iterable[Curves]) -> list[tuple[str, str]]:
    """Return (SVG, words) of every line and mark that the panels of some findings share."""
    found = {words: f'<path class="{name}" d="M-14 0H14"/>' for name, words in _LINES.items()}
    for one in curves:
        found |= {name: mark for name, _, mark in _shown(one)}
    return [
        (f'<svg class="key" role="img" viewBox="-15 -8 30 16"><title>{svg_text(words)}</title>{mark}</svg>', words)
        for words, mark in found.items()
    ]


def on_grid(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return points moved onto the grid, without repeats and without those that lie on a straight run."""
    kept: list[tuple[int, int]] = []
    for x, y in points:
        cell = (round(x * GRID), round(y * GRID))
        if kept and kept[-1] == cell:
            continue
        if len(kept) > 1 and _is_straight(kept[-2], kept[-1], cell):
            kept[-1] = cell
        else:
            kept.append(cell)
    return [(x / GRID, y / GRID) for x, y in kept]


def _is_straight(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> bool:
    """Say whether going on from b to c keeps the direction from a to b."""
    first, second = (b[0] - a[0], b[1] - a[1]), (c[0] - b[0], c[1] - b[1])
    same_way = first[0] * second[0] + first[1] * second[1] > 0
    return same_way and first[0] * second[1] == first[1] * second[0]


def _description(curves: Curves) -> str:
    positive, negative = _totals(curves)
    readers = "; ".join(_words(name, point) for name, point in curves.readers.items())
    n = len(curves.points.thresholds) - 1
    return f"{positive:,} positive, {negative:,} negative, over {n:,} thresholds. Readers: {readers or 'none'}."


def _totals(curves: Curves) -> tuple[int, int]:
    return int(curves.points.true_positives[-1]), int(curves.points.false_positives[-1])


def _words(name: str, point: ReaderPoint) -> str:
    precision = "no precision" if point.precision is None else f"precision {point.precision:.3f}"
    return f"{name}: sensitivity {point.sensitivity:.3f}, specificity {point.specificity:.3f}, {precision}"


def _panel(curve: Curve, curves: Curves, n_ticks: int, side: int = _SIDE) -> Iterator[str]:
    """Yield one panel: axes with `n_ticks` steps, the line without skill, both lines, the readers."""
    yield f'<rect class="frame" width="{side}" height="{side}"/>'
    for tick in range(n_ticks + 1):
        at, label = tick * side / n_ticks, f"{tick / n_ticks:g}"
        if 0 < tick < n_ticks:
            yield f'<path class="grid" d="M{svg_number(at)} 0v{side}M0 {svg_number(at)}h{side}"/>'
        yield svg_line(label, at, side + 16, ' text-anchor="middle" font-size="11"')
        yield svg_line(label, -6, side - at + 4, ' text-anchor="end" font-size="11"')
    across, up = _AXES[curve]
    yield svg_line(across, side / 2, side + 34, ' text-anchor="middle"')
    yield svg_line(up, 0, 0, f' text-anchor="middle" transform="translate(-36 {side // 2}) rotate(-90)"')
    base = float(curves.points.precision[-1])  # of calling every item: the share of positives
    yield _path([(0, 0), (1, 1)] if curve == "roc" else [(0, base), (1, base)], "chance", side)
    yield _path(_sampled(curve, "interpolated", curves), "curve between", side)
    yield _path(_sampled(curve, "step", curves), "curve", side)
    for name, point, mark in _shown(curves):
        roc = curve == "roc"
        x, y = (point.false_positive_rate, point.sensitivity) if roc else (point.sensitivity, point.precision)
        if y is not None:  # who calls nothing has no precision
            place = f"translate({svg_number(round(x * side, 2))} {svg_number(round((1 - y) * side, 2))})"
            yield f'<g class="reader" transform="{place}">{mark}<title>{svg_text(name)}</title></g>'


def _sampled(curve: Curve, line: Literal["step", "interpolated"], curves: Curves) -> list[tuple[float, float]]:
    """Return a line on the grid; precision-recall begins at the first recall that any threshold reaches."""
    start = [(0.0, 0.0)] if curve == "roc" else []
    across = np.linspace(0, 1, GRID + 1).tolist()
    return on_grid([*start, *((x, curve_value(curves.points, x, curve, line)) for x in across)])


def _path(points: Sequence[tuple[float, float]], name: str, side: int) -> str:
    steps = "L".join(f"{svg_number(round(x * side, 2))} {svg_number(round((1 - y) * side, 2))}" for x, y in points)
    return f'<path class="{name}" d="M{steps}"/>'


def _shown(curves: Curves) -> Iterator[tuple[str, ReaderPoint, str]]:
    """Yield name, point and mark of each reader, then of their vote."""
    for i, (name, point) in enumerate(curves.readers.items()):
        yield name, point, f'<path class="mark" d="{_SHAPES[i % len(_SHAPES)]}"/>'
    if curves.vote:
        yield "majority vote", curves.vote, f'<path class="mark vote" d="{_RING}"/>'


def _legend(curves: Curves) -> Iterator[str]:
    """Yield one line of the legend at a time: the lines, then each reader with the point in numbers."""
    positive, negative = _totals(curves)
    for name, words in _LINES.items():
        counts = f" ({positive:,} positive, {negative:,} negative)" if name == "curve" else ""
        yield f'<path class="{name}" d="M0 -4H30"/>{svg_line(words + counts, 40, 0)}'
    for name, point, mark in _shown(curves):
        counted = " of the readers (not counted)" if point is curves.vote else ""
        yield f'<g transform="translate(15 -4)">{mark}</g>{svg_line(_words(name + counted, point), 40, 0)}'
