"""Shards that a publisher did not name: found from what it says of its subsets, or said to be several or none."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cxrspec.cli import main
from cxrspec.combinations import matching_combinations
from cxrspec.compiler import compile_definition
from cxrspec.definition import Definition
from cxrspec.discover import MOST_COMPILED, Discovery, discover
from cxrspec.errors import CxrspecError
from cxrspec.freeze import validate_definition
from cxrspec.loader import load_definition
from cxrspec.sources import Store
from cxrspec.status import project_status
from server import Server
from tiny import Define

COMMIT = "0123456789abcdef0123456789abcdef01234567"
N_SHARDS, N_ROWS = 8, 10
FETCHED = [1, 4, 6]


def row(at: int) -> dict[str, Any]:
    """Return one image; its patient has images in two neighbouring shards."""
    names = [name for name, here in (("Edema", at * 7 % 5 < 2), ("Mass", at * at % 7 < 2)) if here]
    return {
        "path": f"{at:08d}_000.png",
        "label": names or ["No Finding"],
        "patient": at // 3,
        "view": "AP" if at % 3 else "PA",
    }


def shard(rows: list[dict[str, Any]]) -> bytes:
    """Return a Parquet file of some images."""
    columns = {
        "image": [{"bytes": b"png", "path": one["path"]} for one in rows],
        "label": [one["label"] for one in rows],
        "Patient ID": [one["patient"] for one in rows],
        "View": [one["view"] for one in rows],
    }
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


ROWS = [[row(at * N_ROWS + n) for n in range(N_ROWS)] for at in range(N_SHARDS)]
PATHS = [f"data/{at}.parquet" for at in range(N_SHARDS)]


@pytest.fixture
def mirror(hub: Server) -> Server:
    """The hub with a data set of eight shards."""
    hub.serve_data_set("some/set", COMMIT, {path: shard(rows) for path, rows in zip(PATHS, ROWS, strict=True)})
    return hub


@pytest.fixture
def online(project: Path, tmp_path: Path) -> Store:
    """A store that may ask the hub."""
    return Store(tmp_path / "online", root=project)


def claims(chosen: list[int] = FETCHED) -> dict[str, Any]:
    """Return what a publisher would say of the images of some shards."""
    rows = [one for at in chosen for one in ROWS[at]]
    return {
        "items": len(rows),
        "groups": len({one["patient"] for one in rows}),
        "positives": {name.lower(): sum(name in one["label"] for one in rows) for name in ("Edema", "Mass")},
        "covariates": {"view": {"AP": sum(one["view"] == "AP" for one in rows)}},
        "cells": {f"tiny-{rows[0]['path'][:-4]}": {"view": rows[0]["view"], "edema": int("Edema" in rows[0]["label"])}},
    }


@pytest.fixture
def unnamed(tiny_document: dict[str, Any], define: Define) -> Any:
    """Write a definition of three unnamed shards that expects what is given, and load it."""

    def write(expected: Mapping[str, Any], **files: Any) -> Definition:
        document = tiny_document | {
            "sources": {
                "hub": {
                    "kind": "hf_dataset",
                    "repository": "some/set",
                    "revision": COMMIT,
                    "files": {"shards": files or {"match": "data/*.parquet", "count": 3}},
                    "licence": "CC0",
                    "attribution": "nobody",
                }
            },
            "items": {
                "unit": "image",
                "source": "hub",
                "item_id": {"column": "image.path", "form": "file_name", "prefix": "tiny-"},
                "group_id": {"column": "Patient ID"},
                "covariates": {"view": "View"},
            },
            "findings": {"edema": "Edema", "mass": "Mass"},
            "labels": {"encoding": "separated_list", "column": "label", "separator": "|", "negative": "No Finding"},
            "splits": {},
            "subsets": {"test": {"pool": {}, "select": "all"}},
            "protocols": {"zero_shot": {}},
            "metrics": tiny_document["metrics"][:1],
            "expect": {"test": dict(expected)},
        }
        registry, reference = define(document)
        return load_definition(registry.spec_path(reference))

    return write


def found_by(definition: Definition, store: Store) -> tuple[list[list[str]], Discovery]:
    """Return the combinations that are found, and the whole discovery."""
    discovery = discover(definition, store)
    return discovery.found, discovery


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 11, 12])
def test_combinations_are_those_of_a_plain_search(size: int) -> None:
    """Met in the middle, the same combinations come out as when every one is summed."""
    counts = np.random.default_rng(size).integers(0, 4, (12, 2))
    wanted = counts[:size].sum(axis=0)
    plain = [one for one in combinations(range(12), size) if (counts[list(one)].sum(axis=0) == wanted).all()]
    assert plain == sorted(matching_combinations(counts, wanted, size, limit=10_000))


def test_search_ends_at_its_limit() -> None:
    """Where every combination fits, as many come back as are asked for."""
    assert 7 == len(matching_combinations(np.ones((20, 1), np.int64), np.array([4]), 4, limit=7))


def test_search_that_memory_cannot_hold_is_refused() -> None:
    """Twenty of a thousand shards are no search."""
    with pytest.raises(ValueError, match="20 of 1000 are too many combinations"):
        matching_combinations(np.ones((1000, 1), np.int64), np.array([20]), 20, limit=1)


def test_counts_alone_find_the_shards(mirror: Server, online: Store, unnamed: Any) -> None:
    """The one combination that meets every claim is found, the number of patients among them."""
    found, discovery = found_by(unnamed(claims()), online)
    assert ([[PATHS[at] for at in FETCHED]], True) == (found, discovery.is_unique)
    assert (8, 56, True) == (discovery.n_shards, discovery.n_combinations, all(c.holds for c in discovery.claims))


def test_shards_found_compile_to_every_claim(mirror: Server, online: Store, unnamed: Any) -> None:
    """Pinned in a definition, they give what was claimed."""
    compiled = compile_definition(unnamed(claims(), shards=[PATHS[at] for at in FETCHED]), online)
    assert all(claim.holds for claim in compiled.claims)


def test_claim_that_no_combination_meets_is_shown(mirror: Server, online: Store, unnamed: Any) -> None:
    """One patient more than there are: nothing is found, and the table says what differs."""
    found, discovery = found_by(unnamed(claims() | {"groups": 999}), online)
    assert ([], ["test.groups"]) == (found, [claim.path for claim in discovery.claims if not claim.holds])


def test_counts_that_no_combination_adds_up_to_leave_nothing(mirror: Server, online: Store, unnamed: Any) -> None:
    """Without a candidate there is nothing to compile, and no table."""
    found, discovery = found_by(unnamed(claims() | {"items": 7}), online)
    assert ([], 0, []) == (found, discovery.n_candidates, discovery.claims)


def test_too_few_claims_leave_several_combinations(mirror: Server, online: Store, unnamed: Any) -> None:
    """The number of items alone fits any three shards; that there are several is said, and none is taken."""
    found, discovery = found_by(unnamed({"items": 30}), online)
    assert (MOST_COMPILED, 56, False) == (len(found), discovery.n_candidates, discovery.is_unique)


def test_patients_are_counted_before_anything_is_compiled(mirror: Server, online: Store, unnamed: Any) -> None:
    """Of 56 combinations with 30 items, those with the claimed patients are tried, wherever they stand."""
    groups = len({one["patient"] for at in (5, 6, 7) for one in ROWS[at]})
    found, discovery = found_by(unnamed({"items": 30, "groups": groups}), online)
    assert [PATHS[at] for at in (5, 6, 7)] in found
    assert discovery.n_candidates == len(found) < 56
    assert discovery.is_complete


def test_claim_that_nothing_meets_alone_is_named(mirror: Server, online: Store, unnamed: Any) -> None:
    """Where no combination adds up, the claim that excludes all of them is said."""
    item = {"tiny-99999999_000": {"view": "AP"}}
    _, discovery = found_by(unnamed(claims() | {"cells": item}), online)
    assert ["the item tiny-99999999_000"] == discovery.unmet


def test_listing_of_a_commit_is_remembered(mirror: Server, online: Store, unnamed: Any) -> None:
    """What was discovered once is discovered again without the hub."""
    definition = unnamed(claims())
    first = discover(definition, online)
    mirror.asked.clear()
    assert (first, []) == (discover(definition, Store(online.cache, root=online.root, offline=True)), mirror.asked)


def test_items_in_several_shards_are_told(hub: Server, online: Store, unnamed: Any) -> None:
    """An item that two shards hold is counted, since counts then no longer add up."""
    shards = {path: shard(rows) for path, rows in zip(PATHS, ROWS, strict=True)}
    hub.serve_data_set("some/set", COMMIT, shards | {"data/8.parquet": shard([*ROWS[7][:2], row(99)])})
    assert 2 == discover(unnamed(claims()), online).n_shared_items


def test_faulty_row_is_told_by_its_shard(hub: Server, online: Store, unnamed: Any) -> None:
    """A cell that the definition does not know is placed in its shard and row."""
    odd = [dict(one) for one in ROWS[2]]
    odd[3]["label"] = ["Weird"]
    shards = {path: shard(rows) for path, rows in zip(PATHS, ROWS, strict=True)}
    hub.serve_data_set("some/set", COMMIT, shards | {PATHS[2]: shard(odd)})
    definition = unnamed(claims())
    vocabulary = definition.task.labels.model_copy(update={"vocabulary": ["Edema", "Mass"]})
    strict = definition.model_copy(update={"task": definition.task.model_copy(update={"labels": vocabulary})})
    with pytest.raises(CxrspecError, match=r"hub:data/2.parquet row 4 column 'label'"):
        discover(strict, online)


@pytest.mark.parametrize(
    ("expected", "words"),
    [({}, "no count that adds up over shards is expected"), ({"groups": 9}, "no count that adds up over shards")],
)
def test_definition_that_claims_nothing_is_refused(
    mirror: Server, online: Store, unnamed: Any, expected: dict[str, Any], words: str
) -> None:
    """What does not add up over shards cannot be searched for alone."""
    with pytest.raises(CxrspecError, match=words):
        discover(unnamed(expected), online)


def test_definition_that_names_its_shards_is_refused(mirror: Server, online: Store, unnamed: Any) -> None:
    """There is nothing to discover in a definition that names everything."""
    with pytest.raises(CxrspecError, match="it names all its files"):
        discover(unnamed(claims(), shards=PATHS[:3]), online)


def test_more_shards_than_there_are_is_refused(mirror: Server, online: Store, unnamed: Any) -> None:
    """A count above the number of files that fit is told with that number."""
    with pytest.raises(CxrspecError, match=r"8 files fit 'data/\*.parquet', and 9 shards are looked for"):
        discover(unnamed(claims(), match="data/*.parquet", count=9), online)


def test_unnamed_shards_are_a_note_to_validate_and_a_refusal_to_freeze(
    mirror: Server, online: Store, unnamed: Any, define: Define
) -> None:
    """An under-specified definition is one that can be written down, not one that can be frozen."""
    definition = unnamed(claims())
    spec = online.root / "specs" / "tiny" / "v1.yaml"
    from cxrspec.registry import Registry

    issues, notes, _ = validate_definition(spec, Registry(online.root))
    assert ([], True) == (issues, "the publisher does not name the 3 shards of 'data/*.parquet'" in notes[0].message)
    with pytest.raises(CxrspecError, match="Run 'cxrspec discover tiny@v1' to find them"):
        compile_definition(definition, online)
    assert [] == mirror.asked


def test_status_names_the_search(mirror: Server, online: Store, unnamed: Any) -> None:
    """The command that mends an under-specified definition is the one that finds its shards."""
    from cxrspec.registry import Registry

    unnamed(claims())
    [found] = project_status(Registry(online.root))
    assert ("authored", "cxrspec discover tiny@v1") == (found.state, found.command)


def test_command_prints_what_to_pin(
    mirror: Server, online: Store, unnamed: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The paths are printed in the form in which the next definition version pins them, and as JSON."""
    unnamed(claims())
    monkeypatch.setenv("CXRSPEC_ROOT", str(online.root))
    monkeypatch.setenv("CXRSPEC_CACHE", str(online.cache))
    for arguments in (["discover", "tiny@v1"], ["discover", "tiny@v1", "--json"]):
        monkeypatch.setattr("sys.argv", ["cxrspec", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
    text, document = capsys.readouterr().out.split("\n{", 1)
    assert "shards:\n  - data/1.parquet\n  - data/4.parquet\n  - data/6.parquet" in text
    assert [[PATHS[at] for at in FETCHED]] == json.loads("{" + document)["found"]
