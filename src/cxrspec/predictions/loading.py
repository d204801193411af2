"""Own what every predictions file goes through first: its bytes, and the one exception that refuses it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cxrspec.errors import Issue, SourceError, SubmissionError
from cxrspec.predictions.alignment import ExpectedItems
from cxrspec.tables.containers import read_file

_NPY_HEADER = 256


@contextmanager
def as_submission_error() -> Iterator[None]:
    """Turn what the table readers refuse into a refused submission."""
    try:
        yield
    except SourceError as error:
        raise SubmissionError(error.issues) from error


def load_predictions(source: Path | bytes, name: str, expected: ExpectedItems) -> tuple[str, bytes]:
    """Return name and bytes of the file. An array without ids is refused: that its order is ours is only a hope."""
    if isinstance(source, Path):
        name = name or source.name
        source = read_file(source, name)
    if source.startswith(b"\x93NUMPY"):
        shape = re.search(rb"'shape': \((\d+)", source[:_NPY_HEADER])
        n_rows = f"{int(shape[1]):,}" if shape else "an unknown number of"
        n_items = f"{len(expected.item_ids):,}"
        message = f"the array has {n_rows} rows, {expected.reference} has {n_items} items, and no row has an id"
        raise SourceError(Issue("source-not-data", name, message, "Give ids: a table with an id column"))
    return name, source
