"""Own tables that a data set keeps as Parquet shards: only the columns that a definition reads are fetched, by range.

The hub states size and sha256 of each whole shard, and its word is recorded; what proves the content ever after is the
digest of the columns that were read, written as tab-separated text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cxrspec.digest import Table, sha256_hex
from cxrspec.errors import Issue, SourceError
from cxrspec.files import write_whole
from cxrspec.sources.fetch import refuse_offline
from cxrspec.sources.hub import Wanted, find_by_commit, hub_refusals, known_entries, write_note
from cxrspec.sources.ranges import RangeFile, other_etag
from cxrspec.sources.store import OpenedFile, Store, disk_refusals, refusal
from cxrspec.tables import read_table

if TYPE_CHECKING:
    from cxrspec.definition import HubSource

AT_ONCE: Final = 8
"""Shards that are read at the same time: the time goes into waiting for answers."""


@dataclass(frozen=True)
class Shard:
    """One shard as the hub states it, and the columns that were read from it."""

    path: str
    size: int
    """Bytes of the whole shard."""
    etag: str
    """The sha256 of the whole shard in git-lfs, as the hub states it."""
    text: bytes
    """The columns as tab-separated text: a header of their names in code-point order, then the rows as they stand."""

    @property
    def table(self) -> Table:
        """The rows, in the order of the shard."""
        return Table.parse(self.text)

    @property
    def pin(self) -> dict[str, Any]:
        """What the lock records."""
        stated = {"lfs_sha256" if re.fullmatch("[0-9a-f]{64}", self.etag) else "etag": self.etag}
        return {"path": self.path, "size": self.size, "content_sha256": sha256_hex(self.text), **stated}

    def entry(self, revision: str) -> dict[str, Any]:
        """Return what the index of a mirror, or a note of the cache, says of these columns."""
        return {
            "sha256": sha256_hex(self.text),
            "revision": revision,
            "path": self.path,
            "columns": list(self.table.header),
            "shard_size": self.size,
            "etag": self.etag,
        }


def joined_shards(shards: Sequence[Shard], source: HubSource) -> OpenedFile:
    """Return the shards as one file: its bytes, and so its digest, are those of their texts in the order of paths."""
    ordered = sorted(shards, key=lambda shard: shard.path)
    text = b"".join(shard.text for shard in ordered)
    pin = {"revision": source.revision, "shards": [shard.pin for shard in ordered]}
    return OpenedFile(sha256_hex(text), len(text), "content", pin, content=text)


def list_shards(source: HubSource, match: str, store: Store, where: str) -> list[str]:
    """Return the paths of the data set, at its commit, that fit a pattern; raises SourceError where none does."""
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    wanted = Wanted(source.repository, source.revision, match, store, where)
    refuse_offline(store, where)
    with hub_refusals(wanted):
        api = HfApi(endpoint=wanted.endpoint)
        tree = api.list_repo_tree(source.repository, recursive=True, revision=source.revision, repo_type="dataset")
        paths = sorted(entry.path for entry in tree if isinstance(entry, RepoFile))
    if found := [path for path in paths if fnmatchcase(path, match)]:
        return found
    message = f"none of the {len(paths):,} files at revision {source.revision} fits '{match}'"
    raise refusal("source-file-missing", where, message, "Mend match")


def read_shards(
    source: HubSource, paths: Sequence[str], columns: Sequence[str], store: Store, where: str
) -> list[Shard]:
    """Read columns of shards: from a mirror or the cache, else from the hub by ranges.

    Raises:
        SourceError: with what is wrong with each of them.
    """
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    columns = sorted(set(columns))
    wanted = [Wanted(source.repository, source.revision, path, store, where) for path in paths]
    with disk_refusals(where):
        known = [_known(one, columns) for one in wanted]
        if not all(known):
            refuse_offline(store, where)
            absent = [one for one, shard in zip(wanted, known, strict=True) if shard is None]
            digests = _stated_digests(source, absent)
            advance = store.show(f"{where}: {len(absent)} shards", None)
            with Parallel(n_jobs=min(AT_ONCE, len(absent)), prefer="threads") as parallel:
                fetched = parallel(delayed(_fetched)(one, columns, digests[one.path], advance) for one in absent)
            if issues := [issue for found in fetched if isinstance(found, SourceError) for issue in found.issues]:
                raise SourceError(dict.fromkeys(issues))
            by_path = {shard.path: shard for shard in fetched}
            known = [shard or by_path[one.path] for one, shard in zip(wanted, known, strict=True)]
    return [shard for shard in known if shard]


def _known(wanted: Wanted, columns: Sequence[str]) -> Shard | None:
    """Look for the columns, or for the whole shard, in the mirrors and the cache."""
    for entry in known_entries(wanted, _note(wanted, columns)):
        place = (entry.get("revision"), entry.get("path"), entry.get("columns"))
        if place != (wanted.revision, wanted.path, list(columns)):
            continue
        if path := wanted.store.find(entry["sha256"], wanted.where):
            return Shard(wanted.path, entry["shard_size"], entry["etag"], path.read_bytes())
    if whole := find_by_commit(wanted):
        path, _, etag = whole
        return Shard(wanted.path, path.stat().st_size, etag, _text_of(path, wanted, columns))
    return None


def _fetched(wanted: Wanted, columns: Sequence[str], digest: str, advance: Any) -> Shard | SourceError:
    """Read one shard from the hub and keep what was read; return a refusal, so that all of them are told."""
    try:
        with wanted.store.locked(_note(wanted, columns).stem):
            if found := _known(wanted, columns):  # another process was faster
                return found
            file = RangeFile(wanted)
            if digest and digest != file.etag:
                return other_etag(wanted, file.etag, digest)
            shard = Shard(wanted.path, file.size, file.etag, _text_of(file, wanted, columns))
            _keep(shard, wanted)
            advance(file.n_received)
            return shard
    except SourceError as error:
        return error


def _text_of(file: Any, wanted: Wanted, columns: Sequence[str]) -> bytes:
    table = read_table(file, name=f"{wanted.where} {wanted.path}", columns=columns)
    return Table(tuple(columns), tuple(table.columns[name] for name in columns)).text


def _keep(shard: Shard, wanted: Wanted) -> None:
    """Keep what was read in the cache, under its digest, with a note of what it is."""
    entry = shard.entry(wanted.revision)
    write_whole(wanted.store.place(entry["sha256"]), shard.text)
    write_note(_note(wanted, shard.table.header), entry)


def _note(wanted: Wanted, columns: Sequence[str]) -> Path:
    return wanted.note_for(f"{wanted.revision}/{wanted.path}?{json.dumps(list(columns))}")


def _stated_digests(source: HubSource, wanted: Sequence[Wanted]) -> dict[str, str]:
    """Ask the hub for the sha256 of every shard at once; refuse paths that it does not have."""
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    with hub_refusals(wanted[0]):
        found = HfApi(endpoint=wanted[0].endpoint).get_paths_info(
            source.repository, [one.path for one in wanted], revision=source.revision, repo_type="dataset"
        )
    digests = {entry.path: entry.lfs.sha256 if entry.lfs else "" for entry in found if isinstance(entry, RepoFile)}
    missing = [one for one in wanted if one.path not in digests]
    if missing:
        message = "data set '{}' has no file '{}' at revision {}"
        raise SourceError(
            Issue("source-file-missing", one.where, message.format(one.repository, one.path, one.revision))
            for one in missing
        )
    return digests
