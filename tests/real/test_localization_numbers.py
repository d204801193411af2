"""The published worked example of the localization protocol: 45 rows, the counts of its identities, exact boxes."""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cxrspec.metrics.boxes import (
    BOX_CRITERIA,
    box_areas,
    intersections,
    iobb,
    iou,
    match_boxes,
    stack_boxes,
    tiny_boxes,
    whole_image_box,
)
from cxrspec.metrics.heatmaps import heatmap_boxes, peak_pixels

pytestmark = pytest.mark.real

IMAGES = 60
SIZES = ("large", "medium", "small")
VARIANTS = {"noise-free": "clean", "noisy": "noisy"}
UPSAMPLINGS = {"noise-free": ("bilinear",), "noisy": ("bilinear", "nearest")}
"""What the worked example scores; the tiny box and the whole image are scored on both variants."""

Runs = dict[tuple[str, str, str], list[np.ndarray]]


@pytest.fixture(scope="module")
def synthetic(shared: Path) -> dict[str, np.ndarray]:
    """The maps and the reference boxes."""
    return dict(np.load(shared / "expected" / "localization_synthetic.npz"))


@pytest.fixture(scope="module")
def expected(shared: Path) -> dict[str, Any]:
    """The 45 rows and the counts."""
    return json.loads((shared / "expected" / "localization_synthetic.json").read_text(encoding="utf-8"))


def localize(maps: np.ndarray, upsamplings: tuple[str, ...]) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Each localizer's name and its boxes for each map."""
    for upsampling in upsamplings:
        found = heatmap_boxes(maps, upsampling=upsampling)
        yield f"heatmap {upsampling} 60", [boxes[0] for boxes in found]
        yield f"heatmap {upsampling} 180", [boxes[1] for boxes in found]
    yield "tiny box", [box[None] for box in tiny_boxes(peak_pixels(maps))]
    yield "whole image", [whole_image_box()] * len(maps)


@pytest.fixture(scope="module")
def runs(synthetic: dict[str, np.ndarray]) -> Runs:
    """The boxes of every run of the worked example, by variant, localizer and size class."""
    return {
        (variant, localizer, size): boxes
        for variant, key in VARIANTS.items()
        for size in SIZES
        for localizer, boxes in localize(synthetic[f"{size}_{key}"], UPSAMPLINGS[variant])
    }


def scores(boxes: list[np.ndarray], reference: np.ndarray, criterion: str, T: list[float]) -> dict[str, list[float]]:
    """Acc. and AFP at each T, to three decimals, one reference box an image."""
    detected, group = stack_boxes(boxes)
    matches = match_boxes(
        detected, reference, criterion, T, detected_group=group, reference_group=np.arange(len(reference))
    )
    n_false = np.count_nonzero(~matches.correct, axis=0)
    return {
        "acc": [round(float(acc), 3) for acc in matches.hit.mean(axis=0)],
        "afp": [round(float(n) / IMAGES, 3) for n in n_false],
    }


def test_all_45_rows(runs: Runs, synthetic: dict[str, np.ndarray], expected: dict[str, Any]) -> None:
    """Every published Acc. and AFP comes out to its three decimals."""
    rows = expected["rows"]
    assert 45 == len(rows)
    for row in rows:
        boxes = runs[row["maps"], row["localizer"], row["size"]]
        mine = scores(boxes, synthetic[f"{row['size']}_box"], row["criterion"].lower(), expected["T"])
        assert {"acc": row["acc"], "afp": row["afp"]} == mine, row


def test_the_counts_of_the_identities(runs: Runs, synthetic: dict[str, np.ndarray], expected: dict[str, Any]) -> None:
    """IoBB >= IoU for every scored box, equal where it contains the reference, 1 where it lies inside."""
    counts = dict.fromkeys(expected["counts"], 0)
    for (_, _, size), boxes in runs.items():
        for detected, reference in zip(boxes, synthetic[f"{size}_box"][:, None], strict=True):
            lax, hard = iobb(detected, reference)[:, 0], iou(detected, reference)[:, 0]
            contains = ((detected - reference) * [1, 1, -1, -1] <= 0).all(axis=1)
            inside = ((detected - reference) * [1, 1, -1, -1] >= 0).all(axis=1)
            assert (lax[contains] == hard[contains]).all()
            assert (lax[inside] == 1).all()
            counts["scored_boxes"] += len(detected)
            counts["iobb_below_iou"] += int((lax < hard).sum())
            counts["containing_reference"] += int(contains.sum())
            counts["inside_reference"] += int(inside.sum())
            counts["or_rule_differs"] += sum(int((((hard > t) | (lax > t)) != (lax > t)).sum()) for t in expected["T"])
    counts["connectivity_differs"] = sum(differing_by_connectivity(synthetic, "bilinear").values())
    assert expected["counts"] == counts


def differing_by_connectivity(synthetic: dict[str, np.ndarray], upsampling: str) -> dict[str, int]:
    """How many noisy maps of each size class have other boxes by 4- than by 8-connectivity."""
    differing = {}
    for size in SIZES:
        maps = synthetic[f"{size}_noisy"]
        eight, four = (heatmap_boxes(maps, upsampling=upsampling, connectivity=c) for c in (8, 4))
        differing[size] = sum(
            any(not np.array_equal(*pair) for pair in zip(*both, strict=True)) for both in zip(eight, four, strict=True)
        )
    return differing


def test_connectivity_matters_once_for_nearest(synthetic: dict[str, np.ndarray]) -> None:
    """The published count of 0 is of bilinear maps: by nearest one large noisy map has a block at a corner."""
    assert {"large": 1, "medium": 0, "small": 0} == differing_by_connectivity(synthetic, "nearest")


@pytest.mark.parametrize("criterion", list(BOX_CRITERIA))
@pytest.mark.parametrize("size", SIZES)
def test_the_oracle(synthetic: dict[str, np.ndarray], expected: dict[str, Any], size: str, criterion: str) -> None:
    """The reference boxes themselves have Acc. 1 and AFP 0 at every T."""
    reference = synthetic[f"{size}_box"]
    perfect = {"acc": [1.0] * 5, "afp": [0.0] * 5}
    assert perfect == scores(list(reference[:, None]), reference, criterion, expected["T"])


def test_exact_boxes_as_fractions(shared: Path) -> None:
    """Areas and intersections of the published cases give its fractions, and the floats nearest to them."""
    exact = json.loads((shared / "expected" / "localization_exact_boxes.json").read_text(encoding="utf-8"))
    reference = [exact["reference"]]
    for case in exact["cases"]:
        box = [case["box"]]
        common, mine, theirs = (
            int(x.item()) for x in (intersections(box, reference), box_areas(box), box_areas(reference))
        )
        assert Fraction(case["iou"]) == Fraction(common, mine + theirs - common)
        assert Fraction(case["iobb"]) == Fraction(common, mine)
        assert float(Fraction(case["iou"])) == iou(box, reference).item()
        assert float(Fraction(case["iobb"])) == iobb(box, reference).item()


def test_boxes_of_the_maps_are_those_of_scikit_image(synthetic: dict[str, np.ndarray]) -> None:
    """Every tenth published map has the boxes of scikit-image's full-resolution path, both ways up."""
    reason = "scikit-image is not installed; the test beside the unit tests compares with SciPy"
    transform = pytest.importorskip("skimage.transform", reason=reason)
    measure = pytest.importorskip("skimage.measure", reason=reason)
    for key in [f"{size}_{variant}" for size in SIZES for variant in VARIANTS.values()]:
        maps = synthetic[key][::10]
        for order, upsampling in enumerate(("nearest", "bilinear")):
            for one, found in zip(maps, heatmap_boxes(maps, upsampling=upsampling), strict=True):
                full = transform.resize(one, (1024, 1024), order=order, mode="edge")
                values = 255 * (full - full.min()) / (full.max() - full.min())
                for level, boxes in zip((60, 180), found, strict=True):
                    props = measure.regionprops(measure.label(values > level, connectivity=2))
                    assert sorted(list(region.bbox) for region in props) == boxes.tolist()
