"""Own the commands that write what others look at or read: report, export."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cxrspec.cli.application import (
    BoardArguments,
    DefinitionArgument,
    JsonOption,
    ScoredArgument,
    UsageError,
    app,
    named_references,
    open_registry,
    print_json,
)
from cxrspec.reference import Reference

if TYPE_CHECKING:
    from cxrspec.errors import Issue


@app.command(epilog="Example: cxrspec report nih-cxr14-findings --out site")
def report(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder that the pages are written to.")],
    names: BoardArguments = None,
    as_json: JsonOption = False,
) -> None:
    """Write a static site: leaderboards, curves, evidence.

    One HTML file per definition and system, without scripts or network. Every audit is run again; other files of the
    folder are left alone, and pages of systems that are gone stay until you delete them.
    """
    from cxrspec.report import terminal
    from cxrspec.report.site import shown_references, write_site

    registry = open_registry()
    references = named_references(names, shown_references(registry))
    pages = write_site(references, registry, out.absolute(), terminal.working)
    if as_json:
        print_json(pages)
    else:
        terminal.say(f"{len(pages)} page{'s' * (len(pages) != 1)} in {out}; open {out / 'index.html'}")


export = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Write what other programs read; nothing is pushed.",
    epilog="Example: cxrspec export markdown nih-cxr14-findings@official-v3",
)
app.add_typer(export, name="export")

OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="File to write; standard output if none.")
]
DatasetOption = Annotated[
    str | None,
    typer.Option(metavar="OWNER/NAME", help="The benchmark's data set on the hub, if the sources name none."),
]


@export.command(
    "croissant", epilog="Example: cxrspec export croissant nih-cxr14-findings@official-v3 --out croissant.json"
)
def export_croissant(reference: DefinitionArgument, out: OutOption = None) -> None:
    """Write the Croissant metadata of a frozen definition.

    It names the subset tables beside which it belongs, with their sha256. No row is in it.
    """
    import json

    from cxrspec.export import croissant

    document, notes = croissant(reference, open_registry())
    _hand_out(json.dumps(document, indent=2, ensure_ascii=False) + "\n", notes, out)


@export.command("model-card", epilog="Example: cxrspec export model-card nih-cxr14-findings@official-v3/metadata-only")
def export_model_card(reference: ScoredArgument, dataset: DatasetOption = None, out: OutOption = None) -> None:
    """Write a model card with the scores of a system.

    Its metadata has the subset id, the definition version and the intervals. Every link of the audit is checked first.
    """
    from cxrspec.export import checked_report, model_card

    registry = open_registry()
    board, report, notes = checked_report(reference.definition, _system_of(reference), registry)
    _hand_out(model_card(registry.read_lock(reference), report, board, dataset), notes, out)


@export.command(
    "eval-results", epilog="Example: cxrspec export eval-results nih-cxr14-findings@official-v3/metadata-only"
)
def export_eval_results(reference: ScoredArgument, dataset: DatasetOption = None, out: OutOption = None) -> None:
    """Write the scores of a system for the hub's .eval_results.

    Every link of the audit is checked first.
    """
    from cxrspec.export import checked_report, eval_results

    registry = open_registry()
    _, report, notes = checked_report(reference.definition, _system_of(reference), registry)
    _hand_out(eval_results(registry.read_lock(reference), report, dataset), notes, out)


@export.command("csv", epilog="Example: cxrspec export csv nih-cxr14-localization@bbox-2017-v1 --out board.csv")
def export_csv(reference: DefinitionArgument, out: OutOption = None) -> None:
    """Write a leaderboard as CSV: every number and finding.

    Full precision, with signatures; lines that begin with '#' hold the caveats. Every audit is run first.
    """
    from cxrspec.export import checked_board, csv_table

    board, notes = checked_board(reference, open_registry())
    _hand_out(csv_table(board), notes, out)


@export.command("latex", epilog="Example: cxrspec export latex nih-cxr14-findings@official-v3 --out board.tex")
def export_latex(reference: DefinitionArgument, out: OutOption = None) -> None:
    """Write a leaderboard as LaTeX tables.

    Signatures stand in comments, reasons and caveats under the table. Every audit is run first.
    """
    from cxrspec.export import checked_board, latex_table

    board, notes = checked_board(reference, open_registry())
    _hand_out(latex_table(board), notes, out)


@export.command("markdown", epilog="Example: cxrspec export markdown nih-cxr14-findings@official-v3")
def export_markdown(reference: DefinitionArgument, out: OutOption = None) -> None:
    """Write a leaderboard as Markdown.

    With signatures, reasons and caveats. Every audit is run first.
    """
    from cxrspec.export import checked_board, markdown_table

    board, notes = checked_board(reference, open_registry())
    _hand_out(markdown_table(board), notes, out)


def _system_of(reference: Reference) -> str:
    if reference.system is None:
        raise UsageError(f"Name the system: {reference}/SYSTEM.")
    return reference.system


def _hand_out(text: str, notes: list[Issue], out: Path | None) -> None:
    """Write a text to a file whole, or to standard output; notes go to stderr."""
    from cxrspec.files import write_whole
    from cxrspec.report import terminal

    terminal.show_issues(notes, kind="note")
    if out:
        write_whole(out.absolute(), text.encode())
    else:
        sys.stdout.write(text)
