"""Own the columns and numbers of box files: which four columns are a box, and whether it lies in its frame.

Coordinates are taken as they are: never clipped, rounded or reordered. Which pairs they belong to is for `pairs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cxrspec.errors import IDS_LISTED, Issue, SourceError, listed
from cxrspec.predictions.alignment import IdColumn, Rows
from cxrspec.predictions.heads import (
    OWN_ID_COLUMN,
    id_issues,
    id_positions,
    ignored_notes,
    quoted,
    role_issues,
    spelled,
)
from cxrspec.predictions.pairs import ExpectedPairs, PairRows
from cxrspec.predictions.values import Numbers, comma_notes, not_finite, read_numbers
from cxrspec.spelling import plain_name
from cxrspec.tables.sheets import Sheet, open_sheet

BoxFormat = Literal["xywh", "xyxy"]
"""Left, top, width and height; or left, top, right and bottom."""
Frame = tuple[int, int]
"""Width and height in pixels."""

SCORE_COLUMN = "score"

_HEADS: Mapping[BoxFormat, Sequence[tuple[str, str, str, str]]] = {
    "xywh": (
        ("x", "y", "w", "h"),
        ("x", "y", "width", "height"),
        ("xmin", "ymin", "width", "height"),
        ("left", "top", "width", "height"),
    ),
    "xyxy": (
        ("x0", "y0", "x1", "y1"),
        ("x1", "y1", "x2", "y2"),
        ("xmin", "ymin", "xmax", "ymax"),
        ("left", "top", "right", "bottom"),
    ),
}
_OTHER: Mapping[BoxFormat, BoxFormat] = {"xywh": "xyxy", "xyxy": "xywh"}
_BBOX = re.compile(r"(?:bbox)?\[?(.*?)\]?")
_SLACK_PX = 1e-6
_LARGEST_FRACTION = 1.5
_MANY = 0.1
_FINITE_HINT = "Every box needs finite numbers; an image without boxes needs no row"


@dataclass(frozen=True, slots=True)
class BoxFile:
    """An opened box file: one row per box."""

    ids: IdColumn
    findings: Sequence[str]
    sheet: Sheet
    positions: Sequence[int]
    """Columns of the four coordinates, then of the score if the file has one; empty where they were not found."""
    notes: tuple[Issue, ...]
    issues: tuple[Issue, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """The boxes of a file in an order that the order of its rows does not change."""

    corners: NDArray[np.float64]
    """[n_boxes, 4] row0, col0, row1, col1 in pixels of the file's frame."""
    items: NDArray[np.int64]
    findings: NDArray[np.int64]
    scores: NDArray[np.float64] | None
    notes: tuple[Issue, ...]
    issues: tuple[Issue, ...]


def open_boxes(data: bytes, name: str, expected: ExpectedPairs, box_format: BoxFormat) -> BoxFile:
    """Open a box file, delimited text or Parquet.

    Raises:
        SourceError: Ids or findings are not there, or cannot be told from something else.
    """
    names = expected.names_of_finding_column
    coordinates = [head for heads in _HEADS[box_format] for head in heads]
    sheet = open_sheet(data, name=name, wanted=[*expected.items.id_columns, OWN_ID_COLUMN, *names, *coordinates])
    ids, findings = id_positions(sheet, expected.items), spelled(sheet, names)
    scores = spelled(sheet, [SCORE_COLUMN])
    positions, coordinate_issues = _coordinates(sheet, box_format)
    issues = [
        *(*sheet.issues, *sheet.stray()),
        *id_issues(sheet, ids, expected.items),
        *role_issues(sheet, findings, "finding", names),
        *coordinate_issues,
        *(role_issues(sheet, scores, "score", [SCORE_COLUMN]) if scores else ()),
    ]
    if not len(ids) == len(findings) == 1:
        raise SourceError(issues)
    id_cells, finding_cells = sheet.cells([ids[0], findings[0]])
    return BoxFile(
        ids=IdColumn(name, sheet.lines, id_cells),
        findings=finding_cells,
        sheet=sheet,
        positions=[*positions, *scores] if positions else [],
        notes=tuple(ignored_notes(sheet, [ids[0], findings[0], *positions, *scores], expected.items)),
        issues=tuple(issues),
    )


def read_corners(file: BoxFile, pairs: PairRows, box_format: BoxFormat, frame: Frame) -> Boxes:
    """Read the boxes of some rows of a file whose coordinates were found.

    A row that repeats another one exactly is dropped with a note. Boxes that are not finite, have no positive size,
    leave the frame or look like fractions of it are issues.
    """
    numbers = read_numbers(file.sheet, file.positions, pairs.rows.at)
    corners = to_corners(numbers.matrix, box_format)
    keys = np.column_stack([pairs.rows.items, pairs.findings, corners, numbers.matrix[:, 2:]]) + 0.0  # no -0.0
    keys = keys[np.lexsort(keys.T[::-1])]
    is_new = np.ones(len(keys), dtype=bool)
    is_new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    kept = keys[is_new]
    issues = list(_value_issues(file, pairs.rows, numbers))
    finite = np.flatnonzero(np.isfinite(numbers.matrix[:, :4]).all(axis=1)).tolist()
    issues += _box_issues(pairs.of(finite).rows, numbers.of(finite), box_format, frame)
    return Boxes(
        corners=kept[:, 2:6],
        items=kept[:, 0].astype(np.int64),
        findings=kept[:, 1].astype(np.int64),
        scores=kept[:, 8] if len(file.positions) > 4 else None,
        notes=(*comma_notes(pairs.rows, numbers), *_notes(file.ids.file, len(keys) - len(kept), len(kept))),
        issues=tuple(issues),
    )


def to_corners(matrix: NDArray[np.float64], box_format: BoxFormat) -> NDArray[np.float64]:
    """Return [n_boxes, 4] row0, col0, row1, col1 of boxes whose first four columns have the given format."""
    left, top, right, bottom = matrix[:, :4].T
    if box_format == "xywh":
        with np.errstate(over="ignore", invalid="ignore"):  # infinities are refused where they are found
            right, bottom = left + right, top + bottom
    return np.column_stack([top, left, bottom, right])


def scaled(corners: NDArray[np.float64], frame: Frame, to_frame: Frame) -> NDArray[np.float64]:
    """Return boxes [n_boxes, 4] in the pixels of another frame of the same image; equal frames change nothing."""
    return corners if frame == to_frame else corners * np.tile(np.divide(to_frame[::-1], frame[::-1]), 2)


def frame_notes(file: str, frame: Frame, to_frame: Frame) -> Iterator[Issue]:
    """Yield the note that boxes were scaled, if they were."""
    if frame != to_frame:
        yield Issue("note", file, f"boxes scaled from the frame {_shown(frame)} to {_shown(to_frame)}")


def _coordinates(sheet: Sheet, box_format: BoxFormat) -> tuple[list[int], list[Issue]]:
    """Return the positions of the four coordinates, or else why there are none."""
    by_head: dict[str, list[int]] = {}
    for at, head in sheet.heads.items():
        by_head.setdefault(_coordinate_name(head), []).append(at)
    complete = [heads for heads in _HEADS[box_format] if by_head.keys() >= set(heads)]
    found = list(dict.fromkeys(at for heads in complete for head in heads for at in by_head[head]))
    if len(found) == 4:
        return found, []
    if found:
        message = f"{len(found)} columns for the four coordinates of a box: {quoted(sheet, found)}"
        return [], [Issue("column-ambiguous", sheet.name, message, "Keep the four that are meant")]
    return [], [_missing_coordinates(sheet, frozenset(by_head), box_format)]


def _coordinate_name(head: str) -> str:
    """Return what a head says of a coordinate: `Bbox [x`, `Bbox x` and `x` are the same, and so are `h]` and `h`."""
    name = plain_name(head)
    match = _BBOX.fullmatch(name)
    return match[1] if match else name


def _missing_coordinates(sheet: Sheet, names: frozenset[str], box_format: BoxFormat) -> Issue:
    other = _OTHER[box_format]
    swapped = [heads for heads in _HEADS[other] if names >= set(heads)]
    if swapped:
        message = f"the columns {listed(swapped[0])} are boxes as {other}, but the format is declared as {box_format}"
        return Issue("column-missing", sheet.name, message, f"Declare {other}, or give boxes as {box_format}")
    nearest = max(_HEADS[box_format], key=lambda heads: len(names & set(heads)))
    absent = listed([f"'{head}'" for head in nearest if head not in names])
    found = listed(sheet.heads.values()) or "no named column"
    message = f"no column {absent} for boxes as {box_format}; the file has {found}"
    allowed = " or ".join(", ".join(heads) for heads in _HEADS[box_format])
    return Issue("column-missing", sheet.name, message, f"Name the columns {allowed}")


def _value_issues(file: BoxFile, rows: Rows, numbers: Numbers) -> Iterator[Issue]:
    for at, position in enumerate(file.positions):
        yield from not_finite(rows, numbers, [at], f"column '{file.sheet.heads[position]}'", hint=_FINITE_HINT)


def _box_issues(rows: Rows, numbers: Numbers, box_format: BoxFormat, frame: Frame) -> Iterator[Issue]:
    """Yield one issue per fault that boxes of finite numbers have."""
    corners = to_corners(numbers.matrix, box_format)
    if len(corners) and ((corners >= 0) & (corners <= _LARGEST_FRACTION)).all():
        message = f"coordinates look like fractions: all {len(corners):,} boxes lie inside [0, {_LARGEST_FRACTION}]"
        hint = f"Give pixels of the frame {_shown(frame)}"
        yield Issue("prediction-box", rows.ids.file, message, hint)
    flat, outside = _is_flat(corners), _is_outside(corners, frame)
    suspicion = _suspicion(numbers.matrix, box_format, frame)
    yield from _faulty(
        rows, numbers, flat, "a box without positive size", suspicion or "Correct the boxes, or remove them"
    )
    yield from _faulty(
        rows,
        numbers,
        outside,
        f"a box that leaves the frame {_shown(frame)}",
        suspicion or "Clip the boxes, or declare the frame whose pixels they are",
    )


def _is_flat(corners: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Say which boxes have a negative or zero width or height."""
    flat: NDArray[np.bool_] = np.any(corners[:, 2:] <= corners[:, :2], axis=1)
    return flat


def _is_outside(corners: NDArray[np.float64], frame: Frame) -> NDArray[np.bool_]:
    below, beyond = corners < -_SLACK_PX, corners > np.tile(frame[::-1], 2) + _SLACK_PX
    outside: NDArray[np.bool_] = np.any(below | beyond, axis=1)
    return outside


def _suspicion(matrix: NDArray[np.float64], box_format: BoxFormat, frame: Frame) -> str:
    """Return a hint that the other format is meant, if many boxes are faulty and in that format only few would be."""

    def n_faulty(of_format: BoxFormat) -> int:
        corners = to_corners(matrix, of_format)
        return int((_is_flat(corners) | _is_outside(corners, frame)).sum())

    other = _OTHER[box_format]
    n_now, n_then = n_faulty(box_format), n_faulty(other)
    if not n_then <= _MANY * len(matrix) < n_now:
        return ""
    return (
        f"Read as {other}, {n_then:,} boxes would be faulty, as {box_format} {n_now:,} are: declare the format {other}?"
    )


def _faulty(rows: Rows, numbers: Numbers, is_faulty: NDArray[np.bool_], fault: str, hint: str) -> Iterator[Issue]:
    bad = np.flatnonzero(is_faulty).tolist()
    if bad:
        boxes = [", ".join(numbers.shown(row, at).strip() for at in range(4)) for row in bad[:IDS_LISTED]]
        found = [f"'{box}' in {rows.place(row)}" for box, row in zip(boxes, bad, strict=False)]
        message = f"{fault} in {len(bad):,} of {len(rows.at):,} rows: {listed([*found, *bad[IDS_LISTED:]], IDS_LISTED)}"
        line = rows.line(bad[0])
        yield Issue("prediction-box", f"{rows.ids.file}:{line}", message, hint, line)


def _notes(file: str, n_dropped: int, n_boxes: int) -> Iterator[Issue]:
    if n_dropped:
        yield Issue("note", file, f"repeated rows with the same box dropped: {n_dropped:,}")
    if not n_boxes:
        yield Issue("note", file, "no box for any image")


def _shown(frame: Frame) -> str:
    return f"{frame[0]} x {frame[1]}"
