"""Every part of a number leaves: question types and graders, strata, readers, several intervals."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from huggingface_hub import ModelCard

import cxrspec
from competition import TEST, competition
from cxrspec.export import csv_table, eval_results, latex_table, markdown_table, model_card
from cxrspec.lock import Lock
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.report.leaderboard import leaderboard
from cxrspec.report_file import read_report
from project import REF
from questions import SMALL, Questions
from test_grading import GRADES, JUDGE, SECOND, filled, record
from test_strata import divided


def read(registry: Registry, reference: Reference, system: str = "ours") -> tuple[Lock, dict[str, Any], dict[str, Any]]:
    """Return lock, report and leaderboard."""
    report = read_report(registry, reference, system)
    assert report is not None
    return registry.read_lock(reference), report, leaderboard(reference, registry)


def rows_of(text: str) -> list[dict[str, str]]:
    """Return the rows of a CSV export."""
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


@pytest.fixture
def graded(tmp_path: Path) -> Questions:
    """Return a project whose answers two graders graded."""
    (tmp_path / "specs").mkdir()
    project = Questions(tmp_path)
    project.freeze()
    project.submit()
    record(project, filled(project, GRADES))
    record(project, filled(project, SECOND), JUDGE)
    project.score()
    return project


def test_csv_has_question_types_and_graders(graded: Questions) -> None:
    """One row per type and per grader, each with what or whom it stands on, as in the report."""
    _, report, board = read(graded.registry, SMALL)
    rows = rows_of(csv_table(board))
    for score in (*report["scores"], *report["graded"]):
        found = {row["question_type"]: row["value"] for row in rows if row["signature"] == score["signature"]}
        expected = {"": score, **score["question_types"]}
        assert {name: "" if one["value"] is None else repr(one["value"]) for name, one in expected.items()} == found
    assert {"read as yes or no", "reference-based", "A. Reader (human)"} < {row["basis"] for row in rows}
    assert "# graders agree: ours: cohen kappa" in csv_table(board)


@pytest.mark.parametrize("write", [latex_table, markdown_table])
def test_tables_have_graders_and_their_agreement(graded: Questions, write: Any) -> None:
    """Graded answers are a table of their own; question types are named as being elsewhere."""
    text = write(read(graded.registry, SMALL)[2])
    assert "A. Reader (human)" in text
    assert "cohen kappa" in text
    assert "The numbers of single question types are in the CSV export" in text


def test_the_card_has_question_types_graders_and_agreement(graded: Questions) -> None:
    """Each grader is a result of its own in the metadata too."""
    lock, report, board = read(graded.registry, SMALL)
    card = model_card(lock, report, board)
    graders = [one.metric_args.get("grader", {}).get("name") for one in ModelCard(card).data.eval_results]
    assert len(graders) == len(report["scores"]) + len(report["graded"])
    assert 2 == graders.count("A. Reader") == graders.count(JUDGE.name)
    assert "## closed_accuracy on test, read as yes or no" in card
    assert "| presence | 0.7500 |" in card
    assert "## open_mean_grade on test, graded by A. Reader (human)" in card
    assert "Graders agree: cohen kappa" in card
    assert len(graders) == len(yaml.safe_load(eval_results(lock, report)))


def test_frames_have_the_columns_of_the_csv(graded: Questions) -> None:
    """A row per question type and grader, and the agreement beside them."""
    registry = cxrspec.Registry(graded.root)
    board = registry.definition(str(SMALL)).leaderboard()
    assert list(rows_of(csv_table(read(graded.registry, SMALL)[2]))[0]) == board.columns.tolist()
    scores = registry.score(f"{SMALL}/ours")
    assert {"presence", "location", "size"} == set(scores.question_type.dropna())
    assert 7 == scores.query("metric == 'overall_grade' and question_type.isna()").n_items.max()
    assert ["A. Reader", JUDGE.name] == scores.attrs["agreement"]["graders"]


def test_answers_are_ranked(graded: Questions) -> None:
    """Systems that answer are tested on the resamples of their cases, as any other."""
    graded.submit(system="again")
    graded.score("again")
    board = read(graded.registry, SMALL)[2]
    assert {("ours", 1), ("again", 1)} == {(row["system"], *row["rank"]) for row in board["systems"]}
    text = markdown_table(board)
    assert "not separated by a paired bootstrap of closed_accuracy (90%, by group, uncorrected)" in text


def test_strata_are_exported(tmp_path: Path) -> None:
    """Covariate and stratum are columns; the tables say that strata are elsewhere."""
    project = divided(tmp_path, "{sex: values}")
    lock, report, board = read(project.registry, REF)
    score = report["scores"][0]
    found = {(row["stratum"], row["finding"]): row for row in rows_of(csv_table(board)) if row["covariate"] == "sex"}
    one = score["strata"]["sex"]["M"]
    assert (one["reason"], "") == (found["M", ""]["reason"], found["M", ""]["value"])
    assert repr(one["findings"]["edema"]["value"]) == found["M", "edema"]["value"]
    assert "| sex F, edema |" in model_card(lock, report, board)
    assert "The numbers of single findings, strata are in the CSV export" in latex_table(board)
    frame = cxrspec.Registry(tmp_path).score("tiny@v1/ours").dropna(subset="stratum")
    assert len(found) == len(frame)


def test_items_without_a_stratum_are_counted(tmp_path: Path) -> None:
    """They have a row of their own, without a value."""
    project = divided(
        tmp_path, "{sex: values}", ("t00.png,p00,test,Edema|Effusion,30,M,", "t00.png,p00,test,Edema|Effusion,30,,")
    )
    rows = rows_of(csv_table(leaderboard(REF, project.registry)))
    found = [row for row in rows if row["reason"] == "items in no stratum of sex"]
    assert [("", "1")] == [(row["value"], row["n_items"]) for row in found]


@pytest.fixture(scope="module")
def read_by_people(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Return a project with readers and with intervals of two kinds, and what was read of it."""
    made = competition(tmp_path_factory.mktemp("readers"))
    made.freeze()
    made.submit()
    made.score()
    return made.root, read(made.registry, TEST)


def test_readers_are_exported(read_by_people: tuple[Path, Any]) -> None:
    """A row per reader and finding, 1 where below the curve, whose sum is the count; the vote is counted nowhere."""
    _, (lock, report, board) = read_by_people
    score = next(one for one in report["scores"] if "convention" in one)
    rows = [row for row in rows_of(csv_table(board)) if row["signature"] == score["signature"] and row["reader"]]
    for finding, entry in score["findings"].items():
        of_finding = {row["reader"]: row for row in rows if row["finding"] == finding}
        assert entry["value"] == sum(int(row["value"] or 0) for row in of_finding.values())
        assert "" == of_finding["majority vote (not counted)"]["value"]
        assert {repr(one["margin"]) for one in entry["readers"].values()} < {
            row["margin"] for row in of_finding.values()
        }
    reader = next(iter(entry["readers"]))
    assert f"| {finding}, reader {reader} |" in model_card(lock, report, board)


def test_each_of_several_intervals_says_what_it_is(read_by_people: tuple[Path, Any]) -> None:
    """In tables in words, for programs by its column, which is the same in CSV and in frames."""
    root, (_, report, board) = read_by_people
    assert "] by item" in latex_table(board)
    assert "by DeLong" in latex_table(board)
    edema = next(row for row in rows_of(csv_table(board)) if row["finding"] == "edema")
    interval = report["scores"][0]["findings"]["edema"]["intervals"][1]
    assert [repr(interval["low"]), repr(interval["high"])] == [edema["delong_low"], edema["delong_high"]]
    frame = cxrspec.Registry(root).score(f"{TEST}/ours")
    assert {"delong_low", "delong_high", "delong_reason"} < set(frame)
    assert pd.api.types.is_float_dtype(frame.delong_low)
