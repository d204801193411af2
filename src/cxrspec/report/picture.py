"""Own the picture of one item and finding: heatmap, reference and detected boxes in one self-contained SVG.

It draws what it is given: no thresholds, no matching, no files. Boxes are half-open (row0, col0, row1, col1) pixels.
"""

from __future__ import annotations

import base64
import struct
import textwrap
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cxrspec.report.svg import svg_line, svg_number, svg_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Box = tuple[float, float, float, float]
"""Row0, col0, row1, col1, half-open, in pixels of the frame."""

PANEL: Final = 600
"""Longer side of the frame as drawn, and width of the text, in SVG units."""
MOST_CELLS: Final = 512
"""Pixels a side of the embedded map at most; of a larger map each shows the maximum of its block."""

_MARGIN: Final = 20
_LINE: Final = 20  # height of a line of text
_LEGEND_CHARS: Final = 74
_TITLE_CHARS: Final = 62
_CHIP_CHARS: Final = 24
_CHIP_HEIGHT: Final = 17
_RAMP: Final = (
    (247, 249, 251),
    (45, 72, 100),
)  # pale to slate, one hue, so that every line stands out from every level
_WIDTHS: Final = {"reference": 3.5, "detected": 2.5}  # of lines, in SVG units
_COLOURS: Final = ("#d55e00", "#8a1c7c", "#00735c", "#9a6700")  # told apart by the colour-blind, and by their dashes
_DASHES: Final = ((10, 5), (3, 3), (14, 4, 3, 4), (6, 2), (1, 4))  # in SVG units


@dataclass(frozen=True, slots=True)
class _Series:
    """Boxes that share a label, a colour and a dash."""

    kind: str
    label: str
    boxes: Sequence[Box]
    colour: str
    dash: tuple[int, ...]
    best: str = ""
    """The best criteria over all pairs with a reference box, as text; empty where there is no pair."""

    @property
    def words(self) -> str:
        """How many boxes there are, and how good the best."""
        count = {0: "no box", 1: "1 box"}.get(len(self.boxes), f"{len(self.boxes):,} boxes")
        return f"{self.label}: {count}{self.best}"


def localization_picture(
    *,
    title: str,
    frame: tuple[int, int],
    reference: Mapping[str, Sequence[Box]],
    detected: Mapping[str, Sequence[Box]],
    heatmap: NDArray[Any] | None,
) -> str:
    """Draw the heatmap of one item and finding with its boxes as an SVG that needs nothing else.

    Args:
        title: item, finding and values, as they shall stand above the picture.
        frame: width and height in pixels; the heatmap is stretched over it.
        reference: boxes by label (`reference`), drawn solid.
        detected: boxes by label (`> 60`), drawn in a dash and colour for each label.
        heatmap: [S1, S2] real numbers, or None where boxes were predicted.

    Raises:
        ValueError: the frame or the heatmap is empty, a number is not finite, or a box ends before it starts.
    """
    if min(frame) < 1:
        raise ValueError(f"a frame of {frame[0]} x {frame[1]} pixels is empty")
    _check_boxes([*reference.values(), *detected.values()])
    cells = None if heatmap is None else _checked_map(heatmap)
    series = _all_series(reference, detected)
    heading = textwrap.wrap(title, _TITLE_CHARS)
    top = _MARGIN + len(heading) * _LINE + 8
    below = top + PANEL * frame[1] / max(frame) + 14
    legend = list(_legend(series, cells, below))
    bold = ' font-size="16" font-weight="600"'
    lines = (svg_line(line, _MARGIN, _MARGIN + 14 + row * _LINE, bold) for row, line in enumerate(heading))
    marks = (*lines, *_panel(series, cells, frame, top), *legend)
    words = (_map_words(cells), f"Frame of {frame[0]} x {frame[1]} pixels", *(one.words for one in series))
    return _document(title, f"{'. '.join(words)}.", below + len(legend) * _LINE + _MARGIN, marks)


def _document(title: str, description: str, height: float, marks: Iterable[str]) -> str:
    """Wrap marks in an SVG that has its own background and says in words what it shows."""
    width, high = PANEL + 2 * _MARGIN, svg_number(height)
    size = f'width="{width}" height="{high}"'
    root = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} viewBox="0 0 {width} {high}"'
    words = f"<title>{svg_text(title)}</title>\n<desc>{svg_text(description)}</desc>"
    background = f'<rect class="background" {size} rx="6" fill="#ffffff"/>'
    return "\n".join(
        (f'{root} font-family="sans-serif" font-size="13" fill="#17212b">', words, background, *marks, "</svg>\n")
    )


def _panel(
    series: Sequence[_Series], cells: NDArray[np.float64] | None, frame: tuple[int, int], top: float
) -> Iterator[str]:
    """Yield the frame with map and boxes, all in its own pixels; no box hides one that it coincides with."""
    scale, size = PANEL / max(frame), f'width="{frame[0]}" height="{frame[1]}"'
    left = _MARGIN + (PANEL - frame[0] * scale) / 2
    yield f'<g transform="translate({svg_number(left)} {svg_number(top)}) scale({svg_number(scale)})">'
    if cells is not None:
        yield f'<image class="heatmap" {size} {_image(_levels(cells))}/>'
    yield f'<rect class="frame" {size} fill="none" stroke="#8a949e" stroke-width="{svg_number(1 / scale)}"/>'
    yield from (_band(box, 1 / scale) for one in series for box in one.boxes)
    yield from (_rect(one, box, 1 / scale) for one in series for box in one.boxes)
    yield from _chips(series, frame, 1 / scale)
    yield "</g>"


def _check_boxes(groups: Iterable[Sequence[Box]]) -> None:
    import numpy as np

    from cxrspec.metrics.boxes import box_areas

    for boxes in groups:
        if len(boxes):
            box_areas(np.array(boxes, dtype=np.float64))


def _checked_map(heatmap: NDArray[Any]) -> NDArray[np.float64]:
    import numpy as np

    cells = np.asarray(heatmap, dtype=np.float64)
    if cells.ndim != 2 or not cells.size:
        raise ValueError(f"a heatmap has rows and columns; this one has the shape {cells.shape}")
    if not np.isfinite(cells).all():
        raise ValueError("the heatmap has values that are not finite")
    return cells


def _all_series(reference: Mapping[str, Sequence[Box]], detected: Mapping[str, Sequence[Box]]) -> list[_Series]:
    """Return the reference first, then the detected boxes as ordered by the caller, each with its style."""
    known = [box for boxes in reference.values() for box in boxes]
    styled = [_Series("reference", label, boxes, "#000000", ()) for label, boxes in reference.items()]
    for position, (label, boxes) in enumerate(detected.items()):
        colour, dash = _COLOURS[position % len(_COLOURS)], _DASHES[position % len(_DASHES)]
        styled.append(_Series("detected", label, boxes, colour, dash, _best(boxes, known)))
    return styled


def _best(boxes: Sequence[Box], known: Sequence[Box]) -> str:
    if not len(boxes) or not known:
        return ""
    import numpy as np

    from cxrspec.metrics.boxes import iobb, iou

    found, wanted = np.array(boxes, dtype=np.float64), np.array(known, dtype=np.float64)
    return f", best IoU {iou(found, wanted).max():.3f}, best IoBB {iobb(found, wanted).max():.3f}"


def _map_words(cells: NDArray[np.float64] | None) -> str:
    if cells is None:
        return "No heatmap"
    low, high = cells.min(), cells.max()
    size = f"Heatmap of {cells.shape[0]} x {cells.shape[1]}"
    return f"{size} values, constant at {low:.4g}" if low == high else f"{size} values from {low:.4g} to {high:.4g}"


def _band(box: Box, unit: float) -> str:
    """Draw the white band below a box that parts its line from the map; a unit of the SVG is `unit` pixels."""
    row0, col0, row1, col1 = box
    outline = f"M{svg_number(col0)} {svg_number(row0)}H{svg_number(col1)}V{svg_number(row1)}H{svg_number(col0)}z"
    return f'<path d="{outline}" fill="none" stroke="#ffffff" stroke-width="{svg_number(6 * unit)}"/>'


def _rect(series: _Series, box: Box, unit: float) -> str:
    """Draw a box; the reference is wider, so that it shows below a box that coincides with it."""
    row0, col0, row1, col1 = box
    x, y, width, height = map(svg_number, (col0, row0, col1 - col0, row1 - row0))
    place = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    dash = " ".join(svg_number(length * unit) for length in series.dash) or "none"
    stroke = (
        f'stroke="{series.colour}" stroke-width="{svg_number(_WIDTHS[series.kind] * unit)}" stroke-dasharray="{dash}"'
    )
    words = f"<title>{svg_text(series.label)}</title>"
    return f'<rect class="{series.kind}" {place} fill="none" {stroke}>{words}</rect>'


def _chips(series: Sequence[_Series], frame: tuple[int, int], unit: float) -> Iterator[str]:
    """Yield a label at each box where one is free of all others; the legend names the rest."""
    taken: list[Box] = []
    for one in series:
        label = one.label if len(one.label) <= _CHIP_CHARS else f"{one.label[: _CHIP_CHARS - 1]}…"
        size = (_CHIP_HEIGHT * unit, (len(label) * 7 + 8) * unit)
        for box in one.boxes:
            for place in _places(box, size, frame):
                if not any(_overlap(place, other) for other in taken):
                    taken.append(place)
                    yield _chip(label, one.colour, place, unit)
                    break


def _places(box: Box, size: tuple[float, float], frame: tuple[int, int]) -> Iterator[Box]:
    """Yield where a label may stand, best first: above, below, then inside its box, left before right."""
    row0, col0, row1, col1 = box
    height, width = size
    for row in (row0 - height, row1, row0, row1 - height):
        for col in (col0, col1 - width):
            top, left = min(max(row, 0), frame[1] - height), min(max(col, 0), frame[0] - width)
            yield top, left, top + height, left + width


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _chip(label: str, colour: str, place: Box, unit: float) -> str:
    top, left, bottom, right = place
    return (
        f'<rect class="chip" x="{svg_number(left)}" y="{svg_number(top)}" width="{svg_number(right - left)}" '
        f'height="{svg_number(bottom - top)}" fill="{colour}"/>'
        f'<text x="{svg_number(left + 4 * unit)}" y="{svg_number(bottom - 5 * unit)}" fill="#ffffff" '
        f'font-size="{svg_number(12 * unit)}">{svg_text(label)}</text>'
    )


def _legend(series: Sequence[_Series], cells: NDArray[np.float64] | None, top: float) -> Iterator[str]:
    """Yield one line of the legend at a time: each label with its stroke, then the map with its colours."""
    row = 0
    entries = [(_stroke(one), one.words) for one in series] + [(_colour_bar(cells), _map_words(cells))]
    for sample, words in entries:
        for position, line in enumerate(textwrap.wrap(words, _LEGEND_CHARS)):
            text = svg_line(line, _MARGIN + 58, 14)
            yield f'<g transform="translate(0 {svg_number(top + row * _LINE)})">{"" if position else sample}{text}</g>'
            row += 1


def _stroke(series: _Series) -> str:
    dash = " ".join(map(str, series.dash)) or "none"
    style = f'stroke="{series.colour}" stroke-width="{_WIDTHS[series.kind]}" stroke-dasharray="{dash}"'
    return f'<line x1="{_MARGIN}" x2="{_MARGIN + 46}" y1="10" y2="10" {style}/>'


def _colour_bar(cells: NDArray[np.float64] | None) -> str:
    """Draw the colours from low to high, or the one that a constant map has."""
    if cells is None:
        return ""
    import numpy as np

    levels = np.tile(np.arange(256 if cells.min() < cells.max() else 1, dtype=np.uint8), (32, 1))
    place = f'x="{_MARGIN}" y="4" width="46" height="12"'
    return f'<image {place} {_image(levels)}/><rect {place} fill="none" stroke="#8a949e"/>'


def _levels(cells: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return the map in 256 levels from its minimum to its maximum, no side beyond `MOST_CELLS`."""
    import numpy as np

    low, span = cells.min(), cells.max() - cells.min()
    for axis, side in enumerate(cells.shape):
        kept = min(side, MOST_CELLS)
        cells = np.maximum.reduceat(cells, np.arange(kept) * side // kept, axis=axis)
    levels: NDArray[np.uint8] = np.rint((cells - low) / (span or 1) * 255).astype(np.uint8)
    for axis, side in enumerate(levels.shape):  # whole cells stay sharp where a viewer smooths images
        levels = levels.repeat(MOST_CELLS // side, axis=axis)
    return levels


def _image(levels: NDArray[np.uint8]) -> str:
    """Write levels [rows, columns] as a PNG with the palette, inside the attributes of an image."""
    rows = b"".join(b"\0" + row.tobytes() for row in levels)
    low, high = _RAMP
    palette = bytes(round(a + (b - a) * level / 255) for level in range(256) for a, b in zip(low, high, strict=True))
    header = struct.pack(">2I5B", levels.shape[1], levels.shape[0], 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    framed = (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
    address = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(framed)).decode("ascii")
    return f'preserveAspectRatio="none" image-rendering="pixelated" href="data:image/png;base64,{address}"'
