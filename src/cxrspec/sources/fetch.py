"""Own what every way to the network shares: look first, fetch under a lock, check, and say why not.

Nothing here knows a protocol.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from cxrspec.errors import SourceError
from cxrspec.sources.store import Store, hash_file, refusal

ELSEWHERE: Final = (
    "On a machine with network run 'cxrspec fetch REF --to DIR', bring DIR here and set CXRSPEC_MIRROR to it"
)
_STAND_INS: Final = (b"version https://git-lfs", b"<!doctype html", b"<html", b"d8:announce")
_HEAD_BYTES: Final = 1024


def fetch_pinned(store: Store, sha256: str, where: str, fetch: Callable[[Path], object]) -> Path:
    """Return the file of that digest from a mirror or the cache, else fetch it.

    Args:
        store: Where to look and to keep.
        sha256: The pin.
        where: Place of the file in the definition, for messages.
        fetch: Called with the path of the partial file, which may hold the beginning from an earlier try.

    Raises:
        SourceError: The bytes fetched are not those of the pin (the partial file is gone then), or `fetch` failed.
    """
    if found := store.find(sha256, where):
        return found
    refuse_offline(store, where)
    with store.locked(sha256):
        if found := store.find(sha256, where):  # another process was faster
            return found
        place = store.place(sha256)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)  # what lies there is not what its name says
        partial = place.with_name(f"{sha256}.part")
        fetch(partial)
        refuse_other_bytes(partial, sha256, where, delete=True)
        return store.keep(partial, sha256)


def refuse_other_bytes(path: Path, sha256: str, where: str, *, delete: bool = False) -> None:
    """Raise SourceError, saying what the file is instead, unless it has that digest; `delete` it before raising."""
    if (found := hash_file(path)) == sha256:
        return
    size, head = path.stat().st_size, _head(path)
    if delete:
        path.unlink()
    refuse_stand_in(head, where)
    gone = "What was fetched is deleted. Run again" if delete else "Put the pinned file there"
    hint = f"{gone}; if the publisher replaced the file, pin it in the next definition version"
    raise refusal("source-changed", where, f"{size:,} bytes with sha256 {found}; the pin is {sha256}", hint)


def refuse_file_stand_in(path: Path, where: str) -> None:
    """Raise SourceError if the file on disk is a git-lfs pointer, an HTML page or a torrent."""
    refuse_stand_in(_head(path), where)


def refuse_stand_in(head: bytes, where: str) -> None:
    """Raise SourceError if the first bytes are those of a git-lfs pointer, an HTML page or a torrent."""
    if head.lstrip().lower().startswith(_STAND_INS):
        from cxrspec.tables.containers import open_bytes  # imported late: only a faulty file pays for it

        open_bytes(head, where)


def refuse_offline(store: Store, where: str) -> None:
    """Raise SourceError if the network may not be used."""
    if store.offline:
        raise unreachable(store, where, "the network is switched off (offline)")


def unreachable(store: Store, where: str, reason: str) -> SourceError:
    """Return the error of a file that is in no mirror, not in the cache and not to be had from the network."""
    looked = ", ".join(f"{folder}{'' if folder.is_dir() else ' (no such folder)'}" for folder in store.mirrors)
    message = f"neither in {f'the mirrors {looked}' if looked else 'a mirror'} nor in the cache, and {reason}"
    return refusal("source-unreachable", where, message, ELSEWHERE)


def refuse_too_large(size: int | None, store: Store, where: str) -> None:
    """Raise SourceError if a download is, or has grown, beyond what the store allows."""
    if size is not None and size > store.max_bytes:
        message = f"{size:,} bytes; downloads end at {store.max_bytes:,}"
        raise refusal("source-not-data", where, message, "Is it the right file?")


def throttled(headers: Mapping[str, str], where: str, who: str) -> SourceError:
    """Return the error of a 429 answer, with the time to wait where the host names one."""
    seconds = _seconds(headers.get("Retry-After", ""))
    wait = f"wait {seconds:,} s" if seconds is not None else "wait some minutes"
    return refusal("source-access", where, f"{who} throttles this address (429): {wait}", "Then run again")


def _seconds(retry_after: str) -> int | None:
    from email.utils import parsedate_to_datetime

    if retry_after.strip().isdecimal():
        return int(retry_after)
    try:
        return max(0, round(parsedate_to_datetime(retry_after).timestamp() - time.time()))
    except ValueError:
        return None


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(_HEAD_BYTES)
