"""A newcomer's walk in the README: its commands run one after the other in a clone, and print what it shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from places import COMMAND, ROOT, SHARED

sys.path.insert(0, str(ROOT / "tests"))
from project import GIT_IDENTITY

pytestmark = pytest.mark.real

FIRST = "nih-cxr14-findings@adjudicated-pool-v1"
WALK = re.compile(r"^```console walk\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def steps() -> list[tuple[str, list[str]]]:
    """Return each command of the walk, continued lines joined, with the lines that are shown under it."""
    found: list[tuple[str, list[str]]] = []
    for block in WALK.findall((ROOT / "README.md").read_text(encoding="utf-8")):
        for line in block.replace("\\\n", "").splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif line.strip() not in ("...", ""):
                found[-1][1].append(line)
    return found


def squeezed(line: str) -> str:
    """Return a line with runs of blanks made one: column widths depend on rows that the walk leaves out."""
    return re.sub(r"  +", "  ", line).strip()


def test_the_walk_is_a_walk() -> None:
    """It authors, validates, compares, freezes, scores, audits, and meets the two refusals."""
    words = " ".join(command for command, _ in steps())
    assert [] == [
        name
        for name in ("new", "validate", "diff", "freeze", "baseline", "score", "audit", "report")
        if f"cxrspec {name} " not in words
    ]
    shown = " ".join(line for _, lines in steps() for line in lines)
    assert "is frozen, and these fields were changed: seed" in shown
    assert f"it was made for {FIRST}, not for" in shown


def test_every_step_prints_what_the_readme_shows(tmp_path: Path) -> None:
    """A newcomer who types these lines in a fresh clone sees these lines."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    settings = {"CXRSPEC_MIRROR": str(SHARED / "mirror"), "DVC_NO_ANALYTICS": "1", "NO_COLOR": "1"}
    path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **GIT_IDENTITY, **settings, "PATH": path}

    def typed(command: str) -> str:
        done = subprocess.run(
            command, shell=True, cwd=clone, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return done.stdout

    restored = typed(f"cxrspec freeze {FIRST}")  # a clone has the lock, and no table
    if "cannot be reached" in restored:
        pytest.skip(f"a source is out of reach: {restored.strip()}")
    for command, lines in steps():
        printed = [*map(squeezed, typed(command).splitlines())]
        assert [] == [line for line in lines if squeezed(line) not in printed], f"$ {command}\n" + "\n".join(printed)
    assert (
        typed("git status --porcelain").strip()
        == "?? registry/nih-cxr14-findings/adjudicated-pool-v2/submissions/copied/"
    )
