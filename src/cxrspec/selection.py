"""Own how items are chosen from a pool: by iterative stratification or by condition, without randomness; no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cxrspec.errors import listed
from cxrspec.spelling import plain_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def stratified_choice(
    labels: NDArray[np.bool_], size: int, minimum_positives: int = 0, *, names: Sequence[str] = ()
) -> NDArray[np.bool_]:
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
        names: what messages call the labels.

    Returns:
        [n_items] true for the chosen items.

    Raises:
        ValueError: if the pool has fewer items than `size`, or a label fewer positives than the minimum in the pool
            or, where too many labels compete for too few places, among the chosen items.
    """
    import numpy as np

    n_items = len(labels)
    remaining = labels.sum(axis=0, dtype=np.int64)
    if size > n_items:
        raise ValueError(f"the pool has {n_items:,} items; {size:,} are asked for")
    _refuse_short(remaining, minimum_positives, names, "in the pool")
    sides = _Sides.of(labels, size, minimum_positives)
    free = np.ones(n_items, dtype=np.bool_)
    while remaining.any():
        rarest = int(np.argmin(np.where(remaining > 0, remaining, n_items + 1)))
        rows = np.flatnonzero(free & labels[:, rarest])
        sides.deal(rows, rarest)
        free[rows] = False
        remaining -= labels[rows].sum(axis=0)
    for rows in (np.flatnonzero(free), np.flatnonzero(~free & ~sides.chosen)):
        sides.chosen[rows[: size - int(sides.chosen.sum())]] = True
    _refuse_short(labels[sides.chosen].sum(axis=0), minimum_positives, names, f"among the {size:,} that are chosen")
    return sides.chosen


def per_condition_choice(
    labels: NDArray[np.bool_], wanted: Mapping[str, int], *, names: Sequence[str]
) -> NDArray[np.int64]:
    """Choose, per condition, the first of its positive items that no condition before it has chosen.

    Conditions choose in the order of the columns. Among the chosen items alone, the choice is the same again.

    Args:
        labels: [n_items, n_labels] in rank order, see `digest.seed_hash_order`.
        wanted: condition: how many items; case, blanks, `_` and `-` of a name never matter.
        names: the names of the columns.

    Returns:
        [n_items] the column that an item was chosen for, -1 where it was not.

    Raises:
        ValueError: if too few positive items are left for a condition.
    """
    import numpy as np

    sizes = {plain_name(name): size for name, size in wanted.items()}
    chosen_for = np.full(len(labels), -1, dtype=np.int64)
    short = []
    for column, name in enumerate(names):
        size = sizes.get(plain_name(name), 0)
        rows = np.flatnonzero(labels[:, column] & (chosen_for < 0))[:size]
        chosen_for[rows] = column
        if len(rows) < size:
            short.append(f"{name} {len(rows):,} of {size:,}")
    if short:
        raise ValueError(f"too few positive items that no other condition has chosen: {listed(short)}")
    return chosen_for


def _refuse_short(positives: NDArray[np.int64], minimum: int, names: Sequence[str], where: str) -> None:
    short = {names[i] if names else f"label {i}": int(n) for i, n in enumerate(positives) if n < minimum}
    if short:
        found = listed([f"{name} {n:,}" for name, n in short.items()])
        raise ValueError(f"{minimum:,} positives are asked for; {where} there are fewer: {found}")


@dataclass
class _Sides:
    """What the two sides (0 chosen, 1 rest) still desire, all scaled by the number of items in the pool."""

    labels: NDArray[np.bool_]
    desired: NDArray[np.int64]
    """[2, n_labels]"""
    places: list[int]
    chosen: NDArray[np.bool_]

    @classmethod
    def of(cls, labels: NDArray[np.bool_], size: int, minimum_positives: int) -> _Sides:
        import numpy as np

        n_items = len(labels)
        positives = labels.sum(axis=0, dtype=np.int64)
        wanted = np.maximum(size * positives, minimum_positives * n_items)
        desired = np.stack([wanted, n_items * positives - wanted])
        places = [size * n_items, (n_items - size) * n_items]
        return cls(labels, desired, places, np.zeros(n_items, dtype=np.bool_))

    def deal(self, rows: NDArray[np.int64], label: int) -> None:
        """Give every row to a side: the rest takes its surplus in one slice, only then is each row weighed.

        Which side a row goes to depends on the desires for this one label and on the places, so plain numbers are
        enough while its rows are dealt; the desires for the other labels are counted once at the end.
        """
        n_items = len(self.labels)
        here, there = (int(side[label]) for side in self.desired)
        places_here, places_there = self.places
        n_slice = min(len(rows), max(0, -(-(there - here) // n_items)))
        there, places_there = there - n_slice * n_items, places_there - n_slice * n_items
        taken = []
        for position in range(n_slice, len(rows)):
            if places_here <= 0:
                break
            if (here, places_here) > (there, places_there):
                taken.append(position)
                here, places_here = here - n_items, places_here - n_items
            else:
                there, places_there = there - n_items, places_there - n_items
        chosen = rows[taken]
        self.chosen[chosen] = True
        given = self.labels[chosen].sum(axis=0)
        self.desired[0] -= n_items * given
        self.desired[1] -= n_items * (self.labels[rows].sum(axis=0) - given)
        self.places[0] -= n_items * len(chosen)
        self.places[1] -= n_items * (len(rows) - len(chosen))
