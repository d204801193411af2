"""Curves of a system: the picture of its own, the files of data, and what DVC draws of them."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.metrics import precision_recall_curve, roc_curve

from competition import COMPARISON, OBSERVATIONS, TASKS, TEST, Competition, competition, labels, predictions
from cxrspec.curves import curve_files, system_curves
from cxrspec.errors import SubmissionError
from cxrspec.metrics import ReaderPoint, curve_points
from cxrspec.reference import Reference
from cxrspec.report.curves import curves_picture, on_grid, panel_picture
from cxrspec.tasks import Curves, Task
from project import GIT_IDENTITY, Project, frozen_project

OURS = Reference(TEST.benchmark, TEST.version, system="ours")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Competition:
    """The competition with one system; not to be changed."""
    found = competition(tmp_path_factory.mktemp("curves"))
    found.freeze()
    found.submit()
    return found


def drawn(readers: int = 3, title: str = "t") -> ElementTree.Element:
    """Return the picture of eight items and some readers, parsed."""
    points = curve_points(np.array([1, 0, 1, 0, 0, 1, 0, 0]), np.linspace(1, 0, 8))
    assert points is not None
    known = {f"r{i}": ReaderPoint(0.5, 0.6, 0.4) for i in range(readers)}
    vote = ReaderPoint(0.0, 1.0, None) if readers % 2 else None
    return ElementTree.fromstring(curves_picture(title, Curves(points, known, vote)))


def rows(data: bytes) -> list[dict[str, str]]:
    """Return the rows of a file of data."""
    return list(csv.DictReader(io.StringIO(data.decode())))


def test_every_reader_stands_on_both_panels() -> None:
    """A mark per reader on ROC and on precision-recall; a vote that calls nothing has no precision."""
    panels = drawn(3).findall(f"{SVG}g[@class]")
    names = [[mark.findtext(f"{SVG}title") for mark in panel.findall(f"{SVG}g[@class='reader']")] for panel in panels]
    assert [["r0", "r1", "r2", "majority vote"], ["r0", "r1", "r2"]] == names


def test_a_reader_stands_at_the_own_point() -> None:
    """Right by 1 - specificity and up by sensitivity, of a panel of 300."""
    mark = drawn(1).find(f".//{SVG}g[@class='reader']")
    assert mark is not None
    assert "translate(120 150)" == mark.get("transform")


@pytest.mark.parametrize("readers", [0, 2, 7])
def test_any_number_of_readers_is_drawn(readers: int) -> None:
    """None, an even number without a vote, more than there are shapes."""
    text = "".join(drawn(readers).itertext())
    assert (readers % 2 == 1) == ("majority vote" in text)
    assert all(f"r{i}: sensitivity 0.500" in text for i in range(readers))


def test_no_title_breaks_the_picture() -> None:
    """What XML cannot hold is replaced, what it reads as markup is escaped; nothing is fetched."""
    title = 'a <b> & "c" \x00'
    root = drawn(1, title)
    assert title.replace("\x00", "\ufffd") == root.findtext(f"{SVG}title")
    assert not [one for one in root.iter() if {"href", "src"} & set(one.keys())]


def test_a_panel_of_a_page_says_what_it_shows() -> None:
    """An image with a title, which its texts cannot break out of, and the readers' points in words."""
    points = curve_points(np.array([1, 0, 1, 0]), np.linspace(1, 0, 4))
    assert points is not None
    root = ElementTree.fromstring(panel_picture("roc", "<&>", Curves(points, {"r": ReaderPoint(0.5, 0.6, 0.4)}, None)))
    assert ("img", "ROC curve of <&>") == (root.get("role"), root.findtext("title"))
    assert "r: sensitivity 0.500, specificity 0.600, precision 0.400" in str(root.findtext("desc"))


def test_precision_does_not_rise_from_nothing() -> None:
    """The highest score is positive: at no recall called, the line is already at precision 1."""
    line = drawn(0).find(f".//{SVG}g[@class='precision_recall']/{SVG}path[@class='curve']")
    assert line is not None
    assert str(line.get("d")).startswith("M0 0L")


def test_a_grid_keeps_ends_and_corners_only() -> None:
    """Repeats and points on a straight run go; a turn back along the same line stays."""
    points = [(0, 0), (0, 0.25), (0, 0.5), (0, 0.5001), (0.5, 0.5), (0.5, 1), (0.5, 0.75), (1, 1)]
    assert [(0, 0), (0, 0.5), (0.5, 0.5), (0.5, 1), (0.5, 0.75), (1, 1)] == on_grid(points)


def test_no_point_of_a_curve_is_finer_than_the_grid() -> None:
    """However many rows there are, a curve tells at most its grid."""
    found = on_grid((at / 99_999, (at / 99_999) ** 0.3) for at in range(100_000))
    assert len(found) <= 801
    assert found == [(round(x * 400) / 400, round(y * 400) / 400) for x, y in found]


def test_files_hold_the_curves_of_scikit_learn(made: Competition) -> None:
    """Every vertex of both curves."""
    files = curve_files(system_curves(OURS, made.registry, restricted=True))
    truth, scores = labels()[:, OBSERVATIONS.index("Edema")], predictions()[:, TASKS.index("Edema")]
    fpr, tpr, _ = roc_curve(truth, scores, drop_intermediate=False)
    roc = rows(files["test.edema.roc.csv"])
    assert fpr == pytest.approx([float(row["false_positive_rate"]) for row in roc])
    assert tpr == pytest.approx([float(row["true_positive_rate"]) for row in roc])
    precision, recall, _ = precision_recall_curve(truth, scores)
    pr = rows(files["test.edema.precision_recall.csv"])[::-1]
    assert precision[:-1] == pytest.approx([float(row["precision"]) for row in pr])
    assert recall[:-1] == pytest.approx([float(row["recall"]) for row in pr])


def test_files_hold_the_points_of_the_readers(made: Competition) -> None:
    """The same numbers as in the report, the vote among them."""
    found = rows(curve_files(system_curves(OURS, made.registry, restricted=True))["readers.csv"])
    report = made.score()["scores"][1]["findings"]["edema"]
    of_edema = {row["reader"]: row for row in found if row["finding"] == "edema"}
    assert [*COMPARISON, "majority vote"] == list(of_edema)
    assert report["readers"]["bc6"]["sensitivity"] == float(of_edema["bc6"]["true_positive_rate"])
    assert report["majority_vote"]["precision"] == float(of_edema["majority vote"]["precision"])


def test_the_command_writes_the_same_files_twice(tmp_path: Path) -> None:
    """A picture and two files of data per finding; nothing in the registry changes."""
    project = frozen_project(tmp_path / "project")
    before = project.files()
    assert 0 == project.run("curves", "tiny@v1/ours", "--to", "out").code
    first = project.files("out")
    again = project.run("curves", "tiny@v1/ours", "--to", "out", "--json")
    assert {f"out/{name}" for name in again.json["files"]} == set(first)
    assert first == project.files("out")
    assert before == project.files()
    kinds = ("precision_recall.csv", "roc.csv", "svg")
    assert {*(f"out/test.{f}.{kind}" for f in ("edema", "effusion") for kind in kinds), "out/dvc.yaml"} == set(first)


def test_curves_are_of_a_system(tmp_path: Path) -> None:
    """Without one, wrong usage."""
    assert 2 == frozen_project(tmp_path / "project").run("curves", "tiny@v1", "--to", "out").code


def test_a_curve_that_gives_labels_away_is_said(made: Competition, tmp_path: Path) -> None:
    """Where rows may not be passed on, curves ask for the flag, and git never sees them."""
    project, to = Project(made.root), tmp_path / "out"
    refused = project.run("curves", str(OURS), "--to", str(to))
    assert (1, True, False) == (refused.code, "Add --restricted" in refused.err, to.exists())
    to.mkdir()
    (to / ".gitignore").write_text("/own\n")
    ran = project.run("curves", str(OURS), "--to", str(to), "--restricted")
    assert (0, True) == (ran.code, f"keep it here; {to / '.gitignore'} keeps it out of git" in ran.err)
    subprocess.run(["git", "init", "-q", str(to)], check=True)
    listed = subprocess.run(["git", "status", "--porcelain"], cwd=to, check=True, capture_output=True, text=True).stdout
    assert ["?? .gitignore", "?? dvc.yaml"] == listed.splitlines()
    assert "/own" == (to / ".gitignore").read_text().splitlines()[0]


def test_a_task_without_curves_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes have no thresholds of items."""
    project = frozen_project(tmp_path / "project")
    monkeypatch.setattr("cxrspec.tasks.findings.FindingsTask.curves", Task.curves)
    with pytest.raises(SubmissionError, match="the task 'findings' has no curves"):
        system_curves(Reference("tiny", "v1", system="ours"), project.registry)


def test_dvc_draws_the_files(tmp_path: Path) -> None:
    """`dvc plots show` finds the curves and draws every one of them."""
    project = frozen_project(tmp_path / "project")
    project.write(".dvc/config", "")
    project.run("curves", "tiny@v1/ours", "--to", "out")
    environment = {**os.environ, **GIT_IDENTITY, "DVC_NO_ANALYTICS": "1"}
    command = [sys.executable, "-m", "dvc", "plots", "show", "--out", "drawn"]
    done = subprocess.run(command, cwd=project.root, env=environment, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    page = project.path("drawn/index.html").read_text()
    assert all(
        f"test.{finding}.{curve}" in page for finding in ("edema", "effusion") for curve in ("roc", "precision_recall")
    )
