"""Own the executor: a submission scored against the lock and the frozen tables it names, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cxrspec import __version__
from cxrspec.digest import json_text, short_id
from cxrspec.errors import Issue, SubmissionError
from cxrspec.files import write_whole
from cxrspec.grades import grades_paths, load_grades
from cxrspec.lock import Lock
from cxrspec.overlap import overlap_here, overlap_notes
from cxrspec.reading import ReadPredictions, check_submission
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.report_file import REPORT_FORMAT, read_report, report_differences
from cxrspec.submission import (
    Submission,
    load_submission,
    need_of,
    submission_issues,
    task_of,
)
from cxrspec.tasks import Drawing, Evaluation, EvaluationInput, PredictionNeed


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
    folder = registry.submission_folder(reference, system)
    paths = [folder / submission.predictions.file, *grades_paths(registry, reference, system)]
    old = read_report(registry, reference, system)
    absent = [path for path in paths if not path.is_file() and (old or path in registry.dvc.recorded)]
    if absent:
        if issues := submission_issues(submission, lock, need_of(submission, lock), system):
            raise SubmissionError(issues)
        note = Issue("table-missing", registry.name(absent[0]), "is not on this machine; its report stays as it is")
        return Scored(reference, system, "absent", old, (note,))
    report, notes = evaluate_submission(submission, lock, registry, system)
    report["overlap"] = overlap_here(submission, lock, registry, old)
    notes += tuple(overlap_notes(report["overlap"], system))
    if old and not report_differences(old, report):
        return Scored(reference, system, "unchanged", old, notes)
    with registry.writing():
        write_whole(registry.report_path(reference, system), json_text(report))
    return Scored(reference, system, "scored", report, notes)


def evaluate_submission(
    submission: Submission, lock: Lock, registry: Registry, system: str
) -> tuple[dict[str, Any], tuple[Issue, ...]]:
    """Compute the report of a submission without its overlap and without writing it; raises as `score` does."""
    need = need_of(submission, lock)
    read = check_submission(submission, lock, registry, system)
    evaluation = task_of(lock).evaluate(_given(submission, lock, registry, read))
    for one in (*evaluation.scores, *evaluation.graded):
        one["signature"] = signature(lock, need, one)
    notes = (*read.notes, *evaluation.notes)
    return _report(submission, lock, need, evaluation, read, notes), notes


def resampled_means(submission: Submission, lock: Lock, registry: Registry) -> Mapping[str, Any]:
    """Return, per metric that has a value, its mean on each resample of each interval; raises as `score` does."""
    read = check_submission(submission, lock, registry, submission.system)
    return task_of(lock).evaluate(_given(submission, lock, registry, read)).resampled


def _given(submission: Submission, lock: Lock, registry: Registry, read: ReadPredictions) -> EvaluationInput:
    """Return everything that a score is computed from; covariates are read where a metric asks for strata."""
    covariates = {
        name: registry.read_table(lock.reference, f"{name}.covariates", lock.tables[f"{name}.covariates"])
        for name in sorted(task_of(lock).divided_subsets(submission.protocol))
    }
    seed, grades = lock.definition["seed"], load_grades(registry, lock, submission)
    return EvaluationInput(submission.protocol, seed, read.tables, read.by_subset, covariates, grades)


def drawing(submission: Submission, lock: Lock, registry: Registry, item_id: str, finding: str) -> Drawing:
    """Return what a picture of one item and finding of a submission shows; raises as `score` does."""
    read = check_submission(submission, lock, registry, submission.system)
    try:
        drawn = task_of(lock).drawing(_given(submission, lock, registry, read), item_id, finding)
    except ValueError as error:
        raise SubmissionError(Issue("item-missing", "--picture", str(error), "Write ITEM:FINDING")) from None
    if drawn is None:
        message = f"the task '{lock.definition['task']}' has no picture"
        raise SubmissionError(Issue("item-missing", "--picture", message, "Heatmaps and boxes have"))
    return drawn


def signature(lock: Lock, need: PredictionNeed, one: Mapping[str, Any]) -> str:
    """Return the line that a printed score always carries: every choice that the number depends on."""
    subsets = ",".join(f"{name}={lock.subset_ids[name]}" for name in need.subsets)
    intervals = "+".join(map(_interval_word, one["intervals"])) or "none"
    return "|".join(
        (
            str(lock.reference),
            f"definition:{short_id(lock.definition_digest)}",
            f"subsets:{subsets}",
            f"n:{one['n_items']}",
            f"metric:{one['metric']}",
            f"protocol:{one['protocol']}",
            *([f"grader:{_grader_text(one['grader'])}"] if "grader" in one else []),
            f"ci:{intervals}",
            f"seed:{lock.definition['seed']}",
            f"cxrspec:{__version__}",
        )
    )


def _interval_word(interval: Mapping[str, Any]) -> str:
    """Return an interval in short: `bootstrap1000/item`, `delong`."""
    resampled = f"{interval['resamples']}/{interval['unit']}" if "resamples" in interval else ""
    return f"{interval['method']}{resampled}"


def _grader_text(grader: Mapping[str, str]) -> str:
    """Return the grader as a signature names it: with a judge's prompt, and the grades themselves."""
    prompt = f"/prompt={short_id(grader['prompt_sha256'])}" if "prompt_sha256" in grader else ""
    return f"{grader['name'].replace('|', '/')}/{grader['kind']}{prompt}/grades={short_id(grader['sha256'])}"


def _report(
    submission: Submission,
    lock: Lock,
    need: PredictionNeed,
    evaluation: Evaluation,
    read: ReadPredictions,
    notes: tuple[Issue, ...],
) -> dict[str, Any]:
    report = {
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
        "trained_on": submission.training_text,
        "scores": evaluation.scores,
        **({"graded": evaluation.graded} if evaluation.graded else {}),
        **({"agreement": evaluation.agreement} if evaluation.agreement else {}),
        "fitted": evaluation.fitted,
        "tolerance": evaluation.tolerance,
        "notes": [str(note) for note in notes],
        "environment": _environment(),
    }
    return report | ({"features": list(read.feature_names)} if read.feature_names else {})


def _environment() -> dict[str, str]:
    """Describe the libraries that computed the scores; no host, no clock, no path."""
    import platform
    from importlib.metadata import version

    libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"cxrspec": __version__, "python": platform.python_version(), "machine": platform.machine(), **libraries}
