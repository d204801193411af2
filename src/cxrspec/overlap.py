"""Own the known overlap between what a system declares it was trained on and what it is scored on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cxrspec.digest import Table
from cxrspec.errors import listed
from cxrspec.lock import Lock
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.submission import Submission


def training_overlap(
    submission: Submission, lock: Lock, registry: Registry, tables: Mapping[str, Table]
) -> dict[str, Any] | None:
    """Return what a declared training subset of another definition here shares with what is scored, if anything.

    A subset of the same definition that does so is refused (`training_issues`); any other words are their author's.

    Raises:
        RegistryError: if the definition has no such subset, or its table is not here: never taken for no overlap.
    """
    try:
        trained = Reference.parse(submission.trained_on)
    except ValueError:
        return None
    elsewhere = trained.definition != lock.reference and registry.lock_path(trained).is_file()
    if trained.subset is None or not elsewhere:
        return None
    other = registry.read_lock(trained)
    seen = registry.read_subset(trained, restricted=True)
    fitted = lock.definition["protocols"][submission.protocol].get("fit_on")
    shared = {}
    for name in (name for name in tables if name != fitted):
        items = {*seen.item_ids} & {*tables[name].item_ids}
        groups = {*seen.column("group_id")} & {*tables[name].column("group_id")} if _same_groups(lock, other) else set()
        if items or groups:
            shared[name] = {"items": len(items), "groups": len(groups)}
    if not shared:
        return None
    sizes = [f"{n['items']:,} items and {n['groups']:,} groups with {name}" for name, n in shared.items()]
    return {"subsets": shared, "reason": f"its training data {trained} shares {listed(sizes)}"}


def _same_groups(first: Lock, second: Lock) -> bool:
    """Return whether group ids mean the same: they are read in one way from one file."""
    pins = []
    for lock in (first, second):
        items = lock.definition["items"]
        source, _, file = items["source"].partition("/")
        files = lock.document["sources"][source]
        pins.append((items["group_id"], (files[file] if file else next(iter(files.values())))["sha256"]))
    return bool(pins[0] == pins[1])
