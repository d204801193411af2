"""K5: 984 heatmaps of 32 x 32 to boxes at 60 and 180, then IoU and IoBB at five T, against the usual libraries.

Prints one JSON object a line. The peers run on the first maps only and are scaled linearly; on those every box and
every hit must be the same, or the script fails. A peer whose package is not installed is left out. Memory is what the
process grows by while cxrspec runs on all maps. Only ratios of one run mean anything.

    python benchmarks/k5_localize.py --repeats 5
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cxrspec.metrics.boxes import iobb, iou, match_boxes, stack_boxes
from cxrspec.metrics.heatmaps import heatmap_boxes

PAIRS, SIDE, OUTPUT = 984, 32, 1024
THRESHOLDS = (60.0, 180.0)
T_VALUES = (0.1, 0.25, 0.5, 0.75, 0.9)
Floats = NDArray[np.float64]
Scored = tuple[list[list[Any]], list[Any]]
"""Boxes of each map and threshold, and hits [T] by threshold, criterion and map."""


def noisy_bumps() -> Floats:
    """Return maps of the shape of a class-activation map with much noise: about 30 boxes a map."""
    rng = np.random.default_rng(0)
    rows, cols = np.mgrid[:SIDE, :SIDE]
    maps = np.zeros((PAIRS, SIDE, SIDE))
    for one in maps:
        for _ in range(rng.integers(1, 5)):
            row, col = rng.uniform(0, SIDE, 2)
            width = rng.uniform(1.5, 6)
            one += rng.uniform(0.3, 1) * np.exp(-((rows - row) ** 2 + (cols - col) ** 2) / (2 * width**2))
    return maps + 0.05 * rng.standard_normal(maps.shape)


def smooth_bumps() -> Floats:
    """Return the same maps without noise, as a network with a wide receptive field gives them."""
    from scipy.ndimage import gaussian_filter

    return np.stack([gaussian_filter(one, 1.5) for one in noisy_bumps()])


CASES: dict[str, Callable[[], Floats]] = {"noisy maps": noisy_bumps, "smooth maps": smooth_bumps}


def reference_boxes() -> Floats:
    """Return one box in floating-point pixels for each map, of the sizes of the published ones."""
    rng = np.random.default_rng(1)
    start = rng.uniform(50, 700, (PAIRS, 2))
    return np.hstack([start, start + rng.uniform(60, 320, (PAIRS, 2))])


def score_all(maps: Floats, reference: Floats) -> Scored:
    """Localize and score all pairs with cxrspec."""
    found = heatmap_boxes(maps, output=(OUTPUT, OUTPUT), thresholds=THRESHOLDS)
    groups, hits = np.arange(len(maps)), []
    for boxes in zip(*found, strict=True):
        detected, group = stack_boxes(boxes)
        for criterion in ("iou", "iobb"):
            matches = match_boxes(
                detected, reference, criterion, T_VALUES, detected_group=group, reference_group=groups
            )
            hits.append(matches.hit)
    return [list(one) for one in found], hits


def score_singly(maps: Floats, reference: Floats, localize: Callable[[Floats], list[list[Any]]]) -> Scored:
    """Localize and score pair after pair, as one writes it with a library."""
    found = [localize(one) for one in maps]
    hits = []
    for level in range(len(THRESHOLDS)):
        for criterion in (iou, iobb):
            best = [criterion(one[level], box[None]).max(initial=0) for one, box in zip(found, reference, strict=True)]
            hits.append(np.array(best)[:, None] > T_VALUES)
    return found, hits


def rescaled(full: Floats) -> Floats:
    """Bring a full map to [0, 255]."""
    values: Floats = 255 * (full - full.min()) / (full.max() - full.min())
    return values


def with_scikit_image(one: Floats) -> list[list[Any]]:
    """Upsample, label and box by scikit-image."""
    from skimage.measure import label, regionprops
    from skimage.transform import resize

    values = rescaled(resize(one, (OUTPUT, OUTPUT), order=1, mode="edge"))
    return [sorted(r.bbox for r in regionprops(label(values > level, connectivity=2))) for level in THRESHOLDS]


def with_opencv(one: Floats) -> list[list[Any]]:
    """Upsample, label and box by OpenCV, in float64."""
    import cv2

    values = rescaled(cv2.resize(one, (OUTPUT, OUTPUT), interpolation=cv2.INTER_LINEAR))
    boxes = []
    for level in THRESHOLDS:
        stats = cv2.connectedComponentsWithStats((values > level).astype(np.uint8), connectivity=8)[2]
        boxes.append(sorted((y, x, y + height, x + width) for x, y, width, height, _ in stats[1:].tolist()))
    return boxes


# name: way from a map to its boxes, package, maps that it runs, target ratio
PEERS: dict[str, tuple[Callable[[Floats], list[list[Any]]], str, int, int]] = {
    "scikit-image": (with_scikit_image, "skimage", 12, 20),
    "OpenCV": (with_opencv, "cv2", 40, 10),
}


def timed(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the median seconds of the repeats and the last result."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), result


def peak_mb() -> float:
    """Return the high-water mark of this process's memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def check_same(mine: Scored, peer: Scored, who: str) -> None:
    """Stop where a box or a hit differs on the maps that the peer has run."""
    part = len(peer[0])
    if [[b.tolist() for b in one] for one in mine[0][:part]] != [[list(map(list, b)) for b in one] for one in peer[0]]:
        raise SystemExit(f"boxes differ from those of {who}")
    if any((ours[:part] != theirs).any() for ours, theirs in zip(mine[1], peer[1], strict=True)):
        raise SystemExit(f"hits differ from those of {who}")


def compare(case: str, repeats: int) -> None:
    """Time cxrspec on all pairs and each peer on its part; check the peers' boxes; print a line for each."""
    maps, reference = CASES[case](), reference_boxes()
    score_all(maps[:2], reference[:2])  # first calls are not timed
    before = peak_mb()
    seconds, mine = timed(lambda: score_all(maps, reference), repeats)
    row = {
        "peer": "cxrspec",
        "seconds": round(seconds, 3),
        "boxes": sum(len(boxes) for one in mine[0] for boxes in one),
        "peak_mb": round(peak_mb()),
        "grown_mb": round(peak_mb() - before),
    }
    print(json.dumps({"kernel": "K5", "case": case} | row), flush=True)
    for name in PEERS:
        print(
            json.dumps({"kernel": "K5", "case": case} | against(name, maps, reference, mine, seconds, repeats)),
            flush=True,
        )


def against(
    name: str, maps: Floats, reference: Floats, mine: Scored, seconds: float, repeats: int
) -> dict[str, str | float]:
    """Time one peer on its part, check its boxes, and return its line."""
    localize, package, part, target = PEERS[name]
    if importlib.util.find_spec(package) is None:
        return {"peer": name, "left_out": f"{package} is not installed"}
    localize(maps[0])
    peer_seconds, peer = timed(lambda: score_singly(maps[:part], reference[:part], localize), max(1, repeats // 2))
    check_same(mine, peer, name)
    scaled = peer_seconds * PAIRS / part
    return {
        "peer": name,
        "seconds": round(scaled, 2),
        "scaled_from": f"{part} of {PAIRS} maps",
        "ratio": round(scaled / seconds, 1),
        "target": target,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="timed runs of cxrspec; the peers run half as often")
    arguments = parser.parse_args()
    for case in CASES:
        compare(case, arguments.repeats)


if __name__ == "__main__":
    main()
