"""The command line: results on stdout, problems on stderr, exit codes that scripts can trust, and a quick start."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from cxrspec.cli import app
from project import (
    FOLDER,
    LOCK,
    REF,
    SPEC,
    TEST_ITEMS,
    Project,
    authored_project,
    embeddings_csv,
    frozen_project,
    scores_csv,
)

Ended = subprocess.CompletedProcess[str]
ESCAPE = "\x1b"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project with one scored system."""
    return frozen_project(tmp_path)


def commands() -> Iterator[tuple[list[str], TyperCommand]]:
    """Yield the words and the command of everything that can be run."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from (([name, inner], one) for inner, one in command.commands.items())
        else:
            yield [name], command


COMMANDS = list(commands())
RUN = "from cxrspec.cli import main; main()"


def process(*arguments: str, cwd: Path, code: str = RUN, out: Any = subprocess.PIPE) -> Ended:
    """Run the command line as a process of its own."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=cwd, stdout=out, stderr=subprocess.PIPE, text=True, check=False)


# -- help and usage


@pytest.mark.parametrize(("words", "command"), COMMANDS, ids=[" ".join(words) for words, _ in COMMANDS])
def test_every_command_has_help_with_an_example(project: Project, words: list[str], command: TyperCommand) -> None:
    """`--help` says what a command does and how it is called, also outside a project."""
    ran = project.run(*words, "--help", cwd=Path("/"))
    assert (0, "") == (ran.code, ran.err)
    assert f"Example: cxrspec {' '.join(words)}" in " ".join(ran.out.split())
    assert command.help is not None
    assert command.help.split("\n")[0] in " ".join(ran.out.split())


@pytest.mark.parametrize(("words", "command"), COMMANDS, ids=[" ".join(words) for words, _ in COMMANDS])
def test_the_example_of_every_command_parses(words: list[str], command: TyperCommand) -> None:
    """What `--help` shows is a call that the command accepts."""
    import shlex

    example = shlex.split(re.split(r" [|>] ", (command.epilog or "").removeprefix("Example: cxrspec "))[0])
    assert words == example[: len(words)]
    command.make_context("cxrspec", example[len(words) :])


def test_the_version_is_printed(project: Project) -> None:
    """`--version` names program and version."""
    assert "cxrspec 0.1.0\n" == project.run("--version").out


@pytest.mark.parametrize(
    "arguments",
    [
        ["lisst"],
        ["list", "--yaml"],
        ["freeze"],
        ["freeze", "tiny@v1", "--all"],
        ["freeze", "tiny"],
        ["freeze", "Tiny@v1"],
        ["freeze", "tiny@v1:test"],
        ["freeze", "tiny@v1/ours"],
        ["score"],
        ["score", "tiny@v1:test"],
        ["items", "tiny@v1/ours"],
        ["show", "tiny@v1/../x"],
        ["submit", "tiny@v1"],
        ["submit", "tiny@v1", "--system", "a", "--protocol", "zero_shot", "--predictions", "absent.csv"],
        ["submit", "tiny@v1", "--from", "tiny@v0/ours", "--system", "a"],
        ["submit", "tiny@v1", "--from", "tiny@v0"],
        ["fetch", "tiny@v1", "--source", "labels"],
        ["fetch", "tiny@v1", "--as", "x"],
        ["leaderboard", "other"],
        ["leaderboard", "tiny@v1:test"],
        ["baseline", "labels", "tiny@v1"],
        ["new", "tiny@v1"],
        ["init", "new"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_in_two(project: Project, arguments: list[str]) -> None:
    """A call that no command understands prints nothing on stdout, says why on stderr, and exits with 2."""
    before = project.files(".")
    ran = project.run(*arguments)
    assert (2, "", True) == (ran.code, ran.out, "Error: " in ran.err)
    assert before == project.files(".")


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "tiny@v9"],
        ["show", "tiny@v1/nobody"],
        ["validate", "tiny@v9"],
        ["validate", "absent.yaml"],
        ["freeze", "tiny@v9"],
        ["items", "tiny@v1:dev"],
        ["fetch", "tiny@v9"],
        ["fetch", "tiny@v1", "--source", "other", "--as", "x"],
        ["score", "tiny@v9"],
        ["score", "tiny@v1/nobody"],
        ["leaderboard", "tiny@v9"],
        ["audit", "tiny@v9"],
        ["submit", "tiny@v1", "--from", "tiny@v1/nobody"],
        ["submit", "tiny@v1", "--system", "A", "--protocol", "zero_shot", "--predictions", SPEC],
        ["baseline", "metadata", "tiny@v9"],
        ["baseline", "labels", "tiny@v1", "--system", "a", "--covariate", "age", "--finding", "edema"],
        ["new", "tiny@v9", "v10"],
        ["new", "tiny@v1", "V2"],
    ],
    ids=" ".join,
)
def test_a_problem_ends_in_one(project: Project, arguments: list[str]) -> None:
    """A problem that a user can mend exits with 1, without a traceback."""
    before = project.files(".")
    ran = project.run(*arguments)
    assert (1, False) == (ran.code, "Traceback" in ran.err)
    assert ran.out or ran.err
    assert before == project.files(".")


def test_outside_a_project_there_is_one_clear_line(tmp_path: Path) -> None:
    """The problem goes to stderr, in one line."""
    ran = Project(tmp_path).run("list")
    assert (1, "", 1) == (ran.code, ran.out, len(ran.err.splitlines()))
    assert ran.err.startswith("error: no folder 'specs' in ")


def test_the_project_can_be_named_by_a_variable(project: Project, tmp_path: Path) -> None:
    """CXRSPEC_ROOT stands for the folder to start from."""
    assert 0 == project.run("list", cwd=Path("/"), CXRSPEC_ROOT=str(project.root)).code


# -- what the commands print


def test_list_shows_state_subsets_and_systems(project: Project) -> None:
    """One line per definition, frozen or not."""
    project.define("v2")
    ran = project.run("list")
    assert ["tiny@v1 frozen test 20, train 40 ours", "tiny@v2 authored"] == [
        " ".join(line.split()) for line in ran.out.splitlines()[1:]
    ]


def test_a_damaged_lock_hides_no_other_definition(project: Project) -> None:
    """The list goes on, the damage is told, and the exit code is 1."""
    project.freeze(project.define("v2"))
    project.write(LOCK, "{")
    ran = project.run("list", "--json")
    assert (1, ["tiny@v2"]) == (ran.code, [row["reference"] for row in ran.json])
    assert "is not a readable lock" in ran.err


def test_items_are_the_bytes_of_the_file(project: Project) -> None:
    """`cxrspec items REF:SUBSET | sha256sum` gives the digest of the lock."""
    for name, digest in project.lock.tables.items():
        subset, _, covariates = name.partition(".")
        ran = project.run("items", f"tiny@v1:{subset}", *(["--covariates"] if covariates else []))
        assert (0, digest) == (ran.code, sha256(ran.data).hexdigest())


def test_rows_that_may_not_be_passed_on_ask_for_a_word(tmp_path: Path) -> None:
    """`redistribute: false` needs `--restricted`; without it nothing is printed."""
    project = authored_project(tmp_path)
    project.edit(SPEC, "attribution: nobody", "attribution: nobody\n    redistribute: false")
    project.freeze()
    ran = project.run("items", "tiny@v1:test")
    assert (1, "", True) == (ran.code, ran.out, "Add --restricted to see them yourself" in ran.err)
    assert 0 == project.run("items", "tiny@v1:test", "--restricted").code


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["show", "tiny@v1"],
        ["show", "tiny@v1/ours"],
        ["validate"],
        ["freeze", "tiny@v1"],
        ["freeze", "tiny@v1", "--check"],
        ["score", "tiny@v1"],
        ["leaderboard"],
        ["leaderboard", "tiny", "--write"],
        ["audit"],
        ["audit", "tiny@v1/ours", "--deep"],
        ["submit", "tiny@v1", "--from", "tiny@v1/ours"],
        ["baseline", "metadata", "tiny@v1"],
        [
            "baseline",
            "labels",
            "tiny@v1",
            *["--system=m", "--covariate=sex", "--finding=edema=M", "--finding=effusion=F"],
        ],
    ],
    ids=" ".join,
)
def test_json_is_json_and_nothing_else(project: Project, arguments: list[str]) -> None:
    """With `--json` stdout is one JSON value, whatever is said on stderr."""
    if "--from" in arguments:
        project.freeze(project.define("v2", ("resamples: 100", "resamples: 200")))
        arguments = ["submit", "tiny@v2", *arguments[2:]]
    ran = project.run(*arguments, "--json")
    assert (0, True) == (ran.code, isinstance(ran.json, list | dict))


def test_every_command_that_a_script_needs_has_json() -> None:
    """Only what prints bytes or writes a file for a person has no `--json`."""
    without = {" ".join(words) for words, command in COMMANDS if "as_json" not in {one.name for one in command.params}}
    exports = {
        name for name in without if name.startswith("export ")
    }  # Croissant is JSON; the others have their own forms
    assert {"items", "fetch", "new", "init", "schema"} == without - exports


SHOWN = ["list", "show tiny@v1/ours", "leaderboard", "audit", "validate absent", "lisst"]


@pytest.mark.parametrize("words", SHOWN)
@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}, {"TERM": "xterm-256color"}])
def test_what_is_no_terminal_gets_no_escape_codes(project: Project, words: str, environment: dict[str, str]) -> None:
    """Pipes and files get plain text."""
    ran = project.run(*words.split(), **environment)
    assert ESCAPE not in ran.out + ran.err


def test_no_color_is_heeded_on_a_terminal(project: Project) -> None:
    """NO_COLOR wins where colour would be used."""
    coloured = project.run("list", FORCE_COLOR="1", TERM="xterm-256color").out
    plain = project.run("list", FORCE_COLOR="1", TERM="xterm-256color", NO_COLOR="1").out
    assert (True, False) == tuple(re.search(r"\x1b\[[0-9;]*3[0-9]m", text) is not None for text in (coloured, plain))


def test_control_characters_of_a_file_do_not_reach_the_terminal(project: Project) -> None:
    """An id that would act on a terminal is shown written out."""
    project.write("evil.csv", scores_csv(TEST_ITEMS[1:]) + "\x1b[31mt00,0.1,0.2\n")
    ran = project.run("submit", "tiny@v1", "--system", "evil", "--protocol", "zero_shot", "--predictions", "evil.csv")
    assert (1, False, True) == (ran.code, ESCAPE in ran.err, "\\x1b[31mt00" in ran.err)


def test_a_long_line_is_not_cut_in_a_pipe(project: Project) -> None:
    """A signature stands in one line, however long."""
    ran = project.run("show", "tiny@v1/ours")
    assert project.report()["scores"][0]["signature"] in [line.strip() for line in ran.out.splitlines()]


@pytest.mark.parametrize("arguments", [["items", "tiny@v1:test"], ["audit", "--json"], ["list"]], ids=" ".join)
def test_a_pipe_that_closes_early_is_quiet(project: Project, arguments: list[str]) -> None:
    """`| head -0` ends the command without a word."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as out:
        assert "" == process(*arguments, cwd=project.root, out=out).stderr


# -- validate and freeze


def test_validate_tells_every_issue_of_every_file(project: Project) -> None:
    """Two files with faults are both told, the third is fine, and the exit code is 1."""
    project.define("v2", ("seed: 7", "seed: -1"))
    project.define("v3", ("task: findings", "task: finding"))
    ran = project.run("validate")
    assert 1 == ran.code
    assert ["specs/tiny/v1.yaml"] == [line.split(": ")[0] for line in ran.out.splitlines()]
    assert {"specs/tiny/v2.yaml", "specs/tiny/v3.yaml"} == set(re.findall(r"specs/tiny/v\d.yaml", ran.err))


@pytest.mark.parametrize(
    "name", ["specs/tiny/v2.yml", "specs/v1.yaml", "specs/tiny/more/v1.yaml", "specs/other/v1.yaml"]
)
def test_a_file_where_no_definition_stands_is_not_passed_over(project: Project, name: str) -> None:
    """A definition at the wrong place is an issue: it would never be frozen, and nobody would know."""
    project.write(name, project.path(SPEC).read_text())
    ran = project.run("validate")
    assert (1, True) == (ran.code, f"{name}:" in ran.err)


def test_a_definition_can_be_named_by_its_file_from_anywhere(project: Project) -> None:
    """A relative path is one from the current folder; its name is printed as the project sees it."""
    ran = project.run("validate", "v1.yaml", cwd=project.path("specs/tiny"))
    assert (0, True) == (ran.code, ran.out.startswith("specs/tiny/v1.yaml: fine, definition "))


def test_freezing_goes_on_after_a_problem(project: Project) -> None:
    """With several definitions, one that fails does not stop the next."""
    project.define("v2", ("roster: {items: 62}", "roster: {items: 63}"))
    project.define("v3")
    ran = project.run("freeze", "--all")
    assert 1 == ran.code
    assert ["tiny@v1: unchanged", "tiny@v3: frozen"] == [line.split(";")[0] for line in ran.out.splitlines()]
    assert ["tiny@v1", "tiny@v3"] == [str(one) for one in project.registry.frozen()]


def test_check_prints_claims_beside_counts(project: Project) -> None:
    """`--check` shows what was claimed and what was found."""
    ran = project.run("freeze", "tiny@v1", "--check")
    assert ["test.positives.edema", "7", "7"] in [line.split() for line in ran.out.splitlines()]


def test_a_new_version_is_named_with_what_to_do_next(project: Project) -> None:
    """The message holds the next command."""
    ran = project.run("new", "tiny@v1", "v2", "--change", "Another seed.")
    assert "wrote specs/tiny/v2.yaml; edit it, then run 'cxrspec freeze tiny@v2'\n" == ran.out


def test_one_file_of_the_sources_is_written_to_a_path(project: Project) -> None:
    """`fetch --source --as` gives the proved bytes under a name of one's own."""
    ran = project.run("fetch", "tiny@v1", "--source", "labels/main", "--as", f"{FOLDER}/copy.csv")
    data = project.path(f"{FOLDER}/copy.csv").read_bytes()
    assert (0, data) == (ran.code, project.path("data/labels.csv").read_bytes())
    assert ran.out.startswith(sha256(data).hexdigest())


def test_every_file_of_the_sources_fills_a_mirror(project: Project) -> None:
    """`fetch --to` writes files called by their sha256."""
    assert 0 == project.run("fetch", "tiny@v1", "--to", "mirror").code
    digest = project.lock.document["sources"]["labels"]["main"]["sha256"]
    assert project.path(f"mirror/{digest}").exists()


# -- submit and score


def submit(project: Project, *more: str) -> tuple[int, str]:
    """Submit the scores as `new`, and return exit code and stderr."""
    project.write("p.csv", scores_csv())
    ran = project.run(
        "submit", "tiny@v1", "--system", "new", "--protocol", "zero_shot", "--predictions", "p.csv", *more
    )
    return ran.code, ran.err


def test_the_options_of_submit_reach_the_file(project: Project) -> None:
    """Card, training data and heads stand in submission.yaml."""
    card = ["--model-name", "M", "--weights-id", "W", "--description", "D", "--url", "U", "--trained-on", "T"]
    assert 0 == submit(project, *card, "--head", "edema=Edema", "--head", "*=*")[0]
    text = project.path(f"{FOLDER}/submissions/new/submission.yaml").read_text()
    assert text.endswith(
        "heads:\n  edema: Edema\n  '*': '*'\n"
        "card:\n  model_name: M\n  weights_id: W\n  description: D\n  url: U\ntrained_on: T\n"
    )


def test_without_dvc_a_note_says_so(project: Project) -> None:
    """Nobody learns at the time of `dvc push` that nothing was added."""
    code, err = submit(project)
    assert (0, True) == (code, "the project has no .dvc folder, so nothing was added to DVC" in err)


def test_a_refused_submission_does_not_stop_the_others(project: Project) -> None:
    """`score --all` scores what it can, tells what it cannot, and exits with 1."""
    project.submit("new")
    project.write(f"{FOLDER}/submissions/bad/submission.yaml", "format: 1\n")
    ran = project.run("score", "--all")
    assert 1 == ran.code
    assert ["tiny@v1/new: scored", "tiny@v1/ours: unchanged"] == re.findall(r"^tiny@v1/\w+: \w+$", ran.out, re.M)
    assert "submissions/bad/submission.yaml" in ran.err


def test_a_damaged_lock_does_not_stop_the_scoring_of_others(project: Project) -> None:
    """`score --all` goes on with the next definition."""
    reference = project.define("v2")
    project.freeze(reference)
    project.submit("ours", scores_csv(), reference)
    project.write(LOCK, "{")
    ran = project.run("score", "--all")
    assert (1, True) == (ran.code, "tiny@v2/ours: scored" in ran.out)


def test_an_undefined_score_ends_in_one_after_everything_is_written(project: Project) -> None:
    """S1: the report has null with the reason, the other systems are scored, the exit code tells, every time."""
    narrow = ("test: {pool: {split: test}, select: all}", "test: {pool: {split: test, where: W}, select: all}")
    where = ("W", "{column: findings, one_of: [Effusion, No Finding]}")
    reference = project.define(
        "v2", narrow, where, ("test: {items: 20, positives: {edema: 7, effusion: 10}}", "test: {}")
    )
    project.freeze(reference)
    for system in ("a", "b"):
        project.submit(system, scores_csv(), reference)
    for state in ("scored", "unchanged"):
        ran = project.run("score", "tiny@v2")
        assert 1 == ran.code
        assert [f"tiny@v2/{system}: {state}" for system in "ab"] == re.findall(r"^tiny@v2/\w+: \w+$", ran.out, re.M)
        assert "error: tiny@v2/a mean_auroc_zero_shot: undefined for edema: " in ran.err
    assert 0 == project.run("score", "tiny@v1").code


def test_a_definition_without_submissions_says_how_to_make_one(project: Project) -> None:
    """Scoring nothing is no error, and no silence."""
    project.freeze(project.define("v2"))
    ran = project.run("score", "tiny@v2")
    assert (0, True) == (ran.code, "make one with 'cxrspec submit tiny@v2'" in ran.err)


def test_a_board_with_nothing_on_it_says_so(tmp_path: Path) -> None:
    """An empty leaderboard is no silence either."""
    ran = authored_project(tmp_path).run("leaderboard")
    assert (0, "", True) == (ran.code, ran.out, "no definition has a submission" in ran.err)


def test_a_damaged_report_does_not_stop_the_other_boards(project: Project) -> None:
    """The boards of other versions are shown and written; the damage is told, and the exit code is 1."""
    reference = project.define("v2")
    project.freeze(reference)
    project.submit("ours", scores_csv(), reference)
    project.write(f"{FOLDER}/reports/ours.json", "{")
    ran = project.run("leaderboard", "--write", "--json")
    assert (1, ["tiny@v2"]) == (ran.code, [one["reference"] for one in ran.json])
    assert project.path("registry/tiny/v2/leaderboard.md").exists()


def test_a_machine_set_to_ascii_loses_no_character(project: Project) -> None:
    """Marks and names come out as UTF-8 whatever the locale."""
    command = [sys.executable, "-c", RUN, "audit", "tiny@v1"]
    done = subprocess.run(
        command, cwd=project.root, env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, check=True
    )
    assert "✓" in done.stdout.decode()


def test_a_probe_and_its_board_are_shown(project: Project) -> None:
    """From submit to leaderboard, each protocol has its table."""
    project.submit("fitted", embeddings_csv(), protocol="probe")
    assert 0 == project.run("score", "tiny@v1/fitted").code
    ran = project.run("leaderboard", "tiny@v1")
    assert ["zero_shot: system", "probe: system"] == re.findall(r"^rank  (\w+: system)", ran.out, flags=re.MULTILINE)


# -- audit


def test_an_audit_exits_by_its_links(project: Project) -> None:
    """0 where nothing is broken, 1 for a broken link, with `--strict` also for one that is not checked."""
    assert (0, 1) == (project.run("audit").code, project.run("audit", "--strict").code)
    project.edit(SPEC, "seed: 7", "seed: 8")
    ran = project.run("audit", "tiny@v1")
    assert (1, True) == (ran.code, "these fields were changed: seed" in ran.out)


def test_an_audit_of_everything_finds_a_report_without_a_submission(project: Project) -> None:
    """Systems are audited by their submissions and by their reports."""
    shutil.rmtree(project.path(f"{FOLDER}/submissions/ours"))
    ran = project.run("audit", "--json")
    assert (1, ["tiny@v1", "tiny@v1/ours"]) == (ran.code, [one["reference"] for one in ran.json])


# -- the disk, and the start


FULL = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); {RUN}"


@pytest.mark.parametrize("words", ["freeze tiny@v1", "score tiny@v1", "leaderboard --write", "new tiny@v1 v2"])
def test_a_disk_that_takes_nothing_gives_a_message(project: Project, words: str) -> None:
    """No traceback and no half file where not one byte can be written."""
    project.path(f"{FOLDER}/reports/ours.json").unlink()
    project.path(f"{FOLDER}/test.covariates.tsv").unlink()
    before = (project.files("registry"), project.files("specs"))
    done = process(*words.split(), cwd=project.root, code=FULL)
    assert (1, False) == (done.returncode, "Traceback" in done.stderr)
    assert "cannot be written: File too large. Is there room, and the right to write?" in done.stderr
    assert before == (project.files("registry"), project.files("specs"))


SLOW = (
    "pandas",
    "numpy",
    "scipy",
    "sklearn",
    "pyarrow",
    "dvc",
    "pydantic",
    "yaml",
    "requests",
    "huggingface_hub",
    "joblib",
)


@pytest.mark.parametrize(
    "arguments", [["list"], ["--help"], ["show", "tiny@v1"], ["items", "tiny@v1:test"]], ids=" ".join
)
def test_a_quick_command_loads_nothing_slow(project: Project, arguments: list[str]) -> None:
    """What answers at once imports no library that takes its time; typer itself reads arguments by pydantic.

    `show` reads the definition file too: a caveat may have been added to it since it was frozen.
    """
    spared = {"list": (), "--help": (), "items": ("pydantic",), "show": ("pydantic", "yaml")}[arguments[0]]
    slow = [name for name in SLOW if name not in spared]
    code = f"""
import sys
from cxrspec.cli import main
try:
    main()
finally:
    print([name for name in {slow} if name in sys.modules], file=sys.stderr)
"""
    done = process(*arguments, cwd=project.root, code=code)
    assert "[]\n" == done.stderr


def test_a_process_of_its_own_does_the_same(project: Project) -> None:
    """The entry point works outside this process, with its output in the right places."""
    done = process("show", "tiny@v9", cwd=project.root)
    assert (1, "", True) == (done.returncode, done.stdout, done.stderr.startswith("error: "))
    assert json.loads(process("list", "--json", cwd=project.root).stdout)[0]["reference"] == str(REF)


def test_list_says_that_a_known_lock_is_missing(project: Project) -> None:
    """A deleted lock does not unfreeze, and the list does not say that it does."""
    project.path(LOCK).unlink()
    assert "lock missing" == project.run("list", "--json").json[0]["state"]


def test_items_without_a_subset_is_wrong_usage(project: Project) -> None:
    """A reference that names no subset is a mistake of the call, not of the registry."""
    ran = project.run("items", "tiny@v1")
    assert (2, True) == (ran.code, "Name a subset: tiny@v1:SUBSET." in ran.err)


def test_work_in_progress_is_shown_on_a_terminal_only(project: Project) -> None:
    """Long work says on a terminal what it is doing; a log holds results and problems only."""
    import pty

    master, slave = pty.openpty()
    code = f"import sys; sys.argv = ['cxrspec', 'score', '{REF}']; from cxrspec.cli import main; main()"
    command = [sys.executable, "-c", code]
    settings = {**os.environ, "TERM": "xterm"}
    subprocess.run(command, cwd=project.root, env=settings, stdout=subprocess.DEVNULL, stderr=slave, check=True)
    os.close(slave)
    assert "scoring tiny@v1/ours" in os.read(master, 65536).decode()
    os.close(master)
    assert "scoring" not in project.run("score", str(REF)).err


# -- show: a definition that is not frozen


AUTHORED = """authored, not frozen
task findings; finding: edema, effusion; protocol: probe, zero_shot
mean_auroc_zero_shot (roc_auc, zero_shot, on test)
split test
kept apart from
tiny-upstream
items 20, positives (edema 7, effusion 10)
It is tiny."""


def test_an_authored_definition_is_shown_as_its_file_says(tmp_path: Path) -> None:
    """What is measured, sources, subsets with what their publisher calls them, claims and caveats, before freezing."""
    project = authored_project(tmp_path)
    project.edit(
        SPEC,
        "test: {pool: {split: test}, select: all}",
        "test: {pool: {split: test}, select: all, upstream_id: tiny-upstream}",
    )
    ran = project.run("show", "tiny@v1")
    assert (0, "") == (ran.code, ran.err)
    assert [] == [words for words in AUTHORED.splitlines() if words not in ran.out]
    shown = project.run("show", "tiny@v1", "--json").json
    assert ("authored, not frozen", 7, []) == (shown["state"], shown["definition"]["seed"], shown["unnamed"])


def test_unnamed_shards_keep_a_definition_from_being_frozen(tmp_path: Path) -> None:
    """`show` says so, with the command that finds them."""
    project = authored_project(tmp_path)
    old = "kind: file\n    files: {main: data/labels.csv}"
    pin = f"repository: a/b\n    revision: {'0' * 40}\n"
    new = f"kind: hf_dataset\n    {pin}    files: {{main: {{match: 'data/*.parquet', count: 4}}}}"
    project.edit(SPEC, old, new)
    out = project.run("show", "tiny@v1").out
    assert "it cannot be frozen yet: " in out
    assert "does not name the 4 shards of 'data/*.parquet'; run 'cxrspec discover tiny@v1'" in out
