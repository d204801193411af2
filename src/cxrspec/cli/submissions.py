"""Own the commands that hand in predictions: submit, and the baselines that never see a pixel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cxrspec.cli.application import Definition, Json, any_reference, app, open_registry, print_json

if TYPE_CHECKING:
    from cxrspec.registry import Registry
    from cxrspec.submit import Request

baseline = typer.Typer(no_args_is_help=True, help="Write submissions that never see a pixel, from frozen tables.")
app.add_typer(baseline, name="baseline")


@app.command()
def submit(
    reference: Definition,
    system: Annotated[str | None, typer.Option(help="Name of the system.")] = None,
    protocol: Annotated[str | None, typer.Option(help="A protocol of the definition.")] = None,
    predictions: Annotated[Path | None, typer.Option(help="CSV, TSV, Parquet or npz; may be packed.")] = None,
    head: Annotated[
        list[str] | None,
        typer.Option(help="our=theirs: the file's column for a finding; '*=prob_*' stands for all of them."),
    ] = None,
    model_name: Annotated[str | None, typer.Option(help="For the system card.")] = None,
    weights_id: Annotated[str | None, typer.Option(help="For the system card: which weights exactly.")] = None,
    description: Annotated[str | None, typer.Option(help="For the system card.")] = None,
    url: Annotated[str | None, typer.Option(help="For the system card.")] = None,
    trained_on: Annotated[str, typer.Option(help="The training data, as declared.")] = "unknown",
    repeat_of: Annotated[
        str | None, typer.Option("--from", metavar="OLD/SYSTEM", help="Repeat a submission made for the same subsets.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Hand in predictions: read and checked first, then stored with the ids they were made for.

    Example: cxrspec submit nih-cxr14-findings@official-v3 --system my-model --protocol zero_shot --predictions p.csv
    """
    from cxrspec.submission import parse_heads
    from cxrspec.submit import Request, repeat

    registry = open_registry()
    card = {"model_name": model_name, "weights_id": weights_id, "description": description, "url": url}
    if repeat_of:
        if system or protocol or predictions or head or any(card.values()):
            raise typer.BadParameter("--from repeats a submission as it is; leave the other options out")
        old = any_reference(repeat_of)
        if old.system is None:
            raise typer.BadParameter("--from names benchmark@definition_version/system")
        request = repeat(old.definition, old.system, reference, registry)
    else:
        if not (system and protocol and predictions):
            raise typer.BadParameter("give --system, --protocol and --predictions, or --from OLD/SYSTEM")
        if not predictions.is_file():
            raise typer.BadParameter(f"{predictions} is not a file")
        request = Request(
            reference,
            system,
            protocol,
            predictions.read_bytes(),
            predictions.name,
            heads=parse_heads(head or []),
            card=card,
            trained_on=trained_on,
        )
    _submit(request, registry, tracked=True, as_json=as_json)


@baseline.command("metadata")
def baseline_metadata(reference: Definition, as_json: Json = False) -> None:
    """Write the probe of age, sex, view and follow-up number: the floor that every image model must beat.

    Example: cxrspec baseline metadata nih-cxr14-findings@adjudicated-pool-v1
    """
    from cxrspec.baselines import metadata_request

    registry = open_registry()
    _submit(metadata_request(reference, registry), registry, tracked=False, as_json=as_json)


@baseline.command("labels")
def baseline_labels(
    reference: Definition,
    system: Annotated[str, typer.Option(help="Name of the system.")],
    covariate: Annotated[str, typer.Option(help="Frozen covariate whose cells hold names joined by '|'.")],
    finding: Annotated[list[str], typer.Option(help="our='NAME' or our='NAME|NAME': what counts for a finding.")],
    as_json: Json = False,
) -> None:
    """Write a covariate's names as scores of 1 and 0, to see how well other labels find these.

    Example: cxrspec baseline labels REF --system mined --covariate nih_labels --finding edema=Edema
    """
    from cxrspec.baselines import labels_request
    from cxrspec.submission import parse_heads

    registry = open_registry()
    names = {ours: theirs.split("|") for ours, theirs in parse_heads(finding).items()}
    request = labels_request(reference, system, registry, covariate=covariate, names=names)
    _submit(request, registry, tracked=False, as_json=as_json)


def _submit(request: Request, registry: Registry, *, tracked: bool, as_json: bool) -> None:
    """Write a submission; `tracked` puts its predictions under DVC, where no stage makes them again."""
    from cxrspec.pipeline import dvc_add
    from cxrspec.report import terminal
    from cxrspec.submit import submit as write_submission

    submission, notes = write_submission(request, registry)
    path = registry.submission_folder(request.reference, submission.system) / submission.predictions.file
    may_leave = registry.read_lock(request.reference).redistribute
    is_stored = tracked and dvc_add(registry, path, push=may_leave)
    if as_json:
        document = submission.model_dump(exclude_none=True)
        print_json({"submission": document, "notes": [one.as_json() for one in notes], "in_dvc": is_stored})
        return
    terminal.show_issues(notes, kind="note")
    if tracked and not is_stored:
        terminal.note("the project has no .dvc folder, so nothing was added to DVC")
    if is_stored and not may_leave:
        terminal.note("a source may not be passed on, so 'dvc push' leaves these predictions on this machine")
    subsets = ", ".join(f"{name}={digest}" for name, digest in submission.subsets.items())
    terminal.say(f"{request.reference}/{submission.system}: submitted for {subsets}")
