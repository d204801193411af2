"""What git's history and DVC's files know of a lock, whatever was done to hide it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import md5
from pathlib import Path

import pytest

from cxrspec.errors import RegistryError
from cxrspec.provenance import DvcFiles, Git
from project import Project, refusal, run_command

NAME = "registry/tiny/v1/lock.json"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a git repository with one commit that knows no lock."""
    project = Project(tmp_path)
    project.git("init", "-q", "-b", "main")
    project.write("readme", "")
    project.commit("Start")
    return project


def first(project: Project) -> tuple[str, bytes] | None:
    """Return the first commit that added the lock, as a new process finds it."""
    found = Git(project.root).first_commit(project.path(NAME))
    return found and (found.id, found.data)


def add(project: Project, content: str) -> str:
    """Commit a lock with this content."""
    project.write(NAME, content)
    return project.commit(f"Lock {content}")


def test_a_folder_without_git_knows_nothing(tmp_path: Path) -> None:
    """Outside a repository there is no history, which is no error."""
    assert (False, None) == (Git(tmp_path).is_repository, Git(tmp_path).first_commit(tmp_path / NAME))


def test_a_repository_without_a_commit_knows_nothing(tmp_path: Path) -> None:
    """A repository that was only just made has no HEAD, which is no error."""
    Project(tmp_path).git("init", "-q")
    assert (True, None) == (Git(tmp_path).is_repository, Git(tmp_path).first_commit(tmp_path / NAME))


def test_a_lock_that_is_not_committed_is_not_known(project: Project) -> None:
    """A file of the work tree, even a staged one, is no history."""
    project.write(NAME, "one")
    project.git("add", "-A")
    assert first(project) is None


def _kept(project: Project) -> None:
    """Leave the lock as it is."""


def _changed(project: Project) -> None:
    add(project, "two")


def _deleted(project: Project) -> None:
    project.path(NAME).unlink()
    project.commit("Delete")
    project.path(NAME).parent.rmdir()


def _added_again(project: Project) -> None:
    _deleted(project)
    add(project, "two")


def _deleted_without_a_commit(project: Project) -> None:
    project.path(NAME).unlink()


def _moved(project: Project) -> None:
    project.git("mv", NAME, "elsewhere")
    project.commit("Move")


def _merged(project: Project) -> None:
    project.git("checkout", "-q", "-b", "side")
    add(project, "two")
    project.git("checkout", "-q", "main")
    project.write("other", "")
    project.commit("Other")
    project.git("merge", "-q", "-m", "Merge", "side")


def _replaced(project: Project) -> None:
    commit = project.git("rev-parse", "HEAD").strip()
    _changed(project)
    project.git("replace", commit, "HEAD")


def _followed(project: Project) -> None:
    project.git("config", "log.follow", "true")
    project.git("config", "log.showSignature", "true")
    _moved(project)
    add(project, "two")


@pytest.mark.parametrize(
    "then",
    [_kept, _changed, _deleted, _added_again, _deleted_without_a_commit, _moved, _merged, _replaced, _followed],
)
def test_the_first_commit_is_found_whatever_came_after(project: Project, then: Callable[[Project], None]) -> None:
    """Neither later commits nor settings of git hide the commit that added a lock first."""
    commit = add(project, "one")
    then(project)
    assert (commit, b"one") == first(project)


def test_a_lock_that_a_merge_itself_added_is_known(project: Project) -> None:
    """A file that stands in no parent of a merge was added by the merge."""
    project.git("checkout", "-q", "-b", "side")
    project.write("side", "")
    project.commit("Side")
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "--no-ff", "--no-commit", "side")
    commit = add(project, "one")
    assert (commit, b"one") == first(project)


def test_a_branch_that_overrules_the_first_lock_in_a_merge_is_found_out(project: Project) -> None:
    """Two lines of history that began with different locks are told apart, although git's short history shows one."""
    project.git("branch", "evil")
    honest = add(project, "one")
    project.git("checkout", "-q", "evil")
    evil = add(project, "two")
    project.git("merge", "-q", "-s", "ours", "-m", "Merge", "main")
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "--ff-only", "evil")
    [(code, text)] = refusal(lambda: first(project))
    assert ("frozen-changed", True) == (code, all(commit[:12] in text for commit in (honest, evil)))
    assert "froze different content in separate histories" in text


def test_two_colleagues_who_froze_the_same_bytes_agree(project: Project) -> None:
    """The same lock committed on two branches is no contradiction."""
    project.git("branch", "side")
    add(project, "one")
    project.git("checkout", "-q", "side")
    add(project, "one")
    project.git("merge", "-q", "-m", "Merge", "main")
    found = first(project)
    assert found is not None
    assert b"one" == found[1]


def test_a_project_in_a_folder_of_a_repository_is_known_too(project: Project) -> None:
    """The project need not be the top of its repository."""
    inner = Project(project.path("inner"))
    inner.write(NAME, "one")
    commit = project.commit("Lock")
    assert (commit, b"one") == first(inner)


def test_a_hook_of_another_repository_does_not_mislead(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables that git sets in hooks name a repository, but not the one that holds the lock."""
    commit = add(project, "one")
    other = Project(project.path("other"))
    other.write("x", "")
    other.git("init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other.path(".git")))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.root))
    assert (commit, b"one") == first(project)


def test_a_shallow_clone_says_that_it_may_not_know_the_first(project: Project) -> None:
    """In a history that was cut, the oldest commit seems to have added everything."""
    add(project, "one")
    add(project, "two")
    run_command("git", "clone", "-q", "--depth", "1", f"file://{project.root}", "clone", cwd=project.root)
    found = Git(project.path("clone")).first_commit(project.path("clone") / NAME)
    assert found is not None
    assert (b"two", False) == (found.data, found.is_certain)


def test_a_repository_that_git_cannot_read_is_never_taken_for_none(project: Project) -> None:
    """A failure of git must not unfreeze what its history holds."""
    add(project, "one")
    project.write(".git/config", "[core")
    [(code, text)] = refusal(lambda: first(project))
    assert ("git-unreadable", True) == (code, "git fails here: fatal: bad config line" in text)


def test_a_lost_object_is_never_taken_for_an_unknown_lock(project: Project) -> None:
    """A commit whose content git cannot show is a failure, not the absence of a lock."""
    add(project, "one")
    blob = project.git("rev-parse", f"HEAD:{NAME}").strip()
    project.path(f".git/objects/{blob[:2]}/{blob[2:]}").unlink()
    assert ["git-unreadable"] == [code for code, _ in refusal(lambda: first(project))]


def test_a_machine_without_git_cannot_tell(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository without the command git is a failure too."""
    add(project, "one")
    monkeypatch.setenv("PATH", os.devnull)
    [(code, text)] = refusal(lambda: first(project))
    assert ("git-unreadable", True) == (code, "the command git cannot be run" in text)


# -- DVC


def record(project: Project, text: str = "content", file: str = "dvc.lock", **entry: str) -> None:
    """Write a file with one hash of registry/a, the right one for `text` unless told otherwise."""
    path = "registry/a" if file == "dvc.lock" else "a"
    out = {"path": path, "md5": md5(text.encode()).hexdigest(), "hash": "md5", **entry}
    document = {"stages": {"one": {"cmd": "x", "outs": [out]}}} if file == "dvc.lock" else {"outs": [out]}
    project.write(file, json.dumps(document))
    project.write("dvc.yaml", json.dumps({"stages": {"one": {"cmd": "x"}}}))


def recorded(project: Project, name: str = "registry/a") -> str | None:
    """Return the hash that a new process finds for a file."""
    found = DvcFiles(project.root).recorded.get(project.path(name))
    return found and found.md5


@pytest.mark.parametrize("file", ["dvc.lock", "registry/a.dvc"])
def test_hashes_are_read_from_both_kinds_of_file(project: Project, file: str) -> None:
    """An out of a stage and an added file have a recorded hash."""
    record(project, file=file)
    assert md5(b"content").hexdigest() == recorded(project)


def test_a_file_that_is_a_link_into_the_cache_keeps_its_hash(project: Project) -> None:
    """D2: a path is looked up as it is written, not where its link leads."""
    project.write("cache/object", "content")
    project.path("registry").mkdir()
    project.path("registry/a").symlink_to("../cache/object")
    record(project)
    assert md5(b"content").hexdigest() == recorded(project)


def test_a_hash_of_an_old_dvc_is_of_the_text_without_carriage_returns() -> None:
    """D3: before DVC 3 the MD5 of a text was taken after CRLF became LF; a new one is of the raw bytes."""
    assert (True, False) == tuple(matches_crlf(entry) for entry in ({"hash": ""}, {"hash": "md5"}))


def matches_crlf(entry: dict[str, str]) -> bool:
    """Return whether a hash of LF text stands for the text with CRLF."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        record(Project(Path(folder)), "a\nb\n", "registry/a.dvc", **entry)
        return DvcFiles(Path(folder)).recorded[Path(folder, "registry/a")].matches(b"a\r\nb\r\n")


def test_the_field_of_an_old_dvc_is_known(project: Project) -> None:
    """D3: `md5-dos2unix` is read like the `md5` of an entry without `hash`."""
    project.write("registry/a.dvc", json.dumps({"outs": [{"path": "a", "md5-dos2unix": "0" * 32}]}))
    found = DvcFiles(project.root).recorded[project.path("registry/a")]
    assert ("0" * 32, False) == (found.md5, found.is_raw)


def test_folders_have_no_hash_of_their_own(project: Project) -> None:
    """The hash of a folder is that of a list of files, which proves no file."""
    record(project, md5=f"{'0' * 32}.dir")
    assert recorded(project) is None


CONFLICT = "stages:\n<<<<<<< HEAD\n  one: {}\n=======\n  two: {}\n>>>>>>> other\n"
TWICE = "stages:\n  one: {outs: [{path: registry/a, md5: '1'}]}\n  one: {outs: [{path: registry/a, md5: '2'}]}\n"
TWO = "stages:\n  one: {outs: [{path: registry/a, md5: '1'}, {path: registry/a, md5: '2'}]}\n"
DELETE = "Delete it and run 'dvc repro' again; never merge it by hand"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CONFLICT, "holds merge conflict markers"),
        (TWICE, "holds the key 'one' twice"),
        (TWO, "two hashes are recorded for registry/a, here and in dvc.lock"),
        ("stages: [", "is not readable"),
        ("[]", "is not a file as DVC writes it"),
        ("stages: {one: 1}", "is not a file as DVC writes it"),
        ("stages: {one: {outs: [{md5: '1'}]}}", "is not a file as DVC writes it"),
    ],
)
def test_a_half_merged_lock_is_never_parsed(project: Project, text: str, message: str) -> None:
    """D1: conflict markers, a key or a path that stands twice, and damage are refused with the way to mend them."""
    record(project)
    project.write("dvc.lock", text)
    assert [("file-unsafe", f"dvc.lock: {message}. {DELETE}")] == refusal(lambda: recorded(project))


def test_two_files_that_record_one_path_with_two_hashes_are_refused(project: Project) -> None:
    """D1: an added file that is also the out of a stage must have one hash."""
    record(project, "one")
    record(project, "two", "registry/a.dvc")
    [(code, text)] = refusal(lambda: recorded(project))
    assert ("file-unsafe", True) == (code, "two hashes are recorded for registry/a, here and in dvc.lock" in text)


def test_a_stage_that_dvc_yaml_no_longer_has_counts_only_where_nothing_else_is_known(project: Project) -> None:
    """DVC keeps entries of renamed stages; they contradict nothing, but they still know a lock that was deleted."""
    stages = {
        "old": {"outs": [{"path": "registry/a", "md5": "1"}, {"path": "registry/b", "md5": "2"}]},
        "new": {"outs": [{"path": "registry/a", "md5": "3"}]},
    }
    project.write("dvc.lock", json.dumps({"stages": stages}))
    project.write("dvc.yaml", json.dumps({"stages": {"new": {}}}))
    assert ("3", "2") == (recorded(project), recorded(project, "registry/b"))


def test_a_stage_with_a_folder_of_its_own_records_paths_from_there(project: Project) -> None:
    """`wdir` moves the paths of a stage."""
    project.write("dvc.lock", json.dumps({"stages": {"one": {"outs": [{"path": "a", "md5": "1"}]}}}))
    project.write("dvc.yaml", json.dumps({"stages": {"one": {"wdir": "registry"}}}))
    assert "1" == recorded(project)


def test_nothing_of_this_imports_dvc_or_yaml_before_it_is_needed() -> None:
    """Commands that read no DVC file do not pay for it."""
    code = "import sys, cxrspec.provenance; print(sorted({'dvc', 'yaml', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]\n" == done.stdout


def test_an_error_of_git_is_one_that_a_user_can_mend(project: Project) -> None:
    """The refusal is a RegistryError like any other."""
    project.write(".git/config", "[core")
    with pytest.raises(RegistryError, match="Mend that first"):
        _ = Git(project.root).is_repository
