"""Own the curves of one system as files of data: vertices of ROC and precision-recall, and the readers' points.

They are computed from the frozen table and the predictions, by the same code as `score`; nothing here draws.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from cxrspec.digest import number_text
from cxrspec.errors import Issue, RegistryError, SubmissionError
from cxrspec.lock import Lock
from cxrspec.reading import check_submission
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.strict_yaml import dump_document
from cxrspec.submission import Submission, load_submission, need_of, task_of
from cxrspec.tasks import Curves, EvaluationInput

VOTE = "majority vote"


def system_curves(
    reference: Reference, registry: Registry, *, restricted: bool = False
) -> Mapping[str, Mapping[str, Curves]]:
    """Return the curves of a system by subset and finding.

    Raises:
        SubmissionError: if the submission or its predictions are refused, or its task has no curves.
        RegistryError: if the definition is not frozen, predictions or a table are missing or altered, or rows may not
            be passed on and `restricted` is false.
    """
    lock = registry.read_lock(reference)
    if not (lock.redistribute or restricted):
        message = "a source may not be passed on, and a curve beside its predictions gives labels away"
        raise RegistryError(Issue("restricted", str(reference), message, "Add --restricted to draw it for yourself"))
    submission = load_submission(registry, lock.reference, reference.system or "")
    found = curves_of(submission, lock, registry)
    if found is None:
        message = f"the task '{lock.definition['task']}' has no curves"
        raise SubmissionError(Issue("submission-field", "curves", message))
    return found


def curves_of(submission: Submission, lock: Lock, registry: Registry) -> Mapping[str, Mapping[str, Curves]] | None:
    """Return the curves of a submission; None where its task has none, without reading what is large."""
    task = task_of(lock)
    if need_of(submission, lock).frame:
        return None
    read = check_submission(submission, lock, registry, submission.system)
    return task.curves(EvaluationInput(submission.protocol, lock.definition["seed"], read.tables, read.by_subset))


def curve_files(found: Mapping[str, Mapping[str, Curves]]) -> dict[str, bytes]:
    """Return the files of data by name: two curves per finding, the readers, and a `dvc.yaml` that draws the curves."""
    files, plots = {}, []
    readers: list[tuple[str, ...]] = []
    for subset, findings in found.items():
        for finding, curves in findings.items():
            name = f"{subset}.{finding}"
            files[f"{name}.roc.csv"] = _csv(("threshold", "false_positive_rate", "true_positive_rate"), _roc(curves))
            files[f"{name}.precision_recall.csv"] = _csv(("threshold", "recall", "precision"), _precision(curves))
            plots += [
                _plot(f"{name}.roc", "false_positive_rate", "true_positive_rate"),
                _plot(f"{name}.precision_recall", "recall", "precision"),
            ]
            readers += [(subset, finding, *cells) for cells in _readers(curves)]
    if readers:
        heading = ("subset", "finding", "reader", "false_positive_rate", "true_positive_rate", "precision")
        files["readers.csv"] = _csv(heading, readers)
    return files | {"dvc.yaml": dump_document({"plots": plots})}


def ignoring(path: Path, names: Iterable[str]) -> bytes:
    """Return the content of a `.gitignore` at `path` that also keeps files beside it out of git.

    `dvc.yaml` holds names only, and DVC reads none that git ignores.
    """
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    wanted = [f"/{name}" for name in names if name != "dvc.yaml"]
    return "".join(f"{line}\n" for line in dict.fromkeys([*lines, *wanted])).encode()


def _plot(name: str, x: str, y: str) -> dict[str, object]:
    return {name: {"x": x, "y": {f"{name}.csv": y}, "template": "simple", "title": name}}


def _roc(curves: Curves) -> Iterator[tuple[str, ...]]:
    points = curves.points
    rates = zip(points.thresholds, points.false_positive_rate, points.true_positive_rate, strict=True)
    for at, (threshold, *cells) in enumerate(rates):
        yield (number_text(float(threshold)) if at else "", *(number_text(float(cell)) for cell in cells))


def _precision(curves: Curves) -> Iterator[tuple[str, ...]]:
    points = curves.points
    for row in zip(points.thresholds[1:], points.true_positive_rate[1:], points.precision[1:], strict=True):
        yield tuple(number_text(float(cell)) for cell in row)


def _readers(curves: Curves) -> Iterator[tuple[str, ...]]:
    for name, point in (*curves.readers.items(), *([(VOTE, curves.vote)] if curves.vote else ())):
        rates = (point.false_positive_rate, point.sensitivity, point.precision)
        yield (name, *("" if rate is None else number_text(rate) for rate in rates))


def _csv(heading: Iterable[str], rows: Iterable[Iterable[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([heading, *rows])
    return out.getvalue().encode()
