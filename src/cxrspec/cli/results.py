"""Own the commands about numbers: score, compare, curves, leaderboard, audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cxrspec.cli.application import (
    BoardArguments,
    JsonOption,
    MirrorOption,
    ScoredArgument,
    ScoredArguments,
    UsageError,
    app,
    chosen,
    frozen_references,
    leave,
    open_registry,
    open_store,
    print_json,
    run_each,
)
from cxrspec.reference import Reference


@app.command(epilog="Example: cxrspec score nih-cxr14-findings@adjudicated-pool-v1/metadata-only")
def score(
    references: ScoredArguments = None,
    every: Annotated[bool, typer.Option("--all", help="Every submission of every frozen definition.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Score submissions against locks and frozen tables.

    A score that the definition asks for and that is undefined ends in exit code 1, after all reports are written.
    """
    from cxrspec.report import report_text, terminal
    from cxrspec.report_file import is_undefined
    from cxrspec.score import score as score_system
    from cxrspec.submission import task_of

    registry = open_registry()
    done: list[dict[str, Any]] = []

    def system(reference: Reference) -> bool:
        with terminal.working(f"scoring {reference}"):
            scored = score_system(reference.definition, reference.system or "", registry)
        done.append({"reference": str(reference), "state": scored.state, "report": scored.report})
        if not as_json:
            terminal.show_issues(scored.notes, kind="note")
            if scored.report:
                report_text.show_report(scored.report)
            terminal.say(f"{reference}: {scored.state}")
        if undefined := scored.report is not None and is_undefined(scored.report):
            report_text.show_undefined(reference, scored.report or {})
        return undefined

    def definition(reference: Reference) -> bool:
        lock = registry.read_lock(reference)
        names = [reference.system] if reference.system else registry.systems(lock.reference)
        if not names and not task_of(lock).protocol_names:
            terminal.note(
                f"{reference} has no protocol: it freezes items and their labels, and nothing is scored on it"
            )
        elif not names:
            terminal.note(f"{reference} has no submission; make one with 'cxrspec submit {reference}'")
        return run_each([Reference(reference.benchmark, reference.version, system=name) for name in names], system)

    failed = run_each(chosen(references, every, registry.frozen), definition)
    if as_json:
        print_json(done)
    leave(failed)


@app.command(
    epilog="Example: cxrspec compare nih-cxr14-findings@official-v3/mine nih-cxr14-findings@official-v3/metadata-only"
)
def compare(
    first: ScoredArgument,
    second: ScoredArgument,
    one_sided: Annotated[
        bool, typer.Option("--one-sided", help="Test whether the first is larger, not whether they differ.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare two systems of one definition version on the same frozen items: differences, intervals and p."""
    from cxrspec.compare import compare as compare_systems
    from cxrspec.report import report_text, terminal

    if not (first.system and second.system):
        raise UsageError("Name two systems, each as BENCHMARK@VERSION/SYSTEM.")
    with terminal.working(f"comparing {first} and {second}"):
        found = compare_systems(first, second, open_registry(), one_sided=one_sided)
    if as_json:
        print_json(found.as_json())
    else:
        report_text.show_comparison(found.as_json())


@app.command(epilog="Example: cxrspec curves nih-cxr14-findings@official-v3/metadata-only --to curves/metadata-only")
def curves(
    reference: ScoredArgument,
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the files go; it is made if need be.")],
    restricted: Annotated[
        bool, typer.Option("--restricted", help="Draw what comes from sources that may not be passed on.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write ROC and precision-recall curves of a system, with the readers' points: SVG, and CSV that DVC plots.

    Where the folder is in a DVC project, 'dvc plots show' draws the CSV files. A curve beside its predictions gives
    labels away: of sources that may not be passed on it asks for a flag, and a .gitignore keeps the files out of git.
    """
    from cxrspec.curves import curve_files, ignoring, system_curves
    from cxrspec.files import write_whole
    from cxrspec.report import terminal
    from cxrspec.report.curves import curves_picture

    if not reference.system:
        raise UsageError("Name a system, as BENCHMARK@VERSION/SYSTEM.")
    registry = open_registry()
    with terminal.working(f"drawing {reference}"):
        found = system_curves(reference, registry, restricted=restricted)
        files = curve_files(found)
        for subset, findings in found.items():
            for finding, one in findings.items():
                files[f"{subset}.{finding}.svg"] = curves_picture(f"{finding} on {subset}: {reference}", one).encode()
    to.mkdir(parents=True, exist_ok=True)
    redistribute = registry.read_lock(reference.definition).redistribute
    if not redistribute:
        write_whole(to / ".gitignore", ignoring(to / ".gitignore", files))
    for name, data in files.items():
        write_whole(to / name, data)
        if not as_json:
            terminal.say(str(to / name))
    if as_json:
        print_json({"reference": str(reference), "folder": str(to), "files": list(files)})
    if not redistribute:
        message = "a source may not be passed on, and a curve beside its predictions gives labels away: keep it here"
        terminal.note(f"{message}; {to / '.gitignore'} keeps it out of git")


@app.command(epilog="Example: cxrspec leaderboard nih-cxr14-findings")
def leaderboard(
    names: BoardArguments = None,
    write: Annotated[bool, typer.Option("--write", help="Write Markdown and JSON beside the lock.")] = False,
    all_versions: Annotated[
        bool, typer.Option("--all-versions", help="Also say which versions have comparable scores.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show systems with rank groups, intervals, counts and signatures.

    Systems are ranked within one definition version, never across; those that a paired test does not separate share a
    rank.
    """
    from cxrspec.comparison import comparable_pairs
    from cxrspec.report import report_text, terminal
    from cxrspec.report.board import has_entries
    from cxrspec.report.leaderboard import leaderboard as gather
    from cxrspec.report.leaderboard import reported_board, write_leaderboard
    from cxrspec.report.versions import show_pairs

    registry = open_registry()
    boards: list[dict[str, Any]] = []

    def show(board: dict[str, Any]) -> None:
        if has_entries(board):
            boards.append(board)
            if not as_json:
                report_text.show_board(board)

    def one(reference: Reference) -> None:
        show(write_leaderboard(reference, registry) if write else gather(reference, registry))

    frozen = {one.benchmark for one in registry.frozen()}
    only_reported = [name for name in names or () if name not in frozen and registry.reported_folder(name).is_dir()]
    others = [name for name in names or () if name not in only_reported]
    named = frozen_references(others, registry) if others or not names else []
    for name in only_reported:
        show(reported_board(name, registry))
    failed = run_each(named, one)
    pairs = comparable_pairs({one.benchmark for one in named}, registry) if all_versions else []
    if as_json:
        print_json({"boards": boards, "versions": pairs} if all_versions else boards)
    elif not boards and not failed:
        terminal.note("no definition has a submission or a reported result yet")
    if pairs and not as_json:
        show_pairs(pairs)
    leave(failed)


@app.command(epilog="Example: cxrspec audit nih-cxr14-findings@adjudicated-pool-v1/metadata-only --deep")
def audit(
    references: ScoredArguments = None,
    deep: Annotated[bool, typer.Option("--deep", help="Compile again from the sources.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="A link that is not checked counts as a problem.")] = False,
    as_json: JsonOption = False,
    mirror: MirrorOption = None,
) -> None:
    """Check every link between a number and its frozen items.

    Each link is derived again: held, broken, or not checked with the reason. Nothing is written.
    """
    from cxrspec.audit import Audit, audit_definition, audit_system, systems_to_audit
    from cxrspec.report import terminal

    registry = open_registry()
    audits: list[Audit] = []

    def done(one: Audit) -> None:
        audits.append(one)
        if not as_json:  # at once: a long audit shows how far it is
            terminal.show_audit(one.as_json())

    for reference in references or registry.frozen():
        if deep:
            with open_store(registry, mirror) as store:
                found = audit_definition(reference, registry, store)
        else:
            found = audit_definition(reference, registry)
        done(found)
        for system in [reference.system] if reference.system else systems_to_audit(reference, registry):
            with terminal.working(f"scoring {reference.definition}/{system} again"):
                found = audit_system(reference, system, registry)
            done(found)
    if as_json:
        print_json([one.as_json() for one in audits])
    leave(not all(one.is_sound(strict=strict) for one in audits))
