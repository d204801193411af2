"""Own the command line: parse, call one library function, render, exit. No command computes anything itself.

Exit codes: 0 fine, 1 problems (on stderr), 2 wrong usage. Results go to stdout.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cxrspec import __version__
from cxrspec.errors import CxrspecError, Issue, RegistryError
from cxrspec.reference import Reference

if TYPE_CHECKING:
    from cxrspec.registry import Registry
    from cxrspec.sources import Store
    from cxrspec.submit import Request

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Benchmarks of chest radiographs: declared in YAML, frozen once, scored exactly, audited by anyone.",
)
baseline = typer.Typer(no_args_is_help=True, help="Write submissions that never see a pixel, from frozen tables.")
app.add_typer(baseline, name="baseline")


def _reference(text: str | Reference) -> Reference:
    try:
        return text if isinstance(text, Reference) else Reference.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


_REF_HELP = "benchmark@definition_version"
Ref = Annotated[Reference, typer.Argument(parser=_reference, metavar="REF", help=_REF_HELP)]
Refs = Annotated[
    list[Reference] | None, typer.Argument(parser=_reference, metavar="REF...", help=f"{_REF_HELP}, or .../system")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Mirror = Annotated[
    list[Path] | None,
    typer.Option(help="Folder of files called by their sha256, tried before the network; may be repeated."),
]


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(f"cxrspec {__version__}")
        raise typer.Exit


@app.command("list")
def list_definitions(as_json: Json = False) -> None:
    """List every definition: authored or frozen, its subsets and its systems.

    Example: cxrspec list --json
    """
    from cxrspec.report import terminal

    registry = _registry()
    frozen = set(registry.frozen())
    rows: list[dict[str, Any]] = []
    for reference in sorted({*registry.authored(), *frozen}, key=str):
        subsets = registry.read_lock(reference).subsets if reference in frozen else {}
        rows.append(
            {
                "reference": str(reference),
                "state": "frozen" if reference in frozen else "authored",
                "subsets": {name: subset["items"] for name, subset in subsets.items()},
                "systems": registry.systems(reference),
            }
        )
    _print_json(rows) if as_json else terminal.show_listing(rows)


@app.command()
def show(reference: Ref, as_json: Json = False) -> None:
    """Show a frozen definition, or a system's report when the reference ends in /SYSTEM.

    Example: cxrspec show nih-cxr14-findings@adjudicated-pool-v1/metadata-only
    """
    from cxrspec.report import terminal
    from cxrspec.score import read_report

    registry = _registry()
    lock = registry.read_lock(reference)
    if reference.system is None:
        _print_json(lock.document) if as_json else terminal.show_lock(lock.document, lock.subset_ids)
        return
    report = read_report(registry, reference, reference.system)
    if report is None:
        where = registry.name(registry.report_path(reference, reference.system))
        raise RegistryError(Issue("table-missing", where, "there is no report", f"Run 'cxrspec score {reference}'"))
    _print_json(report) if as_json else terminal.show_report(report)


@app.command()
def validate(
    definitions: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE|REF]...", help="All files of specs/ where none is named.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check definitions without opening any data: every issue of every file, with line and column.

    Example: cxrspec validate specs/nih-cxr14-findings/official-v3.yaml
    """
    from cxrspec.freeze import validate_definition
    from cxrspec.report import terminal

    registry = _registry()
    named = [_definition_path(registry, text) for text in definitions or ()]
    rows: list[dict[str, Any]] = []
    for path in named or [registry.spec_path(reference) for reference in registry.authored()]:
        issues, notes, digest = validate_definition(path, registry)
        found = {"issues": [one.as_json() for one in issues], "notes": [one.as_json() for one in notes]}
        rows.append({"file": registry.name(path), "digest": digest, **found})
        if not as_json:
            terminal.show_issues(issues)
            terminal.show_issues(notes, kind="note")
            if digest:
                terminal.say(f"{registry.name(path)}: fine, definition {digest[:16]}")
    if as_json:
        _print_json(rows)
    raise typer.Exit(any(row["issues"] for row in rows))


@app.command()
def freeze(
    references: Refs = None,
    every: Annotated[bool, typer.Option("--all", help="Every definition of specs/.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Compile again and compare; write nothing.")] = False,
    mirror: Mirror = None,
) -> None:
    """Compile definitions, check what they expect, and write locks and tables once.

    Example: cxrspec freeze nih-cxr14-findings@adjudicated-pool-v1
    """
    from cxrspec.freeze import claim_table
    from cxrspec.freeze import freeze as freeze_definition
    from cxrspec.pipeline import update_pipelines
    from cxrspec.report import terminal

    registry = _registry()

    def one(reference: Reference) -> None:
        with _store(registry, mirror) as store:
            frozen = freeze_definition(reference, registry, store, check=check)
        terminal.show_issues(frozen.notes, kind="note")
        ids = ", ".join(f"{name} {digest}" for name, digest in frozen.lock.subset_ids.items())
        terminal.say(f"{reference}: {frozen.state}; subset ids {ids}")
        if check and frozen.claims:
            terminal.say(claim_table(frozen.claims))

    failed = _each(_chosen(references, every, registry.authored), one)
    if not check:
        for path in update_pipelines(registry):
            terminal.note(f"wrote the stages of {registry.name(path)}; commit it with the lock")
    raise typer.Exit(failed)


@app.command()
def items(
    reference: Annotated[Reference, typer.Argument(parser=_reference, metavar="REF:SUBSET")],
    covariates: Annotated[bool, typer.Option("--covariates", help="The table of covariates instead.")] = False,
    restricted: Annotated[
        bool, typer.Option("--restricted", help="Print rows of sources that may not be passed on.")
    ] = False,
) -> None:
    """Print the canonical text of a frozen subset: its sha256 is the subset's digest.

    Example: cxrspec items nih-cxr14-findings@adjudicated-pool-v1:test | sha256sum
    """
    table = _registry().read_subset(reference, covariates=covariates, restricted=restricted)
    sys.stdout.buffer.write(table.text)


@app.command()
def fetch(
    reference: Ref,
    to: Annotated[Path | None, typer.Option(help="Fill this mirror folder with every file of the sources.")] = None,
    source: Annotated[str | None, typer.Option(help="Only this file, as `source` or `source/file`.")] = None,
    output: Annotated[Path | None, typer.Option("--as", help="With --source: write that file here.")] = None,
    mirror: Mirror = None,
) -> None:
    """Fetch the sources of a definition into the cache, into a mirror folder, or one file of them to a path.

    Example: cxrspec fetch nih-cxr14-findings@official-v3 --to /media/usb/mirror
    """
    from cxrspec.files import write_whole
    from cxrspec.items import SourceFiles
    from cxrspec.loader import load_definition
    from cxrspec.report import terminal
    from cxrspec.sources import fill_mirror

    if (source is None) != (output is None) or (to and source):
        raise typer.BadParameter("--source and --as go together, and not with --to")
    registry = _registry()
    path = registry.spec_path(reference)
    definition = load_definition(path, shown_as=registry.name(path))
    with _store(registry, mirror) as store:
        files = SourceFiles(definition, store)
        if to:
            for kept in fill_mirror(definition.sources, store, to):
                terminal.say(f"{kept.sha256}  {kept.name}")
        elif source and output:
            opened = files.named(source)
            write_whole(output.absolute(), opened.read())
            terminal.say(f"{opened.sha256}  {output}")
        else:
            files.open_all()
            for (name, file_name), opened in files.opened.items():
                terminal.say(f"{opened.sha256}  {name}/{file_name}")


@app.command()
def submit(
    reference: Ref,
    system: Annotated[str | None, typer.Option(help="Name of the system.")] = None,
    protocol: Annotated[str | None, typer.Option(help="A protocol of the definition.")] = None,
    predictions: Annotated[Path | None, typer.Option(help="CSV, TSV, Parquet or npz; may be packed.")] = None,
    head: Annotated[
        list[str] | None,
        typer.Option(help="our=theirs: the file's column for a finding; '*=prob_*' stands for all of them."),
    ] = None,
    model_name: Annotated[str | None, typer.Option(help="For the system card.")] = None,
    weights_id: Annotated[str | None, typer.Option(help="For the system card.")] = None,
    description: Annotated[str | None, typer.Option(help="For the system card.")] = None,
    trained_on: Annotated[str, typer.Option(help="The training data, as declared.")] = "unknown",
    repeat_of: Annotated[
        str | None, typer.Option("--from", metavar="OLD/SYSTEM", help="Repeat a submission made for the same subsets.")
    ] = None,
) -> None:
    """Hand in predictions: read and checked first, then stored with the ids they were made for.

    Example: cxrspec submit nih-cxr14-findings@official-v3 --system my-model --protocol zero_shot --predictions p.csv
    """
    from cxrspec.submission import SystemCard, parse_heads
    from cxrspec.submit import Request, repeat

    registry = _registry()
    if repeat_of:
        if system or protocol or predictions or head:
            raise typer.BadParameter("--from repeats a submission as it is; leave the other options out")
        old = _reference(repeat_of)
        if old.system is None:
            raise typer.BadParameter("--from names benchmark@definition_version/system")
        request = repeat(old.definition, old.system, reference.definition, registry)
    else:
        if not (system and protocol and predictions):
            raise typer.BadParameter("give --system, --protocol and --predictions, or --from OLD/SYSTEM")
        if not predictions.is_file():
            raise typer.BadParameter(f"{predictions} is not a file")
        has_card = bool(model_name or weights_id or description)
        request = Request(
            reference.definition,
            system,
            protocol,
            predictions.read_bytes(),
            predictions.name,
            heads=parse_heads(head or []),
            card=SystemCard(model_name=model_name, weights_id=weights_id, description=description)
            if has_card
            else None,
            trained_on=trained_on,
        )
    _submit(request, registry, tracked=True)


@baseline.command("metadata")
def baseline_metadata(reference: Ref) -> None:
    """Write the probe of age, sex, view and follow-up number: the floor that every image model must beat.

    Example: cxrspec baseline metadata nih-cxr14-findings@adjudicated-pool-v1
    """
    from cxrspec.baselines import metadata_request

    registry = _registry()
    _submit(metadata_request(reference.definition, registry), registry, tracked=False)


@baseline.command("labels")
def baseline_labels(
    reference: Ref,
    system: Annotated[str, typer.Option(help="Name of the system.")],
    covariate: Annotated[str, typer.Option(help="Frozen covariate whose cells hold names joined by '|'.")],
    finding: Annotated[list[str], typer.Option(help="our='NAME' or our='NAME|NAME': what counts for a finding.")],
) -> None:
    """Write a covariate's names as scores of 1 and 0, to see how well other labels find these.

    Example: cxrspec baseline labels REF --system mined --covariate nih_labels --finding edema=Edema
    """
    from cxrspec.baselines import labels_request
    from cxrspec.submission import parse_heads

    registry = _registry()
    names = {ours: theirs.split("|") for ours, theirs in parse_heads(finding).items()}
    request = labels_request(reference.definition, system, registry, covariate=covariate, names=names)
    _submit(request, registry, tracked=False)


@app.command()
def score(
    references: Refs = None,
    every: Annotated[bool, typer.Option("--all", help="Every submission of every frozen definition.")] = False,
    as_json: Json = False,
) -> None:
    """Score submissions against the lock and the frozen tables, and nothing else.

    Example: cxrspec score nih-cxr14-findings@adjudicated-pool-v1/metadata-only
    """
    from cxrspec.report import terminal
    from cxrspec.score import score as score_system

    registry = _registry()
    done: list[dict[str, Any]] = []

    def one(reference: Reference) -> None:
        scored = score_system(reference.definition, reference.system or "", registry)
        done.append({"reference": str(reference), "state": scored.state, "report": scored.report})
        if as_json:
            return
        terminal.show_issues(scored.notes, kind="note")
        if scored.report:
            terminal.show_report(scored.report)
        terminal.say(f"{reference}: {scored.state}")

    failed = _each(_systems(_chosen(references, every, registry.frozen), registry), one)
    if as_json:
        _print_json(done)
    raise typer.Exit(failed)


@app.command()
def leaderboard(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[BENCHMARK|REF]...", help="All where none is named.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Write Markdown and JSON beside the lock.")] = False,
    as_json: Json = False,
) -> None:
    """Show the systems of a definition version with intervals, counts and signatures.

    Example: cxrspec leaderboard nih-cxr14-findings
    """
    from cxrspec.report import terminal
    from cxrspec.report.leaderboard import boards, write_leaderboard

    registry = _registry()
    frozen = registry.frozen()
    chosen = [one for name in names for one in _named(name, frozen)] if names else frozen
    found = [write_leaderboard(one, registry) for one in chosen] if write else boards(chosen, registry)
    if as_json:
        _print_json(found)
        return
    for board in found:
        terminal.show_board(board)


@app.command()
def audit(
    references: Refs = None,
    deep: Annotated[bool, typer.Option("--deep", help="Compile again from the sources.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="A link that is not checked counts as a problem.")] = False,
    as_json: Json = False,
    mirror: Mirror = None,
) -> None:
    """Derive every link between a number and its frozen items again: held, broken or not checked.

    Example: cxrspec audit nih-cxr14-findings@adjudicated-pool-v1/metadata-only --deep
    """
    from cxrspec.audit import audit_definition, audit_system
    from cxrspec.report import terminal

    registry = _registry()
    audits = []
    with _store(registry, mirror) as store:
        for reference in references or registry.frozen():
            audits.append(audit_definition(reference, registry, store if deep else None))
            systems = [reference.system] if reference.system else registry.systems(reference)
            audits += [audit_system(reference, system, registry) for system in systems]
    if as_json:
        _print_json([one.as_json() for one in audits])
    else:
        for one in audits:
            terminal.show_audit(one.as_json())
    raise typer.Exit(not all(one.is_sound(strict=strict) for one in audits))


@app.command()
def new(
    reference: Ref,
    version: Annotated[str, typer.Argument(metavar="NEW_VERSION")],
    change: Annotated[str | None, typer.Option(help="What differs, in one sentence.")] = None,
) -> None:
    """Start the next definition version from an existing one; comments and order stay, nothing is opened.

    Example: cxrspec new nih-cxr14-findings@adjudicated-pool-v1 adjudicated-pool-v2
    """
    from cxrspec.authoring import start_version
    from cxrspec.report import terminal

    registry = _registry()
    started = start_version(reference.definition, version, registry, change=change)
    terminal.say(f"wrote {registry.name(registry.spec_path(started))}; edit it, then run 'cxrspec freeze {started}'")


def _registry() -> Registry:
    from cxrspec.registry import Registry

    root = os.environ.get("CXRSPEC_ROOT")
    return Registry.find(Path(root) if root else None)


@contextmanager
def _store(registry: Registry, mirrors: Iterable[Path] | None) -> Iterator[Store]:
    from cxrspec.sources import Store
    from cxrspec.sources.progress import terminal_progress

    with terminal_progress() as progress:
        yield Store.from_environment(registry.root, mirrors or (), progress=progress)


def _submit(request: Request, registry: Registry, *, tracked: bool) -> None:
    """Write a submission; `tracked` puts its predictions under DVC, where no stage makes them again."""
    from cxrspec.pipeline import dvc_add
    from cxrspec.report import terminal
    from cxrspec.submit import submit as write_submission

    submission, notes = write_submission(request, registry)
    terminal.show_issues(notes, kind="note")
    folder = registry.submission_folder(request.reference, submission.system)
    if tracked and not dvc_add(registry, folder / submission.predictions.file):
        terminal.note("the project has no .dvc folder, so nothing was added to DVC")
    subsets = ", ".join(f"{name}={digest}" for name, digest in submission.subsets.items())
    terminal.say(f"{request.reference}/{submission.system}: submitted for {subsets}")


def _chosen(references: list[Reference] | None, every: bool, known: Callable[[], list[Reference]]) -> list[Reference]:
    if bool(references) == every:
        raise typer.BadParameter("name definitions, or give --all")
    return references or known()


def _systems(references: Iterable[Reference], registry: Registry) -> list[Reference]:
    return [
        Reference(one.benchmark, one.version, system=system)
        for one in references
        for system in ([one.system] if one.system else registry.systems(registry.read_lock(one).reference))
    ]


def _named(name: str, frozen: list[Reference]) -> list[Reference]:
    if "@" in name:
        return [_reference(name).definition]
    found = [one for one in frozen if one.benchmark == name]
    if not found:
        known = ", ".join(sorted({one.benchmark for one in frozen})) or "none"
        raise typer.BadParameter(f"no frozen benchmark '{name}'; there are {known}")
    return found


def _definition_path(registry: Registry, text: str) -> Path:
    return registry.spec_path(_reference(text)) if "@" in text else Path(text).absolute()


def _each(references: Iterable[Reference], run: Callable[[Reference], None]) -> bool:
    """Run for every reference, printing the problems of each; return whether any failed."""
    from cxrspec.report import terminal

    failed = False
    for reference in references:
        try:
            run(reference)
        except CxrspecError as error:
            failed = True
            terminal.show_issues(error.issues)
    return failed


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def main() -> None:
    """Run the command line; problems of ours end in exit code 1, without a traceback."""
    try:
        app()
    except CxrspecError as error:
        from cxrspec.report import terminal

        terminal.show_issues(error.issues)
        sys.exit(1)
    except BrokenPipeError:  # the reader of the pipe has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
