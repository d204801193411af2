"""Numbers that others printed: kept as printed, shown beside ours, never ranked."""

from pathlib import Path

import pytest

from cxrspec.reported import load_reported
from project import Project, frozen_project, refusal

ENTRY = """\
format: 1
system: chexnet
title: CheXNet
reference: tiny@v1
comparable: "no"
reason: a split of its own
publication: {citation: A paper, place: Table 2}
values:
  - {metric: mean ROC-AUC, value: "0.8410"}
"""
FILE = "registry/tiny/reported/chexnet.yaml"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project with one reported result."""
    project = frozen_project(tmp_path)
    project.write(FILE, ENTRY)
    return project


def test_a_value_keeps_its_digits(project: Project) -> None:
    """A number is text: no digit is gained or lost."""
    [entry] = load_reported(project.registry, "tiny")
    assert "0.8410" == entry.as_json()["values"][0]["value"]


def test_what_others_reported_of_an_unfrozen_benchmark_is_shown(project: Project) -> None:
    """Nothing is frozen, and that is said; the entry stands there all the same, beside boards of other benchmarks."""
    project.write("registry/other/reported/chexnet.yaml", ENTRY.replace("reference: tiny@v1\n", ""))
    ran = project.run("leaderboard", "other")
    assert (0, "") == (ran.code, ran.err)
    assert "other  no version is frozen, so nothing is scored" in ran.out
    assert "reported, not ranked: CheXNet: mean ROC-AUC 0.8410" in ran.out
    found = project.run("leaderboard", "other", "tiny", "--json").json
    assert [("other", 1), ("tiny@v1", 1)] == [(board["reference"], len(board["reported"])) for board in found]
    assert 2 == project.run("leaderboard", "nothing").code


def test_a_benchmark_without_reported_results_has_none(project: Project) -> None:
    """No folder is no error."""
    assert [] == load_reported(project.registry, "other")


@pytest.mark.parametrize(
    ("old", "new", "code", "place"),
    [
        ('comparable: "no"', "comparable: no", "yaml-bare-word", "5:13 comparable"),
        ('comparable: "no"', "comparable: perhaps", "field-value", "5:1 comparable"),
        ('value: "0.8410"', "value: 0.8410", "field-type", "9:28 values[0].value"),
        ('value: "0.8410"', 'value: "about 0.84"', "field-value", "9:28 values[0].value"),
        ("reason: a split of its own\n", "", "field-missing", "1:1 reason"),
        ("system: chexnet", "sistem: chexnet", "field-unknown", "2:1 sistem"),
        ("reference: tiny@v1", "reference: tiny@v9", "reference-unknown", "4:1 reference"),
        ("reference: tiny@v1", "reference: tiny@v1:test", "reference-unknown", "4:1 reference"),
        ("reference: tiny@v1", "reference: other@v1", "reference-unknown", "4:1 reference"),
    ],
)
def test_a_faulty_entry_is_named_with_its_place(project: Project, old: str, new: str, code: str, place: str) -> None:
    """Y1-Y5: an entry is as strict as a definition, and one that no leaderboard would ever show is refused."""
    project.edit(FILE, old, new)
    assert (code, f"{FILE}:{place}") in {
        (code, text.split(": ")[0]) for code, text in refusal(lambda: load_reported(project.registry, "tiny"))
    }


def test_all_files_are_told_at_once(project: Project) -> None:
    """One faulty entry hides no other."""
    for name in ("a", "b"):
        project.write(f"registry/tiny/reported/{name}.yaml", ENTRY.replace("format: 1", "format: 2"))
    assert ["field-value"] * 2 == [code for code, _ in refusal(lambda: load_reported(project.registry, "tiny"))]


def test_an_entry_may_claim_no_definition(project: Project) -> None:
    """Numbers that match no definition are shown with every version."""
    project.edit(FILE, "reference: tiny@v1\n", "")
    assert [None] == [entry.reference for entry in load_reported(project.registry, "tiny")]
