"""DVC's registry: a frozen definition is found by an annotated tag, fetched whole, and its subsets imported."""

import sys
from hashlib import sha256
from pathlib import Path

import pytest

from project import FOLDER, Project, run_command
from test_flow import dvc, dvc_project

NAME = "registry:tiny_v1"
TAG = "registry=tiny_v1@v1.0.0"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project whose frozen definition was pushed and tagged; `light` is a tag without a message."""
    folder = tmp_path_factory.mktemp("published")
    project = dvc_project(folder / "here", folder / "remote")
    assert 0 == project.run("freeze", "tiny@v1").code
    dvc(project, "repro", "-P")
    project.commit("Freeze")
    dvc(project, "push")
    project.git("tag", "-a", TAG, "-m", "The first release")
    project.git("tag", "registry=tiny_v1@v2.0.0")
    return project


@pytest.fixture
def elsewhere(tmp_path: Path) -> Project:
    """Return another repository of git and DVC."""
    project = Project(tmp_path / "elsewhere")
    project.root.mkdir()
    project.git("init", "-q", "-b", "main")
    dvc(project, "init", "-q")
    return project


def test_an_annotated_tag_finds_the_whole_definition(published: Project, elsewhere: Project) -> None:
    """`dvc artifacts get` brings lock and tables; the light tag v2.0.0 is no release, so v1.0.0 is the newest."""
    dvc(elsewhere, "artifacts", "get", str(published.root), NAME, "-o", "tiny")
    for name in ("lock.json", "test.tsv", "roster.tsv", "train.covariates.tsv"):
        assert published.path(f"{FOLDER}/{name}").read_bytes() == elsewhere.path(f"tiny/{name}").read_bytes()
    assert "tiny_v1" in dvc(elsewhere, "artifacts", "get", str(published.root), NAME, "--rev", "v2.0.0", code=1)


def test_a_frozen_subset_is_imported(published: Project, elsewhere: Project) -> None:
    """The file is the text that was hashed, pinned by the tag, and `dvc update` knows where it is from."""
    dvc(elsewhere, "import", str(published.root), f"{FOLDER}/test.tsv", "--rev", TAG)
    digest = sha256(elsewhere.path("test.tsv").read_bytes()).hexdigest()
    assert published.lock.subsets["test"]["digest"] == digest
    commit = published.git("rev-parse", f"{TAG}^{{commit}}").strip()
    assert f"rev_lock: {commit}" in elsewhere.path("test.tsv.dvc").read_text()


def test_gto_lists_the_release(published: Project) -> None:
    """GTO, which comes with DVC, shows the artifact with its version."""
    command = (str(Path(sys.executable).parent / "gto"), "show", "--plain", NAME)
    lines = run_command(*command, cwd=published.root, NO_COLOR="1").splitlines()
    assert ["v1.0.0"] == [word for line in lines[1:] for word in line.split() if word.startswith("v")]
