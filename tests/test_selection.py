"""Iterative stratification against an item-by-item reference, and the shares that it keeps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cxrspec.selection import stratified_choice

Labels = NDArray[np.bool_]
NIH_SHARES = [0.103, 0.025, 0.119, 0.177, 0.052, 0.056, 0.013, 0.047, 0.042, 0.021, 0.022, 0.015, 0.03, 0.002]


def one_by_one(labels: Labels, size: int, minimum: int) -> list[bool]:
    """Choose as the design says, one item at a time, with plain whole numbers scaled by the pool's size."""
    rows = [[bool(cell) for cell in row] for row in labels]
    n, n_labels = len(rows), labels.shape[1]
    counts = [sum(row[k] for row in rows) for k in range(n_labels)]
    wanted = [max(size * count, minimum * n) for count in counts]
    desired = [wanted, [n * count - want for count, want in zip(counts, wanted, strict=True)]]
    places, side = [size * n, (n - size) * n], [-1] * n
    while any(any(rows[i]) for i in range(n) if side[i] < 0):
        left = [sum(rows[i][k] for i in range(n) if side[i] < 0) for k in range(n_labels)]
        label = min((count, k) for k, count in enumerate(left) if count)[1]
        for item in [i for i in range(n) if side[i] < 0 and rows[i][label]]:
            here, there = ((desired[s][label], places[s]) for s in (0, 1))
            side[item] = 0 if places[0] > 0 and here > there else 1
            places[side[item]] -= n
            for k in range(n_labels):
                desired[side[item]][k] -= n * rows[item][k]
    unlabelled, others = [i for i in range(n) if side[i] < 0], [i for i in range(n) if side[i] == 1]
    chosen = [i for i in range(n) if side[i] == 0]
    chosen += (unlabelled + others)[: size - len(chosen)]
    return [i in set(chosen) for i in range(n)]


@st.composite
def pools(draw: st.DrawFn) -> tuple[Labels, int, int]:
    """A pool of up to 40 items with up to five labels of any share, a size and a minimum."""
    n, n_labels = draw(st.integers(1, 40)), draw(st.integers(1, 5))
    shares = draw(st.lists(st.integers(0, 10), min_size=n_labels, max_size=n_labels))
    cells = draw(st.lists(st.integers(0, 9), min_size=n * n_labels, max_size=n * n_labels))
    labels = np.array(cells).reshape(n, n_labels) < np.array(shares)
    return labels, draw(st.integers(0, n)), draw(st.integers(0, 4))


def nih_like(n: int, seed: int = 0) -> Labels:
    """Draw fourteen labels with the shares of NIH's train_val list."""
    return np.random.default_rng(seed).random((n, len(NIH_SHARES))) < NIH_SHARES


@settings(derandomize=True, deadline=None, max_examples=400)
@given(pools())
def test_slices_choose_what_single_steps_choose(pool: tuple[Labels, int, int]) -> None:
    """The batched form is the item-by-item algorithm, exactly, or the minimum cannot be met."""
    labels, size, minimum = pool
    expected = np.array(one_by_one(labels, size, minimum), dtype=bool)
    if (labels[expected].sum(axis=0) >= minimum).all():
        assert expected.tolist() == stratified_choice(labels, size, minimum).tolist()
    else:
        with pytest.raises(ValueError, match="there are fewer"):
            stratified_choice(labels, size, minimum)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(pools())
def test_the_size_is_exact_and_the_minimum_met(pool: tuple[Labels, int, int]) -> None:
    """Whatever is returned has the size that was asked for, and the minimum of every label."""
    labels, size, minimum = pool
    try:
        chosen = stratified_choice(labels, size, minimum)
    except ValueError:
        return
    assert size == chosen.sum()
    assert (labels[chosen].sum(axis=0) >= minimum).all()


@pytest.mark.parametrize("n", [3_473, 20_000])
def test_every_label_keeps_its_share_to_one_item(n: int) -> None:
    """On labels like NIH's, each of the fourteen has its share of 500, rounded up or down."""
    labels = nih_like(n)
    found = labels[stratified_choice(labels, 500)].sum(axis=0)
    assert (abs(found - 500 * labels.mean(axis=0)) < 1).all()


def test_a_rare_label_is_lifted_to_the_minimum_and_no_further() -> None:
    """A label whose share is less than the minimum gets exactly the minimum; the others keep their shares."""
    labels = nih_like(20_000)
    found = labels[stratified_choice(labels, 500, 8)].sum(axis=0)
    shares = 500 * labels.mean(axis=0)
    assert (found[shares < 7] == 8).all()
    assert (abs(found - shares) < 1)[shares > 9].all()


def test_items_without_a_label_fill_the_rest_in_their_order() -> None:
    """Ranks decide between items that no label tells apart."""
    labels = np.array([[0], [0], [1], [0], [1], [0]], dtype=bool)
    assert [True, True, False, False, True, False] == stratified_choice(labels, 3).tolist()


def test_nothing_and_everything_can_be_chosen() -> None:
    """The empty and the whole selection are selections."""
    labels = nih_like(50)
    assert 0 == stratified_choice(labels, 0).sum()
    assert 50 == stratified_choice(labels, 50).sum()


@pytest.mark.parametrize(
    ("size", "minimum", "words"),
    [
        (11, 0, "the pool has 10 items; 11 are asked for"),
        (5, 4, "4 positives are asked for; in the pool there are fewer: mass 3"),
        (2, 2, "2 positives are asked for; among the 2 that are chosen there are fewer: edema 0"),
    ],
)
def test_what_the_pool_cannot_satisfy_is_refused(size: int, minimum: int, words: str) -> None:
    """The message names the labels and what there is of them."""
    labels = np.zeros((10, 2), dtype=bool)
    labels[:5, 0] = labels[5:8, 1] = True
    with pytest.raises(ValueError, match=words):
        stratified_choice(labels, size, minimum, names=("edema", "mass"))
