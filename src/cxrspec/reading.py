"""Own the reading of a submission: its predictions for exactly the items of the frozen tables, or everything wrong.

It computes nothing from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from cxrspec.digest import Table
from cxrspec.errors import CxrspecError, Issue, SubmissionError
from cxrspec.lock import Lock
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
from cxrspec.registry import Registry
from cxrspec.submission import Submission, need_of, read_predictions_file, submission_issues, task_of
from cxrspec.tasks import PredictionNeed
from cxrspec.training import training_issues


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
        has_heads = bool(submission.heads or submission.head_map)
        prompts = ExpectedPrompts(columns, need.prompts, need.similarity, aggregate, has_heads)
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
