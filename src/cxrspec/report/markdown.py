"""Own the leaderboard as Markdown, with the signature of every number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cxrspec.report.board import (
    GRADED_HEADING,
    OVERLAP_MEANS,
    agreement_texts,
    counts_text,
    graded_rows,
    is_wide,
    metric_names,
    protocols,
    ranked,
    ranking_texts,
    reported_text,
    signature_texts,
    table_rows,
    training_text,
    unranked_texts,
)


def markdown(board: Mapping[str, Any]) -> str:
    """Write the leaderboard as Markdown, with the signature of every number."""
    return "\n".join(_markdown_lines(board)) + "\n"


def _markdown_lines(board: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"# {board['reference']}", "", one_line(board["title"]), "")
    yield from (f"- {counts_text(board, subset)}" for subset in board["subsets"])
    for protocol in protocols(board):
        if rows := ranked(board, protocol):
            yield from ("", f"## {protocol}", "")
            yield from _protocol_lines(board, protocol, rows)
    if graded := list(graded_rows(board)):
        yield from ("", "## Graded answers: each grader is a result of its own", "")
        yield from markdown_rows([GRADED_HEADING, *graded])
        yield from ("", *(f"- {text}" for text in agreement_texts(board)))
        yield from (f"- `{score['signature']}`" for row in board["systems"] for score in row.get("graded", ()))
    if unranked := list(unranked_texts(board)):
        yield from ("", "## Without a score", "")
        yield from (f"- {one_line(text)}" for text in unranked)
    if board["reported"]:
        yield from ("", "## Reported by others: never ranked, never scored by us", "")
        yield from markdown_rows([("system", "as printed", "comparable", "where"), *map(_reported, board["reported"])])
    if board["caveats"]:
        yield from ("", "## Caveats", "")
        yield from (f"- {one_line(caveat)}" for caveat in board["caveats"])


def _reported(entry: Mapping[str, Any]) -> tuple[str, ...]:
    where = f"{entry['publication']['citation']} {entry['publication']['place']}"
    return entry["title"], reported_text(entry), f"{entry['comparable']}: {entry['reason']}", where


def _protocol_lines(board: Mapping[str, Any], protocol: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    metrics = metric_names(board, protocol)
    yield from (*markdown_rows(table_rows(board, protocol)), "")
    if is_wide(board, protocol):
        yield from (*ranking_texts(board, protocol), "")
        yield from (*(f"- {row['system']} was trained on: {one_line(training_text(row))}" for row in rows), "")
    else:
        yield from (f"{text}\n" for text in ranking_texts(board, protocol))
        yield from (OVERLAP_MEANS, "")
    yield from (f"- `{signature}` ({systems})" for signature, systems in signature_texts(rows, metrics))


def markdown_rows(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table whose first row is its heading; no mark or line break of a cell ends it."""
    for at, row in enumerate(rows):
        yield f"| {' | '.join(one_line(cell).replace('|', chr(92) + '|') for cell in row)} |"
        if at == 0:
            yield f"|{'---|' * len(row)}"


def one_line(text: str) -> str:
    """Return a text with its line breaks, and other runs of blanks, made one blank."""
    return " ".join(text.split())
