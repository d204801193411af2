"""The published worked example and the published boxes, through freeze, submit and score."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import Run

from cxrspec.freeze import freeze
from cxrspec.metrics.boxes import tiny_boxes
from cxrspec.metrics.heatmaps import peak_pixels
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.score import score
from cxrspec.sources import Store
from cxrspec.submit import Request, submit

pytestmark = pytest.mark.real

SIZES = ("large", "medium", "small")
PUBLISHED = "nih-cxr14-localization@bbox-2017-v1"
METRICS = "".join(
    f"""\
  - name: {kind}_{criterion}_{protocol}
    kind: {kind}
    protocol: {protocol}
    criterion: {criterion}
    at: [0.1, 0.25, 0.5, 0.75, 0.9]
    correct: ">"
{"    afp_unit: image" if kind == "afp" else ""}
    average: macro
    interval: {{method: bootstrap, unit: item, resamples: 100, level: 0.95}}
"""
    for protocol in ("heatmaps", "boxes")
    for kind in ("acc", "afp")
    for criterion in ("iou", "iobb")
)
DEFINITION = """\
benchmark: synthetic
definition_version: {upsampling}
title: The worked example of the localization criterion
task: localization
seed: 1
sources:
  made: {{kind: file, files: {{images: images.csv, boxes: boxes.csv}}, licence: CC0, attribution: nobody}}
items:
  unit: image
  source: made/images
  item_id: {{column: image, form: text}}
  group_id: {{column: image}}
  joins: {{made/boxes: image}}
findings: {{large: large, medium: medium, small: small}}
boxes: {{source: made/boxes, finding: finding, left: x, top: t, width: w, height: h}}
frame: {{width_px: 1024, height_px: 1024}}
subsets: {{test: {{pool: {{}}, select: all}}}}
protocols:
  heatmaps: {{upsampling: {upsampling}, thresholds: [60, 180], comparison: ">", connectivity: 8, images: with_finding}}
  boxes: {{images: with_finding}}
metrics:
{metrics}"""


@pytest.fixture(scope="module")
def example(shared: Path) -> dict[str, Any]:
    """The maps and boxes of the worked example."""
    with np.load(shared / "expected" / "localization_synthetic.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def registry(example: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Registry:
    """A project with the 180 reference boxes, frozen once for bilinear and once for nearest upsampling."""
    root = tmp_path_factory.mktemp("synthetic")
    names = [f"{size}{i:02d}" for size in SIZES for i in range(60)]
    (root / "images.csv").write_text("\n".join(["image", *names]))
    rows = ["image,finding,x,t,w,h"]
    for size in SIZES:
        for i, (row0, col0, row1, col1) in enumerate(example[f"{size}_box"].tolist()):
            rows.append(f"{size}{i:02d},{size},{col0},{row0},{col1 - col0},{row1 - row0}")
    (root / "boxes.csv").write_text("\n".join(rows))
    registry = Registry(root)
    for upsampling in ("bilinear", "nearest"):
        path = root / "specs" / "synthetic" / f"{upsampling}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(DEFINITION.format(upsampling=upsampling, metrics=METRICS))
        freeze(Reference("synthetic", upsampling), registry, Store(root / "cache", root=root, offline=True))
    return registry


def heatmaps(example: dict[str, Any], variant: str) -> bytes:
    """Return an archive of the maps of one variant, each under its image and size."""
    stream = io.BytesIO()
    np.savez(
        stream,
        item_id=np.array([f"{size}{i:02d}" for size in SIZES for i in range(60)]),
        finding=np.repeat(SIZES, 60),
        maps=np.concatenate([example[f"{size}_{variant}"] for size in SIZES]),
    )
    return stream.getvalue()


def boxes_text(example: dict[str, Any], localizer: str) -> bytes:
    """Return the boxes of a degenerate localizer on the noisy maps, as left, top, right, bottom."""
    rows = ["image,finding,x0,y0,x1,y1"]
    for size in SIZES:
        found = tiny_boxes(peak_pixels(example[f"{size}_noisy"]))
        for i, (row0, col0, row1, col1) in enumerate(found.tolist()):
            corners = f"{col0},{row0},{col1},{row1}" if localizer == "tiny box" else "0,0,1024,1024"
            rows.append(f"{size}{i:02d},{size},{corners}")
    return "\n".join(rows).encode()


@pytest.fixture(scope="module")
def scored(registry: Registry, example: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Every run of the example by maps and localizer (without threshold): its scores by name."""
    runs: dict[tuple[str, str], Request] = {}
    for upsampling, maps, variant in (
        ("bilinear", "noise-free", "clean"),
        ("bilinear", "noisy", "noisy"),
        ("nearest", "noisy", "noisy"),
    ):
        reference = Reference("synthetic", upsampling)
        archive = heatmaps(example, variant)
        key = (maps, f"heatmap {upsampling}")
        runs[key] = Request(reference, f"{upsampling}-{variant}", "heatmaps", archive, "maps.npz")
    form = {"format": "xyxy", "width_px": 1024, "height_px": 1024}
    for localizer in ("tiny box", "whole image"):
        text, name = boxes_text(example, localizer), localizer.replace(" ", "-")
        reference = Reference("synthetic", "bilinear")
        runs["noisy", localizer] = Request(reference, name, "boxes", text, "boxes.csv", boxes=form)
    found = {}
    for key, request in runs.items():
        submit(request, registry)
        report = score(request.reference, request.system, registry).report
        assert report is not None
        found[key] = {one["metric"]: one for one in report["scores"]}
    return found


@pytest.mark.parametrize("number", range(45))
def test_worked_example_scores_as_published(
    number: int, scored: dict[tuple[str, str], dict[str, Any]], shared: Path
) -> None:
    """Each of the 45 published rows of Acc. and AFP comes out of the product to three decimals."""
    rows = json.loads((shared / "expected" / "localization_synthetic.json").read_text())["rows"]
    assert 45 == len(rows)
    row = rows[number]
    words = row["localizer"].split()
    is_map = words[0] == "heatmap"
    scores = scored[row["maps"], " ".join(words[:2])]
    middle = f"_heatmaps_{words[2]}" if is_map else "_boxes"
    for kind in ("acc", "afp"):
        names = [f"{kind}_{row['criterion'].lower()}{middle}_t{t:g}" for t in (0.1, 0.25, 0.5, 0.75, 0.9)]
        assert row[kind] == [round(scores[name]["findings"][row["size"]]["value"], 3) for name in names]


def test_the_oracle_is_perfect(registry: Registry, example: dict[str, Any]) -> None:
    """The reference boxes themselves have Acc. 1 and AFP 0 at every T and criterion."""
    rows = ["image,finding,x,y,w,h"]
    for size in SIZES:
        for i, (row0, col0, row1, col1) in enumerate(example[f"{size}_box"].tolist()):
            rows.append(f"{size}{i:02d},{size},{col0},{row0},{col1 - col0},{row1 - row0}")
    form = {"format": "xywh", "width_px": 1024, "height_px": 1024}
    reference = Reference("synthetic", "bilinear")
    submit(Request(reference, "oracle", "boxes", "\n".join(rows).encode(), "oracle.csv", boxes=form), registry)
    report = score(reference, "oracle", registry).report
    assert report is not None
    assert {("acc", 1.0), ("afp", 0.0)} == {(one["kind"], one["value"]) for one in report["scores"]}


def test_published_boxes_freeze_and_the_baselines_score(run: Run, frozen: Any) -> None:
    """The 984 published boxes freeze; the whole image hits every box only in so far as the box fills it."""
    frozen(PUBLISHED)
    for kind in ("whole-image", "mean-box", "tiny-box"):
        run("baseline", "boxes", PUBLISHED, "--kind", kind)
    reports = json.loads(run("score", PUBLISHED, "--json").stdout)
    found = {one["report"]["system"]: {s["metric"]: s["value"] for s in one["report"]["scores"]} for one in reports}
    assert found["whole-image"]["acc_iobb_t0.1"] == found["whole-image"]["acc_iou_t0.1"]
    assert (
        found["tiny-box"]["acc_iobb_t0.9"] > found["mean-box"]["acc_iobb_t0.9"] > found["whole-image"]["acc_iobb_t0.9"]
    )
    assert 0 == found["tiny-box"]["acc_iou_t0.1"]
