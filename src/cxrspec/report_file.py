"""Own the content of a report: reading it back, and telling whether two reports hold the same numbers.

It computes no score; `score` writes what is read here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cxrspec.errors import Issue, RegistryError
from cxrspec.lock import finite_number, refuse_constant
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.report_shape import shape_faults

REPORT_FORMAT: Final = 1
ROUNDING: Final = 1e-12
"""Two exact scores differ at most by the rounding of the last operation."""

_DESCRIBED: Final = ("environment",)
"""Parts that say how a number came about; they are never compared."""
_DESCRIBED_OF_HEAD: Final = ("n_cv_not_converged",)
"""A fit on a fold may stop short on one machine only; the refit, which is what is scored, may not."""
_WEIGHTS: Final = ("coefficients", "intercept")
_COMPUTED: Final = (".value", ".low", ".high", ".margin", "_kappa", "_alpha_ordinal")
"""What a machine computes, and so may differ between two of them; everything else is given or counted."""
_NUMBER: Final = re.compile(r"\d+(\.\d+)?")


def read_report(registry: Registry, reference: Reference, system: str) -> dict[str, Any] | None:
    """Return a report, or None if there is none.

    Raises:
        RegistryError: if it is damaged, of a newer format, or of another submission.
    """
    path = registry.report_path(reference, system)
    if not path.is_file():
        return None
    name, hint = registry.name(path), f"Delete it and run 'cxrspec score {reference.definition}/{system}'"
    try:
        report: dict[str, Any] = json.loads(
            path.read_bytes(), parse_constant=refuse_constant, parse_float=finite_number
        )
        number = report["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RegistryError(Issue("file-unsafe", name, "is not a readable report", hint)) from None
    if not isinstance(number, int) or number > REPORT_FORMAT:
        message = f"has format {number}; this cxrspec reads formats up to {REPORT_FORMAT}"
        raise RegistryError(Issue("lock-format", name, message, "Install a newer cxrspec"))
    faults = shape_faults(report)
    said = (report.get("reference"), report.get("system"))
    if said != (str(reference.definition), system):
        faults.append(f"says that it is of {said[0]}/{said[1]}")
    if faults:
        raise RegistryError([Issue("file-unsafe", name, fault, hint) for fault in faults])
    return report


def is_undefined(report: Mapping[str, Any]) -> bool:
    """Return whether a score that the definition asks for has no value, though there are items to score."""
    return bool(undefined_scores(report))


def undefined_scores(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the scores without a value, save those of questions that the subset does not have."""
    return [score for score in report["scores"] if score["value"] is None and score.get("applies", True)]


def report_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the paths at which two reports differ by more than the tolerance that the definition allows.

    The environment and the version of cxrspec are described, never compared; nor are the names of features with a
    report from before they had any. Of fitted heads everything is compared, numbers within the tolerance.
    """
    tolerance = new.get("tolerance")
    unnamed = () if "features" in old else ("features",)
    keys = [key for key in sorted({*old, *new}) if key not in (*_DESCRIBED, *unnamed, "fitted")]
    differences = [path for key in keys for path in _differences(old.get(key), new.get(key), key, tolerance)]
    return differences + list(_fitted_differences(old.get("fitted"), new.get("fitted"), tolerance))


def _fitted_differences(old: Any, new: Any, tolerance: float | None) -> Iterator[str]:
    if not (isinstance(old, Mapping) and isinstance(new, Mapping) and old.keys() == new.keys()):
        yield from ["fitted"] if old != new else []
        return
    for name in sorted(new):
        yield from _head_differences(old[name], new[name], f"fitted.{name}", tolerance or ROUNDING)


def _head_differences(old: Any, new: Mapping[str, Any], path: str, tolerance: float) -> Iterator[str]:
    """Compare two heads: losses within the tolerance, weights within it times the largest weight, the rest exactly.

    The optimum of a head is the same on every machine to about 1e-6 of its largest weight, which depends on the scale
    of the features. The tolerance of the scores is far above that, and far below a weight that anyone could mean.
    """
    if not isinstance(old, Mapping):
        yield path
        return
    scale = max(map(abs, [*new.get("coefficients", ()), new.get("intercept", 0.0)]))
    allowed = {"cv_log_loss": tolerance, **dict.fromkeys(_WEIGHTS, tolerance * scale)}
    for key in sorted({*old, *new} - {*_DESCRIBED_OF_HEAD}):
        if not _is_near(old.get(key), new.get(key), allowed.get(key)):
            yield f"{path}.{key}"


def _is_near(old: Any, new: Any, allowed: float | None) -> bool:
    """Say whether two values are equal, or two numbers, lists or mappings of numbers differ by what is allowed."""
    if allowed is not None and isinstance(old, float) and isinstance(new, float):
        return abs(old - new) <= allowed
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return old.keys() == new.keys() and all(_is_near(old[key], new[key], allowed) for key in new)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(_is_near(a, b, allowed) for a, b in zip(old, new, strict=True))
    return bool(old == new) and type(old) is type(new)


def _differences(old: Any, new: Any, path: str, tolerance: float | None) -> list[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        steps = sorted({*old, *new})
        return [found for k in steps for found in _differences(old.get(k), new.get(k), f"{path}.{k}", tolerance)]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [found for i, (a, b) in pairs for found in _differences(a, b, f"{path}[{i}]", tolerance)]
    if isinstance(old, float) and isinstance(new, float) and path.endswith(_COMPUTED):
        return [] if abs(old - new) <= (tolerance or ROUNDING) else [path]
    if isinstance(old, str) and isinstance(new, str):
        if path.endswith(".signature"):
            old, new = old.rpartition("|cxrspec:")[0], new.rpartition("|cxrspec:")[0]
        elif path.startswith("notes[") and tolerance:  # they quote values, which may differ within the tolerance
            old, new = _NUMBER.sub("#", old), _NUMBER.sub("#", new)
    return [] if old == new and type(old) is type(new) else [path]
