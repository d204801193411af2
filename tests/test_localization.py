"""The localization task through freeze, submit and score, on four made-up images."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cxrspec.errors import CxrspecError
from cxrspec.fields import Column
from cxrspec.freeze import freeze
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.score import score
from cxrspec.sources import Store
from cxrspec.submit import Request, submit
from cxrspec.tasks.localization.reference import read_cell
from project import Project

REF = Reference("boxed", "v1")
FORM = {"format": "xywh", "width_px": 16, "height_px": 8}
DEFINITION = """\
benchmark: boxed
definition_version: v1
title: Two findings on four images
task: localization
seed: 1
sources:
  made: {{kind: file, files: {{images: images.csv, boxes: boxes.csv}}, licence: CC0, attribution: nobody}}
items:
  unit: image
  source: made/images
  item_id: {{column: image, form: file_name}}
  group_id: {{column: patient}}
  joins: {{made/boxes: image}}
findings: {{infiltration: Infiltrate, mass: Mass}}
aliases: {{infiltration: [Infiltration]}}
boxes: {{source: made/boxes, finding: finding, left: x, top: t, width: w, height: h}}
frame: {{width_px: 16, height_px: 8}}
subsets: {{test: {{pool: {{}}, select: all}}}}
protocols:
  heatmaps: {{upsampling: nearest, thresholds: [60, 180], comparison: ">", connectivity: 8, images: {images}}}
  boxes: {{images: {images}}}
metrics:
{metrics}
"""
METRIC = """\
  - name: {name}
    kind: {kind}
    protocol: {protocol}
    criterion: {criterion}
    at: [0.25, 0.5]
    correct: "{correct}"
    {unit}
    average: macro
    interval: {{method: bootstrap, unit: item, resamples: 100, level: 0.9, max_left_out: 1.0}}
"""
IMAGES = "image,patient\na.png,p\nb.png,p\nc.png,q\nd.png,r\n"
BOXES = (
    "image,finding,x,t,w,h\n"
    "a.png,Mass,0,0,4,4\na.png,Mass,8,0,4,4\nb.png,mass,0,0,8,8\nc.png,Infiltration,2,2,4.5,4\nd.png,Infiltrate,0,0,2,2\n"
)


def metrics(correct: str = ">") -> str:
    """Return Acc. and AFP under both criteria, for both protocols."""
    return "".join(
        METRIC.format(
            name=f"{kind}_{criterion}{'_map' if protocol == 'heatmaps' else ''}",
            kind=kind,
            protocol=protocol,
            criterion=criterion,
            correct=correct,
            unit="afp_unit: box_row" if kind == "afp" else "",
        )
        for protocol in ("boxes", "heatmaps")
        for kind in ("acc", "afp")
        for criterion in ("iou", "iobb")
    )


Make = Callable[..., Registry]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write the project and freeze it."""

    def run(boxes: str = BOXES, images: str = "all", **changes: str) -> Registry:
        path = tmp_path / "specs" / "boxed" / "v1.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(DEFINITION.format(images=images, metrics=metrics(**changes)))
        (tmp_path / "images.csv").write_text(IMAGES)
        (tmp_path / "boxes.csv").write_text(boxes)
        registry = Registry(tmp_path)
        freeze(REF, registry, Store(tmp_path / "cache", root=tmp_path, offline=True))
        return registry

    return run


def refusal(run: Callable[[], object]) -> str:
    """Return the text of a refusal."""
    with pytest.raises(CxrspecError) as refused:
        run()
    return str(refused.value)


def scores(registry: Registry, rows: str, system: str = "ours") -> dict[str, Any]:
    """Submit boxes and return the scores by name."""
    data = f"image,finding,x,y,w,h\n{rows}".encode()
    submit(Request(REF, system, "boxes", data, "b.csv", boxes=FORM), registry)
    report = score(REF, system, registry).report
    assert report is not None
    return {one["metric"]: one for one in report["scores"]}


def test_the_frozen_cell_holds_every_box_in_ascending_order(make: Make) -> None:
    """N1: Rows in any order and any spelling of a finding give the same cell, numbers in their shortest form."""
    header, *rows = BOXES.splitlines()
    registry = make("\n".join([header, *reversed(rows)]))
    table = registry.read_subset(Reference("boxed", "v1", subset="test"))
    assert ["0,0,4,4;8,0,4,4", "0,0,8,8", "", ""] == table.column("mass")
    assert ["", "", "2,2,4.5,4", "0,0,2,2"] == table.column("infiltration")


def test_boxes_are_counted_for_the_lock(make: Make) -> None:
    """Boxes and images per finding, and all box rows, stand in the lock."""
    counts = make().read_lock(REF).subsets["test"]
    assert ({"infiltration": 2, "mass": 3}, 5) == (counts["boxes"], counts["box_rows"])
    assert {"infiltration": 2, "mass": 2} == counts["images_with"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a.png,Nodule,0,0,1,1", "unknown finding 'Nodule', for a"),
        ("a.png,Mass,0,0,x,1", "'0,0,x,1' is not four numbers, for a"),
        ("a.png,Mass,0,0,nan,1", "'0,0,nan,1' is not four numbers, for a"),
        ("a.png,Mass,0,0,0,1", "the box 0,0,0,1 has no area, for a"),
        ("a.png,Mass,10,0,7,1", "the box 10,0,7,1 reaches out of the frame of 16 x 8 pixels, for a"),
        ("z.png,Mass,0,0,1,1", "1 rows name no item of the roster: z"),
    ],
)
def test_a_faulty_reference_box_is_refused(make: Make, row: str, message: str) -> None:
    """A box list with a row that is none freezes nothing."""
    assert message in refusal(lambda: make(f"{BOXES}{row}\n"))


def test_scores_of_boxes_by_hand(make: Make) -> None:
    """One of three masses is hit; the second box lies outside of any: one false positive in five box rows."""
    found = scores(make(), "a.png,Mass,0,0,4,4\nb.png,Mass,12,4,2,2\n")
    for criterion in ("iou", "iobb"):
        assert pytest.approx(1 / 3) == found[f"acc_{criterion}_t0.5"]["findings"]["mass"]["value"]
        assert pytest.approx(1 / 5) == found[f"afp_{criterion}_t0.5"]["findings"]["mass"]["value"]
        assert 0 == found[f"acc_{criterion}_t0.5"]["findings"]["infiltration"]["value"]
    assert pytest.approx(1 / 6) == found["acc_iou_t0.5"]["value"]


def test_several_boxes_may_match_one_and_none_is_then_false(make: Make) -> None:
    """Two detections inside one reference box are both correct under IoBB, and hit it once."""
    found = scores(make(), "b.png,Mass,0,0,2,2\nb.png,Mass,4,4,2,2\n")
    assert pytest.approx(1 / 3) == found["acc_iobb_t0.5"]["findings"]["mass"]["value"]
    assert 0 == found["afp_iobb_t0.5"]["findings"]["mass"]["value"]
    assert pytest.approx(2 / 5) == found["afp_iou_t0.5"]["findings"]["mass"]["value"]


@pytest.mark.parametrize(("correct", "hits"), [(">", 0), (">=", 1)])
def test_a_box_exactly_on_t_is_correct_only_where_the_definition_says_so(make: Make, correct: str, hits: int) -> None:
    """A quarter of the 8 x 8 box has IoU 0.25 exactly."""
    found = scores(make(correct=correct), "b.png,Mass,0,0,4,4\n")
    assert pytest.approx(hits / 3) == found["acc_iou_t0.25"]["findings"]["mass"]["value"]


def test_the_oracle_is_perfect(make: Make) -> None:
    """The reference boxes themselves have Acc. 1 and AFP 0 at every T and criterion."""
    found = scores(make(), BOXES.split("\n", 1)[1].replace("mass", "Mass"))
    assert {("acc", 1.0), ("afp", 0.0)} == {(one["kind"], one["value"]) for one in found.values()}


def test_a_finding_without_a_reference_box_is_undefined(make: Make) -> None:
    """Acc. has nothing to divide by: null with the reason, and so has the mean."""
    registry = make("\n".join(line for line in BOXES.splitlines() if "nfiltrat" not in line))
    found = scores(registry, "b.png,Mass,0,0,4,4\n")["acc_iou_t0.5"]
    assert (None, "no reference box") == tuple(found["findings"]["infiltration"][key] for key in ("value", "reason"))
    assert (None, "undefined for infiltration: no reference box") == (found["value"], found["reason"])
    assert found["findings"]["mass"]["value"] is not None


def test_predictions_count_only_where_they_are_expected(make: Make) -> None:
    """With `with_finding`, a box on an image without the finding is left aside, and AFP is per box of the finding."""
    registry = make(images="with_finding")
    found = scores(registry, "c.png,Mass,0,0,4,4\nb.png,Mass,12,4,2,2\n")
    assert pytest.approx(1 / 3) == found["afp_iou_t0.5"]["findings"]["mass"]["value"]
    report = score(REF, "ours", registry).report
    assert report is not None
    assert 1 == report["predictions"]["n_left_aside"]


def archive(maps: np.ndarray) -> bytes:
    """Return maps of both findings on all four images."""
    stream = io.BytesIO()
    np.savez(stream, item_id=np.array(list("abcd")), infiltration=maps, mass=maps)
    return stream.getvalue()


def test_heatmaps_become_boxes_at_each_threshold(make: Make) -> None:
    """A map that is bright in its upper left quarter gives the box 0,0,8,4, which is half of b's mass."""
    registry = make()
    maps = np.zeros((4, 2, 2))
    maps[:, 0, 0] = 1
    submit(Request(REF, "maps", "heatmaps", archive(maps), "m.npz"), registry)
    report = score(REF, "maps", registry).report
    assert report is not None
    found = {one["metric"]: one["findings"]["mass"] for one in report["scores"]}
    assert 8 == len([name for name in found if "_60_" in name]) == len([name for name in found if "_180_" in name])
    assert (4, 4) == (found["acc_iou_map_60_t0.25"]["n_detected"], found["acc_iou_map_180_t0.25"]["n_detected"])
    assert pytest.approx(2 / 3) == found["acc_iou_map_60_t0.25"]["value"]  # IoU 16/32 with a's first, 32/64 with b's


def test_a_constant_map_has_no_box(make: Make) -> None:
    """S17: No range, no box: nothing is hit and nothing is false."""
    registry = make()
    submit(Request(REF, "flat", "heatmaps", archive(np.ones((4, 2, 2))), "m.npz"), registry)
    report = score(REF, "flat", registry).report
    assert report is not None
    assert {0.0} == {one["value"] for one in report["scores"]}


def test_intervals_resample_images(make: Make) -> None:
    """The interval of a finding's Acc. is that of the ratio of sums over the documented resamples."""
    from cxrspec.metrics import resample_counts

    found = scores(make(), "a.png,Mass,0,0,4,4\n")["acc_iou_t0.5"]["findings"]["mass"]
    weights = resample_counts("1:test:item", 0, 4).astype(float)
    with np.errstate(invalid="ignore"):
        values = weights[0] / (2 * weights[0] + weights[1])
    low, high = np.nanquantile(values, [0.05, 0.95])
    assert pytest.approx((low, high)) == (found["intervals"][0]["low"], found["intervals"][0]["high"])
    assert int(np.isnan(values).sum()) == found["intervals"][0]["n_left_out"]


def test_boxes_without_their_form_are_refused(make: Make) -> None:
    """Four numbers mean nothing until the submission says what they are."""
    registry = make()
    request = Request(REF, "ours", "boxes", b"image,finding,x,y,w,h\na.png,Mass,0,0,1,1\n", "b.csv")
    assert "--box-format xywh --frame 1024x1024" in refusal(lambda: submit(request, registry))


@pytest.mark.parametrize(
    ("kind", "box"),
    [("whole-image", "0.0\t0.0\t16.0\t8.0"), ("mean-box", "0.0\t0.0\t8.0\t8.0"), ("tiny-box", "1.0\t1.0\t6.0\t6.0")],
)
def test_baselines_see_the_boxes_of_other_images_only(make: Make, tmp_path: Path, kind: str, box: str) -> None:
    """The mean box of a's mass is b's alone; the tiny box is its centre; the whole image needs none."""
    make()
    assert 0 == Project(tmp_path).run("baseline", "boxes", str(REF), "--kind", kind).code
    rows = (tmp_path / f"registry/boxed/v1/submissions/{kind}/predictions.tsv").read_text()
    assert f"a\tmass\t{box}" in rows


def test_a_picture_shows_reference_and_detected_boxes(make: Make, tmp_path: Path) -> None:
    """`show --picture` draws one item and finding; an unknown item, or a reference without system, is refused."""
    scores(make(), "a.png,Mass,0,0,4,4\n")
    project = Project(tmp_path)
    drawn = project.run("show", f"{REF}/ours", "--picture", "a:mass")
    assert (0, True) == (drawn.code, drawn.out.startswith("<svg"))
    assert (2, 1) == (drawn.out.count('class="reference"'), drawn.out.count('class="detected"'))
    assert 1 == project.run("show", f"{REF}/ours", "--picture", "z:mass").code
    assert 2 == project.run("show", str(REF), "--picture", "a:mass").code


def test_a_cell_reads_back_as_half_open_corners() -> None:
    """Left, top, width, height become row0, col0, row1, col1."""
    assert [(2.0, 1.0, 6.0, 4.0)] == read_cell("1,2,3,4")
    assert [] == read_cell("")


def test_contradicting_metrics_are_refused() -> None:
    """Two metrics of one name, AFP without a unit and two subsets of one protocol are named with their places."""
    from cxrspec.tasks.localization import LocalizationTask

    one = {"name": "a", "kind": "acc", "protocol": "boxes", "subset": "test"}
    document = {"metrics": [one, {**one, "kind": "afp", "subset": "other"}]}
    issues = {".".join(map(str, issue.path)) for issue in LocalizationTask.check_references(document, {})}
    assert {"metrics.1.name", "metrics.1.subset", "metrics.1.afp_unit"} == issues


def test_source_columns_name_the_box_list() -> None:
    """The compiler asks for the finding and the four numbers of the box list."""
    from cxrspec.tasks.localization.reference import BoxColumns

    names = {"finding": "f", "left": "x", "top": "t", "width": "w", "height": "h"}
    columns = BoxColumns(source="made/boxes", **names).columns
    assert [Column(column=name, source="made/boxes") for name in names.values()] == columns
