"""Own the search for shards that a publisher did not name: which of them meet everything that the definition expects.

Counts that add up over shards narrow the combinations; what they leave is compiled, and every claim is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import comb
from typing import TYPE_CHECKING, Any, Final

from cxrspec.claims import Claim, count_claims
from cxrspec.compiler import Compilation, compile_files
from cxrspec.definition import Definition, HubSource
from cxrspec.digest import sha256_hex
from cxrspec.errors import DefinitionError, Issue
from cxrspec.source_files import SourceFiles
from cxrspec.sources import Store, place_of
from cxrspec.sources.shards import list_shards

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_COMPILED: Final = 50
"""Combinations that are compiled; where more are left, the expectations do not tell the shards apart."""
MOST_HALVES: Final = 5_000_000
"""Halves of combinations that are held in memory."""


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
    n_candidates: int
    """Combinations that meet those."""
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
        """Whether exactly one combination fits, and every candidate was compiled."""
        return len(self.found) == 1 and self.n_candidates <= MOST_COMPILED


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
    narrowed_by, counts, wanted = _additive(files, key)
    try:
        candidates = matching_combinations(counts, wanted, size)
    except ValueError as error:
        raise DefinitionError(Issue("source-unnamed", place_of(*key), str(error), "Name some of them")) from None
    chosen = [[paths[at] for at in one] for one in candidates[:MOST_COMPILED]]
    claims = [compile_files(_only(files, key, one)).claims for one in chosen]
    fitting = [at for at, found in enumerate(claims) if not any(claim.is_fatal for claim in found)]
    return Discovery(
        place=place_of(*key),
        n_shards=len(paths),
        n_bytes=sum(shard.size for shard in shards),
        n_read=sum(len(shard.text) for shard in shards),
        size=size,
        narrowed_by=narrowed_by,
        n_candidates=len(candidates),
        found=[chosen[at] for at in fitting],
        claims=claims[fitting[0] if fitting else 0] if claims else [],
    )


def matching_combinations(counts: NDArray[np.int64], wanted: NDArray[np.int64], size: int) -> list[tuple[int, ...]]:
    """Return the combinations of `size` rows of counts [n, f] whose sum is `wanted` [f], in lexicographic order.

    Both halves of every combination are listed and met in the middle, by a hash that adds up as the counts do (a sum
    of products modulo 2^64); what it lets through is summed exactly. At most one more than `MOST_COMPILED` come back.

    Raises:
        ValueError: if there are more halves than can be held in memory.
    """
    import numpy as np

    left, right = size // 2, size - size // 2
    if comb(len(counts), right) > MOST_HALVES:
        raise ValueError(f"{size} of {len(counts)} are too many combinations to search")
    factors = np.array([int(sha256_hex(b"%d" % at)[:16], 16) | 1 for at in range(counts.shape[1])], dtype=np.uint64)
    hashes, target = counts.astype(np.uint64) @ factors, wanted.astype(np.uint64) @ factors
    first, second = (_combinations(len(counts), half) for half in (left, right))
    sums = hashes[second].sum(axis=1, dtype=np.uint64)
    order = np.argsort(sums, kind="stable")
    rest = target - hashes[first].sum(axis=1, dtype=np.uint64)
    low, high = (np.searchsorted(sums[order], rest, side=side) for side in ("left", "right"))
    found: list[tuple[int, ...]] = []
    for at in np.flatnonzero(high > low).tolist():
        others = np.sort(order[low[at] : high[at]])
        if left:  # each combination once: its halves in ascending order
            others = others[second[others, 0] > first[at, -1]]
        for other in others.tolist():
            rows = (*first[at].tolist(), *second[other].tolist())
            if np.array_equal(counts[list(rows)].sum(axis=0), wanted):
                found.append(rows)
                if len(found) > MOST_COMPILED:
                    return found
    return found


def _combinations(n: int, size: int) -> NDArray[np.int64]:
    import numpy as np

    flat = np.fromiter(chain.from_iterable(combinations(range(n), size)), dtype=np.int64)
    return flat.reshape(comb(n, size), size)


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


def _additive(files: SourceFiles, key: tuple[str, str]) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Return the claims that add up over shards: their paths, what each shard counts [n_shards, n], what is claimed."""
    import numpy as np

    definition, shards = files.definition, _Shards(files, key)
    found = [list(shards.claims(rows)) for rows in shards.rows]
    kept = [at for at, claim in enumerate(found[0]) if _adds_up(definition, claim)]
    items = {item for one in (definition.expect or {}).values() for item in getattr(one, "cells", None) or ()}
    if not kept and not items:
        message = "no count that adds up over shards is expected (items, positives or covariates of a pool)"
        raise DefinitionError(Issue("expectation", "expect", message, "Write down what the publisher says"))
    names = [found[0][at].path for at in kept] + sorted(items)
    holds = [[int(item in shard_items) for item in sorted(items)] for shard_items in shards.item_ids]
    counts = [[*(int(one[at].found or 0) for at in kept), *held] for one, held in zip(found, holds, strict=True)]
    wanted = [found[0][at].expected.value for at in kept] + [1] * len(items)  # type: ignore[union-attr]
    return names, np.array(counts, dtype=np.int64), np.array(wanted, dtype=np.int64)


def _adds_up(definition: Definition, claim: Claim) -> bool:
    """Say whether what is claimed of a combination is the sum of what its shards count."""
    if isinstance(claim.expected, str) or claim.expected.value is None or claim.expected.within is not None:
        return False
    name, *count = claim.path.split(".")
    if count[-1] == "groups" or name == "roster":
        return count[-1] != "groups"
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

    def claims(self, rows: set[int]) -> Iterator[Claim]:
        """Yield every claim beside what is counted among some items."""
        counts = {name: self._counts(pool & rows) for name, pool in self.pools.items()}
        roster = self._counts(rows & self.at.keys()) | self.compilation.counts_of(sorted(rows))
        return count_claims(self.definition, {**{n: c | {"pool": c} for n, c in counts.items()}, "roster": roster})

    def _counts(self, rows: set[int]) -> dict[str, Any]:
        ordered = sorted(rows)
        cells = [[column[self.at[row]] for row in ordered] for column in self.columns]
        return self.compilation.counts_of(ordered) | self.definition.task.tally(cells)
