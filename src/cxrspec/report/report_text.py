"""Own what the command line shows of numbers: the report of a system, two systems side by side, a leaderboard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from cxrspec.errors import Issue
from cxrspec.report.board import (
    GRADED_HEADING,
    OVERLAP_MEANS,
    agreement_text,
    agreement_texts,
    counts_text,
    graded_rows,
    grader_text,
    interval_text,
    is_wide,
    overlap_text,
    protocols,
    ranked,
    ranking_texts,
    reported_text,
    signature_texts,
    strata_in_order,
    table_rows,
    training_text,
    unranked_texts,
)
from cxrspec.report.comparison import comparison_rows
from cxrspec.report.readers import count_rows, of_readers, point_rows
from cxrspec.report.terminal import add_row, new_table, out, say, show_issues, show_list
from cxrspec.report_file import undefined_scores

if TYPE_CHECKING:
    from cxrspec.reference import Reference

ANSWER_COUNTS: Final = (
    *("n_items", "n_positive", "n_negative", "n_said_yes", "n_said_no"),
    *("n_undecided", "n_refusal", "n_empty", "n_missing", "n_excluded"),
)
"""The counts of questions, in the order in which they are shown."""


def show_undefined(reference: Reference, report: Mapping[str, Any]) -> None:
    """Print on stderr which scores that the definition asks for have no value, and why."""
    show_issues(
        Issue("undefined", f"{reference} {score['metric']}", f"{score['reason']}; it has no value, and no mean")
        for score in undefined_scores(report)
    )


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
        _show_table(heading, found)
    say(f"  {as_named(scores[0]['signature'], scores[0]['metric'])}", "dim")


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


def show_comparison(found: Mapping[str, Any]) -> None:
    """Print two systems side by side, then in words what the numbers show and what they do not."""
    first, second = found["first"], found["second"]
    say(f"{found['reference']}  {first} against {second}  protocol {found['protocol']}", "bold")
    for metric in found["metrics"]:
        say(f"{metric['metric']} on {metric['subset']} {found['subsets'][metric['subset']]}", "bold")
        say(f"  n = {metric['n_items']:,} of {metric['n_groups']:,} groups")
        heading, *rows = comparison_rows(metric, first, second)
        _show_table(heading, rows)
    show_list("what this shows", found["shows"])
    show_list("what this does not show", found["does_not_show"])
    show_issues((Issue(**note) for note in found["notes"]), kind="note")


def show_board(board: Mapping[str, Any]) -> None:
    """Print a leaderboard with the signature of every number under it."""
    say(f"\n{board['reference']}  {board['title']}", "bold")
    for subset in board["subsets"]:
        say(f"  {counts_text(board, subset)}")
    for protocol in protocols(board):
        rows = ranked(board, protocol)
        if not rows:
            continue
        (_, _, *heading), *cells = table_rows(board, protocol, findings=False)
        wide = is_wide(board, protocol)
        first = (f"{protocol}: number", "") if wide else ("rank", f"{protocol}: system")
        _show_table((*first, *heading), cells)
        for text in ranking_texts(board, protocol):
            say(f"  {text}", "dim")
        _show_origins(rows) if wide else _show_signatures(rows)
    if graded := list(graded_rows(board)):
        _show_table(("graded", *GRADED_HEADING[1:]), graded)
        for text in agreement_texts(board):
            say(f"  graders agree: {text}")
    for text in unranked_texts(board):
        say(f"  without a score: {text}", "yellow")
    for entry in board["reported"]:
        text = f"  reported, not ranked: {entry['title']}: {reported_text(entry)}"
        say(f"{text} (comparable: {entry['comparable']}; {entry['reason']})", "dim")
    show_list("  caveats", board["caveats"])


def _show_signatures(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print what an overlap is, and the signature of every number."""
    say(f"  {OVERLAP_MEANS}", "dim")
    metrics = list(rows[0]["scores"])
    found = list(signature_texts(rows, metrics))
    for signature, systems in found:
        say(f"  {signature}", "dim")
        if len(found) > len(metrics):  # not all systems have the same
            say(f"    of {systems}", "dim")


def _show_origins(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print, per system of a table with many numbers, what it was trained on, and one signature for all of them."""
    for row in rows:
        say(f"  {row['system']} was trained on: {training_text(row)}", "dim")
    first = next(iter(rows[0]["scores"]))
    for signature, systems in signature_texts(rows, [first]):
        say(f"  {as_named(signature, first)} ({systems})", "dim")


def as_named(signature: str, metric: str) -> str:
    """Return a signature with the metric's name left open: it is that of all numbers of a table."""
    return signature.replace(f"|metric:{metric}|", "|metric:(as named)|")


def _show_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = new_table(*heading)
    for cells in rows:
        add_row(table, *cells)
    out().print(table)
