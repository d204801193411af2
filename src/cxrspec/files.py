"""Own the writing of files: whole or absent, whatever stops the process. Knows no place and no format."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

UNFINISHED: Final = ".*.unfinished"
"""Glob of the temporary files that a killed process may leave behind."""


@contextmanager
def writing_whole(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name only when all of it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # not mkstemp: its files are private to their owner
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.unfinished")
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all; a file with these bytes already is left alone."""
    if path.is_file() and path.read_bytes() == data:
        return
    with writing_whole(path) as stream:
        stream.write(data)


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder survive a power cut."""
    if os.name == "posix":  # elsewhere a folder cannot be opened
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
