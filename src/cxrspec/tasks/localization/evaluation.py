"""Own how boxes are scored: hits and false positives per image, Acc. and AFP at every T, intervals by resampling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cxrspec.digest import Table
from cxrspec.metrics import (
    BLOCK,
    heatmap_boxes,
    match_boxes,
    resample_counts,
    stack_boxes,
)
from cxrspec.tasks.localization.reference import reference_arrays
from cxrspec.tasks.task import Drawing, Evaluation, EvaluationInput

if TYPE_CHECKING:
    from cxrspec.tasks.interval import Interval
    from cxrspec.tasks.localization import BoxMetric, Heatmaps, LocalizationTask, Score

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Boxes(NamedTuple):
    """The boxes of one finding at one threshold."""

    boxes: Floats
    """[n, 4] row0, col0, row1, col1 in pixels."""
    items: Ints
    """[n] row of each one's item in the table."""


@dataclass(frozen=True)
class Counts:
    """Per item, what a score is a ratio of; a resample sums both over the drawn items."""

    numerator: Floats
    denominator: Floats

    @property
    def value(self) -> float | None:
        """The ratio, or None where there is nothing to divide by."""
        total = self.denominator.sum()
        return float(self.numerator.sum() / total) if total else None

    def resampled(self, weights: Floats) -> Floats:
        """Return the ratio on each resample, given how often each item occurs in it; NaN where nothing divides."""
        below = self.denominator @ weights
        return np.divide(self.numerator @ weights, below, out=np.full_like(below, np.nan), where=below > 0)


def evaluate(task: LocalizationTask, given: EvaluationInput) -> Evaluation:
    """Score every metric of the protocol on its one subset."""
    metrics = [metric for metric in task.metrics if metric.protocol == given.protocol]
    subset = metrics[0].scored_subset
    table = given.subsets[subset]
    detected = detections(task, given.protocol, given.predictions[subset])
    scored = _Scored(task, given, subset, table, detected)
    scores = [scored.score(score) for score in task.scores() if score.metric in metrics]
    return Evaluation(scores=scores, resampled=scored.resampled)


def draw(task: LocalizationTask, given: EvaluationInput, item_id: str, finding: str) -> Drawing:
    """Return what a picture of one item and finding shows; raises ValueError as `Task.drawing` says."""
    ((subset, table),) = ((name, table) for name, table in given.subsets.items() if name in given.predictions)
    if finding not in task.column_names or item_id not in table.item_ids:
        wanted = f"a finding of {', '.join(task.column_names)} and an item of subset {subset}"
        raise ValueError(f"'{item_id}:{finding}' is not {wanted}")
    if (item_id, finding) not in task.expected_pairs(given.protocol, table):
        raise ValueError(f"no prediction of {finding} is expected for {item_id}")
    row = table.item_ids.index(item_id)
    predictions = given.predictions[subset]
    heatmap = None
    if given.protocol == "heatmaps":
        heatmap = np.asarray(predictions.maps[finding][predictions.items[finding] == row][0], dtype=np.float64)
    comparison = task.protocols.heatmaps.comparison if task.protocols.heatmaps else ""
    found = detections(task, given.protocol, predictions)
    return Drawing(
        frame=(task.frame.width_px, task.frame.height_px),
        reference=reference_arrays([table.column(finding)[row]])[0],
        detected={
            "boxes" if threshold is None else f"{comparison} {threshold:g}": of[finding].boxes[of[finding].items == row]
            for threshold, of in found.items()
        },
        heatmap=heatmap,
    )


def detections(task: LocalizationTask, protocol: str, predictions: Any) -> dict[float | None, dict[str, Boxes]]:
    """Return the detected boxes by threshold (None for predicted boxes) and finding."""
    if protocol == "heatmaps" and task.protocols.heatmaps:
        return _from_heatmaps(task, task.protocols.heatmaps, predictions)
    found = {}
    for position, name in enumerate(task.column_names):
        chosen = predictions.findings == position
        found[name] = Boxes(predictions.boxes[chosen], predictions.items[chosen])
    return {None: found}


def _from_heatmaps(task: LocalizationTask, rules: Heatmaps, predictions: Any) -> dict[float | None, dict[str, Boxes]]:
    found: dict[float | None, dict[str, Boxes]] = {threshold: {} for threshold in rules.thresholds}
    for name in task.column_names:
        boxes = heatmap_boxes(
            predictions.maps[name],
            output=(task.frame.height_px, task.frame.width_px),
            thresholds=rules.thresholds,
            upsampling=rules.upsampling,
            strict=rules.comparison == ">",
            connectivity=rules.connectivity,
        )
        for position, threshold in enumerate(rules.thresholds):
            stacked, owner = stack_boxes([of_map[position] for of_map in boxes])
            found[threshold][name] = Boxes(stacked, predictions.items[name][owner])
    return found


class _Scored:
    """One subset with its reference boxes, detections and resamples."""

    def __init__(
        self,
        task: LocalizationTask,
        given: EvaluationInput,
        subset: str,
        table: Table,
        detected: Mapping[float | None, Mapping[str, Boxes]],
    ) -> None:
        self.task, self.subset, self.table, self.detected, self.seed = task, subset, table, detected, given.seed
        self.n_items = len(table)
        self.groups: Ints = np.unique(table.column("group_id"), return_inverse=True)[1].astype(np.int64)
        self.reference = {name: Boxes(*reference_arrays(table.column(name))) for name in task.column_names}
        chosen = task.protocols.heatmaps if given.protocol == "heatmaps" else task.protocols.boxes
        self.on_all = chosen is None or chosen.images == "all"
        self.resampled: dict[str, list[Floats]] = {}
        self._matches: dict[tuple[Any, ...], tuple[Floats, Floats]] = {}
        self._weights: dict[tuple[str, int], Floats] = {}

    def score(self, score: Score) -> dict[str, Any]:
        """Return one number with its per-finding values, counts and intervals."""
        metric = score.metric
        findings = {name: self._finding(score, name) for name in self.task.column_names}
        undefined = [name for name, entry in findings.items() if entry["value"] is None]
        reason = f"undefined for {', '.join(undefined)}: no reference box" if undefined else None
        resampled = [entry.pop("resampled") for entry in findings.values()]
        means = [np.mean(of_findings, axis=0) for of_findings in zip(*resampled, strict=True)]
        if not reason:
            self.resampled[score.name] = means
        values = [entry["value"] for entry in findings.values()]
        return {
            "metric": score.name,
            "kind": metric.kind,
            "protocol": metric.protocol,
            "criterion": metric.criterion,
            "t": metric.at[score.level],
            "threshold": score.threshold,
            "average": metric.average,
            "subset": self.subset,
            "n_items": self.n_items,
            "n_groups": int(self.groups.max()) + 1,
            "value": None if undefined else sum(values) / len(values),
            "reason": reason,
            "intervals": [
                fields.entry(None if reason else of_mean, reason)
                for fields, of_mean in zip(metric.interval, means, strict=True)
            ],
            "findings": findings,
        }

    def _finding(self, score: Score, name: str) -> dict[str, Any]:
        """Return one finding's value; `resampled` holds its values on the resamples of each interval."""
        counts = self._counts(score, name)
        reason = None if counts.value is not None else "no reference box"
        resampled = [counts.resampled(self._weights_of(fields)) for fields in score.metric.interval]
        n_positive = len(np.unique(self.reference[name].items))
        return {
            "value": counts.value,
            "reason": reason,
            "n_items": self.n_items,
            "n_positive": n_positive,
            "n_negative": self.n_items - n_positive,
            "n_missing": 0,
            "n_excluded": 0,
            "n_boxes": len(self.reference[name].boxes),
            "n_detected": len(self.detected[score.threshold][name].boxes),
            "intervals": [
                fields.entry(None if reason else values, reason)
                for fields, values in zip(score.metric.interval, resampled, strict=True)
            ],
            "resampled": resampled,
        }

    def _counts(self, score: Score, name: str) -> Counts:
        hits, false_positives = self._matched(score, name)
        n_boxes = np.bincount(self.reference[name].items, minlength=self.n_items).astype(np.float64)
        if score.metric.kind == "acc":
            return Counts(hits[:, score.level], n_boxes)
        return Counts(false_positives[:, score.level], self._units(score.metric, n_boxes))

    def _units(self, metric: BoxMetric, n_boxes: Floats) -> Floats:
        """Return what AFP is per, as a count of each item: box rows or images, of all images or of the finding's."""
        if not self.on_all:
            return n_boxes if metric.afp_unit == "box_row" else (n_boxes > 0).astype(np.float64)
        if metric.afp_unit == "image":
            return np.ones(self.n_items)
        rows = np.concatenate([one.items for one in self.reference.values()])
        return np.bincount(rows, minlength=self.n_items).astype(np.float64)

    def _matched(self, score: Score, name: str) -> tuple[Floats, Floats]:
        """Return hits and false positives per item and T, each [n_items, n_levels]."""
        metric = score.metric
        key = (name, score.threshold, metric.criterion, metric.correct, tuple(metric.at))
        if key not in self._matches:
            found, wanted = self.detected[score.threshold][name], self.reference[name]
            matches = match_boxes(
                found.boxes,
                wanted.boxes,
                metric.criterion,
                metric.at,
                strict=metric.correct == ">",
                detected_group=found.items,
                reference_group=wanted.items,
            )
            self._matches[key] = (
                self._per_item(wanted.items, matches.hit),
                self._per_item(found.items, ~matches.correct),
            )
        return self._matches[key]

    def _per_item(self, items: Ints, flags: NDArray[np.bool_]) -> Floats:
        counts = np.zeros((self.n_items, flags.shape[1]))
        np.add.at(counts, items, flags)
        return counts

    def _weights_of(self, fields: Interval) -> Floats:
        """Return how often each item occurs in each resample, [n_items, resamples]."""
        key = (fields.unit, fields.resamples)
        if key not in self._weights:
            units = np.arange(self.n_items) if fields.unit == "item" else self.groups
            stream = f"{self.seed}:{self.subset}:{fields.unit}"
            n_units = int(units.max()) + 1
            blocks = [resample_counts(stream, block, n_units)[units] for block in range(-(-fields.resamples // BLOCK))]
            self._weights[key] = np.concatenate(blocks, axis=1)[:, : fields.resamples].astype(np.float64)
        return self._weights[key]
