"""Own the compilation of a definition: splits, pools, disjointness, selection, frozen tables, claims against counts.

Reads sources through `items`; writes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cxrspec.claims import Claim, cell_claims, cells_of, count_claims
from cxrspec.definition import Conditions, Definition, HubSource, ItemList, Pool, Subset, Where
from cxrspec.digest import Table, seed_hash_order
from cxrspec.errors import IDS_LISTED, DefinitionError, Issue, listed
from cxrspec.items import JoinedItems
from cxrspec.selection import per_condition_choice, stratified_choice
from cxrspec.source_files import SourceFiles
from cxrspec.sources import OpenedFile, Store, place_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COUNTED_VALUES: Final = 20
"""Covariates with at most this many distinct values are counted by value (view, sex; not age)."""


@dataclass(frozen=True)
class CompiledSubset:
    """The tables of one subset and what was counted in it and in its pool."""

    table: Table
    covariates: Table | None
    counts: dict[str, Any]


@dataclass(frozen=True)
class Compiled:
    """A definition compiled: everything that freezing writes."""

    definition: Definition
    roster: Table
    roster_counts: dict[str, Any]
    subsets: dict[str, CompiledSubset]
    files: Mapping[tuple[str, str], OpenedFile]
    claims: list[Claim]
    notes: list[Issue]
    """What was left aside of the files that the task needs whole."""


def compile_definition(definition: Definition, store: Store) -> Compiled:
    """Open the sources and build every table of the definition; the row order of the sources changes nothing.

    Raises:
        DefinitionError: for data that contradicts the definition (not for unmet claims: see `Compiled.claims`).
        SourceError: for a source that cannot be opened or is not the pinned one.
    """
    refuse_unnamed(definition)
    return compile_files(SourceFiles(definition, store))


def compile_files(files: SourceFiles) -> Compiled:
    """Compile from the files of a definition's sources, some of which may be open already; raises as the above."""
    files.open_all()
    files.refuse_same()
    compilation = Compilation(files)
    subsets = compilation.subsets()
    roster, roster_counts = compilation.roster()
    counts = {**{name: subset.counts for name, subset in subsets.items()}, "roster": roster_counts}
    cells = {name: cells_of(subset.table, subset.covariates) for name, subset in subsets.items()}
    claims = list(count_claims(files.definition, counts)) + list(cell_claims(files.definition, cells))
    others = files.definition.task.distinct_sources().values()
    notes = [note for source in others if source for note in compilation.items.row_notes(source)]
    return Compiled(files.definition, roster, roster_counts, subsets, files.opened, claims, notes)


def refuse_unnamed(definition: Definition) -> None:
    """Refuse a definition whose publisher does not say which shards it means; raises DefinitionError with each."""
    hint = f"Run 'cxrspec discover {definition.reference}' to find them, and pin them in the next definition version"
    if issues := [Issue("source-unnamed", where, said, hint) for where, said in unnamed_shards(definition)]:
        raise DefinitionError(issues)


def unnamed_shards(definition: Definition) -> list[tuple[str, str]]:
    """Return place and description of every table whose shards the definition does not name."""
    return [
        (place_of(name, file), f"the publisher does not name the {one.count} shards of '{one.match}'")
        for name, source in definition.sources.items()
        if isinstance(source, HubSource)
        for file, one in source.files.items()
        if one.match is not None
    ]


class Compilation:
    """Holds the items of one compilation while its subsets are chosen."""

    def __init__(self, files: SourceFiles) -> None:
        """Read the items, the covariates and the splits."""
        self.definition = files.definition
        self.items = items = JoinedItems(files)
        self.covariates = {
            name: [cell.strip() for cell in items.cells(column)]
            for name, column in sorted((self.definition.items.covariates or {}).items())
        }
        self.ignored_ids: dict[str, int] = {}
        self.splits = self._splits()
        self.split_of = self._split_of()
        self.chosen: dict[str, list[int]] = {}

    def roster(self) -> tuple[Table, dict[str, Any]]:
        """Return the table of all items with their split, and its counts."""
        items = self.items
        table = Table.sorted(("item_id", "group_id", "split"), (items.item_ids, items.group_ids, self.split_of))
        every = range(len(items.item_ids))
        counts = self.counts_of(every)
        counts["splits"] = {name: len(rows) for name, rows in self.splits.items()}
        if self.ignored_ids:
            counts["ignored_list_ids"] = dict(sorted(self.ignored_ids.items()))
        expected = (self.definition.expect or {}).get("roster")
        if expected and expected.tallies:  # the labels of all items are decoded only where they are claimed
            counts |= self._tally(every, self.definition.task.reference_columns(items.only(every)))
        return table, counts

    def subsets(self) -> dict[str, CompiledSubset]:
        """Return the subsets by name; raises DefinitionError with the issues of all of them."""
        issues: list[Issue] = []
        compiled: dict[str, CompiledSubset] = {}
        for name in _in_order(self.definition.subsets):
            try:
                compiled[name] = self._subset(name, self.definition.subsets[name])
            except DefinitionError as error:
                issues += error.issues
        issues += self._leaks()
        if issues:
            raise DefinitionError(dict.fromkeys(issues))  # two subsets may meet one fault of one list
        return dict(sorted(compiled.items()))

    def _leaks(self) -> Iterator[Issue]:
        """Yield each pair of subsets in which a probe would be fitted on groups that it is scored on."""
        for fitted, scored in sorted(self.definition.task.kept_apart()):
            groups = [{self.items.group_ids[row] for row in self.chosen.get(name, ())} for name in (fitted, scored)]
            if shared := sorted(groups[0] & groups[1]):
                message = f"{len(shared):,} groups are in {scored} too, on which the probe is scored"
                hint = f"Write disjoint_from: {scored} and disjoint_by: group_id"
                yield Issue("subset-leak", f"subset {fitted}", message, hint)

    def _subset(self, name: str, subset: Subset) -> CompiledSubset:
        task = self.definition.task
        pool, removed = self._pool(name, subset)
        columns = task.reference_columns(self.items.only(pool))
        positions = self._select(name, subset, pool, columns)
        chosen = [pool[i] for i in positions]
        self.chosen[name] = chosen
        kept = [[column[i] for i in positions] for column in columns]
        covariates = self._covariate_table(chosen)
        issues = task.check_subset(name, kept) + (task.check_covariates(name, covariates) if covariates else [])
        issues += self.items.reading_issues(name, [self.items.item_ids[row] for row in chosen])
        if not chosen:
            issues.append(Issue("subset-empty", f"subset {name}", "the selection leaves no item"))
        if issues:
            raise DefinitionError(issues)
        counts = self.counts_of(chosen) | self._tally(chosen, kept)
        counts["pool"] = self.counts_of(pool) | self._tally(pool, columns)
        if subset.disjoint_from:
            counts["removed_as_disjoint"] = removed
        ids, groups = ([names[i] for i in chosen] for names in (self.items.item_ids, self.items.group_ids))
        table = Table.sorted(("item_id", "group_id", *task.column_names), (ids, groups, *kept))
        return CompiledSubset(table, covariates, counts)

    def _pool(self, name: str, subset: Subset) -> tuple[list[int], int]:
        """Return the rows that the subset chooses from, and how many more its disjointness took away."""
        pool = sorted(self.meeting(subset.pool))
        if not pool:
            raise DefinitionError(Issue("subset-empty", f"subset {name}", "no item meets the conditions of its pool"))
        if subset.disjoint_from is None:
            return pool, 0
        names = self.items.group_ids if subset.disjoint_by == "group_id" else self.items.item_ids
        taken = {names[row] for row in self.chosen.get(subset.disjoint_from, ())}
        kept = [row for row in pool if names[row] not in taken]
        if not kept:
            shared = f"each of the {len(pool):,} items of its pool shares its {subset.disjoint_by} with one of"
            raise DefinitionError(Issue("subset-empty", f"subset {name}", f"{shared} '{subset.disjoint_from}'"))
        return kept, len(pool) - len(kept)

    def _select(self, name: str, subset: Subset, pool: Sequence[int], columns: Sequence[Sequence[str]]) -> list[int]:
        """Return positions in the pool, in pool order."""
        select, stratified, task = subset.select, subset.select.stratified, self.definition.task
        if select.all:
            return list(range(len(pool)))
        if stratified is None and select.per_condition is None:
            wanted = self.meeting(select)
            return [i for i, row in enumerate(pool) if row in wanted]
        order = seed_hash_order(self.definition.seed, [self.items.item_ids[row] for row in pool])
        strata: NDArray[np.bool_] = task.strata(columns)[order]
        try:
            if stratified:
                minimum = stratified.minimum_positives or 0
                chosen = stratified_choice(strata, stratified.size, minimum, names=task.strata_names)
            else:
                chosen = per_condition_choice(strata, select.per_condition or {}, names=task.strata_names) >= 0
        except ValueError as error:
            issue = Issue("selection-impossible", f"subset {name}", str(error), "Ask for less, or widen the pool")
            raise DefinitionError(issue) from None
        return sorted(position for position, taken in zip(order, chosen, strict=True) if taken)

    def meeting(self, conditions: Conditions) -> set[int]:
        """Return the rows of the items that meet every condition."""
        rows = set(range(len(self.items.item_ids)))
        if isinstance(conditions, Pool) and conditions.split is not None:
            rows &= self.splits[conditions.split]
        if conditions.in_list is not None:
            rows &= self._listed(conditions.in_list)
        for where in conditions.where or ():
            rows &= self._where(where)
        return rows

    def _listed(self, items: ItemList) -> set[int]:
        known, others = self.items.listed(items)
        if others and items.unknown_ids is None:
            message = f"{len(others):,} of {len(known) + len(others):,} listed ids are no items: "
            message += listed([f"'{item}'" for item in others], IDS_LISTED)
            hint = "Pin the list of this release, or write 'unknown_ids: ignored' beside its source"
            raise DefinitionError(Issue("item-missing", items.source, message, hint))
        if others:
            self.ignored_ids[items.source] = len(others)
        return {row for row, name in enumerate(self.items.shared_ids) if name in known}

    def _where(self, where: Where) -> set[int]:
        allowed = {text.strip() for text in where.one_of}
        cells = self.items.cells(where.column)
        return {row for row, cell in enumerate(cells) if cell.strip() in allowed}

    def _splits(self) -> dict[str, set[int]]:
        splits: dict[str, set[int]] = {}
        issues: list[Issue] = []
        for name, conditions in sorted((self.definition.splits or {}).items()):
            try:
                splits[name] = self.meeting(conditions)
            except DefinitionError as error:
                issues += error.issues
        if issues:
            raise DefinitionError(dict.fromkeys(issues))
        return splits

    def _split_of(self) -> list[str]:
        split_of = [""] * len(self.items.item_ids)
        issues = []
        for name, rows in self.splits.items():
            if both := sorted(row for row in rows if split_of[row]):
                shown = listed([self.items.item_ids[row] for row in both], IDS_LISTED)
                message = f"{len(both):,} of {len(rows):,} items are in split '{split_of[both[0]]}' too: {shown}"
                issues.append(Issue("split-overlap", f"splits.{name}", message, "An item belongs to one split at most"))
            for row in rows:
                split_of[row] = name
        if issues:
            raise DefinitionError(issues)
        return split_of

    def counts_of(self, rows: Sequence[int]) -> dict[str, Any]:
        """Count items, groups and the values of covariates among the items of some positions."""
        counts: dict[str, Any] = {"items": len(rows), "groups": len({self.items.group_ids[row] for row in rows})}
        if self.items.n_images:
            counts["images"] = sum(self.items.n_images[row] for row in rows)
        values = {name: Counter(cells[row] for row in rows) for name, cells in self.covariates.items()}
        kept = {name: dict(sorted(found.items())) for name, found in values.items() if len(found) <= COUNTED_VALUES}
        return counts | ({"covariates": kept} if kept else {})

    def _tally(self, rows: Sequence[int], columns: Sequence[Sequence[str]]) -> dict[str, Any]:
        task = self.definition.task
        return task.tally(columns) | task.tally_groups(columns, [self.items.group_ids[row] for row in rows])

    def _covariate_table(self, rows: Sequence[int]) -> Table | None:
        if not self.covariates:
            return None
        ids = [self.items.item_ids[row] for row in rows]
        columns = [[cells[row] for row in rows] for cells in self.covariates.values()]
        return Table.sorted(("item_id", *self.covariates), (ids, *columns))


def _in_order(subsets: Mapping[str, Subset]) -> list[str]:
    """Return the names so that a subset follows the one that it is disjoint from; circles are refused before."""
    ordered: list[str] = []
    for name in sorted(subsets):
        chain = [name]
        while (other := subsets[chain[-1]].disjoint_from) is not None:
            chain.append(other)
        ordered += [one for one in reversed(chain) if one not in ordered]
    return ordered
