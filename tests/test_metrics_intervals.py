"""The bootstrap against an independent PCG64, scikit-learn on the very resamples, and hand counts."""

import hashlib
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from cxrspec.metrics import (
    BLOCK,
    RANKING_METRICS,
    Interval,
    bootstrap_ranking,
    mean_over_findings,
    percentile_interval,
    resample_counts,
    resample_indices,
    roc_auc,
)

KEY = "20261006:test:item"
SKLEARN = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}


def words_by_hand(stream_key: str, block: int) -> Iterator[int]:
    """PCG64 XSL-RR in plain integers: 32-bit words, low half first."""
    digest = hashlib.sha256(f"{stream_key}:{block}".encode()).digest()
    state, inc = int.from_bytes(digest[:16], "big"), int.from_bytes(digest[16:], "big") | 1
    while True:
        state = (state * 0x2360ED051FC65DA44385DF649FCCF645 + inc) % (1 << 128)
        folded, turn = (state >> 64) ^ (state % (1 << 64)), state >> 122
        output = (folded >> turn | folded << (64 - turn)) % (1 << 64)
        yield output % (1 << 32)
        yield output >> 32


def indices_by_hand(stream_key: str, block: int, n: int) -> Iterator[int]:
    """Lemire's multiply-shift with rejection."""
    for word in words_by_hand(stream_key, block):
        if word * n % (1 << 32) >= (1 << 32) % n:
            yield word * n >> 32


def tied_data(n: int, findings: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels of about 30 % positives and scores of 12 distinct values."""
    rng = np.random.default_rng(seed)
    labels = (rng.random((n, findings)) < 0.3).astype(np.int8)
    return labels, np.round(rng.random((n, findings)) * 8 + 3 * labels) / 11


def loop(kind: str, labels: np.ndarray, scores: np.ndarray, items: np.ndarray) -> float:
    """scikit-learn on one resample, NaN where a class is missing."""
    return SKLEARN[kind](labels[items], scores[items]) if len(set(labels[items])) == 2 else np.nan


def test_the_first_indices_are_fixed():
    """Trap S14: these numbers were computed without NumPy and never change."""
    assert [1, 15, 7, 12, 12, 14, 5, 19] == resample_indices("0:test:item", 0, 25)[0, :8].tolist()
    assert [15708, 10198, 17737, 24267, 16797] == resample_indices(KEY, 3, 25596, rows=1)[0, :5].tolist()


@pytest.mark.parametrize(("block", "n"), [(0, 1), (0, 7), (1, 7), (12, 1013)])
def test_a_stranger_recomputes_a_whole_block(block, n):
    """Ten lines of plain integers give every index of a block, in order."""
    expected = np.array(list(islice(indices_by_hand(KEY, block, n), BLOCK * n))).reshape(BLOCK, n)
    assert np.array_equal(expected, resample_indices(KEY, block, n))


def test_rejected_words_shift_the_stream():
    """Words that would favour some units are skipped: 4 of the first 99,000 here, over several pieces."""
    n = 99_000
    words = islice(words_by_hand(KEY, 0), n)
    assert 4 == sum(word * n % (1 << 32) < (1 << 32) % n for word in words)
    expected = list(islice(indices_by_hand(KEY, 0, n), n))
    assert expected == resample_indices(KEY, 0, n, rows=1)[0].tolist()


def test_a_power_of_two_rejects_nothing():
    """Every word counts where 2^32 is a multiple of n, also one whose low product is 0, as one here."""
    n = 1 << 17
    words = list(islice(words_by_hand(KEY, 0), n))
    assert 1 == sum(word * n % (1 << 32) == 0 for word in words)
    assert [word * n >> 32 for word in words] == resample_indices(KEY, 0, n, rows=1)[0].tolist()


def test_fewer_rows_are_the_first_rows():
    """A resample does not depend on how many are asked for."""
    assert np.array_equal(resample_indices(KEY, 2, 33)[:7], resample_indices(KEY, 2, 33, rows=7))


@pytest.mark.parametrize("other", [("20261007:test:item", 0), ("20261006:train:item", 0), (KEY, 1)])
def test_every_part_of_the_key_changes_the_stream(other):
    """Seed, subset, unit and block each name another stream."""
    assert not np.array_equal(resample_indices(KEY, 0, 50), resample_indices(*other, 50))


@pytest.mark.parametrize(("n", "rows"), [(0, 1), (1 << 32, 1), (5, BLOCK + 1), (5, -1)])
def test_impossible_draws_are_refused(n, rows):
    """There is no index in an empty range, and a block has 100 resamples."""
    with pytest.raises(ValueError, match="cannot draw"):
        resample_indices(KEY, 0, n, rows)


def test_counts_are_those_of_the_indices():
    """Row i of the counts says how often unit i was drawn; each column sums to n."""
    counts, indices = resample_counts(KEY, 1, 40), resample_indices(KEY, 1, 40)
    assert [np.count_nonzero(indices[9] == unit) for unit in range(40)] == counts[:, 9].tolist()
    assert {40} == set(counts.sum(axis=0).tolist())


@pytest.mark.parametrize("kind", RANKING_METRICS)
def test_each_resample_has_the_value_of_scikit_learn(kind):
    """Every resample of every finding is scikit-learn's on the resampled items to 1e-12, ties included."""
    labels, scores = tied_data(80, 3)
    values = bootstrap_ranking(labels, scores, stream_key=KEY, resamples=150)[kind]
    indices = np.concatenate([resample_indices(KEY, block, 80) for block in range(2)])[:150]
    expected = [[loop(kind, labels[:, f], scores[:, f], items) for f in range(3)] for items in indices]
    assert np.array(expected) == pytest.approx(values, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("kind", RANKING_METRICS)
@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    items=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=12),
)
def test_ties_and_missing_classes_agree_with_the_point_metric(kind, items):
    """On any small data with any units each resample is the point metric of its items, None as NaN."""
    labels, scores, units = (np.array(column) for column in zip(*items, strict=True))
    units = np.unique(units, return_inverse=True)[1]
    values = bootstrap_ranking(
        labels[:, None], scores[:, None], kinds=[kind], stream_key=KEY, resamples=20, unit_index=units
    )[kind][:, 0]
    weights = resample_counts(KEY, 0, int(units.max()) + 1)[units].T[:20]
    expected = [RANKING_METRICS[kind](labels, scores.astype(float), weight) for weight in weights]
    assert np.array(expected, float) == pytest.approx(values, abs=1e-12, nan_ok=True)


def test_the_kernels_have_the_names_of_the_registry():
    """Every ranking metric can be resampled, under the one name it has."""
    labels, scores = tied_data(20, 1)
    values = bootstrap_ranking(labels, scores, kinds=list(RANKING_METRICS), stream_key=KEY, resamples=1)
    assert list(RANKING_METRICS) == list(values)


def test_results_do_not_depend_on_the_number_of_resamples():
    """Resample 0 to 6 have the same bits when 7 and when 250 are drawn."""
    labels, scores = tied_data(60, 2)
    few, many = (bootstrap_ranking(labels, scores, stream_key=KEY, resamples=r) for r in (7, 250))
    assert all(np.array_equal(few[kind], many[kind][:7]) for kind in RANKING_METRICS)


def test_findings_and_systems_share_the_resamples():
    """A second call with the same key and another system is paired: equal columns get equal bits."""
    labels, scores = tied_data(60, 3)
    together = bootstrap_ranking(labels, scores, stream_key=KEY, resamples=100)["roc_auc"]
    alone = bootstrap_ranking(labels[:, 2:], scores[:, 2:], stream_key=KEY, resamples=100)["roc_auc"]
    assert np.array_equal(together[:, 2:], alone)


def test_sums_beyond_16_bits_stay_exact():
    """A unit of 700 items drawn many times over outgrows small integers without wrapping round."""
    labels, scores = tied_data(2100, 1)
    units = np.arange(2100) // 700
    values = bootstrap_ranking(labels, scores, stream_key=KEY, resamples=30, unit_index=units)["roc_auc"]
    weights = resample_counts(KEY, 0, 3)[units].T[:30]
    assert [roc_auc(labels[:, 0], scores[:, 0], weight) for weight in weights] == pytest.approx(values[:, 0], abs=1e-12)


def test_whole_patients_are_drawn():
    """Trap S4: with patients as units, the five images of one enter a resample together or not at all."""
    labels, scores = np.array([[1, 1, 1, 1, 1, 0, 0]]).T, np.array([[0.9, 0.8, 0.1, 0.7, 0.6, 0.5, 0.3]]).T
    patients = np.array([0, 0, 0, 0, 0, 1, 2])
    values = bootstrap_ranking(labels, scores, stream_key=KEY, resamples=100, unit_index=patients)["roc_auc"][:, 0]
    assert {0.8} == set(values[~np.isnan(values)].tolist())


def test_patients_widen_the_interval_of_repeated_images():
    """Trap S4: five copies of each patient's image are no new evidence."""
    labels, scores = (np.repeat(array, 5, axis=0) for array in tied_data(60, 1))
    widths = []
    for units in (np.arange(300), np.arange(300) // 5):
        values = bootstrap_ranking(labels, scores, stream_key=KEY, resamples=300, unit_index=units)["roc_auc"][:, 0]
        interval = percentile_interval(values, 0.95)
        widths.append(interval.high - interval.low)
    assert 1.5 * widths[0] < widths[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.array([[0], [2]])}, "0 or 1"),
        ({"scores": np.array([[0.1], [np.nan]])}, "finite"),
        ({"scores": np.array([[0.1]])}, "shape"),
        ({"labels": np.array([0, 1]), "scores": np.array([0.1, 0.9])}, "2-D"),
        ({"resamples": 0}, "cannot draw"),
        ({"unit_index": np.array([0, 2])}, "1 of 3 units without items"),
        ({"unit_index": np.array([0])}, "unit of each of 2 items"),
        ({"unit_index": np.array([-1, 0])}, "unit of each of 2 items"),
    ],
)
def test_faulty_arrays_are_refused(change, message):
    """Nothing is filled in or dropped on the way to a number."""
    arguments = {"labels": np.array([[0], [1]]), "scores": np.array([[0.1], [0.9]]), "resamples": 5} | change
    with pytest.raises(ValueError, match=message):
        bootstrap_ranking(stream_key=KEY, **arguments)


def test_an_unknown_kind_is_refused():
    """Only metrics of the registry have a kernel."""
    with pytest.raises(KeyError, match="rocauc"):
        bootstrap_ranking(*tied_data(9, 1), kinds=["rocauc"], stream_key=KEY, resamples=1)


def test_a_finding_without_a_class_is_undefined_everywhere():
    """Trap S1: no positive at all gives NaN on every resample, for both metrics."""
    values = bootstrap_ranking(np.zeros((4, 1), np.int8), np.arange(4.0)[:, None], stream_key=KEY, resamples=3)
    assert all(np.isnan(value).all() for value in values.values())


def test_resamples_without_a_class_are_counted_and_bar_the_interval():
    """Trap S2: one positive in five items is missing from (4/5)^5, a third, of the resamples: no interval."""
    labels, scores = np.array([[1, 0, 0, 0, 0]]).T, np.array([[0.9, 0.1, 0.2, 0.3, 0.4]]).T
    values = bootstrap_ranking(labels, scores, stream_key=KEY, resamples=1000)["roc_auc"][:, 0]
    missing = sum(int(np.isin(resample_counts(KEY, block, 5)[0], [0, 5]).sum()) for block in range(10))
    reason = f"undefined on {missing} of 1,000 resamples ({missing / 10:.3g} %); at most 1 % may be left out"
    assert 290 < missing < 370
    assert Interval(None, None, 1000, missing, reason) == percentile_interval(values, 0.95)


def test_a_few_resamples_are_left_out_with_their_count():
    """Trap S2: at the allowed share itself the interval stands on the valid resamples and says how many are not."""
    values = np.append(np.arange(99.0), np.nan)
    assert Interval(24.5, 73.5, 100, 1) == percentile_interval(values, 0.5)


def test_the_allowed_share_is_the_definitions():
    """Trap S2: 29 of 100 may be left out where a definition allows 29 %, and 30 may not."""
    values = np.append(np.arange(71.0), np.full(29, np.nan))
    assert 29 == percentile_interval(values, 0.95, max_left_out_share=0.29).n_left_out
    assert percentile_interval(values, 0.95, max_left_out_share=0.29).low is not None
    assert percentile_interval(values, 0.95, max_left_out_share=0.28).low is None


def test_an_interval_of_nothing_is_null_whatever_is_allowed():
    """Trap S2: with every resample undefined there is nothing to take a quantile of."""
    expected = Interval(None, None, 4, 4, "undefined on 4 of 4 resamples (100 %)")
    assert expected == percentile_interval(np.full(4, np.nan), 0.95, max_left_out_share=1.0)


def test_quantiles_are_interpolated_not_rounded_to_a_rank():
    """Trap S3: NumPy's method "linear" on 1,000 values, in any order."""
    values = np.random.default_rng(0).permutation(1000).astype(float)
    interval = percentile_interval(values, 0.95)
    assert (24.975, 974.025) == (pytest.approx(interval.low), pytest.approx(interval.high))


def test_the_mean_of_resamples_is_not_the_score():
    """Trap S3: the point value comes from the full set; the bootstrap's mean differs from it."""
    labels, scores = tied_data(30, 1)
    values = bootstrap_ranking(labels, scores, stream_key=KEY, resamples=200)["roc_auc"][:, 0]
    point = roc_auc(labels[:, 0], scores[:, 0])
    assert SKLEARN["roc_auc"](labels[:, 0], scores[:, 0]) == pytest.approx(point, abs=1e-12)
    assert point != pytest.approx(np.nanmean(values), abs=1e-5)


@pytest.mark.parametrize(("values", "level"), [([], 0.95), ([1.0], 0.0), ([1.0], 1.0), ([1.0], 95)])
def test_impossible_intervals_are_refused(values, level):
    """A level is a share between 0 and 1, of at least one value."""
    with pytest.raises(ValueError, match="interval of"):
        percentile_interval(np.array(values), level)


def test_the_mean_needs_every_finding():
    """A resample counts for the mean only where all findings are defined."""
    mean = mean_over_findings(np.array([[0.5, 0.7], [0.5, np.nan]]))
    assert [0.6, np.nan] == pytest.approx(mean.tolist(), nan_ok=True)
