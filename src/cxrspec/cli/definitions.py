"""Own the commands about definitions: list, show, validate, freeze, items, fetch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cxrspec.cli.application import (
    DefinitionArgument,
    JsonOption,
    MirrorOption,
    UsageError,
    app,
    chosen,
    complete_definition,
    complete_scored,
    complete_subset,
    leave,
    open_registry,
    open_store,
    parse_definition,
    parse_scored,
    print_json,
    reference_parser,
    run_each,
)
from cxrspec.errors import Issue, RegistryError
from cxrspec.reference import Reference

if TYPE_CHECKING:
    from cxrspec.registry import Registry


@app.command("list", epilog="Example: cxrspec list --json")
def list_definitions(as_json: JsonOption = False) -> None:
    """List the definitions with their subsets and systems."""
    from cxrspec.report import definition_text

    registry = open_registry()
    frozen = set(registry.frozen())
    rows: list[dict[str, Any]] = []

    def one(reference: Reference) -> None:
        subsets = registry.read_lock(reference).subsets if reference in frozen else {}
        # asked of git only for what has no lock here: deleting a lock does not unfreeze
        unfrozen = "lock missing" if reference not in frozen and registry.known_lock(reference) else "authored"
        rows.append(
            {
                "reference": str(reference),
                "state": "frozen" if reference in frozen else unfrozen,
                "subsets": {name: subset["items"] for name, subset in subsets.items()},
                "systems": registry.systems(reference),
            }
        )

    failed = run_each(sorted({*registry.authored(), *frozen}, key=str), one)
    print_json(rows) if as_json else definition_text.show_listing(rows)
    leave(failed)


@app.command(epilog="Example: cxrspec show nih-cxr14-findings@adjudicated-pool-v1/metadata-only")
def show(
    reference: Annotated[
        Reference,
        typer.Argument(parser=parse_scored, metavar="BENCHMARK@VERSION[/SYSTEM]", autocompletion=complete_scored),
    ],
    picture: Annotated[
        str | None,
        typer.Option(metavar="ITEM:FINDING", help="Draw this item of a localizer as SVG, on standard output."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a definition, or the report of a system.

    A frozen definition is shown as its lock says, another as its file does, with what keeps it from being frozen.
    With --picture, draw one item: its heatmap, the boxes of the system and the reference boxes.
    """
    from cxrspec.description import current_description
    from cxrspec.report import definition_text, report_text, terminal
    from cxrspec.report_file import read_report

    registry = open_registry()
    if reference.system is None and _is_authored(reference, registry):
        document = _authored(reference, registry)
        print_json(document) if as_json else definition_text.show_authored(document)
        return
    lock = registry.read_lock(reference)
    if picture:
        typer.echo(_picture(registry, reference, picture))
        return
    if reference.system is None:
        description = current_description(lock, registry)
        if as_json:
            print_json({**lock.document, "description": description})
        else:
            definition_text.show_lock(lock.document, lock.subset_ids, description)
        return
    report = read_report(registry, reference, reference.system)
    if report is None:
        where = registry.name(registry.report_path(reference, reference.system))
        raise RegistryError(Issue("table-missing", where, "there is no report", f"Run 'cxrspec score {reference}'"))
    if as_json:
        print_json(report)
        return
    report_text.show_report(report)
    terminal.show_list("caveats", current_description(lock, registry).get("caveats", ()))


def _is_authored(reference: Reference, registry: Registry) -> bool:
    """Return whether there is a definition file, and no lock: neither here nor in git."""
    if registry.lock_path(reference).is_file() or not registry.spec_path(reference).is_file():
        return False
    return registry.known_lock(reference) is None


def _authored(reference: Reference, registry: Registry) -> dict[str, Any]:
    """Return what a definition file says, in the form of a lock, and the shards that it does not name."""
    from cxrspec.compiler import unnamed_shards
    from cxrspec.description import description_of
    from cxrspec.loader import load_definition

    path = registry.spec_path(reference)
    definition = load_definition(path, shown_as=registry.name(path))
    task = definition.task
    parts = {task.STRATA.replace("_", " "): list(task.strata_names), "protocol": list(task.protocol_names)}
    return {
        "benchmark": reference.benchmark,
        "definition_version": reference.version,
        "state": "authored, not frozen",
        "definition_digest": definition.digest,
        "definition": definition.score_relevant(),
        "description": description_of(definition),
        "parts": parts,
        "unnamed": [{"where": where, "reason": reason} for where, reason in unnamed_shards(definition)],
    }


def _picture(registry: Registry, reference: Reference, wanted: str) -> str:
    """Return the SVG of `ITEM:FINDING` for the system that the reference names."""
    from cxrspec.report.picture import localization_picture
    from cxrspec.score import drawing
    from cxrspec.submission import load_submission

    item, colon, finding = wanted.rpartition(":")
    if reference.system is None or not colon:
        raise UsageError("--picture draws ITEM:FINDING of BENCHMARK@VERSION/SYSTEM.")
    submission = load_submission(registry, reference.definition, reference.system)
    drawn = drawing(submission, registry.read_lock(reference), registry, item, finding)
    return localization_picture(
        title=f"{item}: {finding}, {reference}",
        frame=drawn.frame,
        reference={"reference": drawn.reference.tolist()},
        detected={label: boxes.tolist() for label, boxes in drawn.detected.items()},
        heatmap=drawn.heatmap,
    )


@app.command(epilog="Example: cxrspec validate specs/nih-cxr14-findings/official-v3.yaml")
def validate(
    definitions: Annotated[list[str] | None, typer.Argument(metavar="FILE|BENCHMARK@VERSION")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check definitions without opening any data.

    Every issue of a file is told at once, with line and column. Without a name, every file of specs/ is checked.
    """
    from cxrspec.freeze import validate_definition
    from cxrspec.report import terminal

    registry = open_registry()
    named = [_definition_path(registry, text) for text in definitions or ()]
    rows: list[dict[str, Any]] = []
    for path in named or registry.spec_paths():
        issues, notes, digest = validate_definition(path, registry)
        found = {"issues": [one.as_json() for one in issues], "notes": [one.as_json() for one in notes]}
        rows.append({"file": registry.name(path), "digest": digest, **found})
        if not as_json:
            terminal.show_issues(issues)
            terminal.show_issues(notes, kind="note")
            if digest:
                terminal.say(f"{registry.name(path)}: fine, definition {digest[:16]}")
    if as_json:
        print_json(rows)
    leave(any(row["issues"] for row in rows))


def _definition_path(registry: Registry, text: str) -> Path:
    if "@" in text and not Path(text).exists():
        return registry.spec_path(parse_definition(text))
    path = Path(text)
    return path.parent.resolve() / path.name


@app.command(epilog="Example: cxrspec freeze nih-cxr14-findings@adjudicated-pool-v1")
def freeze(
    references: Annotated[
        list[Reference] | None,
        typer.Argument(parser=parse_definition, metavar="BENCHMARK@VERSION", autocompletion=complete_definition),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every definition of specs/.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Compile again and compare; write nothing.")] = False,
    as_json: JsonOption = False,
    mirror: MirrorOption = None,
) -> None:
    """Compile definitions and write their locks and tables, once.

    What a definition expects is checked first. Freezing again changes nothing, and no frozen content is ever replaced.
    """
    from cxrspec.freeze import freeze as freeze_definition
    from cxrspec.pipeline import update_pipelines
    from cxrspec.report import definition_text, terminal

    registry = open_registry()
    rows: list[dict[str, Any]] = []

    def one(reference: Reference) -> None:
        with open_store(registry, mirror) as store:
            frozen = freeze_definition(reference, registry, store, check=check)
        rows.append(frozen.as_json())
        if not as_json:
            definition_text.show_frozen(frozen, with_claims=check)

    failed = run_each(chosen(references, every, registry.authored), one)
    if as_json:
        print_json(rows)
    if not check:
        for path in update_pipelines(registry):
            terminal.note(f"wrote the stages of {registry.name(path)}; commit it with the lock")
    leave(failed)


@app.command(epilog="Example: cxrspec items nih-cxr14-findings@adjudicated-pool-v1:test | sha256sum")
def items(
    reference: Annotated[
        Reference,
        typer.Argument(
            parser=reference_parser(subset=True), metavar="BENCHMARK@VERSION:SUBSET", autocompletion=complete_subset
        ),
    ],
    covariates: Annotated[bool, typer.Option("--covariates", help="The table of covariates instead.")] = False,
    restricted: Annotated[
        bool, typer.Option("--restricted", help="Print rows of sources that may not be passed on.")
    ] = False,
) -> None:
    """Print the canonical text of a frozen subset.

    Its sha256 is the subset's digest, whose first 16 digits are the subset id.
    """
    if reference.subset is None:
        raise UsageError(f"Name a subset: {reference}:SUBSET.")
    table = open_registry().read_subset(reference, covariates=covariates, restricted=restricted)
    sys.stdout.buffer.write(table.text)


@app.command(epilog="Example: cxrspec fetch nih-cxr14-findings@official-v3 --to /media/usb/mirror")
def fetch(
    reference: DefinitionArgument,
    to: Annotated[Path | None, typer.Option(help="Fill this mirror folder with every file of the sources.")] = None,
    source: Annotated[str | None, typer.Option(help="Only this file, as source or source/file.")] = None,
    output: Annotated[Path | None, typer.Option("--as", help="With --source: write that file here.")] = None,
    mirror: MirrorOption = None,
) -> None:
    """Fetch the sources of a definition into the cache or a mirror.

    With --source and --as, one file of them is written to a path.
    """
    from cxrspec.compiler import refuse_unnamed
    from cxrspec.files import write_whole
    from cxrspec.loader import load_definition
    from cxrspec.report import terminal
    from cxrspec.source_files import SourceFiles
    from cxrspec.sources import fill_mirror

    if (source is None) != (output is None) or (to and source):
        raise UsageError("--source and --as go together, and not with --to.")
    registry = open_registry()
    path = registry.spec_path(reference)
    definition = load_definition(path, shown_as=registry.name(path))
    with open_store(registry, mirror) as store:
        refuse_unnamed(definition)
        files = SourceFiles(definition, store)
        if to:
            for kept in fill_mirror(definition.sources, store, to, files.shard_columns):
                terminal.say(f"{kept.sha256}  {kept.name}")
        elif source and output:
            opened = files.named(source)
            data = opened.read()
            with registry.writing():
                write_whole(output.absolute(), data)
            terminal.say(f"{opened.sha256}  {output}")
        else:
            files.open_all()
            for (name, file_name), opened in files.opened.items():
                terminal.say(f"{opened.sha256}  {name}/{file_name}")
