"""Own the picture of one finding's ROC and precision-recall curve, with the readers' points, in one SVG of its own.

It draws the very lines that readers are held against, sampled at every half unit; nothing is read or chosen here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from cxrspec.metrics import ReaderPoint, curve_value
from cxrspec.report.svg import svg_line, svg_number, svg_text

if TYPE_CHECKING:
    from cxrspec.tasks import Curves

Curve = Literal["roc", "precision_recall"]

_SIDE: Final = 300  # of a panel, in SVG units, as all lengths here
_LEFT: Final = 60
_TOP: Final = 56
_PITCH: Final = _SIDE + 84
_WIDTH: Final = _LEFT + _PITCH + _SIDE + 24
_LINE: Final = 20
_GREY: Final = "#8a949e"
_CURVE: Final = "#0b5fa5"
_READER: Final = "#d55e00"
_VOTE: Final = "#5b2a86"
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


def curves_picture(title: str, curves: Curves) -> str:
    """Draw both curves of one finding as an SVG that needs nothing else: staircase, achievable line, readers."""
    legend = list(_legend(curves))
    height = _TOP + _SIDE + 60 + len(legend) * _LINE
    size = f'width="{_WIDTH}" height="{height}"'
    root = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} viewBox="0 0 {_WIDTH} {height}"'
    top = height - len(legend) * _LINE
    lines = (f'<g transform="translate({_LEFT} {top + i * _LINE})">{one}</g>' for i, one in enumerate(legend))
    return "\n".join(
        (
            f'{root} font-family="sans-serif" font-size="13" fill="#17212b">',
            f"<title>{svg_text(title)}</title>",
            f"<desc>{svg_text(_description(curves))}</desc>",
            f'<rect {size} rx="6" fill="#ffffff"/>',
            svg_line(title, _LEFT, 30, ' font-size="16" font-weight="600"'),
            *_panel("roc", 0, curves),
            *_panel("precision_recall", 1, curves),
            *lines,
            "</svg>\n",
        )
    )


def _description(curves: Curves) -> str:
    readers = "; ".join(_words(name, point) for name, point in curves.readers.items())
    n = len(curves.points.thresholds) - 1
    return f"ROC and precision-recall curve over {n:,} thresholds. Readers: {readers or 'none'}."


def _words(name: str, point: ReaderPoint) -> str:
    precision = "no precision" if point.precision is None else f"precision {point.precision:.3f}"
    return f"{name}: sensitivity {point.sensitivity:.3f}, specificity {point.specificity:.3f}, {precision}"


def _panel(curve: Curve, column: int, curves: Curves) -> Iterator[str]:
    """Yield one panel: axes with marks at every quarter, the line without skill, both lines, the readers."""
    yield f'<g class="{curve}" transform="translate({_LEFT + column * _PITCH} {_TOP})">'
    yield f'<rect width="{_SIDE}" height="{_SIDE}" fill="none" stroke="{_GREY}"/>'
    for quarter in range(5):
        at, label = quarter * _SIDE / 4, f"{quarter / 4:g}"
        yield svg_line(label, at, _SIDE + 16, ' text-anchor="middle" font-size="11"')
        yield svg_line(label, -6, _SIDE - at + 4, ' text-anchor="end" font-size="11"')
    across, up = _AXES[curve]
    yield svg_line(across, _SIDE / 2, _SIDE + 34, ' text-anchor="middle"')
    yield svg_line(up, 0, 0, f' text-anchor="middle" transform="translate(-38 {_SIDE / 2}) rotate(-90)"')
    yield _path([(0, 0), (1, 1)] if curve == "roc" else [(0, _base(curves)), (1, _base(curves))], _GREY, "2 4")
    yield _path(_sampled(curve, "interpolated", curves), _CURVE, "6 4")
    yield _path(_sampled(curve, "step", curves), _CURVE, "none")
    yield from _marks(curve, curves)
    yield "</g>"


def _base(curves: Curves) -> float:
    """Return the precision of calling every item, which is the share of positives."""
    return float(curves.points.precision[-1])


def _sampled(curve: Curve, line: Literal["step", "interpolated"], curves: Curves) -> list[tuple[float, float]]:
    start = [(0.0, 0.0)] if curve == "roc" else []
    return start + [(x, curve_value(curves.points, x, curve, line)) for x in np.linspace(0, 1, 2 * _SIDE + 1).tolist()]


def _path(points: Sequence[tuple[float, float]], colour: str, dash: str) -> str:
    """Draw a line through points in [0, 1]; what lies on one level needs only its ends."""
    kept = [
        point
        for i, point in enumerate(points)
        if not 0 < i < len(points) - 1 or not points[i - 1][1] == point[1] == points[i + 1][1]
    ]
    steps = "L".join(f"{svg_number(round(x * _SIDE, 2))} {svg_number(round((1 - y) * _SIDE, 2))}" for x, y in kept)
    return f'<path d="M{steps}" fill="none" stroke="{colour}" stroke-width="1.6" stroke-dasharray="{dash}"/>'


def _marks(curve: Curve, curves: Curves) -> Iterator[str]:
    """Yield a mark per reader, and a ring for their vote; a reader who calls nothing has no precision."""
    readers = enumerate(curves.readers.items())
    shown = [(name, point, _SHAPES[i % len(_SHAPES)], _READER) for i, (name, point) in readers]
    if curves.vote:
        shown.append(("majority vote", curves.vote, _RING, _VOTE))
    for name, point, shape, colour in shown:
        roc = curve == "roc"
        x, y = (point.false_positive_rate, point.sensitivity) if roc else (point.sensitivity, point.precision)
        if y is not None:
            place = f"translate({svg_number(round(x * _SIDE, 2))} {svg_number(round((1 - y) * _SIDE, 2))})"
            yield f'<g class="reader" transform="{place}">{_mark(shape, colour)}<title>{svg_text(name)}</title></g>'


def _mark(shape: str, colour: str) -> str:
    fill = "none" if shape == _RING else colour
    return f'<path d="{shape}" fill="{fill}" stroke="{colour if shape == _RING else "#ffffff"}" stroke-width="1.5"/>'


def _legend(curves: Curves) -> Iterator[str]:
    """Yield one line of the legend at a time: the lines, then each reader with the point in numbers."""
    total = curves.points.true_positives[-1], curves.points.false_positives[-1]
    for dash, label in (
        ("none", f"thresholds of the system ({total[0]:,.0f} positive, {total[1]:,.0f} negative)"),
        ("6 4", "achievable between them"),
        ("2 4", "without skill"),
    ):
        style = f'stroke="{_GREY if dash == "2 4" else _CURVE}" stroke-width="1.6" stroke-dasharray="{dash}"'
        yield f'<path d="M0 -4H30" {style}/>{svg_line(label, 40, 0)}'
    for i, (name, point) in enumerate(curves.readers.items()):
        mark = _mark(_SHAPES[i % len(_SHAPES)], _READER)
        yield f'<g transform="translate(15 -4)">{mark}</g>{svg_line(_words(name, point), 40, 0)}'
    if curves.vote:
        label = _words("majority vote of the readers (not counted)", curves.vote)
        yield f'<g transform="translate(15 -4)">{_mark(_RING, _VOTE)}</g>{svg_line(label, 40, 0)}'
