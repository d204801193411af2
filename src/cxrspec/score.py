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
from cxrspec.ids import IdRule
from cxrspec.lock import Lock
from cxrspec.predictions import (
    ColumnNames,
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
    training_issues,
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
    if old and not report_differences(old, report):
        return Scored(reference, system, "unchanged", old, notes)
    with registry.writing():
        write_whole(registry.report_path(reference, system), json_text(report))
    return Scored(reference, system, "scored", report, notes)


def evaluate_submission(
    submission: Submission, lock: Lock, registry: Registry, system: str
) -> tuple[dict[str, Any], tuple[Issue, ...]]:
    """Compute the report of a submission without writing it; raises as `score` does."""
    need = need_of(submission, lock)
    read = check_submission(submission, lock, registry, system)
    grades = load_grades(registry, lock, submission)
    given = EvaluationInput(submission.protocol, lock.definition["seed"], read.tables, read.by_subset, grades)
    evaluation = task_of(lock).evaluate(given)
    for one in (*evaluation.scores, *evaluation.graded):
        one["signature"] = signature(lock, need, one)
    notes = (*read.notes, *evaluation.notes)
    return _report(submission, lock, need, evaluation, read, notes), notes


def drawing(submission: Submission, lock: Lock, registry: Registry, item_id: str, finding: str) -> Drawing:
    """Return what a picture of one item and finding of a submission shows; raises as `score` does."""
    read = check_submission(submission, lock, registry, submission.system)
    given = EvaluationInput(submission.protocol, lock.definition["seed"], read.tables, read.by_subset)
    try:
        drawn = task_of(lock).drawing(given, item_id, finding)
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
    intervals = "+".join(f"{i['method']}{i['resamples']}/{i['unit']}" for i in one["intervals"]) or "none"
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
    rule = items["item_id"]
    roster = cache(partial(registry.read_table, lock.reference, "roster", lock.tables["roster"]))
    expected = ExpectedItems(
        item_ids=sorted({item for table in tables.values() for item in table.item_ids}),
        rule=IdRule(rule["form"], rule.get("strip_suffix"), rule.get("prefix", "")),
        id_columns=() if "numbered_by" in rule else (rule["column"],),
        known=lambda: dict(zip(roster().item_ids, roster().column("split"), strict=True)),
        reference=f"{lock.reference}:{'+'.join(need.subsets)}",
        known_labels=need.known_labels,
    )
    columns = [ColumnNames(c.name, c.spellings, submission.head_of(c.name, c.spellings)) for c in need.columns]
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
    read: Scores | Embeddings
    if need.kind == "embeddings":
        read = read_embeddings(data, expected, name=name)
    else:
        aggregate: Literal["max"] | None = "max" if items["unit"] == "study" else None
        read = read_scores(data, columns, expected, name=name, aggregate=aggregate)
    values = {subset: read.values[[position[item] for item in table.item_ids]] for subset, table in tables.items()}
    return ReadPredictions(tables, values, tuple(read.notes), read.n_rows, read.n_left_aside)


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
        **({"graded": evaluation.graded} if evaluation.graded else {}),
        **({"agreement": evaluation.agreement} if evaluation.agreement else {}),
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
