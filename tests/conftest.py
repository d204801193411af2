"""Tiny data made in code, the same on every machine: no network, no randomness."""

from __future__ import annotations

import copy
import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cxrspec.compiler import Compiled, compile_definition
from cxrspec.loader import load_definition
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.sources import Store
from cxrspec.strict_yaml import dump_document

Define = Callable[[Mapping[str, Any] | str], tuple[Registry, Reference]]
CompileTiny = Callable[[Mapping[str, Any] | str], Compiled]

TEST_PATIENTS = range(1, 5)
TRAIN_PATIENTS = range(5, 13)
HEADS = {
    "labels": [
        "Image Index",
        "Finding Labels",
        "Patient ID",
        "Patient Age",
        "Patient Gender",
        "View Position",
        "Follow-up #",
    ],
    "readers": ["Image", "Set Id", "Edema", "Effusion"],
    "numbers": ["Image", "Edema", "Mass"],
    "predictions": ["Image Index", "Edema", "Mass", "Effusion"],
}


def image_names(patients: Iterable[int]) -> list[str]:
    """Return the file names of the three images of each patient."""
    return [f"{patient:08d}_{image:03d}.png" for patient in patients for image in range(3)]


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV text."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


def tiny_tables() -> dict[str, str]:
    """Return the content of every file of the tiny project's `data` folder, by name."""
    rows: dict[str, list[list[object]]] = {"labels": [], "readers": [], "numbers": [], "predictions": []}
    for at, name in enumerate(image_names([*TEST_PATIENTS, *TRAIN_PATIENTS])):
        patient, image = at // 3 + 1, at % 3
        edema, mass, effusion = (patient + image) % 3 == 0, (2 * patient + image) % 5 < 2, patient % 4 == image
        found = [word for word, here in (("Edema", edema), ("Mass", mass), ("Effusion", effusion)) if here]
        seen = [30 + patient, "FM"[patient % 2], ("AP", "PA")[image % 2], image]
        rows["labels"].append([name, "|".join(found) or "No Finding", patient, *seen])
        split = "test" if patient in TEST_PATIENTS else "val"
        rows["readers"].append([name, split, *("YES" if here else "NO" for here in (edema, effusion))])
        open_cell = {("val", 0): "-1.0", ("val", 1): ""}.get((split, image))  # uncertain, or not mentioned
        decided = [f"{here:d}.0" if open_cell is None else open_cell for here in (edema, mass)]
        rows["numbers"].append([name, *decided])
        rows["predictions"].append([name, *(at * step % 37 / 37 for step in (5, 11, 17))])
    files = {f"{name}.csv": csv_text(HEADS[name], found) for name, found in rows.items()}
    lists = {"test_list.txt": TEST_PATIENTS, "train_list.txt": TRAIN_PATIENTS}
    return files | {name: "\n".join(image_names(patients)) + "\n" for name, patients in lists.items()}


_METRIC = {"average": "macro", "interval": {"method": "bootstrap", "unit": "item", "resamples": 100, "level": 0.95}}
TINY: dict[str, Any] = {
    "benchmark": "tiny",
    "definition_version": "v1",
    "title": "Three findings on 36 images of 12 patients",
    "task": "findings",
    "seed": 7,
    "sources": {
        "tiny": {
            "kind": "file",
            "files": {
                "labels": "data/labels.csv",
                "readers": "data/readers.csv",
                "numbers": "data/numbers.csv",
                "test_list": "data/test_list.txt",
                "train_list": "data/train_list.txt",
            },
            "licence": "CC0",
            "attribution": "nobody",
        }
    },
    "items": {
        "unit": "image",
        "source": "tiny/labels",
        "item_id": {"column": "Image Index", "form": "file_name", "prefix": "tiny-"},
        "group_id": {"column": "Patient ID"},
        "covariates": {"age": "Patient Age", "sex": "Patient Gender", "view": "View Position"},
        "joins": {"tiny/readers": "Image", "tiny/numbers": "Image"},
    },
    "splits": {"test": {"in_list": "tiny/test_list"}, "train": {"in_list": "tiny/train_list"}},
    "findings": {"edema": "Edema", "mass": "Mass", "pleural_effusion": "Effusion"},
    "labels": {
        "encoding": "separated_list",
        "column": "Finding Labels",
        "separator": "|",
        "negative": "No Finding",
    },
    "subsets": {
        "test": {"pool": {"split": "test"}, "select": "all"},
        "train": {
            "pool": {"split": "train"},
            "disjoint_from": "test",
            "disjoint_by": "group_id",
            "select": {"stratified": {"size": 12, "minimum_positives": 3}},
        },
    },
    "protocols": {
        "zero_shot": {},
        "probe": {
            "fit_on": "train",
            "standardize": True,
            "C": [0.1, 1.0],
            "folds": 3,
            "select_by": "log_loss",
            "solver": "lbfgs",
            "max_iter": 1000,
            "tol": 1.0e-8,
            "tolerance": 5.0e-4,
        },
    },
    "metrics": [
        {"name": "mean_auroc_zero_shot", "kind": "roc_auc", "protocol": "zero_shot", **_METRIC},
        {"name": "mean_auroc_probe", "kind": "roc_auc", "protocol": "probe", **_METRIC},
    ],
    "expect": {"roster": {"items": 36, "groups": 12}, "test": {"items": 12, "groups": 4}, "train": {"items": 12}},
}


@pytest.fixture
def tiny_document() -> dict[str, Any]:
    """A fresh copy of a definition that the tiny project compiles; change it as you like."""
    return copy.deepcopy(TINY)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder of a project: `specs/` and `registry/` empty, `data/` with labels, lists and predictions."""
    root = tmp_path / "project"
    for folder in ("specs", "registry", "data"):
        (root / folder).mkdir(parents=True)
    for name, text in tiny_tables().items():
        (root / "data" / name).write_text(text, encoding="utf-8", newline="")
    return root


@pytest.fixture
def store(project: Path, tmp_path: Path) -> Store:
    """A store with a cache of its own that never reaches for the network."""
    return Store(cache=tmp_path / "cache", root=project, offline=True)


@pytest.fixture
def define(project: Path) -> Define:
    """Write a definition, given as a mapping or as YAML text, where it belongs; return its registry and reference."""

    def write(definition: Mapping[str, Any] | str) -> tuple[Registry, Reference]:
        text = definition if isinstance(definition, str) else dump_document(definition).decode()
        said = dict(
            line.split(": ", 1) for line in text.splitlines() if line.startswith(("benchmark: ", "definition_"))
        )
        registry = Registry(project)
        reference = Reference(said["benchmark"], said["definition_version"])
        path = registry.spec_path(reference)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return registry, reference

    return write


@pytest.fixture
def compile_tiny(define: Define, store: Store) -> CompileTiny:
    """Write a definition, load it and compile it with the tiny project's data as it is now."""

    def run(definition: Mapping[str, Any] | str) -> Compiled:
        registry, reference = define(definition)
        return compile_definition(load_definition(registry.spec_path(reference)), store)

    return run


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name bytes after their argument: packed bytes hold the time, and parallel workers must agree on names."""
    return argname if isinstance(val, bytes) else None
