"""Own the numbers of systems as flat rows, the same for CSV files and data frames: every part, nothing rounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cxrspec.report.board import grader_text, overlap_text, protocols, rank_text, ranked, strata_in_order
from cxrspec.report.intervals import interval_kind

PARTS: Final = ("finding", "question_type", "covariate", "stratum", "reader")
"""What a row is of; a row that names none of them is of everything together."""
VOTE: Final = "majority vote (not counted)"
_OF_READERS: Final = ("margin", "sensitivity", "specificity", "precision")
_AT_THE_END: Final = ("n_items", "n_groups", "n_positive", "n_negative")

Entry = Mapping[str, Any]


def report_rows(report: Entry) -> Iterator[dict[str, Any]]:
    """Yield every number of a report, graded ones too."""
    ids = {name: one["id"] for name, one in report["subsets"].items()}
    known = {"system": report["system"], "protocol": report["protocol"]}
    for score in (*report["scores"], *report.get("graded", ())):
        yield from _score_rows(known, score, ids)


def board_rows(board: Entry) -> Iterator[dict[str, Any]]:
    """Yield every number on a leaderboard, best system first, with rank, overlap and training data of its system."""
    kinds = {metric["name"]: metric["kind"] for metric in board["metrics"]}
    ids = {name: one["id"] for name, one in board["subsets"].items()}
    of_protocols = [row for protocol in protocols(board) for row in ranked(board, protocol)]
    ungraded = [row for row in board["systems"] if row.get("graded") and not row["scores"]]
    for row in (*of_protocols, *ungraded):
        known = {
            **{key: row[key] for key in ("system", "protocol")},
            "rank": rank_text(row),
            "overlap": overlap_text(row["overlap"]),
            "trained_on": row["trained_on"],
        }
        for name, score in row["scores"].items():
            yield from _score_rows(known, {**score, "metric": name, "kind": kinds[name]}, ids)
        for score in row.get("graded", ()):
            yield from _score_rows(known, score, ids)


def columns_of(rows: list[dict[str, Any]]) -> list[str]:
    """Return the columns of rows that have not all the same: as they come, counts and the signature last."""
    every = dict.fromkeys(name for row in rows for name in row)
    counts = [*_AT_THE_END, *(name for name in every if name.startswith("n_") and name not in _AT_THE_END)]
    last = [name for name in (*counts, "signature") if name in every]
    return [*(name for name in every if name not in last), *last]


def _score_rows(known: Entry, score: Entry, ids: Entry) -> Iterator[dict[str, Any]]:
    what = {**known, **{key: score[key] for key in ("metric", "kind", "subset")}, "subset_id": ids[score["subset"]]}
    basis = grader_text(score) if "grader" in score else score.get("basis")
    for part, entry in parts_of(score):
        yield {
            **what,
            "basis": basis,
            **{name: part.get(name) for name in PARTS},
            "value": entry["value"],
            "reason": entry["reason"],
            **_ends(entry),
            **{name: entry[name] for name in _OF_READERS if name in entry},
            **{name: n for name, n in entry.items() if name.startswith("n_") and isinstance(n, int)},
            "signature": score["signature"],
        }


def parts_of(score: Entry) -> Iterator[tuple[dict[str, str], Entry]]:
    """Yield (what it is of, entry) of a score: all together, then findings with readers, question types, strata."""
    yield {}, score
    for finding, entry in score.get("findings", {}).items():
        yield {"finding": finding}, entry
        for reader, point in _readers(entry).items():
            yield {"finding": finding, "reader": reader}, _reader_entry(point)
    for name, entry in score.get("question_types", {}).items():
        yield {"question_type": name}, entry
    for covariate, strata in sorted(score.get("strata", {}).items()):
        for stratum in strata_in_order(strata):
            part = {"covariate": covariate, "stratum": stratum}
            yield part, strata[stratum]
            for finding, entry in strata[stratum]["findings"].items():
                yield {**part, "finding": finding}, entry
        if missing := score["n_in_no_stratum"][covariate]:
            yield {"covariate": covariate}, _undefined(f"items in no stratum of {covariate}", n_items=missing)


def part_text(part: Mapping[str, str]) -> str:
    """Write what a row is of: `edema`, `sex M, edema`, `edema, reader bc1`; `all` for everything together."""
    stratum = " ".join(part[name] for name in ("covariate", "stratum") if name in part)
    texts = (stratum, part.get("finding"), part.get("question_type"), part.get("reader") and f"reader {part['reader']}")
    return ", ".join(text for text in texts if text) or "all"


def interval_columns(entry: Entry) -> dict[str, Entry]:
    """Return the intervals of an entry by the beginning of their columns: `bootstrap_item`, `delong`."""
    found: dict[str, Entry] = {}
    for one in entry["intervals"]:
        name = "_".join(str(one[key]) for key in ("method", "unit") if key in one)
        found[f"{name}_{len(found) + 1}" if name in found else name] = one
    return found


def interval_meanings(board: Entry) -> dict[str, str]:
    """Say what the columns of each interval on a leaderboard are."""
    scores = [score for row in board["systems"] for score in (*row.get("scores", {}).values(), *row.get("graded", ()))]
    return {name: interval_kind(one) for score in scores for name, one in interval_columns(score).items()}


def _ends(entry: Entry) -> dict[str, Any]:
    found = interval_columns(entry).items()
    return {f"{name}_{key}": one[key] for name, one in found for key in ("low", "high", "reason")}


def _readers(entry: Entry) -> dict[str, Entry]:
    vote = entry.get("majority_vote")
    return {**entry.get("readers", {}), **({VOTE: vote} if vote else {})}


def _reader_entry(point: Entry) -> Entry:
    """Return a reader's row: 1 if below the curve, else 0; nothing for the vote, which is counted nowhere."""
    below = point.get("below")
    reason = point["reason"] or ("counted nowhere" if below is None else None)
    return {**point, **_undefined(reason), "value": None if below is None else int(below)}


def _undefined(reason: str | None, **counts: int) -> Entry:
    return {"value": None, "reason": reason, "intervals": [], **counts}
