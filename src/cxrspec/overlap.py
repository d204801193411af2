"""Own how much of what is scored the training data cover: counts of items and groups, never an id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cxrspec.errors import Issue, RegistryError
from cxrspec.lock import Lock
from cxrspec.registry import Registry
from cxrspec.submission import Submission, need_of, read_predictions_file
from cxrspec.training import Covered, Declared, Trained, scored_subsets


def overlap_of(submission: Submission, lock: Lock, registry: Registry) -> dict[str, Any] | None:
    """Return the `overlap` of a report: per scored subset its items, and its groups with an item, in the training data.

    It is exact, or `at_most` where training items are only known to lie outside something, or `at_least` where some
    entries are words. None where all are: then nobody can tell.

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
    if declared.words:
        if not (declared.parts or declared.lists):
            return None
        return _entry("at_least", covered, submission, trained)
    for reference in declared.outside:
        covered.add(trained.part(reference, outside=True))
    return _entry("at_most" if declared.outside else "exact", covered, submission, trained)


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

    Where a table or list is not here, what an old report counted for the same training data stays; without one the
    overlap is unknown, with the reason. Raises as `overlap_of` does for everything else.
    """
    try:
        return overlap_of(submission, lock, registry)
    except RegistryError as error:
        if any(issue.code != "table-missing" for issue in error.issues):
            raise
        if old and old["trained_on"] == submission.training_text and old.get("overlap"):
            return dict(old["overlap"])
        reason = "; ".join(f"{issue.where} {issue.message}" for issue in error.issues)
        return {"bound": None, "subsets": {}, "notes": [], "reason": reason}


def overlap_notes(overlap: Mapping[str, Any] | None, place: str) -> list[Issue]:
    """Return what was noticed while counting, or why nothing was counted."""
    texts = [*overlap["notes"], *([overlap["reason"]] if overlap["reason"] else [])] if overlap else []
    return [Issue("note", f"{place} trained_on", text) for text in texts]
