"""Own the leaderboard as CSV, LaTeX and Markdown: full numbers for programs, three digits for people.

An undefined value is an em dash with its reason in a note; signatures and caveats go with every table.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cxrspec.report import board as boards
from cxrspec.report.intervals import interval_ends, interval_kind

DASH: Final = "—"
_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "—": "---",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}
_SPECIAL: Final = re.compile("|".join(map(re.escape, _LATEX)))
_FIXED: Final = ("protocol", "system", "metric", "kind", "subset", "subset_id", "finding", "value", "reason")
_COUNTS: Final = ("n_items", "n_groups", "n_positive", "n_negative")


# -- CSV


def csv_table(board: Mapping[str, Any]) -> str:
    """Write one line per number and finding at full precision, its signature in the last column.

    Lines that begin with `#` say what the table is, and the caveats.
    """
    rows = list(_csv_rows(board))
    ends = list(dict.fromkeys(key for row in rows for key in row if key.endswith(("_low", "_high"))))
    out = io.StringIO()
    for line in (str(board["reference"]), board["title"], *_comments(board)):
        out.write(f"# {_one_line(line)}\n")
    writer = csv.DictWriter(out, [*_FIXED, *ends, *_COUNTS, "signature"], restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _comments(board: Mapping[str, Any]) -> Iterator[str]:
    yield f"definition {board['definition_digest']}"
    yield from (boards.counts_text(board, subset) for subset in board["subsets"])
    scored = [row for row in board["systems"] if row["state"] in boards.PLACED]
    yield from (f"{row['system']} was trained on: {row['trained_on']}" for row in scored)
    yield from boards.unranked_texts(board)
    yield from (f"caveat: {caveat}" for caveat in board["caveats"])


def _csv_rows(board: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kinds = {metric["name"]: metric["kind"] for metric in board["metrics"]}
    for protocol in boards.protocols(board):
        for row in boards.ranked(board, protocol):
            for name, score in row["scores"].items():
                of_score = {"protocol": protocol, "system": row["system"], "metric": name, "kind": kinds[name]}
                of_score |= {"subset": score["subset"], "subset_id": board["subsets"][score["subset"]]["id"]}
                of_score["signature"] = score["signature"]
                yield of_score | _numbers("", score)
                for finding, entry in score["findings"].items():
                    yield of_score | _numbers(finding, entry)


def _numbers(finding: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    found = {"finding": finding, "value": _number(entry["value"]), "reason": entry["reason"] or ""}
    for interval in entry["intervals"]:
        name = "_".join(str(interval[key]) for key in ("method", "unit") if key in interval) or "interval"
        found |= {f"{name}_{end}": _number(interval[end]) for end in ("low", "high")}
    return found | {key: entry[key] for key in _COUNTS if key in entry}


def _number(value: float | None) -> str:
    return DASH if value is None else repr(value)


# -- tables for people


@dataclass
class _Table:
    """One protocol of a leaderboard as cells of text."""

    protocol: str
    header: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = field(default_factory=list)
    intervals: str = ""
    """What stands in brackets."""
    reasons: list[str] = field(default_factory=list)
    """Why a value is undefined, by the number of its note."""
    signatures: list[str] = field(default_factory=list)

    def cell(self, score: Mapping[str, Any]) -> str:
        """Return a number with its intervals, or a dash with the number of a note."""
        if score["value"] is None:
            if score["reason"] not in self.reasons:
                self.reasons.append(score["reason"])
            return f"{DASH} ({self.reasons.index(score['reason']) + 1})"
        ends = (interval_ends(one) for one in score["intervals"] if one["low"] is not None)
        return " ".join((f"{score['value']:.3f}", *ends))

    def notes(self) -> list[str]:
        """Return what stands under the table."""
        reasons = [f"({number}) {reason}." for number, reason in enumerate(self.reasons, 1)]
        return [note for note in (self.intervals, *reasons) if note]


def _tables(board: Mapping[str, Any]) -> Iterator[_Table]:
    for protocol in boards.protocols(board):
        if ranked := boards.ranked(board, protocol):
            names = boards.metric_names(board, protocol)
            table = _Table(protocol)
            if boards.is_wide(board, protocol):
                table.header = ("number", *(row["system"] for row in ranked))
                for name in names:
                    cells = (table.cell(row["scores"][name]) for row in ranked)
                    table.rows.append((boards.metric_heading(name, ranked), *cells))
            else:
                table.header = ("system", *(boards.metric_heading(name, ranked) for name in names), "n")
                for row in ranked:
                    scores = [row["scores"][name] for name in names]
                    table.rows.append((row["system"], *map(table.cell, scores), f"{scores[0]['n_items']:,}"))
            kinds = dict.fromkeys(
                interval_kind(one) for row in ranked for name in names for one in row["scores"][name]["intervals"]
            )
            table.intervals = f"In brackets: {'; '.join(kinds)}." if kinds else ""
            table.signatures = [row["scores"][name]["signature"] for row in ranked for name in names]
            yield table


def markdown_table(board: Mapping[str, Any]) -> str:
    """Write the leaderboard as Markdown."""
    lines = [f"# {board['reference']}", "", _one_line(board["title"]), ""]
    for table in _tables(board):
        lines += [f"## {table.protocol}", "", *markdown_rows([table.header, *table.rows]), ""]
        lines += [f"- {_one_line(note)}" for note in table.notes()]
        lines += [*(f"- `{signature}`" for signature in table.signatures), ""]
    lines += [f"- {_one_line(line)}" for line in _comments(board)]
    return "\n".join(lines) + "\n"


def markdown_rows(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table whose first row is its header."""
    for at, row in enumerate(rows):
        yield f"| {' | '.join(_one_line(cell).replace('|', chr(92) + '|') for cell in row)} |"
        if at == 0:
            yield f"|{'---|' * len(row)}"


def latex_table(board: Mapping[str, Any]) -> str:
    """Write the leaderboard as LaTeX tables that need only the package booktabs."""
    lines = [f"% {_one_line(line)}" for line in (str(board["reference"]), *_comments(board))]
    lines.append(r"% needs \usepackage{booktabs}")
    for table in _tables(board):
        lines += ["", *_latex_lines(board, table)]
    return "\n".join(lines) + "\n"


def _latex_lines(board: Mapping[str, Any], table: _Table) -> Iterator[str]:
    yield from (f"% {signature}" for signature in table.signatures)
    yield from (r"\begin{table}", r"\centering")
    title, protocol, reference = map(latex_text, (board["title"], table.protocol, board["reference"]))
    yield rf"\caption{{{title}, protocol {protocol} (\texttt{{{reference}}}).}}"
    yield rf"\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}"
    yield from (r"\toprule", _latex_row(table.header), r"\midrule")
    yield from map(_latex_row, table.rows)
    yield from (r"\bottomrule", r"\end{tabular}", "")
    notes = (*table.notes(), *board["caveats"])
    yield from (rf"\par\footnotesize {latex_text(_one_line(note))}" for note in notes)
    yield r"\end{table}"


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(map(latex_text, cells)) + r" \\"


def latex_text(text: str) -> str:
    r"""Escape a text for LaTeX.

    >>> print(latex_text("mean_auroc 50 % \\ {x}"))
    mean\_auroc 50 \% \textbackslash{} \{x\}
    """
    return _SPECIAL.sub(lambda found: _LATEX[found[0]], text)


def _one_line(text: str) -> str:
    return " ".join(str(text).split())
