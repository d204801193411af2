"""Own the `localization` task: boxes of findings against reference boxes; Acc. and AFP (Wang et al., CVPR 2017).

Every choice that the paper leaves open is a field here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from cxrspec.digest import Table
from cxrspec.errors import Issue
from cxrspec.field_errors import list_at
from cxrspec.fields import (
    Column,
    FieldIssue,
    Fields,
    Identifier,
    Names,
    OpenShare,
    PositiveCount,
    one_or_list,
)
from cxrspec.tasks.interval import Interval
from cxrspec.tasks.localization.reference import BoxColumns, decode_boxes, read_cell
from cxrspec.tasks.named import NamedFindings
from cxrspec.tasks.scored import ScoredMetric, check_scored
from cxrspec.tasks.task import (
    Drawing,
    Evaluation,
    EvaluationInput,
    ItemColumns,
    PredictionColumn,
    PredictionNeed,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["BoxMetric", "Frame", "Heatmaps", "LocalizationTask", "Score"]


class Frame(Fields):
    """The image in whose pixels all boxes are given."""

    width_px: PositiveCount
    height_px: PositiveCount


class Heatmaps(Fields):
    """The submission brings one heatmap per image and finding; boxes are drawn around what exceeds a threshold.

    A map is brought to the frame on the centred grid, rescaled to [0, 255] by its own range, and thresholded.
    """

    upsampling: Literal["bilinear", "nearest"]
    thresholds: Annotated[list[Annotated[float, Field(ge=0, le=255)]], Field(min_length=1)]
    comparison: Literal[">", ">="]
    connectivity: Literal[4, 8]
    images: Literal["all", "with_finding"]
    """Whether a finding's maps are expected on every image, or only on those with a reference box of it."""


class PredictedBoxes(Fields):
    """The submission brings boxes, any number per image and finding."""

    images: Literal["all", "with_finding"]
    """Whether boxes of a finding count on every image, or only on those with a reference box of it."""


class BoxProtocols(Fields):
    """The ways in which a system may be scored."""

    heatmaps: Heatmaps | None = None
    boxes: PredictedBoxes | None = None


class BoxMetric(ScoredMetric):
    """Acc. or AFP under one criterion, at several values of T."""

    name: Identifier
    kind: Literal["acc", "afp"]
    protocol: Annotated[Literal["heatmaps", "boxes"], Names("protocol")]
    criterion: Literal["iou", "iobb"]
    at: Annotated[list[OpenShare], Field(min_length=1)]
    """The values of T: a box is correct if its criterion compares so with T."""
    correct: Literal[">", ">="]
    afp_unit: Literal["box_row", "image"] | None = None
    """What AFP is per: rows of reference boxes (984) or images (880); only for `afp`."""
    average: Literal["macro"]
    interval: Annotated[list[Interval], one_or_list("an interval nor a list of intervals"), Field(min_length=1)]


class Score(NamedTuple):
    """One number to report: a metric at one threshold and one T."""

    name: str
    metric: BoxMetric
    threshold: float | None
    level: int
    """Position of T among the metric's values."""


class LocalizationTask(NamedFindings):
    """Predicted boxes, or heatmaps made boxes, against reference boxes per finding and image."""

    NAME: ClassVar[str] = "localization"
    HUB_TASK: ClassVar[str] = "object-detection"
    TALLIES: ClassVar[Mapping[str, str | None]] = {"boxes": "finding", "images_with": "finding", "box_rows": None}
    COMPILED: ClassVar[frozenset[str]] = NamedFindings.COMPILED | {"boxes"}

    boxes: BoxColumns
    frame: Frame
    protocols: BoxProtocols
    metrics: Annotated[list[BoxMetric], Field(min_length=1)]

    @classmethod
    def check_references(
        cls, document: Mapping[str, Any], declared: Mapping[str, Sequence[str]]
    ) -> Iterator[FieldIssue]:
        """Yield metrics of one protocol on several subsets, repeated names, and AFP without a unit."""
        yield from check_scored(document, declared)
        subsets: dict[Any, str] = {}
        for i, metric in enumerate(list_at(document, "metrics")):
            if not isinstance(metric, Mapping):
                continue
            protocol, subset = metric.get("protocol"), metric.get("subset") or "test"
            if isinstance(protocol, str) and subsets.setdefault(protocol, subset) != subset:
                message = f"metrics of {protocol} are of '{subsets[protocol]}' and of '{subset}'"
                yield FieldIssue(("metrics", i, "subset"), "reference-conflict", message, "Score one subset a protocol")
            if (metric.get("kind") == "afp") != (metric.get("afp_unit") is not None):
                message = "afp_unit belongs to afp, and afp needs one: box_row or image"
                yield FieldIssue(("metrics", i, "afp_unit"), "reference-conflict", message)

    def source_columns(self) -> Sequence[Column]:
        """Return the columns of the box list."""
        return self.boxes.columns

    def reference_columns(self, items: ItemColumns) -> list[list[str]]:
        """Return one column of boxes per finding."""
        spellings = {name: self.spellings(name) for name in self.column_names}
        return decode_boxes(items, self.boxes, spellings, (self.frame.width_px, self.frame.height_px))

    def strata(self, columns: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
        """Return which items have a box of a finding [n_items, n_findings]."""
        import numpy as np

        return np.array([[bool(cell) for cell in column] for column in columns], dtype=np.bool_).T

    def tally(self, columns: Sequence[Sequence[str]]) -> dict[str, Any]:
        """Count boxes and images per finding, and all boxes."""
        boxes = {
            name: sum(len(read_cell(cell)) for cell in column)
            for name, column in zip(self.column_names, columns, strict=True)
        }
        images = {name: sum(map(bool, column)) for name, column in zip(self.column_names, columns, strict=True)}
        return {"boxes": boxes, "images_with": images, "box_rows": sum(boxes.values())}

    def check_subset(self, name: str, columns: Sequence[Sequence[str]]) -> list[Issue]:
        """Accept every subset: a finding without a box is undefined, and said so, when it is scored."""
        return []

    @property
    def protocol_names(self) -> tuple[str, ...]:
        """The declared protocols."""
        return tuple(name for name in ("boxes", "heatmaps") if getattr(self.protocols, name) is not None)

    def prediction_need(self, protocol: str) -> PredictionNeed:
        """Heatmaps of every expected pair of image and finding, or any number of boxes."""
        subset = next(metric.scored_subset for metric in self.metrics if metric.protocol == protocol)
        columns = tuple(PredictionColumn(name, self.spellings(name)) for name in self.column_names)
        kind: Literal["heatmaps", "boxes"] = "heatmaps" if protocol == "heatmaps" else "boxes"
        frame = (self.frame.width_px, self.frame.height_px)
        return PredictionNeed(kind, (subset,), columns, frame=frame)

    def scores(self) -> list[Score]:
        """Return the numbers that a report holds: one per metric, threshold and T, named `acc_iobb_60_t0.1`."""
        heatmaps = self.protocols.heatmaps
        found = []
        for metric in self.metrics:
            levels = heatmaps.thresholds if heatmaps and metric.protocol == "heatmaps" else [None]
            for threshold in levels:
                middle = "" if threshold is None else f"_{threshold:g}"
                found += [
                    Score(f"{metric.name}{middle}_t{t:g}", metric, threshold, level)
                    for level, t in enumerate(metric.at)
                ]
        return found

    def reported_metrics(self, counts: Mapping[str, Mapping[str, Any]] | None = None) -> list[dict[str, str]]:
        """Return one entry per metric, threshold and T."""
        return [
            {"name": one.name, "kind": one.metric.kind, "protocol": one.metric.protocol, "average": one.metric.average}
            for one in self.scores()
        ]

    def expected_pairs(self, protocol: str, table: Table) -> set[tuple[str, str]]:
        """Return the pairs of item and finding on which predictions count."""
        chosen = self.protocols.heatmaps if protocol == "heatmaps" else self.protocols.boxes
        every = chosen is None or chosen.images == "all"
        return {
            (item, name)
            for name in self.column_names
            for item, cell in zip(table.item_ids, table.column(name), strict=True)
            if every or cell
        }

    def drawing(self, given: EvaluationInput, item_id: str, finding: str) -> Drawing | None:
        """Return the reference boxes, the detected ones and the heatmap of one item and finding."""
        from cxrspec.tasks.localization.evaluation import draw

        return draw(self, given, item_id, finding)

    def evaluate(self, given: EvaluationInput) -> Evaluation:
        """Compute Acc. and AFP of every metric, threshold and T, per finding and averaged, with intervals."""
        from cxrspec.tasks.localization.evaluation import evaluate

        return evaluate(self, given)
