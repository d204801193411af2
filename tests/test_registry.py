"""The registry: what is read from it is proved, what is written to it is whole."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cxrspec import registry as registry_module
from cxrspec.errors import RegistryError
from cxrspec.files import holding
from cxrspec.lock import LOCK_FORMAT
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from project import FOLDER, LOCK, REF, Project, frozen_project, refusal


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project with one scored system."""
    return frozen_project(tmp_path)


def test_the_nearest_folder_with_specs_is_the_project(project: Project) -> None:
    """A command works in every folder of a project."""
    assert project.root.resolve() == Registry.find(project.path(FOLDER)).root


def test_outside_a_project_the_message_says_what_is_missing(tmp_path: Path) -> None:
    """Without a folder 'specs' anywhere above, there is no registry."""
    with pytest.raises(RegistryError, match=r"no folder 'specs' in .* or above it. Go to a cxrspec project"):
        Registry.find(tmp_path)


def test_a_definition_that_is_not_frozen_is_named_with_those_that_are(project: Project) -> None:
    """The message of an unknown lock lists what is frozen."""
    [(code, text)] = refusal(lambda: project.registry.read_lock(Reference("tiny", "v9")))
    assert "frozen-unknown" == code
    assert text.endswith("tiny@v9 is not frozen; frozen are tiny@v1. Run 'cxrspec freeze tiny@v9'")


def test_a_lock_that_only_git_knows_is_not_called_unfrozen(project: Project) -> None:
    """Reading a lock that was deleted says which commit froze it and how to restore it."""
    project.path(LOCK).unlink()
    [(code, text)] = refusal(lambda: project.lock)
    commit = project.git("log", "--format=%H", "--diff-filter=A", "--", LOCK)[:12]
    assert "frozen-lost" == code
    assert f"commit {commit} froze it. Restore it with 'git checkout {commit} -- {LOCK}'" in text


DAMAGES: dict[str, Any] = {
    "no list": lambda lock: lock.update(subsets=[]),
    "no definition": lambda lock: lock.pop("definition"),
    "no digest": lambda lock: lock["subsets"]["test"].pop("digest"),
    "a short digest": lambda lock: lock["subsets"]["test"].update(digest="abc"),
    "no count": lambda lock: lock["subsets"]["test"].pop("items"),
    "a path for a name": lambda lock: lock["subsets"].update({"../../x": lock["subsets"]["test"]}),
    "no roster": lambda lock: lock["roster"].pop("digest"),
    "no sha256 of a source": lambda lock: lock["sources"]["labels"]["main"].pop("sha256"),
    "another definition": lambda lock: lock.update(definition_version="v2"),
    "an edited seed": lambda lock: lock["definition"].update(seed=8),
    "an edited subset id": lambda lock: lock["subsets"]["test"].update(digest="0" * 64),
}


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
def test_a_lock_edited_by_hand_is_refused(project: Project, change: Any) -> None:
    """A lock with a part missing, of a wrong form, or with digests that are not its own is not read."""
    project.edit_json(LOCK, change)
    [(code, text)] = refusal(lambda: project.lock)
    assert ("file-unsafe", True) == (code, "Restore it with 'git checkout'" in text)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"format": NaN}', "<<<<<<< HEAD\n{}\n>>>>>>> other\n", "[" * 9999]
)
def test_a_file_that_is_no_lock_is_refused(project: Project, text: str) -> None:
    """Half a merge, another JSON or nothing at all gives one clear refusal."""
    project.write(LOCK, text)
    assert [
        (
            "file-unsafe",
            f"{LOCK}: is not a readable lock. Restore it with 'git checkout'; a frozen lock is never edited",
        )
    ] == refusal(lambda: project.lock)


def test_a_lock_of_a_newer_format_asks_for_a_newer_cxrspec(project: Project) -> None:
    """An old cxrspec never guesses what a newer lock means."""
    project.edit_json(LOCK, lambda lock: lock.update(format=LOCK_FORMAT + 1))
    [(code, text)] = refusal(lambda: project.lock)
    assert ("lock-format", f"{LOCK}: has format 2; this cxrspec reads formats up to 1. Install a newer cxrspec") == (
        code,
        text,
    )


def test_a_key_that_a_later_cxrspec_adds_is_no_damage(project: Project) -> None:
    """Within one format a lock may hold more than this cxrspec knows."""
    project.edit_json(LOCK, lambda lock: lock.update(later=1))
    assert REF == project.lock.reference


def test_a_table_is_hashed_whenever_it_is_read(project: Project) -> None:
    """D2: a byte appended to a read-only cached object, time and link kept, is found."""
    table, cached = project.path(f"{FOLDER}/test.tsv"), project.path("cached")
    os.link(table, cached)
    cached.chmod(0o444)
    times = (table.stat().st_atime_ns, table.stat().st_mtime_ns)
    cached.chmod(0o644)
    with cached.open("ab") as stream:
        stream.write(b"x")
    cached.chmod(0o444)
    os.utime(table, ns=times)
    lock = project.lock
    [(code, text)] = refusal(lambda: project.registry.read_table(REF, "test", lock.tables["test"]))
    assert "table-altered" == code
    assert (
        f"the lock says {lock.subset_ids['test']}... Delete it. "
        "Run 'dvc pull', or 'cxrspec freeze tiny@v1' where the sources are at hand" in text.replace("....", "...")
    )


def test_a_table_that_is_not_here_says_how_to_get_it(project: Project) -> None:
    """Absence has its own code, so that nobody takes it for damage."""
    project.path(f"{FOLDER}/test.tsv").unlink()
    [(code, text)] = refusal(lambda: project.registry.read_table(REF, "test", "0" * 64))
    assert ("table-missing", True) == (code, "Run 'dvc pull'" in text)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (
            "tiny@v1",
            "tiny@v1: is not the name of a table; tiny@v1 has roster, test, train. Write benchmark@version:subset",
        ),
        (
            "tiny@v1:dev",
            "tiny@v1:dev: has no table 'dev'; tiny@v1 has roster, test, train. Write benchmark@version:subset",
        ),
    ],
)
def test_a_subset_that_does_not_exist_is_answered_with_those_that_do(
    project: Project, reference: str, message: str
) -> None:
    """The message lists the tables of the lock."""
    assert [("frozen-unknown", message)] == refusal(lambda: project.registry.read_subset(Reference.parse(reference)))


def test_a_registry_behind_a_link_works_as_any_other(tmp_path: Path) -> None:
    """A folder 'registry' on a larger disk, linked into the project, keeps git's and DVC's evidence."""
    project = frozen_project(tmp_path / "project")
    project.path("registry").rename(tmp_path / "disk")
    project.path("registry").symlink_to(tmp_path / "disk")
    outs = [{"path": LOCK, "md5": "0" * 32, "hash": "md5"}]
    project.write("dvc.lock", json.dumps({"stages": {"freeze": {"outs": outs}}}))
    assert [REF] == project.registry.frozen()
    assert project.registry.lock_path(REF) in project.registry.dvc.recorded
    assert "unchanged" == project.freeze().state


def test_a_writer_that_waits_too_long_learns_who_writes(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """D4: the message names the process that holds the registry, in words."""
    monkeypatch.setattr(registry_module, "BUSY_SECONDS", 0)
    with holding(project.path(".cxrspec/registry.lock"), 1):
        [(code, text)] = refusal(lambda: project.registry.writing().__enter__())
    assert "registry-busy" == code
    assert f"another process holds the registry: process {os.getpid()} on " in text


def test_what_a_killed_writer_left_is_removed_by_the_next(project: Project) -> None:
    """Temporary files of a dead process go before anything is written."""
    names = [f"{FOLDER}/.lock.json.1.unfinished", ".dvc.yaml.1.unfinished", "specs/tiny/.v2.yaml.1.unfinished"]
    for name in names:
        project.write(name, "half")
    with project.registry.writing():
        assert [] == [name for name in names if project.path(name).exists()]


def test_a_disk_that_refuses_gives_a_message_and_no_traceback(project: Project) -> None:
    """A full or read-only disk is the user's to mend, so it is an issue like any other."""

    def write() -> None:
        with project.registry.writing():
            raise OSError(28, "No space left on device", str(project.path(LOCK)))

    [(code, text)] = refusal(write)
    assert "disk" == code
    assert f"{LOCK}: cannot be written: No space left on device. Is there room, and the right to write?" in text


def test_our_own_folder_hides_itself_from_git(project: Project) -> None:
    """The lock file of a project without a .gitignore does not show in git status."""
    project.path(".gitignore").unlink()
    with project.registry.writing():
        pass
    assert ".cxrspec" not in project.git("status", "--porcelain")
