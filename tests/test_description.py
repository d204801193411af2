"""What a definition says of itself: caveats travel to everything that prints a number."""

from pathlib import Path

import pytest

from cxrspec.description import current_description
from cxrspec.report.leaderboard import leaderboard
from cxrspec.strict_yaml import load_document
from project import REF, SPEC, Project, frozen_project

SPECS = sorted(Path(__file__).parents[1].glob("specs/nih-*/*.yaml"))
MINED = ("mined from reports", "F1", "trained on ChestX-ray14")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project with one scored system."""
    return frozen_project(tmp_path)


def test_a_caveat_found_after_freezing_is_printed_with_every_number(project: Project) -> None:
    """The lock keeps its text, and score, definition and leaderboard say what the file says today."""
    project.edit(SPEC, "It is tiny.", "It is very tiny.")
    assert ["It is tiny."] == project.lock.document["description"]["caveats"]
    assert ["It is very tiny."] == leaderboard(REF, project.registry)["caveats"]
    for command in (["show", "tiny@v1"], ["show", "tiny@v1/ours"], ["leaderboard"]):
        assert "  - It is very tiny.\n" in project.run(*command).out
    ran = project.run("validate", SPEC)
    assert (0, True) == (ran.code, "without effect on any score: caveats" in ran.err)


@pytest.mark.parametrize("edit", [("seed: 7", "seed: 8"), ("seed: 7", "seed: -7")], ids=["edited", "faulty"])
def test_a_file_that_is_another_definition_says_nothing(project: Project, edit: tuple[str, str]) -> None:
    """The words of an edited or faulty file are of something else; the lock's stand."""
    project.edit(SPEC, *edit)
    project.edit(SPEC, "It is tiny.", "It is huge.")
    assert ["It is tiny."] == current_description(project.lock, project.registry)["caveats"]


def test_without_a_file_the_lock_speaks(project: Project) -> None:
    """A registry is readable without its definitions."""
    project.path(SPEC).unlink()
    assert project.lock.document["description"] == current_description(project.lock, project.registry)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_every_shipped_definition_carries_what_touches_it(path: Path) -> None:
    """One institution for all; mined labels, one reader and the lenience of IoBB, or the size of the test set."""
    definition = load_document(path, shown_as=path.name)[0]
    text = " ".join(definition["caveats"])
    wanted = ["one institution"]
    if definition["task"] == "localization":
        wanted += ["One radiologist drew the boxes", "IoBB is lenient", "small test set"]
    elif "adjudicated" in definition["benchmark"]:
        wanted += ["reading of radiologists", "small test set", "Average precision depends on prevalence"]
    else:
        wanted += [*MINED, "Average precision depends on prevalence"]
    assert [] == [words for words in wanted if words not in text]
