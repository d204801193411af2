"""Own the executor: a submission scored against the lock and the frozen tables it names, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from cxrspec import __version__
from cxrspec.digest import Table, json_text, short_id
from cxrspec.errors import Issue, RegistryError
from cxrspec.files import write_whole
from cxrspec.ids import IdRule
from cxrspec.predictions import ColumnNames, Embeddings, ExpectedItems, Scores, read_embeddings, read_scores
from cxrspec.reference import Reference
from cxrspec.registry import Lock, Registry
from cxrspec.submission import Submission, check_submission, load_submission, read_predictions_file, task_of
from cxrspec.tasks import Evaluation, EvaluationInput, PredictionNeed

REPORT_FORMAT: Final = 1
ROUNDING: Final = 1e-12
"""Two exact scores differ at most by the rounding of the last operation."""


@dataclass(frozen=True)
class Scored:
    """What scoring one submission came to."""

    reference: Reference
    system: str
    state: Literal["scored", "unchanged", "absent"]
    report: Mapping[str, Any] | None
    notes: tuple[Issue, ...] = ()


def score(reference: Reference, system: str, registry: Registry) -> Scored:
    """Score one submission and write its report; a report with the same numbers keeps its bytes.

    Predictions that DVC stores but that are not on this machine leave the report as it was (state `absent`).

    Raises:
        SubmissionError: if the submission is not for this lock, or its predictions are refused.
        RegistryError: if the lock or a table is missing or altered.
    """
    lock = registry.read_lock(reference)
    submission = load_submission(registry, reference, system)
    path = registry.submission_folder(reference, system) / submission.predictions.file
    old = read_report(registry, reference, system)
    if not path.is_file() and (old or path in registry.dvc.recorded):
        note = Issue("table-missing", registry.name(path), "is not on this machine; its report stays as it is")
        return Scored(reference, system, "absent", old, (note,))
    report, notes = evaluate_submission(submission, lock, registry, system)
    if old and not report_differences(old, report):
        return Scored(reference, system, "unchanged", old, notes)
    with registry.writing():
        write_whole(registry.report_path(reference, system), json_text(report))
    return Scored(reference, system, "scored", report, notes)


def evaluate_submission(
    submission: Submission, lock: Lock, registry: Registry, system: str
) -> tuple[dict[str, Any], tuple[Issue, ...]]:
    """Compute the report of a submission without writing it; raises as `score` does."""
    task, need = check_submission(submission, lock, system)
    _, data = read_predictions_file(registry, lock.reference, submission)
    tables = read_subsets(lock, need, registry)
    read = read_predictions(submission, lock, registry, tables, data)
    given = EvaluationInput(submission.protocol, lock.definition["seed"], tables, read.by_subset)
    evaluation = task.evaluate(given)
    for one in evaluation.scores:
        one["signature"] = signature(lock, need, one)
    notes = (*read.notes, *evaluation.notes)
    return _report(submission, lock, need, evaluation, read, notes), notes


def signature(lock: Lock, need: PredictionNeed, one: Mapping[str, Any]) -> str:
    """Return the line that a printed score always carries: every choice that the number depends on."""
    subsets = ",".join(f"{name}={lock.subset_ids[name]}" for name in need.subsets)
    intervals = "+".join(f"{i['method']}{i['resamples']}/{i['unit']}" for i in one["intervals"]) or "none"
    return "|".join(
        (
            str(lock.reference),
            f"definition:{short_id(lock.definition_digest)}",
            f"subsets:{subsets}",
            f"n:{one['n_items']}",
            f"metric:{one['metric']}",
            f"protocol:{one['protocol']}",
            f"ci:{intervals}",
            f"seed:{lock.definition['seed']}",
            f"cxrspec:{__version__}",
        )
    )


def read_report(registry: Registry, reference: Reference, system: str) -> dict[str, Any] | None:
    """Return a report, or None if there is none.

    Raises:
        RegistryError: if it is damaged or of a newer format.
    """
    path = registry.report_path(reference, system)
    if not path.is_file():
        return None
    try:
        report: dict[str, Any] = json.loads(path.read_bytes())
        number = report["format"]
    except (ValueError, KeyError, TypeError):
        hint = "Delete it and score again"
        raise RegistryError(Issue("file-unsafe", registry.name(path), "is not a readable report", hint)) from None
    if not isinstance(number, int) or number > REPORT_FORMAT:
        message = f"has format {number}; this cxrspec reads formats up to {REPORT_FORMAT}"
        raise RegistryError(Issue("lock-format", registry.name(path), message, "Install a newer cxrspec"))
    return report


def report_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the paths at which two reports differ by more than the tolerance that the definition allows.

    The environment, the fitted coefficients and the version of cxrspec are described, never compared.
    """
    tolerance = new.get("tolerance") or ROUNDING
    ignored = ("environment", "fitted")
    keys = [key for key in sorted({*old, *new}) if key not in ignored]
    return [path for key in keys for path in _differences(old.get(key), new.get(key), key, tolerance)]


def _differences(old: Any, new: Any, path: str, tolerance: float) -> list[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        steps = sorted({*old, *new})
        return [found for k in steps for found in _differences(old.get(k), new.get(k), f"{path}.{k}", tolerance)]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [found for i, (a, b) in pairs for found in _differences(a, b, f"{path}[{i}]", tolerance)]
    if isinstance(old, float) and isinstance(new, float):
        return [] if abs(old - new) <= tolerance else [path]
    if path.endswith(".signature") and isinstance(old, str) and isinstance(new, str):
        old, new = old.rpartition("|cxrspec:")[0], new.rpartition("|cxrspec:")[0]
    return [] if old == new else [path]


@dataclass(frozen=True)
class ReadPredictions:
    """Predictions aligned to the frozen tables, with what their reader noticed."""

    by_subset: dict[str, Any]
    """Per subset: float64 [n_items, n_columns], rows as in the table."""
    notes: tuple[Issue, ...]
    n_rows: int
    n_left_aside: int


def read_subsets(lock: Lock, need: PredictionNeed, registry: Registry) -> dict[str, Table]:
    """Read the tables of the subsets that a protocol needs; raises RegistryError as `Registry.read_table` does."""
    return {name: registry.read_table(lock.reference, name, lock.subsets[name]["digest"]) for name in need.subsets}


def read_predictions(
    submission: Submission, lock: Lock, registry: Registry, tables: Mapping[str, Table], data: bytes
) -> ReadPredictions:
    """Read a predictions file for exactly the items of the tables; raises SubmissionError with everything wrong."""
    need = task_of(lock).prediction_need(submission.protocol)
    items = lock.definition["items"]
    rule = items["item_id"]
    ids = sorted({item for table in tables.values() for item in table.item_ids})
    expected = ExpectedItems(
        item_ids=ids,
        rule=IdRule(rule["form"], rule.get("strip_suffix"), rule.get("prefix", "")),
        id_columns=(rule["column"],),
        known=lambda: _splits(registry, lock),
        reference=f"{lock.reference}:{'+'.join(need.subsets)}",
        known_labels=need.known_labels,
    )
    name = submission.predictions.file
    read: Scores | Embeddings
    if need.kind == "embeddings":
        read = read_embeddings(data, expected, name=name)
    else:
        columns = [ColumnNames(c.name, c.spellings, submission.head_of(c.name, c.spellings)) for c in need.columns]
        aggregate: Literal["max"] | None = "max" if items["unit"] == "study" else None
        read = read_scores(data, columns, expected, name=name, aggregate=aggregate)
    position = {item: row for row, item in enumerate(ids)}
    found = {subset: read.values[[position[item] for item in table.item_ids]] for subset, table in tables.items()}
    return ReadPredictions(found, tuple(read.notes), read.n_rows, read.n_left_aside)


def _splits(registry: Registry, lock: Lock) -> dict[str, str]:
    roster = registry.read_table(lock.reference, "roster", lock.tables["roster"])
    return dict(zip(roster.item_ids, roster.column("split"), strict=True))


def _report(
    submission: Submission,
    lock: Lock,
    need: PredictionNeed,
    evaluation: Evaluation,
    read: ReadPredictions,
    notes: tuple[Issue, ...],
) -> dict[str, Any]:
    return {
        "format": REPORT_FORMAT,
        "reference": str(lock.reference),
        "system": submission.system,
        "protocol": submission.protocol,
        "definition_digest": lock.definition_digest,
        "subsets": {
            name: {"id": lock.subset_ids[name], "digest": lock.subsets[name]["digest"]} for name in need.subsets
        },
        "predictions": {
            "sha256": submission.predictions.sha256,
            "n_rows": read.n_rows,
            "n_left_aside": read.n_left_aside,
        },
        "card": submission.card.model_dump(exclude_none=True) if submission.card else {},
        "trained_on": submission.trained_on,
        "scores": evaluation.scores,
        "fitted": evaluation.fitted,
        "tolerance": evaluation.tolerance,
        "notes": [str(note) for note in notes],
        "environment": _environment(),
    }


def _environment() -> dict[str, str]:
    """Describe the libraries that computed the scores; no host, no clock, no path."""
    import platform
    from importlib.metadata import version

    libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"cxrspec": __version__, "python": platform.python_version(), "machine": platform.machine(), **libraries}
