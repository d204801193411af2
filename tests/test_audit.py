"""The chain of evidence: every link is broken alone, with all else made consistent, and named."""

import json
import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from cxrspec.audit import Audit, audit_definition, audit_system, systems_to_audit
from cxrspec.digest import Table, combined_id, json_digest, json_text
from cxrspec.reference import Reference
from project import (
    FOLDER,
    LOCK,
    REF,
    SPEC,
    Project,
    authored_project,
    broken,
    embeddings_csv,
    frozen_names,
    frozen_project,
    record_in_dvc,
    run_command,
    states,
)

REPORT = f"{FOLDER}/reports/ours.json"
PREDICTIONS = f"{FOLDER}/submissions/ours/predictions.csv"
SUBMISSION = f"{FOLDER}/submissions/ours/submission.yaml"
DEFINITION_LINKS = {
    "lock", "definition", "dvc", "commit",
    *(f"table {name}" for name in ("roster", "test", "test.covariates", "train", "train.covariates")),
}  # fmt: skip
SYSTEM_LINKS = {"submission", "predictions", "dvc predictions", "scored again", "overlap"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen, committed project whose files DVC has recorded, with one scored system."""
    project = frozen_project(tmp_path / "project")
    record(project)
    project.commit("Record")
    return project


def record(project: Project) -> None:
    """Make DVC's hashes those of the files as they are."""
    record_in_dvc(project, *frozen_names(project), PREDICTIONS)


def both(project: Project, *, deep: bool = False) -> list[str]:
    """Return the links that are broken, of the definition and of the system."""
    return [*broken(project.audit(deep=deep)), *broken(project.audit_system())]


def detail(audit: Audit, name: str) -> str:
    """Return what is said of a link."""
    return next(link.detail for link in audit.links if link.name == name)


def rewrite_lock(project: Project, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a lock and make its own digests, and DVC's, consistent again."""
    document = json.loads(project.path(LOCK).read_bytes())
    change(document)
    document["definition_digest"] = json_digest(document["definition"])
    document["combined_id"] = combined_id({name: one["digest"] for name, one in document["subsets"].items()})
    project.path(LOCK).write_bytes(json_text(document))
    record(project)


def test_an_untouched_project_holds_in_every_link(project: Project) -> None:
    """Every link is held, also compiled again, and `--strict` has nothing to say."""
    audits = (project.audit(), project.audit_system())
    assert (DEFINITION_LINKS, SYSTEM_LINKS) == tuple(set(states(one)) for one in audits)
    assert {"held"} == {state for one in audits for state in states(one).values()}
    assert "held" == states(project.audit(deep=True))["compiled again"]
    assert all(one.is_sound(strict=True) for one in audits)


def test_an_audit_writes_nothing(project: Project) -> None:
    """Every file of the project has its bytes and its time afterwards."""
    before = {name: (data, project.path(name).stat().st_mtime_ns) for name, data in project.files(".").items()}
    project.audit(deep=True)
    project.audit_system()
    assert before == {name: (data, project.path(name).stat().st_mtime_ns) for name, data in project.files(".").items()}


def test_an_audit_says_what_the_numbers_stand_on(project: Project) -> None:
    """Definition, subset ids, sizes and sources come with the links."""
    basis = project.audit_system().as_json()["basis"]
    assert {"id": project.lock.subset_ids["test"], "items": 20, "groups": 10} == basis["subsets"]["test"]
    assert project.lock.document["sources"] == basis["sources"]


# -- each link alone


def test_lock(tmp_path: Path) -> None:
    """A lock that was first committed with a digest that is not its own breaks `lock` and nothing else."""
    project = authored_project(tmp_path)
    project.git("init", "-q")
    project.freeze()
    project.edit_json(LOCK, lambda lock: lock.update(combined_id="0" * 16))
    names = [name for name in project.files(FOLDER) if name.endswith((".tsv", ".json"))]
    record_in_dvc(project, *names)
    project.commit("Freeze")
    assert ["lock"] == broken(project.audit())


def test_definition(project: Project) -> None:
    """An edited definition file breaks `definition` alone; compiled again, it gives other digests."""
    project.edit(SPEC, "seed: 7", "seed: 8")
    assert ["definition"] == both(project)
    assert "these fields were changed: seed" in detail(project.audit(), "definition")
    assert ["definition", "compiled again"] == both(project, deep=True)


@pytest.mark.parametrize("table", ["roster", "test", "test.covariates", "train", "train.covariates"])
def test_table(project: Project, table: str) -> None:
    """A table with other bytes, DVC's hash made to match, breaks its link; scores that stand on it follow."""
    path = project.path(f"{FOLDER}/{table}.tsv")
    path.write_bytes(path.read_bytes().replace(b"0", b"1", 1))
    record(project)
    follows = ["scored again"] if table == "test" else []
    assert [f"table {table}", *follows] == both(project)


@pytest.mark.parametrize(
    ("table", "part"), [("test", lambda lock: lock["subsets"]["test"]), ("roster", lambda lock: lock["roster"])]
)
def test_a_count_of_the_lock(project: Project, table: str, part: Any) -> None:
    """A lock that counts other rows than its table has breaks the link of that table; the commit tells, too."""
    rewrite_lock(project, lambda lock: part(lock).update(groups=9))
    assert [f"table {table}", "commit"] == both(project)
    assert "groups, not 9 as the lock counts" in detail(project.audit(), f"table {table}")


def test_dvc(project: Project) -> None:
    """A hash in dvc.lock that is another file's breaks `dvc` alone, and names file and place."""
    project.edit(
        "dvc.lock", json.loads(project.path("dvc.lock").read_text())["stages"]["all"]["outs"][2]["md5"], "0" * 32
    )
    assert ["dvc"] == both(project)
    assert f"the MD5 that DVC recorded is another for {FOLDER}/test.tsv (in dvc.lock)" == detail(project.audit(), "dvc")


def test_commit(project: Project) -> None:
    """A lock with another title, its own digests, DVC and the definition file made to match, breaks `commit` alone."""
    rewrite_lock(project, lambda lock: lock["description"].update(title="Mine"))
    project.edit(SPEC, "title: A tiny benchmark", "title: Mine")
    assert ["commit"] == both(project, deep=True)
    assert "froze another lock; this one differs in description.title" in detail(project.audit(), "commit")


def test_compiled_again(project: Project) -> None:
    """A source without a pin that changed since breaks `compiled again` alone."""
    project.edit("data/labels.csv", "x00.png,p30", "x00.png,p31")
    assert [] == both(project)
    assert ["compiled again"] == both(project, deep=True)
    assert "gives other roster.digest, roster.groups, sources.labels.main.sha256" in detail(
        project.audit(deep=True), "compiled again"
    )


@pytest.mark.parametrize("edit", [("reference: tiny@v1", "reference: tiny@v0"), ("system: ours", "system: theirs")])
def test_submission(project: Project, edit: tuple[str, str]) -> None:
    """A submission made for something else breaks `submission`; it cannot be scored again, which follows."""
    project.edit(SUBMISSION, *edit)
    assert ["submission", "scored again"] == both(project)


def test_predictions_that_are_others(project: Project) -> None:
    """Predictions with other bytes, DVC's hash made to match, break `predictions`; scoring again follows."""
    project.edit(PREDICTIONS, "t00", "t00 ")
    record(project)
    assert ["predictions", "scored again"] == both(project)
    assert "submission.yaml says" in detail(project.audit_system(), "predictions")


def test_predictions_of_another_report(project: Project) -> None:
    """Predictions, submission and DVC rewritten together break `predictions` through the report."""
    project.edit(PREDICTIONS, "t00", "t00 ")
    digest = sha256(project.path(PREDICTIONS).read_bytes()).hexdigest()
    old = project.report()["predictions"]["sha256"]
    project.edit(SUBMISSION, old, digest)
    record(project)
    assert ["predictions", "scored again"] == both(project)
    assert "the report was computed from other predictions" in detail(project.audit_system(), "predictions")


def test_dvc_predictions(project: Project) -> None:
    """A hash of the predictions that is another file's breaks `dvc predictions` alone."""
    project.edit(
        "dvc.lock", json.loads(project.path("dvc.lock").read_text())["stages"]["all"]["outs"][-1]["md5"], "0" * 32
    )
    assert ["dvc predictions"] == both(project)


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("scores[0].value", lambda report: report["scores"][0].update(value=0.9)),
        ("scores[0].findings.edema.value", lambda report: report["scores"][0]["findings"]["edema"].update(value=0.9)),
        ("scores[1].intervals[0].high", lambda report: report["scores"][1]["intervals"][0].update(high=1.0)),
        ("definition_digest", lambda report: report.update(definition_digest="0" * 64)),
        ("trained_on", lambda report: report.update(trained_on="nothing")),
    ],
)
def test_scored_again(project: Project, path: str, change: Any) -> None:
    """A report that was edited breaks `scored again` alone, and the number is named."""
    project.edit_json(REPORT, change)
    assert ["scored again"] == both(project)
    assert f"scoring again gives other {path}" == detail(project.audit_system(), "scored again")


def test_a_probe_off_by_more_than_its_tolerance_is_named(project: Project) -> None:
    """S13: within the tolerance a probe holds, beyond it the value is named."""
    project.submit("fitted", embeddings_csv(), protocol="probe")
    project.score("fitted")
    name = f"{FOLDER}/reports/fitted.json"
    value = project.report("fitted")["scores"][0]["value"]
    for off, expected in ((4.9e-4, []), (5.1e-4, ["scored again"])):
        project.edit_json(name, lambda report, off=off: report["scores"][0].update(value=value + off))
        assert expected == broken(project.audit_system("fitted"))


def test_everything_rewritten_together_still_fails(project: Project) -> None:
    """Table, lock, submission, DVC and report made to agree: the first commit tells, and so does compiling again."""
    path = project.path(f"{FOLDER}/test.tsv")
    table = Table.decode(path.read_bytes())
    table.columns[2][0] = "0" if table.columns[2][0] == "1" else "1"
    new = Table(table.header, table.columns)
    path.write_bytes(new.text)
    old_id = project.lock.subset_ids["test"]
    rewrite_lock(project, lambda lock: lock["subsets"]["test"].update(digest=new.digest))
    project.edit(SUBMISSION, old_id, project.lock.subset_ids["test"])
    project.score()
    project.commit("Rewrite everything")
    assert ["commit"] == both(project)
    assert "differs in combined_id, subsets.test.digest" in detail(project.audit(), "commit")
    assert ["commit", "compiled again"] == both(project, deep=True)


# -- what is absent, and what cannot be read


def test_a_clone_without_data_is_sound_but_not_strictly(project: Project) -> None:
    """What is not on this machine is not checked, with the reason; only `--strict` minds."""
    run_command("git", "clone", "-q", str(project.root), "clone", cwd=project.root.parent)
    clone = Project(project.root.parent / "clone")
    audits = (clone.audit(), clone.audit_system())
    absent = {name for one in audits for name, state in states(one).items() if state == "not checked"}
    tables = {name for name in DEFINITION_LINKS if name.startswith("table ")}
    assert {*tables, "dvc", "predictions", "dvc predictions", "scored again"} == absent
    assert (True, False) == tuple(all(one.is_sound(strict=strict) for one in audits) for strict in (False, True))
    assert "is not on this machine. Run 'dvc pull'" in detail(clone.audit(), "table test")


def test_compiling_again_without_the_source_is_not_checked(project: Project) -> None:
    """A source out of reach proves nothing either way."""
    elsewhere = "files: {main: {url: 'https://x.invalid/a', sha256: " + "0" * 64 + "}}"
    project.edit(SPEC, "files: {main: data/labels.csv}", elsewhere)
    project.edit(SPEC, "kind: file", "kind: url")
    assert "not checked" == states(project.audit(deep=True))["compiled again"]


def test_a_shallow_clone_cannot_tell_the_first_commit(project: Project) -> None:
    """Where history is cut, the commit is not checked, and the way to mend it is said."""
    run_command("git", "clone", "-q", "--depth", "1", f"file://{project.root}", "clone", cwd=project.root.parent)
    audit = Project(project.root.parent / "clone").audit()
    assert "not checked" == states(audit)["commit"]
    assert "run 'git fetch --unshallow'" in detail(audit, "commit")


def test_a_project_without_git_has_no_commit_to_check(project: Project) -> None:
    """Outside a repository nothing vouches for the lock but its own digests."""
    shutil.rmtree(project.path(".git"))
    assert "not checked" == states(project.audit())["commit"]


def test_a_lock_that_is_not_committed_is_not_checked(tmp_path: Path) -> None:
    """Until the lock is committed, nobody else can have seen it."""
    project = authored_project(tmp_path)
    project.git("init", "-q")
    project.freeze()
    assert f"{LOCK} is not committed yet" == detail(project.audit(), "commit")
    assert "not checked" == states(project.audit())["commit"]


def test_a_git_that_fails_leaves_the_commit_unchecked(project: Project) -> None:
    """A repository that cannot be read is no proof of a change, and no proof of none."""
    project.write(".git/config", "[core")
    assert "not checked" == states(project.audit())["commit"]


@pytest.mark.parametrize("text", ["<<<<<<< HEAD\n", "stages: {a: {}}\nstages: {b: {}}\n"])
def test_a_half_merged_dvc_lock_breaks_the_links_of_dvc(project: Project, text: str) -> None:
    """D1: conflict markers and keys that stand twice are named with the way to mend them; all else is still checked."""
    project.write("dvc.lock", text)
    assert ["dvc", "dvc predictions"] == both(project)
    assert "Delete it and run 'dvc repro' again" in detail(project.audit(), "dvc")


def test_a_definition_file_that_is_gone_is_not_checked(project: Project) -> None:
    """Whoever has only the registry can still check the rest."""
    project.path(SPEC).unlink()
    assert "not checked" == states(project.audit())["definition"]
    assert "not checked" == states(project.audit(deep=True))["compiled again"]


def test_a_lock_that_is_gone_is_broken_and_found_in_git(project: Project) -> None:
    """A deleted lock is named with the commit that has it."""
    project.path(LOCK).unlink()
    assert {"lock": "broken"} == states(project.audit())
    assert "but commit" in detail(project.audit(), "lock")


def test_an_edited_lock_is_audited_to_the_end(project: Project) -> None:
    """One broken link hides no other: every link is told."""
    project.edit_json(LOCK, lambda lock: lock["definition"].update(seed=8))
    assert {"lock", "definition", "dvc", "commit"} == set(broken(project.audit()))
    assert DEFINITION_LINKS == set(states(project.audit()))


def test_a_report_without_a_submission_is_broken(project: Project) -> None:
    """A report is not vouched for by itself: its submission must be there."""
    shutil.rmtree(project.path(f"{FOLDER}/submissions/ours"))
    assert ["ours"] == systems_to_audit(REF, project.registry)
    assert ["submission"] == broken(project.audit_system())


def test_a_submission_without_a_report_is_not_scored_yet(project: Project) -> None:
    """A report that is missing is no break: it can be made."""
    project.path(REPORT).unlink()
    assert "not checked" == states(project.audit_system())["scored again"]


def test_a_damaged_report_is_broken(project: Project) -> None:
    """Half a report breaks the links that read it."""
    project.write(REPORT, "{")
    assert ["predictions", "scored again", "overlap"] == both(project)


def test_an_altered_cached_object_is_found(project: Project) -> None:
    """D2: same size, same time, still read-only, linked into the work tree: hashing tells all the same."""
    path, cached = project.path(f"{FOLDER}/test.tsv"), project.path("cached")
    os.link(path, cached)
    stat = path.stat()
    cached.write_bytes(path.read_bytes().replace(b"\t1\t", b"\t0\t", 1))
    os.utime(cached, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    cached.chmod(0o444)
    now = path.stat()
    assert (stat.st_size, stat.st_mtime_ns, stat.st_ino) == (now.st_size, now.st_mtime_ns, now.st_ino)
    assert ["table test", "dvc", "scored again"] == both(project)


def test_an_unknown_reference_has_no_chain(project: Project) -> None:
    """What was never frozen breaks at the first link, for definition and system alike."""
    reference = Reference("tiny", "v9")
    audits = (audit_definition(reference, project.registry), audit_system(reference, "ours", project.registry))
    assert [{"lock": "broken"}] * 2 == [states(one) for one in audits]
