"""Boxes of heatmaps against full resolution: SciPy's zoom, scikit-image, and integers without any rounding."""

from fractions import Fraction
from math import floor
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import ndimage

from cxrspec.metrics import heatmaps
from cxrspec.metrics.heatmaps import heatmap_boxes, peak_pixels

SQUARES = (7, 14, 16, 20)
OUTPUTS = [(256, 256), (256, 512), (150, 201)]
ORDERS = {"bilinear": 1, "nearest": 0}
THRESHOLDS = (60.0, 180.0, 59.75, 127.5)
"""Two that integers tie with, one that they rarely meet, one half-way."""

sizes = st.one_of(st.sampled_from([(s, s) for s in SQUARES]), st.tuples(st.integers(1, 12), st.integers(1, 12)))
rules = st.fixed_dictionaries(
    {
        "upsampling": st.sampled_from(["bilinear", "nearest"]),
        "strict": st.booleans(),
        "connectivity": st.sampled_from([4, 8]),
    }
)
exactly = settings(derandomize=True, deadline=None, max_examples=120)


@st.composite
def integer_maps(draw: st.DrawFn) -> np.ndarray:
    """Maps made to tie and to fork: few levels, levels on the thresholds, plateaus, checkerboards with faults."""
    size = draw(sizes)
    values = draw(st.sampled_from([st.integers(0, 1), st.integers(0, 4), st.sampled_from([0, 60, 180, 255])]))
    kind = draw(st.sampled_from(["scattered", "plateaus", "checkerboard"]))
    if kind == "plateaus":
        small = draw(arrays(np.int64, (-(-size[0] // 3), -(-size[1] // 3)), elements=values))
        return small.repeat(3, axis=0).repeat(3, axis=1)[: size[0], : size[1]]
    one = draw(arrays(np.int64, size, elements=values))
    board = np.indices(size).sum(axis=0) % 2
    return one if kind == "scattered" else board * draw(st.sampled_from([1, 17, 255])) + (one == one.max())


@st.composite
def real_maps(draw: st.DrawFn) -> np.ndarray:
    """Maps that the last bit decides: decimals and thresholds / 255, noise, offsets that leave the range few digits."""
    size = draw(sizes)
    if draw(st.booleans()):
        return draw(arrays(np.float64, size, elements=st.sampled_from([0.0, 0.1, 60 / 255, 0.3, 180 / 255, 1.0])))
    noise = np.random.default_rng(draw(st.integers(0, 2**16))).random(size)
    return np.round(noise, draw(st.sampled_from([1, 17]))) + draw(st.sampled_from([0.0, -0.3, 1e6, 1e15]))


def regions(values: np.ndarray, level: Any, strict: bool, connectivity: int) -> list[list[int]]:
    """Boxes of the connected regions of an image, sorted."""
    labels, _ = ndimage.label(
        values > level if strict else values >= level, np.ones((3, 3)) if connectivity == 8 else None
    )
    return sorted([r.start, c.start, r.stop, c.stop] for r, c in ndimage.find_objects(labels))


def scipy_full(one: np.ndarray, output: tuple[int, int], upsampling: str = "bilinear") -> np.ndarray:
    """The upsampled map as scikit-image makes it, by the same function of SciPy."""
    zoom = np.divide(output, one.shape)
    full = ndimage.zoom(one.astype(np.float64), zoom, order=ORDERS[upsampling], mode="nearest", grid_mode=True)
    return np.clip(full, one.min(), one.max())


def rescaled(full: np.ndarray) -> np.ndarray:
    """A map that is not constant, brought to [0, 255]."""
    return 255 * (full - full.min()) / (full.max() - full.min())


def scipy_boxes(one: np.ndarray, output: tuple[int, int], upsampling: str, **rule: Any) -> list[list[list[int]]]:
    """Boxes of the full map by SciPy alone."""
    return rescaled_boxes(scipy_full(one, output, upsampling), **rule)


def skimage_boxes(one: np.ndarray, output: tuple[int, int], upsampling: str, **rule: Any) -> list[list[list[int]]]:
    """Full resolution and labels by scikit-image itself."""
    reason = "scikit-image is not installed; the same comparison runs against SciPy"
    resize = pytest.importorskip("skimage.transform", reason=reason).resize
    measure = pytest.importorskip("skimage.measure", reason=reason)
    full = resize(
        one.astype(np.float64),
        output,
        order=ORDERS[upsampling],
        mode="edge",
        anti_aliasing=False,
        preserve_range=True,
    )

    def label_boxes(values: np.ndarray, level: float, strict: bool, connectivity: int) -> list[list[int]]:
        labels = measure.label(values > level if strict else values >= level, connectivity=connectivity // 4)
        return sorted(list(region.bbox) for region in measure.regionprops(labels))

    return rescaled_boxes(full, label_boxes, **rule)


def rescaled_boxes(full: np.ndarray, find: Any = regions, **rule: Any) -> list[list[list[int]]]:
    """Boxes at every threshold of a full map that is rescaled to [0, 255]; none of a constant one."""
    if full.min() == full.max():
        return [[] for _ in THRESHOLDS]
    return [find(rescaled(full), level, **rule) for level in THRESHOLDS]


def exact_weights(size: int, length: int, upsampling: str) -> np.ndarray:
    """Interpolation weights [length, size] of one axis in whole 1/(2 length), from fractions, pixel by pixel."""
    weights = np.zeros((length, size), np.int64)
    for pixel in range(length):
        place = Fraction(2 * pixel + 1, 2) * Fraction(size, length) - Fraction(1, 2)
        place = Fraction(floor(place + Fraction(1, 2))) if upsampling == "nearest" else place
        place = min(max(place, Fraction(0)), Fraction(size - 1))
        low = floor(place)
        weights[pixel, low] += int((1 - place + low) * 2 * length)
        weights[pixel, min(low + 1, size - 1)] += int((place - low) * 2 * length)
    return weights


def exact_boxes(one: np.ndarray, output: tuple[int, int], upsampling: str, **rule: Any) -> list[list[list[int]]]:
    """Full resolution in whole numbers: 255 (u - min) against threshold (max - min), nothing rounded."""
    rows, cols = (exact_weights(s, n, upsampling) for s, n in zip(one.shape, output, strict=True))
    full = rows @ one @ cols.T
    values, spread = 255 * 4 * (full - full.min()), full.max() - full.min()
    return [regions(values, int(4 * level) * spread, **rule) if spread else [] for level in THRESHOLDS]


def product_boxes(one: np.ndarray, output: tuple[int, int], **rule: Any) -> list[list[list[int]]]:
    """The boxes under test."""
    return [boxes.tolist() for boxes in heatmap_boxes(one[None], output=output, thresholds=THRESHOLDS, **rule)[0]]


@pytest.fixture
def read_in_full(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Thresholds at which a map was read pixel by pixel."""
    seen: list[float] = []
    full_boxes = heatmaps._full_boxes

    def spy(one: Any, grid: Any, rule: Any, levels: Any) -> Any:
        seen.extend(levels)
        return full_boxes(one, grid, rule, levels)

    monkeypatch.setattr(heatmaps, "_full_boxes", spy)
    return seen


@exactly
@given(one=integer_maps(), output=st.sampled_from(OUTPUTS), rule=rules)
def test_ties_saddles_and_plateaus_are_decided_exactly(one: np.ndarray, output: tuple[int, int], rule: Any) -> None:
    """Boxes of integer maps are those of arithmetic in whole numbers, on any output size."""
    assert exact_boxes(one, output, **rule) == product_boxes(one, output, **rule)


@exactly
@given(one=st.one_of(integer_maps(), real_maps()), output=st.sampled_from(OUTPUTS[:2]), rule=rules)
def test_boxes_are_those_of_scipy_at_full_resolution(one: np.ndarray, output: tuple[int, int], rule: Any) -> None:
    """Also where decimals tie and the last bit decides: for outputs of 2^k pixels the values have the same bits."""
    assert scipy_boxes(one, output, **rule) == product_boxes(one, output, **rule)


@settings(exactly, max_examples=60)
@given(one=st.one_of(integer_maps(), real_maps()), output=st.sampled_from(OUTPUTS[:2]), rule=rules)
def test_boxes_are_those_of_scikit_image(one: np.ndarray, output: tuple[int, int], rule: Any) -> None:
    """`resize`, `label` and `regionprops` give the same boxes as the lattice, ties included."""
    assert skimage_boxes(one, output, **rule) == product_boxes(one, output, **rule)


@pytest.mark.parametrize("upsampling", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [*((s, s) for s in SQUARES), (9, 33), (33, 9), (1, 5), (1024, 3)])
@pytest.mark.parametrize("full", [scipy_boxes, skimage_boxes], ids=["scipy", "scikit-image"])
def test_boxes_at_1024(size: tuple[int, int], upsampling: str, full: Any) -> None:
    """At the protocol's output size, for square and rectangular maps, the boxes are those of full resolution."""
    one = np.random.default_rng(size).integers(0, 256, size)
    rule: dict[str, Any] = {"upsampling": upsampling, "strict": True, "connectivity": 8}
    assert full(one, (1024, 1024), **rule) == product_boxes(one, (1024, 1024), **rule)


@pytest.mark.parametrize("rows", [2, 3])
def test_rows_inside_a_saddle_decide_whether_it_joins(rows: int) -> None:
    """Two peaks on a diagonal are one region below the saddle's level and two above it, as full resolution says."""
    one = np.zeros((rows, 2))
    one[0, 0], one[1, 1] = 1.0, 0.9
    levels = np.arange(90, 140, 0.37)
    found = heatmap_boxes(one[None], output=(256, 256), thresholds=levels)[0]
    full = rescaled(scipy_full(one, (256, 256)))
    expected = [regions(full, level, strict=True, connectivity=8) for level in levels]
    assert expected == [boxes.tolist() for boxes in found]
    assert [1, 2] == sorted({len(boxes) for boxes in expected})


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("connectivity", [4, 8])
@pytest.mark.parametrize("seed", range(3))
def test_a_threshold_on_any_pixel_of_a_saddle(seed: int, connectivity: Literal[4, 8], strict: bool) -> None:
    """Every value that occurs in a saddle, or in one turned by a quarter, is a threshold that must be met exactly."""
    a, b, c, d = np.random.default_rng(seed).integers([60, 0, 0, 60], [100, 40, 40, 100])
    for one in (np.array([[a, b], [c, d]]), np.array([[b, a], [d, c]])):
        full = rescaled(scipy_full(one, (16, 32)))
        levels = np.unique(full[4:12, 8:24])
        found = heatmap_boxes(one[None], output=(16, 32), thresholds=levels, strict=strict, connectivity=connectivity)
        assert [regions(full, level, strict, connectivity) for level in levels] == [b.tolist() for b in found[0]]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("across", [True, False], ids=["columns", "rows"])
def test_a_threshold_on_any_pixel_of_a_ramp(across: bool, strict: bool) -> None:
    """Along rows and along columns, a region ends exactly at the pixel that is the threshold."""
    one, output = (np.array([[0, 1]]), (8, 64)) if across else (np.array([[0], [1]]), (64, 8))
    full = rescaled(scipy_full(one, output))
    levels = np.unique(full)
    found = heatmap_boxes(one[None], output=output, thresholds=levels, strict=strict)[0]
    assert [regions(full, level, strict, 8) for level in levels] == [boxes.tolist() for boxes in found]


def test_pixels_that_touch_at_a_corner() -> None:
    """Two nearest-neighbour blocks on a diagonal are one region by 8-connectivity, two by 4-connectivity."""
    one = np.eye(2)[None]
    assert [[0, 0, 8, 8]] == heatmap_boxes(one, output=(8, 8), thresholds=[60], upsampling="nearest")[0][0].tolist()
    four = heatmap_boxes(one, output=(8, 8), thresholds=[60], upsampling="nearest", connectivity=4)
    assert [[0, 0, 4, 4], [4, 4, 8, 8]] == four[0][0].tolist()


def test_the_threshold_itself_is_outside_unless_the_rule_says_otherwise() -> None:
    """A plateau exactly on 60 is a region only by `>=`."""
    one = np.array([[[0, 60, 255]]])
    found = [
        heatmap_boxes(one, output=(3, 9), thresholds=[60], upsampling="nearest", strict=s)[0][0] for s in (True, False)
    ]
    assert [[[0, 6, 3, 9]], [[0, 3, 3, 9]]] == [boxes.tolist() for boxes in found]


def test_a_constant_map_has_no_box() -> None:
    """No range, no box: also beside other maps, whatever the constant, and for `>=`."""
    maps = np.stack([np.zeros((4, 4)), np.eye(4), np.full((4, 4), 0.3)])
    assert [[0, 0], [1, 4], [0, 0]] == [[len(b) for b in found] for found in heatmap_boxes(maps, strict=False)]
    assert (0, 4) == heatmap_boxes(maps)[0][0].shape


def test_a_range_lost_in_upsampling_has_no_box() -> None:
    """Two values a bit apart can become one by rounding: no range is left, and no box."""
    one = np.full((3, 3), 1.9)
    one[1, 1] = np.nextafter(1.9, 2)
    assert [0, 0] == [len(boxes) for boxes in heatmap_boxes(one[None], output=(9, 9), strict=False)[0]]


def test_boxes_are_sorted_int64_and_per_map_and_threshold() -> None:
    """The result has one array for each map and threshold, in the order of the arguments."""
    maps = np.random.default_rng(0).random((5, 6, 6))
    found = heatmap_boxes(maps, thresholds=[180, 60, 120])
    assert [3] * 5 == [len(one) for one in found]
    assert all(b.dtype == np.int64 and b.tolist() == sorted(b.tolist()) for one in found for b in one)
    alone = [heatmap_boxes(one[None], thresholds=[level])[0][0] for one in maps for level in (180, 60, 120)]
    assert [b.tolist() for b in alone] == [b.tolist() for one in found for b in one]


def test_a_map_and_its_multiples_have_the_same_boxes() -> None:
    """Only the shape of a map matters: not its unit, offset or type."""
    one = np.random.default_rng(1).integers(0, 256, (3, 8, 8)).astype(np.uint8)
    expected = heatmap_boxes(one, thresholds=THRESHOLDS)
    for same in (one.astype(np.float32), one * 2.0**-60, one * 1e280, one.astype(np.int64) * 1024 - 7):
        for left, right in zip(expected, heatmap_boxes(same, thresholds=THRESHOLDS), strict=True):
            assert [b.tolist() for b in left] == [b.tolist() for b in right]


def test_batches_do_not_change_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Maps in batches of one give what all of them at once give."""
    maps = np.random.default_rng(2).random((4, 9, 5))
    at_once = heatmap_boxes(maps)
    monkeypatch.setattr(heatmaps, "_BATCH_CORNERS", 1)
    assert [[b.tolist() for b in one] for one in at_once] == [[b.tolist() for b in one] for one in heatmap_boxes(maps)]


def test_only_doubtful_maps_are_read_in_full(read_in_full: list[float]) -> None:
    """Noise is read by the lattice alone; a value on the threshold sends this map and threshold to full resolution."""
    maps = np.random.default_rng(3).random((6, 10, 10))
    heatmap_boxes(maps)
    assert [] == read_in_full
    maps[4] = np.tile([0, 60, 60, 255, 0], (10, 2))
    heatmap_boxes(maps)
    assert [60.0] == read_in_full


def test_nearest_needs_no_full_resolution(read_in_full: list[float]) -> None:
    """Copies have no rounding, so ties are decided on the lattice itself."""
    heatmap_boxes(
        np.random.default_rng(4).integers(0, 5, (3, 10, 10)), thresholds=[0, 127.5, 255], upsampling="nearest"
    )
    assert [] == read_in_full


def test_a_map_nearly_as_large_as_the_output_is_read_in_full(read_in_full: list[float]) -> None:
    """Where the lattice would be as large as the image it is left out, for a map of the output's own size too."""
    one = np.random.default_rng(5).random((16, 16))
    assert (
        regions(rescaled(one), 60, True, 8) == heatmap_boxes(one[None], output=(16, 16), thresholds=[60])[0][0].tolist()
    )
    assert [60.0] == read_in_full


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_values_that_cannot_be_upsampled_are_refused(value: float) -> None:
    """NaN, infinity and values near the end of float64 are refused with the place of the map."""
    maps = np.zeros((3, 4, 4))
    maps[1, 2, 2] = value
    with pytest.raises(ValueError, match="map 1 has values"):
        heatmap_boxes(maps)


@pytest.mark.parametrize(
    ("maps", "options", "said"),
    [
        (np.zeros((4, 4)), {}, "must be real numbers"),
        (np.zeros((1, 4, 4), complex), {}, "must be real numbers"),
        (np.zeros((1, 0, 4)), {}, "must not be empty"),
        (np.zeros((1, 9, 4)), {"output": (8, 8)}, "9 x 4 must not be empty, or larger than 8 x 8"),
        (np.eye(4)[None], {"thresholds": [256]}, "thresholds must be in"),
        (np.eye(4)[None], {"thresholds": [np.nan]}, "thresholds must be in"),
        (np.eye(4)[None], {"upsampling": "bicubic"}, "not 'bicubic'"),
        (np.eye(4)[None], {"connectivity": 6}, "connectivity must be 4 or 8"),
    ],
)
def test_wrong_arguments_are_refused(maps: np.ndarray, options: dict[str, Any], said: str) -> None:
    """A shape, type or option that the protocol does not have is refused by name."""
    with pytest.raises(ValueError, match=said):
        heatmap_boxes(maps, **options)


def test_no_maps_and_no_thresholds_give_nothing() -> None:
    """Empty arguments are no error."""
    assert [] == heatmap_boxes(np.zeros((0, 4, 4)))
    assert [[]] == heatmap_boxes(np.eye(4)[None], thresholds=[])


@exactly
@given(one=st.one_of(integer_maps(), real_maps().filter(lambda one: np.ptp(one) > 1e-6 * abs(one).max())))
def test_the_peak_is_the_first_largest_pixel(one: np.ndarray) -> None:
    """The peak found on corners is the largest pixel of the full map; of equal ones the first row by row."""
    if one.min() == one.max():
        return
    full = scipy_full(one, (256, 256))
    expected = np.argmax(full >= full.max() - 1e-10 * np.ptp(full))
    assert [np.unravel_index(expected, full.shape)] == [tuple(p) for p in peak_pixels(one[None], output=(256, 256))]


def test_a_constant_map_has_no_peak() -> None:
    """It is refused, not given the first pixel."""
    with pytest.raises(ValueError, match="a constant map has no peak"):
        peak_pixels(np.ones((1, 4, 4)))
    assert (0, 2) == peak_pixels(np.ones((0, 4, 4))).shape
