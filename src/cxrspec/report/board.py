"""Own what a leaderboard says, for the terminal and for Markdown alike: order, names, texts. It opens nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

TABLE_SIZE: Final = 16
"""A publication with more values than this reports a table, which stands in its own file."""
WIDE: Final = 6
"""A protocol with more numbers than this has a row per number and finding, and a column per system."""


def is_wide(board: Mapping[str, Any], protocol: str) -> bool:
    """Return whether a protocol has too many numbers for a column each."""
    return len(metric_names(board, protocol)) > WIDE


def wide_rows(board: Mapping[str, Any], protocol: str, *, findings: bool) -> Iterator[tuple[str, ...]]:
    """Yield (number, finding, one cell per system) of every number: its mean, then with `findings` each finding."""
    rows = ranked(board, protocol)
    for name in metric_names(board, protocol):
        scores = [row["scores"][name] for row in rows]
        yield (metric_heading(name, rows), "mean", *map(interval_text, scores))
        for finding in scores[0].get("findings", {}) if findings else ():
            yield ("", finding, *(interval_text(score["findings"][finding]) for score in scores))


def has_entries(board: Mapping[str, Any]) -> bool:
    """Return whether any system or reported result stands on a board."""
    return bool(board["systems"] or board["reported"])


def protocols(board: Mapping[str, Any]) -> list[str]:
    """Return the protocols that any metric uses, in the order of the definition."""
    return list(dict.fromkeys(metric["protocol"] for metric in board["metrics"]))


def metric_names(board: Mapping[str, Any], protocol: str) -> list[str]:
    """Return the names of the metrics of a protocol, in the order of the definition."""
    return [metric["name"] for metric in board["metrics"] if metric["protocol"] == protocol]


def ranked(board: Mapping[str, Any], protocol: str) -> list[Mapping[str, Any]]:
    """Return the scored systems of a protocol, best first by its first metric; undefined values come last."""
    first = metric_names(board, protocol)[0]
    rows = [row for row in board["systems"] if row["state"] == "scored" and row["protocol"] == protocol]

    def key(row: Mapping[str, Any]) -> tuple[bool, float, str]:
        value = row["scores"][first]["value"]
        return (value is None, -(value or 0.0), row["system"])

    return sorted(rows, key=key)


def unranked_texts(board: Mapping[str, Any]) -> Iterator[str]:
    """Yield why each system that has no row stands in no table."""
    for row in board["systems"]:
        if row["state"] != "scored":
            yield f"{row['system']}: {row['reason']}"


def metric_heading(metric: str, rows: list[Mapping[str, Any]]) -> str:
    """Write a metric with the subset that it is of, so that no two subsets are ever read as one."""
    return f"{metric} on {rows[0]['scores'][metric]['subset']}"


def interval_text(score: Mapping[str, Any]) -> str:
    """Write a value with its first interval, `0.576 [0.551, 0.601]`, or why it is undefined."""
    if score["value"] is None:
        return f"undefined ({score['reason']})"
    interval = score["intervals"][0]
    if interval["low"] is None:
        return f"{score['value']:.3f} (no interval: {interval['reason']})"
    return f"{score['value']:.3f} [{interval['low']:.3f}, {interval['high']:.3f}]"


def counts_text(board: Mapping[str, Any], subset: str) -> str:
    """Write the size of a subset and its positives per finding."""
    found = board["subsets"][subset]
    text = f"{subset} {found['id']}: n = {found['items']:,} items of {found['groups']:,} groups"
    if "closed" in found:
        text += f"; closed-ended {found['closed']:,}, open-ended {found['open']:,}"
    for key, words in (("positives", "n positive"), ("boxes", "n boxes")):
        if key in found:
            text += f"; {words}: {', '.join(f'{name} {count:,}' for name, count in found[key].items())}"
    return text


def graded_rows(board: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield (metric, system, grader, value, one value per question type, n) of every number that graders gave."""
    for row in board["systems"]:
        for score in row.get("graded", ()):
            parts = [
                f"{name} {interval_text(part)}" for name, part in score["question_types"].items() if part["n_items"]
            ]
            cells = (metric_heading(score["metric"], [{"scores": {score["metric"]: score}}]), row["system"])
            yield (*cells, grader_text(score), interval_text(score), "; ".join(parts), f"{score['n_items']:,}")


def grader_text(score: Mapping[str, Any]) -> str:
    """Write who graded, a judge with its prompt."""
    grader = score["grader"]
    prompt = f", prompt {grader['prompt_sha256'][:16]}" if "prompt_sha256" in grader else ""
    return f"{grader['name']} ({grader['kind']}{prompt})"


def agreement_texts(board: Mapping[str, Any]) -> Iterator[str]:
    """Yield how far the graders of each system agree."""
    for row in board["systems"]:
        if found := row.get("agreement"):
            yield f"{row['system']}: {agreement_text(found)}"


def agreement_text(found: Mapping[str, Any]) -> str:
    """Write the coefficients of graders with their names; what is undefined with its reason."""
    values = {name: value for name, value in found.items() if name not in ("graders", "n_items", "reason")}
    words = [f"{name.replace('_', ' ')} {'undefined' if v is None else f'{v:.3f}'}" for name, v in values.items()]
    reason = f" ({found['reason']})" if found["reason"] else ""
    return f"{', '.join(words)} of {', '.join(found['graders'])} on {found['n_items']:,} answers{reason}"


def reported_text(entry: Mapping[str, Any]) -> str:
    """Write what a publication reports, digits as printed; a whole table only by its size."""
    if len(entry["values"]) > TABLE_SIZE:
        metrics = list(dict.fromkeys(value["metric"] for value in entry["values"]))
        return f"{len(entry['values'])} values of {', '.join(metrics)}"
    values = (
        f"{value['metric']}{' ' + value['finding'] if value.get('finding') else ''} {value['value']}"
        for value in entry["values"]
    )
    return "; ".join(values)


def markdown(board: Mapping[str, Any]) -> str:
    """Write the leaderboard as Markdown, with the signature of every number."""
    return "\n".join(_markdown_lines(board)) + "\n"


def _markdown_lines(board: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"# {board['reference']}", "", board["title"], "")
    yield from (f"- {counts_text(board, subset)}" for subset in board["subsets"])
    for protocol in protocols(board):
        if rows := ranked(board, protocol):
            yield from ("", f"## {protocol}", "")
            yield from _protocol_lines(board, protocol, rows)
    if graded := list(graded_rows(board)):
        yield from ("", "## Graded answers: each grader is a result of its own", "")
        yield from ("| metric | system | grader | value | by question type | n |", "|---|---|---|---|---|---|")
        yield from map(_table_row, graded)
        yield from ("", *(f"- {text}" for text in agreement_texts(board)))
        yield from (f"- `{score['signature']}`" for row in board["systems"] for score in row.get("graded", ()))
    if unranked := list(unranked_texts(board)):
        yield from ("", "## Without a score", "")
        yield from (f"- {_one_line(text)}" for text in unranked)
    if board["reported"]:
        yield from ("", "## Reported by others: never ranked, never scored by us", "")
        yield from ("| system | as printed | comparable | where |", "|---|---|---|---|")
        for entry in board["reported"]:
            where = f"{entry['publication']['citation']} {entry['publication']['place']}"
            comparable = f"{entry['comparable']}: {entry['reason']}"
            yield _table_row((entry["title"], reported_text(entry), comparable, where))
    if board["caveats"]:
        yield from ("", "## Caveats", "")
        yield from (f"- {_one_line(caveat)}" for caveat in board["caveats"])


def _protocol_lines(board: Mapping[str, Any], protocol: str, rows: list[Mapping[str, Any]]) -> Iterator[str]:
    metrics = metric_names(board, protocol)
    if is_wide(board, protocol):
        yield _table_row(("number", "finding", *(row["system"] for row in rows)))
        yield f"|---|---|{'---|' * len(rows)}"
        yield from map(_table_row, wide_rows(board, protocol, findings=True))
        yield from ("", *(f"- {row['system']} was trained on: {_one_line(row['trained_on'])}" for row in rows), "")
        yield from (f"- `{row['scores'][name]['signature']}` ({row['system']})" for row in rows for name in metrics)
        return
    yield _table_row(("system", *(metric_heading(name, rows) for name in metrics), "n", "trained on"))
    yield f"|---|{'---|' * len(metrics)}---|---|"
    for row in rows:
        cells = [interval_text(row["scores"][name]) for name in metrics]
        count = row["scores"][metrics[0]]["n_items"]
        yield _table_row((row["system"], *cells, f"{count:,}", row["trained_on"]))
    yield ""
    yield from (f"- `{row['scores'][name]['signature']}` ({row['system']})" for row in rows for name in metrics)


def _table_row(cells: tuple[str, ...]) -> str:
    """Write one line of a table; a mark or line break of a cell's own would end it."""
    return f"| {' | '.join(_one_line(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _one_line(text: str) -> str:
    return " ".join(text.split())
