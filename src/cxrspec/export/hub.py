"""Own the metadata of the hub: a model card with its results, and the `.eval_results` file. Nothing is pushed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cxrspec.digest import short_id
from cxrspec.lock import Lock
from cxrspec.report.board import agreement_text, grader_text, training_text
from cxrspec.report.intervals import interval_ends, interval_kind
from cxrspec.report.markdown import markdown_rows, one_line
from cxrspec.report.numbers import part_text, parts_of
from cxrspec.strict_yaml import dump_document
from cxrspec.submission import task_of


def dataset_of(lock: Lock) -> tuple[str, str | None]:
    """Return the hub data set that a definition draws on with its revision; the benchmark's name where it has none."""
    for name, source in lock.definition["sources"].items():
        if source["kind"] == "hf_dataset":
            return str(lock.document["description"]["sources"][name]["repository"]), source["revision"]
    return lock.reference.benchmark, None


def model_card(lock: Lock, report: Mapping[str, Any], board: Mapping[str, Any], dataset: str | None = None) -> str:
    """Return a model card: metadata as the hub reads it, then the numbers with intervals, signatures and caveats."""
    from huggingface_hub import EvalResult, ModelCardData

    results = [EvalResult(**fields) for fields in _results(lock, report, dataset)]
    name = report["card"].get("model_name", report["system"])
    data = ModelCardData(model_name=name, eval_results=results) if results else ModelCardData()
    return f"---\n{data.to_yaml()}\n---\n\n" + "\n".join(_body(name, report, board)) + "\n"


def _results(lock: Lock, report: Mapping[str, Any], dataset: str | None) -> Iterator[dict[str, Any]]:
    """Yield the fields of an EvalResult per number that is defined; of a graded one per grader."""
    ours, revision = dataset_of(lock)
    for score in _defined(report):
        yield {
            "task_type": task_of(lock).HUB_TASK,
            "dataset_type": dataset or ours,
            "dataset_name": str(lock.reference),
            "dataset_config": lock.reference.version,
            "dataset_split": score["subset"],
            "dataset_revision": revision if dataset in (None, ours) else None,
            "dataset_args": {
                "definition_version": str(lock.reference),
                "definition": short_id(lock.definition_digest),
                "subset_id": lock.subset_ids[score["subset"]],
            },
            "metric_type": score["kind"],
            "metric_name": score["metric"],
            "metric_value": score["value"],
            "metric_args": {
                "intervals": [_interval(one) for one in score["intervals"]],
                "signature": score["signature"],
                "trained_on": training_text(report),
                **({"basis": score["basis"]} if "basis" in score else {}),
                **({"grader": dict(score["grader"])} if "grader" in score else {}),
            },
        }


def _defined(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [score for score in (*report["scores"], *report.get("graded", ())) if score["value"] is not None]


def _interval(interval: Mapping[str, Any]) -> dict[str, Any]:
    """Return an interval without the fields that say nothing."""
    return {key: value for key, value in interval.items() if value is not None}


def _body(name: str, report: Mapping[str, Any], board: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"# {name}", "")
    if text := report["card"].get("description"):
        yield from (text, "")
    yield from (f"Scored on `{report['reference']}`, protocol {report['protocol']}.", "")
    yield from (f"Trained on: {one_line(training_text(report))}.", "")
    row = next(one for one in board["systems"] if one["system"] == report["system"])
    if row["state"] == "overlap":
        yield from (f"Not ranked beside other systems: {row['reason']}.", "")
    scores = [*report["scores"], *report.get("graded", ())]
    yield from (*markdown_rows([("metric", *_COLUMNS), *(_row(_called(score), score) for score in scores)]), "")
    for score in scores:
        rows = [_row(part_text(part), entry) for part, entry in parts_of(score) if part]
        if rows:
            yield from (f"## {_called(score)}", "", *markdown_rows([("of", *_COLUMNS), *rows]), "")
        yield from (f"`{score['signature']}`", "")
    if found := report.get("agreement"):
        yield from (f"Graders agree: {agreement_text(found)}.", "")
    if board["caveats"]:
        yield from ("## Caveats", "", *(f"- {one_line(caveat)}" for caveat in board["caveats"]))


_COLUMNS: Final = ("value", "interval", "n", "n positive")


def _called(score: Mapping[str, Any]) -> str:
    """Name a score with the subset, and with what or whom it stands on."""
    by = f", graded by {grader_text(score)}" if "grader" in score else f", {score['basis']}" if "basis" in score else ""
    return f"{score['metric']} on {score['subset']}{by}"


def _row(name: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    value = f"— ({entry['reason']})" if entry["value"] is None else f"{entry['value']:.4f}"
    if "margin" in entry:  # a reader: 1 below the curve, 0 not
        points = ("margin", "sensitivity", "specificity", "precision")
        value += "".join(f", {name} {entry[name]:.4f}" for name in points if entry[name] is not None)
    counts = (f"{entry[key]:,}" if key in entry else "" for key in ("n_items", "n_positive"))
    return name, value, _intervals(entry), *counts


def eval_results(lock: Lock, report: Mapping[str, Any], dataset: str | None = None) -> str:
    """Return the YAML of a `.eval_results` file: one entry per number that is defined, its signature in the notes."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    entries = [
        EvalResultEntry(
            dataset_id=fields["dataset_type"],
            task_id=fields["metric_name"],
            value=fields["metric_value"],
            dataset_revision=fields["dataset_revision"],
            notes=f"{_intervals(score)}; trained on: {training_text(report)}; {score['signature']}",
        )
        for fields, score in zip(_results(lock, report, dataset), _defined(report), strict=True)
    ]
    return dump_list(eval_result_entries_to_yaml(entries))


def dump_list(entries: list[dict[str, Any]]) -> str:
    """Write a list of mappings as YAML, each as the registry writes a document."""
    texts = [dump_document(entry).decode().splitlines() for entry in entries]
    return "".join(f"{'- ' if at == 0 else '  '}{line}\n" for lines in texts for at, line in enumerate(lines))


def _intervals(entry: Mapping[str, Any]) -> str:
    return "; ".join(f"{interval_ends(one)} {interval_kind(one)}" for one in entry["intervals"])
