"""Own what a page shows of rows and proofs: curves from the frozen table and predictions, and the chain of an audit.

Where a source may not be passed on, neither curves nor texts that may name rows are shown, and the page says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from markupsafe import Markup

from cxrspec.audit import Audit
from cxrspec.curves import curves_of
from cxrspec.errors import CxrspecError
from cxrspec.lock import Lock
from cxrspec.registry import Registry
from cxrspec.report.curves import CURVES, legend_keys, panel_picture
from cxrspec.submission import Submission
from cxrspec.tasks import Curves

WITHHELD: Final = "Left out: a source may not be passed on, and a curve of few items shows single ones"


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
        return {"subsets": {}, "keys": [], "missing": WITHHELD}
    try:
        found = curves_of(submission, lock, registry) or {}
    except CxrspecError as error:
        return {"subsets": {}, "keys": [], "missing": f"Not drawn: {error.issues[0]}"}
    kept = {name: findings for name, findings in found.items() if findings}
    return {
        "subsets": {name: [_panels(*one) for one in findings.items()] for name, findings in kept.items()},
        "keys": [(Markup(key), words) for key, words in legend_keys(_every(kept))],  # noqa: S704 - words are escaped
        "missing": "" if kept else "A protocol without a ranking has no curves",
    }


def _every(found: Mapping[str, Mapping[str, Curves]]) -> Iterator[Curves]:
    return (one for findings in found.values() for one in findings.values())


def _panels(finding: str, curves: Curves) -> dict[str, Any]:
    """Draw both curves of a finding."""
    roc, pr = (Markup(panel_picture(one, finding, curves)) for one in CURVES)  # noqa: S704 - words are escaped
    return {"finding": finding, "roc": roc, "pr": pr}
