"""CheXpert's training labels by study: Table 1 of the paper, out of the wheel, to the committed lock."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from places import ROOT, Run

pytestmark = pytest.mark.real

LABELS = "chexpert-labels@train-table1-v1"
FOLDER = Path("registry", *LABELS.split("@"))


def test_training_labels_freeze_to_the_committed_lock(run: Run, frozen: Callable[[str], None], project: Path) -> None:
    """Freezing out of the wheel gives the very bytes of the lock in git; each claim of `expect` held."""
    frozen(LABELS)
    assert (ROOT / FOLDER / "lock.json").read_bytes() == (project / FOLDER / "lock.json").read_bytes()


def test_every_cell_of_table_1_is_counted(shared: Path) -> None:
    """Positive, uncertain, and negative with blank of the five findings, and what there is of each kind."""
    lock = json.loads((ROOT / FOLDER / "lock.json").read_bytes())
    ours = {theirs: name for name, theirs in lock["definition"]["findings"].items()}
    published = json.loads((shared / "expected/chexpert_table1.json").read_text())
    for counts in (lock["subsets"]["train"], _claimed(lock["description"]["expect"]["train"])):
        found = {
            theirs: [counts[kind][ours[theirs]] for kind in ("positives", "uncertain", "negatives_or_blank")]
            for theirs in published["table"]
        }
        assert published["table"] == found
        kinds = ("studies", "images_in_train_csv", "patients_in_train_csv")
        assert [published[kind] for kind in kinds] == [counts[name] for name in ("items", "images", "groups")]


def _claimed(expect: dict) -> dict:
    """Return the claims of a lock as plain counts."""
    sizes = {name: expect[name]["value"] for name in ("items", "images", "groups")}
    tallies = {k: {name: one["value"] for name, one in counts.items()} for k, counts in expect["tallies"].items()}
    return sizes | tallies


def test_rows_need_a_word(run: Run, frozen: Callable[[str], None]) -> None:
    """The labels are under Stanford's terms: no row is printed without --restricted."""
    frozen(LABELS)
    assert run("items", f"{LABELS}:train", check=False).returncode == 1
    assert run("items", f"{LABELS}:train", "--restricted").stdout.count("\n") == 187_642
