"""Own how much of what is scored the training data cover: counts of items and groups, never an id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cxrspec.declared import Declared
from cxrspec.errors import Issue, RegistryError
from cxrspec.lock import Lock
from cxrspec.registry import Registry
from cxrspec.submission import Submission, need_of, read_predictions_file
from cxrspec.training import Covered, Trained, scored_subsets


def overlap_of(submission: Submission, lock: Lock, registry: Registry) -> dict[str, Any] | None:
    """Return the `overlap` of a report: per scored subset its items, and its groups with an item, in the training data.

    It is exact, or `at_most` where training items are only known to lie outside something, or `at_least` where some
    entries are words, or groups go by other names; then what lies outside something is no limit any more. None where
    all entries are words: then nobody can tell.

    Raises:
        RegistryError: if a roster, a table or a list file is not on this machine, or altered.
        SubmissionError: if a list file is no list of ids that the roster knows.
    """
    declared, trained = Declared.of(submission), Trained(lock, registry)
    covered = Covered()
    for reference in declared.parts:
        covered.add(trained.part(reference))
    for one in declared.lists:
        data = read_predictions_file(registry, lock.reference, submission.system, one)
        covered.add(trained.id_list(data, one.file, one.holds)[1])
    outside = [] if declared.words else [trained.part(reference, outside=True) for reference in declared.outside]
    partial = [one for one in (covered, *outside) if one.is_partial]
    if not (declared.words or partial):
        for limit in outside:
            covered.add(limit)
        return _entry("at_most" if outside else "exact", covered, submission, trained)
    untold = [note for one in partial if one is not covered for note in one.notes]
    if declared.parts or declared.lists:
        covered.notes += untold
        return _entry("at_least", covered, submission, trained)
    return _uncounted("; ".join(untold)) if untold else None


def _uncounted(reason: str) -> dict[str, Any]:
    return {"bound": None, "subsets": {}, "notes": [], "reason": reason}


def _entry(bound: str, covered: Covered, submission: Submission, trained: Trained) -> dict[str, Any]:
    subsets = {}
    for name in scored_subsets(submission, trained.lock, need_of(submission, trained.lock).subsets):
        table = trained.registry.read_table(trained.lock.reference, name, trained.lock.subsets[name]["digest"])
        groups = set(table.column("group_id"))
        subsets[name] = {
            "items": len(covered.items.intersection(table.item_ids)),
            "n_items": len(table),
            "groups": len(covered.groups & groups),
            "n_groups": len(groups),
        }
    return {"bound": bound, "subsets": subsets, "notes": covered.notes, "reason": None}


def overlap_here(
    submission: Submission, lock: Lock, registry: Registry, old: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Return the `overlap` of a report as far as this machine can tell.

    Where a table or list is not here, what an old report counted for the same training data and protocol stays; without
    such counts the overlap is unknown, with the reason. Raises as `overlap_of` does for everything else.
    """
    try:
        return overlap_of(submission, lock, registry)
    except RegistryError as error:
        if any(issue.code != "table-missing" for issue in error.issues):
            raise
        given = {"trained_on": submission.training_text, "protocol": submission.protocol}
        if old and given.items() <= old.items() and is_counted(old.get("overlap")):
            return dict(old["overlap"])
        reason = "; ".join(f"{issue.where} {issue.message}" for issue in error.issues)
        return _uncounted(reason)


def is_counted(overlap: Mapping[str, Any] | None) -> bool:
    """Say whether an overlap has counts, not only a reason why there are none."""
    return overlap is not None and overlap["bound"] is not None


def overlap_notes(overlap: Mapping[str, Any] | None, place: str) -> list[Issue]:
    """Return what was noticed while counting, or why nothing was counted."""
    texts = [*overlap["notes"], *([overlap["reason"]] if overlap["reason"] else [])] if overlap else []
    return [Issue("note", f"{place} trained_on", text) for text in texts]
