"""Own what the pages say, as plain values and pictures that the templates lay out. It opens nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from cxrspec.lock import Lock
from cxrspec.report import board as boards
from cxrspec.report.intervals import interval_ends, interval_kind
from cxrspec.report.site.charts import Scale, bar, forest_scale, stack, strip
from cxrspec.submission import task_of

CHANCE: Final = {"roc_auc": 0.5}
"""Kind of number: what a system reaches that knows nothing."""
SHARES: Final = {"positives": "positive", "images_with": "with a box"}
"""Tallies that count items, so that they have a share of the subset; with the word for them."""
COUNTS: Final = ("n_positive", "n_negative", "n_missing", "n_excluded")
"""The counts of a finding in the order in which a table shows them; others follow."""
TOTALS: Final = {"none": "items with none of them"}
"""Counts whose own name says too little, in words."""
MOST_PARTS: Final = 6
"""A covariate with more values than this is no picture."""


def estimate(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a score's value and intervals as texts."""
    if entry["value"] is None:
        return {"value": "undefined", "intervals": [], "reason": entry["reason"]}
    return {
        "value": f"{entry['value']:.3f}",
        "intervals": [interval_ends(one) for one in entry["intervals"]],
        "reason": "",
    }


def interval_kinds(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what each interval of the entries is, in the order of the lanes of a strip."""
    found: dict[str, None] = {}
    for entry in entries:
        found |= dict.fromkeys(interval_kind(one) for one in entry["intervals"])
    return list(found)


def _words(label: str, entry: Mapping[str, Any]) -> str:
    """Say a score with all its intervals, for those who do not see the strip."""
    if entry["value"] is None:
        return f"{label}: undefined ({entry['reason']})"
    ends = (f"{interval_kind(one)} {interval_ends(one)}" for one in entry["intervals"])
    return f"{label}: {'; '.join((estimate(entry)['value'], *ends))}"


def forest(caption: str, kind: str, rows: Sequence[tuple[str, Mapping[str, Any], Mapping[str, Any]]]) -> dict[str, Any]:
    """Return a forest plot: rows of (label, score, what else the row holds) over one axis."""
    entries = [entry for _, entry, _ in rows]
    reference = CHANCE.get(kind)
    scale = forest_scale(entries, reference)
    return {
        "caption": caption,
        "kind": kind,
        "axis": scale.axis(),
        "intervals": interval_kinds(entries),
        "chance": reference,
        "rows": [
            {
                "label": label,
                "strip": strip(entry, scale, _words(label, entry), reference),
                "estimate": estimate(entry),
                "entry": entry,
                **more,
            }
            for label, entry, more in rows
        ],
    }


def board_forests(board: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the forests of a leaderboard per protocol; numbers of one kind share an axis and stand together."""
    kinds = {metric["name"]: metric["kind"] for metric in board["metrics"]}
    for protocol in boards.protocols(board):
        ranked = boards.ranked(board, protocol)
        names = boards.metric_names(board, protocol) if ranked else []
        groups: dict[str, list[str]] = {}
        for name in names:
            groups.setdefault(kinds[name] if boards.is_wide(board, protocol) else name, []).append(name)
        yield {
            "protocol": protocol,
            "forests": [_systems_forest(kinds[group[0]], group, ranked) for group in groups.values()],
            "signatures": [(row["system"], row["scores"][name]["signature"]) for row in ranked for name in names],
        }


def _systems_forest(kind: str, names: Sequence[str], ranked: list[Mapping[str, Any]]) -> dict[str, Any]:
    caption = boards.metric_heading(names[0], ranked) if len(names) == 1 else kind
    rows = [
        (row["system"], row["scores"][name], {"group": name if len(names) > 1 else "", "row": row})
        for name in names
        for row in ranked
    ]
    return forest(caption, kind, rows)


def score_forests(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one forest per number of a report: the mean, then every finding or question type with its counts."""
    found = []
    for score in report["scores"]:
        rows = [("mean", score, {"is_mean": True}), *((name, one, {}) for name, one in _parts(score).items())]
        caption = f"{score['metric']} on {score['subset']}"
        found.append({**forest(caption, score["kind"], rows), "score": score, "counts": _counts(score)})
    return found


def _parts(score: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = score.get("findings") or score.get("question_types") or {}
    return found


def _counts(score: Mapping[str, Any]) -> list[str]:
    """Return the counts that the parts of a score have, leaving out those that are zero everywhere."""
    entries = list(_parts(score).values())
    names = dict.fromkeys(key for entry in entries for key in entry if key.startswith("n_") and key != "n_items")
    ordered = sorted(names, key=lambda name: (COUNTS.index(name) if name in COUNTS else len(COUNTS), name))
    return [name for name in ordered if any(entry.get(name) for entry in entries)]


def panel_values(report: Mapping[str, Any], subset: str, kind: str) -> Mapping[str, str]:
    """Return the values of a kind of number that stand over the curves of a subset; empty texts where it has none."""
    scores = [_parts(one) for one in report["scores"] if (one["subset"], one["kind"]) == (subset, kind)]
    found = {name: estimate(entry)["value"] for name, entry in (scores[0] if scores else {}).items()}
    return defaultdict(str, found)


def strata_forests(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one forest per number and covariate of a report that has values per stratum."""
    found = []
    for score in report["scores"]:
        for covariate, strata in (score.get("strata") or {}).items():
            levels = boards.strata_in_order(strata)
            rows = [("all", score, {"is_mean": True}), *((level, strata[level], {}) for level in levels)]
            found.append(forest(f"{score['metric']} on {score['subset']} by {covariate}", score["kind"], rows))
    return found


def subsets(lock: Lock) -> list[dict[str, Any]]:
    """Return the subsets of a lock with their counts, prevalence bars and covariates."""
    tallies = task_of(lock).TALLIES
    return [
        {
            "name": name,
            "id": lock.subset_ids[name],
            "digest": subset["digest"],
            "items": subset["items"],
            "groups": subset["groups"],
            "totals": {
                TOTALS.get(key, key.replace("_", " ")): subset[key]
                for key, by in tallies.items()
                if not by and key in subset
            },
            "tables": [
                table for kind in dict.fromkeys(filter(None, tallies.values())) for table in _tallied(lock, name, kind)
            ],
            "covariates": list(_covariates(subset)),
        }
        for name, subset in lock.subsets.items()
    ]


def _tallied(lock: Lock, name: str, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the table of what is counted by one kind of name: a bar for the first tally, numbers for the others."""
    subset = lock.subsets[name]
    found = {key: subset[key] for key, by in task_of(lock).TALLIES.items() if by == kind and key in subset}
    found = {key: counts for key, counts in found.items() if any(counts.values())}
    if not found:
        return
    drawn = next((key for key in SHARES if key in found), next(iter(found)))
    total = subset["items"] if drawn in SHARES else None
    most = max(found[drawn].values()) / (total or 1)
    scale = Scale.over([0.0, 100 * most if total else most])
    rows = []
    for label in dict.fromkeys(label for counts in found.values() for label in counts):
        count = found[drawn].get(label, 0)
        share = 100 * count / total if total else None
        words = (
            f"{label}: {count:,} {SHARES.get(drawn, drawn)}{f', {share:.1f} % of items' if share is not None else ''}"
        )
        shown = bar(count if share is None else share, scale, words)
        others = [counts.get(label, 0) for key, counts in found.items() if key != drawn]
        rows.append({"label": label, "bar": shown, "count": count, "share": share, "others": others})
    others = [key.replace("_", " ") for key in found if key != drawn]
    yield {
        "kind": kind,
        "drawn": drawn.replace("_", " "),
        "others": others,
        "axis": scale.axis(" %" if total else ""),
        "rows": rows,
    }


def _covariates(subset: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, counts in subset.get("covariates", {}).items():
        if 0 < len(counts) <= MOST_PARTS:
            total = sum(counts.values()) or 1
            parts = [(value, count, 100 * count / total) for value, count in counts.items()]
            words = ", ".join(f"{value or 'not stated'} {count:,} ({share:.0f} %)" for value, count, share in parts)
            yield {"name": name, "stack": stack(counts, f"{name}: {words}"), "parts": parts}


def protocols(lock: Lock) -> list[dict[str, Any]]:
    """Return each protocol's settings; what is set per finding, such as prompts, as a table."""
    found = []
    for name, settings in lock.definition.get("protocols", {}).items():
        tables = {key: value for key, value in settings.items() if _is_table(value)}
        plain = {key: words_of(value) for key, value in settings.items() if key not in tables}
        found.append({"name": name, "settings": plain, "tables": [_table(key, rows) for key, rows in tables.items()]})
    return found


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value) and all(isinstance(one, Mapping) for one in value.values())


def _table(name: str, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    columns = list(dict.fromkeys(key for row in rows.values() for key in row))
    cells = {label: [words_of(row.get(key, "")) for key in columns] for label, row in rows.items()}
    return {"name": name, "columns": columns, "rows": cells}


def words_of(value: Any) -> str:
    """Write a plain value as a person reads it."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {words_of(one)}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(words_of, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def sources(lock: Lock) -> list[dict[str, Any]]:
    """Return the sources with their pins, licences and files."""
    described = lock.document["description"].get("sources", {})
    found = []
    for name, files in lock.document["sources"].items():
        pins = {key: value for key, value in lock.definition["sources"][name].items() if key != "files"}
        said = {key: value for key, value in described.get(name, {}).items() if key != "files"}
        said.pop("redistribute", None)
        facts = {key.replace("_", " "): words_of(value) for key, value in {**pins, **said}.items()}
        found.append({"name": name, "facts": facts, "files": files})
    return found


def metric_rows(lock: Lock) -> list[dict[str, str]]:
    """Return the metrics as they are declared, with their intervals in words."""
    return [
        {
            "name": metric["name"],
            "kind": metric.get("kind", ""),
            "protocol": metric.get("protocol", ""),
            "average": metric.get("average", ""),
            "subset": metric.get("subset", "test"),
            "intervals": "; ".join(map(interval_kind, metric.get("interval") or ())),
        }
        for metric in lock.definition["metrics"]
    ]
