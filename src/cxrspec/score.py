"""Own the executor: a submission scored against the lock and the frozen tables it names, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

from cxrspec import __version__
from cxrspec.digest import Table, json_text, short_id
from cxrspec.errors import CxrspecError, Issue, SubmissionError
from cxrspec.files import write_whole
from cxrspec.grades import grades_paths, load_grades
from cxrspec.lock import Lock
from cxrspec.overlap import overlap_here, overlap_notes
from cxrspec.predictions import (
    Embeddings,
    ExpectedItems,
    ExpectedPairs,
    ExpectedQuestions,
    Heatmaps,
    PredictedBoxes,
    Scores,
    read_answers,
    read_boxes,
    read_embeddings,
    read_heatmaps,
    read_scores,
)
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.report_file import REPORT_FORMAT, read_report, report_differences
from cxrspec.submission import (
    Submission,
    load_submission,
    need_of,
    read_predictions_file,
    submission_issues,
    task_of,
)
from cxrspec.tasks import Drawing, Evaluation, EvaluationInput, PredictionNeed
from cxrspec.training import training_issues


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


def check_submission(
    submission: Submission,
    lock: Lock,
    registry: Registry,
    system: str,
    handed_in: tuple[str, bytes] | None = None,
) -> ReadPredictions:
    """Read the predictions of a submission that was made for exactly this lock, from its file or as handed in.

    Args:
        submission: what was submitted, or is about to be.
        lock: the frozen definition.
        registry: where its tables are.
        system: the system that is scored.
        handed_in: name and bytes of a file that is not stored yet; messages call it by that name.

    Raises:
        SubmissionError: with everything that is wrong with the submission and with its predictions.
        RegistryError: if the predictions or a table are missing or altered.
    """
    need = need_of(submission, lock)
    issues = submission_issues(submission, lock, need, system)
    try:
        name, data = handed_in or (submission.predictions.file, b"")
        if handed_in is None:
            data = read_predictions_file(registry, lock.reference, system, submission.predictions)
        tables = read_subsets(lock, need, registry)
        issues += training_issues(submission, lock, registry, tables)
        read = read_predictions(submission, lock, registry, tables, (name, data))
    except CxrspecError as error:
        if issues:
            raise SubmissionError([*issues, *error.issues]) from error
        raise
    if issues:
        raise SubmissionError(issues)
    return read


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


@dataclass(frozen=True)
class ReadPredictions:
    """Predictions aligned to the frozen tables, with what their reader noticed."""

    tables: Mapping[str, Table]
    by_subset: dict[str, Any]
    """Per subset: float64 [n_items, n_columns], rows as in the table; or the heatmaps or boxes of a localizer."""
    notes: tuple[Issue, ...]
    n_rows: int
    n_left_aside: int
    feature_names: tuple[str, ...] | None = None
    """Of embeddings, in the order of the coefficients; None where the file has no names."""


def read_subsets(lock: Lock, need: PredictionNeed, registry: Registry) -> dict[str, Table]:
    """Read the tables of the subsets that a protocol needs; raises RegistryError as `Registry.read_table` does."""
    return {name: registry.read_table(lock.reference, name, lock.subsets[name]["digest"]) for name in need.subsets}


def read_predictions(
    submission: Submission, lock: Lock, registry: Registry, tables: Mapping[str, Table], file: tuple[str, bytes]
) -> ReadPredictions:
    """Read a predictions file (name, bytes) for exactly the items of the tables.

    Raises:
        SubmissionError: with everything that is wrong with it.
    """
    name, data = file
    need = need_of(submission, lock)
    items = lock.definition["items"]
    roster = cache(partial(registry.read_table, lock.reference, "roster", lock.tables["roster"]))
    expected = ExpectedItems(
        item_ids=sorted({item for table in tables.values() for item in table.item_ids}),
        rule=lock.id_rule,
        id_columns=_id_columns(items["item_id"]),
        known=lambda: dict(zip(roster().item_ids, roster().column("split"), strict=True)),
        reference=f"{lock.reference}:{'+'.join(need.subsets)}",
        known_labels=need.known_labels,
    )
    columns = [submission.column_names(column.name, column.spellings) for column in need.columns]
    if need.frame:
        (subset, table), *_ = tables.items()
        pairs = task_of(lock).expected_pairs(submission.protocol, table)
        regions = _read_regions(submission, ExpectedPairs(expected, columns, pairs, need.frame), need, file)
        return ReadPredictions(tables, {subset: regions}, tuple(regions.notes), regions.n_rows, regions.n_left_aside)
    position = {item: row for row, item in enumerate(expected.item_ids)}
    if need.kind == "answers":
        asked = ExpectedQuestions.of_tables(expected, tables.values(), columns, items["group_id"].get("column"), roster)
        found = read_answers(data, asked, name=name)
        by_subset = {
            subset: [found.texts[position[item]] for item in table.item_ids] for subset, table in tables.items()
        }
        return ReadPredictions(tables, by_subset, tuple(found.notes), found.n_rows, found.n_left_aside)
    from cxrspec.predictions.prompts import ExpectedPrompts, is_prompt_archive, read_prompt_scores  # needs NumPy

    read: Scores | Embeddings
    aggregate = items.get("aggregate", "max") if items["unit"] == "study" else None
    if need.kind == "embeddings":
        read = read_embeddings(data, expected, name=name)
    elif is_prompt_archive(data):
        prompts = ExpectedPrompts(columns, need.prompts, need.similarity, aggregate)
        read = read_prompt_scores(data, prompts, expected, name=name)
    else:
        read = read_scores(data, columns, expected, name=name, aggregate=aggregate, head_map=submission.head_map)
    values = {subset: read.values[[position[item] for item in table.item_ids]] for subset, table in tables.items()}
    names = read.feature_names if isinstance(read, Embeddings) else None
    return ReadPredictions(tables, values, tuple(read.notes), read.n_rows, read.n_left_aside, names)


def _id_columns(item_id: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns that may name items beside `item_id`: the source's, and for studies CheXpert's own `Path`."""
    if "numbered_by" in item_id:
        return ()
    return tuple(dict.fromkeys((item_id["column"], *(["Path"] if item_id["form"] == "study_path" else []))))


def _read_regions(
    submission: Submission, expected: ExpectedPairs, need: PredictionNeed, file: tuple[str, bytes]
) -> Heatmaps | PredictedBoxes:
    """Read what a localizer brings, for a protocol that has one subset, whose rows are in the order of the ids."""
    name, data = file
    if need.kind == "heatmaps":
        return read_heatmaps(data, expected, name=name)
    form = submission.boxes
    if form is None:
        hint = "Say how they are written: --box-format xywh --frame 1024x1024"
        raise SubmissionError(Issue("submission-field", "boxes", "predicted boxes need a format and a frame", hint))
    return read_boxes(data, expected, name=name, format=form.format, frame=(form.width_px, form.height_px))


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
