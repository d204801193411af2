"""Own the reading of an image-text model's archive: image embeddings, and per finding two prompts with their texts.

The texts must be the definition's; what the embeddings mean as scores is for `metrics`.
"""

from __future__ import annotations

import io
import unicodedata
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cxrspec.choices import Similarity
from cxrspec.errors import IDS_LISTED, Issue, SubmissionError, listed
from cxrspec.metrics.similarity import lengths, prompt_scores
from cxrspec.predictions import Scores
from cxrspec.predictions.alignment import ExpectedItems, Rows, align
from cxrspec.predictions.archives import read_arrays, texts_of
from cxrspec.predictions.heads import ColumnNames
from cxrspec.predictions.loading import as_submission_error
from cxrspec.predictions.values import Aggregate, Numbers, not_finite, per_item
from cxrspec.predictions.vectors import vectors_of
from cxrspec.spelling import plain_name
from cxrspec.tables.containers import is_numpy_archive

POLARITIES: Final = ("positive", "negative")
_TEXTS: Final = ("prompt_finding", "prompt_polarity", "prompt_text")
_EMBEDDINGS: Final = "prompt_embeddings"
_ARRAYS: Final = (*_TEXTS, _EMBEDDINGS)
_LENGTHS: Final = (1e-150, 1e150)
"""Products of vectors whose lengths lie outside are no numbers."""
_NO_LENGTH: Final = "length zero, below 1e-150 or beyond 1e150,"


@dataclass(frozen=True, slots=True)
class ExpectedPrompts:
    """What a definition says of prompts."""

    columns: Sequence[ColumnNames]
    """The findings; scores have this order."""
    texts: Mapping[str, tuple[str, str]]
    """Per finding its positive and its negative text; empty where the definition has no prompts."""
    similarity: Similarity | None
    aggregate: Aggregate | None = None
    """How the views of a study become its score."""
    has_heads: bool = False
    """Whether the submission says which columns are which, by name or by a head map."""


def is_prompt_archive(data: bytes) -> bool:
    """Say whether a file is a NumPy archive with an array of prompts."""
    if not is_numpy_archive(data):
        return False
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return any(name.removesuffix(".npy").startswith("prompt_") for name in archive.namelist())


@as_submission_error()
def read_prompt_scores(data: bytes, prompts: ExpectedPrompts, expected: ExpectedItems, *, name: str) -> Scores:
    """Read an archive of `item_id`, `embeddings` and the four arrays of prompts, and score it by the definition.

    Raises:
        SubmissionError: Everything that is wrong with it, or the definition takes no such archive.
    """
    _refuse_undeclared(prompts, expected, name)
    arrays = read_arrays(data, name)
    if issues := list(_array_issues(arrays, name)):
        raise SubmissionError(issues)
    images = vectors_of({key: array for key, array in arrays.items() if key not in _ARRAYS}, name, expected)
    found, issues = _found_prompts(arrays, prompts, name)
    rows = align(images.ids, expected, by_view=prompts.aggregate is not None)
    vectors = images.numbers.of(rows.at)
    texts = arrays[_EMBEDDINGS].astype(np.float64)
    issues += [*_width_issues(images.numbers.matrix, texts, name), *_vector_issues(rows, vectors, texts, name)]
    values = vectors
    if not issues and prompts.similarity:
        positive, negative = (texts[[found[one.name, sign] for one in prompts.columns]] for sign in POLARITIES)
        scores = prompt_scores(vectors.matrix, positive, negative, prompts.similarity)
        values = Numbers(scores, lambda row, column: repr(float(scores[row, column])))
    merged = per_item(values, rows, len(expected.item_ids), prompts.aggregate)
    if issues := [*rows.issues, *issues, *merged.issues]:
        raise SubmissionError(issues)
    told = f"{prompts.similarity} of {len(texts):,} prompts, in embeddings of {texts.shape[1]:,} numbers"
    notes = [*images.notes, Issue("note", name, told), *rows.notes, *merged.notes]
    return Scores(merged.values, notes, len(images.ids.cells), rows.n_left_aside, merged.n_aggregated)


def _refuse_undeclared(prompts: ExpectedPrompts, expected: ExpectedItems, name: str) -> None:
    """Refuse an archive that the definition does not say how to score, and heads, which name columns of scores."""
    if not prompts.texts or not prompts.similarity:
        lacking = "prompts" if not prompts.texts else "similarity to score embeddings by"
        message = f"holds embeddings of prompts, and the definition of {expected.reference} declares no {lacking}"
        raise SubmissionError(Issue("prompt", name, message, "Give one score per finding: a table of scores"))
    if prompts.has_heads:
        message = "heads name columns of scores, and the file holds embeddings of prompts"
        raise SubmissionError(Issue("submission-field", name, message, "Leave heads and head map out"))


def _array_issues(arrays: Mapping[str, NDArray[Any]], name: str) -> Iterator[Issue]:
    """Yield an issue if an array of prompts is absent, of another kind, or of another length than the others."""
    fits = {key: key in arrays and arrays[key].ndim == 1 and arrays[key].dtype.kind in "US" for key in _TEXTS}
    fits[_EMBEDDINGS] = (
        _EMBEDDINGS in arrays and arrays[_EMBEDDINGS].ndim == 2 and arrays[_EMBEDDINGS].dtype.kind == "f"
    )
    if wrong := [key for key, fit in fits.items() if not fit]:
        found = listed([f"{key} {array.dtype}{list(array.shape)}" for key, array in arrays.items()])
        message = f"no usable {listed(wrong)}; the file has {found}"
        hint = f"Save {listed(_TEXTS)} (text [p]) and {_EMBEDDINGS} (float [p, d]) beside item_id and embeddings"
        yield Issue("column-missing", name, message, hint)
    elif len({len(arrays[key]) for key in _ARRAYS}) > 1:
        found = listed([f"{key} {len(arrays[key]):,}" for key in _ARRAYS])
        yield Issue(
            "row-shape", name, f"arrays of prompts of different lengths: {found}", "Give one of each per prompt"
        )


def _found_prompts(
    arrays: Mapping[str, NDArray[Any]], prompts: ExpectedPrompts, name: str
) -> tuple[dict[tuple[str, str], int], list[Issue]]:
    """Return the row of each finding's positive and negative prompt, and every difference from the definition."""
    owner = {plain_name(word): one.name for one in prompts.columns for word in (one.name, *one.fits)}
    wanted = {
        (finding, sign): text
        for finding, texts in prompts.texts.items()
        for sign, text in zip(POLARITIES, texts, strict=True)
    }
    found: dict[tuple[str, str], int] = {}
    issues = []
    for row, (finding, sign, text) in enumerate(zip(*(texts_of(arrays[key]) for key in _TEXTS), strict=True)):
        key = (owner.get(plain_name(finding), finding), sign.strip())
        where = f"{name} prompt {row + 1} ({finding} {sign})"
        if key not in wanted:
            message = f"the definition has no such prompt; it has positive and negative of {listed(prompts.texts)}"
            issues.append(Issue("prompt", where, message, "Remove it"))
        elif key in found:
            message = f"repeats prompt {found[key] + 1}; a finding has one prompt of each polarity"
            issues.append(Issue("prompt", where, message, "Keep the definition's"))
        elif unicodedata.normalize("NFC", text) != unicodedata.normalize("NFC", wanted[key]):
            message = f"found '{text}', expected '{wanted[key]}'"
            issues.append(Issue("prompt", where, message, "Embed the definition's text, to the letter"))
        found.setdefault(key, row)
    if absent := [" ".join(key) for key in wanted if key not in found]:
        issues.append(Issue("prompt", name, f"no prompt for {listed(absent)}", "Every finding needs both of its own"))
    return found, issues


def _width_issues(images: NDArray[np.float64], prompts: NDArray[np.float64], name: str) -> Iterator[Issue]:
    if images.shape[1] != prompts.shape[1]:
        message = f"embeddings of images have {images.shape[1]:,} numbers, those of prompts {prompts.shape[1]:,}"
        yield Issue("row-shape", name, message, "Take both from the shared space of one model")


def _vector_issues(rows: Rows, images: Numbers, prompts: NDArray[np.float64], name: str) -> Iterator[Issue]:
    """Yield an issue for images and prompts that are not finite, and for those that have no direction."""
    yield from not_finite(rows, images, range(images.matrix.shape[1]), "embedding")
    hint = "A vector without direction is similar to nothing; nothing is filled in"
    if bad := _without_direction(images.matrix):
        found = listed([rows.place(row) for row in bad], IDS_LISTED)
        message = f"{_NO_LENGTH} in {len(bad):,} of {len(images.matrix):,} embeddings: {found}"
        yield Issue("prediction-value", f"{name}:{rows.line(bad[0])} embedding", message, hint, rows.line(bad[0]))
    not_numbers = np.flatnonzero(~np.isfinite(prompts).all(axis=1)).tolist()
    for bad, fault in (
        (not_numbers, "no finite number"),
        (_without_direction(prompts), _NO_LENGTH),
    ):
        if bad:
            message = f"{fault} in {len(bad):,} of {len(prompts):,}: prompts {listed([row + 1 for row in bad])}"
            yield Issue("prediction-value", f"{name} {_EMBEDDINGS}", message, hint)


def _without_direction(vectors: NDArray[np.float64]) -> list[int]:
    """Return the rows of finite numbers whose length cannot be divided by."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        size = lengths(vectors)
    usable = (size > _LENGTHS[0]) & (size < _LENGTHS[1])
    return np.flatnonzero(~usable & np.isfinite(vectors).all(axis=1)).tolist()
