"""Own the two judgements on a comparison: whether scores of two versions are comparable, and which bump is honest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cxrspec.comparison.subsets import COMPILED_FROM, SubsetComparison
from cxrspec.comparison.version import Change, Version, document_changes
from cxrspec.errors import listed

COMPARABLE: Final = "scores comparable"
SHARED_ONLY: Final = "comparable on the shared items only"
NOT_COMPARABLE: Final = "not comparable"
THE_SAME: Final = "the same"
"""Two versions on which nothing is scored, and which differ in nothing."""
NO_SCORE: Final = "no score to compare"
"""Two versions on which nothing is scored, and which differ."""
_WORST_FIRST: Final = (NOT_COMPARABLE, SHARED_ONLY, COMPARABLE)

_MOVES_NO_SCORE: Final = ("name", "interval", "tolerance", "strata")
"""Settings of metrics and protocols that only name a score, say how uncertain it is, or ask for parts beside it."""
_JUDGED_APART: Final = (*COMPILED_FROM, "metrics", "protocols", "seed")
"""Fields that have rules of their own; any other field that differs makes scores another thing."""

Subsets = Mapping[str, SubsetComparison]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether scores may be compared, and why."""

    verdict: str
    why: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the verdict as `--json` prints it."""
        return {"verdict": self.verdict, "why": list(self.why)}


def metric_verdicts(before: Version, after: Version, subsets: Subsets) -> dict[str, Verdict]:
    """Judge every metric that both versions have; one that only changed its name goes by both names."""
    pairs = {name: (name, name) for name in before.metrics if name in after.metrics}
    pairs |= {" / ".join(sorted(pair)): pair for pair in _renamed(before, after)}
    return {label: _metric_verdict(pairs[label], before, after, subsets) for label in sorted(pairs)}


def _renamed(before: Version, after: Version) -> Iterator[tuple[str, str]]:
    """Yield (old, new) name of metrics that differ in nothing else, as long as no other metric could be meant."""
    gone, new = (
        [(name, _settled(metric)) for name, metric in one.metrics.items() if name not in other.metrics]
        for one, other in ((before, after), (after, before))
    )
    for old_name, metric in gone:
        same = [name for name, other in new if other == metric]
        if len(same) == 1 == sum(other == metric for _, other in gone):
            yield old_name, same[0]


def overall_verdict(metrics: Mapping[str, Verdict]) -> Verdict:
    """Return the worst verdict of any metric that both versions have."""
    if not metrics:
        return Verdict(NOT_COMPARABLE, ("they have no metric in common",))
    worst = min((one.verdict for one in metrics.values()), key=_WORST_FIRST.index)
    why = dict.fromkeys(reason for one in metrics.values() if one.verdict == worst for reason in one.why)
    return Verdict(worst, tuple(why))


def unscored_verdict(subsets: Subsets, *, is_same: bool) -> Verdict:
    """Return what can be said of two versions on which nothing is scored: which items and labels they share."""
    why = tuple(_shared_text(subset) for subset in subsets.values())
    return Verdict(THE_SAME if is_same else NO_SCORE, ("nothing is scored on either", *why))


def _shared_text(subset: SubsetComparison) -> str:
    if not subset.in_both:
        return f"{subset.name} is in one of them only"
    if subset.is_unknown:
        return f"which items of {subset.name} are shared cannot be told: {subset.reason}"
    if subset.holds_all:
        return f"every item of {subset.name} is in both with the same labels"
    return _kept_text(subset)


def _kept_text(subset: SubsetComparison) -> str:
    return f"{subset.n_kept:,} items of {subset.name} are in both with the same labels, {subset.n_apart:,} are not"


def _metric_verdict(names: tuple[str, str], before: Version, after: Version, subsets: Subsets) -> Verdict:
    reasons = [*_other_measure(names, before, after), *_other_fit(names, before, after, subsets)]
    scored = subsets[before.scored_subset(names[0])]
    if "average" in before.metrics[names[0]]:
        reasons += _other_findings(before, after, scored, values_alone=not reasons)
    if reasons:
        return Verdict(NOT_COMPARABLE, tuple(reasons))
    if scored.is_same:
        return Verdict(COMPARABLE, (f"{scored.name}, protocol and metric are the same",))
    if scored.holds_all:
        return Verdict(COMPARABLE, (f"every item of {scored.name} is in both with the same labels",))
    if scored.reason:
        return Verdict(NOT_COMPARABLE, (f"which items of {scored.name} are shared cannot be told: {scored.reason}",))
    if not scored.n_kept:
        return Verdict(NOT_COMPARABLE, (f"no item of {scored.name} is in both with the same labels",))
    return Verdict(SHARED_ONLY, (_kept_text(scored),))


def _other_measure(names: tuple[str, str], before: Version, after: Version) -> Iterator[str]:
    """Yield what makes a metric another measure in the two versions, whatever the items."""
    first, second = _settled(before.metrics[names[0]]), _settled(after.metrics[names[1]])
    if paths := [change.path for change in document_changes(first, second)]:
        yield f"the metric differs in {listed(paths)}"
    if first["protocol"] == second["protocol"]:
        old, new = (_settled(version.document["protocols"][first["protocol"]]) for version in (before, after))
        if paths := [change.path for change in document_changes(old, new)]:
            yield f"protocol {first['protocol']} differs in {listed(paths)}"
    if before.document["items"]["unit"] != after.document["items"]["unit"]:
        yield "the unit of items differs"
    unused = {field for field, kind in before.task.USED_BY.items() if kind != first.get("kind")}
    apart = {*_JUDGED_APART, *before.task.COMPILED, *after.task.COMPILED, *unused}
    old, new = (
        {field: value for field, value in version.document.items() if field not in apart} for version in (before, after)
    )
    if paths := [change.path for change in document_changes(old, new)]:
        yield f"the task differs in {listed(paths)}"


def _settled(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in _MOVES_NO_SCORE}


def _other_fit(names: tuple[str, str], before: Version, after: Version, subsets: Subsets) -> Iterator[str]:
    """Yield what makes a system that is fitted here another system in the two versions."""
    fitted = sorted({*before.fitted_subsets(names[0]), *after.fitted_subsets(names[1])})
    for subset in (subsets[name] for name in fitted):
        if not subset.is_same:
            yield f"systems are fitted on {subset.name}, which {'may differ' if subset.is_unknown else 'differs'}"
    if fitted and before.document["seed"] != after.document["seed"]:
        yield "systems are fitted with folds by the seed, which differs"


def _other_findings(before: Version, after: Version, scored: SubsetComparison, *, values_alone: bool) -> Iterator[str]:
    """Yield which findings are averaged in one version only; the values of the others may be comparable alone."""
    first, second = set(before.task.strata_names), set(after.task.strata_names)
    if first == second:
        return
    reason = f"the mean is over other findings: {listed(sorted(first ^ second))} in one of them only"
    if values_alone and scored.holds_all and first & second:
        reason += f"; the values of {listed(sorted(first & second))} alone are comparable"
    yield reason


def honest_bump(
    before: Version, after: Version, changes: list[Change], subsets: Subsets, metrics: Mapping[str, Verdict]
) -> Verdict:
    """Return the smallest version step that hides nothing, in Croissant's meaning.

    MAJOR: existing data (or what its scores mean) changed. MINOR: what was there is the same, and there is more.
    PATCH: the same data, described or packaged otherwise.
    """
    gone, new = _parts(before) - _parts(after), _parts(after) - _parts(before)
    compared = [subset for subset in subsets.values() if subset.before and subset.after and subset.items]
    apart = [name for name, one in metrics.items() if one.verdict == NOT_COMPARABLE]
    major = [f"gone: {listed(sorted(gone), 3)}"] if gone else []
    major += [f"not comparable: {listed(apart, 3)}"] if apart else []
    for name in ("removed", "relabelled"):
        major += [f"{len(one.items[name].ids):,} items of {one.name} {name}" for one in compared if one.items[name].ids]
    major += [f"items of {one.name} may differ" for one in subsets.values() if one.is_unknown]
    if major:
        return Verdict("major", tuple(major))
    minor = [f"new: {listed(sorted(new), 3)}"] if new else []
    minor += [
        f"{len(one.items['added'].ids):,} items of {one.name} added" for one in compared if one.items["added"].ids
    ]
    if minor:
        return Verdict("minor", tuple(minor))
    if changes:
        return Verdict("patch", ("the data and the meaning of every score are the same",))
    return Verdict("none", ("nothing differs",))


def _parts(version: Version) -> set[str]:
    """Return what a version has that another may lack, in words."""
    task = version.task
    named = {
        "subset": version.document["subsets"],
        "metric": version.metrics,
        "protocol": task.protocol_names,
        task.STRATA.replace("_", " "): task.strata_names,
        "column": [name for name in task.column_names if name not in task.strata_names],
    }
    parts = {f"{kind} {name}" for kind, names in named.items() for name in names}
    return parts | {
        f"metric {name} by {covariate}{_bands_text(strata)}"
        for name, metric in version.metrics.items()
        for covariate, strata in (metric.get("strata") or {}).items()
    }


def _bands_text(strata: Mapping[str, Any]) -> str:
    return f" from {', '.join(f'{start:g}' for start in strata['bands'])}" if strata.get("bands") else ""
