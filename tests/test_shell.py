"""Shells: completion in bash and zsh, help that fits 80 columns, and no escape codes where nobody can see colour."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from project import Project, frozen_project
from test_cli import COMMANDS, ESCAPE, RUN

COMMAND = Path(sys.executable).parent / "cxrspec"
TOP_LEVEL = {words[0] for words, _ in COMMANDS}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project with one scored system."""
    return frozen_project(tmp_path)


def answered(cwd: Path, **asked: str) -> str:
    """Return what the command answers to a shell that asks as its completion script does."""
    code = f"import sys; sys.argv = ['cxrspec']; {RUN}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


def completed(cwd: Path, words: str) -> list[str]:
    """Return what bash is offered after some words, the last of them begun."""
    asked = {"COMP_WORDS": f"cxrspec {words}", "COMP_CWORD": str(len(words.split(" ")))}
    return answered(cwd, _CXRSPEC_COMPLETE="complete_bash", **asked).split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("li", ["list"]),
        ("baseline me", ["metadata"]),
        ("show --js", ["--json"]),
        ("show ti", ["tiny@v1"]),
        ("show tiny@", ["tiny@v1"]),
        ("diff tiny@v1 ti", ["tiny@v1"]),
        ("score tiny@v1/", ["tiny@v1/ours"]),
        ("audit other", []),
        ("history ti", ["tiny"]),
        ("leaderboard ti", ["tiny"]),
        ("report tiny@", ["tiny@v1"]),
        ("items ti", ["tiny@v1:"]),
        ("items tiny@v1:te", ["tiny@v1:test"]),
        ("init --task lo", ["localization"]),
        ("export model-card tiny@v1/", ["tiny@v1/ours"]),
        ("export eval-results tiny@v1/", ["tiny@v1/ours"]),
        ("discover ti", ["tiny@v1"]),
        ("grade tiny@v1/", ["tiny@v1/ours"]),
        ("compare tiny@v1/ours tiny@v1/", ["tiny@v1/ours"]),
        ("curves tiny@v1/", ["tiny@v1/ours"]),
        ("questions ti", ["tiny@v1"]),
        ("submit tiny@v1 --from tiny@v1/", ["tiny@v1/ours"]),
    ],
)
def test_bash_completes(project: Project, words: str, expected: list[str]) -> None:
    """Commands, options, definitions and systems."""
    assert expected == completed(project.root, words)


def test_zsh_completes_with_what_a_command_does(project: Project) -> None:
    """Each command stands beside its first sentence."""
    said = answered(project.root, _CXRSPEC_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="cxrspec li")
    assert '"list":"List the definitions with their subsets' in said
    said = answered(project.root, _CXRSPEC_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="cxrspec show tiny@v")
    assert '"tiny@v1"' in said


def test_outside_a_project_no_definition_is_offered() -> None:
    """Completion never fails; it has nothing to say."""
    assert [] == completed(Path("/"), "show ti")


NAMED_SHELL = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
"""Takes the shell that is named instead of the one that runs the tests, if any does."""


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_script_of_a_shell_is_one_that_it_reads(project: Project, shell: str) -> None:
    """`--show-completion` prints the script that asks as above; the shell itself finds no fault in it."""
    script = project.run("--show-completion", shell, **NAMED_SHELL).out
    assert "_CXRSPEC_COMPLETE=complete_" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here, so it cannot read its script")
    subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_bash_itself_completes(project: Project) -> None:
    """The script, run by bash as it does at a press of the tab key."""
    script = project.run("--show-completion", "bash", **NAMED_SHELL).out
    press = f'COMP_WORDS=({COMMAND} histor); COMP_CWORD=1; _cxrspec_completion {COMMAND}; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{press}"], cwd=project.root, capture_output=True, text=True, check=True
    )
    assert "history\n" == done.stdout


@pytest.mark.parametrize("columns", ["80", "200"])
def test_help_fits_80_columns(project: Project, columns: str) -> None:
    """On every terminal, however wide, lines of help are short enough to read."""
    for words in ([], *(words for words, _ in COMMANDS)):
        lines = project.run(*words, "--help", COLUMNS=columns).out.splitlines()
        assert [] == [line for line in lines if len(line) > 80]


@pytest.mark.parametrize("words", ["status", "history tiny", "diff tiny@v1 tiny@v1", "leaderboard", "show tiny@v1"])
@pytest.mark.parametrize("setting", [{}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}], ids=["no terminal", "NO_COLOR"])
def test_no_colour_where_it_is_not_wanted(project: Project, words: str, setting: dict[str, str]) -> None:
    """A pipe, and who says NO_COLOR on a terminal, get plain text."""
    ran = project.run(*words.split(), TERM="xterm-256color", **setting)
    colour = [part for part in ran.out.split(ESCAPE)[1:] if part.startswith(("[3", "[9"))]
    assert (0, []) == (ran.code, colour)
