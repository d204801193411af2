"""The README is a contract: its commands run in its order, and print what it shows."""

import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from places import COMMAND, ROOT, Run

pytestmark = pytest.mark.real

ROOT_REFERENCES = (
    "nih-cxr14-adjudicated@majkowska-2020-v1",
    "nih-cxr14-adjudicated@pneumothorax-nodule-v1",
    "nih-cxr14-findings@adjudicated-pool-v1",
    "nih-cxr14-localization@bbox-2017-v1",
)


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of the README of one language."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def shown() -> list[tuple[str, list[str]]]:
    """Return each command of the console blocks with the lines that the README shows under it."""
    pairs: list[tuple[str, list[str]]] = []
    for block in blocks("console"):
        for line in block.splitlines():
            if line.startswith("$ "):
                pairs.append((line[2:], []))
            elif line.strip() != "...":
                pairs[-1][1].append(line)
    return pairs


def squeezed(text: str) -> list[str]:
    """Return lines with runs of blanks made one: the width of a column depends on rows that a tour leaves out."""
    return [re.sub(r"  +", "  ", line).rstrip() for line in text.splitlines()]


@pytest.mark.parametrize(("command", "lines"), shown(), ids=lambda value: value if isinstance(value, str) else "")
def test_tour_prints_what_it_shows(
    command: str, lines: list[str], run: Run, frozen: Callable[[str], None], project: Path
) -> None:
    """Every line that the tour shows is a line that the command prints."""
    for reference in ROOT_REFERENCES:
        frozen(reference)
    run("baseline", "metadata", ROOT_REFERENCES[2])
    run("score", f"{ROOT_REFERENCES[2]}/metadata-only")
    for kind in ("mean-box", "tiny-box", "whole-image") if "localization" in command else ():
        run("baseline", "boxes", ROOT_REFERENCES[3], "--kind", kind)
    if "localization" in command:
        run("score", ROOT_REFERENCES[3])
    folder = ROOT if command == "cxrspec list" else project
    environment = {**os.environ, "PATH": f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    printed = squeezed(done.stdout)
    assert [] == [line for line in squeezed("\n".join(lines)) if line not in printed]


def test_every_command_of_the_readme_exists() -> None:
    """Each `cxrspec` command that the README names knows the options that it gives."""
    text = "\n".join(blocks("bash")).replace("\\\n", " ")
    for line in text.splitlines():
        for command in re.findall(r"(?:^|&& |\$ )cxrspec ([a-z]+.*?)(?: +#.*)?$", line):
            words = shlex.split(command)
            name = [word for word in words[:2] if re.fullmatch(r"[a-z]+", word)]
            usage = subprocess.run([str(COMMAND), *name, "--help"], capture_output=True, text=True, check=True).stdout
            assert [] == [word for word in words if word.startswith("--") and word not in usage]
