"""Own a file of a data set that is read by ranges at the pinned commit, so that only what is asked for travels."""

from __future__ import annotations

import io
import re
from typing import Any, Final

from cxrspec.errors import SourceError
from cxrspec.sources.fetch import refuse_stand_in
from cxrspec.sources.hub import Wanted, hub_refusals, refuse_other_commit, stated
from cxrspec.sources.store import refusal

TAIL_BYTES: Final = 1 << 16
"""A Parquet file is read from its end, where its footer says what stands where."""
HEAD_BYTES: Final = 1024
TRIES: Final = 3
_PARQUET_MAGIC: Final = b"PAR1"
_SHA256: Final = re.compile("[0-9a-f]{64}")
_CONTENT_RANGE: Final = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class RangeFile(io.RawIOBase):
    """A Parquet file on the hub, read by ranges.

    Raises:
        SourceError: The hub refuses, answers for another commit or size, or the file is no Parquet file; reading raises
            it too.
    """

    def __init__(self, wanted: Wanted) -> None:
        """Ask for size and etag, then for the end of the file."""
        super().__init__()
        self.wanted = wanted
        with hub_refusals(wanted):
            metadata = stated(wanted)
        if metadata.size is None or not metadata.etag:
            message = f"the hub states no size or no etag of '{wanted.path}', so it cannot be read by ranges"
            raise refusal("source-changed", wanted.where, message, "Check HF_ENDPOINT")
        self.size, self.etag = metadata.size, metadata.etag
        self.n_received = 0
        self._position = 0
        self._tail_start = max(0, self.size - TAIL_BYTES)
        self._tail = self._fetch(self._tail_start, self.size)
        if not self._tail.endswith(_PARQUET_MAGIC):
            refuse_stand_in(self._read(0, min(self.size, HEAD_BYTES)), f"{wanted.where} '{wanted.path}'")
            message = f"'{wanted.path}' is no Parquet file"
            raise refusal("source-not-data", wanted.where, message, "Name Parquet shards, or a path to read whole")

    def readable(self) -> bool:
        """Say yes."""
        return True

    def seekable(self) -> bool:
        """Say yes."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; nothing is fetched."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the position on, as far as the file goes."""
        view = memoryview(buffer).cast("B")
        data = self._read(self._position, min(self.size, self._position + len(view)))
        view[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _read(self, start: int, stop: int) -> bytes:
        if start >= self._tail_start:
            return self._tail[start - self._tail_start : max(start, stop) - self._tail_start]
        return self._fetch(start, stop)

    def _fetch(self, start: int, stop: int) -> bytes:
        """Return the bytes of one range; a connection that breaks is tried again, a refusal is said at once."""
        if stop <= start:
            return b""
        from huggingface_hub.errors import HfHubHTTPError

        transport_error: type[Exception] = HfHubHTTPError.__bases__[0]
        for _ in range(TRIES - 1):
            try:
                return self._answered(start, stop)
            except HfHubHTTPError:
                break  # asked once more below, where the refusal gets its words
            except transport_error:
                continue
        with hub_refusals(self.wanted):
            return self._answered(start, stop)

    def _answered(self, start: int, stop: int) -> bytes:
        from huggingface_hub import get_session, hf_hub_url, hf_raise_for_status
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

        address = hf_hub_url(self.wanted.repository, self.wanted.path, **self.wanted.place)
        asked = build_hf_headers() | {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
        with get_session().stream("GET", address, headers=asked, follow_redirects=True) as answer:
            if answer.status_code >= 400:
                answer.read()
            hf_raise_for_status(answer)
            self._refuse_other_file(answer)
            self._refuse_other_range(answer, start, stop)
            data: bytes = answer.read()
        self.n_received += len(data)
        return data

    def _refuse_other_file(self, answer: Any) -> None:
        """Refuse an answer of another commit or digest by the hub's own word: storage behind it has its own etags."""
        of_hub = [one for one in (*answer.history, answer) if "X-Repo-Commit" in one.headers]
        if not of_hub:
            return
        said = of_hub[-1].headers
        refuse_other_commit(said["X-Repo-Commit"], self.wanted)
        etag = said.get("X-Linked-ETag") or ("" if of_hub[-1] is not answer else said.get("ETag", ""))
        etag = etag.removeprefix("W/").strip('"')
        if _SHA256.fullmatch(etag) and _SHA256.fullmatch(self.etag) and etag != self.etag:
            raise other_etag(self.wanted, self.etag, etag)

    def _refuse_other_range(self, answer: Any, start: int, stop: int) -> None:
        """Refuse an answer that is not that range of that file, before its body is read."""
        where, path = self.wanted.where, self.wanted.path
        said = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        if answer.status_code != 206 or not said:
            message = f"the hub answers a range of '{path}' with status {answer.status_code} instead of that range"
            raise refusal("source-changed", where, message, "Name another mirror or hub; this one serves no ranges")
        if tuple(map(int, said.groups())) != (start, stop - 1, self.size):
            message = f"the hub answers bytes {start}-{stop - 1}/{self.size} of '{path}' with {said[0]}"
            raise refusal("source-changed", where, message, "Run again; if it stays, name another mirror or hub")


def other_etag(wanted: Wanted, stated_etag: str, found: str) -> SourceError:
    """Return the refusal of a file for which the hub states two digests."""
    message = f"the hub states two digests of '{wanted.path}': {stated_etag} and {found}"
    return refusal("source-changed", wanted.where, message, "Run again; if it stays, name another mirror or hub")
