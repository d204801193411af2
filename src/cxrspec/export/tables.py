"""Own the leaderboard as CSV, LaTeX and Markdown: full numbers for programs, three digits for people.

What is undefined says why; signatures, training data, overlaps and caveats go with every table.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cxrspec.report import board as boards
from cxrspec.report.markdown import markdown, one_line
from cxrspec.report.numbers import board_rows, columns_of, interval_meanings

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


# -- CSV


def csv_table(board: Mapping[str, Any]) -> str:
    """Write one line per number at full precision: all together, findings, readers, question types, strata, graders.

    What is undefined is an empty cell, its reason in another. Lines that begin with `#` say what the table is, what
    its intervals are, and the caveats.
    """
    rows = list(board_rows(board))
    out = io.StringIO()
    for line in (str(board["reference"]), board["title"], *_comments(board), *_of_columns(board)):
        out.write(f"# {one_line(line)}\n")
    writer = csv.DictWriter(out, columns_of(rows), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: repr(cell) if isinstance(cell, float) else cell for name, cell in row.items()} for row in rows
    )
    return out.getvalue()


def _of_columns(board: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{name}_low, {name}_high: {kind}" for name, kind in interval_meanings(board).items())


def _comments(board: Mapping[str, Any]) -> Iterator[str]:
    """Yield what every table says beside its numbers."""
    yield f"definition {board['definition_digest']}"
    yield from (boards.counts_text(board, subset) for subset in board["subsets"])
    scored = [row for row in board["systems"] if row["state"] in boards.PLACED]
    yield from (f"{row['system']} was trained on: {boards.training_text(row)}" for row in scored)
    for protocol in boards.protocols(board):
        if boards.ranked(board, protocol):
            yield from boards.ranking_texts(board, protocol)
    yield from (f"graders agree: {text}" for text in boards.agreement_texts(board))
    yield from boards.unranked_texts(board)
    yield from (f"caveat: {caveat}" for caveat in board["caveats"])


# -- tables for people


def markdown_table(board: Mapping[str, Any]) -> str:
    """Write the leaderboard as `leaderboard --write` does, with its identity and what stands in brackets."""
    said = [f"definition {board['definition_digest']}", *_brackets(board), *_elsewhere(board)]
    return "\n".join((markdown(board), "## How to read this", "", *(f"- {text}" for text in said))) + "\n"


def _brackets(board: Mapping[str, Any]) -> list[str]:
    kinds = dict.fromkeys(interval_meanings(board).values())
    return [f"In brackets: {'; '.join(kinds)}."] if kinds else []


def _elsewhere(board: Mapping[str, Any]) -> list[str]:
    """Say which parts of the numbers no table for people holds."""
    columns = {"finding": "findings", "question_type": "question types", "stratum": "strata", "reader": "readers"}
    rows = list(board_rows(board))
    found = [words for name, words in columns.items() if any(row[name] is not None for row in rows)]
    return [f"The numbers of single {', '.join(found)} are in the CSV export, and in the report."] if found else []


@dataclass
class _Notes:
    """The notes under a table, by number."""

    reasons: list[str] = field(default_factory=list)

    def cell(self, score: Mapping[str, Any]) -> str:
        """Return a number with its intervals; what is undefined is a dash with the number of a note."""
        if score["value"] is None:
            return self._dash(score["reason"])
        several = len(score["intervals"]) > 1
        return " ".join((f"{score['value']:.3f}", *(self._interval(one, several) for one in score["intervals"])))

    def _interval(self, interval: Mapping[str, Any], several: bool) -> str:
        ends = self._dash(interval["reason"]) if interval["low"] is None else boards.bounds_text(interval)
        return f"{ends} {boards.by_text(interval)}" if several else ends

    def _dash(self, reason: str) -> str:
        if reason not in self.reasons:
            self.reasons.append(reason)
        return f"{DASH} ({self.reasons.index(reason) + 1})"

    def texts(self) -> list[str]:
        """Return what stands under the table."""
        return [f"({number}) {reason}." for number, reason in enumerate(self.reasons, 1)]


def _latex_rows(board: Mapping[str, Any], protocol: str, notes: _Notes) -> Iterator[tuple[str, ...]]:
    """Yield the heading, then the rows of a protocol: a system each, or a number each where there are many."""
    rows, names = boards.ranked(board, protocol), boards.metric_names(board, protocol)
    headings = [boards.metric_heading(name, rows) for name in names]
    overlaps = [boards.overlap_text(row["overlap"]) for row in rows]
    if boards.is_wide(board, protocol):
        yield ("number", *(row["system"] for row in rows))
        yield ("rank", *map(boards.rank_text, rows))
        yield ("overlap", *overlaps)
        for name, heading in zip(names, headings, strict=True):
            yield (heading, *(notes.cell(row["scores"][name]) for row in rows))
        return
    yield ("rank", "system", *headings, "n", "overlap")
    for row, overlap in zip(rows, overlaps, strict=True):
        scores = [row["scores"][name] for name in names]
        cells = map(notes.cell, scores)
        yield (boards.rank_text(row), row["system"], *cells, f"{scores[0]['n_items']:,}", overlap)


def latex_table(board: Mapping[str, Any]) -> str:
    """Write the leaderboard as LaTeX tables that need only the package booktabs."""
    lines = [f"% {one_line(line)}" for line in (str(board["reference"]), *_comments(board))]
    lines.append(r"% needs \usepackage{booktabs}")
    for protocol in boards.protocols(board):
        if rows := boards.ranked(board, protocol):
            notes = _Notes()
            cells = list(_latex_rows(board, protocol, notes))
            trained = [f"{row['system']} was trained on: {row['trained_on']}." for row in rows]
            said = [*_brackets(board), *notes.texts(), *boards.ranking_texts(board, protocol), *trained]
            lines += [f"% {score['signature']}" for row in rows for score in row["scores"].values()]
            lines += _latex_float(board, f"protocol {protocol}", cells, [*said, *_elsewhere(board)])
    if graded := list(boards.graded_rows(board)):
        lines += [f"% {score['signature']}" for row in board["systems"] for score in row.get("graded", ())]
        lines += _latex_float(
            board, "graded answers", [boards.GRADED_HEADING, *graded], [*boards.agreement_texts(board)]
        )
    return "\n".join(lines) + "\n"


def _latex_float(
    board: Mapping[str, Any], what: str, rows: Sequence[tuple[str, ...]], notes: Sequence[str]
) -> Iterator[str]:
    """Yield a table whose first row is its heading, with its notes and the caveats under it."""
    yield from ("", r"\begin{table}", r"\centering")
    title, what, reference = map(latex_text, (one_line(board["title"]), what, board["reference"]))
    yield rf"\caption{{{title}, {what} (\texttt{{{reference}}}).}}"
    yield rf"\begin{{tabular}}{{l{'r' * (len(rows[0]) - 1)}}}"
    yield from (r"\toprule", _latex_row(rows[0]), r"\midrule")
    yield from map(_latex_row, rows[1:])
    yield from (r"\bottomrule", r"\end{tabular}", "")
    yield from (rf"\par\footnotesize {latex_text(one_line(note))}" for note in (*notes, *board["caveats"]))
    yield r"\end{table}"


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(map(latex_text, cells)) + r" \\"


def latex_text(text: str) -> str:
    r"""Escape a text for LaTeX.

    >>> print(latex_text("mean_auroc 50 % \\ {x}"))
    mean\_auroc 50 \% \textbackslash{} \{x\}
    """
    return _SPECIAL.sub(lambda found: _LATEX[found[0]], text)
