"""What waits for a maintainer, each with the command that mends it."""

import shutil
from hashlib import md5
from pathlib import Path

import pytest

from cxrspec.reference import Reference
from cxrspec.status import project_status
from project import (
    DEFINITION,
    FOLDER,
    LOCK,
    SPEC,
    Project,
    authored_project,
    frozen_project,
    record_in_dvc,
    refusal,
    scores_csv,
)

NEWER = ("title:", "supersedes: v1\ntitle:")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project with one scored system."""
    return frozen_project(tmp_path)


def waiting(project: Project, *, hashing: bool = False) -> list[tuple[str, str, str]]:
    """Return reference, state and command of everything that waits."""
    found = project_status(project.registry, hashing=hashing)
    return [(str(one.of), one.state, one.command) for one in found]


def test_nothing_waits_where_all_is_done(project: Project) -> None:
    """A frozen definition whose one system is scored asks for nothing."""
    assert [] == waiting(project, hashing=True)
    ran = project.run("status")
    assert (0, "nothing waits: all definitions are frozen, all submissions scored\n") == (ran.code, ran.out)


def test_an_authored_definition_waits_to_be_frozen(tmp_path: Path) -> None:
    """What has no lock, here or in git, is frozen next."""
    assert [("tiny@v1", "authored", "cxrspec freeze tiny@v1")] == waiting(authored_project(tmp_path))


def test_a_faulty_definition_waits_to_be_mended(tmp_path: Path) -> None:
    """The first fault is shown, and the command that shows all of them."""
    project = authored_project(tmp_path)
    project.edit(SPEC, "seed: 7", "seed: -7")
    assert [("tiny@v1", "faulty", "cxrspec validate specs/tiny/v1.yaml")] == waiting(project)
    assert 1 == project.run("status").code


def test_a_source_of_this_machine_that_is_gone_is_out_of_reach(tmp_path: Path) -> None:
    """Freezing would fail, so it is said before."""
    project = authored_project(tmp_path)
    project.path("data/labels.csv").unlink()
    assert ("tiny@v1", "out of reach", "put data/labels.csv there") == waiting(project)[1]


def test_a_submission_waits_for_its_score(project: Project) -> None:
    """Neither scored, nor scored with the predictions that it has now."""
    project.submit("new")
    project.edit_json(f"{FOLDER}/reports/ours.json", lambda report: report["predictions"].update(sha256="0" * 64))
    assert [
        ("tiny@v1/new", "unscored", "cxrspec score tiny@v1/new"),
        ("tiny@v1/ours", "outdated", "cxrspec score tiny@v1/ours"),
    ] == waiting(project)


def test_a_frozen_definition_without_a_system_is_unscored(project: Project) -> None:
    """A benchmark that nobody is scored on yet is named."""
    shutil.rmtree(project.path(f"{FOLDER}/submissions"))
    assert [("tiny@v1", "unscored")] == [one[:2] for one in waiting(project)]


def test_labels_alone_wait_for_no_system(project: Project) -> None:
    """Nothing can be submitted where nothing is scored, and `submit` and `score` say so."""
    start, end = DEFINITION.index("protocols:"), DEFINITION.index("expect:")
    project.freeze(project.define("labels", (DEFINITION[start:end], "protocols: {}\nmetrics: []\n")))
    assert [] == waiting(project)
    [(_, text)] = refusal(lambda: project.submit("new", reference=Reference("tiny", "labels")))
    assert "tiny@labels has no protocol: it freezes items and their labels, and nothing is scored on it" in text
    assert "tiny@labels has no protocol" in project.run("score", "tiny@labels").err


def test_a_system_on_a_superseded_version_is_stale(project: Project) -> None:
    """The same subsets take the same predictions; others need new ones."""
    project.freeze(project.define("v2", NEWER, ("resamples: 100", "resamples: 200")))
    assert ("tiny@v1/ours", "stale", "cxrspec submit tiny@v2 --from tiny@v1/ours") == waiting(project)[0]
    three = ("column: set, one_of: test", "column: image, one_of: [t00.png, t01.png, t02.png]")
    counts = ("  test: {items: 20, positives: {edema: 7, effusion: 10}}\n", "")
    project.freeze(project.define("v3", ("title:", "supersedes: v2\ntitle:"), three, counts))
    assert "cxrspec submit tiny@v3 --system ours --predictions FILE ..." == waiting(project)[0][2]


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_a_system_that_went_along_any_branch_is_not_stale(project: Project, version: str) -> None:
    """v2 and v3 stand side by side after v1: a system on one of them is up to date, there and on v1."""
    for name in ("v2", "v3"):
        reference = project.define(name, NEWER, ("resamples: 100", f"resamples: {name[1]}00"))
        project.freeze(reference)
    reference = reference.parse(f"tiny@{version}")
    project.submit("ours", scores_csv(), reference)
    project.score("ours", reference)
    assert [] == [one for one in waiting(project) if one[1] == "stale"]


def test_a_version_that_is_not_frozen_makes_nothing_stale(project: Project) -> None:
    """A draft supersedes nothing yet; what stands behind it in the line does."""
    project.define("v2", NEWER, ("resamples: 100", "resamples: 200"))
    assert ["authored"] == [one[1] for one in waiting(project)]
    project.freeze(project.define("v3", ("title:", "supersedes: v2\ntitle:"), ("resamples: 100", "resamples: 300")))
    assert ("tiny@v1/ours", "stale", "cxrspec submit tiny@v3 --from tiny@v1/ours") == waiting(project)[0]


def test_an_edited_frozen_definition_is_altered(project: Project) -> None:
    """The way on is the next version, as `validate` says."""
    project.edit(SPEC, "seed: 7", "seed: 8")
    [(of, state, command)] = waiting(project)
    assert ("tiny@v1", "altered", True) == (of, state, "cxrspec new tiny@v1 NEW_VERSION" in command)
    assert 1 == project.run("status").code


def test_a_lock_that_only_git_knows_is_altered(project: Project) -> None:
    """Deleting a lock does not unfreeze."""
    project.path(LOCK).unlink()
    assert [("tiny@v1", "altered", "cxrspec freeze tiny@v1")] == waiting(project)


def test_an_edited_lock_is_altered(project: Project) -> None:
    """Git's first commit of the lock is what it must be."""
    project.edit_json(LOCK, lambda lock: lock["description"].update(title="x"))
    [(of, state, command)] = waiting(project)
    assert ("tiny@v1", "altered", True) == (of, state, command.startswith("Restore it with 'git checkout "))


def test_an_altered_table_is_found_by_hashing(project: Project) -> None:
    """Without the flag no table is read."""
    project.edit(f"{FOLDER}/test.tsv", "t00\tp00\t1", "t00\tp00\t0")
    assert [] == waiting(project)
    assert [("tiny@v1", "altered")] == [one[:2] for one in waiting(project, hashing=True)]


def test_a_missing_table_comes_from_where_it_is(project: Project) -> None:
    """From DVC's cache, from its remote, or by compiling again."""
    table = f"{FOLDER}/test.tsv"
    record_in_dvc(project, table)
    content = project.path(table).read_bytes()
    project.path(table).unlink()
    assert [("tiny@v1", "out of reach", "cxrspec freeze tiny@v1")] == waiting(project)
    project.write(".dvc/config", "['remote \"r\"']\n    url = /r\n")
    assert [("tiny@v1", "out of reach", "dvc pull")] == waiting(project)
    digest = md5(content).hexdigest()
    project.write(f".dvc/cache/files/md5/{digest[:2]}/{digest[2:]}", content)
    assert [("tiny@v1", "not checked out", f"dvc checkout --recursive {FOLDER}")] == waiting(project)


def test_missing_predictions_are_out_of_reach(project: Project) -> None:
    """Their report stands; who wants to score again is told how they come back."""
    project.path(f"{FOLDER}/submissions/ours/predictions.csv").unlink()
    assert [("tiny@v1/ours", "out of reach", "dvc repro -P")] == waiting(project)


def test_a_submission_for_another_version_is_refused(project: Project) -> None:
    """A folder that was copied to the next version does not make a submission for it."""
    reference = project.define("v2", ("resamples: 100", "resamples: 200"))
    project.freeze(reference)
    shutil.copytree(project.path(f"{FOLDER}/submissions/ours"), project.path("registry/tiny/v2/submissions/ours"))
    [(of, state, command)] = waiting(project)
    assert ("tiny@v2/ours", "refused", True) == (of, state, "cxrspec submit tiny@v2 --from tiny@v1/ours" in command)
    assert 1 == project.run("status", "--json").code


def test_a_submission_that_cannot_be_read_is_refused(project: Project) -> None:
    """Its fault is shown; the others stand."""
    project.write(f"{FOLDER}/submissions/bad/submission.yaml", "format: 2\n")
    assert [("tiny@v1/bad", "refused", "cxrspec score tiny@v1/bad")] == waiting(project)


def test_status_prints_the_command_under_each_thing(project: Project) -> None:
    """Two lines each: what and why, then what to type."""
    project.submit("new")
    ran = project.run("status")
    assert (0, "unscored  tiny@v1/new  not scored yet\n    cxrspec score tiny@v1/new\n") == (ran.code, ran.out)
