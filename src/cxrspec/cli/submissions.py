"""Own the commands that hand in predictions: submit, and the baselines that never see a pixel."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cxrspec.cli.application import SCORED, app, definition_argument, json_option, open_registry, print_json
from cxrspec.reference import Reference

if TYPE_CHECKING:
    from cxrspec.registry import Registry
    from cxrspec.submit import Request


@app.command(
    epilog="Example: cxrspec submit nih-cxr14-findings@official-v3 --system my-model --protocol zero_shot "
    "--predictions p.csv --weights-id sha256:1f2e..."
)
@definition_argument
@click.option("--system", help="Name of the system.")
@click.option("--protocol", help="A protocol of the definition.")
@click.option("--predictions", type=click.Path(path_type=Path), help="CSV, TSV, Parquet or npz; may be packed.")
@click.option(
    "--head", multiple=True, help="our=theirs: the file's column for a finding; '*=prob_*' stands for all of them."
)
@click.option("--box-format", type=click.Choice(["xywh", "xyxy"]), help="For boxes: what their four numbers are.")
@click.option("--frame", metavar="WxH", help="For boxes: width and height of the image in their pixels, as 1024x1024.")
@click.option("--model-name", help="For the system card.")
@click.option("--weights-id", help="For the system card: which weights exactly.")
@click.option("--description", help="For the system card.")
@click.option("--url", help="For the system card.")
@click.option("--trained-on", help="The training data, as declared; a subset as benchmark@version:subset.")
@click.option("--from", "repeat_of", type=SCORED, metavar="OLD/SYSTEM", help="Repeat a submission of the same subsets.")
@json_option
def submit(reference: Reference, repeat_of: Reference | None, as_json: bool, **given: object) -> None:
    """Hand in predictions: checked first, then stored.

    They are stored with the definition version and the subset ids that they were made for.
    """
    from cxrspec.submit import repeat

    registry = open_registry()
    if repeat_of is None:
        request = _request(reference, **given)  # type: ignore[arg-type]
    elif any(given.values()):
        raise click.UsageError("--from repeats a submission as it is; leave the other options out.")
    elif repeat_of.system is None:
        raise click.UsageError("--from names benchmark@definition_version/system.")
    else:
        request = repeat(repeat_of.definition, repeat_of.system, reference, registry)
    _submit(request, registry, tracked=True, as_json=as_json)


def _request(
    reference: Reference,
    *,
    system: str | None,
    protocol: str | None,
    predictions: Path | None,
    head: Sequence[str],
    box_format: str | None,
    frame: str | None,
    trained_on: str | None,
    **card: str | None,
) -> Request:
    """Return what the options of `submit` ask for."""
    from cxrspec.submission import parse_heads
    from cxrspec.submit import Request

    if system is None or protocol is None or predictions is None:
        raise click.UsageError("Give --system, --protocol and --predictions, or --from OLD/SYSTEM.")
    if not predictions.is_file():
        raise click.UsageError(f"{predictions} is not a file.")
    data, heads = predictions.read_bytes(), parse_heads(head)
    declared = "unknown" if trained_on is None else trained_on
    boxes = _box_form(box_format, frame)
    name = predictions.name
    return Request(reference, system, protocol, data, name, heads=heads, boxes=boxes, card=card, trained_on=declared)


def _box_form(box_format: str | None, frame: str | None) -> dict[str, object] | None:
    """Return the form of predicted boxes that the options say, if they say one."""
    if box_format is None and frame is None:
        return None
    size = re.fullmatch(r"([1-9][0-9]*)x([1-9][0-9]*)", frame or "")
    if box_format is None or size is None:
        raise click.UsageError("Give --box-format and --frame together, the frame as 1024x1024.")
    return {"format": box_format, "width_px": int(size[1]), "height_px": int(size[2])}


@app.group()
def baseline() -> None:
    """Write submissions that never see a pixel, from frozen tables."""


@baseline.command("metadata", epilog="Example: cxrspec baseline metadata nih-cxr14-findings@adjudicated-pool-v1")
@definition_argument
@json_option
def baseline_metadata(reference: Reference, as_json: bool) -> None:
    """Write the probe of age, sex, view and follow-up number.

    It is the floor that every image model must beat.
    """
    from cxrspec.baselines import metadata_request

    registry = open_registry()
    _submit(metadata_request(reference, registry), registry, tracked=False, as_json=as_json)


@baseline.command(
    "labels",
    epilog="Example: cxrspec baseline labels nih-cxr14-adjudicated@pneumothorax-nodule-v1 --system mined "
    "--covariate nih_labels --finding pneumothorax=Pneumothorax --finding 'nodule_or_mass=Nodule|Mass'",
)
@definition_argument
@click.option("--system", required=True, help="Name of the system.")
@click.option("--covariate", required=True, help="Frozen covariate whose cells hold names joined by '|'.")
@click.option("--finding", multiple=True, required=True, help="our=NAME or our='NAME|NAME': what counts for a finding.")
@json_option
def baseline_labels(reference: Reference, system: str, covariate: str, finding: Sequence[str], as_json: bool) -> None:
    """Write the names in a covariate as scores of 1 and 0.

    So the scores of other labels of the same images stand beside those of systems.
    """
    from cxrspec.baselines import labels_request
    from cxrspec.submission import parse_heads

    registry = open_registry()
    names = {ours: theirs.split("|") for ours, theirs in parse_heads(finding).items()}
    request = labels_request(reference, system, registry, covariate=covariate, names=names)
    _submit(request, registry, tracked=False, as_json=as_json)


@baseline.command("boxes", epilog="Example: cxrspec baseline boxes nih-cxr14-localization@bbox-2017-v1 --kind mean-box")
@definition_argument
@click.option("--kind", required=True, help="whole-image, mean-box or tiny-box.")
@json_option
def baseline_boxes(reference: Reference, kind: str, as_json: bool) -> None:
    """Write the boxes of a localizer that sees no image.

    They show what the criterion rewards.
    """
    from cxrspec.baselines import boxes_request

    registry = open_registry()
    _submit(boxes_request(reference, kind, registry), registry, tracked=False, as_json=as_json)


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
