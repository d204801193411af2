"""Own how items are chosen from a pool: iterative stratification, without a random generator; no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def stratified_choice(labels: NDArray[np.bool_], size: int, minimum_positives: int = 0) -> NDArray[np.bool_]:
    """Choose `size` items so that each label keeps its share, by iterative stratification without randomness.

    Sechidis, Tsoumakas and Vlahavas, "On the stratification of multi-label data", ECML PKDD 2011, with two sides
    (chosen, rest). The rarest remaining label is served first (ties: the lower column); its items, in the given
    order, go to the side that desires the label more, then to the side with more places left, then to the rest. A
    label whose share is below `minimum_positives` is enriched to it. Items without any label fill the places that
    remain, in the given order. Desires are integers scaled by the pool's size, so no rounding decides a tie.

    Args:
        labels: [n_items, n_labels] in rank order, see `digest.seed_hash_order`.
        size: number of items to choose.
        minimum_positives: smallest number of chosen positives of each label.

    Returns:
        [n_items] true for the chosen items.

    Raises:
        ValueError: if the pool has fewer items than `size`, or a label fewer positives than the minimum.
    """
    import numpy as np

    n_items = len(labels)
    positives = labels.sum(axis=0, dtype=np.int64)
    if size > n_items:
        raise ValueError(f"the pool has {n_items:,} items; {size:,} are asked for")
    if short := [int(i) for i in np.flatnonzero(positives < minimum_positives)]:
        raise ValueError(f"label columns {short} have fewer than {minimum_positives} positives in the pool")
    sides = _Sides.of(labels, size, minimum_positives)
    free = np.ones(n_items, dtype=np.bool_)
    while True:
        remaining = labels[free].sum(axis=0)
        if not remaining.any():
            break
        rarest = int(np.argmin(np.where(remaining > 0, remaining, n_items + 1)))
        rows = np.flatnonzero(free & labels[:, rarest])
        sides.deal(rows, rarest)
        free[rows] = False
    for rows in (np.flatnonzero(free), np.flatnonzero(~free & ~sides.chosen)):
        sides.chosen[rows[: size - int(sides.chosen.sum())]] = True
    return sides.chosen


@dataclass
class _Sides:
    """What the two sides (0 chosen, 1 rest) still desire, all scaled by the number of items in the pool."""

    labels: NDArray[np.bool_]
    desired: NDArray[np.int64]
    places: NDArray[np.int64]
    chosen: NDArray[np.bool_]

    @classmethod
    def of(cls, labels: NDArray[np.bool_], size: int, minimum_positives: int) -> _Sides:
        import numpy as np

        n_items = len(labels)
        positives = labels.sum(axis=0, dtype=np.int64)
        wanted = np.maximum(size * positives, minimum_positives * n_items)
        desired = np.stack([wanted, n_items * positives - wanted])
        places = np.array([size * n_items, (n_items - size) * n_items], dtype=np.int64)
        return cls(labels, desired, places, np.zeros(n_items, dtype=np.bool_))

    def deal(self, rows: NDArray[np.int64], label: int) -> None:
        """Give every row to a side; the rest takes its surplus in one slice, only then is each row weighed."""
        n_items = len(self.labels)
        surplus = int(self.desired[1, label] - self.desired[0, label])
        slice_end = len(rows) if self.places[0] <= 0 else min(len(rows), max(0, -(-surplus // n_items)))
        self._give(rows[:slice_end], 1)
        for row in rows[slice_end:]:
            here = (self.desired[0, label], self.places[0])
            there = (self.desired[1, label], self.places[1])
            side = 0 if self.places[0] > 0 and here > there else 1
            self._give(row[None], side)

    def _give(self, rows: NDArray[np.int64], side: int) -> None:
        n_items = len(self.labels)
        self.desired[side] -= n_items * self.labels[rows].sum(axis=0)
        self.places[side] -= n_items * len(rows)
        if side == 0:
            self.chosen[rows] = True
