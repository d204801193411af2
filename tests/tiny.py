"""The tiny project of the definition layer: its tables, its definition, and the types of the fixtures on it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cxrspec.compiler import Compiled
from cxrspec.reference import Reference
from cxrspec.registry import Registry

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
