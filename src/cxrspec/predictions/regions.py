"""Own the reading of what localizers submit, heatmaps or boxes, against the (image, finding) pairs of a definition.

Every problem of a file is raised in one SubmissionError. How maps become boxes is no business of a reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cxrspec.errors import Issue, SubmissionError
from cxrspec.predictions.loading import as_submission_error, load_predictions
from cxrspec.predictions.pairs import ExpectedPairs, align_pairs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cxrspec.predictions.boxes import BoxFormat

__all__ = ["ExpectedPairs", "Heatmaps", "PredictedBoxes", "read_boxes", "read_heatmaps"]


@dataclass(frozen=True, slots=True, eq=False)
class Heatmaps:
    """One heatmap per expected pair."""

    maps: Mapping[str, NDArray[np.floating[Any]]]
    """[n_images, height, width] by our name of the finding; all finite, single or double precision as the file is."""
    items: Mapping[str, NDArray[np.int64]]
    """[n_images] by finding: the position in the subset of each map's image, ascending."""
    notes: list[Issue]
    n_rows: int
    """Maps of the file."""
    n_left_aside: int
    """Maps of known images outside the subset, of other labels, and of pairs that are not expected."""


@dataclass(frozen=True, slots=True, eq=False)
class PredictedBoxes:
    """Any number of boxes per expected pair, ordered by item, finding, corners and score."""

    boxes: NDArray[np.float64]
    """[n_boxes, 4] row0, col0, row1, col1 in pixels of the expected frame; all finite and of positive size."""
    items: NDArray[np.int64]
    """[n_boxes] the position in the subset of each one's image."""
    findings: NDArray[np.int64]
    """[n_boxes] the position of each one's finding among those expected."""
    scores: NDArray[np.float64] | None
    """[n_boxes], all finite; None if the file has no score column."""
    notes: list[Issue]
    n_rows: int
    """Rows of the file."""
    n_left_aside: int
    """Rows of known images outside the subset, of other labels, and of pairs that are not expected."""


@as_submission_error()
def read_heatmaps(source: Path | bytes, expected: ExpectedPairs, *, name: str = "") -> Heatmaps:
    """Read one map per pair: Parquet with ids, findings and a list column, or a NumPy archive.

    A list is a list of rows of pixels, or flat and row by row: then columns `height` and `width` tell its size, or it
    is a square. An archive holds `item_id`, `finding` and `maps` [n, height, width], or `item_id` and one such array
    under the name of each finding.

    Raises:
        SubmissionError: Everything that is wrong with the file, in one pass.
    """
    from cxrspec.predictions.maps import open_maps, per_pair

    name, data = load_predictions(source, name, expected.items)
    file = open_maps(data, name, expected)
    pairs = align_pairs(file.ids, file.findings, expected, complete=True)
    merged = per_pair(file, pairs, len(expected.items.item_ids))
    issues = [*file.issues, *pairs.rows.issues, *merged.issues]
    if issues:
        raise SubmissionError(issues)
    ends = merged.findings.searchsorted(range(len(expected.findings) + 1))
    parts = {finding.name: slice(*ends[at : at + 2]) for at, finding in enumerate(expected.findings)}
    return Heatmaps(
        maps={finding: merged.stack[part] for finding, part in parts.items()},
        items={finding: merged.items[part] for finding, part in parts.items()},
        notes=[*file.notes, *pairs.rows.notes, *merged.notes],
        n_rows=len(file.ids.cells),
        n_left_aside=pairs.rows.n_left_aside,
    )


@as_submission_error()
def read_boxes(
    source: Path | bytes, expected: ExpectedPairs, *, name: str = "", format: BoxFormat, frame: tuple[int, int]
) -> PredictedBoxes:
    """Read any number of boxes per pair, also none, from delimited text or Parquet, packed or not.

    Args:
        source: The predictions file.
        expected: The pairs, and what else may stand in the file.
        name: How messages call the file: the name of the path, if empty.
        format: What the four coordinates are: left, top, width, height; or left, top, right, bottom.
        frame: Width and height of the frame whose pixels the coordinates are. The whole image is in it: if it is not
            the expected frame, the boxes are scaled to that, and a note says so.

    Raises:
        SubmissionError: Everything that is wrong with the file, in one pass.
    """
    from cxrspec.predictions.boxes import frame_notes, open_boxes, read_corners, scaled

    name, data = load_predictions(source, name, expected.items)
    file = open_boxes(data, name, expected, format)
    pairs = align_pairs(file.ids, file.findings, expected, complete=False)
    if not file.positions:
        raise SubmissionError([*file.issues, *pairs.rows.issues])
    found = read_corners(file, pairs, format, frame)
    issues = [*file.issues, *pairs.rows.issues, *found.issues]
    if issues:
        raise SubmissionError(issues)
    return PredictedBoxes(
        boxes=scaled(found.corners, frame, expected.frame),
        items=found.items,
        findings=found.findings,
        scores=found.scores,
        notes=[*file.notes, *pairs.rows.notes, *found.notes, *frame_notes(name, frame, expected.frame)],
        n_rows=len(file.ids.cells),
        n_left_aside=pairs.rows.n_left_aside,
    )
