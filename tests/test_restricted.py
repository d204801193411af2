"""What may not be passed on: the competition's rows stay on the machine that has them, through every way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from competition import TEST, competition, predictions_csv
from project import Project
from test_flow import dvc

REMOTE = "[core]\n remote = r\n['remote \"r\"']\n url = {}\n"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The competition frozen, scored, committed and pushed, by the commands that a user runs."""
    root = tmp_path_factory.mktemp("restricted")
    project = Project(competition(root / "here").root)
    project.write(".gitignore", "/.cxrspec/\n/mirror/\n/registry/*/*/*.tsv\n/registry/*/*/submissions/*/predictions.*\n"
                  "!/registry/*/*/submissions/*/predictions.*.dvc\n")  # fmt: skip
    project.write(".dvc/config", REMOTE.format(root / "remote"))
    project.write(".dvc/.gitignore", "/config.local\n/tmp\n/cache\n")
    project.git("init", "-q", "-b", "main")
    mirror = str(project.path("mirror"))
    assert 0 == project.run("freeze", str(TEST), "--mirror", mirror).code
    file = project.write("../p.csv", predictions_csv())
    ran = project.run("submit", str(TEST), "--system=ours", "--protocol=zero_shot", f"--predictions={file}")
    assert (0, True) == (ran.code, "leaves these predictions on this machine" in ran.err)
    dvc(project, "repro", "-P")
    project.commit("Freeze and score")
    dvc(project, "push")
    return project


def test_dvc_push_sends_no_row(here: Project) -> None:
    """The remote holds no file at all: tables and predictions have `push: false`."""
    assert [] == [path for path in here.path("../remote").rglob("*") if path.is_file()]


def test_no_row_is_in_git(here: Project) -> None:
    """Not one study's path stands in any file that git knows."""
    assert "patient6474" not in here.git("log", "-p", "--all")


def test_items_asks_for_the_flag(here: Project) -> None:
    """Printing rows needs a word that says that one knows the terms."""
    ran = here.run("items", f"{TEST}:test")
    assert (1, True) == (ran.code, "--restricted" in ran.err)
    assert 501 == here.run("items", f"{TEST}:test", "--restricted").out.count("\n")


def test_a_clone_without_the_files_is_not_broken(here: Project, tmp_path: Path) -> None:
    """What is not on this machine is not checked; nothing is called broken, and strict mode says that it is missing."""
    here.git("clone", "-q", str(here.root), str(tmp_path / "there"))
    clone = Project(tmp_path / "there")
    audits = clone.run("audit", "--json")
    states = {link["name"]: link["state"] for one in audits.json for link in one["links"]}
    assert 0 == audits.code, audits.out
    assert ("not checked", "not checked", "held") == (states["table test"], states["scored again"], states["lock"])
    assert 1 == clone.run("audit", "--strict").code


def test_nobody_is_sent_to_a_remote_that_has_nothing(here: Project, tmp_path: Path) -> None:
    """Files that are never pushed stay with their owner: no message names `dvc pull`, each says how they are made."""
    here.git("clone", "-q", str(here.root), str(tmp_path / "there"))
    clone = Project(tmp_path / "there")
    said = [clone.run(*command) for command in (
        ("items", f"{TEST}:test", "--restricted"), ("audit", str(TEST)), ("status",),
        ("score", f"{TEST}/ours"), ("curves", f"{TEST}/ours", "--to", "out", "--restricted"))]  # fmt: skip
    texts = [one.out + one.err for one in said]
    assert not any("dvc pull" in text for text in texts)
    assert "so no remote has it: it stays with its owner. There, run 'cxrspec freeze" in texts[0]
    assert f"cxrspec freeze {TEST}" in texts[2]


def test_a_clone_keeps_report_and_leaderboard(here: Project, tmp_path: Path) -> None:
    """Scoring without the predictions leaves the report as it is, and the board shows it."""
    here.git("clone", "-q", str(here.root), str(tmp_path / "there"))
    clone = Project(tmp_path / "there")
    before = clone.path(f"registry/{TEST.benchmark}/{TEST.version}/reports/ours.json").read_bytes()
    clone.run("score", str(TEST))
    assert before == clone.path(f"registry/{TEST.benchmark}/{TEST.version}/reports/ours.json").read_bytes()
    assert "mean_auroc_5" in clone.run("leaderboard", str(TEST)).out


@pytest.mark.parametrize("name", ["lock.json", "reports/ours.json", "leaderboard.json", "leaderboard.md"])
def test_what_git_holds_names_no_study(here: Project, name: str) -> None:
    """Locks, reports and boards hold counts and digests only."""
    assert "patient6" not in here.path(f"registry/{TEST.benchmark}/{TEST.version}/{name}").read_text()
