"""Own files of Hugging Face data sets at a full commit id.

With a sha256 in the definition that is the proof; without one it is the hub's word for the commit, and the etag.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from cxrspec.digest import json_text, sha256_hex
from cxrspec.errors import SourceError
from cxrspec.files import writing_whole
from cxrspec.sources.fetch import (
    fetch_pinned,
    refuse_file_stand_in,
    refuse_offline,
    refuse_too_large,
    throttled,
    unreachable,
)
from cxrspec.sources.index import read_index
from cxrspec.sources.store import OpenedFile, Store, hash_file, refusal

if TYPE_CHECKING:
    from huggingface_hub import HfFileMetadata
    from huggingface_hub.errors import HfHubHTTPError

    from cxrspec.definition import HubSource


@dataclass(frozen=True)
class Wanted:
    """One file at one commit, and where messages place it."""

    repository: str
    revision: str
    path: str
    store: Store
    where: str

    @property
    def endpoint(self) -> str | None:
        """The hub to ask: HF_ENDPOINT as it is now, else the library's own."""
        return os.environ.get("HF_ENDPOINT", "").rstrip("/") or None

    @property
    def place(self) -> dict[str, Any]:
        """What the hub's library takes to find the data set at the commit."""
        return {"repo_type": "dataset", "revision": self.revision, "endpoint": self.endpoint}

    def note_for(self, key: str) -> Path:
        """Return where the cache notes what it keeps under that key."""
        return self.store.cache / "hub" / f"{sha256_hex(key.encode())}.json"


def open_hub(source: HubSource, name: str, store: Store, where: str) -> OpenedFile:
    """Return a file of a data set, proved by its sha256 where one is given, else by commit and etag."""
    named = source.files[name]
    assert named.path is not None  # shards are read by `sources.shards`
    wanted = Wanted(source.repository, source.revision, named.path, store, where)
    pin = {"revision": source.revision, "path": named.path}
    if named.sha256:
        path = fetch_pinned(store, named.sha256, where, lambda partial: _download(wanted, partial))
        return OpenedFile.at(path, named.sha256, "sha256", pin)
    path, sha256, etag = find_by_commit(wanted) or _fetch_by_commit(wanted)
    return OpenedFile.at(path, sha256, "commit", pin | {"etag": etag})


# ------------------------------------------------------------------------------------- without a sha256: commit, etag


def find_by_commit(wanted: Wanted) -> tuple[Path, str, str] | None:
    """Look into the indexes of the mirrors and the cache's own notes for the file at that commit."""
    for entry in known_entries(wanted, _note(wanted)):
        place = (entry.get("revision"), entry.get("path"))
        if place == (wanted.revision, wanted.path) and "etag" in entry and "columns" not in entry:
            path = wanted.store.find(entry["sha256"], wanted.where)
            if path:
                _refuse_other_etag(path, entry["etag"], wanted.where)
                return path, entry["sha256"], entry["etag"]
    return None


def _fetch_by_commit(wanted: Wanted) -> tuple[Path, str, str]:
    store = wanted.store
    refuse_offline(store, wanted.where)
    with store.locked(_note(wanted).stem):
        if found := find_by_commit(wanted):  # another process was faster
            return found
        with TemporaryDirectory(dir=store.cache, prefix="hub-") as folder:
            fetched = Path(folder, "file")
            etag = _download(wanted, fetched)
            refuse_file_stand_in(fetched, wanted.where)
            _refuse_other_etag(fetched, etag, wanted.where)
            sha256 = hash_file(fetched)
            path = store.keep(fetched, sha256)
        note = {"revision": wanted.revision, "path": wanted.path, "sha256": sha256, "etag": etag}
        write_note(_note(wanted), note)
    return path, sha256, etag


def known_entries(wanted: Wanted, note: Path) -> list[dict[str, Any]]:
    """Return what the indexes of the mirrors, and the cache's own note, say of files of data sets."""
    entries = [entry for folder in wanted.store.mirrors for entry in read_index(folder, wanted.where)]
    return entries + read_note(note)


def read_note(note: Path) -> list[dict[str, Any]]:
    """Return what a note of the cache remembers, nothing where there is none yet or a damaged one."""
    try:
        found = json.loads(note.read_bytes())
    except (FileNotFoundError, ValueError):
        return []
    entries = found if isinstance(found, list) else [found]
    return entries if all(isinstance(entry, dict) for entry in entries) else []


def write_note(note: Path, entry: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """Remember in the cache what a file kept there is; the same keys as in the index of a mirror."""
    note.parent.mkdir(parents=True, exist_ok=True)
    with writing_whole(note) as out:
        out.write(json_text(entry))


def _note(wanted: Wanted) -> Path:
    return wanted.note_for(f"{wanted.revision}/{wanted.path}")


def _refuse_other_etag(path: Path, etag: str, where: str) -> None:
    """Check the bytes against the etag where it is a digest: sha256 of a large file, git's or plain sha1 of a small."""
    if re.fullmatch(r"[0-9a-f]{64}", etag):
        fits = hash_file(path) == etag
    elif re.fullmatch(r"[0-9a-f]{40}", etag):
        data = path.read_bytes()
        blob = b"blob %d\x00" % len(data) + data
        fits = etag in (hashlib.sha1(part, usedforsecurity=False).hexdigest() for part in (blob, data))
    else:
        return  # a hub of another make; the commit is all there is
    if not fits:
        message = f"the bytes are not those of the etag {etag} that the hub gives for them"
        raise refusal("source-changed", where, message, "Run again; if it stays, name another mirror or hub")


# -------------------------------------------------------------------------------------------------------- the network


def _download(wanted: Wanted, target: Path) -> str:
    """Fetch the file into `target`; return its etag."""
    with hub_refusals(wanted), TemporaryDirectory(dir=wanted.store.cache, prefix="hub-") as folder:
        from huggingface_hub import hf_hub_download

        metadata = stated(wanted)
        refuse_too_large(metadata.size, wanted.store, wanted.where)
        bars = _bar_class(wanted.store, wanted.path.rpartition("/")[2], metadata.size)
        found = hf_hub_download(wanted.repository, wanted.path, cache_dir=folder, tqdm_class=bars, **wanted.place)
        Path(str(found)).resolve().replace(target)
        return metadata.etag or ""


def stated(wanted: Wanted) -> HfFileMetadata:
    """Ask the hub for size and etag of the file at the pinned commit.

    Asked for first and without retries: a refusal is said at once, and nothing is fetched from another commit.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # a benchmark tool reports nothing about its users
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    address = hf_hub_url(wanted.repository, wanted.path, **wanted.place)
    metadata = get_hf_file_metadata(address, endpoint=wanted.endpoint)
    refuse_other_commit(metadata.commit_hash, wanted)
    return metadata


def refuse_other_commit(commit: str | None, wanted: Wanted) -> None:
    """Raise SourceError unless the hub answered for the pinned commit."""
    if commit != wanted.revision:
        found = f"answers with commit {commit}" if commit else "names no commit, so it is no Hugging Face hub"
        raise refusal(
            "source-changed", wanted.where, f"the hub {found}; the pin is {wanted.revision}", "Check HF_ENDPOINT"
        )


def _bar_class(store: Store, name: str, total: int | None) -> Any:
    """Return a class of progress bars that shows nothing itself and hands the bytes on to the store's progress."""
    from huggingface_hub.utils.tqdm import tqdm

    advance = store.show(name, total)

    class Bar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs | {"disable": True})  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> None:
            advance(int(n or 0))

        def update_transfer(self, n: float | None = 1) -> None:
            """Leave bytes on the wire uncounted: `update` counts those that reach the disk."""

        def set_transfer_postfix_str(self, text: str = "", refresh: bool = True) -> None:
            """Show no speed: the store's progress does."""

    return Bar


@contextmanager
def hub_refusals(wanted: Wanted) -> Iterator[None]:
    """Turn what the hub's library raises into one clear refusal each."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    transport_error: type[BaseException] = HfHubHTTPError.__bases__[0]  # httpx's or its successor's
    try:
        yield
    except HFValidationError as error:
        raise refusal("field-value", wanted.where, f"'{wanted.repository}' is no name of a data set") from error
    except (transport_error, OSError) as error:
        cause = error.__cause__ if isinstance(error, LocalEntryNotFoundError) else error
        if isinstance(cause, HfHubHTTPError):
            raise _status_refusal(cause, wanted) from error
        if isinstance(cause, OSError) and cause.filename:
            raise  # our own disk
        reason = f"{type(cause).__name__}: {str(cause).partition(chr(10))[0]}"
        raise unreachable(wanted.store, wanted.where, f"the hub cannot be reached ({reason})") from error


def _status_refusal(error: HfHubHTTPError, wanted: Wanted) -> SourceError:
    status, headers, data_set = error.response.status_code, error.response.headers, f"data set '{wanted.repository}'"
    kind = headers.get("X-Error-Code", "")
    if status == 429:
        return throttled(headers, wanted.where, "the hub")
    if status == 401:
        message = f"not logged in (401): {data_set} is gated or private, or does not exist"
        return refusal("source-access", wanted.where, message, "Run hf auth login, or set HF_TOKEN")
    if status == 403 and kind == "GatedRepo":
        message = f"the terms of {data_set} are not accepted yet (403)"
        return refusal("source-access", wanted.where, message, "Accept them on its page with the account of HF_TOKEN")
    if status == 403:
        message = f"this account may not read {data_set} (403)"
        return refusal("source-access", wanted.where, message, "Use a token with the right to read it")
    if status == 404:
        return refusal("source-file-missing", wanted.where, _gone(kind, data_set, wanted), "Check the definition")
    return unreachable(wanted.store, wanted.where, f"the hub answers with status {status}")


def _gone(kind: str, data_set: str, wanted: Wanted) -> str:
    if kind == "RepoNotFound":
        return f"the hub has no {data_set} (404)"
    if kind == "RevisionNotFound":
        return f"{data_set} has no revision {wanted.revision} (404)"
    if kind == "EntryNotFound":
        return f"{data_set} has no file '{wanted.path}' at revision {wanted.revision} (404)"
    return f"the hub has no '{wanted.path}' of {data_set} at revision {wanted.revision} (404)"
