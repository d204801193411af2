"""Own the commands that hand in predictions: submit, and the baselines that never see a pixel."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cxrspec.cli.application import (
    DefinitionArgument,
    JsonOption,
    UsageError,
    app,
    complete_scored,
    open_registry,
    parse_scored,
    print_json,
)
from cxrspec.reference import Reference

if TYPE_CHECKING:
    from cxrspec.registry import Registry
    from cxrspec.submit import Request, TrainingList

baseline = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Write submissions that never see a pixel, from frozen tables.",
    epilog="Example: cxrspec baseline metadata nih-cxr14-findings@adjudicated-pool-v1",
)
app.add_typer(baseline, name="baseline")


class BoxFormat(StrEnum):
    """What the four numbers of a predicted box are."""

    XYWH = "xywh"
    XYXY = "xyxy"


HeadOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="OUR=THEIRS", help="our=theirs: the file's column for a finding; '*=prob_*' stands for all of them."
    ),
]
HeadMapOption = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="The classifier whose heads the columns are, named or not: torchxrayvision-all, -nih, -pc, -chex, "
        "-mimic_nb, -mimic_ch, -rsna; chexpert; nih (CheXNet's order), nih-alphabetical. --head goes first.",
    ),
]
FrameOption = Annotated[
    str | None,
    typer.Option(metavar="WxH", help="For boxes: width and height of the image in their pixels, as 1024x1024."),
]
CardOption = Annotated[str | None, typer.Option(help="For the system card.")]
TrainedOnOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DATA",
        help="The training data: benchmark@version:name, a subset or split; 'outside benchmark@version:name'; "
        "a file of ids, one a line (items:FILE or groups:FILE says which); nothing; or words. May be repeated.",
    ),
]
RepeatOption = Annotated[
    Reference | None,
    typer.Option(
        "--from",
        parser=parse_scored,
        autocompletion=complete_scored,
        metavar="OLD/SYSTEM",
        help="Repeat a submission of the same subsets.",
    ),
]


@app.command(
    epilog="Example: cxrspec submit nih-cxr14-findings@official-v3 --system my-model --protocol zero_shot "
    "--predictions p.csv --weights-id sha256:1f2e..."
)
def submit(
    reference: DefinitionArgument,
    system: Annotated[str | None, typer.Option(help="Name of the system.")] = None,
    protocol: Annotated[str | None, typer.Option(help="A protocol of the definition.")] = None,
    predictions: Annotated[Path | None, typer.Option(help="CSV, TSV, Parquet or npz; may be packed.")] = None,
    head: HeadOption = None,
    head_map: HeadMapOption = None,
    box_format: Annotated[BoxFormat | None, typer.Option(help="For boxes: what their four numbers are.")] = None,
    frame: FrameOption = None,
    model_name: CardOption = None,
    weights_id: Annotated[str | None, typer.Option(help="For the system card: which weights exactly.")] = None,
    description: CardOption = None,
    url: CardOption = None,
    trained_on: TrainedOnOption = None,
    repeat_of: RepeatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hand in predictions: checked first, then stored.

    They are stored with the definition version and the subset ids that they were made for.
    """
    from cxrspec.submit import Request, parse_heads

    registry = open_registry()
    card = {"model_name": model_name, "weights_id": weights_id, "description": description, "url": url}
    if repeat_of is not None:
        others = (system, protocol, predictions, head, head_map, box_format, frame, trained_on, *card.values())
        request = _repeated(repeat_of, reference, registry, alone=not any(others))
    elif system is None or protocol is None or predictions is None:
        raise UsageError("Give --system, --protocol and --predictions, or --from OLD/SYSTEM.")
    elif not predictions.is_file():
        raise UsageError(f"{predictions} is not a file.")
    else:
        request = Request(
            reference,
            system,
            protocol,
            predictions.read_bytes(),
            predictions.name,
            heads=parse_heads(head or ()),
            head_map=head_map,
            boxes=_box_form(box_format, frame),
            card=card,
            trained_on=list(map(_training, trained_on or ["unknown"])),
        )
    _submit(request, registry, as_json=as_json)


def _training(value: str) -> str | TrainingList:
    """Return an entry of `--trained-on`; the name of a file stands for the ids in it."""
    from cxrspec.declared import NOTHING, UNKNOWN
    from cxrspec.submit import TrainingList

    kind, colon, name = value.partition(":")
    if colon and kind in ("items", "groups"):
        if not Path(name).is_file():
            raise UsageError(f"{name} is not a file.")
        return TrainingList(Path(name).read_bytes(), Path(name).name, "items" if kind == "items" else "groups")
    try:
        is_file, is_folder = Path(value).is_file(), bool(value.strip()) and Path(value).is_dir()
    except OSError:  # words, too long for the name of a file
        is_file = is_folder = False
    if is_folder and value.strip().lower() not in (NOTHING, UNKNOWN):
        raise UsageError(f"--trained-on {value} is a folder; name a file of ids, one a line.")
    return TrainingList(Path(value).read_bytes(), Path(value).name) if is_file else value


def _repeated(old: Reference, reference: Reference, registry: Registry, *, alone: bool) -> Request:
    """Return the request that repeats an old submission; `alone` says that no other option was given."""
    from cxrspec.submit import repeat

    if not alone:
        raise UsageError("--from repeats a submission as it is; leave the other options out.")
    if old.system is None:
        raise UsageError("--from names benchmark@definition_version/system.")
    return repeat(old.definition, old.system, reference, registry)


def _box_form(box_format: BoxFormat | None, frame: str | None) -> dict[str, object] | None:
    """Return the form of predicted boxes that the options say, if they say one."""
    if box_format is None and frame is None:
        return None
    size = re.fullmatch(r"([1-9][0-9]*)x([1-9][0-9]*)", frame or "")
    if box_format is None or size is None:
        raise UsageError("Give --box-format and --frame together, the frame as 1024x1024.")
    return {"format": box_format.value, "width_px": int(size[1]), "height_px": int(size[2])}


@baseline.command("metadata", epilog="Example: cxrspec baseline metadata nih-cxr14-findings@adjudicated-pool-v1")
def baseline_metadata(reference: DefinitionArgument, as_json: JsonOption = False) -> None:
    """Write the probe of age, sex, view and follow-up number.

    It is the floor that every image model must beat.
    """
    from cxrspec.baselines import metadata_request

    registry = open_registry()
    _submit(metadata_request(reference, registry), registry, as_json=as_json)


@baseline.command(
    "labels",
    epilog="Example: cxrspec baseline labels nih-cxr14-adjudicated@pneumothorax-nodule-v1 --system mined "
    "--covariate nih_labels --finding pneumothorax=Pneumothorax --finding 'nodule_or_mass=Nodule|Mass'",
)
def baseline_labels(
    reference: DefinitionArgument,
    system: Annotated[str, typer.Option(help="Name of the system.")],
    covariate: Annotated[str, typer.Option(help="Frozen covariate whose cells hold names joined by '|'.")],
    finding: Annotated[
        list[str], typer.Option(metavar="OUR=NAME", help="our=NAME or our='NAME|NAME': what counts for a finding.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Write the names in a covariate as scores of 1 and 0.

    So the scores of other labels of the same images stand beside those of systems.
    """
    from cxrspec.baselines import labels_request
    from cxrspec.submit import parse_heads

    registry = open_registry()
    names = {ours: theirs.split("|") for ours, theirs in parse_heads(finding).items()}
    request = labels_request(reference, system, registry, covariate=covariate, names=names)
    _submit(request, registry, as_json=as_json)


@baseline.command("boxes", epilog="Example: cxrspec baseline boxes nih-cxr14-localization@bbox-2017-v1 --kind mean-box")
def baseline_boxes(
    reference: DefinitionArgument,
    kind: Annotated[str, typer.Option(help="whole-image, mean-box or tiny-box.")],
    as_json: JsonOption = False,
) -> None:
    """Write the boxes of a localizer that sees no image.

    They show what the criterion rewards.
    """
    from cxrspec.baselines import boxes_request

    registry = open_registry()
    _submit(boxes_request(reference, kind, registry), registry, as_json=as_json)


@baseline.command(
    "answers", epilog="Example: cxrspec baseline answers mimic-cxr-vqa@physionet-1.0.0-v1 --kind always-no"
)
def baseline_answers(
    reference: DefinitionArgument,
    kind: Annotated[str, typer.Option(help="always-yes, always-no or majority.")],
    fit_on: Annotated[str, typer.Option(help="For majority: the subset whose usual answers are given.")] = "validation",
    as_json: JsonOption = False,
) -> None:
    """Write the answers of a system that sees no image.

    What they score is owed to the questions alone.
    """
    from cxrspec.baselines import answers_request

    registry = open_registry()
    _submit(answers_request(reference, kind, registry, fit_on=fit_on), registry, as_json=as_json)


def _submit(request: Request, registry: Registry, *, as_json: bool) -> None:
    """Write a submission, and put its predictions under DVC unless a stage makes them."""
    from cxrspec.pipeline import dvc_add, is_made_by_stage
    from cxrspec.report import terminal
    from cxrspec.submit import submit as write_submission

    submission, notes = write_submission(request, registry)
    folder = registry.submission_folder(request.reference, submission.system)
    paths = [folder / name for name in submission.files]
    may_leave = registry.read_lock(request.reference).redistribute
    tracked = [path for path in paths if not is_made_by_stage(registry, path)]
    is_stored = any([dvc_add(registry, path, push=may_leave) for path in tracked])  # noqa: C419 (each must be added)
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
