"""Own the writing of files: whole or absent, whatever stops the process. Knows no place and no format."""

from __future__ import annotations

import errno
import os
import socket
import time
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


@contextmanager
def holding(path: Path, seconds: float) -> Iterator[None]:
    """Hold a lock file against other processes for as long as the block runs.

    The operating system frees it when its holder dies, so a stale lock cannot exist.

    Raises:
        TimeoutError: if another process holds it for that many seconds; the text says which one.
    """
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    owner = path.with_suffix(".owner")
    lock = FileLock(path)
    try:
        lock.acquire(timeout=seconds)
    except Timeout:
        raise TimeoutError(owner.read_text(encoding="utf-8") if owner.is_file() else "it does not say who") from None
    except NotImplementedError:  # what filelock raises on a file system without locks (some network mounts)
        raise OSError(errno.ENOLCK, "the file system has no file locks", str(path)) from None
    try:
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        owner.write_text(f"process {os.getpid()} on {socket.gethostname()}, since {since}", encoding="utf-8")
        yield
    finally:
        lock.release()
