"""Own the opening of NumPy archives (`.npz`): bounded before anything is unpacked, and never unpickled.

Which array means what is for the callers.
"""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cxrspec.errors import Issue, SourceError
from cxrspec.tables.containers import DAMAGE, MAX_BYTES


def read_arrays(data: bytes, name: str) -> dict[str, NDArray[Any]]:
    """Read all arrays of an archive.

    Raises:
        SourceError: The archive is damaged or too large, or an array can only be read by unpickling.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    if size > MAX_BYTES:
        message = f"{size:,} bytes once unpacked, more than {MAX_BYTES:,}"
        raise SourceError(Issue("container", name, message, "Is it the right file?"))
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}
    except (*DAMAGE, MemoryError) as error:
        message = f"the NumPy archive cannot be read without unpickling ({error})"
        raise SourceError(Issue("container", name, message, "Save plain arrays of texts and floats")) from error


def texts_of(array: NDArray[Any]) -> list[str]:
    """Return the elements of a one-dimensional array of texts."""
    return [cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell) for cell in array.tolist()]
