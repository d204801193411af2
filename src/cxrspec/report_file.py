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

REPORT_FORMAT: Final = 1
ROUNDING: Final = 1e-12
"""Two exact scores differ at most by the rounding of the last operation."""

_DESCRIBED: Final = ("environment", "fitted", "features")
"""Parts that say how a number came about; they are never compared."""
_COMPUTED: Final = (".value", ".low", ".high", ".margin", "_kappa", "_alpha_ordinal")
"""What a machine computes, and so may differ between two of them; everything else is given or counted."""
_NUMBER: Final = re.compile(r"\d+(\.\d+)?")

_PARTS: Final = ("protocol", "definition_digest", "subsets", "predictions", "trained_on", "scores", "notes")
_OF_SCORE: Final = ("metric", "kind", "value", "reason", "subset", "n_items", "n_groups", "signature")
_OF_FINDING: Final = ("value", "reason", "n_items", "n_positive", "n_negative", "n_missing", "n_excluded")
_OF_STRATUM: Final = ("value", "reason", "n_items", "n_groups", "findings")
_OF_PART: Final = ("value", "reason", "n_items", "n_groups", "n_missing", "n_excluded")
_OF_GRADER: Final = ("name", "kind", "sha256")
_OF_INTERVAL: Final = ("low", "high", "reason")


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
    faults = [f"lacks '{part}'" for part in _PARTS if part not in report]
    try:
        faults = faults or [f"lacks '{part}'" for part in _absent(report)]
    except (AttributeError, TypeError):
        faults = ["has a part of the wrong form"]
    said = (report.get("reference"), report.get("system"))
    if said != (str(reference.definition), system):
        faults.append(f"says that it is of {said[0]}/{said[1]}")
    if faults:
        raise RegistryError([Issue("file-unsafe", name, fault, hint) for fault in faults])
    return report


def _absent(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is not there inside the parts, so that whoever shows a report finds all of it."""
    yield from (f"predictions.{part}" for part in ("sha256", "n_left_aside") if part not in report["predictions"])
    if report.get("overlap"):
        yield from (f"overlap.{part}" for part in ("bound", "subsets") if part not in report["overlap"])
    yield from (f"subsets.{name}.id" for name, subset in report["subsets"].items() if "id" not in subset)
    for list_name in ("scores", "graded"):
        for i, score in enumerate(report.get(list_name, ())):
            yield from _absent_of_score(f"{list_name}[{i}]", score)
            if list_name == "graded":
                yield from (f"graded[{i}].grader.{part}" for part in _OF_GRADER if part not in score.get("grader", {}))


def _absent_of_score(path: str, score: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{path}.{part}" for part in _OF_SCORE if part not in score)
    yield from _absent_values(path, score)
    for covariate, strata in score.get("strata", {}).items():
        if covariate not in score.get("n_in_no_stratum", {}):
            yield f"{path}.n_in_no_stratum.{covariate}"
        for stratum, entry in strata.items():
            inner = f"{path}.strata.{covariate}.{stratum}"
            yield from (f"{inner}.{part}" for part in _OF_STRATUM if part not in entry)
            yield from _absent_values(inner, entry)


def _absent_values(path: str, score: Mapping[str, Any]) -> Iterator[str]:
    yield from _absent_intervals(path, score)
    for by, needed in (("findings", _OF_FINDING), ("question_types", _OF_PART)):
        for name, entry in score.get(by, {}).items():
            yield from (f"{path}.{by}.{name}.{part}" for part in needed if part not in entry)
            yield from _absent_intervals(f"{path}.{by}.{name}", entry)


def _absent_intervals(path: str, entry: Mapping[str, Any]) -> Iterator[str]:
    intervals = entry.get("intervals", [{}])
    yield from (f"{path}.intervals[].{part}" for part in _OF_INTERVAL for one in intervals if part not in one)


def is_undefined(report: Mapping[str, Any]) -> bool:
    """Return whether a score that the definition asks for has no value, though there are items to score."""
    return bool(undefined_scores(report))


def undefined_scores(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the scores without a value, save those of questions that the subset does not have."""
    return [score for score in report["scores"] if score["value"] is None and score.get("applies", True)]


def report_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the paths at which two reports differ by more than the tolerance that the definition allows.

    The environment, the fitted coefficients, the features they are of and the version of cxrspec are described, never
    compared.
    """
    tolerance = new.get("tolerance")
    keys = [key for key in sorted({*old, *new}) if key not in _DESCRIBED]
    return [path for key in keys for path in _differences(old.get(key), new.get(key), key, tolerance)]


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
