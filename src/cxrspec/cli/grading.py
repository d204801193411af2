"""Own the commands of people who ask and grade: grade, and questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cxrspec.cli.application import (
    DefinitionArgument,
    JsonOption,
    ScoredArgument,
    UsageError,
    app,
    open_registry,
    print_json,
)
from cxrspec.errors import Issue, SubmissionError
from cxrspec.reference import Reference

if TYPE_CHECKING:
    from cxrspec.grades import Grader
    from cxrspec.registry import Registry


@app.command(
    epilog="Example: cxrspec grade mimic-cxr-vqa@physionet-1.0.0-v1/my-model --from sheet.csv --grader 'A. Reader'"
)
def grade(
    reference: ScoredArgument,
    to: Annotated[Path | None, typer.Option(help="Write the sheet for a grader here.")] = None,
    graded: Annotated[Path | None, typer.Option("--from", help="Read this graded sheet.")] = None,
    grader: Annotated[str | None, typer.Option(help="With --from: the person who graded.")] = None,
    judge: Annotated[str | None, typer.Option(help="With --from: the system that graded, with its version.")] = None,
    prompt: Annotated[Path | None, typer.Option(help="With --judge: the file of the prompt that it was given.")] = None,
    restricted: Annotated[
        bool, typer.Option("--restricted", help="Write rows of sources that may not be passed on.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Have answers graded that no rule can read.

    With --to, a sheet of the answers is written, shuffled and without the name of the system. With --from, it is read
    back; one that was changed, or lacks a grade, is refused.
    """
    if reference.system is None:
        raise UsageError(f"Name a system: {reference}/SYSTEM.")
    if (to is None) == (graded is None):
        raise UsageError("Give --to for a new sheet, or --from for a graded one.")
    registry = open_registry()
    if to is not None:
        _write_sheet(registry, reference, to, restricted=restricted, as_json=as_json)
    elif graded is not None:
        _read_sheet(registry, reference, graded, _grader(grader, judge, prompt), as_json=as_json)


def _grader(grader: str | None, judge: str | None, prompt: Path | None) -> Grader:
    """Return who graded; a judge is known by its prompt too."""
    from cxrspec.digest import sha256_hex
    from cxrspec.grades import Grader

    name = grader or judge
    if name is None or not name.strip() or (grader and judge) or (judge is None) != (prompt is None):
        raise UsageError("Give --grader NAME for a person, or --judge NAME with --prompt FILE.")
    if prompt is None:
        return Grader(name=name, kind="human")
    if not prompt.is_file():
        raise UsageError(f"{prompt} is not a file.")
    return Grader(name=name, kind="judge", prompt_sha256=sha256_hex(prompt.read_bytes()))


def _write_sheet(registry: Registry, reference: Reference, path: Path, *, restricted: bool, as_json: bool) -> None:
    from cxrspec.grading import grading_sheet
    from cxrspec.report import terminal

    sheet = grading_sheet(reference.definition, reference.system or "", registry, restricted=restricted)
    _write_new(registry, path, sheet)
    if as_json:
        print_json({"reference": str(reference), "sheet": str(path)})
    else:
        terminal.say(f"wrote {path}; read it back with 'cxrspec grade {reference} --from {path} --grader NAME'")
    if not registry.read_lock(reference).redistribute:
        terminal.note(f"{path} holds rows that may not be passed on: keep it out of git")


def _write_new(registry: Registry, path: Path, data: bytes) -> None:
    """Write a file that a person will work on; one that is there already is never overwritten."""
    from cxrspec.files import write_whole

    if path.exists() and path.read_bytes() != data:
        raise SubmissionError(Issue("disk", str(path), "is there already, with other content", "Choose another name"))
    with registry.writing():
        write_whole(path.absolute(), data)


@app.command(
    epilog="Example: cxrspec questions mimic-cxr-vqa-like@cases-v1 --templates templates.csv --to questions.tsv"
)
def questions(
    reference: DefinitionArgument,
    templates: Annotated[Path, typer.Option(help="Table with columns condition, question_type and question.")],
    to: Annotated[Path, typer.Option(help="Write the questions here, as TSV with blank answers.")],
    restricted: Annotated[
        bool, typer.Option("--restricted", help="Write rows of sources that may not be passed on.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask about frozen cases: each gets the questions that its conditions call for.

    Once a radiologist has written the answers, the table is the source of a definition of the task vqa.
    """
    from cxrspec.asking import questions_to_answer
    from cxrspec.report import terminal

    if not templates.is_file():
        raise UsageError(f"{templates} is not a file.")
    registry = open_registry()
    table = questions_to_answer(reference, (templates.name, templates.read_bytes()), registry, restricted=restricted)
    _write_new(registry, to, table)
    n_questions = table.count(b"\n") - 1
    if as_json:
        print_json({"reference": str(reference), "questions": str(to), "n_questions": n_questions})
        return
    terminal.say(f"wrote {n_questions:,} questions to {to}; their answers are for a radiologist to write")


def _read_sheet(registry: Registry, reference: Reference, path: Path, grader: Grader, *, as_json: bool) -> None:
    from cxrspec.grading import record_grades
    from cxrspec.pipeline import dvc_add
    from cxrspec.report import terminal

    if not path.is_file():
        raise UsageError(f"{path} is not a file.")
    sheet = (path.name, path.read_bytes())
    place = record_grades(reference.definition, reference.system or "", registry, sheet=sheet, grader=grader)
    is_stored = dvc_add(registry, place, push=registry.read_lock(reference).redistribute)
    name = registry.name(place)
    if as_json:
        print_json({"grades": name, "grader": grader.model_dump(exclude_none=True), "in_dvc": is_stored})
        return
    terminal.say(f"{reference}: graded by {grader}, in {name}; now run 'cxrspec score {reference}'")
