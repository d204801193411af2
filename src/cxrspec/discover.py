"""Own the search for shards that a publisher did not name: which of them meet everything that the definition expects.

Counts that add up over shards narrow the combinations; what they leave is compiled, and every claim is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Any, Final

from cxrspec.claims import Claim, count_claims
from cxrspec.combinations import matching_combinations
from cxrspec.compiler import Compilation, compile_files
from cxrspec.definition import Definition, HubSource
from cxrspec.errors import DefinitionError, Issue
from cxrspec.expectations import Expected
from cxrspec.source_files import SourceFiles
from cxrspec.sources import Store, place_of
from cxrspec.sources.shards import list_shards

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_COUNTED: Final = 10_000
"""Combinations whose patients are counted; where more meet the sums, the expectations do not tell the shards apart."""
MOST_COMPILED: Final = 50
"""Combinations that are compiled, of those that meet every count but the ones of a selection."""


@dataclass(frozen=True)
class Discovery:
    """What the search found."""

    place: str
    """The field of the definition to pin: `sources.nih.files.shards`."""
    n_shards: int
    n_bytes: int
    """Of the whole shards."""
    n_read: int
    """Bytes of the columns that were read of them, as text."""
    size: int
    """Shards of one combination."""
    narrowed_by: list[str]
    """The claims that add up over shards."""
    unmet: list[str]
    """Those that no combination meets, each taken alone."""
    n_summed: int
    """Combinations that meet all of them; one more than `MOST_COUNTED` where there are more."""
    n_candidates: int
    """Of these, the combinations that also have the claimed numbers of groups."""
    n_compiled: int
    n_shared_items: int
    """Items that stand in several shards: a combination that holds one twice is missed."""
    found: list[list[str]]
    """Combinations that meet every claim, as paths."""
    claims: list[Claim]
    """Every claim beside what the first combination found gives; of the first candidate where none was found."""

    @property
    def n_combinations(self) -> int:
        """How many combinations there are."""
        return comb(self.n_shards, self.size)

    @property
    def is_unique(self) -> bool:
        """Whether exactly one combination fits, and none was left untried."""
        return len(self.found) == 1 and self.is_complete

    @property
    def is_complete(self) -> bool:
        """Whether every combination that meets the sums was tried."""
        return self.n_summed <= MOST_COUNTED and self.n_compiled == self.n_candidates


def discover(definition: Definition, store: Store) -> Discovery:
    """Read the columns of all shards that match, and find the combinations that meet every expectation.

    Raises:
        DefinitionError: if the definition names its shards, or expects nothing that tells them apart.
        SourceError: if the hub cannot be read.
    """
    key = _unnamed(definition)
    source = definition.sources[key[0]]
    assert isinstance(source, HubSource)
    pattern, size = source.files[key[1]].match or "", source.files[key[1]].count or 0
    paths = list_shards(source, pattern, store, place_of(*key))
    if len(paths) < size:
        message = f"{len(paths)} files fit '{pattern}', and {size} shards are looked for"
        raise DefinitionError(Issue("source-file-missing", place_of(*key), message, "Mend match or count"))
    files = SourceFiles(_with_shards(definition, key, paths), store)
    files.open_all()
    shards = sorted(files.shards[key], key=lambda shard: shard.path)
    known = _Shards(files, key)
    narrowed_by, counts, wanted = _additive(known)
    try:
        summed = matching_combinations(counts, wanted, size, limit=MOST_COUNTED + 1)
    except ValueError as error:
        raise DefinitionError(Issue("source-unnamed", place_of(*key), str(error), "Name some of them")) from None
    candidates = [one for one in summed if known.has_groups(one)]
    chosen = [[paths[at] for at in one] for one in candidates[:MOST_COMPILED] or summed[:1]]
    claims = [compile_files(_only(files, key, one)).claims for one in chosen]
    fitting = [at for at, found in enumerate(claims) if not any(claim.is_fatal for claim in found)]
    return Discovery(
        place=place_of(*key),
        n_shards=len(paths),
        n_bytes=sum(shard.size for shard in shards),
        n_read=sum(len(shard.text) for shard in shards),
        size=size,
        narrowed_by=narrowed_by,
        unmet=[] if summed else _unmet(narrowed_by, counts, wanted, size),
        n_summed=len(summed),
        n_candidates=len(candidates),
        n_compiled=min(len(candidates), MOST_COMPILED),
        n_shared_items=known.n_shared_items,
        found=[chosen[at] for at in fitting],
        claims=claims[fitting[0] if fitting else 0] if claims else [],
    )


def _unmet(names: Sequence[str], counts: NDArray[np.int64], wanted: NDArray[np.int64], size: int) -> list[str]:
    """Return the claims that no combination meets even alone."""
    alone = [(name, counts[:, at : at + 1], wanted[at : at + 1]) for at, name in enumerate(names)]
    return [name for name, column, claim in alone if not matching_combinations(column, claim, size, limit=1)]


def _unnamed(definition: Definition) -> tuple[str, str]:
    """Return source and file of the one table whose shards are not named; it must be that of the items."""
    unnamed = [
        (name, file)
        for name, source in definition.sources.items()
        for file, one in (source.files.items() if isinstance(source, HubSource) else ())
        if one.match is not None
    ]
    where = str(definition.reference)
    if not unnamed:
        raise DefinitionError(Issue("source-unnamed", where, "it names all its files; there is nothing to discover"))
    if len(unnamed) > 1 or definition.items.source not in (unnamed[0][0], "/".join(unnamed[0])):
        message = "one table of unnamed shards can be searched, and it must be the source of the items"
        raise DefinitionError(Issue("source-unnamed", where, message, "Name the shards of the others"))
    return unnamed[0]


def _with_shards(definition: Definition, key: tuple[str, str], paths: Sequence[str]) -> Definition:
    """Return the definition with shards named."""
    source = definition.sources[key[0]]
    assert isinstance(source, HubSource)
    named = source.files[key[1]].model_copy(update={"shards": list(paths), "match": None, "count": None})
    pinned = source.model_copy(update={"files": {**source.files, key[1]: named}})
    return definition.model_copy(update={"sources": {**definition.sources, key[0]: pinned}})


def _only(files: SourceFiles, key: tuple[str, str], paths: Sequence[str]) -> SourceFiles:
    """Return the files with some of the shards; all that was read is kept."""
    return SourceFiles(
        _with_shards(files.definition, key, paths),
        files.store,
        {other: opened for other, opened in files.opened.items() if other != key},
        {key: [shard for shard in files.shards[key] if shard.path in paths]},
        {name: table for name, table in files.tables.items() if files.key(name) != key},
    )


def _additive(shards: _Shards) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Return the claims that add up over shards: their paths, what each shard counts [n_shards, n], what is claimed."""
    import numpy as np

    definition = shards.definition
    found = [list(shards.claims(rows)) for rows in shards.rows]
    kept = [at for at, claim in enumerate(found[0]) if _adds_up(definition, claim)]
    items = sorted({item for one in (definition.expect or {}).values() for item in getattr(one, "cells", None) or ()})
    if not kept and not items:
        message = "no count that adds up over shards is expected (items, positives or covariates of a pool)"
        raise DefinitionError(Issue("expectation", "expect", message, "Write down what the publisher says"))
    names = [found[0][at].path for at in kept] + [f"the item {item}" for item in items]
    holds = [[int(item in shard_items) for item in items] for shard_items in shards.item_ids]
    counts = [[*(int(one[at].found or 0) for at in kept), *held] for one, held in zip(found, holds, strict=True)]
    wanted = [found[0][at].expected.value for at in kept] + [1] * len(items)  # type: ignore[union-attr]
    return names, np.array(counts, dtype=np.int64), np.array(wanted, dtype=np.int64)


def _adds_up(definition: Definition, claim: Claim) -> bool:
    """Say whether what is claimed of a combination is the sum of what its shards count."""
    if isinstance(claim.expected, str) or claim.expected.value is None or claim.expected.within is not None:
        return False
    name, *count = claim.path.split(".")
    return count[-1] != "groups" and _is_whole(definition, name, count)


def _is_whole(definition: Definition, name: str, count: Sequence[str]) -> bool:
    """Say whether a count is of all items that meet conditions: of the roster, a pool, or a subset that takes all."""
    if name == "roster":
        return True
    subset = definition.subsets[name]
    return subset.disjoint_from is None and (bool(subset.select.all) or count[0] == "pool")


class _Shards:
    """The items of every shard, and what is counted among them."""

    def __init__(self, files: SourceFiles, key: tuple[str, str]) -> None:
        self.compilation = compilation = Compilation(files)
        items = compilation.items
        self.definition = files.definition
        position = {item: row for row, item in enumerate(items.item_ids)}
        column = self.definition.items.item_id.column
        shards = sorted(files.shards[key], key=lambda shard: shard.path)
        read = [items.canonicalizer.canonical_all(shard.table.column(column))[0] for shard in shards]
        self.item_ids = [set(ids) for ids in read]
        self.rows = [{position[item] for item in ids} for ids in self.item_ids]
        self.pools = {name: compilation.meeting(subset.pool) for name, subset in self.definition.subsets.items()}
        claimed = (self.definition.expect or {}).get("roster")
        used = set(position.values()) if claimed and claimed.tallies else set().union(*self.pools.values())
        ordered = sorted(used)
        self.columns = self.definition.task.reference_columns(items.only(ordered))
        self.at = {row: at for at, row in enumerate(ordered)}

    @property
    def n_shared_items(self) -> int:
        """How many items stand in several shards."""
        return sum(map(len, self.item_ids)) - len(set().union(*self.item_ids))

    @cached_property
    def _groups(self) -> list[tuple[Claim, list[set[str]]]]:
        """Per claim of a number of groups that the items of a pool decide: the claim, and the groups of each shard."""
        groups, found = self.compilation.items.group_ids, []
        for claim in self.claims(set()):
            name, *count = claim.path.split(".")
            exact = isinstance(claim.expected, Expected) and claim.expected.within is None
            if count[-1] != "groups" or not exact or not _is_whole(self.definition, name, count):
                continue
            pool = self.pools.get(name)
            held = [{groups[row] for row in (rows if pool is None else rows & pool)} for rows in self.rows]
            found.append((claim, held))
        return found

    def has_groups(self, chosen: Sequence[int]) -> bool:
        """Return whether a combination has the claimed numbers of groups."""
        found = ((claim, len(set().union(*(held[at] for at in chosen)))) for claim, held in self._groups)
        return all(replace(claim, found=number).holds for claim, number in found)

    def claims(self, rows: set[int]) -> Iterator[Claim]:
        """Yield every claim beside what is counted among some items."""
        counts = {name: self._counts(pool & rows) for name, pool in self.pools.items()}
        roster = self._counts(rows & self.at.keys()) | self.compilation.counts_of(sorted(rows))
        return count_claims(self.definition, {**{n: c | {"pool": c} for n, c in counts.items()}, "roster": roster})

    def _counts(self, rows: set[int]) -> dict[str, Any]:
        ordered = sorted(rows)
        cells = [[column[self.at[row]] for row in ordered] for column in self.columns]
        return self.compilation.counts_of(ordered) | self.definition.task.tally(cells)
