"""Sources: pinned bytes from mirrors, cache and network, and every way in which they can be the wrong ones."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from pydantic import ValidationError
from rich.console import Console

from cxrspec.definition import FileSource, HubSource, Source, UrlSource, WheelSource
from cxrspec.errors import SourceError
from cxrspec.sources import MirrorFile, NeededFile, Store, fill_mirror, open_file, source_digests
from cxrspec.sources.progress import terminal_progress
from server import Server, git_etag

DATA = b"Image Index,Finding Labels\n" + b"".join(b"%08d_000.png,Effusion\n" % n for n in range(4000))
COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER_COMMIT = "f" * 40
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 4188340\n" % (b"ab" * 32)
PAGE = b"\n<!DOCTYPE html>\n<html><body>Please log in</body></html>\n"
ABOUT = {"licence": "CC0", "attribution": "nobody"}
MEMBER = "tiny/data/labels.csv"
ELSEWHERE = "On a machine with network run 'cxrspec fetch REF --to DIR', bring DIR here and set CXRSPEC_MIRROR to it"


def sha(data: bytes) -> str:
    """Return the sha256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def flipped(data: bytes) -> bytes:
    """Return the bytes with one bit changed."""
    return data[:100] + bytes([data[100] ^ 1]) + data[101:]


def url_source(url: str, data: bytes = DATA) -> UrlSource:
    """Return a source of one URL that pins `data`."""
    return UrlSource(kind="url", files={"labels": {"url": url, "sha256": sha(data)}}, **ABOUT)


def hub_source(sha256: str | None = None, path: str = "data/labels.csv") -> HubSource:
    """Return a source of one file of a data set, pinned by commit and perhaps by sha256."""
    named = {"path": path} | ({"sha256": sha256} if sha256 else {})
    return HubSource(kind="hf_dataset", repository="some/set", revision=COMMIT, files={"labels": named}, **ABOUT)


def file_source(path: str, sha256: str | None = None) -> FileSource:
    """Return a source of one local file."""
    named = {"path": path} | ({"sha256": sha256} if sha256 else {})
    return FileSource(kind="file", files={"labels": named}, **ABOUT)


def tiny_wheel(members: dict[str, bytes] | None = None) -> bytes:
    """Return a real wheel, the same bytes every time."""
    files = {
        MEMBER: DATA,
        "tiny/__init__.py": b"raise RuntimeError('a wheel is never installed or imported')\n",
        "tiny-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        "tiny-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "tiny-1.0.dist-info/RECORD": b"",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**files, **(members or {})}.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data)
    return out.getvalue()


def wheel_source(wheel: bytes, member: str = MEMBER, version: str = "1.0", **pin: str) -> WheelSource:
    """Return a source of one member of a pinned wheel."""
    files = {"labels": {"path": member, **pin}}
    return WheelSource(kind="wheel", package="tiny", version=version, sha256=sha(wheel), files=files, **ABOUT)


def read(source: Source, store: Store) -> bytes:
    """Open the source's one file and return its bytes."""
    return open_file(source, "labels", store, source_name="nih").read()


def refused(source: Source, store: Store) -> tuple[str, str]:
    """Open the file, which must fail; return code and text of the one issue."""
    with pytest.raises(SourceError) as caught:
        open_file(source, "labels", store, source_name="nih")
    assert len(caught.value.issues) == 1
    assert caught.value.issues[0].where == "sources.nih.files.labels"
    return caught.value.issues[0].code, str(caught.value).removeprefix("sources.nih.files.labels: ")


def left_behind(store: Store) -> list[str]:
    """Return the names of all files in the cache but the locks."""
    return sorted(p.name for p in store.cache.rglob("*") if p.is_file() and p.suffix != ".lock")


def mirror_of(folder: Path, *contents: bytes) -> Path:
    """Make a mirror folder of these files."""
    folder.mkdir()
    for data in contents:
        (folder / sha(data)).write_bytes(data)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with an empty cache and no mirror."""
    return Store(tmp_path / "cache", root=tmp_path)


@pytest.fixture
def hub(hub: Server) -> Server:
    """A hub that has one data set of one file."""
    hub.serve_data_set("some/set", COMMIT, {"data/labels.csv": DATA})
    return hub


@pytest.fixture
def index(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Server:
    """The server as the only package index that pip knows."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    settings = {"CONFIG_FILE": os.devnull, "INDEX_URL": f"{server.url}/simple", "RETRIES": "0", "NO_CACHE_DIR": "1"}
    for name, value in settings.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    server.serve_wheel("tiny", "tiny-1.0-py3-none-any.whl", tiny_wheel())
    return server


HUB_FILE = Server.resolve_path("some/set", COMMIT, "data/labels.csv")


# ------------------------------------------------------------------------------------------------------ store, places


def test_environment_names_cache_and_mirrors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """CXRSPEC_CACHE names the cache; mirrors given come before those of CXRSPEC_MIRROR."""
    monkeypatch.setenv("CXRSPEC_CACHE", str(tmp_path / "c"))
    monkeypatch.setenv("CXRSPEC_MIRROR", os.pathsep.join(["/m1", "", "/m2"]))
    found = Store.from_environment(tmp_path, [Path("/m0")])
    assert Store(tmp_path / "c", (Path("/m0"), Path("/m1"), Path("/m2")), tmp_path) == found


def test_default_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without CXRSPEC_CACHE the cache lies in XDG_CACHE_HOME, else in the home folder."""
    monkeypatch.delenv("CXRSPEC_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert Path("/xdg/cxrspec") == Store.from_environment(tmp_path).cache
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert Path("/home/someone/.cache/cxrspec") == Store.from_environment(tmp_path).cache


def test_importing_sources_imports_no_network_library() -> None:
    """Commands that open no source do not pay for requests or the hub's library."""
    heavy = "{'requests', 'huggingface_hub', 'filelock', 'pydantic', 'rich'}"
    code = f"import sys, cxrspec.sources, cxrspec.sources.progress; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_mirror_is_tried_before_the_network(server: Server, store: Store, tmp_path: Path) -> None:
    """A file of a mirror is used where it lies: nothing is asked of the network, nothing copied to the cache."""
    store = Store(store.cache, (tmp_path / "absent", mirror_of(tmp_path / "mirror", DATA)))
    opened = open_file(url_source(server.url + "/x"), "labels", store, source_name="nih")
    assert (DATA, tmp_path / "mirror" / sha(DATA)) == (opened.read(), opened.path)
    assert (server.asked, left_behind(store)) == ([], [])


def test_corrupt_mirror_file_is_refused(server: Server, store: Store, tmp_path: Path) -> None:
    """A mirror's file whose bytes are not those of its name is refused, not passed over."""
    path = mirror_of(tmp_path / "mirror", DATA) / sha(DATA)
    path.write_bytes(flipped(DATA))
    code, text = refused(url_source(server.serve("/x", DATA)), Store(store.cache, (path.parent,)))
    assert code == "source-changed"
    assert (
        f"the mirror's file {path} has other bytes than its name says: sha256 {sha(flipped(DATA))}. "
        "Delete that file, or copy it to the mirror again" == text
    )


def test_second_opening_asks_nobody(server: Server, store: Store) -> None:
    """What is in the cache is opened without any request."""
    source = url_source(server.serve("/x", DATA))
    read(source, store)
    server.asked.clear()
    assert read(source, Store(store.cache, offline=True)) == DATA
    assert server.asked == []


def test_corrupt_cache_file_is_fetched_again(server: Server, store: Store) -> None:
    """A cached file is hashed before use; a damaged one is replaced from the network."""
    source = url_source(server.serve("/x", DATA))
    read(source, store)
    store.place(sha(DATA)).write_bytes(flipped(DATA))
    assert read(source, store) == DATA
    assert 2 * len(DATA) == server.sent_bytes


def test_offline_names_what_was_tried(store: Store, tmp_path: Path) -> None:
    """Offline, the refusal says where the file was looked for and how to bring it."""
    mirrors = (mirror_of(tmp_path / "mirror"), tmp_path / "absent")
    code, text = refused(url_source("http://127.0.0.1:9/x"), Store(store.cache, mirrors, offline=True))
    assert code == "source-unreachable"
    assert (
        f"neither in the mirrors {mirrors[0]}, {mirrors[1]} (no such folder) nor in the cache, "
        f"and the network is switched off (offline). {ELSEWHERE}" == text
    )


def test_change_after_opening_is_noticed(store: Store, tmp_path: Path) -> None:
    """Bytes that changed between opening and reading are not handed out."""
    (tmp_path / "labels.csv").write_bytes(DATA)
    opened = open_file(file_source("labels.csv"), "labels", store, source_name="nih")
    (tmp_path / "labels.csv").write_bytes(flipped(DATA))
    with pytest.raises(SourceError, match="the file changed after it was opened"):
        opened.read()


def test_cache_that_cannot_be_written_is_a_clear_refusal(server: Server, tmp_path: Path) -> None:
    """A cache path that is a file is named in the refusal."""
    (tmp_path / "cache").write_bytes(b"")
    code, text = refused(url_source(server.serve("/x", DATA)), Store(tmp_path / "cache"))
    assert code == "source-unreachable"
    found = f"Not a directory: {tmp_path / 'cache' / 'locks'}"
    assert text == f"{found}. Is there room there, and the right to write?"


def test_two_at_once_fetch_once(server: Server, store: Store) -> None:
    """Processes that open one file at once share one download, and all get the whole file."""
    source = url_source(server.serve("/x", DATA))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(read, [source] * 4, [store] * 4)) == [DATA] * 4
    assert len(DATA) == server.sent_bytes


# --------------------------------------------------------------------------------------------------------------- URLs


def test_url_file_is_proved_by_its_sha256(server: Server, store: Store) -> None:
    """A file behind a URL ends in the cache under its sha256, which is all that the lock records."""
    opened = open_file(url_source(server.serve("/a/x.csv?token=1", DATA)), "labels", store, source_name="nih")
    assert ("sha256", {"sha256": sha(DATA)}, sha(DATA)) == (opened.proof, opened.pin, opened.sha256)
    assert (len(DATA), DATA, store.place(sha(DATA))) == (opened.size, opened.read(), opened.path)
    assert [sha(DATA)] == left_behind(store)


def test_trap_f1_pointer_instead_of_data(server: Server, store: Store) -> None:
    """Trap F1: a git-lfs pointer is named as such, with the real size and digest, and how to get the file."""
    code, text = refused(url_source(server.serve("/x", POINTER)), store)
    assert code == "source-not-data"
    assert (
        f"the file is a {len(POINTER)}-byte git-lfs pointer, real size 4,188,340 bytes, sha256 {'ab' * 32}, "
        "not a table. Run git lfs pull" == text
    )
    assert left_behind(store) == []


def test_trap_f1_pointer_among_local_files(store: Store, tmp_path: Path) -> None:
    """Trap F1: a local file that git-lfs has not filled is refused, pinned or not."""
    (tmp_path / "labels.csv").write_bytes(POINTER)
    for source in (file_source("labels.csv"), file_source("labels.csv", sha(DATA))):
        assert "Run git lfs pull" in refused(source, store)[1]
    assert (tmp_path / "labels.csv").read_bytes() == POINTER


def test_page_instead_of_data(server: Server, store: Store) -> None:
    """A login page served with status 200 is named as an HTML page."""
    code, text = refused(url_source(server.serve("/x", PAGE)), store)
    assert code == "source-not-data"
    assert "the file is an HTML page, not a table. A login or error page was saved instead" in text
    assert left_behind(store) == []


def test_trap_f2_right_size_wrong_bytes(server: Server, store: Store) -> None:
    """Trap F2: one flipped bit is noticed, the fetched bytes are deleted, and both digests are named."""
    code, text = refused(url_source(server.serve("/x", flipped(DATA))), store)
    assert code == "source-changed"
    assert (
        f"{len(DATA):,} bytes with sha256 {sha(flipped(DATA))}; the pin is {sha(DATA)}. What was fetched is deleted. "
        "Run again; if the publisher replaced the file, pin it in the next definition version" == text
    )
    assert left_behind(store) == []


def test_trap_f2_glued_parts(server: Server, store: Store) -> None:
    """Trap F2: a beginning from another file, resumed into this one, is refused and deleted; the next run is whole."""
    source = url_source(server.serve("/x", DATA))
    partial = store.place(sha(DATA)).with_suffix(".part")
    partial.parent.mkdir(parents=True)
    partial.write_bytes(flipped(DATA)[:1000])
    assert refused(source, store)[0] == "source-changed"
    assert left_behind(store) == []
    assert read(source, store) == DATA


def test_cut_transfer_goes_on_at_once(server: Server, store: Store) -> None:
    """A transfer that breaks off is resumed with a range; no byte is sent twice."""
    source = url_source(server.serve("/x", DATA, cuts=[1000, 500]))
    assert read(source, store) == DATA
    assert server.asked == ["GET /x", "GET /x bytes=1000-", "GET /x bytes=1500-"]
    assert len(DATA) == server.sent_bytes


def test_cut_transfer_goes_on_next_time(server: Server, store: Store) -> None:
    """A host that stops sending is refused with the bytes kept, and the next run goes on from there."""
    source = url_source(server.serve("/x", DATA, cuts=[1000, 0]))
    code, text = refused(source, store)
    assert code == "source-unreachable"
    assert "; 1,000 bytes arrived and are kept for the next try" in text
    assert [f"{sha(DATA)}.part"] == left_behind(store)
    assert read(source, store) == DATA
    assert (len(DATA), [sha(DATA)]) == (server.sent_bytes, left_behind(store))


@pytest.mark.parametrize("kept", [DATA[:1000], DATA + b"more"])
def test_server_without_ranges_sends_it_all_again(server: Server, store: Store, kept: bytes) -> None:
    """Where a host ignores ranges, or the part is longer than the file, the file is fetched from its beginning."""
    source = url_source(server.serve("/x", DATA, ranges=len(kept) > len(DATA)))
    partial = store.place(sha(DATA)).with_suffix(".part")
    partial.parent.mkdir(parents=True)
    partial.write_bytes(kept)
    assert read(source, store) == DATA


def test_compressed_file_arrives_as_published(server: Server, store: Store) -> None:
    """A .gz file that its host labels as transfer-encoded is kept packed: those are the bytes that are pinned."""
    packed = gzip.compress(DATA, mtime=0)
    source = url_source(server.serve("/x.gz", packed, headers={"Content-Encoding": "gzip"}), packed)
    assert read(source, store) == packed


@pytest.mark.parametrize("length_known", [True, False])
def test_download_is_bounded(server: Server, store: Store, length_known: bool) -> None:
    """A file beyond the size limit is refused, whether the host says so or just keeps sending."""
    source = url_source(server.serve("/x", DATA, length=length_known))
    code, text = refused(source, Store(store.cache, max_bytes=1000))
    assert (code, "downloads end at 1,000" in text) == ("source-not-data", True)
    assert left_behind(store) == []


@pytest.mark.parametrize(
    ("status", "headers", "code", "found"),
    [
        (401, {}, "source-access", "/x asks for a login (401). Put it into ~/.netrc"),
        (403, {}, "source-access", "/x refuses access (403). Are the terms of the data accepted there?"),
        (404, {}, "source-file-missing", "/x is gone (404). Mend the url, or use a mirror"),
        (429, {"Retry-After": "17"}, "source-access", "127.0.0.1 throttles this address (429): wait 17 s"),
        (429, {}, "source-access", "127.0.0.1 throttles this address (429): wait some minutes"),
        (503, {}, "source-unreachable", "/x answers with status 503. On a machine with network"),
    ],
)
def test_refusals_of_a_host(
    server: Server, store: Store, status: int, headers: dict[str, str], code: str, found: str
) -> None:
    """Every status has its own message, nothing of the error page is kept."""
    source = url_source(server.serve("/x?secret=1", PAGE, status=status, headers=headers))
    found_code, text = refused(source, store)
    assert (found_code, found in text, "secret" in text) == (code, True, False)
    assert left_behind(store) == []


def test_date_of_retry_after_becomes_seconds(server: Server, store: Store) -> None:
    """A Retry-After date in the past means no wait."""
    source = url_source(server.serve("/x", b"", status=429, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}))
    assert "wait 0 s" in refused(source, store)[1]


def test_host_that_is_not_there(store: Store) -> None:
    """A host that cannot be reached is named without login and query."""
    code, text = refused(url_source("http://user:secret@127.0.0.1:9/x?token=secret"), store)
    assert code == "source-unreachable"
    assert f"neither in a mirror nor in the cache, and http://127.0.0.1:9/x cannot be reached. {ELSEWHERE}" == text
    assert left_behind(store) == []


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/x", "labels.csv"])
def test_only_http_is_fetched(store: Store, url: str) -> None:
    """A URL of another scheme is refused with the kind of source that fits."""
    code, text = refused(url_source(url), store)
    assert ("field-value", f"'{url}' is no http or https address") == (code, text.partition(". ")[0])


# ---------------------------------------------------------------------------------------------------------------- hub


def test_hub_file_with_a_digest_is_proved_by_it(hub: Server, store: Store) -> None:
    """With a sha256 the bytes are the proof; the pin is commit and path."""
    opened = open_file(hub_source(sha(DATA)), "labels", store, source_name="nih")
    assert (opened.proof, opened.pin) == ("sha256", {"revision": COMMIT, "path": "data/labels.csv"})
    assert (DATA, [sha(DATA)]) == (opened.read(), left_behind(store))


def test_hub_file_without_a_digest_is_proved_by_commit_and_etag(hub: Server, store: Store) -> None:
    """Without a sha256 the hub's commit and etag are the proof, and the digest found is reported."""
    opened = open_file(hub_source(), "labels", store, source_name="nih")
    assert ("commit", sha(DATA), len(DATA), DATA) == (opened.proof, opened.sha256, opened.size, opened.read())
    assert {"revision": COMMIT, "path": "data/labels.csv", "etag": git_etag(DATA)} == opened.pin


@pytest.mark.parametrize("pinned", [True, False])
def test_trap_f4_cache_works_offline_without_a_head_request(hub: Server, store: Store, pinned: bool) -> None:
    """Trap F4: what was fetched once is opened offline, equal in every field, without any request."""
    source = hub_source(sha(DATA) if pinned else None)
    first = open_file(source, "labels", store, source_name="nih")
    hub.asked.clear()
    assert first == open_file(source, "labels", Store(store.cache, offline=True), source_name="nih")
    assert hub.asked == []


@pytest.mark.parametrize("pinned", [True, False])
def test_hub_is_not_asked_offline(hub: Server, store: Store, pinned: bool) -> None:
    """Offline, a file that was never fetched is refused without a request."""
    code, _ = refused(hub_source(sha(DATA) if pinned else None), Store(store.cache, offline=True))
    assert (code, hub.asked) == ("source-unreachable", [])


def test_large_file_is_checked_against_its_sha256_etag(hub: Server, store: Store) -> None:
    """The etag of a large file is its sha256; other bytes behind it are refused."""
    hub.answers[HUB_FILE].headers |= {"X-Linked-Etag": f'"{sha(DATA)}"', "X-Linked-Size": str(len(DATA))}
    assert sha(DATA) == open_file(hub_source(), "labels", store, source_name="nih").pin["etag"]
    hub.answers[HUB_FILE].body = flipped(DATA)
    assert refused(hub_source(), Store(store.cache / "new"))[0] == "source-changed"


@pytest.mark.parametrize("pinned", [True, False])
def test_trap_f2_hub_serves_other_bytes(hub: Server, store: Store, pinned: bool) -> None:
    """Trap F2: a blob that differs from its sha256, or from its etag, is refused and not kept."""
    hub.answers[HUB_FILE].body = flipped(DATA)
    code, text = refused(hub_source(sha(DATA) if pinned else None), store)
    named = sha(DATA) if pinned else git_etag(DATA)
    assert (code, named in text, left_behind(store)) == ("source-changed", True, [])


def test_etag_of_another_make_is_no_digest(hub: Server, store: Store) -> None:
    """An etag that is no digest is recorded and not judged."""
    hub.answers[HUB_FILE].headers["ETag"] = '"5f-1"'
    assert open_file(hub_source(), "labels", store, source_name="nih").pin["etag"] == "5f-1"


@pytest.mark.parametrize("body", [POINTER, PAGE])
def test_trap_f1_hub_serves_no_data(hub: Server, store: Store, body: bytes) -> None:
    """Trap F1: a pointer or a page from a hub is refused also where no sha256 is given."""
    hub.serve_data_set("some/set", COMMIT, {"data/labels.csv": body})
    assert (refused(hub_source(), store)[0], left_behind(store)) == ("source-not-data", [])


def test_trap_f3_hub_answers_with_another_commit(hub: Server, store: Store) -> None:
    """Trap F3: a hub that answers for another commit than the pinned one is refused before anything is fetched."""
    hub.answers[HUB_FILE].headers["X-Repo-Commit"] = OTHER_COMMIT
    code, text = refused(hub_source(sha(DATA)), store)
    assert code == "source-changed"
    assert f"the hub answers with commit {OTHER_COMMIT}; the pin is {COMMIT}. Check HF_ENDPOINT" == text
    assert (hub.sent_bytes, left_behind(store)) == (0, [])


@pytest.mark.parametrize("revision", ["main", "v1.0", COMMIT[:12], COMMIT.upper()])
def test_trap_f3_branch_is_no_pin(revision: str) -> None:
    """Trap F3: a branch, a tag or a shortened commit id can move, so no source accepts one."""
    files = {"labels": "data/labels.csv"}
    with pytest.raises(ValidationError):
        HubSource(kind="hf_dataset", repository="some/set", revision=revision, files=files, **ABOUT)


def test_server_that_is_no_hub(hub: Server, store: Store) -> None:
    """A server that names no commit is refused as no hub."""
    hub.serve(HUB_FILE, PAGE)
    assert "the hub names no commit, so it is no Hugging Face hub" in refused(hub_source(sha(DATA)), store)[1]


@pytest.mark.parametrize(
    ("status", "headers", "code", "expected"),
    [
        (
            401,
            {"X-Error-Code": "RepoNotFound"},
            "source-access",
            "not logged in (401): data set 'some/set' is gated or private, or does not exist. "
            "Run hf auth login, or set HF_TOKEN",
        ),
        (
            403,
            {"X-Error-Code": "GatedRepo"},
            "source-access",
            "the terms of data set 'some/set' are not accepted yet (403). "
            "Accept them on its page with the account of HF_TOKEN",
        ),
        (
            403,
            {},
            "source-access",
            "this account may not read data set 'some/set' (403). Use a token with the right to read it",
        ),
        (
            404,
            {"X-Error-Code": "RepoNotFound"},
            "source-file-missing",
            "the hub has no data set 'some/set' (404). Check the definition",
        ),
        (
            404,
            {"X-Error-Code": "RevisionNotFound"},
            "source-file-missing",
            f"data set 'some/set' has no revision {COMMIT} (404). Check the definition",
        ),
        (
            404,
            {"X-Error-Code": "EntryNotFound"},
            "source-file-missing",
            f"data set 'some/set' has no file 'data/labels.csv' at revision {COMMIT} (404). Check the definition",
        ),
        (
            404,
            {},
            "source-file-missing",
            f"the hub has no 'data/labels.csv' of data set 'some/set' at revision {COMMIT} (404). Check the definition",
        ),
        (
            429,
            {"Retry-After": "42"},
            "source-access",
            "the hub throttles this address (429): wait 42 s. Then run again",
        ),
        (
            503,
            {},
            "source-unreachable",
            f"neither in a mirror nor in the cache, and the hub answers with status 503. {ELSEWHERE}",
        ),
    ],
)
def test_trap_f4_refusals_of_the_hub(
    hub: Server, store: Store, status: int, headers: dict[str, str], code: str, expected: str
) -> None:
    """Trap F4: not logged in, terms not accepted, gone and throttled each have their own words, said at once."""
    hub.serve(HUB_FILE, b"", status=status, headers=headers)
    assert (code, expected) == refused(hub_source(), store)
    assert ([f"HEAD {HUB_FILE}"], []) == (hub.asked, left_behind(store))


def test_hub_that_is_not_there(hub: Server, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub that cannot be reached is said to be so, with the way round it."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    code, text = refused(hub_source(), store)
    assert code == "source-unreachable"
    assert "neither in a mirror nor in the cache, and the hub cannot be reached (ConnectError: " in text
    assert ELSEWHERE in text


def test_impossible_name_of_a_data_set(hub: Server, store: Store) -> None:
    """A name that no data set can have is refused as a wrong field."""
    source = hub_source().model_copy(update={"repository": "a b/c/d"})
    assert refused(source, store) == ("field-value", "'a b/c/d' is no name of a data set")


def test_token_reaches_the_hub(hub: Server, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """HF_TOKEN is sent to the hub, by its own library."""
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    read(hub_source(), store)
    assert {"Bearer hf_secret"} == set(hub.logins)


def test_size_limit_holds_on_the_hub(hub: Server, store: Store) -> None:
    """A file of a data set beyond the limit is refused before it is fetched."""
    _, text = refused(hub_source(), Store(store.cache, max_bytes=1000))
    assert (f"{len(DATA):,} bytes; downloads end at 1,000" in text, hub.sent_bytes) == (True, 0)


# ------------------------------------------------------------------------------------------------------------- wheels


def test_wheel_is_fetched_by_pip_and_read_as_a_zip(index: Server, store: Store) -> None:
    """A member comes out of a wheel that pip downloads by its own configuration; the wheel is what the lock pins."""
    opened = open_file(wheel_source(tiny_wheel()), "labels", store, source_name="nih")
    assert (DATA, sha(DATA), len(DATA), None) == (opened.read(), opened.sha256, opened.size, opened.path)
    assert ("sha256", {"wheel_sha256": sha(tiny_wheel()), "path": MEMBER}) == (opened.proof, opened.pin)
    assert [sha(tiny_wheel())] == left_behind(store)


def test_other_wheel_on_the_index_is_refused(index: Server, store: Store) -> None:
    """A wheel of the right name and version with other bytes is refused before it is opened."""
    source = wheel_source(tiny_wheel({"tiny/more.py": b""}))
    code, text = refused(source, store)
    assert code == "source-changed"
    assert (
        f"the wheel tiny==1.0 on the package index has sha256 {sha(tiny_wheel())}; the pin is {source.sha256}" in text
    )
    assert left_behind(store) == []


def test_version_that_no_index_has(index: Server, store: Store) -> None:
    """Pip's last error line is repeated, with the versions that there are."""
    code, text = refused(wheel_source(b"unknown", version="9.9"), store)
    assert code == "source-unreachable"
    found = "pip cannot download tiny==9.9: No matching distribution found for tiny==9.9; the index has 1.0"
    assert text == f"neither in a mirror nor in the cache, and {found}. {ELSEWHERE}"
    assert left_behind(store) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": "1.0\n--index-url http://127.0.0.1:9"},
        {"version": "1.0 --global-option=x"},
        {"package": "-e ."},
        {"package": "git+http://127.0.0.1:9/x"},
    ],
)
def test_nothing_but_name_and_version_reaches_pip(index: Server, store: Store, wrong: dict[str, str]) -> None:
    """A definition cannot smuggle options or addresses to pip, which would run code."""
    code, text = refused(wheel_source(b"unknown").model_copy(update=wrong), store)
    assert (code, repr(next(iter(wrong.values()))) in text, index.asked) == ("field-value", True, [])


def test_member_that_the_wheel_lacks(store: Store, tmp_path: Path) -> None:
    """A missing member is refused with the names near it."""
    store = Store(store.cache, (mirror_of(tmp_path / "mirror", tiny_wheel()),))
    code, text = refused(wheel_source(tiny_wheel(), "data/labels.csv"), store)
    assert code == "source-file-missing"
    assert f"the wheel has no file 'data/labels.csv'. Near it: {MEMBER}" == text
    assert "Near it: tiny/data/labels.csv" in refused(wheel_source(tiny_wheel(), "tiny/data/label.csv"), store)[1]


def test_member_with_a_wrong_pin_of_its_own(store: Store, tmp_path: Path) -> None:
    """A member's own sha256 is checked where the definition gives one."""
    store = Store(store.cache, (mirror_of(tmp_path / "mirror", tiny_wheel()),))
    assert read(wheel_source(tiny_wheel(), sha256=sha(DATA)), store) == DATA
    code, text = refused(wheel_source(tiny_wheel(), sha256=sha(b"")), store)
    assert (code, f"'{MEMBER}' has sha256 {sha(DATA)}; the pin is {sha(b'')}" in text) == ("source-changed", True)


def test_bomb_in_a_wheel_is_refused(store: Store, tmp_path: Path) -> None:
    """A member that says it unpacks to more than allowed is not unpacked."""
    wheel = bytearray(tiny_wheel())
    at = wheel.index(b"PK\x01\x02")  # the first entry of the directory is the member; its size stands at 24
    wheel[at + 24 : at + 28] = struct.pack("<L", 0xFFFFFFF0)
    store = Store(store.cache, (mirror_of(tmp_path / "mirror", bytes(wheel)),))
    code, text = refused(wheel_source(bytes(wheel)), store)
    assert code == "container"
    assert f"'{MEMBER}' unpacks to 4,294,967,280 bytes; 2,147,483,648 are allowed" in text


def test_wheel_that_is_no_zip(store: Store, tmp_path: Path) -> None:
    """A pinned wheel that is no zip, or a damaged one, is refused without a traceback."""
    damaged = tiny_wheel()[:60] + b"\xff" * 20 + tiny_wheel()[80:]
    store = Store(store.cache, (mirror_of(tmp_path / "mirror", DATA, damaged),))
    for wheel in (DATA, damaged):
        assert refused(wheel_source(wheel), store)[0] == "container"


def test_wheel_cannot_write_outside(store: Store, tmp_path: Path) -> None:
    """A member whose name climbs out of its folder is read into memory like any other; nothing is written."""
    wheel = tiny_wheel({"../../evil.csv": DATA})
    store = Store(store.cache, (mirror_of(tmp_path / "mirror", wheel),))
    assert read(wheel_source(wheel, "../../evil.csv"), store) == DATA
    assert (sorted(p.name for p in tmp_path.iterdir()), list(tmp_path.parent.glob("evil.csv"))) == (["mirror"], [])


# -------------------------------------------------------------------------------------------------------- local files


def test_local_file_reports_the_digest_found(store: Store, tmp_path: Path) -> None:
    """A local file without a pin is proved by the digest found; relative and absolute paths are the same file."""
    (tmp_path / "labels.csv").write_bytes(DATA)
    for path in ("labels.csv", str(tmp_path / "labels.csv")):
        opened = open_file(file_source(path), "labels", store, source_name="nih")
        assert ("sha256", {"sha256": sha(DATA)}, DATA) == (opened.proof, opened.pin, opened.read())


def test_local_file_with_other_bytes(store: Store, tmp_path: Path) -> None:
    """A local file that differs from its pin is refused and left alone."""
    (tmp_path / "labels.csv").write_bytes(flipped(DATA))
    code, text = refused(file_source("labels.csv", sha(DATA)), store)
    assert (code, f"sha256 {sha(flipped(DATA))}; the pin is {sha(DATA)}" in text) == ("source-changed", True)
    assert flipped(DATA) == (tmp_path / "labels.csv").read_bytes()


def test_local_file_that_is_not_there(store: Store, tmp_path: Path) -> None:
    """A missing local file is named as the definition names it, with the nearest one; a folder is no file."""
    (tmp_path / "labels.csv").write_bytes(DATA)
    expected = "there is no file 'label.csv'. Did you mean 'labels.csv'?"
    assert ("source-file-missing", expected) == refused(file_source("label.csv"), store)
    assert refused(file_source("."), store)[1] == "'.' is a folder. Name a file in it"


def test_local_file_that_a_mirror_has(store: Store, tmp_path: Path) -> None:
    """A pinned local file that is missing here is taken from a mirror."""
    store = Store(store.cache, (mirror_of(tmp_path / "mirror", DATA),), tmp_path)
    assert read(file_source("elsewhere.csv", sha(DATA)), store) == DATA


# ------------------------------------------------------------------------------------------------------------ mirrors


def all_kinds(server: Server) -> dict[str, Source]:
    """Return one source of every kind that the server offers."""
    texts = {name: name.encode() * 50 for name in ("list", "pinned", "unpinned", "own")}
    server.serve_data_set("some/set", COMMIT, {"pinned.txt": texts["pinned"], "data/unpinned.txt": texts["unpinned"]})
    return {
        "wheel": wheel_source(tiny_wheel()),
        "lists": url_source(server.serve("/files/test_list.txt", texts["list"]), texts["list"]),
        "hub": hub_source(sha(texts["pinned"]), "pinned.txt"),
        "loose": hub_source(path="data/unpinned.txt"),
        "own": file_source("own.txt", sha(texts["own"])),
    }


def test_filled_mirror_serves_a_machine_without_network(
    index: Server, hub: Server, store: Store, tmp_path: Path
) -> None:
    """A mirror filled from sources of every kind is enough to open them all, to equal results, with an empty cache."""
    (tmp_path / "own.txt").write_bytes(b"own" * 50)
    sources, folder = all_kinds(index), tmp_path / "usb" / "mirror"
    filled = fill_mirror(sources, store, folder)
    here = [open_file(source, "labels", store, source_name=name) for name, source in sources.items()]
    index.asked.clear()
    there = Store(tmp_path / "empty", (folder,), tmp_path / "nowhere", offline=True)
    away = [open_file(source, "labels", there, source_name=name) for name, source in sources.items()]
    assert [(o.sha256, o.pin, o.proof, o.read()) for o in here] == [(o.sha256, o.pin, o.proof, o.read()) for o in away]
    assert index.asked == []
    assert sorted([*(file.sha256 for file in filled), "index.json"]) == sorted(path.name for path in folder.iterdir())
    assert MirrorFile(sha(tiny_wheel()), len(tiny_wheel()), "tiny==1.0", "CC0") == filled[0]
    assert MirrorFile(sha(b"list" * 50), 200, "test_list.txt", "CC0") == filled[1]


def test_index_of_a_mirror_is_merged(server: Server, store: Store, tmp_path: Path) -> None:
    """Filling keeps what others wrote into the index, also fields of their own; filling again changes no byte."""
    source, folder = url_source(server.serve("/labels.csv", DATA)), mirror_of(tmp_path / "mirror", b"other")
    theirs = {"sha256": sha(b"other"), "size": 5, "name": "other", "licence": "MIT", "note": "keep me"}
    mine = {"sha256": sha(DATA), "size": len(DATA), "name": "labels.csv", "licence": "CC0"}
    (folder / "index.json").write_text(json.dumps([theirs, {**mine, "name": "old name", "origin": "keep"}]))
    fill_mirror({"nih": source}, store, folder)
    text = (folder / "index.json").read_bytes()
    assert sorted([theirs, {**mine, "origin": "keep"}], key=lambda e: e["sha256"]) == json.loads(text)
    server.asked.clear()
    fill_mirror({"nih": source}, Store(tmp_path / "empty"), folder)
    assert (text, []) == ((folder / "index.json").read_bytes(), server.asked)


def test_filling_names_every_file_that_is_missing(server: Server, store: Store, tmp_path: Path) -> None:
    """What can be had is in the mirror and its index; all that cannot is named in one pass."""
    sources = {
        "gone": url_source(server.url + "/gone", b"1"),
        "good": url_source(server.serve("/x", DATA)),
        "own": file_source("none.csv"),
    }
    with pytest.raises(SourceError) as caught:
        fill_mirror(sources, store, tmp_path / "mirror")
    assert [i.where for i in caught.value.issues] == ["sources.gone.files.labels", "sources.own.files.labels"]
    assert [sha(DATA)] == [entry["sha256"] for entry in json.loads((tmp_path / "mirror" / "index.json").read_bytes())]


def test_filling_mends_a_damaged_mirror(server: Server, store: Store, tmp_path: Path) -> None:
    """A damaged file of the mirror being filled is replaced."""
    folder = mirror_of(tmp_path / "mirror", DATA)
    (folder / sha(DATA)).write_bytes(flipped(DATA))
    fill_mirror({"nih": url_source(server.serve("/x", DATA))}, store, folder)
    assert (folder / sha(DATA)).read_bytes() == DATA


@pytest.mark.parametrize("text", ["{}", "[1]", "not json", '[{"sha256": "../../etc/passwd"}]'])
def test_unreadable_index_is_refused(server: Server, store: Store, tmp_path: Path, text: str) -> None:
    """An index that is none is refused before anything is fetched, and left as it is."""
    folder = mirror_of(tmp_path / "mirror")
    (folder / "index.json").write_text(text)
    with pytest.raises(SourceError, match="is not a list of objects with a sha256"):
        fill_mirror({"nih": url_source(server.serve("/x", DATA))}, store, folder)
    assert ([], text) == (server.asked, (folder / "index.json").read_text())


def test_what_a_mirror_must_hold() -> None:
    """A wheel is needed whole; a file without a pin is needed by name."""
    assert [NeededFile("", sha(tiny_wheel()))] == source_digests(wheel_source(tiny_wheel()))
    assert [NeededFile("labels", sha(DATA))] == source_digests(url_source("http://127.0.0.1:9/x"))
    assert [NeededFile("labels", None)] == source_digests(hub_source())


# ----------------------------------------------------------------------------------------------------------- progress


class Recorder:
    """A progress that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int | None, list[int]]] = []

    def start(self, name: str, total: int | None) -> Callable[[int], None]:
        """Remember one download."""
        self.told.append((name, total, []))
        return self.told[-1][2].append


def test_progress_counts_every_byte(hub: Server, index: Server, store: Store) -> None:
    """URLs, hub files and wheels all report a name and the bytes that arrived."""
    recorder = Recorder()
    store = Store(store.cache, progress=recorder)
    for source in (
        url_source(hub.serve("/a/x.csv", DATA + b"1"), DATA + b"1"),
        hub_source(),
        wheel_source(tiny_wheel()),
    ):
        read(source, store)
    told = [(name, total, sum(steps)) for name, total, steps in recorder.told]
    sizes = (len(DATA) + 1, len(DATA), len(tiny_wheel()))
    assert ("x.csv", sizes[0], sizes[0]) == told[0]
    assert ("labels.csv", sizes[1], sizes[1]) == told[1]
    assert ("tiny==1.0", None, sizes[2]) == told[2]


def test_nothing_is_printed(hub: Server, store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    """Without a progress the library and what it calls stay silent."""
    read(hub_source(), store)
    assert capfd.readouterr() == ("", "")


def test_terminal_shows_bars_and_others_do_not() -> None:
    """Bars with sizes appear on a terminal only."""
    screen = io.StringIO()
    with terminal_progress(Console(file=screen, force_terminal=True, width=100)) as progress:
        assert progress is not None
        progress.start("x[1].csv", 2000)(2000)
    assert "x[1].csv" in screen.getvalue()
    assert "2.0/2.0 kB" in screen.getvalue()
    with terminal_progress(Console(file=io.StringIO())) as progress:
        assert progress is None
