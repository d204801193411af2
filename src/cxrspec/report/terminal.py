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
    OVERLAP_MEANS,
    agreement_text,
    agreement_texts,
    counts_text,
    graded_rows,
    grader_text,
    interval_text,
    is_wide,
    metric_heading,
    metric_names,
    overlap_text,
    protocols,
    rank_text,
    ranked,
    ranking_texts,
    reported_text,
    signature_texts,
    strata_in_order,
    training_text,
    unranked_texts,
    wide_rows,
)
from cxrspec.report.comparison import comparison_rows
from cxrspec.report.readers import count_rows, of_readers, point_rows
from cxrspec.report_file import undefined_scores

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


def show_listing(rows: list[dict[str, Any]]) -> None:
    """Print the definitions with their state."""
    table = new_table("definition", "state", "subsets", "systems")
    for row in rows:
        subsets = ", ".join(f"{name} {count:,}" for name, count in row["subsets"].items())
        style = "green" if row["state"] == "frozen" else "yellow"
        add_row(table, row["reference"], Text(row["state"], style), subsets, ", ".join(row["systems"]))
    out().print(table)


def show_frozen(frozen: Frozen, *, with_claims: bool) -> None:
    """Print what freezing one definition came to, with the claims beside what was counted if asked."""
    from cxrspec.claims import claim_table

    show_issues(frozen.notes, kind="note")
    ids = ", ".join(f"{name} {digest}" for name, digest in frozen.lock.subset_ids.items())
    say(f"{frozen.reference}: {frozen.state}; subset ids {ids}")
    if with_claims and frozen.claims:
        say(claim_table(frozen.claims))


def show_undefined(reference: Reference, report: Mapping[str, Any]) -> None:
    """Print on stderr which scores that the definition asks for have no value, and why."""
    show_issues(
        Issue("undefined", f"{reference} {score['metric']}", f"{score['reason']}; it has no value, and no mean")
        for score in undefined_scores(report)
    )


def show_lock(document: Mapping[str, Any], subset_ids: Mapping[str, str], description: Mapping[str, Any]) -> None:
    """Print what a frozen definition is: identity, subsets with counts, sources with pins and licences, caveats.

    The description is today's, in which a caveat may have been added since.
    """
    say(f"{document['benchmark']}@{document['definition_version']}  {description.get('title', '')}", "bold")
    say(f"definition {document['definition_digest'][:16]}, all subsets together {document['combined_id']}")
    counts = new_table("subset", "id", "items", "groups", "n positive")
    for name, subset in document["subsets"].items():
        positives = ", ".join(f"{finding} {n:,}" for finding, n in subset.get("positives", {}).items())
        add_row(counts, name, subset_ids[name], f"{subset['items']:,}", f"{subset['groups']:,}", positives)
    out().print(counts)
    for name, subset in description.get("subsets", {}).items():
        if "upstream_id" in subset:
            say(f"{name}: its publisher calls this subset {subset['upstream_id']}; our id is {subset_ids[name]}")
    sources = new_table("source", "file", "sha256", "proof", "licence")
    for source, files in document["sources"].items():
        licence = description.get("sources", {}).get(source, {}).get("licence", "")
        for name, entry in files.items():
            add_row(sources, source, name, entry["sha256"][:16], entry.get("proof", ""), licence)
    out().print(sources)
    show_list("caveats", description.get("caveats", ()))


def show_report(report: Mapping[str, Any]) -> None:
    """Print one report: every metric with its interval, then the findings, then signatures and notes."""
    say(f"{report['reference']}/{report['system']}  protocol {report['protocol']}", "bold")
    readers = of_readers(report["scores"])
    for score in (one for one in (*report["scores"], *report.get("graded", ())) if "convention" not in one):
        size = f"n = {score['n_items']:,} of {score['n_groups']:,} groups"
        by = f" by {grader_text(score)}" if "grader" in score else f" ({score['basis']})" if "basis" in score else ""
        say(f"{score['metric']} on {score['subset']}{by}  {interval_text(score)}  {size}", "bold")
        _show_parts(score)
        for covariate in sorted(score.get("strata", {})):
            _show_strata(score, covariate)
        say(f"  {score['signature']}", "dim")
    if readers:
        _show_readers(readers)
    if found := report.get("agreement"):
        say(f"graders agree: {agreement_text(found)}")
    say(f"trained on: {report['trained_on']}")
    say(f"overlap: {overlap_text(report.get('overlap'))}; rows left aside: {report['predictions']['n_left_aside']:,}")
    show_list("notes", report["notes"])


def _show_strata(score: Mapping[str, Any], covariate: str) -> None:
    """Print what a metric is in every stratum of a covariate, and how many items are in none."""
    table = new_table(f"  {covariate}", "finding", score["kind"], "n items", "n positive", "n negative")
    strata = score["strata"][covariate]
    for name in strata_in_order(strata):
        one = strata[name]
        add_row(table, f"  {name}", "mean", interval_text(one), f"{one['n_items']:,}", "", "")
        for finding, entry in one["findings"].items():
            counts = (f"{entry[key]:,}" for key in ("n_items", "n_positive", "n_negative"))
            add_row(table, "", finding, interval_text(entry), *counts)
    out().print(table)
    if missing := score["n_in_no_stratum"][covariate]:
        say(f"  {missing:,} of {score['n_items']:,} items have no stratum of {covariate}")


def _show_readers(scores: Sequence[Mapping[str, Any]]) -> None:
    """Print the readers below curves: counts by convention, then each reader's point with the margins over it."""
    for rows in (count_rows(scores), point_rows(scores)):
        heading, *found = rows
        table = new_table(*heading)
        for cells in found:
            add_row(table, *cells)
        out().print(table)
    metric, signature = scores[0]["metric"], scores[0]["signature"]
    say(f"  {signature.replace(f'|metric:{metric}|', '|metric:(as named)|')}", "dim")


def show_comparison(found: Mapping[str, Any]) -> None:
    """Print two systems side by side, then in words what the numbers show and what they do not."""
    first, second = found["first"], found["second"]
    say(f"{found['reference']}  {first} against {second}  protocol {found['protocol']}", "bold")
    for metric in found["metrics"]:
        say(f"{metric['metric']} on {metric['subset']} {found['subsets'][metric['subset']]}", "bold")
        say(f"  n = {metric['n_items']:,} of {metric['n_groups']:,} groups")
        heading, *rows = comparison_rows(metric, first, second)
        table = new_table(*heading)
        for cells in rows:
            add_row(table, *cells)
        out().print(table)
    show_list("what this shows", found["shows"])
    show_list("what this does not show", found["does_not_show"])
    show_issues((Issue(**note) for note in found["notes"]), kind="note")


def _show_parts(score: Mapping[str, Any]) -> None:
    """Print the parts of a score, each with the counts that it has: findings, or all questions and their types."""
    counts: Sequence[str] = ("n_positive", "n_negative", "n_missing", "n_excluded")
    by, parts = "finding", score.get("findings", {})
    if "question_types" in score:
        asked = {name: entry for name, entry in score["question_types"].items() if entry["n_items"]}
        by, parts = "question type", {"all": score, **asked}
        counts = [key for key in ANSWER_COUNTS if key in score]
    table = new_table(f"  {by}", score["kind"], *(key.replace("_", " ") for key in counts))
    for name, entry in parts.items():
        add_row(table, f"  {name}", interval_text(entry), *(f"{entry[key]:,}" for key in counts))
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
        table = new_table("rank", f"{protocol}: system", *headings, "n", "overlap", "trained on")
        for row in rows:
            cells = [interval_text(row["scores"][name]) for name in metrics]
            count = f"{row['scores'][metrics[0]]['n_items']:,}"
            known = (overlap_text(row["overlap"]), row["trained_on"])
            add_row(table, rank_text(row), row["system"], *cells, count, *known)
        out().print(table)
        _show_ranking(board, protocol)
        say(f"  {OVERLAP_MEANS}", "dim")
        found = list(signature_texts(rows, metrics))
        for signature, systems in found:
            say(f"  {signature}", "dim")
            if len(found) > len(metrics):  # not all systems have the same
                say(f"    of {systems}", "dim")
    if graded := list(graded_rows(board)):
        table = new_table("graded", "system", "grader", "value", "by question type", "n")
        for line in graded:
            add_row(table, *line)
        out().print(table)
        for text in agreement_texts(board):
            say(f"  graders agree: {text}")
    for text in unranked_texts(board):
        say(f"  without a score: {text}", "yellow")
    for entry in board["reported"]:
        text = f"  reported, not ranked: {entry['title']}: {reported_text(entry)}"
        say(f"{text} (comparable: {entry['comparable']}; {entry['reason']})", "dim")
    show_list("  caveats", board["caveats"])


def _show_ranking(board: Mapping[str, Any], protocol: str) -> None:
    for text in ranking_texts(board, protocol):
        say(f"  {text}", "dim")


def _show_wide(board: Mapping[str, Any], protocol: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the means of a protocol with many numbers, a column per system; findings stand in the written board."""
    table = new_table(f"{protocol}: number", "", *(row["system"] for row in rows))
    for cells in wide_rows(board, protocol, findings=False):
        add_row(table, *cells)
    out().print(table)
    _show_ranking(board, protocol)
    for row in rows:
        say(f"  {row['system']} was trained on: {training_text(row)}", "dim")
    first = metric_names(board, protocol)[0]
    for signature, systems in signature_texts(rows, [first]):
        say(f"  {signature.replace(f'|metric:{first}|', '|metric:(as named)|')} ({systems})", "dim")


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
