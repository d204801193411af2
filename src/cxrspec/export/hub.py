"""Own the metadata of the hub: a model card with its results, and the `.eval_results` file. Nothing is pushed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cxrspec.digest import short_id
from cxrspec.export.tables import markdown_rows
from cxrspec.lock import Lock
from cxrspec.report.intervals import interval_ends, interval_kind
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
    """Yield the fields of an EvalResult per number that is defined."""
    ours, revision = dataset_of(lock)
    for score in report["scores"]:
        if score["value"] is None:
            continue
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
            },
        }


def _interval(interval: Mapping[str, Any]) -> dict[str, Any]:
    """Return an interval without the fields that say nothing."""
    return {key: value for key, value in interval.items() if value is not None}


def _body(name: str, report: Mapping[str, Any], board: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"# {name}", "")
    if text := report["card"].get("description"):
        yield from (text, "")
    yield from (
        f"Scored on `{report['reference']}`, protocol {report['protocol']}. Trained on: {report['trained_on']}.",
        "",
    )
    header = ("metric", "finding", "value", "interval", "n", "n positive")
    yield from markdown_rows([header, *(_row(score["metric"], "mean", score) for score in report["scores"])])
    yield ""
    for score in report["scores"]:
        rows = [_row(score["metric"], finding, entry) for finding, entry in score["findings"].items()]
        yield from (f"## {score['metric']} per finding", "", *markdown_rows([header, *rows]), "")
        yield from (f"`{score['signature']}`", "")
    if board["caveats"]:
        yield from ("## Caveats", "", *(f"- {' '.join(caveat.split())}" for caveat in board["caveats"]))


def _row(metric: str, finding: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    value = f"— ({entry['reason']})" if entry["value"] is None else f"{entry['value']:.4f}"
    intervals = _intervals(entry)
    return metric, finding, value, intervals, f"{entry['n_items']:,}", f"{entry.get('n_positive', '')}"


def eval_results(lock: Lock, report: Mapping[str, Any], dataset: str | None = None) -> str:
    """Return the YAML of a `.eval_results` file: one entry per number that is defined, its signature in the notes."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    entries = [
        EvalResultEntry(
            dataset_id=fields["dataset_type"],
            task_id=fields["metric_name"],
            value=fields["metric_value"],
            dataset_revision=fields["dataset_revision"],
            notes=_notes(score),
        )
        for fields, score in zip(
            _results(lock, report, dataset), (one for one in report["scores"] if one["value"] is not None), strict=True
        )
    ]
    return dump_list(eval_result_entries_to_yaml(entries))


def dump_list(entries: list[dict[str, Any]]) -> str:
    """Write a list of mappings as YAML, each as the registry writes a document."""
    texts = [dump_document(entry).decode().splitlines() for entry in entries]
    return "".join(f"{'- ' if at == 0 else '  '}{line}\n" for lines in texts for at, line in enumerate(lines))


def _notes(score: Mapping[str, Any]) -> str:
    return f"{_intervals(score)}; {score['signature']}"


def _intervals(entry: Mapping[str, Any]) -> str:
    return "; ".join(f"{interval_ends(one)} {interval_kind(one)}" for one in entry["intervals"])
