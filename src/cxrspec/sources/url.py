"""Own downloads from a URL: streamed, resumed where the server allows it, bounded in size.

A URL is only a place to look; the sha256 says what the file is.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cxrspec.sources.fetch import fetch_pinned, refuse_too_large, throttled, unreachable
from cxrspec.sources.store import OpenedFile, Store, refusal

if TYPE_CHECKING:
    from requests import Response

    from cxrspec.definition import UrlSource

TIMEOUT_S: Final = (10.0, 60.0)
"""Seconds to wait for the connection, and for the next bytes."""
_TRIES: Final = 5
_CHUNK: Final = 1 << 20
_ACCESS: Final = {
    401: ("asks for a login (401)", "Put it into ~/.netrc"),
    403: ("refuses access (403)", "Are the terms of the data accepted there?"),
}
_GONE: Final = (404, 410)


class _CutOffError(Exception):
    """The connection broke; what had arrived is in the partial file."""


def open_url(source: UrlSource, name: str, store: Store, where: str) -> OpenedFile:
    """Return the file behind a URL, proved by its sha256."""
    pinned = source.files[name]

    def fetch(partial: Path) -> None:
        download(pinned.url, partial, store, where)

    path = fetch_pinned(store, pinned.sha256, where, fetch)
    return OpenedFile.at(path, pinned.sha256, "sha256", {"sha256": pinned.sha256})


def download(url: str, partial: Path, store: Store, where: str) -> None:
    """Fetch a URL into `partial`, going on where an earlier try broke off.

    Raises:
        SourceError: The host cannot be reached, refuses, or kept breaking off; `partial` holds what arrived.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        message = f"'{_shown(url)}' is no http or https address"
        raise refusal("field-value", where, message, "A file on this machine is a source of kind file")
    reason = ""
    for _ in range(_TRIES):
        before = _size(partial)
        try:
            _transfer(url, partial, store, where)
        except _CutOffError as error:
            reason = str(error)
            if _size(partial) <= before:
                break
        else:
            return
    kept = f"; {_size(partial):,} bytes arrived and are kept for the next try" if _size(partial) else ""
    raise unreachable(store, where, f"{_shown(url)} {reason}{kept}")


def _transfer(url: str, partial: Path, store: Store, where: str) -> None:
    import requests
    from urllib3.exceptions import HTTPError

    offset = _size(partial)
    # no transfer encoding: a .gz must arrive as it was published
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={offset}-"} if offset else {})
    try:
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as response:
            if offset and not _resumes(response, offset):
                offset = 0
            if response.status_code != 416:
                _refuse_status(response, url, store, where)
                _receive(response, partial, offset, store, where)
                return
    except (requests.RequestException, HTTPError) as error:
        raise _CutOffError(_reason(error)) from error
    partial.unlink()  # longer than the file: no part of it
    _transfer(url, partial, store, where)


def _resumes(response: Response, offset: int) -> bool:
    wanted = f"bytes {offset}-"
    return response.status_code == 206 and response.headers.get("Content-Range", "").startswith(wanted)


def _receive(response: Response, partial: Path, offset: int, store: Store, where: str) -> None:
    length = response.headers.get("Content-Length", "")
    total = offset + int(length) if length.isdecimal() else None
    refuse_too_large(total, store, where)
    advance = store.show(_shown(response.request.url or "").rpartition("/")[2], total)
    advance(offset)
    size = offset
    with partial.open("ab" if offset else "wb") as out:
        for chunk in response.raw.stream(_CHUNK, decode_content=False):
            out.write(chunk)
            advance(len(chunk))
            size += len(chunk)
            if size > store.max_bytes:
                partial.unlink()
                refuse_too_large(size, store, where)
    if total is not None and size < total:
        raise _CutOffError(f"broke off at {size:,} of {total:,} bytes")


def _refuse_status(response: Response, url: str, store: Store, where: str) -> None:
    status, host = response.status_code, urlsplit(url).hostname or "the host"
    if status in _ACCESS:
        found, hint = _ACCESS[status]
        raise refusal("source-access", where, f"{_shown(url)} {found}", hint)
    if status in _GONE:
        raise refusal(
            "source-file-missing", where, f"{_shown(url)} is gone ({status})", "Mend the url, or use a mirror"
        )
    if status == 429:
        raise throttled(response.headers, where, host)
    if status not in (200, 206):
        raise unreachable(store, where, f"{_shown(url)} answers with status {status}")


def _reason(error: Exception) -> str:
    import requests

    if isinstance(error, requests.exceptions.SSLError):
        return "has a TLS certificate that this machine does not trust"
    if isinstance(error, requests.exceptions.ProxyError):
        return "cannot be reached through the proxy"
    if isinstance(error, requests.ConnectionError | requests.Timeout):
        return "cannot be reached"
    return f"broke off ({type(error).__name__})"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _shown(url: str) -> str:
    """Return the URL without login and query, which may hold a secret."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
