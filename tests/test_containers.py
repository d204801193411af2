"""Containers are judged by their first bytes, and a thing that is no table is called by its name."""

import gzip
import io
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cxrspec.errors import SourceError
from cxrspec.tables import read_table
from cxrspec.tables.containers import open_bytes, read_file

TABLE = b"id,p\na,1\n"
OID = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"


def zipped(members: dict[str, bytes]) -> bytes:
    """Return a zip of the given members."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def tarred(members: dict[str, bytes]) -> bytes:
    """Return a tar of the given members and a folder."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in members.items():
            entry = tarfile.TarInfo(f"folder/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        gzip.compress(TABLE),
        gzip.compress(TABLE[:4]) + gzip.compress(TABLE[4:]),
        zipped({"a.csv": TABLE}),
        zipped({"__MACOSX/._a.csv": b"litter", "a.csv": TABLE}),
        tarred({"a.csv": TABLE, ".DS_Store": b"litter"}),
        gzip.compress(tarred({"a.csv": TABLE})),
        zipped({"a.csv.gz": gzip.compress(TABLE)}),
    ],
    ids=["plain", "gzip", "two gzip parts", "zip", "zip from a Mac", "tar", "tar.gz", "gzip in zip"],
)
def test_one_table_comes_out_whatever_the_suffix(data: bytes) -> None:
    """T12: The first bytes tell the container; folders and litter of operating systems do not count."""
    assert open_bytes(data, "preds.csv") == TABLE


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            zipped({"a.csv": TABLE, "b.csv": TABLE}),
            "the archive holds 2 files: a.csv, b.csv; exactly one is allowed. Pack the one table, or unpack it",
        ),
        (zipped({}), "the archive holds no file; exactly one is allowed. Pack the one table, or unpack it"),
        (
            gzip.compress(gzip.compress(gzip.compress(TABLE))),
            "an archive in an archive in an archive. Give the table in one archive",
        ),
        (
            gzip.compress(TABLE * 99)[:-20],
            "the archive is damaged or of an unknown kind (Compressed file ended before the end-of-stream marker was "
            "reached). Get it again",
        ),
    ],
    ids=["several", "none", "nested twice", "cut off"],
)
def test_other_archives_are_refused(data: bytes, message: str) -> None:
    """T12: Several members are listed, deeper nesting and damage are named."""
    with pytest.raises(SourceError) as refused:
        open_bytes(data, "preds.zip")
    assert str(refused.value) == f"preds.zip: {message}"


@pytest.mark.parametrize(
    "pack", [gzip.compress, lambda data: zipped({"a.csv": data}), lambda data: tarred({"a.csv": data})]
)
def test_unpacking_stops_at_the_limit(pack: Callable[[bytes], bytes]) -> None:
    """T12: A bomb is refused as soon as it passes the limit."""
    data = pack(b"0" * 50_000_000)
    with pytest.raises(SourceError, match=r"^a\.gz: more than 3,000,000 bytes once unpacked"):
        open_bytes(data, "a.gz", limit=3_000_000)


def test_a_file_that_is_not_packed_has_the_same_limit() -> None:
    """T12: The limit holds for what is read, packed or not."""
    with pytest.raises(SourceError, match=r"^a\.csv: more than 3 bytes once unpacked"):
        open_bytes(TABLE, "a.csv", limit=3)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"d8:announce35:udp://tracker", "a torrent file"),
        (b"\n<!DOCTYPE html><title>Sign in", "an HTML page"),
        (b"<HTML>", "an HTML page"),
        (b"<?xml version='1.0'?>", "an XML document"),
        (b'{"rows": []}', "a JSON document"),
        (b'[\n {"id": 1}]', "a JSON document"),
        (b'\xef\xbb\xbf{\n  "a": 1}', "a JSON document"),
        (b"outs:\n- md5: 0", "a DVC pointer"),
        (b"/annex/objects/SHA256E-s1--0.csv", "a git-annex pointer"),
        (b"%PDF-1.7", "a PDF document"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "an old Excel or Office file"),
        (b"\x93NUMPY\x01\x00", "a NumPy array without ids"),
        (pickle.dumps({"a": 1}), "a pickle"),
        (b"\x89HDF\r\n", "an HDF5, Arrow or SQLite file"),
        (b"\x89PNG\r\n", "an image"),
        (b"BZh91AY&SY", "a bzip2, xz, zstd, 7z or RAR archive"),
        (zipped({"[Content_Types].xml": b"", "xl/workbook.xml": b""}), "an Excel or Office file"),
        (zipped({"mimetype": b"application/vnd.oasis.opendocument.spreadsheet"}), "an OpenDocument file"),
        (zipped({"a.npy": b"", "b.npy": b""}), "a NumPy archive (.npz)"),
        (zipped({"model/data.pkl": b"", "model/data/0": b""}), "a PyTorch checkpoint"),
        (gzip.compress(b"%PDF-1.7", mtime=0), "a PDF document"),
        (b"", "empty"),
        (b" \n\n", "empty"),
    ],
)
def test_what_is_no_table_is_named(data: bytes, kind: str) -> None:
    """N14: A file called .csv that is something else is refused by what it is."""
    with pytest.raises(SourceError) as refused:
        open_bytes(data, "labels.csv")
    [issue] = refused.value.issues
    assert (issue.code, issue.message) == ("source-not-data", f"the file is {kind}, not a table")


def test_a_spreadsheet_is_told_to_export() -> None:
    """T12: xlsx is a zip, and is answered with what to do."""
    with pytest.raises(SourceError, match="Export CSV: xlsx is not read"):
        open_bytes(zipped({"[Content_Types].xml": b"", "xl/workbook.xml": b""}), "preds.xlsx")


def test_an_lfs_pointer_is_read() -> None:
    """F1: A git-lfs pointer says what the real file would be, and how to get it."""
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize 45000000\n".encode()
    with pytest.raises(SourceError) as refused:
        open_bytes(pointer, "labels.parquet")
    assert str(refused.value) == (
        f"labels.parquet: the file is a 133-byte git-lfs pointer, real size 45,000,000 bytes, sha256 {OID}, "
        "not a table. Run git lfs pull"
    )


def test_a_broken_lfs_pointer_is_still_a_pointer() -> None:
    """N14: The first line alone tells a git-lfs pointer."""
    with pytest.raises(SourceError, match="git-lfs pointer, real size unknown, sha256 unknown"):
        open_bytes(b"version https://git-lfs.github.com/spec/v1", "labels.csv")


def test_a_file_that_is_not_there_is_an_issue(tmp_path: Path) -> None:
    """A path that cannot be read is reported, not raised as an operating system's error."""
    for read in (read_file, lambda path, name: read_table(path, name=name)):
        with pytest.raises(SourceError, match=r"^labels: cannot be read: No such file or directory$"):
            read(tmp_path / "absent.csv", "labels")
