"""Own what the command line shows: tables on stdout, problems on stderr; rich decides on colour and width."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cxrspec.errors import Issue
from cxrspec.report.board import (
    agreement_text,
    agreement_texts,
    counts_text,
    graded_rows,
    grader_text,
    interval_text,
    is_wide,
    metric_heading,
    metric_names,
    protocols,
    ranked,
    reported_text,
    unranked_texts,
    wide_rows,
)

if TYPE_CHECKING:
    from cxrspec.freeze import Frozen
    from cxrspec.reference import Reference

MARKS: Final = {"held": ("✓", "green"), "broken": ("✗", "bold red"), "not checked": ("○", "yellow")}
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
ANSWER_COUNTS: Final = (
    *("n_items", "n_positive", "n_negative", "n_said_yes", "n_said_no"),
    *("n_undecided", "n_refusal", "n_empty", "n_missing", "n_excluded"),
)
"""The counts of questions, in the order in which they are shown."""
PIPE_WIDTH: Final = 240
"""Columns where stdout is no terminal, so that no cell is cut."""


def out() -> Console:
    """Return the console of results."""
    console = Console(highlight=False, soft_wrap=True)
    return console if console.is_terminal else Console(highlight=False, soft_wrap=True, width=PIPE_WIDTH)


def say(line: str, style: str = "") -> None:
    """Print one line of a result as it is, without markup."""
    out().print(Text(_harmless(line), style), soft_wrap=True)


def note(line: str) -> None:
    """Print a line beside the results, on stderr."""
    Console(stderr=True, highlight=False).print(Text.assemble(("note: ", "yellow"), _harmless(line)), soft_wrap=True)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say on a terminal what is being done while the block runs, and nothing in a log."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield
        return
    with console.status(Text(_harmless(what))):
        yield


def show_issues(issues: Iterable[Issue], *, kind: str = "error") -> None:
    """Print issues on stderr, one a line."""
    console = Console(stderr=True, highlight=False)
    style = "red" if kind == "error" else "yellow"
    for issue in issues:
        console.print(Text.assemble((f"{kind}: ", style), _harmless(str(issue))), soft_wrap=True)


def show_listing(rows: list[dict[str, Any]]) -> None:
    """Print the definitions with their state."""
    table = _table("definition", "state", "subsets", "systems")
    for row in rows:
        subsets = ", ".join(f"{name} {count:,}" for name, count in row["subsets"].items())
        style = "green" if row["state"] == "frozen" else "yellow"
        _add(table, row["reference"], Text(row["state"], style), subsets, ", ".join(row["systems"]))
    out().print(table)


def show_frozen(frozen: Frozen, *, with_claims: bool) -> None:
    """Print what freezing one definition came to, with the claims beside what was counted if asked."""
    from cxrspec.freeze import claim_table

    show_issues(frozen.notes, kind="note")
    ids = ", ".join(f"{name} {digest}" for name, digest in frozen.lock.subset_ids.items())
    say(f"{frozen.reference}: {frozen.state}; subset ids {ids}")
    if with_claims and frozen.claims:
        say(claim_table(frozen.claims))


def show_undefined(reference: Reference, report: Mapping[str, Any]) -> None:
    """Print on stderr which scores that the definition asks for have no value, and why."""
    show_issues(
        Issue("undefined", f"{reference} {score['metric']}", f"{score['reason']}; it has no value, and no mean")
        for score in report["scores"]
        if score["value"] is None
    )


def show_lock(document: Mapping[str, Any], subset_ids: Mapping[str, str]) -> None:
    """Print what a frozen definition is: identity, subsets with counts, sources with pins and licences, caveats."""
    description = document["description"]
    say(f"{document['benchmark']}@{document['definition_version']}  {description.get('title', '')}", "bold")
    say(f"definition {document['definition_digest'][:16]}, all subsets together {document['combined_id']}")
    counts = _table("subset", "id", "items", "groups", "n positive")
    for name, subset in document["subsets"].items():
        positives = ", ".join(f"{finding} {n:,}" for finding, n in subset.get("positives", {}).items())
        _add(counts, name, subset_ids[name], f"{subset['items']:,}", f"{subset['groups']:,}", positives)
    out().print(counts)
    sources = _table("source", "file", "sha256", "proof", "licence")
    for source, files in document["sources"].items():
        licence = description.get("sources", {}).get(source, {}).get("licence", "")
        for name, entry in files.items():
            _add(sources, source, name, entry["sha256"][:16], entry.get("proof", ""), licence)
    out().print(sources)
    _show_list("caveats", description.get("caveats", ()))


def show_report(report: Mapping[str, Any]) -> None:
    """Print one report: every metric with its interval, then the findings, then signatures and notes."""
    say(f"{report['reference']}/{report['system']}  protocol {report['protocol']}", "bold")
    for score in (*report["scores"], *report.get("graded", ())):
        size = f"n = {score['n_items']:,} of {score['n_groups']:,} groups"
        by = f" by {grader_text(score)}" if "grader" in score else f" ({score['basis']})" if "basis" in score else ""
        say(f"{score['metric']} on {score['subset']}{by}  {interval_text(score)}  {size}", "bold")
        _show_parts(score)
        say(f"  {score['signature']}", "dim")
    if found := report.get("agreement"):
        say(f"graders agree: {agreement_text(found)}")
    say(f"trained on: {report['trained_on']}; rows left aside: {report['predictions']['n_left_aside']:,}")
    _show_list("notes", report["notes"])


def _show_parts(score: Mapping[str, Any]) -> None:
    """Print the parts of a score, each with the counts that it has: findings, or all questions and their types."""
    counts: Sequence[str] = ("n_positive", "n_negative", "n_missing", "n_excluded")
    by, parts = "finding", score.get("findings", {})
    if "question_types" in score:
        asked = {name: entry for name, entry in score["question_types"].items() if entry["n_items"]}
        by, parts = "question type", {"all": score, **asked}
        counts = [key for key in ANSWER_COUNTS if key in score]
    table = _table(f"  {by}", score["kind"], *(key.replace("_", " ") for key in counts))
    for name, entry in parts.items():
        _add(table, f"  {name}", interval_text(entry), *(f"{entry[key]:,}" for key in counts))
    out().print(table)


def show_board(board: Mapping[str, Any]) -> None:
    """Print a leaderboard with the signature of every number under it."""
    say(f"\n{board['reference']}  {board['title']}", "bold")
    for subset in board["subsets"]:
        say(f"  {counts_text(board, subset)}")
    for protocol in protocols(board):
        rows = ranked(board, protocol)
        if not rows:
            continue
        metrics = metric_names(board, protocol)
        if is_wide(board, protocol):
            _show_wide(board, protocol, rows)
            continue
        headings = [metric_heading(name, rows) for name in metrics]
        table = _table(f"{protocol}: system", *headings, "n", "trained on")
        for row in rows:
            cells = [interval_text(row["scores"][name]) for name in metrics]
            _add(table, row["system"], *cells, f"{row['scores'][metrics[0]]['n_items']:,}", row["trained_on"])
        out().print(table)
        for row in rows:
            for name in metrics:
                say(f"  {row['scores'][name]['signature']}", "dim")
    if graded := list(graded_rows(board)):
        table = _table("graded", "system", "grader", "value", "by question type", "n")
        for line in graded:
            _add(table, *line)
        out().print(table)
        for text in agreement_texts(board):
            say(f"  graders agree: {text}")
    for text in unranked_texts(board):
        say(f"  without a score: {text}", "yellow")
    for entry in board["reported"]:
        text = f"  reported, not ranked: {entry['title']}: {reported_text(entry)}"
        say(f"{text} (comparable: {entry['comparable']}; {entry['reason']})", "dim")


def _show_wide(board: Mapping[str, Any], protocol: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the means of a protocol with many numbers, a column per system; findings stand in the written board."""
    table = _table(f"{protocol}: number", "", *(row["system"] for row in rows))
    for cells in wide_rows(board, protocol, findings=False):
        _add(table, *cells)
    out().print(table)
    for row in rows:
        name, score = next(iter(row["scores"].items()))
        say(f"  {score['signature'].replace(f'|metric:{name}|', '|metric:(as named)|')}", "dim")


def show_audit(audit: Mapping[str, Any]) -> None:
    """Print a chain of evidence, one link a line, with what the numbers stand on."""
    say(audit["reference"], "bold")
    for name, subset in audit["basis"].get("subsets", {}).items():
        say(f"  {name}: subset id {subset['id']}, {subset['items']:,} items of {subset['groups']:,} groups")
    for source, files in audit["basis"].get("sources", {}).items():
        pins = (f"{name} {one['sha256'][:16]}... ({one.get('proof', 'no proof')})" for name, one in files.items())
        say(f"  source {source}: {', '.join(pins)}")
    table = Table(box=None, show_header=False, pad_edge=False)
    for link in audit["links"]:
        mark, style = MARKS[link["state"]]
        _add(table, Text(f"  {mark}", style), link["name"], Text(link["state"], style), link["detail"])
    out().print(table)


def _add(table: Table, *cells: str | Text) -> None:
    """Add a row whose cells are shown as they are: a bracket in them is no markup."""
    table.add_row(*(Text(_harmless(cell)) if isinstance(cell, str) else cell for cell in cells))


def _harmless(text: str) -> str:
    """Write out control characters that a file brought along, so that none of them acts on the terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _table(*columns: str) -> Table:
    return Table(*columns, box=None, pad_edge=False, header_style="bold")


def _show_list(title: str, lines: Iterable[str]) -> None:
    if found := list(lines):
        say(f"{title}:")
        for line in found:
            say(f"  - {line}")
