"""Own the scores of an image-text model: how much nearer an image is to a positive prompt than to a negative one.

Each number depends on its own image and prompts alone, to the last bit: equal images are tied wherever they stand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cxrspec.choices import SIMILARITIES, Similarity

Floats = NDArray[np.float64]

_ROWS = 1024  # rows multiplied at once: what the cache holds, without influence on the result


def lengths(vectors: Floats) -> Floats:
    """Return the Euclidean length [n] of vectors [n, d]."""
    return np.sqrt(_dots(vectors, vectors))


def prompt_scores(images: Floats, positive: Floats, negative: Floats, similarity: Similarity) -> Floats:
    """Return the similarity of each image to a finding's positive prompt minus that to its negative one, [n, f].

    `cosine_difference` is the difference of two cosines, in [-2, 2] (Radford et al. 2021); `dot_difference` that of the
    two dot products. Sums run within a row, without BLAS, whose last bits depend on where a row stands.

    Args:
        images: [n, d], none of length zero where cosines are asked for.
        positive: [f, d], likewise.
        negative: [f, d], likewise.
        similarity: which of the two.

    Raises:
        ValueError: the shapes do not fit, or the similarity is unknown.
    """
    d = images.shape[1]
    if positive.shape != negative.shape or positive.shape != (len(positive), d):
        raise ValueError(f"images of {d} numbers, prompts of shapes {positive.shape} and {negative.shape}")
    if similarity not in SIMILARITIES:
        raise ValueError(f"cannot score by {similarity!r}")
    if similarity == "cosine_difference":
        images, positive, negative = (one / lengths(one)[:, np.newaxis] for one in (images, positive, negative))
    columns = [_dots(images, plus) - _dots(images, minus) for plus, minus in zip(positive, negative, strict=True)]
    return np.stack(columns, axis=1) if columns else np.empty((len(images), 0))


def _dots(left: Floats, right: Floats) -> Floats:
    """Return the dot products [n] of rows [n, d] with rows [n, d], or with one vector [d]."""
    found = np.empty(len(left))
    for start in range(0, len(left), _ROWS):
        rows = slice(start, start + _ROWS)
        found[rows] = (left[rows] * (right[rows] if right.ndim == 2 else right)).sum(axis=1)
    return found
