"""A copy of this project with its real definitions frozen once for all tests of this folder.

What is missing (a package index, or the published files of ../shared) is said in the reason of each skip.
"""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from places import COMMAND, ROOT, SHARED, Run


@pytest.fixture(scope="session")
def shared() -> Path:
    """The published files, or a skip that says that they are missing."""
    if not (SHARED / "expected").is_dir():
        pytest.skip(f"the published files are not here: {SHARED}")
    return SHARED


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the definitions and git-tracked registry of this project, without git and DVC."""
    folder = tmp_path_factory.mktemp("real") / "project"
    for name in ("specs", "registry"):
        ignored = shutil.ignore_patterns("*.tsv", "dvc.*", "predictions.*", "lock.json", "reports", "leaderboard.*")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    return folder


@pytest.fixture(scope="session")
def run(project: Path) -> Run:
    """Run cxrspec in the project; `check=True` fails the test with the command's own words."""

    def command(*arguments: str, check: bool = True, cwd: Path = project) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "CXRSPEC_MIRROR": str(SHARED / "mirror")}
        done = subprocess.run(
            [str(COMMAND), *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False
        )
        if check and done.returncode:
            pytest.fail(f"cxrspec {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
        return done

    return command


@pytest.fixture(scope="session")
def frozen(run: Run) -> Callable[[str], None]:
    """Freeze a definition once; skip where its sources cannot be reached."""
    done: set[str] = set()

    def freeze(reference: str) -> None:
        if reference in done:
            return
        result = run("freeze", reference, check=False)
        if result.returncode and "cannot be reached" in result.stderr:
            pytest.skip(f"a source is out of reach: {result.stderr.strip()}")
        assert result.returncode == 0, result.stderr
        done.add(reference)

    return freeze
