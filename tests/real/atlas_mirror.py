"""A mirror of the real shape: 93 Parquet shards of real NIH ids and labels, four of which hold what was published.

Which images those four hold is not published either: here they are any that give every published count, found by
integer programming.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

SHARED_EXPECTED: Final = "expected/atlas.json"
LABELS: Final = ("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Effusion")
FETCHED: Final = ("train-00011-of-00075", "train-00040-of-00075", "test-00003-of-00009", "valid-00007-of-00009")
# a real PNG of one grey pixel
PIXEL: Final = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a49444154789c63680000008200811e5d4e4e"
    "0000000049454e44ae426082"
)
TRAIN_POSITIVES: Final = (333, 69, 104, 50, 354)
"""Of the train pool: shares that give the published positives of its 500 (48, 10, 15, 8 by the minimum, 51)."""

Row = dict[str, str]


def read_table(text: str) -> list[Row]:
    """Return the rows of NIH's table of images."""
    return list(csv.DictReader(io.StringIO(text)))


def counts_of(row: Row) -> list[int]:
    """Return what one image adds to the published counts: itself, AP, the five findings, none of the five."""
    names = row["Finding Labels"].split("|")
    labels = [int(label in names) for label in LABELS]
    return [1, int(row["View Position"] == "AP"), *labels, int(not any(labels))]


def chosen_test(rows: Sequence[Row], claimed: Mapping[str, Any], examples: Iterable[str]) -> list[Row]:
    """Choose images of official-test patients that give every published count, the published items among them."""
    first = {f"{name}.png" for name in examples}
    patients: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["Image Index"] not in first, row["Image Index"])):
        patients[row["Patient ID"]].append(row)
    options = [(p, n) for p, own in patients.items() for n in range(1, min(4, len(own)) + 1)]
    gains = np.array([np.sum([counts_of(row) for row in patients[p][:n]], axis=0) for p, n in options])
    wanted = [claimed["images"], claimed["views"]["AP"], *claimed["positives"], claimed["none_of_the_five"]]
    names = list(patients)
    one_each = csr_array((np.ones(len(options)), ([names.index(p) for p, _ in options], range(len(options)))))
    forced = [names.index(row["Patient ID"]) for row in rows if row["Image Index"] in first]
    least = np.zeros(len(names))
    least[forced] = 1
    taken = _solve(
        len(options),
        LinearConstraint(gains.T, wanted, wanted),
        LinearConstraint(np.ones((1, len(options))), claimed["patients"], claimed["patients"]),
        LinearConstraint(one_each, least, 1),
    )
    return [row for at in taken for row in patients[options[at][0]][: options[at][1]]]


def chosen_pool(rows: Sequence[Row], size: int) -> list[Row]:
    """Choose images of the official train_val list with the shares that the published 500 have."""
    gains = np.array([[1, *counts_of(row)[2:7]] for row in rows])
    wanted = [size, *TRAIN_POSITIVES]
    kinds, kind_of = np.unique(gains, axis=0, return_inverse=True)
    sizes = np.bincount(kind_of)
    taken = _solve_counts(sizes, LinearConstraint(kinds.T, wanted, wanted))
    return [rows[at] for kind, n in enumerate(taken) for at in np.flatnonzero(kind_of == kind)[:n]]


def _solve(n: int, *constraints: LinearConstraint) -> list[int]:
    return np.flatnonzero(_solve_counts(np.ones(n), *constraints)).tolist()


def _solve_counts(largest: Any, *constraints: LinearConstraint) -> list[int]:
    n = len(largest)
    rest = np.random.default_rng(1).random(n)  # any objective: it only keeps the solver from wandering among equals
    loose = {"mip_rel_gap": 1.0}
    found = milp(rest, constraints=constraints, bounds=Bounds(0, largest), integrality=np.ones(n), options=loose)
    assert found.success, found.message
    return [round(value) for value in found.x]


def shard_names() -> list[str]:
    """Return the 93 names: 75 of the mirror's own train part, 9 of each other."""
    parts = (("train", 75), ("valid", 9), ("test", 9))
    return [f"{part}-{at:05d}-of-{n:05d}" for part, n in parts for at in range(n)]


def shard(rows: Sequence[Row], image: bytes = PIXEL) -> bytes:
    """Return one Parquet shard as a hub writes it."""
    table = pa.table(
        {
            "image": pa.array(
                [{"bytes": image, "path": row["Image Index"]} for row in rows],
                pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
            ),
            "label": pa.array([row["Finding Labels"].split("|") for row in rows], pa.list_(pa.string())),
            "Patient ID": pa.array([int(row["Patient ID"]) for row in rows], pa.int64()),
            "Patient Age": pa.array([int(row["Patient Age"]) for row in rows], pa.int64()),
        }
    )
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=100)
    return out.getvalue()


def atlas_mirror(table: str, test_list: str, train_val_list: str, shared: Path) -> dict[str, bytes]:
    """Return the files of the mirror by path."""
    atlas = json.loads((shared / SHARED_EXPECTED).read_text())
    v2 = atlas["atlas_full_v2"]
    rows = read_table(table)
    tests, pools = (set(text.split()) for text in (test_list, train_val_list))
    examples = [one["item_id"].removeprefix("nih-") for one in atlas["examples"]]
    test = chosen_test([row for row in rows if row["Image Index"] in tests], v2["test"], examples)
    pool = chosen_pool([row for row in rows if row["Image Index"] in pools], v2["train_pool"])
    held = sorted([*test, *pool], key=lambda row: hash_key(row["Image Index"]))
    taken = {row["Image Index"] for row in held}
    others = sorted((r for r in rows if r["Image Index"] not in taken), key=lambda r: hash_key(r["Image Index"]))
    rest = [name for name in shard_names() if name not in FETCHED]
    dealt = {name: held[at :: len(FETCHED)] for at, name in enumerate(FETCHED)}
    dealt |= {name: others[at :: len(rest)] for at, name in enumerate(rest)}
    return {f"data/{name}.parquet": shard(dealt[name]) for name in shard_names()}


def own_split(files: Mapping[str, bytes]) -> dict[str, list[int]]:
    """Return the patient of every image by part of the mirror's own split."""
    parts: dict[str, list[int]] = defaultdict(list)
    for path, data in files.items():
        part = Path(path).name.partition("-")[0]
        parts[part] += pq.read_table(io.BytesIO(data), columns=["Patient ID"])["Patient ID"].to_pylist()
    return parts


def hash_key(name: str) -> str:
    """Return a key that deals images without order."""
    return hashlib.sha256(name.encode()).hexdigest()
