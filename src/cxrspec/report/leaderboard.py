"""Own the leaderboard of one definition version: scored systems with intervals, reported results beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cxrspec.digest import json_text
from cxrspec.files import write_whole
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.reported import load_reported
from cxrspec.score import read_report


def leaderboard(reference: Reference, registry: Registry) -> dict[str, Any]:
    """Gather the leaderboard of a definition version as plain values; a system without a report is `unscored`.

    Raises:
        RegistryError: if the definition is not frozen or a report is damaged.
        DefinitionError: if a file of reported results is faulty.
    """
    lock = registry.read_lock(reference)
    systems = []
    for system in registry.systems(reference):
        report = read_report(registry, reference, system)
        systems.append({"system": system, "state": "unscored"} if report is None else _row(report))
    reported = [entry.as_json() for entry in load_reported(registry, reference.benchmark)]
    counts = ("items", "groups", "positives", "none")
    described = ("name", "kind", "protocol", "average")
    return {
        "reference": str(lock.reference),
        "title": lock.document["description"].get("title", ""),
        "definition_digest": lock.definition_digest,
        "subsets": {
            name: {"id": lock.subset_ids[name], **{key: subset[key] for key in counts if key in subset}}
            for name, subset in lock.subsets.items()
        },
        "metrics": [{key: metric[key] for key in described} for metric in lock.definition["metrics"]],
        "systems": systems,
        "reported": [entry for entry in reported if entry.get("reference") in (None, str(lock.reference))],
        "caveats": lock.document["description"].get("caveats", []),
    }


def boards(references: list[Reference], registry: Registry) -> list[dict[str, Any]]:
    """Return the leaderboards of several versions; one without any system or reported result is left out."""
    found = [leaderboard(reference, registry) for reference in references]
    return [board for board in found if board["systems"] or board["reported"]]


def write_leaderboard(reference: Reference, registry: Registry) -> dict[str, Any]:
    """Write `leaderboard.md`, `leaderboard.json` and `metrics.json` of a version; raises as `leaderboard` does."""
    board = leaderboard(reference, registry)
    values = {
        row["system"]: {name: score["value"] for name, score in row["scores"].items() if score["value"] is not None}
        for row in board["systems"]
        if row["state"] == "scored"
    }
    folder = registry.folder(reference)
    with registry.writing():
        write_whole(folder / "leaderboard.md", markdown(board).encode())
        write_whole(folder / "leaderboard.json", json_text(board))
        write_whole(folder / "metrics.json", json_text(values))
    return board


def ranked(board: Mapping[str, Any], protocol: str) -> list[Mapping[str, Any]]:
    """Return the scored systems of a protocol, best first by its first metric; undefined values come last."""
    first = metric_names(board, protocol)[0]
    rows = [row for row in board["systems"] if row["state"] == "scored" and row["protocol"] == protocol]

    def key(row: Mapping[str, Any]) -> tuple[bool, float, str]:
        value = row["scores"][first]["value"]
        return (value is None, -(value or 0.0), row["system"])

    return sorted(rows, key=key)


def protocols(board: Mapping[str, Any]) -> list[str]:
    """Return the protocols that any metric uses, in the order of the definition."""
    return list(dict.fromkeys(metric["protocol"] for metric in board["metrics"]))


def metric_names(board: Mapping[str, Any], protocol: str) -> list[str]:
    """Return the names of the metrics of a protocol, in the order of the definition."""
    return [metric["name"] for metric in board["metrics"] if metric["protocol"] == protocol]


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
    positives = ", ".join(f"{name} {count:,}" for name, count in found.get("positives", {}).items())
    return (
        f"{subset} {found['id']}: n = {found['items']:,} items of {found['groups']:,} groups; n positive: {positives}"
    )


def reported_text(entry: Mapping[str, Any]) -> str:
    """Write what a publication reports, digits as printed."""
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
    if unscored := [row["system"] for row in board["systems"] if row["state"] == "unscored"]:
        yield from ("", f"Not scored yet: {', '.join(unscored)}.")
    if board["reported"]:
        yield from ("", "## Reported by others: never ranked, never scored by us", "")
        yield from ("| system | as printed | comparable | where |", "|---|---|---|---|")
        for entry in board["reported"]:
            where = f"{entry['publication']['citation']} {entry['publication']['place']}"
            comparable = f"{entry['comparable']}: {entry['reason']}"
            yield f"| {entry['title']} | {reported_text(entry)} | {comparable} | {where} |"
    if board["caveats"]:
        yield from ("", "## Caveats", "")
        yield from (f"- {caveat}" for caveat in board["caveats"])


def _protocol_lines(board: Mapping[str, Any], protocol: str, rows: list[Mapping[str, Any]]) -> Iterator[str]:
    metrics = metric_names(board, protocol)
    yield f"| system | {' | '.join(metrics)} | n | trained on |"
    yield f"|---|{'---|' * len(metrics)}---|---|"
    for row in rows:
        cells = [interval_text(row["scores"][name]) for name in metrics]
        count = row["scores"][metrics[0]]["n_items"]
        yield f"| {row['system']} | {' | '.join(cells)} | {count:,} | {row['trained_on']} |"
    yield ""
    yield from (f"- `{row['scores'][name]['signature']}` ({row['system']})" for row in rows for name in metrics)


def _row(report: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("value", "reason", "intervals", "n_items", "n_groups", "subset", "signature")
    of_finding = ("value", "reason", "n_items", "n_positive", "n_negative", "intervals")
    return {
        "system": report["system"],
        "state": "scored",
        "protocol": report["protocol"],
        "trained_on": report["trained_on"],
        "n_left_aside": report["predictions"]["n_left_aside"],
        "scores": {
            score["metric"]: {
                **{key: score[key] for key in kept},
                "findings": {
                    name: {key: entry[key] for key in of_finding} for name, entry in score["findings"].items()
                },
            }
            for score in report["scores"]
        },
    }
