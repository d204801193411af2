"""Own the commands that write what others look at or read: report, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cxrspec.cli.application import app, frozen_references, open_registry


@app.command(epilog="Example: cxrspec report nih-cxr14-findings --out site")
def report(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder that the pages are written to.")],
    names: Annotated[list[str] | None, typer.Argument(metavar="BENCHMARK|BENCHMARK@VERSION")] = None,
) -> None:
    """Write a static site: leaderboards, curves, evidence.

    One HTML file per definition and system, without scripts or network. Every audit is run again; other files of the
    folder are left alone, and pages of systems that are gone stay until you delete them.
    """
    from cxrspec.report import terminal
    from cxrspec.report.site import write_site

    registry = open_registry()
    references = frozen_references(names, registry)
    number = write_site(references, registry, out.absolute(), terminal.working)
    terminal.say(f"{number} pages in {out}; open {out / 'index.html'}")
