"""Own what a report says of readers below curves, as rows of text: counts by convention, then points and margins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Score = Mapping[str, Any]


def of_readers(scores: Sequence[Score]) -> list[Score]:
    """Return the scores that count readers below a curve."""
    return [score for score in scores if "convention" in score]


def count_rows(scores: Sequence[Score]) -> Iterator[tuple[str, ...]]:
    """Yield the heading, then per convention the count of each finding, the total and the mean."""
    if scores:
        yield ("readers below curve", *scores[0]["findings"], "total", "mean")
    for score in scores:
        entries = score["findings"].values()
        total, n_readers = score["total"], sum(len(entry.get("readers", ())) for entry in entries)
        mean = "undefined" if score["value"] is None else f"{score['value']:.3f}"
        yield (score["metric"], *map(_count, entries), "" if total is None else f"{total} of {n_readers}", mean)


def _count(entry: Mapping[str, Any]) -> str:
    return (
        f"undefined ({entry['reason']})" if entry["value"] is None else f"{entry['value']} of {len(entry['readers'])}"
    )


def point_rows(scores: Sequence[Score]) -> Iterator[tuple[str, ...]]:
    """Yield the heading, then each reader's point per finding and the margin of every curve over it.

    A margin is the curve minus the reader; the majority vote is shown among the readers and counted nowhere.
    """
    lines = {f"{s['convention']['curve']}, {s['convention']['line']}": s for s in reversed(scores)}
    curves = dict(reversed(lines.items()))
    if scores:
        yield ("finding", "reader", "sensitivity", "specificity", "precision", *curves)
    for finding in scores[0]["findings"] if scores else ():
        of_curves = [_shown(score["findings"][finding]) for score in curves.values()]
        for reader, point in of_curves[0].items():
            known = (_number(point[name]) for name in ("sensitivity", "specificity", "precision"))
            yield (finding, reader, *known, *(_number(readers[reader]["margin"], "+.4f") for readers in of_curves))


def _shown(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return every point of a finding by the name that is shown; none where the score is undefined."""
    vote = entry.get("majority_vote")
    return {**entry.get("readers", {}), **({"majority vote (not counted)": vote} if vote else {})}


def _number(value: float | None, form: str = ".3f") -> str:
    return "undefined" if value is None else format(value, form)
