"""The atlas definitions against a hub of the real shape: 93 shards of real ids and labels, its own split leaking.

Four of the shards hold what was published; nothing but the counts tells which.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from atlas_mirror import FETCHED, atlas_mirror, own_split, read_table
from places import COMMAND, Run
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.preprocessing import StandardScaler

from cxrspec.loader import load_definition
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.source_files import SourceFiles
from cxrspec.sources import Store
from server import Server

pytestmark = pytest.mark.real

LISTS = {
    "data/test_list.txt": "38ca5ef7f756092946f57c1a59faca882ed589a1ab1f72590b45dc06c6d5e1cc",
    "data/train_val_list.txt": "61fbe896321c1c1c8b75f3e4f3a08e4fef6486d95ef8a667c31d4d60dca6cb81",
}
V2, N100 = "nih-cxr14-findings@atlas-full-v2", "nih-cxr14-findings@atlas-n100-v1"
PINNED, PINNED_N100 = "nih-cxr14-findings@atlas-full-v2.1", "nih-cxr14-findings@atlas-n100-v1.1"
FINDINGS = ("atelectasis", "cardiomegaly", "consolidation", "edema", "pleural_effusion")


@pytest.fixture(scope="module")
def table(project: Path, frozen: object) -> str:
    """NIH's table of images, out of the wheel that the definition pins."""
    definition = load_definition(project / "specs/nih-cxr14-findings/atlas-full-v2.yaml")
    store = Store.from_environment(project)
    try:
        return gzip.decompress(SourceFiles(definition, store).file("nih-table").read()).decode()
    except Exception as error:
        if "cannot be reached" not in str(error) and "pip" not in str(error):
            raise
        pytest.skip(f"no package index with torchxrayvision 1.5.7 is reachable: {error}")


@pytest.fixture(scope="module")
def mirror(table: str, shared: Path) -> dict[str, bytes]:
    """The files of the mirror."""
    lists = [(shared / "mirror" / digest).read_text() for digest in LISTS.values()]
    return atlas_mirror(table, *lists, shared)


@pytest.fixture(scope="module")
def hub(mirror: dict[str, bytes], shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A hub with the two data sets that the definitions name, for this process and for the commands it runs."""
    lists = {path: (shared / "mirror" / digest).read_bytes() for path, digest in LISTS.items()}
    before = {name: os.environ.get(name) for name in ("HF_ENDPOINT", "NO_PROXY", "CXRSPEC_CACHE")}
    with Server() as server:
        server.serve_data_set("BahaaEldin0/NIH-Chest-Xray-14", "932bcdba9d7d9590704d4f20bc70fc2c3a1bbad7", mirror)
        server.serve_data_set("alkzar90/NIH-Chest-X-ray-dataset", "36778e3b0e4f4b4fad31d1728d6190f3eda5b543", lists)
        os.environ |= {"HF_ENDPOINT": server.url, "NO_PROXY": "127.0.0.1"}
        yield server
    for name, value in before.items():
        os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)


def pin(project: Path, old: str, new: str) -> None:
    """Do what an author does with the shards that were found: name them in the new version."""
    path = Registry(project).spec_path(Reference.parse(new))
    shards = ", ".join(f"data/{name}.parquet" for name in sorted(FETCHED))
    text = path.read_text().replace('{match: "data/*.parquet", count: 4}', f"{{shards: [{shards}]}}")
    path.write_text(text.replace(f"{V2}:", f"{PINNED}:"))


@pytest.fixture(scope="module")
def both(hub: Server, project: Path, run: Run) -> tuple[Registry, dict[str, Any]]:
    """Both definitions in versions that name the shards, n100 frozen first as history has it; what freezing v2 said."""
    for old, new in ((N100, PINNED_N100), (V2, PINNED)):
        run("new", old, new.partition("@")[2], "--change", "The four shards are named.")
        pin(project, old, new)
    run("freeze", PINNED_N100)
    return Registry(project), json.loads(run("freeze", PINNED, "--json").stdout)[0]


@pytest.fixture(scope="module")
def pinned(both: tuple[Registry, dict[str, Any]]) -> Registry:
    """The registry in which both are frozen."""
    return both[0]


def test_mirror_is_as_it_was_described(mirror: dict[str, bytes], table: str) -> None:
    """93 shards, all 112,120 images, a split of its own whose parts share patients."""
    parts = own_split(mirror)
    assert (93, 112120) == (len(mirror), sum(len(rows) for rows in parts.values()))
    shared = set.intersection(*map(set, parts.values()))
    assert len(read_table(table)) == 112120
    assert shared


def test_freeze_refuses_shards_that_nobody_named(hub: Server, run: Run) -> None:
    """The published definition validates, and freezing it says why not and what to do."""
    hub.asked.clear()
    refused = run("freeze", V2, check=False)
    assert (1, True) == (refused.returncode, f"Run 'cxrspec discover {V2}' to find them" in refused.stderr)
    assert [] == hub.asked


def test_discover_finds_the_four_shards_from_the_counts_alone(hub: Server, run: Run) -> None:
    """Exactly the four are found among 2,919,735 combinations, and every number holds."""
    found = json.loads(run("discover", V2, "--json").stdout)
    assert [sorted(f"data/{name}.parquet" for name in FETCHED)] == found["found"]
    assert (93, 2919735, 1) == (found["n_shards"], found["n_combinations"], found["n_candidates"])
    assert all(claim["holds"] for claim in found["claims"])


def test_only_the_named_shards_are_touched(hub: Server, pinned: Registry, run: Run, tmp_path: Path) -> None:
    """Freezing from an empty cache asks for four shards and two lists, and for no other file."""
    hub.asked.clear()
    environment = {**os.environ, "CXRSPEC_CACHE": str(tmp_path)}
    command = [str(COMMAND), "freeze", PINNED_N100, "--check"]
    subprocess.run(command, cwd=pinned.root, env=environment, check=True, capture_output=True)
    files = {
        path
        for asked in hub.asked
        if "/resolve/" in asked
        for path in [asked.split()[1].rsplit("/resolve/", 1)[1][41:]]
    }
    assert {*(f"data/{name}.parquet" for name in FETCHED), *LISTS} == files


def test_freezing_proves_every_claim_and_that_n100_lies_inside(both: tuple[Registry, dict[str, Any]]) -> None:
    """Every published number holds; the 100 are among the 1,013, and the 500 to fit on are the same."""
    frozen = both[1]
    assert all(claim["holds"] for claim in frozen["claims"])
    notes = {note["where"]: note["message"] for note in frozen["notes"]}
    assert f"all 100 items are in {PINNED}:test" == notes[f"{PINNED_N100}:test contained_in"]
    assert notes[f"{PINNED_N100}:train same_as"].startswith(f"the same as {PINNED}:train")


def test_lock_records_the_shards_as_the_hub_states_them(pinned: Registry, mirror: dict[str, bytes]) -> None:
    """Size and git-lfs sha256 of each whole shard, and the digest of what was read of it."""
    entry = pinned.read_lock(Reference.parse(PINNED)).document["sources"]["nih"]["shards"]
    sizes = {shard["path"]: shard["size"] for shard in entry["shards"]}
    assert {f"data/{name}.parquet": len(mirror[f"data/{name}.parquet"]) for name in FETCHED} == sizes
    assert ("content", 4) == (entry["proof"], len({shard["content_sha256"] for shard in entry["shards"]}))


def test_upstream_id_stands_beside_ours(pinned: Registry, run: Run) -> None:
    """`show` and `audit` print what the publisher calls the subset, never as our id."""
    ours = pinned.read_lock(Reference.parse(PINNED)).subset_ids["test"]
    for command in ("show", "audit"):
        text = " ".join(run(command, PINNED, check=False).stdout.split())
        assert "publisher calls" in text
        assert all(word in text for word in ("53236fd1abc3f902", ours))
    assert ours != "53236fd1abc3f902"


def test_shares_deviate_by_less_than_one_item(pinned: Registry) -> None:
    """Each finding keeps the pool's share among the 500 but for edema, which the minimum lifts to 8."""
    train = pinned.read_lock(Reference.parse(PINNED)).subsets["train"]
    gaps = {
        name: train["positives"][name] - 500 * train["pool"]["positives"][name] / train["pool"]["items"]
        for name in FINDINGS
    }
    assert 8 == train["positives"]["edema"]
    assert all(abs(gap) < 1 for name, gap in gaps.items() if name != "edema")


def test_probe_on_frozen_embeddings_is_scikit_learns(pinned: Registry, run: Run, tmp_path: Path) -> None:
    """A probe on 2,048 features gives the scores and coefficients of scikit-learn's own refit at the chosen C."""
    reference = Reference.parse(PINNED)
    tables = {name: pinned.read_subset(Reference.parse(f"{PINNED}:{name}")) for name in ("train", "test")}
    generator = np.random.default_rng(3)
    signal = generator.normal(size=(5, 2048))
    labels = {n: np.array([[int(c) for c in t.column(f)] for f in FINDINGS]).T for n, t in tables.items()}
    features = {n: generator.normal(size=(len(t), 2048)) + 0.05 * labels[n] @ signal for n, t in tables.items()}
    ids = [item for table in tables.values() for item in table.item_ids]
    np.savez(tmp_path / "e.npz", item_id=np.array(ids), embeddings=np.concatenate([features[n] for n in tables]))
    run("submit", PINNED, "--system", "random-2048", "--protocol", "probe", "--predictions", str(tmp_path / "e.npz"))
    run("score", f"{PINNED}/random-2048")
    report = json.loads(pinned.report_path(reference, "random-2048").read_text())
    scaler = StandardScaler().fit(features["train"])
    for score, metric in ((report["scores"][0], roc_auc_score), (report["scores"][1], average_precision_score)):
        for at, name in enumerate(FINDINGS):
            model = LogisticRegression(C=report["fitted"][name]["C"], solver="newton-cg", tol=1e-10, max_iter=1000)
            model.fit(scaler.transform(features["train"]), labels["train"][:, at])
            own = metric(labels["test"][:, at], model.decision_function(scaler.transform(features["test"])))
            assert own == pytest.approx(score["findings"][name]["value"], abs=1e-6)
            fitted = report["fitted"][name]["coefficients"]
            assert np.abs(model.coef_[0] - fitted).max() < 1e-6
