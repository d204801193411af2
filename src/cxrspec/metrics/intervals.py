"""Own the bootstrap: reproducible resamples, ranking metrics on each of them, percentile intervals.

Resamples are kept as counts per unit, never as copies of the data. Nothing here chooses a seed, a unit or a level, and
no result depends on threads or on how many resamples are asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cxrspec.metrics.ranking import check_binary

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

BLOCK = 100
"""Resamples drawn from one stream; part of the documented mapping, so it never changes."""

_PIECE_WORDS = 1 << 16  # 32-bit words drawn at once: what the cache holds, without influence on the result

Floats = NDArray[np.float64]
Counts = NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, slots=True)
class Interval:
    """A percentile interval, or the reason why there is none."""

    low: float | None
    high: float | None
    n_resamples: int
    """Resamples drawn, those left out included."""
    n_left_out: int
    """Resamples on which the metric is undefined."""
    reason: str = ""
    """Why low and high are None; empty where they are numbers."""


def resample_indices(stream_key: str, block: int, n: int, rows: int = BLOCK) -> NDArray[np.int64]:
    """Draw the first `rows` resamples of a block: [rows, n] indices in [0, n), with replacement.

    The stream is that of PCG64 (XSL-RR, 128-bit state; O'Neill 2014), used through its raw outputs alone:

    1. D = SHA-256 of the UTF-8 text `<stream_key>:<block>`, block in decimal.
    2. state = the first 16 bytes of D as a big-endian integer; inc = the last 16 bytes likewise, lowest bit set.
       Both are set as they are: no seeding step is run. Every output first advances state = state * M + inc.
    3. Each 64-bit output gives two 32-bit words w, its low half first.
    4. w is rejected if (w * n) mod 2^32 < 2^32 mod n; otherwise its index is (w * n) >> 32 (Lemire 2019).
    5. The accepted indices, in order, fill resample 0 of the block, then resample 1, and so on.

    Raises:
        ValueError: n is not in [1, 2^32), or rows is not in [0, BLOCK].
    """
    if not 1 <= n < 1 << 32 or not 0 <= rows <= BLOCK:
        raise ValueError(f"cannot draw {rows} resamples of {n} units")
    generator = _block_generator(stream_key, block)
    drawn = np.empty(rows * n, np.int64)
    filled = 0
    while (missing := drawn.size - filled) > 0:
        raw = generator.random_raw((min(missing, _PIECE_WORDS) + 1) // 2)
        accepted = _accepted_indices(raw, n)[:missing]
        drawn[filled : filled + accepted.size] = accepted
        filled += accepted.size
    return drawn.reshape(rows, n)


def _block_generator(stream_key: str, block: int) -> np.random.PCG64:
    digest = hashlib.sha256(f"{stream_key}:{block}".encode()).digest()
    generator = np.random.PCG64(0)
    generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": int.from_bytes(digest[:16], "big"), "inc": int.from_bytes(digest[16:], "big") | 1},
        "has_uint32": 0,
        "uinteger": 0,
    }
    return generator


def _accepted_indices(raw: NDArray[np.uint64], n: int) -> NDArray[np.int64]:
    words = raw.astype("<u8", copy=False).view("<u4")  # low half first on every machine
    products = words * np.uint64(n)
    rejected = products.astype(np.uint32) < np.uint32((1 << 32) % n)
    products >>= np.uint64(32)
    indices = products.view(np.int64)
    return indices[~rejected] if rejected.any() else indices


def resample_counts(stream_key: str, block: int, n: int, dtype: DTypeLike = np.uint32) -> Counts:
    """Count how often each unit occurs in each resample of a block: [n, BLOCK], columns that sum to n.

    Where units are groups of items, row `unit_index` of the result is the count of each item:
    `resample_counts(key, block, n_groups)[unit_index]`.

    Raises:
        ValueError: n is not in [1, 2^32).
    """
    counts = np.empty((BLOCK, n), dtype)
    for row, indices in zip(counts, resample_indices(stream_key, block, n), strict=True):
        row[:] = np.bincount(indices, minlength=n)
    return np.ascontiguousarray(counts.T)


def bootstrap_ranking(
    labels: NDArray[np.int8],
    scores: Floats,
    *,
    stream_key: str,
    resamples: int,
    kinds: Sequence[str] = ("roc_auc", "average_precision"),
    unit_index: NDArray[np.int64] | None = None,
) -> dict[str, Floats]:
    """Return per kind the metric of each finding on each resample: [resamples, F], NaN where a class is missing.

    Resample r is row r mod BLOCK of block r div BLOCK. All findings share it, and so does every other call with the
    same key and number of units, so differences between systems are paired. Values are those of `RANKING_METRICS` on
    the resampled items, ties included.

    Args:
        labels: [n, F], 1 is positive and 0 negative.
        scores: [n, F], finite.
        stream_key: names the stream of resamples, `<seed>:<subset>:<unit>`.
        resamples: how many to draw.
        kinds: names from `RANKING_METRICS`.
        unit_index: [n], the unit of each item, 0 .. units - 1, all of them used; each item is a unit of its own
            without it. Whole units are drawn, with all their items.

    Raises:
        ValueError: the arrays differ in shape or hold other values, or resamples is below 1.
        KeyError: a kind is unknown.
    """
    units = np.arange(len(labels)) if unit_index is None else np.asarray(unit_index)
    unit_sizes = _checked_unit_sizes(units, len(labels))
    check_binary(labels, scores, ndim=2)
    if resamples < 1:
        raise ValueError(f"cannot draw {resamples} resamples")
    kernels = {kind: _KERNELS[kind] for kind in kinds}
    dtype = np.min_scalar_type(len(unit_sizes) * int(unit_sizes.max()))  # holds the sum of any resample
    findings = [_Finding.build(y, s, units, dtype) for y, s in zip(labels.T, scores.T, strict=True)]
    n_blocks = -(-resamples // BLOCK)
    values = {kind: np.empty((n_blocks * BLOCK, len(findings))) for kind in kinds}
    for block in range(n_blocks):
        counts = resample_counts(stream_key, block, len(unit_sizes), dtype)
        rows = slice(block * BLOCK, (block + 1) * BLOCK)
        for column, finding in enumerate(findings):
            tally = finding.tally(counts)
            for kind, kernel in kernels.items():
                values[kind][rows, column] = kernel(tally)
    return {kind: value[:resamples] for kind, value in values.items()}


def _checked_unit_sizes(units: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    if not n or units.shape != (n,) or units.min() < 0:
        raise ValueError(f"unit_index must name a unit of each of {n} items")
    sizes = np.bincount(units)
    if not sizes.all():
        raise ValueError(f"unit_index leaves {np.count_nonzero(sizes == 0)} of {len(sizes)} units without items")
    return sizes


@dataclass(frozen=True, slots=True)
class _Tally:
    """Weights of one finding at its thresholds v_0 > v_1 > ..., [thresholds + 1, BLOCK]; the last row is below all."""

    positives_at: Floats
    true_positives: Counts
    """Positives at or above the threshold."""
    false_positives: Counts
    """Negatives at or above the threshold."""
    tied_negatives: Counts
    """Negatives equal to the threshold, of the thresholds `tied_rows` only."""
    tied_rows: NDArray[np.int64]

    @property
    def n_positive(self) -> Floats:
        return np.asarray(self.true_positives[-1], np.float64)

    @property
    def n_negative(self) -> Floats:
        return np.asarray(self.false_positives[-1], np.float64)


@dataclass(frozen=True, slots=True)
class _Finding:
    """What turns the counts of units into the tally of one finding: its distinct positive scores are the thresholds.

    Both metrics need the weights at the positives alone, so each negative is only assigned to the first threshold that
    does not exceed it, once for all resamples.
    """

    classes: csr_matrix
    """[2 (thresholds + 1), units]: items per row, the positives' rows first."""
    ties: csr_matrix
    """[len(tied_rows), units]: negatives that equal a threshold."""
    tied_rows: NDArray[np.int64]

    @classmethod
    def build(cls, labels: NDArray[np.int8], scores: Floats, units: NDArray[np.int64], dtype: DTypeLike) -> _Finding:
        thresholds = np.unique(scores[labels == 1])
        n_rows = len(thresholds) + 1
        row = len(thresholds) - np.searchsorted(thresholds, scores, side="right")
        tied = (labels == 0) & np.isin(scores, thresholds)
        tied_rows, tie = np.unique(row[tied], return_inverse=True)
        width = int(units.max()) + 1
        classes = _one_hot(np.where(labels == 1, row, row + n_rows), units, (2 * n_rows, width), dtype)
        return cls(classes, _one_hot(tie, units[tied], (len(tied_rows), width), dtype), tied_rows)

    def tally(self, counts: Counts) -> _Tally:
        positives, negatives = (self.classes @ counts).reshape(2, -1, counts.shape[1])
        return _Tally(
            positives_at=positives.astype(np.float64),
            true_positives=np.cumsum(positives, axis=0, dtype=counts.dtype),
            false_positives=np.cumsum(negatives, axis=0, dtype=counts.dtype),
            tied_negatives=self.ties @ counts,
            tied_rows=self.tied_rows,
        )


def _one_hot(rows: NDArray[np.int64], units: NDArray[np.int64], shape: tuple[int, int], dtype: DTypeLike) -> csr_matrix:
    from scipy.sparse import csr_matrix

    return csr_matrix((np.ones(len(rows), dtype), (rows, units)), shape=shape)  # items of one unit in one row add up


def _roc_auc(tally: _Tally) -> Floats:
    """Return the share of pairs that are ordered rightly; all sums are of integers below 2^53, hence exact."""
    at, above, tied = tally.positives_at, tally.false_positives, tally.tied_negatives
    doubled_pairs = 2 * tally.n_positive * tally.n_negative
    doubled_wrong = 2 * np.einsum("kr,kr->r", at, above) - np.einsum("kr,kr->r", at[tally.tied_rows], tied)
    return _divide(doubled_pairs - doubled_wrong, doubled_pairs)


def _average_precision(tally: _Tally) -> Floats:
    """Return the mean over the positives of the precision at their own threshold."""
    hits = tally.true_positives
    called = np.maximum(hits + tally.false_positives, 1)  # where nothing is called, no positive counts either
    precision = np.divide(hits, called, dtype=np.float64)
    total = (tally.positives_at * precision).sum(axis=0)  # einsum may fuse the two: other last bits on other processors
    return np.where(tally.n_negative > 0, _divide(total, tally.n_positive), np.nan)


def _divide(numerator: Floats, denominator: Floats) -> Floats:
    return np.divide(numerator, denominator, out=np.full_like(denominator, np.nan), where=denominator > 0)


_KERNELS = {"roc_auc": _roc_auc, "average_precision": _average_precision}


def mean_over_findings(values: Floats) -> Floats:
    """Return the unweighted mean of each resample, [R] from [R, F]; NaN where any finding is undefined."""
    return np.asarray(values.mean(axis=1))


def bootstrap_p_value(differences: Floats, *, one_sided: bool = False) -> float:
    """Return p of paired resampled differences [R] against 0, by inverting the percentile interval.

    It is twice the smaller share of resamples on either side of 0, at most 1; `one_sided` takes the share that is not
    above 0. One more resample than drawn counts as against the difference, so p is never 0 (Davison and Hinkley 1997,
    chapter 4). Undefined resamples (NaN) are left out.

    Raises:
        ValueError: no resample is defined.
    """
    valid = differences[~np.isnan(differences)]
    if not valid.size:
        raise ValueError("no resample is defined")
    not_above, not_below = ((1 + np.count_nonzero(side)) / (1 + valid.size) for side in (valid <= 0, valid >= 0))
    return float(not_above if one_sided else min(1.0, 2 * min(not_above, not_below)))


def percentile_interval(values: Floats, level: float, max_left_out_share: float = 0.01) -> Interval:
    """Return the percentile interval of resampled values [R], by NumPy's quantile method "linear" (Efron 1979).

    Undefined resamples (NaN) are left out and counted, never drawn again. Above the allowed share of them the interval
    would describe other resamples than the plain bootstrap's, so there is none, with the reason.

    Raises:
        ValueError: there are no values, or level is not between 0 and 1.
    """
    if not values.size or not 0 < level < 1:
        raise ValueError(f"cannot take a {level} interval of {values.size} values")
    valid = values[~np.isnan(values)]
    n_left_out = values.size - valid.size
    share = n_left_out / values.size
    if not valid.size or share > max_left_out_share:
        found = f"undefined on {n_left_out:,} of {values.size:,} resamples ({100 * share:.3g} %)"
        reason = f"{found}; at most {100 * max_left_out_share:.3g} % may be left out" if valid.size else found
        return Interval(None, None, values.size, n_left_out, reason)
    low, high = np.quantile(valid, [(1 - level) / 2, (1 + level) / 2], method="linear")
    return Interval(float(low), float(high), values.size, n_left_out)
