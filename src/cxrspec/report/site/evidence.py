"""Own what a page shows of rows and proofs: curves from the frozen table and predictions, and the chain of an audit.

Where a source may not be passed on, neither curves nor texts that may name rows are shown, and the page says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from cxrspec.audit import Audit
from cxrspec.curves import curves_of
from cxrspec.errors import CxrspecError
from cxrspec.lock import Lock
from cxrspec.registry import Registry
from cxrspec.report.site.charts import curve, on_grid, reference_path
from cxrspec.submission import Submission
from cxrspec.tasks import Curves

WITHHELD: Final = "Left out: a source may not be passed on, and a curve of few items shows single ones"
_ROC_LABELS: Final = ("1 − specificity", "sensitivity")
_PR_LABELS: Final = ("recall", "precision")


def chain(audit: Audit, *, restricted: bool) -> list[dict[str, str]]:
    """Return the links of an audit as a page shows them; a restricted one tells no text that may name rows."""
    command = f"run 'cxrspec audit {audit.reference}' to read why"
    return [
        {
            "name": link.name,
            "state": link.state,
            "detail": command if restricted and link.state == "broken" else link.detail,
        }
        for link in audit.links
    ]


def curves(submission: Submission, lock: Lock, registry: Registry) -> dict[str, Any]:
    """Return the curves of a submission by subset and finding, or why there are none."""
    if not lock.redistribute:
        return {"subsets": {}, "missing": WITHHELD}
    try:
        found = curves_of(submission, lock, registry) or {}
    except CxrspecError as error:
        return {"subsets": {}, "missing": f"Not drawn: {error.issues[0]}"}
    drawn = {subset: [_panels(name, one) for name, one in findings.items()] for subset, findings in found.items()}
    kept = {name: panels for name, panels in drawn.items() if panels}
    return {"subsets": kept, "missing": "" if kept else "A protocol without a ranking has no curves"}


def _panels(finding: str, curves: Curves) -> dict[str, Any]:
    """Draw both curves of a finding."""
    points = curves.points
    n_positive, n_negative = (int(counts[-1]) for counts in (points.true_positives, points.false_positives))
    share = n_positive / (n_positive + n_negative)
    counts = f"{n_positive:,} positive of {n_positive + n_negative:,} items"
    diagonal, level = reference_path((0, 0), (1, 1)), reference_path((0, share), (1, share))
    rates = zip(points.false_positive_rate, points.true_positive_rate, strict=True)
    steps = _steps(zip(points.true_positive_rate[1:], points.precision[1:], strict=True))
    return {
        "finding": finding,
        "roc": curve(
            on_grid(rates),
            f"ROC curve of {finding}",
            f"{counts}; the dashed diagonal is chance",
            labels=_ROC_LABELS,
            reference=diagonal,
        ),
        "pr": curve(
            on_grid(steps),
            f"Precision-recall curve of {finding}",
            f"{counts}; the dashed line is their share, {share:.3f}",
            labels=_PR_LABELS,
            reference=level,
        ),
    }


def _steps(points: Iterator[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield the steps whose area is average precision: each precision holds from the recall before it to its own."""
    before = 0.0
    for recall, precision in points:
        yield before, precision
        yield recall, precision
        before = recall
