"""Own what the pages say of scores: forest plots of a leaderboard and of a report, readers, grades. Opens nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from cxrspec.report import board as boards
from cxrspec.report import readers
from cxrspec.report.intervals import interval_ends, interval_kind
from cxrspec.report.site.charts import forest_scale, strip

CHANCE: Final = {"roc_auc": 0.5}
"""Kind of number: what a system reaches that knows nothing."""
COUNTS: Final = (
    *("n_items", "n_positive", "n_negative", "n_said_yes", "n_said_no"),
    *("n_undecided", "n_refusal", "n_empty", "n_missing", "n_excluded"),
)
"""The counts of findings and of questions in the order in which a table shows them; others follow."""
MOST_LEADERS: Final = 3
"""So many systems that share the first rank are named on a card; of more only how many there are."""

Entry = Mapping[str, Any]
Row = tuple[str, Entry, Mapping[str, Any]]
"""Label, score, and what else a row of a forest holds."""


def forest(caption: str, kind: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Return a forest plot: rows over one axis, and footnotes for the intervals that are not there."""
    entries = [entry for _, entry, _ in rows]
    reference = CHANCE.get(kind)
    scale = forest_scale(entries, reference)
    notes: dict[str, int] = {}
    return {
        "caption": caption,
        "kind": kind,
        "axis": scale.axis(),
        "intervals": _interval_kinds(entries),
        "chance": reference,
        "counts": [],
        "rows": [
            {
                "label": label,
                "strip": strip(entry, scale, _words(label, entry), reference),
                "estimate": _estimate(entry, notes),
                "entry": entry,
                **more,
            }
            for label, entry, more in rows
        ],
        "notes": list(notes),
    }


def _estimate(entry: Entry, notes: dict[str, int]) -> dict[str, Any]:
    """Return a score's value and intervals as texts; an interval that is not there is a dash with its footnote."""
    if entry["value"] is None:
        return {"value": "undefined", "intervals": [], "reason": entry["reason"]}
    ends = [
        ("–", notes.setdefault(one["reason"], len(notes) + 1)) if one["low"] is None else (interval_ends(one), None)
        for one in entry["intervals"]
    ]
    return {"value": f"{entry['value']:.3f}", "intervals": ends, "reason": ""}


def _interval_kinds(entries: Iterable[Entry]) -> list[str]:
    """Return what each interval of the entries is, in the order of the lanes of a strip."""
    return list(dict.fromkeys(interval_kind(one) for entry in entries for one in entry["intervals"]))


def _words(label: str, entry: Entry) -> str:
    """Say a score with all its intervals, for those who do not see the strip."""
    if entry["value"] is None:
        return f"{label}: undefined ({entry['reason']})"
    ends = (f"{interval_kind(one)} {interval_ends(one)}" for one in entry["intervals"])
    return "; ".join((f"{label}: {entry['value']:.3f}", *ends))


def board_protocols(board: Entry) -> Iterator[dict[str, Any]]:
    """Yield each protocol with systems: the forest that ranks, what the ranks mean, and the forests of other numbers.

    The systems, what they were trained on and their ranks stand in the first forest only.
    """
    kinds = {metric["name"]: metric["kind"] for metric in board["metrics"]}
    for protocol in boards.protocols(board):
        ranked = boards.ranked(board, protocol)
        if not ranked:
            continue
        every = boards.metric_names(board, protocol)
        first, _ = boards.ranking(ranked[0]["scores"])
        names = [name for name in every if name != first]
        is_wide = boards.is_wide(board, protocol)
        groups: dict[str, list[str]] = {}
        for name in names:
            groups.setdefault(kinds[name] if is_wide else name, []).append(name)
        ranking = [
            (row["system"], row["scores"][first], {"system": row["system"], "rank": _rank(row), "known": row})
            for row in ranked
        ]
        yield {
            "protocol": protocol,
            "ranking": forest(boards.metric_heading(first, ranked), kinds[first], ranking),
            "texts": [*boards.ranking_texts(board, protocol), boards.OVERLAP_MEANS],
            "folded": is_wide,
            "others": [_other_forest(kinds[group[0]], group, ranked) for group in groups.values()],
            "signatures": [
                (row["system"], row["scores"][name]["signature"]) for row in ranked for name in (first, *names)
            ],
        }


def _rank(row: Entry) -> dict[str, str]:
    text = boards.rank_text(row)
    return {"text": text, "state": "" if row["rank"] else row["state"]}


def _other_forest(kind: str, names: Sequence[str], ranked: list[Mapping[str, Any]]) -> dict[str, Any]:
    caption = boards.metric_heading(names[0], ranked) if len(names) == 1 else kind
    rows = [
        (row["system"], row["scores"][name], {"group": name if len(names) > 1 else "", "system": row["system"]})
        for name in names
        for row in ranked
    ]
    return {**forest(caption, kind, rows), "of": len(names)}


def leaders(board: Entry) -> Iterator[dict[str, Any]]:
    """Yield, per protocol, the systems that share the first rank with their numbers, or why nobody has one."""
    for protocol in boards.protocols(board):
        ranked = boards.ranked(board, protocol)
        if not ranked:
            continue
        name, _ = boards.ranking(ranked[0]["scores"])
        first = [row for row in ranked if 1 in (row["rank"] or ())]
        shown = first or ranked[:1]
        yield {
            "protocol": protocol,
            "metric": name,
            "state": "" if first else boards.rank_text(shown[0]),
            "n_sharing": len(first) if len(first) > 1 else 0,
            "systems": [(row["system"], boards.interval_text(row["scores"][name])) for row in shown[:MOST_LEADERS]],
        }


def score_forests(scores: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return one forest per number: all items, then every finding or question type; counts of readers stand elsewhere.

    The counts of findings stand beside them, those of questions in a table of their own.
    """
    return [_score_forest(score) for score in scores if "convention" not in score]


def _score_forest(score: Entry) -> dict[str, Any]:
    by_type = "question_types" in score
    asked = {name: one for name, one in score.get("question_types", {}).items() if one["n_items"]}
    parts = asked if by_type else score.get("findings", {})
    rows: list[Row] = [("all" if by_type else "mean", score, {"is_mean": True})]
    rows += [(name, one, {}) for name, one in parts.items()]
    return {
        **forest(score_caption(score), score["kind"], rows),
        "by": "Question type" if by_type else "Finding",
        "score": score,
        "counts": ["n_items"] if by_type else _counts(parts.values()),
        "answers": list(_answer_rows({"all": score, **asked})) if by_type else [],
    }


def score_caption(score: Entry) -> str:
    """Write a number with its subset, and for answers how they are read, on what basis, and by whom they are graded."""
    reading = [f"{score['reading']} reading"] if score.get("reading") else []
    by = [f"graded by {boards.grader_text(score)}"] if "grader" in score else []
    basis = [score["basis"]] if "basis" in score and not by else []
    said = ", ".join([*reading, *basis, *by])
    return f"{score['metric']} on {score['subset']}{f' ({said})' if said else ''}"


def _counts(entries: Iterable[Entry]) -> list[str]:
    """Return the counts that the findings of a score have, leaving out those that are zero everywhere."""
    found = list(entries)
    names = dict.fromkeys(key for entry in found for key in entry if key.startswith("n_") and key != "n_items")
    ordered = sorted(names, key=lambda name: (COUNTS.index(name) if name in COUNTS else len(COUNTS), name))
    return [name for name in ordered if any(entry.get(name) for entry in found)]


def _answer_rows(parts: Mapping[str, Entry]) -> Iterator[tuple[str, ...]]:
    """Yield the heading, then the counts of all questions of a score and of each question type, zeros too."""
    counts = [name for name in COUNTS if name in parts["all"]]
    yield ("question type", *(name.removeprefix("n_").replace("_", " ") for name in counts))
    for label, entry in parts.items():
        yield (label, *(f"{entry[name]:,}" for name in counts))


def reader_tables(scores: Sequence[Entry]) -> list[list[tuple[str, ...]]]:
    """Return two tables of readers below curves, headings first: counts by convention, then points and margins."""
    counted = readers.of_readers(scores)
    return [list(rows(counted)) for rows in (readers.count_rows, readers.point_rows)] if counted else []


def panel_values(report: Entry, subset: str, kind: str) -> Mapping[str, str]:
    """Return the values of a kind of number that stand over the curves of a subset; empty texts where it has none."""
    scores = [one["findings"] for one in report["scores"] if (one["subset"], one["kind"]) == (subset, kind)]
    found = scores[0] if scores else {}
    return defaultdict(str, {name: _estimate(entry, {})["value"] for name, entry in found.items()})


def strata_forests(report: Entry) -> list[dict[str, Any]]:
    """Return one forest per number and covariate of a report that has values per stratum."""
    found = []
    for score in report["scores"]:
        for covariate, strata in (score.get("strata") or {}).items():
            levels = boards.strata_in_order(strata)
            rows: list[Row] = [("all", score, {"is_mean": True}), *((level, strata[level], {}) for level in levels)]
            caption = f"{score['metric']} on {score['subset']} by {covariate}"
            missing = (score.get("n_in_no_stratum") or {}).get(covariate, 0)
            found.append(
                {**forest(caption, score["kind"], rows), "counts": ["n_items"], "missing": missing, "score": score}
            )
    return found
