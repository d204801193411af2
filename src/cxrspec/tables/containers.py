"""Own what stands between the bytes of a file and its table: gzip, zip and tar, and things that are no table at all.

Everything is judged by its first bytes, never by its name. Nothing is written to disk, nothing is unpickled,
and nothing is unpacked beyond a stated size.
"""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from cxrspec.errors import Issue, SourceError, listed

MAX_BYTES = 2 << 30
"""Largest size of a file once unpacked; callers may pass another."""

_CHUNK = 1 << 20
_TAR_MAGIC_AT = 257
_LAYERS = 2
DAMAGE = (
    *(OSError, EOFError, ValueError, RuntimeError),  # RuntimeError: encrypted, or an unsupported kind of compression
    *(zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile),
)
"""What reading a damaged, encrypted or unusual archive raises."""

_EXPORT = "Export the table as CSV"
_REPACK = "Pack it with gzip or zip, or give it unpacked"
_NO_PICKLE = "Nothing is unpickled; write the table as CSV or Parquet"
_WITH_IDS = "Write a CSV or Parquet table with an id column"
_OTHER_KINDS: tuple[tuple[bytes, str, str], ...] = (
    (rb"d8:announce", "a torrent file", "Download the file that it stands for"),
    (rb"(?i)<!doctype|<html", "an HTML page", "A login or error page was saved instead of the file: download it again"),
    (rb"<\?xml", "an XML document", _EXPORT),
    (rb"\{\s*\"|\[\s*[{[]", "a JSON document", _EXPORT),
    (rb"outs:\s", "a DVC pointer", "Run dvc pull"),
    (rb"/annex/objects|(?:\.\./)*\.git/annex", "a git-annex pointer", "Run git annex get"),
    (rb"%PDF-", "a PDF document", _EXPORT),
    (rb"\xd0\xcf\x11\xe0", "an old Excel or Office file", _EXPORT),
    (rb"\x93NUMPY", "a NumPy array without ids", _WITH_IDS),
    (rb"\x80[\x02-\x05]", "a pickle", _NO_PICKLE),
    (rb"\x89HDF|ARROW1\x00|SQLite format 3\x00", "an HDF5, Arrow or SQLite file", "Write the table as CSV or Parquet"),
    (rb"\x89PNG|\xff\xd8\xff", "an image", "Name the table, not an image"),
    (rb"BZh[1-9]1AY|\xfd7zXZ|\x28\xb5\x2f\xfd|7z\xbc\xaf|Rar!\x1a", "a bzip2, xz, zstd, 7z or RAR archive", _REPACK),
)


def open_bytes(data: bytes, name: str, limit: int = MAX_BYTES) -> bytes:
    """Return the bytes of the one table in `data`: text or Parquet, out of at most two layers of gzip, zip or tar.

    Args:
        data: The whole file.
        name: How messages call the file; it decides nothing.
        limit: Largest number of bytes at any layer; unpacking stops there.

    Raises:
        SourceError: The file is something else (the message says what), damaged, holds several files, or is too large.
    """
    for layer in range(_LAYERS):
        unpack = _unpacker(data)
        if unpack is None:
            break
        if layer and is_numpy_archive(data):
            raise _refusal(
                name, "a NumPy archive (.npz) in another archive", "Give the .npz itself; it is packed already"
            )
        try:
            data = unpack(data, name, limit)
        except DAMAGE as error:
            raise _refusal(name, f"the archive is damaged or of an unknown kind ({error})", "Get it again") from error
    if _unpacker(data):
        raise _refusal(name, "an archive in an archive in an archive", "Give the table in one archive")
    if len(data) > limit:
        raise _too_large(name, limit)
    _refuse_other_kinds(data, name)
    return data


def read_file(path: Path, name: str, limit: int = MAX_BYTES) -> bytes:
    """Read a file whole; raise SourceError if it cannot be read or exceeds `limit` bytes."""
    try:
        with path.open("rb") as stream:
            return read_bounded(stream, name, limit)
    except OSError as error:
        raise SourceError(Issue("source-file-missing", name, f"cannot be read: {error.strerror}")) from error


def read_bounded(stream: IO[bytes] | gzip.GzipFile, name: str, limit: int) -> bytes:
    """Read a stream to its end; raise SourceError as soon as it exceeds `limit` bytes."""
    chunks, size = [], 0
    while chunk := stream.read(_CHUNK):
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise _too_large(name, limit)
    return b"".join(chunks)


def is_zip(data: bytes) -> bool:
    """Say whether the first bytes are those of a zip file."""
    return data.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def is_numpy_archive(data: bytes) -> bool:
    """Say whether a file is a zip of NumPy arrays and nothing else."""
    if not is_zip(data):
        return False
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
    except DAMAGE:
        return False  # whoever opens it as a table says why
    return bool(names) and all(name.endswith(".npy") for name in names)


def _unpacker(data: bytes) -> Callable[[bytes, str, int], bytes] | None:
    if data.startswith(b"\x1f\x8b"):
        return _gunzip
    if is_zip(data):
        return _unzip
    if data[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar":
        return _untar
    return None


def _gunzip(data: bytes, name: str, limit: int) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
        return read_bounded(stream, name, limit)


def _unzip(data: bytes, name: str, limit: int) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
        _refuse_zip_kinds(names, name)
        with archive.open(_only_member(names, name)) as stream:
            return read_bounded(stream, name, limit)


def _untar(data: bytes, name: str, limit: int) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        files = {member.name: member for member in archive.getmembers() if member.isfile()}
        stream = archive.extractfile(files[_only_member(list(files), name)])
        return read_bounded(stream, name, limit) if stream else b""


def _only_member(names: Sequence[str], name: str) -> str:
    members = [member for member in names if not _is_litter(member)]
    if len(members) != 1:
        found = f"{len(members):,} files: {listed(members)}" if members else "no file"
        raise _refusal(name, f"the archive holds {found}; exactly one is allowed", "Pack the one table, or unpack it")
    return members[0]


def _is_litter(member: str) -> bool:
    last = member.rpartition("/")[2]
    return member.startswith("__MACOSX/") or last.startswith("._") or last in {".DS_Store", "Thumbs.db"}


def _refuse_zip_kinds(members: Sequence[str], name: str) -> None:
    if "[Content_Types].xml" in members:
        raise _not_data(name, "an Excel or Office file", "Export CSV: xlsx is not read")
    if "mimetype" in members:
        raise _not_data(name, "an OpenDocument file", _EXPORT)
    if members and all(member.endswith(".npy") for member in members):
        raise _not_data(name, "a NumPy archive (.npz)", _WITH_IDS)
    if any(member.endswith("data.pkl") for member in members):
        raise _not_data(name, "a PyTorch checkpoint", _NO_PICKLE)


def _refuse_other_kinds(data: bytes, name: str) -> None:
    if not data or data.isspace():
        raise _not_data(name, "empty", "Was the download cut off?")
    start = data[:256].removeprefix(codecs.BOM_UTF8).lstrip()
    if start.startswith(b"version https://git-lfs"):
        raise _lfs_pointer(data, name)
    for pattern, kind, hint in _OTHER_KINDS:
        if re.match(pattern, start):
            raise _not_data(name, kind, hint)


def _lfs_pointer(data: bytes, name: str) -> SourceError:
    lines = data[:1024].decode("utf-8", "replace").splitlines()
    fields = dict(line.partition(" ")[::2] for line in lines)
    size, oid = fields.get("size", "unknown"), fields.get("oid", "unknown").removeprefix("sha256:")
    size = f"{int(size):,} bytes" if size.isdecimal() else size
    return _not_data(name, f"a {len(data):,}-byte git-lfs pointer, real size {size}, sha256 {oid}", "Run git lfs pull")


def _not_data(name: str, kind: str, hint: str) -> SourceError:
    return SourceError(Issue("source-not-data", name, f"the file is {kind}, not a table", hint))


def _too_large(name: str, limit: int) -> SourceError:
    return _refusal(name, f"more than {limit:,} bytes once unpacked", "Is it the right file? Larger ones are refused")


def _refusal(name: str, message: str, hint: str) -> SourceError:
    return SourceError(Issue("container", name, message, hint))
