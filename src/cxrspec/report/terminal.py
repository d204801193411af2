"""Own how the command line shows things: results on stdout, problems on stderr; rich decides on colour and width."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cxrspec.errors import Issue

MARKS: Final = {"held": ("✓", "green"), "broken": ("✗", "bold red"), "not checked": ("○", "yellow")}
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
PIPE_WIDTH: Final = 240
"""Columns where stdout is no terminal, so that no cell is cut."""


def out() -> Console:
    """Return the console of results."""
    console = Console(highlight=False, soft_wrap=True)
    return console if console.is_terminal else Console(highlight=False, soft_wrap=True, width=PIPE_WIDTH)


def say(line: str, style: str = "") -> None:
    """Print one line of a result as it is, without markup."""
    out().print(Text(harmless(line), style), soft_wrap=True)


def note(line: str) -> None:
    """Print a line beside the results, on stderr."""
    Console(stderr=True, highlight=False).print(Text.assemble(("note: ", "yellow"), harmless(line)), soft_wrap=True)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say on a terminal what is being done while the block runs, and nothing in a log."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield
        return
    with console.status(Text(harmless(what))):
        yield


def show_issues(issues: Iterable[Issue], *, kind: str = "error") -> None:
    """Print issues on stderr, one a line."""
    console = Console(stderr=True, highlight=False)
    style = "red" if kind == "error" else "yellow"
    for issue in issues:
        console.print(Text.assemble((f"{kind}: ", style), harmless(str(issue))), soft_wrap=True)


def show_audit(audit: Mapping[str, Any]) -> None:
    """Print a chain of evidence, one link a line, with what the numbers stand on."""
    say(audit["reference"], "bold")
    for name, subset in audit["basis"].get("subsets", {}).items():
        upstream = f" (its publisher calls it {subset['upstream_id']})" if "upstream_id" in subset else ""
        say(f"  {name}: subset id {subset['id']}{upstream}, {subset['items']:,} items of {subset['groups']:,} groups")
    for source, files in audit["basis"].get("sources", {}).items():
        pins = (f"{name} {one['sha256'][:16]}... ({one.get('proof', 'no proof')})" for name, one in files.items())
        say(f"  source {source}: {', '.join(pins)}")
    table = Table(box=None, show_header=False, pad_edge=False)
    for link in audit["links"]:
        mark, style = MARKS[link["state"]]
        add_row(table, Text(f"  {mark}", style), link["name"], Text(link["state"], style), link["detail"])
    out().print(table)


def add_row(table: Table, *cells: str | Text) -> None:
    """Add a row whose cells are shown as they are: a bracket in them is no markup."""
    table.add_row(*(Text(harmless(cell)) if isinstance(cell, str) else cell for cell in cells))


def harmless(text: str) -> str:
    """Write out control characters that a file brought along, so that none of them acts on the terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def new_table(*columns: str) -> Table:
    """Return an empty table without a frame."""
    return Table(*columns, box=None, pad_edge=False, header_style="bold")


def show_list(title: str, lines: Iterable[str]) -> None:
    """Print lines under a title, or nothing where there are none."""
    if found := list(lines):
        say(f"{title}:")
        for line in found:
            say(f"  - {line}")
