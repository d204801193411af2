"""Own files on this machine. Nothing is copied: a local file is read where it lies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cxrspec.errors import SourceError, did_you_mean
from cxrspec.sources.fetch import refuse_file_stand_in, refuse_other_bytes
from cxrspec.sources.store import OpenedFile, Store, hash_file, refusal

if TYPE_CHECKING:
    from cxrspec.definition import FileSource


def open_local(source: FileSource, name: str, store: Store, where: str) -> OpenedFile:
    """Return a local file, proved by its sha256: the pinned one, or the one found where none is pinned.

    A pinned file that is not there is looked for in mirrors and cache.
    """
    named = source.files[name]
    path = store.root / named.path
    if path.is_file():
        if named.sha256:
            refuse_other_bytes(path, named.sha256, where)
        else:
            refuse_file_stand_in(path, where)
    elif not named.sha256 or not (found := store.find(named.sha256, where)):
        raise _missing(path, named.path, where)
    else:
        path = found
    sha256 = named.sha256 or hash_file(path)
    return OpenedFile.at(path, sha256, "sha256", {"sha256": sha256})


def _missing(path: Path, shown: str, where: str) -> SourceError:
    if path.is_dir():
        return refusal("source-file-missing", where, f"'{shown}' is a folder", "Name a file in it")
    names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    hint = did_you_mean(path.name, names) or "The path is relative to the folder of the project"
    return refusal("source-file-missing", where, f"there is no file '{shown}'", hint)
