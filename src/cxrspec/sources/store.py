"""Own the places that bytes are kept in: mirror folders and the cache, both of files called by their sha256.

Nothing here reaches the network. A file appears under its name whole or not at all.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from cxrspec.digest import sha256_hex
from cxrspec.errors import Issue, SourceError
from cxrspec.files import sync_folder

MAX_DOWNLOAD_BYTES: Final = 16 << 30
"""Largest file that is fetched; a `Store` may set another bound."""

Proof = Literal["sha256", "commit", "content"]
"""How bytes were proved: by a digest, or by the hub's word for a commit id and an etag. Columns read by range are
proved by that word the first time, and by the digest of their content ever after."""


class Progress(Protocol):
    """What shows how far a download is; the library itself never prints."""

    def start(self, name: str, total: int | None) -> Callable[[int], None]:
        """Begin one download of `total` bytes (None: unknown); return what to call with each number of new bytes."""


@dataclass(frozen=True)
class OpenedFile:
    """A file of a source whose bytes fit their pin."""

    sha256: str
    """Digest of the file as the definition names it: of a wheel's member, or of what was read of shards."""
    size: int
    proof: Proof
    pin: Mapping[str, Any]
    """What the lock records of where the bytes came from; the same wherever they were found this time."""
    path: Path | None = None
    """The file on disk; None for a member of a wheel, and for columns of shards."""
    content: bytes | None = field(default=None, repr=False)

    @classmethod
    def at(cls, path: Path, sha256: str, proof: Proof, pin: Mapping[str, Any]) -> OpenedFile:
        """Return the opened form of a file on disk that was hashed just now."""
        return cls(sha256, path.stat().st_size, proof, pin, path)

    def read(self) -> bytes:
        """Return the whole content; from disk it is hashed again, and SourceError raised if it changed meanwhile."""
        if self.path is None:
            return self.content or b""
        data = self.path.read_bytes()
        if sha256_hex(data) != self.sha256:
            raise refusal("source-changed", str(self.path), "the file changed after it was opened", "Run again")
        return data


@dataclass(frozen=True)
class Store:
    """Where the bytes of sources are looked for, and kept once fetched."""

    cache: Path
    mirrors: tuple[Path, ...] = ()
    root: Path = Path()
    """Folder of the project; `file` sources are relative to it."""
    offline: bool = False
    progress: Progress | None = None
    max_bytes: int = MAX_DOWNLOAD_BYTES

    @classmethod
    def from_environment(
        cls, root: Path, mirrors: Iterable[Path] = (), *, offline: bool = False, progress: Progress | None = None
    ) -> Store:
        """Return the store that CXRSPEC_CACHE, XDG_CACHE_HOME and CXRSPEC_MIRROR describe; `mirrors` come first."""
        named = os.environ.get("CXRSPEC_MIRROR", "").split(os.pathsep)
        folders = [*mirrors, *(Path(name).expanduser() for name in named if name)]
        return cls(_default_cache(), tuple(folders), root, offline, progress)

    def place(self, sha256: str) -> Path:
        """Return where the cache keeps the file of that digest."""
        return self.cache / "sha256" / sha256

    def find(self, sha256: str, where: str) -> Path | None:
        """Return a file of that digest, hashed just now: from a mirror, else from the cache, else None.

        Raises:
            SourceError: A mirror holds other bytes under that name.
        """
        for path in (folder / sha256 for folder in self.mirrors):
            if path.is_file():
                if (found := hash_file(path)) != sha256:
                    message = f"the mirror's file {path} has other bytes than its name says: sha256 {found}"
                    raise refusal("source-changed", where, message, "Delete that file, or copy it to the mirror again")
                return path
        path = self.place(sha256)
        return path if path.is_file() and hash_file(path) == sha256 else None

    def keep(self, path: Path, sha256: str) -> Path:
        """Move a checked file into the cache under its digest; it must lie on the same disk as the cache."""
        place = self.place(sha256)
        place.parent.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as stream:
            os.fsync(stream.fileno())
        path.replace(place)
        sync_folder(place.parent)
        return place

    @contextmanager
    def locked(self, key: str) -> Iterator[None]:
        """Hold the lock of one key, so that two processes never fetch the same file into each other's way."""
        from filelock import FileLock

        folder = self.cache / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{key}.lock"):
            yield

    def show(self, name: str, total: int | None) -> Callable[[int], None]:
        """Start showing a download, where anyone watches."""
        return self.progress.start(name, total) if self.progress else lambda _: None


def refusal(code: str, where: str, message: str, hint: str = "") -> SourceError:
    """Return the error of one problem."""
    return SourceError(Issue(code, where, message, hint))


def hash_file(path: Path) -> str:
    """Return the lower-case hex SHA-256 of a file, reading it in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def disk_refusals(where: str) -> Iterator[None]:
    """Turn the trouble of a disk (full, not writable) into a SourceError."""
    try:
        yield
    except OSError as error:
        message = f"{error.strerror or error}: {error.filename}" if error.filename else str(error)
        raise refusal("source-unreachable", where, message, "Is there room there, and the right to write?") from error


def _default_cache() -> Path:
    if own := os.environ.get("CXRSPEC_CACHE"):
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "cxrspec"
