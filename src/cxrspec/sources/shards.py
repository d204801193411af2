"""Own tables that a data set keeps as Parquet shards: only the columns that a definition reads are fetched, by range.

The hub states size and sha256 of each whole shard, and its word is recorded; what proves the content ever after is the
digest of the columns that were read, written as tab-separated text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cxrspec.digest import Table, sha256_hex
from cxrspec.errors import Issue, SourceError, listed
from cxrspec.files import write_whole
from cxrspec.sources.fetch import refuse_offline
from cxrspec.sources.hub import Wanted, find_by_commit, hub_refusals, known_entries, read_note, write_note
from cxrspec.sources.ranges import RangeFile, other_etag
from cxrspec.sources.store import OpenedFile, Store, disk_refusals, refusal
from cxrspec.tables import read_table
from cxrspec.tables.parquet import column_kinds

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
    kinds: tuple[str, ...]
    """Of what kind each column is stored: `text`, `number`, `text list`."""

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
            "kinds": list(self.kinds),
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
    """Return the paths of the data set, at its commit, that fit a pattern; raises SourceError where none does.

    A commit never changes, so what was listed once is remembered.
    """
    wanted = Wanted(source.repository, source.revision, match, store, where)
    note = wanted.note_for(f"{source.revision}:paths")
    remembered = [entry.get("paths") for entry in read_note(note)]
    paths = remembered[0] if remembered and isinstance(remembered[0], list) else _listed(wanted)
    write_note(note, {"paths": paths})
    if found := [path for path in paths if fnmatchcase(path, match)]:
        return found
    message = f"none of the {len(paths):,} files at revision {source.revision} fits '{match}'"
    raise refusal("source-file-missing", where, message, "Mend match")


def _listed(wanted: Wanted) -> list[str]:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    if wanted.store.offline:
        message = "the network is switched off (offline), and which files the data set has was not listed before"
        raise refusal("source-unreachable", wanted.where, message, "Run it once with network: what it reads is kept")
    with hub_refusals(wanted):
        tree = HfApi(endpoint=wanted.endpoint).list_repo_tree(
            wanted.repository, recursive=True, revision=wanted.revision, repo_type="dataset"
        )
        return sorted(entry.path for entry in tree if isinstance(entry, RepoFile))


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
    shards = [shard for shard in known if shard]
    _refuse_other_kinds(shards, columns, where)
    return shards


def _refuse_other_kinds(shards: Sequence[Shard], columns: Sequence[str], where: str) -> None:
    """Refuse a column of numbers in one shard and of texts in another: `1` and `00000001` would be two patients."""
    issues = []
    for at, column in enumerate(columns):
        kinds: dict[str, str] = {}
        for shard in shards:
            kinds.setdefault(shard.kinds[at], shard.path)
        if len(kinds) > 1:
            found = listed([f"{kind} in '{path}'" for kind, path in kinds.items()])
            hint = "Name shards that were written alike, or another mirror"
            issues.append(Issue("column-ambiguous", where, f"column '{column}' is {found}", hint))
    if issues:
        raise SourceError(issues)


def _known(wanted: Wanted, columns: Sequence[str]) -> Shard | None:
    """Look for the columns, among others or not, or for the whole shard, in the mirrors and the cache."""
    for entry in known_entries(wanted, _note(wanted)):
        place = (entry.get("revision"), entry.get("path"))
        if place != (wanted.revision, wanted.path) or not _holds(entry, columns):
            continue
        if path := wanted.store.find(entry["sha256"], wanted.where):
            return _projected(entry, path.read_bytes(), wanted, columns)
    if whole := find_by_commit(wanted):
        path, _, etag = whole
        return _read(path, path.stat().st_size, etag, wanted, columns)
    return None


def _holds(entry: Mapping[str, Any], columns: Sequence[str]) -> bool:
    """Say whether an entry is of columns that were read from a shard, these among them."""
    held, kinds = entry.get("columns"), entry.get("kinds")
    lists = isinstance(held, list) and isinstance(kinds, list) and len(held) == len(kinds)
    stated = type(entry.get("shard_size")) is int and isinstance(entry.get("etag"), str)
    return lists and stated and set(columns) <= set(held or ())


def _projected(entry: Mapping[str, Any], text: bytes, wanted: Wanted, columns: Sequence[str]) -> Shard:
    try:
        table = Table.parse(text)
        cells = tuple(table.column(name) for name in columns)
    except ValueError as error:
        message = f"what is kept of '{wanted.path}' is no table of its columns: {error}"
        raise refusal("source-changed", wanted.where, message, "Delete its entry in the index, or the mirror") from None
    kinds = tuple(str(entry["kinds"][entry["columns"].index(name)]) for name in columns)
    return Shard(wanted.path, entry["shard_size"], entry["etag"], Table(tuple(columns), cells).text, kinds)


def _fetched(wanted: Wanted, columns: Sequence[str], digest: str, advance: Any) -> Shard | SourceError:
    """Read one shard from the hub and keep what was read; return a refusal, so that all of them are told."""
    try:
        with wanted.store.locked(_note(wanted).stem):
            if found := _known(wanted, columns):  # another process was faster
                return found
            file = RangeFile(wanted)
            if digest and digest != file.etag:
                return other_etag(wanted, file.etag, digest)
            shard = _read(file, file.size, file.etag, wanted, columns)
            _keep(shard, wanted)
            advance(file.n_received)
            return shard
    except SourceError as error:
        return error


def _read(file: Any, size: int, etag: str, wanted: Wanted, columns: Sequence[str]) -> Shard:
    """Read columns of an open Parquet file."""
    name = f"{wanted.where} '{wanted.path}'"
    table = read_table(file, name=name, columns=columns)
    text = Table(tuple(columns), tuple(table.columns[name] for name in columns)).text
    return Shard(wanted.path, size, etag, text, tuple(column_kinds(file, columns, name)))


def _keep(shard: Shard, wanted: Wanted) -> None:
    """Keep what was read in the cache, under its digest, with a note of what it is."""
    entry, note = shard.entry(wanted.revision), _note(wanted)
    write_whole(wanted.store.place(entry["sha256"]), shard.text)
    write_note(note, [*(one for one in read_note(note) if one.get("columns") != entry["columns"]), entry])


def _note(wanted: Wanted) -> Path:
    return wanted.note_for(f"{wanted.revision}/{wanted.path}?columns")


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
