"""Own the curves of a scored system, per subset and finding, with the points of the readers beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cxrspec.metrics import ReaderPoint, curve_points, majority_vote, reader_point
from cxrspec.tasks.findings.below import reads_of
from cxrspec.tasks.findings.evaluation import ScoredSubset, scored_subsets
from cxrspec.tasks.task import Curves, Evaluation, EvaluationInput

if TYPE_CHECKING:
    from cxrspec.tasks.findings import FindingsTask


def curves(task: FindingsTask, given: EvaluationInput) -> dict[str, dict[str, Curves]]:
    """Return the curves by subset and finding; a finding without both classes, or without a fit, has none."""
    found = {}
    for scored in scored_subsets(task, given, Evaluation()):
        of_findings = {name: _curves(scored, at) for at, name in enumerate(scored.findings)}
        found[scored.name] = {name: one for name, one in of_findings.items() if one}
    return found


def _curves(scored: ScoredSubset, at: int) -> Curves | None:
    finding, labels = scored.findings[at], scored.labels[:, at]
    points = None if finding in scored.undefined else curve_points(labels, scored.scores[:, at])
    if points is None:
        return None
    reads = reads_of(scored.table, scored.readers, finding) if scored.readers else None
    readers: dict[str, ReaderPoint] = {}
    vote = None
    if reads is not None:
        of_readers = {name: reader_point(labels, reads[:, i]) for i, name in enumerate(scored.readers)}
        readers = {name: point for name, point in of_readers.items() if point}
        vote = reader_point(labels, majority_vote(reads)) if reads.shape[1] % 2 else None
    return Curves(points, readers, vote)
