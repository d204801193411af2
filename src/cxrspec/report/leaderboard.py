"""Own the leaderboard of one definition version: scored systems with intervals, reported results beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cxrspec.description import current_description
from cxrspec.digest import json_text
from cxrspec.errors import SubmissionError
from cxrspec.files import write_whole
from cxrspec.grades import grade_records
from cxrspec.lock import Lock
from cxrspec.ranks import Ranks, rank_systems
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.report.board import PLACED, is_covered, overlap_text, protocols, ranked, ranking
from cxrspec.report.markdown import markdown
from cxrspec.report_file import read_report
from cxrspec.reported import load_reported
from cxrspec.submission import load_submission, task_of


def leaderboard(reference: Reference, registry: Registry, *, ranks: bool = True) -> dict[str, Any]:
    """Gather the leaderboard of a definition version as plain values; only a report that fits the lock is shown.

    Without `ranks` no predictions are read, and no system is tested against another.

    Raises:
        RegistryError: if the definition is not frozen or a report is damaged.
        DefinitionError: if a file of reported results is faulty.
    """
    lock = registry.read_lock(reference)
    description = current_description(lock, registry)
    systems = [_row(lock, system, registry) for system in registry.systems(reference)]
    reported = [entry.as_json() for entry in load_reported(registry, reference.benchmark)]
    counts = ("items", "groups", "positives", "none", "boxes", "closed", "open")
    board = {
        "reference": str(lock.reference),
        "title": description.get("title", ""),
        "definition_digest": lock.definition_digest,
        "subsets": {
            name: {"id": lock.subset_ids[name], **{key: subset[key] for key in counts if key in subset}}
            for name, subset in lock.subsets.items()
        },
        "metrics": task_of(lock).reported_metrics(lock.subsets),
        "systems": systems,
        "reported": [entry for entry in reported if entry.get("reference") in (None, str(lock.reference))],
        "caveats": description.get("caveats", []),
    }
    if ranks:
        for protocol in protocols(board):
            _rank(board, protocol, lock, registry)
    return board


def reported_board(benchmark: str, registry: Registry) -> dict[str, Any]:
    """Return the board of a benchmark of which no version is frozen: what others reported, and nothing to score.

    Raises:
        DefinitionError: if a file of reported results is faulty.
    """
    reported = [entry.as_json() for entry in load_reported(registry, benchmark)]
    lists: dict[str, Any] = {"subsets": {}, "metrics": [], "systems": [], "reported": reported, "caveats": []}
    return {"reference": benchmark, "title": "no version is frozen, so nothing is scored", **lists}


def _rank(board: Mapping[str, Any], protocol: str, lock: Lock, registry: Registry) -> None:
    """Give the scored systems of a protocol their rank groups, by the first metric that can be tested."""
    of_system = {row["system"]: row for row in board["systems"]}
    rows = [of_system[row["system"]] for row in ranked(board, protocol) if row["state"] == "scored"]
    if not rows:
        return
    metric, interval = ranking(rows[0]["scores"])
    if interval is None:
        for row in rows:
            row["reason"] = f"no metric of {protocol} has a bootstrap interval to test by"
        return
    intervals = {row["system"]: ranking(row["scores"])[1] or {} for row in rows}
    testable = [system for system, one in intervals.items() if one["low"] is not None]
    found = rank_systems(lock, metric, testable, interval["level"], registry) if testable else Ranks()
    for row in rows:
        row["rank"] = found.groups.get(row["system"])
        row["reason"] = found.untested.get(row["system"]) or intervals[row["system"]]["reason"]


def public_leaderboard(reference: Reference, registry: Registry) -> dict[str, Any]:
    """Return the leaderboard as it may leave: where rows may not be passed on, no refusal that could name one.

    Raises as `leaderboard` does.
    """
    board = leaderboard(reference, registry)
    if registry.read_lock(reference).redistribute:
        return board
    reason = "left out: it may name rows that may not be passed on"
    systems = [{**row, "reason": reason} if row["state"] == "refused" else row for row in board["systems"]]
    return {**board, "systems": systems}


def write_leaderboard(reference: Reference, registry: Registry) -> dict[str, Any]:
    """Write `leaderboard.md`, `leaderboard.json` and `metrics.json` of a version; raises as `leaderboard` does."""
    board = leaderboard(reference, registry)
    values = {
        row["system"]: {name: score["value"] for name, score in row["scores"].items() if score["value"] is not None}
        for row in board["systems"]
        if row["state"] in PLACED
    }
    texts = {
        "leaderboard.md": markdown(board).encode(),
        "leaderboard.json": json_text(board),
        "metrics.json": json_text(values),
    }
    with registry.writing():
        for name, text in texts.items():
            write_whole(registry.folder(reference) / name, text)
    return board


def _row(lock: Lock, system: str, registry: Registry) -> dict[str, Any]:
    """Return a system's scores, or why it has none that may stand beside others."""
    try:
        submission = load_submission(registry, lock.reference, system)
        grades = grade_records(registry, lock.reference, system)
    except SubmissionError as error:
        return {"system": system, "state": "refused", "reason": str(error.issues[0])}
    report = read_report(registry, lock.reference, system)
    if report is None:
        return {"system": system, "state": "unscored", "reason": "not scored yet"}
    if not _fits(report, lock):
        return {"system": system, "state": "outdated", "reason": "its report is of another lock; score it again"}
    if report["predictions"]["sha256"] != submission.predictions.sha256:
        return {"system": system, "state": "outdated", "reason": "its report is of other predictions; score it again"}
    if _grades_of(report) != {one.grades.sha256 for one in grades.values()}:
        return {"system": system, "state": "outdated", "reason": "its report is of other grades; score it again"}
    return _scores(report)


def _grades_of(report: Mapping[str, Any]) -> set[str]:
    return {score["grader"]["sha256"] for score in report.get("graded", ())}


def _fits(report: Mapping[str, Any], lock: Lock) -> bool:
    """Return whether a report was computed from this lock, and has every metric that the lock asks for."""
    ids = {name: subset["id"] for name, subset in report["subsets"].items()}
    numbers = task_of(lock).reported_metrics(lock.subsets)
    of_protocol = [one["name"] for one in numbers if one["protocol"] == report["protocol"]]
    return (
        report["definition_digest"] == lock.definition_digest
        and ids.items() <= lock.subset_ids.items()
        and [score["metric"] for score in report["scores"]] == of_protocol
    )


def _scores(report: Mapping[str, Any]) -> dict[str, Any]:
    scores = {score["metric"]: _score(score) for score in report["scores"]}
    first = scores[ranking(scores)[0]] if scores else {"value": None, "reason": "every number of it is a grader's"}
    overlap = report.get("overlap")
    covered = f"its training data cover {overlap_text(overlap)}" if is_covered(overlap) else None
    beside = {name: report[name] for name in ("graded", "agreement") if name in report}
    return {
        **beside,
        "system": report["system"],
        "state": "undefined" if first["value"] is None else "overlap" if covered else "scored",
        "reason": first["reason"] or covered,
        "rank": None,
        "protocol": report["protocol"],
        "trained_on": report["trained_on"],
        "overlap": overlap,
        "n_left_aside": report["predictions"]["n_left_aside"],
        "scores": scores,
    }


def _score(score: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a leaderboard holds of a score, with what only some scores have: types, strata, readers."""
    kept = ("value", "reason", "intervals", "n_items", "n_groups", "subset", "signature")
    some = ("question_types", "basis", "strata", "n_in_no_stratum", "convention", "total")
    of_finding = ("value", "reason", "n_items", "n_positive", "n_negative", "intervals")
    readers = ("readers", "majority_vote")
    return {
        **{key: score[key] for key in kept},
        "findings": {
            name: {key: entry[key] for key in (*of_finding, *(one for one in readers if one in entry))}
            for name, entry in score.get("findings", {}).items()
        },
        **{key: score[key] for key in some if key in score},
    }
