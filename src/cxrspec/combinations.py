"""Own the search for combinations of rows whose counts add up to what is wanted; pure arrays, no I/O."""

from __future__ import annotations

from itertools import chain, combinations
from math import comb
from typing import TYPE_CHECKING, Final

from cxrspec.digest import sha256_hex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_HALVES: Final = 5_000_000
"""Halves of combinations that are held in memory."""


def matching_combinations(
    counts: NDArray[np.int64], wanted: NDArray[np.int64], size: int, *, limit: int
) -> list[tuple[int, ...]]:
    """Return the combinations of `size` rows of counts [n, f] whose sum is `wanted` [f], in lexicographic order.

    Both halves of every combination are listed and met in the middle, by a hash that adds up as the counts do (a sum
    of products modulo 2^64); what it lets through is summed exactly. At most `limit` come back.

    Raises:
        ValueError: if there are more halves than can be held in memory.
    """
    import numpy as np

    if size > len(counts) - size > 0:  # what is left out is the smaller search
        rest = matching_combinations(counts, counts.sum(axis=0) - wanted, len(counts) - size, limit=limit)
        return sorted(tuple(at for at in range(len(counts)) if at not in one) for one in rest)
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
                if len(found) == limit:
                    return found
    return found


def _combinations(n: int, size: int) -> NDArray[np.int64]:
    import numpy as np

    flat = np.fromiter(chain.from_iterable(combinations(range(n), size)), dtype=np.int64)
    return flat.reshape(comb(n, size), size)
