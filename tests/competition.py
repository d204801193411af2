"""A made-up CheXpert competition: files of the published layout, and the shipped definitions pinned to them.

The labels are counted as the published ones are; who has them is made up. Nothing here is about a patient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cxrspec.digest import sha256_hex
from cxrspec.freeze import Frozen, freeze
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.score import score
from cxrspec.sources import Store
from cxrspec.submit import Request, submit
from tiny import csv_text

SPECS = Path(__file__).parent.parent / "specs"
TEST = Reference("chexpert-competition", "test-2022-v1")
VALID = Reference("chexpert-competition", "valid-v1")
OBSERVATIONS = (
    *("No Finding", "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion", "Edema"),
    *("Consolidation", "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion", "Pleural Other"),
    *("Fracture", "Support Devices"),
)
TASKS = ("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Pleural Effusion")
POSITIVES = dict(zip(TASKS, (153, 151, 29, 78, 104), strict=True))
VALID_POSITIVES = dict(zip(TASKS, (75, 66, 32, 42, 64), strict=True))
STUDIES = tuple(f"CheXpert-v1.0/test/patient{64741 + number}/study1" for number in range(500))
REFERENCE, COMPARISON = ("bc1", "bc2", "bc3", "bc5", "bc7"), ("bc4", "bc6", "bc8")
SWAPPED = tuple({"Lung Opacity": "Lung Lesion", "Lung Lesion": "Lung Opacity"}.get(o, o) for o in OBSERVATIONS)

Reads = NDArray[np.int8]


def labels() -> Reads:
    """Return the reference standard [500, 14]: the five tasks have as many positives as published."""
    rng = np.random.default_rng(0)
    return np.stack([_positive(rng, POSITIVES.get(name, 60), len(STUDIES)) for name in OBSERVATIONS], axis=1)


def _positive(rng: np.random.Generator, n_positive: int, n: int) -> Reads:
    found = np.zeros(n, np.int8)
    found[rng.permutation(n)[:n_positive]] = 1
    return found


def reads() -> dict[str, Reads]:
    """Return every reader's calls [500, 14]; of the five reference readers at most two err in a cell."""
    rng, truth = np.random.default_rng(1), labels()
    found = {name: truth.copy() for name in REFERENCE}
    erring = rng.permuted(np.tile(np.arange(5), (truth.size, 1)), axis=1)[:, :2].reshape(*truth.shape, 2)
    for position, name in enumerate(REFERENCE):
        wrong = (erring == position).any(axis=2) & (rng.random(truth.shape) < 0.3)
        found[name][wrong] = 1 - truth[wrong]
    for name, share in zip(COMPARISON, (0.2, 0.25, 0.3), strict=True):
        found[name] = np.where(rng.random(truth.shape) < share, 1 - truth, truth).astype(np.int8)
    return found


def sheet(values: Reads, columns: Sequence[str] = OBSERVATIONS) -> str:
    """Return calls [500, 14], which stand in the order of OBSERVATIONS, as a file with its columns in any order."""
    at = [OBSERVATIONS.index(name) for name in columns]
    rows = ([study, *row[at].tolist()] for study, row in zip(STUDIES, values, strict=True))
    return csv_text(["Study", *columns], rows)


@cache
def label_files() -> Mapping[str, str]:
    """Return every test file by its name; the readers' have two columns swapped, as the published ones do."""
    return {"groundtruth": sheet(labels())} | {name: sheet(calls, SWAPPED) for name, calls in reads().items()}


def valid_file(open_cell: str = "0.0") -> str:
    """Return the validation file: 234 images of 200 studies, 169 of which have 1, 28 have 2 and 3 have 3."""
    rng = np.random.default_rng(2)
    truth = np.stack([_positive(rng, VALID_POSITIVES.get(name, 20), 200) for name in OBSERVATIONS], axis=1)
    rows = []
    for number, row in enumerate(truth.tolist()):
        for view in range(1 + (number >= 169) + (number >= 197)):
            path = f"CheXpert-v1.0-small/valid/patient{64541 + number}/study1/view{view + 1}_frontal.jpg"
            rows.append([path, "Male", 60, "Frontal", "AP", *map(float, row)])
    text = csv_text(["Path", "Sex", "Age", "Frontal/Lateral", "AP/PA", *OBSERVATIONS], rows)
    return text.replace(",0.0\n", f",{open_cell}\n", 1)


def predictions(strength: float = 2.0, seed: int = 3) -> NDArray[np.float64]:
    """Return one system's scores [500, 5] for TASKS."""
    truth = labels()[:, [OBSERVATIONS.index(name) for name in TASKS]]
    noise = np.random.default_rng(seed).normal(size=truth.shape)
    return np.round(1 / (1 + np.exp(-(noise + strength * truth - 2))), 4)


def predictions_csv(values: NDArray[np.float64] | None = None, columns: Sequence[str] = TASKS) -> str:
    """Return scores as a file, its columns in any order."""
    values = predictions() if values is None else values
    at = [TASKS.index(name) for name in columns]
    return csv_text(
        ["Study", *columns], ([study, *row] for study, row in zip(STUDIES, values[:, at].tolist(), strict=True))
    )


@dataclass(frozen=True)
class Competition:
    """A project with the shipped definitions, in which only the sha256 of the made-up files is another."""

    root: Path
    changes: Mapping[str, str] = field(default_factory=dict)
    """Texts of the test definition that are replaced beside the digests."""

    @property
    def registry(self) -> Registry:
        """The registry as a new process sees it."""
        return Registry(self.root)

    @property
    def store(self) -> Store:
        """A store that has the made-up files in a mirror, and no network."""
        return Store(self.root / ".cxrspec" / "cache", (self.root / "mirror",), self.root, offline=True)

    def pin(self, files: Mapping[str, str] | None = None) -> None:
        """Put test files into the mirror, and their digests into the definition."""
        given = dict(label_files()) | dict(files or {})
        text = (SPECS / "chexpert-competition" / "test-2022-v1.yaml").read_text()
        for old, new in self.changes.items():
            assert old in text, f"{old!r} is not in the definition"
            text = text.replace(old, new)
        lines = text.splitlines()
        for at, line in enumerate(lines):
            if line.strip().removesuffix(":") in given and lines[at + 2].strip().startswith("sha256:"):
                data = given[line.strip().removesuffix(":")].encode()
                lines[at + 2] = f"        sha256: {sha256_hex(data)}"
                self.write(f"mirror/{sha256_hex(data)}", data)
        self.write(f"specs/chexpert-competition/{TEST.version}.yaml", "\n".join(lines).encode() + b"\n")

    def write(self, name: str, data: bytes) -> None:
        """Write a file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def freeze(self, reference: Reference = TEST) -> Frozen:
        """Freeze a definition."""
        return freeze(reference, self.registry, self.store)

    def submit(self, system: str = "ours", data: str | None = None, reference: Reference = TEST) -> list[str]:
        """Submit scores, and return the notes."""
        content = (predictions_csv() if data is None else data).encode()
        request = Request(reference, system, "zero_shot", content, "p.csv")
        return list(map(str, submit(request, self.registry)[1]))

    def score(self, system: str = "ours", reference: Reference = TEST) -> dict[str, Any]:
        """Score a system and return its report."""
        report = score(reference, system, self.registry).report
        assert report is not None
        return dict(report)


def competition(root: Path, files: Mapping[str, str] | None = None, **changes: str) -> Competition:
    """Return a project whose test definition is pinned to made-up files; `changes` replace texts of it."""
    made = Competition(root, changes)
    made.pin(files)
    made.write("registry/.keep", b"")
    return made
