"""Own the reading of predictions files: tolerant about spelling and containers, exact about items and values.

Columns are matched by name and rows by id; every problem of a file is raised in one SubmissionError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cxrspec.errors import Issue, SubmissionError
from cxrspec.predictions.alignment import ExpectedItems, IdColumn, align
from cxrspec.predictions.answers import Answers, ExpectedQuestions, read_answers
from cxrspec.predictions.head_maps import HEAD_MAPS, HeadMap, heads_of, map_issues, map_notes
from cxrspec.predictions.heads import OWN_ID_COLUMN, ColumnNames, match_heads
from cxrspec.predictions.loading import as_submission_error, load_predictions
from cxrspec.predictions.regions import ExpectedPairs, Heatmaps, PredictedBoxes, read_boxes, read_heatmaps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cxrspec.predictions.values import Aggregate

__all__ = [
    "HEAD_MAPS",
    "Answers",
    "ColumnNames",
    "Embeddings",
    "ExpectedItems",
    "ExpectedPairs",
    "ExpectedQuestions",
    "HeadMap",
    "Heatmaps",
    "PredictedBoxes",
    "Scores",
    "heads_of",
    "map_issues",
    "read_answers",
    "read_boxes",
    "read_embeddings",
    "read_heatmaps",
    "read_scores",
]


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The scores of a subset's items."""

    values: NDArray[np.float64]
    """[n_items, n_columns] in the order of the items and columns that were asked for; all finite."""
    notes: list[Issue]
    n_rows: int
    """Rows of the file."""
    n_left_aside: int
    """Rows of known items outside the subset."""
    n_aggregated: int
    """Rows of views that were brought together to studies; 0 where a row is an item."""


@dataclass(frozen=True, slots=True, eq=False)
class Embeddings:
    """The embeddings of a subset's items."""

    values: NDArray[np.float64]
    """[n_items, n_features] in the order of the items; all finite."""
    feature_names: tuple[str, ...] | None
    """In code-point order, as the features are; None where the file has no names."""
    notes: list[Issue]
    n_rows: int
    n_left_aside: int


@as_submission_error()
def read_scores(
    source: Path | bytes,
    columns: Sequence[ColumnNames],
    expected: ExpectedItems,
    *,
    name: str = "",
    aggregate: Aggregate | None = None,
    head_map: HeadMap | None = None,
) -> Scores:
    """Read one score per item and column from delimited text or Parquet, packed or not, or from a matrix with ids.

    Args:
        source: The predictions file.
        columns: What must be there; the values have this order.
        expected: The items, and what else may stand in the file.
        name: How messages call the file: the name of the path, if empty.
        aggregate: How the views of a study become its score, where the ids are study paths. Without it two rows of one
            study are a duplicate.
        head_map: The classifier whose heads are the columns; they name the columns of a matrix.

    Raises:
        SubmissionError: Everything that is wrong with the file, in one pass.
    """
    from cxrspec.predictions.matrices import open_scores
    from cxrspec.predictions.values import not_finite, per_item, read_numbers, score_notes

    name, data = load_predictions(source, name, expected)
    spellings = [column.head or name for column in columns for name in (column.name, *column.fits)]
    wanted = [*expected.id_columns, OWN_ID_COLUMN, *spellings]
    sheet, opened = open_scores(data, name, wanted, expected, head_map)
    heads = match_heads(sheet, columns, expected)
    if heads.ids is None:
        raise SubmissionError([*sheet.issues, *heads.issues])
    rows = align(IdColumn(sheet.name, sheet.lines, *sheet.cells([heads.ids])), expected, by_view=aggregate is not None)
    positions = list(heads.found.values())
    names = [sheet.heads[at] for at in positions]
    numbers = read_numbers(sheet, positions, rows.at)
    merged = per_item(numbers, rows, len(expected.item_ids), aggregate)
    issues = [*sheet.issues, *heads.issues, *rows.issues, *merged.issues]
    for at, head in enumerate(names):
        issues += not_finite(rows, numbers, [at], f"column '{head}'")
    if issues:
        raise SubmissionError(issues)
    notes = [*opened, *heads.notes, *rows.notes, *merged.notes, *score_notes(name, names, merged.values)]
    notes += map_notes(head_map, name) if head_map else ()
    return Scores(merged.values, notes, len(sheet.lines), rows.n_left_aside, merged.n_aggregated)


@as_submission_error()
def read_embeddings(source: Path | bytes, expected: ExpectedItems, *, name: str = "") -> Embeddings:
    """Read one embedding per item: Parquet with a list column, a NumPy archive, or a table with a column per feature.

    Raises:
        SubmissionError: Everything that is wrong with the file, in one pass.
    """
    from cxrspec.predictions.values import not_finite, per_item
    from cxrspec.predictions.vectors import open_vectors

    name, data = load_predictions(source, name, expected)
    file = open_vectors(data, name, expected)
    rows = align(file.ids, expected)
    numbers = file.numbers.of(rows.at)
    merged = per_item(numbers, rows, len(expected.item_ids))
    issues = [*file.issues, *rows.issues, *merged.issues]
    issues += not_finite(rows, numbers, range(merged.values.shape[1]), "embedding")
    if not merged.values.shape[1] and not file.issues:
        issues.append(
            Issue("column-missing", file.ids.file, "no features", "Give a column per feature, or one of lists")
        )
    if issues:
        raise SubmissionError(issues)
    notes = [*file.notes, *rows.notes, *merged.notes]
    return Embeddings(merged.values, file.feature_names, notes, len(file.ids.cells), rows.n_left_aside)
