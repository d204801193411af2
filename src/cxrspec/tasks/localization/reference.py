"""Own the reference boxes: rows of a box list become one cell per image and finding, and cells become arrays again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from cxrspec.digest import number_text
from cxrspec.errors import IDS_LISTED, DefinitionError, Issue, listed
from cxrspec.fields import Column, Fields, SourceName, Text
from cxrspec.spelling import plain_name
from cxrspec.tasks.task import ItemColumns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BETWEEN_BOXES: Final = ";"
BETWEEN_NUMBERS: Final = ","


class BoxColumns(Fields):
    """The columns of a box list, one row per box: left, top, width and height in pixels of the frame."""

    source: SourceName
    finding: Text
    left: Text
    top: Text
    width: Text
    height: Text

    @property
    def columns(self) -> list[Column]:
        """The columns that are read: finding, left, top, width, height."""
        names = (self.finding, self.left, self.top, self.width, self.height)
        return [Column(column=name, source=self.source) for name in names]


def decode_boxes(
    items: ItemColumns, boxes: BoxColumns, findings: Mapping[str, Sequence[str]], frame: tuple[int, int]
) -> list[list[str]]:
    """Return one column per finding: the boxes `left,top,width,height` of each item joined by `;`, or nothing.

    Boxes stand in ascending order, so the order of rows never matters; numbers in their shortest round-trip form.

    Args:
        items: the joined sources.
        boxes: the columns of the box list.
        findings: our name: all spellings of the source.
        frame: width and height of the image in pixels.

    Raises:
        DefinitionError: with every row whose finding is unknown or whose box is none, or lies outside the frame.
    """
    spelled = {plain_name(word): ours for ours, words in findings.items() for word in words}
    cells: dict[str, list[str]] = {ours: [] for ours in findings}
    faults: dict[str, list[str]] = {}
    for item, rows in zip(items.item_ids, items.rows(boxes.columns), strict=True):
        found: dict[str, list[tuple[float, ...]]] = {ours: [] for ours in findings}
        for name, *numbers in rows:
            ours, box = spelled.get(plain_name(name)), _box(numbers)
            fault = _fault(name, ours, numbers, box, frame)
            if fault:
                faults.setdefault(fault, []).append(item)
            elif ours and box:
                found[ours].append(box)
        for ours, column in cells.items():
            column.append(BETWEEN_BOXES.join(_text(box) for box in sorted(found[ours])))
    if faults:
        raise DefinitionError(
            Issue("value-unknown", boxes.source, f"{fault}, for {listed(ids, IDS_LISTED)}")
            for fault, ids in faults.items()
        )
    return list(cells.values())


def read_cell(cell: str) -> list[tuple[float, float, float, float]]:
    """Return the boxes of a cell as half-open (row0, col0, row1, col1) in pixels."""
    boxes = []
    for text in cell.split(BETWEEN_BOXES) if cell else ():
        left, top, width, height = map(float, text.split(BETWEEN_NUMBERS))
        boxes.append((top, left, top + height, left + width))
    return boxes


def reference_arrays(column: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the boxes [r, 4] of a column, and the row [r] of each one's item."""
    import numpy as np

    rows = [(row, box) for row, cell in enumerate(column) for box in read_cell(cell)]
    boxes = np.array([box for _, box in rows], dtype=np.float64).reshape(-1, 4)
    return boxes, np.array([row for row, _ in rows], dtype=np.int64)


def _box(numbers: Sequence[str]) -> tuple[float, ...] | None:
    try:
        box = tuple(float(number) for number in numbers)
    except ValueError:
        return None
    return box if all(map(math.isfinite, box)) else None


def _fault(
    name: str, ours: str | None, numbers: Sequence[str], box: tuple[float, ...] | None, frame: tuple[int, int]
) -> str:
    if ours is None:
        return f"unknown finding '{name}'"
    if box is None:
        return f"{BETWEEN_NUMBERS.join(numbers)!r} is not four numbers"
    left, top, width, height = box
    if width <= 0 or height <= 0:
        return f"the box {_text(box)} has no area"
    inside = left >= 0 and top >= 0 and left + width <= frame[0] and top + height <= frame[1]
    return "" if inside else f"the box {_text(box)} reaches out of the frame of {frame[0]} x {frame[1]} pixels"


def _text(box: Sequence[float]) -> str:
    return BETWEEN_NUMBERS.join(map(number_text, box))
