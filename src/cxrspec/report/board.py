"""Own what a leaderboard says, for the terminal and for files alike: order, names, texts. It opens nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cxrspec.report.intervals import interval_ends

TABLE_SIZE: Final = 16
"""A publication with more values than this reports a table, which stands in its own file."""
_FIRST_NUMBER: Final = re.compile(r"\[?(-?[0-9]+(\.[0-9]+)?)")
PLACED: Final = ("scored", "overlap", "undefined")
"""States that have numbers to show, in the order of a table; only the first is ranked."""
WIDE: Final = 6
"""A protocol with more numbers than this has a row per number and finding, and a column per system."""
OVERLAP_MEANS: Final = "overlap: how much of what is scored the training data cover, as their author declares them"
_BOUNDS: Final = {"exact": "", "at_most": "at most ", "at_least": "at least "}


def is_wide(board: Mapping[str, Any], protocol: str) -> bool:
    """Return whether a protocol has too many numbers for a column each."""
    return len(metric_names(board, protocol)) > WIDE


def table_rows(board: Mapping[str, Any], protocol: str, *, findings: bool = True) -> Iterator[tuple[str, ...]]:
    """Yield the heading, then the rows of a protocol: a system each, or a number each where there are many of these."""
    rows, metrics = ranked(board, protocol), metric_names(board, protocol)
    if is_wide(board, protocol):
        yield ("number", "finding", *(row["system"] for row in rows))
        yield from wide_rows(board, protocol, findings=findings)
        return
    yield ("rank", "system", *(metric_heading(name, rows) for name in metrics), "n", "overlap", "trained on")
    for row in rows:
        cells = [interval_text(row["scores"][name]) for name in metrics]
        count = f"{row['scores'][metrics[0]]['n_items']:,}"
        yield (rank_text(row), row["system"], *cells, count, overlap_text(row["overlap"]), row["trained_on"])


def wide_rows(board: Mapping[str, Any], protocol: str, *, findings: bool) -> Iterator[tuple[str, ...]]:
    """Yield (number, finding, one cell per system) of every number: its mean, then with `findings` each finding."""
    rows = ranked(board, protocol)
    yield ("rank", "", *map(rank_text, rows))
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


def ranking(scores: Mapping[str, Mapping[str, Any]]) -> tuple[str, Mapping[str, Any] | None]:
    """Return the metric by which systems are ordered, and the interval by whose resamples they are tested.

    Of some scores by metric, the first that has a bootstrap interval and the first one that it has; only a bootstrap is
    paired between systems. Where no score has one: the first metric, and None.
    """
    for name, score in scores.items():
        for interval in score["intervals"]:
            if interval["method"] == "bootstrap":
                return name, interval
    return next(iter(scores)), None


def ranked(board: Mapping[str, Any], protocol: str) -> list[Mapping[str, Any]]:
    """Return the systems of a protocol that have numbers: the ranked ones best first, then overlap, then undefined."""
    rows = [row for row in board["systems"] if row["state"] in PLACED and row["protocol"] == protocol]

    def key(row: Mapping[str, Any]) -> tuple[int, bool, float, str]:
        value = row["scores"][ranking(row["scores"])[0]]["value"]
        return (PLACED.index(row["state"]), value is None, -(value or 0.0), row["system"])

    return sorted(rows, key=key)


def rank_text(row: Mapping[str, Any]) -> str:
    """Write the rank groups of a system, or the state that keeps it from having one."""
    if row["state"] != "scored":
        return str(row["state"])
    return ", ".join(map(str, row["rank"])) if row["rank"] else "not tested"


def ranking_texts(board: Mapping[str, Any], protocol: str) -> Iterator[str]:
    """Yield what the ranks of a protocol mean, and why systems have none."""
    rows = ranked(board, protocol)
    first, interval = ranking(rows[0]["scores"])
    if interval and sum(row["state"] == "scored" for row in rows) > 1:
        test = f"a paired bootstrap of {first} ({interval['level']:.0%}, by {interval['unit']}, uncorrected)"
        yield f"Systems that share a rank are not separated by {test}."
    for row in rows:
        if row["state"] == "overlap":
            yield f"{row['system']} is not ranked: {row['reason']}."
        elif row["state"] == "scored" and not row["rank"]:
            yield f"{row['system']} was not tested against others: {row['reason']}."


def unranked_texts(board: Mapping[str, Any]) -> Iterator[str]:
    """Yield why each system that has no row stands in no table."""
    for row in board["systems"]:
        if row["state"] not in PLACED or not row["scores"]:
            yield f"{row['system']}: {row['state']}: {row['reason']}"


def signature_texts(rows: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield every signature of some systems once, with the systems that have it, metric by metric."""
    for name in metrics:
        systems: dict[str, list[str]] = {}
        for row in rows:
            systems.setdefault(row["scores"][name]["signature"], []).append(row["system"])
        yield from ((signature, ", ".join(having)) for signature, having in systems.items())


def metric_heading(metric: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Write a metric with the subset that it is of, so that no two subsets are ever read as one."""
    return f"{metric} on {rows[0]['scores'][metric]['subset']}"


def interval_text(score: Mapping[str, Any]) -> str:
    """Write a value with its interval, `0.576 [0.551, 0.601]`, or why it is undefined; several say what each is by.

    DeLong's interval is of one finding: of a mean it is not there, which only the report needs to say.
    """
    if score["value"] is None:
        return f"undefined ({score['reason']})"
    intervals = [one for one in score["intervals"] if one.get("method") != "delong" or "findings" not in score]
    texts = [bounds_text(interval) for interval in intervals]
    if len(texts) > 1:
        texts = [f"{text} {by_text(one)}" for text, one in zip(texts, intervals, strict=True)]
    return f"{score['value']:.3f} {', '.join(texts)}".rstrip()


def by_text(interval: Mapping[str, Any]) -> str:
    """Say in short what an interval is: `by item`, `by group`, `by DeLong`."""
    return f"by {interval['unit']}" if "unit" in interval else {"delong": "by DeLong"}.get(interval["method"], "")


def bounds_text(interval: Mapping[str, Any]) -> str:
    """Write an interval, `[0.551, 0.601]`, or why there is none."""
    ends = interval_ends(interval)
    return f"({ends})" if interval["low"] is None else ends


def strata_in_order(strata: Mapping[str, Any]) -> list[str]:
    """Return the names of strata as a person lists them: bands and numbers by size, words by their letters."""

    def key(name: str) -> tuple[float, str]:
        number = _FIRST_NUMBER.match(name)
        return (float(number[1]) if number else math.inf, name)

    return sorted(strata, key=key)


def training_text(row: Mapping[str, Any]) -> str:
    """Write what a system was trained on, and how much of what is scored that covers."""
    return f"{row['trained_on']}; overlap: {overlap_text(row.get('overlap'))}"


def is_covered(overlap: Mapping[str, Any] | None) -> bool:
    """Return whether the training data are known to cover, or may cover, some of what is scored."""
    counts = overlap["subsets"].values() if overlap else ()
    return any(one["items"] or one["groups"] for one in counts)


def overlap_text(overlap: Mapping[str, Any] | None) -> str:
    """Write an overlap: `0`, `312 of 1,013 items, 203 of 595 patients`, or `unknown`."""
    if overlap is None or not overlap["subsets"]:
        return "unknown"
    texts = {name: _counts_text(overlap["bound"], counts) for name, counts in overlap["subsets"].items()}
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{name} {text}" for name, text in texts.items())


def _counts_text(bound: str, counts: Mapping[str, int]) -> str:
    if bound != "at_least" and not (counts["items"] or counts["groups"]):
        return "0"
    items, groups = (f"{counts[one]:,} of {counts[f'n_{one}']:,}" for one in ("items", "groups"))
    return f"{_BOUNDS[bound]}{items} items, {groups} patients"


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


GRADED_HEADING: Final = ("metric", "system", "grader", "value", "by question type", "n")


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
