"""Shards on a hub: only the columns that are asked for travel, and every fault has its own words."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cxrspec.definition import HubSource
from cxrspec.errors import SourceError
from cxrspec.sources import Store, fill_mirror
from cxrspec.sources.shards import Shard, joined_shards, list_shards, read_shards
from server import Server

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ABOUT = {"licence": "CC0", "attribution": "nobody"}
WHERE = "sources.nih.files.shards"
COLUMNS = ("Patient ID", "image.path", "label")
A, B, C = (f"data/{name}.parquet" for name in "abc")
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 4188340\n" % (b"ab" * 32)
PAGE = b"\n<!DOCTYPE html>\n<html><body>Please log in</body></html>\n"


def shard(start: int, n: int = 3, image_bytes: int = 50) -> bytes:
    """Return a Parquet file of images as a hub keeps them, with nested paths and lists of labels."""
    image = np.random.default_rng(start).bytes
    rows = range(start, start + n)
    table = pa.table(
        {
            "image": pa.array(
                [{"bytes": image(image_bytes), "path": f"{at:08d}_000.png"} for at in rows],
                pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
            ),
            "label": pa.array([["Mass", "Edema"] if at % 2 else ["No Finding"] for at in rows], pa.list_(pa.string())),
            "Patient ID": pa.array(rows, pa.int64()),
        }
    )
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=100)
    return out.getvalue()


FILES = {A: shard(1), B: shard(11), C: shard(21)}


def source(*paths: str) -> HubSource:
    """Return a source of one table of shards."""
    files = {"shards": {"shards": list(paths)}}
    return HubSource(kind="hf_dataset", repository="some/set", revision=COMMIT, files=files, **ABOUT)


@pytest.fixture
def shards(hub: Server) -> Server:
    """The hub with a data set of three shards."""
    hub.serve_data_set("some/set", COMMIT, FILES)
    return hub


@pytest.fixture
def cold(tmp_path: Path) -> Store:
    """A store with an empty cache and no mirror."""
    return Store(tmp_path / "cache", root=tmp_path)


def read(store: Store, *paths: str, columns: Sequence[str] = COLUMNS) -> list[Shard]:
    """Read the columns of some shards."""
    return read_shards(source(*paths), paths, columns, store, WHERE)


def refusal(store: Store, *paths: str, columns: Sequence[str] = COLUMNS) -> tuple[str, str]:
    """Return code and words of the first refusal, after checking that nothing is left behind."""
    with pytest.raises(SourceError) as caught:
        read(store, *paths, columns=columns)
    assert [] == [path.name for path in store.cache.rglob("*") if path.is_file() and path.suffix != ".lock"]
    issue = caught.value.issues[0]
    return issue.code, f"{issue.message}. {issue.hint}".removesuffix(". ")


def place(path: str) -> str:
    """Return the path that the hub serves a file under."""
    return Server.resolve_path("some/set", COMMIT, path)


def test_columns_of_a_shard_are_its_rows_as_text(shards: Server, cold: Store) -> None:
    """The nested path, the list of labels and the number are read; a header of the names comes first."""
    [found] = read(cold, A)
    rows = b"1\t00000001_000.png\tMass|Edema\n2\t00000002_000.png\tNo Finding\n3\t00000003_000.png\tMass|Edema\n"
    assert b"Patient ID\timage.path\tlabel\n" + rows == found.text
    assert (len(FILES[A]), hashlib.sha256(FILES[A]).hexdigest()) == (found.size, found.etag)


def test_joined_shards_hash_as_their_texts_one_after_the_other(shards: Server, cold: Store) -> None:
    """A stranger gets the digest by `cat`; the order in which the definition names the shards means nothing."""
    texts = b"".join(one.text for one in read(cold, A, B))
    one, other = (joined_shards(read(cold, *paths), source(*paths)) for paths in ((A, B), (B, A)))
    assert (hashlib.sha256(texts).hexdigest(), "content") == (one.sha256, one.proof)
    assert one == other


def test_lock_records_what_the_hub_states_of_each_shard(shards: Server, cold: Store) -> None:
    """Commit, size and git-lfs sha256 of the whole shard stand beside the digest of what was read of it."""
    [found] = read(cold, A)
    stated = {"path": A, "size": len(FILES[A]), "lfs_sha256": hashlib.sha256(FILES[A]).hexdigest()}
    content = {"content_sha256": hashlib.sha256(found.text).hexdigest()}
    assert {"revision": COMMIT, "shards": [stated | content]} == joined_shards([found], source(A)).pin


def test_less_than_one_percent_of_a_shard_of_images_travels(hub: Server, cold: Store) -> None:
    """Of 1,000 images of 20 kB, the footer and three columns are fetched, and no image."""
    big = shard(0, n=1000, image_bytes=20_000)
    hub.serve_data_set("some/set", COMMIT, {A: big})
    hub.sent_bytes = 0
    assert 1000 == len(read(cold, A)[0].table)
    assert hub.sent_bytes < 0.01 * len(big)


def test_no_other_file_is_touched(shards: Server, cold: Store) -> None:
    """Of a data set of three shards only the two that are named are asked for."""
    read(cold, A, C)
    assert {A, C} == {path for path in FILES for asked in shards.asked if path in asked}


def test_what_was_read_once_is_read_offline_without_a_request(shards: Server, cold: Store) -> None:
    """The columns are kept under their digest, and found again by commit, path and columns."""
    first = read(cold, A, B)
    shards.asked.clear()
    assert first == read(Store(cold.cache, offline=True), A, B)
    assert [] == shards.asked


def test_further_columns_are_read_from_the_hub(shards: Server, cold: Store) -> None:
    """What is kept serves the columns that were read, and no others."""
    read(cold, A, columns=["label"])
    assert COLUMNS == read(cold, A)[0].table.header


def test_shards_that_were_never_read_are_refused_offline(shards: Server, cold: Store) -> None:
    """Offline nothing is asked of the hub."""
    assert "source-unreachable" == refusal(Store(cold.cache, offline=True), A)[0]
    assert [] == shards.asked


def test_damaged_cache_is_read_anew(shards: Server, cold: Store) -> None:
    """A kept file with other bytes than its name says is not believed."""
    [found] = read(cold, A)
    cold.place(hashlib.sha256(found.text).hexdigest()).write_bytes(b"Patient ID\timage.path\tlabel\n")
    assert [found] == read(cold, A)


def test_mirror_holds_the_columns_for_a_machine_without_network(shards: Server, cold: Store, tmp_path: Path) -> None:
    """`fetch --to` fills a folder from which another machine reads the same."""
    columns = {("nih", "shards"): list(COLUMNS)}
    kept = fill_mirror({"nih": source(A, B)}, cold, tmp_path / "mirror", columns)
    elsewhere = Store(tmp_path / "other", (tmp_path / "mirror",), offline=True)
    assert ([A, B], read(cold, A, B)) == ([one.path for one in kept], read(elsewhere, A, B))


def test_mirror_of_whole_shards_serves_too(shards: Server, cold: Store, tmp_path: Path) -> None:
    """A shard that lies whole in a mirror, with its commit in the index, is projected from there."""
    digest = hashlib.sha256(FILES[A]).hexdigest()
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / digest).write_bytes(FILES[A])
    entry = {"sha256": digest, "revision": COMMIT, "path": A, "etag": digest}
    (tmp_path / "mirror" / "index.json").write_text(json.dumps([entry]))
    assert read(cold, A) == read(Store(tmp_path / "other", (tmp_path / "mirror",), offline=True), A)


def test_pattern_lists_the_shards_that_fit(shards: Server, cold: Store) -> None:
    """`match` is a pattern of paths; one that fits nothing is refused with the number of files."""
    assert [A, B, C] == list_shards(source(A), "data/*.parquet", cold, WHERE)
    with pytest.raises(SourceError, match=r"none of the 3 files at revision 0123456789abcdef.* fits '\*\.csv'"):
        list_shards(source(A), "*.csv", cold, WHERE)


def test_missing_column_is_refused_with_those_that_there_are(shards: Server, cold: Store) -> None:
    """A column that the shards lack is named, and what they have."""
    code, text = refusal(cold, A, columns=["view"])
    assert ("column-missing", True) == (code, "no column 'view'; the file has image.bytes, image.path, label" in text)


def test_column_of_images_is_no_text(shards: Server, cold: Store) -> None:
    """Nobody reads the images by accident."""
    code, text = refusal(cold, A, columns=["image.bytes"])
    assert ("container", True) == (code, "holds binary, which is no text" in text)


def test_every_shard_that_is_refused_is_told(shards: Server, cold: Store) -> None:
    """Two shards that the data set lacks are two issues."""
    with pytest.raises(SourceError) as caught:
        read(cold, A, "data/x.parquet", "data/y.parquet")
    assert 2 == len(caught.value.issues)


def test_moved_branch_is_refused(shards: Server, cold: Store) -> None:
    """Trap F3: a hub that answers for another commit serves nothing."""
    shards.answers[place(A)].headers["X-Repo-Commit"] = "f" * 40
    words = f"the hub answers with commit {'f' * 40}; the pin is {COMMIT}. Check HF_ENDPOINT"
    assert ("source-changed", words) == refusal(cold, A)


def test_wrong_etag_is_refused(shards: Server, cold: Store) -> None:
    """An etag that is not the sha256 which the tree of the commit states is refused, with both."""
    shards.answers[place(A)].headers["ETag"] = f'"{"0" * 64}"'
    code, text = refusal(cold, A)
    stated = hashlib.sha256(FILES[A]).hexdigest()
    assert ("source-changed", True) == (code, f"two digests of '{A}': {'0' * 64} and {stated}" in text)


@pytest.fixture
def storage() -> Iterator[Server]:
    """Another host, from which a hub serves large files; its etags are its own, and it names no commit."""
    with Server() as server:
        server.serve("/a", FILES[A], headers={"ETag": f'"{"e" * 64}"'})
        yield server


def link(hub: Server, storage: Server, etag: str) -> None:
    """Let the hub answer for a shard with a redirect to the storage, and its own word on the file."""
    linked = {"X-Repo-Commit": COMMIT, "X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(len(FILES[A]))}
    hub.serve(place(A), b"", status=302, headers={**linked, "Location": f"{storage.url}/a"})


def test_storage_behind_a_redirect_has_etags_of_its_own(shards: Server, storage: Server, cold: Store) -> None:
    """A large file comes from another host, whose etag is no contradiction."""
    digest = hashlib.sha256(FILES[A]).hexdigest()
    link(shards, storage, digest)
    [found] = read(cold, A)
    assert (digest, len(FILES[A]), 3) == (found.etag, found.size, len(found.table))


def test_hub_that_links_to_another_file_is_refused(shards: Server, storage: Server, cold: Store) -> None:
    """The hub's own word beside a redirect is compared with the tree of the commit."""
    link(shards, storage, "0" * 64)
    code, text = refusal(cold, A)
    assert ("source-changed", True) == (code, "states two digests" in text)


def test_numbers_with_a_null_are_the_same_numbers(hub: Server, cold: Store) -> None:
    """A column of whole numbers that one shard stores as floats names the same patients."""
    whole, floats = io.BytesIO(), io.BytesIO()
    pq.write_table(pa.table({"id": pa.array([7, 8], pa.int64())}), whole)
    pq.write_table(pa.table({"id": pa.array([7.0, None], pa.float64())}), floats)
    hub.serve_data_set("some/set", COMMIT, {A: whole.getvalue(), B: floats.getvalue()})
    assert [["7", "8"], ["7", ""]] == [one.table.column("id") for one in read(cold, A, B, columns=["id"])]


def test_numbers_in_one_shard_and_texts_in_another_are_refused(hub: Server, cold: Store) -> None:
    """`7` and `00000007` would be two patients, and one of them in the test."""
    numbers, texts = io.BytesIO(), io.BytesIO()
    pq.write_table(pa.table({"id": pa.array([7], pa.int64())}), numbers)
    pq.write_table(pa.table({"id": ["00000007"]}), texts)
    hub.serve_data_set("some/set", COMMIT, {A: numbers.getvalue(), B: texts.getvalue()})
    with pytest.raises(SourceError, match=f"column 'id' is number in '{A}', text in '{B}'"):
        read(cold, A, B, columns=["id"])


def test_fewer_columns_are_found_among_those_that_are_kept(shards: Server, cold: Store) -> None:
    """A next version that reads less needs no network."""
    first = read(cold, A)[0].table.column("label")
    assert first == read(Store(cold.cache, offline=True), A, columns=["label"])[0].table.column("label")


@pytest.mark.parametrize("broken", [{"shard_size": "12"}, {"etag": None}, {"kinds": []}, {"columns": 7}])
def test_entry_of_a_mirror_that_says_too_little_is_passed_over(
    shards: Server, cold: Store, tmp_path: Path, broken: dict[str, Any]
) -> None:
    """A hand-made index is believed only where all of it is there."""
    fill_mirror({"nih": source(A)}, cold, tmp_path / "mirror", {("nih", "shards"): list(COLUMNS)})
    index = tmp_path / "mirror" / "index.json"
    index.write_text(json.dumps([entry | broken for entry in json.loads(index.read_text())]))
    with pytest.raises(SourceError, match="the network is switched off"):
        read(Store(tmp_path / "other", (tmp_path / "mirror",), offline=True), A)


def test_cut_transfer_is_tried_again(shards: Server, cold: Store) -> None:
    """A connection that breaks once costs nothing but a second try."""
    shards.answers[place(A)].cuts = [100]
    assert 3 == len(read(cold, A)[0].table)


def test_transfer_that_is_always_cut_is_refused(shards: Server, cold: Store) -> None:
    """A connection that always breaks is said to be out of reach, and nothing is kept."""
    shards.answers[place(A)].cuts = [100] * 50
    code, text = refusal(cold, A)
    assert ("source-unreachable", True) == (code, "the hub cannot be reached" in text)


@pytest.mark.parametrize(
    ("status", "headers", "code", "words"),
    [
        (401, {}, "source-access", "not logged in (401)"),
        (403, {"X-Error-Code": "GatedRepo"}, "source-access", "the terms of data set 'some/set' are not accepted yet"),
        (404, {"X-Error-Code": "RevisionNotFound"}, "source-file-missing", f"has no revision {COMMIT} (404)"),
        (429, {"Retry-After": "42"}, "source-access", "the hub throttles this address (429): wait 42 s"),
        (503, {}, "source-unreachable", "the hub answers with status 503"),
    ],
)
@pytest.mark.parametrize("route", ["paths-info", "resolve"])
def test_trap_f4_each_refusal_of_the_hub_has_its_words(
    shards: Server, cold: Store, route: str, status: int, headers: dict[str, str], code: str, words: str
) -> None:
    """Trap F4: at whichever route it comes, a refusal is said once, in words of its own."""
    path = place(A) if route == "resolve" else f"/api/datasets/some/set/paths-info/{COMMIT}"
    shards.serve(path, b"", status=status, headers=headers)
    found, text = refusal(cold, A)
    assert (code, True) == (found, words in text)


@pytest.mark.parametrize(
    ("body", "words"), [(POINTER, "git-lfs pointer"), (PAGE, "an HTML page"), (b"id,p\n", "is no Parquet file")]
)
def test_trap_f1_what_is_no_shard_is_said(hub: Server, cold: Store, body: bytes, words: str) -> None:
    """Trap F1: a pointer, a page or another file in the place of a shard is refused as what it is."""
    hub.serve_data_set("some/set", COMMIT, {A: body})
    code, text = refusal(cold, A)
    assert ("source-not-data", True) == (code, words in text)


def test_hub_without_ranges_is_refused_before_a_whole_shard_travels(shards: Server, cold: Store) -> None:
    """A hub that answers a range with the whole file is told from its status; the body is not read."""
    shards.answers[place(A)].ranges = False
    code, text = refusal(cold, A)
    assert ("source-changed", True) == (code, "with status 200 instead of that range" in text)


@pytest.mark.parametrize(
    "files",
    [
        {"path": "a", "shards": ["b"]},
        {"match": "*"},
        {"count": 4},
        {"shards": []},
        {"shards": ["a", "a"]},
        {"shards": ["a"], "sha256": "0" * 64},
        {},
    ],
)
def test_a_file_of_a_data_set_is_given_in_one_way(files: dict[str, Any]) -> None:
    """A path, a list of shards, or a pattern with a count: nothing half and nothing twice."""
    with pytest.raises(ValueError):
        HubSource(kind="hf_dataset", repository="a/b", revision=COMMIT, files={"labels": files}, **ABOUT)
