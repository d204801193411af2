"""Own what a system was trained on, as its submission declares it: slips refused, ids brought to our form.

It reads frozen rosters and list files only. What of it is also scored is counted by `overlap`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from cxrspec.declared import NOTHING, OUTSIDE, Declared
from cxrspec.digest import Table
from cxrspec.errors import IDS_LISTED, Issue, SubmissionError, did_you_mean, listed
from cxrspec.ids import Canonicalizer
from cxrspec.lock import Lock
from cxrspec.predictions.loading import as_submission_error
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.spelling import plain_name
from cxrspec.submission import Submission, place_of_submission
from cxrspec.tables import read_lines

Holds = Literal["items", "groups"]


@dataclass
class Covered:
    """Items and groups that training data cover, in the ids of the definition that is scored."""

    items: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    """Groups with an item that was trained on."""
    notes: list[str] = field(default_factory=list)
    is_partial: bool = False
    """Whether some of the groups could not be told: then there are at least these."""

    def add(self, other: Covered) -> None:
        """Take in what other training data cover."""
        self.items |= other.items
        self.groups |= other.groups
        self.notes += other.notes
        self.is_partial = self.is_partial or other.is_partial


@dataclass(frozen=True)
class Trained:
    """Reads the training data of systems that are scored on one definition version."""

    lock: Lock
    registry: Registry

    @cached_property
    def roster(self) -> Table:
        """The frozen roster of the definition that is scored."""
        return self.registry.read_table(self.lock.reference, "roster", self.lock.tables["roster"])

    @cached_property
    def group_of(self) -> dict[str, str]:
        """The group of every item of the roster."""
        return dict(zip(self.roster.item_ids, self.roster.column("group_id"), strict=True))

    @cached_property
    def canonicalizer(self) -> Canonicalizer:
        """Bring item ids to the form of the roster, as those of predictions are."""
        return Canonicalizer.from_reference(self.lock.id_rule, self.roster.item_ids)

    def part(self, reference: Reference, *, outside: bool = False) -> Covered:
        """Return what a subset or split covers, or what lies outside it, also of another definition.

        Raises:
            RegistryError: if one of the tables is not on this machine, or altered.
        """
        ours = reference.definition == self.lock.reference
        lock = self.lock if ours else self.registry.read_lock(reference)
        if ours and not outside and reference.subset in lock.subsets:
            table = self._subset(reference, lock)
            return Covered(set(table.item_ids), set(table.column("group_id")), list(_meant(reference, lock)))
        roster = self.roster if ours else self.registry.read_table(lock.reference, "roster", lock.tables["roster"])
        named = self._named(reference, lock, roster)
        rows = [row for row, item in enumerate(roster.item_ids) if (item in named) != outside]
        ids = roster.item_ids if ours else self._our_ids(roster.item_ids, lock)
        covered = Covered({ids[row] for row in rows}, notes=list(_meant(reference, lock)))
        covered.groups = {self.group_of[item] for item in covered.items if item in self.group_of}
        groups = roster.column("group_id")
        strange = {groups[row] for row in rows if ids[row] not in self.group_of}
        self._add_groups(covered, strange, zip(ids, groups, strict=True), str(reference.definition))
        return covered

    def _add_groups(
        self, covered: Covered, strange: set[str], theirs: Iterable[tuple[str, str]], definition: str
    ) -> None:
        """Add the groups of covered items that our roster does not have, by the names of another definition.

        Where every common item has one group in both, a group has one name in both. Where some differ, only the name of
        a group counts whose common items all agree; any other may be one of ours.

        Args:
            covered: what is added to.
            strange: the other definition's groups of those items.
            theirs: every item of its roster, in our form, with its group.
            definition: how notes call it.
        """
        agree, differ = set[str](), set[str]()
        for item, group in theirs:
            if item in self.group_of:
                (agree if self.group_of[item] == group else differ).add(group)
        if not (agree or differ):
            covered.notes.append(f"{definition} has no image of ours by its id: taken as other data")
        elif not differ:
            covered.groups |= strange
        elif strange:
            covered.groups |= strange & (agree - differ)
            covered.is_partial = True
            found = (
                f"{len(differ):,} of {len(agree | differ):,} groups of {definition} have images of another group here"
            )
            covered.notes.append(f"{found}: an image that is not ours counts for its group where all others agree")

    def _named(self, reference: Reference, lock: Lock, roster: Table) -> set[str]:
        if reference.subset in lock.subsets:
            return set(self._subset(reference, lock).item_ids)
        splits = roster.column("split")
        return {item for item, split in zip(roster.item_ids, splits, strict=True) if split == reference.subset}

    def _subset(self, reference: Reference, lock: Lock) -> Table:
        name = reference.subset or ""
        return self.registry.read_table(lock.reference, name, lock.subsets[name]["digest"])

    def _our_ids(self, item_ids: Sequence[str], lock: Lock) -> list[str]:
        """Return the ids of another definition in our form: without its prefix, they are the raw ids of the data."""
        prefix = lock.id_rule.prefix
        if all(item.startswith(prefix) for item in item_ids):
            item_ids = [item.removeprefix(prefix) for item in item_ids]
        return self.canonicalizer.canonical_all(item_ids)[0]

    @as_submission_error()
    def id_list(self, data: bytes, name: str, holds: Holds | None = None) -> tuple[Holds, Covered]:
        """Return what a list of ids holds, as declared or by which of the two the roster knows more of, and covers.

        Raises:
            SubmissionError: if the file is no list, none of its ids is known, or it may be a list of either.
        """
        lines = [unicodedata.normalize("NFC", line) for line in read_lines(data, name=name)]
        if lines and (headed := self._header(lines[0])):
            holds, lines = holds or headed, lines[1:]
        found = {"items": self._known_items(lines), "groups": self._known_groups(lines)}
        n_known = {kind: sum(map(bool, ids)) for kind, ids in found.items()}
        kind: Holds = holds or ("items" if n_known["items"] > n_known["groups"] else "groups")
        if not n_known[kind] or (holds is None and n_known["items"] == n_known["groups"]):
            raise SubmissionError(self._list_issue(name, lines, n_known, holds))
        known = set(filter(None, found[kind]))
        notes = []
        if n_unknown := len(lines) - n_known[kind]:
            notes.append(
                f"{name}: {n_unknown:,} of {len(lines):,} {kind} are not in the roster of {self.lock.reference}"
            )
        if kind == "items":
            return kind, Covered(known, {self.group_of[item] for item in known}, notes)
        return kind, Covered({item for item, group in self.group_of.items() if group in known}, known, notes)

    def _header(self, line: str) -> Holds | None:
        """Return what the head of a column says that it holds, where the first line is one."""
        items = self.lock.definition["items"]
        heads: dict[Holds, set[str]] = {
            "items": {"item_id", items["item_id"]["column"]},
            "groups": {"group_id", items["group_id"].get("column", "group_id")},
        }
        return next((kind for kind, names in heads.items() if plain_name(line) in map(plain_name, names)), None)

    def _known_items(self, lines: Sequence[str]) -> list[str]:
        """Return the item of every line; an unknown one is empty."""
        return [item if item in self.group_of else "" for item in self.canonicalizer.canonical_all(lines)[0]]

    def _known_groups(self, lines: Iterable[str]) -> list[str]:
        """Return the group of every line, with or without leading zeros; an unknown one is empty."""
        groups = set(self.group_of.values())
        unpadded = {group.lstrip("0"): group for group in groups if group.isdecimal()}
        numbers = unpadded if len(unpadded) == sum(map(str.isdecimal, groups)) else {}
        return [line if line in groups else numbers.get(line.lstrip("0"), "") for line in lines]

    def _list_issue(self, name: str, lines: Sequence[str], n_known: Mapping[str, int], holds: Holds | None) -> Issue:
        roster = f"the roster of {self.lock.reference}"
        item, group = next(iter(self.group_of.items()))
        if holds is None and n_known["items"]:
            message = f"{n_known['items']:,} of its lines are items of {roster}, and as many are groups"
            return Issue("submission-field", name, message, "Say which: items:FILE or groups:FILE")
        kinds = holds or "items or groups"
        shown = listed([f"'{line[:60]}'" for line in lines], IDS_LISTED) or "nothing"
        message = f"none of its {len(lines):,} lines is among the {kinds} of {roster}; it has {shown}"
        hint = f"Write one id a line, like '{item}' for an item or '{group}' for its group"
        return Issue("submission-field", name, message, hint)


def _meant(reference: Reference, lock: Lock) -> Iterator[str]:
    """Say which is meant where a subset and a split of another size have one name."""
    name = reference.subset or ""
    split = lock.document["roster"].get("splits", {}).get(name)
    if name in lock.subsets and split not in (None, lock.subsets[name]["items"]):
        yield f"{reference} is the subset of {lock.subsets[name]['items']:,} items, not the split of {split:,}"


def training_issues(submission: Submission, lock: Lock, registry: Registry, tables: Mapping[str, Table]) -> list[Issue]:
    """Return what is wrong with the declared training data: names that do not exist, groups that are scored as well.

    A subset or split of this very definition must share no group with what is scored. Whatever else the training data
    cover is counted, not refused.
    """
    where = place_of_submission(lock, submission.system)
    declared = Declared.of(submission)
    issues = []
    if declared.says_nothing and len(submission.trained_on) > 1:
        is_alone = all(entry == NOTHING for entry in submission.trained_on)
        contradiction = (
            f"'{NOTHING}', which stands there more than once" if is_alone else f"'{NOTHING}' and on something else"
        )
        issues.append(Issue("submission-field", where, f"it was trained on {contradiction}"))
    entries = [*(("", one) for one in declared.parts), *((OUTSIDE, one) for one in declared.outside)]
    for prefix, reference in entries:
        if slip := _slip(reference, prefix, registry):
            issues.append(Issue("submission-field", where, *slip))
        elif not prefix and reference.definition == lock.reference:
            issues += _shared_groups(submission, Trained(lock, registry).part(reference).groups, lock, tables)
    return issues


def _slip(reference: Reference, prefix: str, registry: Registry) -> tuple[str, str] | None:
    """Return message and hint for a reference, as it stands after `prefix`, that names nothing frozen."""
    message = f"it was trained on {prefix}{reference}"
    frozen = registry.frozen()
    if reference.definition not in frozen:
        names = list(map(str, frozen))
        return f"{message}; frozen are {listed(names)}", did_you_mean(str(reference.definition), names)
    lock = registry.read_lock(reference)
    names = _names(lock)
    if reference.subset in names:
        return None
    near = (
        did_you_mean(reference.subset or "", names)
        or f"Write {prefix}{lock.reference}:{names[0]}, or one of the others"
    )
    return f"{message}; {names_text(lock)}", near


def _names(lock: Lock) -> list[str]:
    return list(dict.fromkeys((*lock.subsets, *(lock.definition.get("splits") or {}))))


def names_text(lock: Lock) -> str:
    """Say which subsets and splits training data may be named by, and which list file a split is, if it is one."""
    lists = {
        name: split["in_list"]["source"]
        for name, split in (lock.definition.get("splits") or {}).items()
        if "in_list" in split
    }
    files = ", ".join(f"{name} is {file}" for name, file in lists.items())
    return f"{lock.reference} has {listed(_names(lock))}{f' (by list: {files})' if files else ''}"


def _shared_groups(submission: Submission, seen: set[str], lock: Lock, tables: Mapping[str, Table]) -> Iterator[Issue]:
    for name in scored_subsets(submission, lock, tables):
        if shared := sorted(seen & set(tables[name].column("group_id"))):
            message = f"its training data {submission.training_text} shares {len(shared):,} groups with subset {name}"
            hint = "A score on patients that were trained on says nothing; train without them"
            where = place_of_submission(lock, submission.system)
            yield Issue("submission-field", where, f"{message}: {listed(shared, IDS_LISTED)}", hint)


def scored_subsets(submission: Submission, lock: Lock, names: Iterable[str]) -> list[str]:
    """Return the subsets that are scored: a probe is fitted on another one."""
    fitted = lock.definition["protocols"][submission.protocol].get("fit_on")
    return [name for name in names if name != fitted]
