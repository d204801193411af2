"""The vqa task through freeze, submit and score, on made-up questions about made-up cases."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from cxrspec.errors import CxrspecError
from cxrspec.metrics import resample_indices
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.reported import load_reported
from questions import ANSWERS, HEADER, REAL, ROWS, SMALL, SPECS, Questions, answers_csv, published_rows, tsv

ROOT = Path(__file__).parent.parent
EXPECTED = ROOT.parent / "shared" / "expected" / "mimic_cxr_vqa.json"


@pytest.fixture
def small(tmp_path: Path) -> Questions:
    """A project with seven test questions about three cases."""
    (tmp_path / "specs").mkdir()
    return Questions(tmp_path)


@pytest.fixture
def published(tmp_path: Path) -> Questions:
    """A project with the published definition."""
    project = Questions(tmp_path, REAL)
    project.define((SPECS / REAL.benchmark / f"{REAL.version}.yaml").read_text(encoding="utf-8"))
    return project


def refusal(run: Callable[[], object]) -> str:
    """Return the text of a refusal."""
    with pytest.raises(CxrspecError) as refused:
        run()
    return str(refused.value)


def notes(frozen: Any) -> dict[str, str]:
    """Return the notes of freezing, by what they are about."""
    return {note.where: note.message for note in frozen.notes}


def with_row(at: int, **cells: str) -> list[tuple[str, ...]]:
    """Return the rows with some cells of one of them replaced."""
    row = {**dict(zip(HEADER, ROWS[at], strict=True)), **cells}
    return [*ROWS[:at], tuple(row.values()), *ROWS[at + 1 :]]


# what is frozen


def test_ids_are_made_of_case_and_the_order_of_question_texts(small: Questions) -> None:
    """A file without question ids: `-q01`, `-q02` by the code-point order of a case's questions, in any row order."""
    table = small.freeze(ROWS[::-1]).lock
    found = small.registry.read_subset(Reference("small-vqa", "v1", subset="test"))
    assert sorted(ANSWERS) == found.item_ids
    assert ["Any line?", "Is there edema?", "Where is the edema?"] == found.column("question")[:3]
    assert ["s1", "s1", "s1", "s2", "s2", "s3", "s3"] == found.column("group_id")
    assert (7, 3) == (table.subsets["test"]["items"], table.subsets["test"]["groups"])


def test_row_order_changes_no_digest(small: Questions, tmp_path_factory: pytest.TempPathFactory) -> None:
    """H1: the subset ids of a shuffled file are the same."""
    other = Questions(tmp_path_factory.mktemp("other"))
    (other.root / "specs").mkdir()
    assert small.freeze(ROWS).lock.subset_ids == other.freeze(ROWS[::2] + ROWS[1::2]).lock.subset_ids


def test_closed_ended_are_those_whose_reference_begins_with_yes_or_no(small: Questions) -> None:
    """`normal` and `the left base` are open-ended; counts of both stand in the lock."""
    counts = small.freeze().lock.subsets["test"]
    assert (4, 3, 57) == (counts["closed"], counts["open"], counts["closed_percent"])
    assert (2, 2) == (counts["yes"], counts["no"])
    assert {"location": 1, "presence": 4, "size": 2} == counts["questions"]
    assert {"edema": 2, "pneumothorax": 1} == counts["cases"]


BY_COLUMN = ("{by: leading_yes_no}", "{by: column, column: question_type, one_of: presence, open: [Location, SIZE]}")


def test_a_column_may_say_which_are_closed_ended(small: Questions) -> None:
    """Where the file says it, the file decides."""
    assert 4 == small.freeze(ROWS, BY_COLUMN).lock.subsets["test"]["closed"]


@pytest.mark.parametrize("cell", ["Colour", "", "Presence?"])
def test_a_cell_that_says_neither_closed_nor_open_is_refused(small: Questions, cell: str) -> None:
    """Nothing is taken as open-ended silently; the message has the cell and what is declared."""
    changes = (BY_COLUMN, ("question_types: {presence: Presence, location: Location, size: Size}\n", ""),
               (", question_type: question_type", ""))  # fmt: skip
    message = refusal(lambda: small.freeze(with_row(3, question_type=cell), *changes))
    assert f"'{cell}' says neither closed- nor open-ended; declared are one_of presence and open Location" in message


def test_the_open_cells_are_declared(small: Questions) -> None:
    """A rule by column names both kinds of cells, and no cell for both."""
    assert "cells that say open-ended" in refusal(
        lambda: small.freeze(ROWS, (BY_COLUMN[0], BY_COLUMN[1].replace(", open: [Location, SIZE]", "")))
    )
    assert "cannot say both" in refusal(
        lambda: small.freeze(ROWS, (BY_COLUMN[0], BY_COLUMN[1].replace("SIZE", "PRESENCE")))
    )


@pytest.mark.parametrize("answer", ["-", "...", "\u2014", "?"])
def test_v3_a_reference_without_a_word_is_refused(small: Questions, answer: str) -> None:
    """V3: it reads as empty, so an empty answer would be right; whatever the rule says of the question."""
    for changes in ((), (BY_COLUMN,)):
        message = refusal(lambda changes=changes: small.freeze(with_row(0, answer=answer), *changes))
        assert "the answer has no word" in message
        assert "s1-q02" in message


def test_what_says_neither_is_never_right(small: Questions) -> None:
    """A lock that was frozen with such a reference scores an empty answer as wrong."""
    from cxrspec.digest import Table
    from cxrspec.submission import task_of
    from cxrspec.tasks import EvaluationInput

    task = task_of(small.freeze().lock)
    columns = [["a", "b"], ["1", "1"], ["Is it?", "Is it?"], ["-", "Maybe"], ["1", "1"], ["", ""], ["", ""], ["", ""]]
    table = Table.sorted(("item_id", "group_id", *task.column_names), columns)
    found = task.evaluate(EvaluationInput("answers", 1, {"test": table}, {"test": ["", "perhaps"]}))
    assert [0.0, 0.0] == [one["value"] for one in found.scores if one["kind"] == "accuracy"]


@pytest.mark.parametrize("answer", ["left", "Absent", "Yes and no", "none"])
def test_v3_a_closed_ended_question_needs_a_reference_of_yes_or_no(small: Questions, answer: str) -> None:
    """V3: what the column calls closed-ended and the reference answers otherwise is refused when it is compiled."""
    message = refusal(lambda: small.freeze(with_row(0, answer=answer), BY_COLUMN))
    assert "does not begin with either yes or no, for 1 of 7 items: s1-q02" in message


def test_v3_a_reference_of_both_is_refused_under_either_rule(small: Questions) -> None:
    """V3: `Yes and no` begins with yes, and decides nothing."""
    assert "s1-q02" in refusal(lambda: small.freeze(with_row(0, answer="Yes and no")))


@pytest.mark.parametrize("text", ["None", "N/A", "NA", "nan", "null", '"quoted"', 'a "b" c', '5"', "a\\tb", "=1+1"])
def test_tsv_cells_are_read_literally(small: Questions, text: str) -> None:
    """What other readers take for nothing, a quote or an escape stands in the frozen table as it is in the file."""
    small.freeze(with_row(1, answer=text))
    found = small.registry.read_subset(Reference("small-vqa", "v1", subset="test"))
    assert text == found.column("answer")[2]


def test_quotes_enclose_cells_where_the_definition_does_not_say_plain(small: Questions) -> None:
    """A tab inside quotes is part of its cell then, and stands escaped in the canonical text."""
    lines = tsv(ROWS).replace("the left base", '"left\tbase"')
    small.freeze(lines, (", quotes: plain", ""))
    found = small.registry.read_subset(Reference("small-vqa", "v1", subset="test"))
    assert "left\tbase" == found.column("answer")[2]
    assert b"left\\tbase" in found.text


def test_cells_that_look_enclosed_are_refused_where_quotes_are_plain(small: Questions) -> None:
    """Doubled quotes inside an enclosed cell give the other convention away."""
    lines = tsv(ROWS).replace("the left base", '"the ""left"" base"')
    assert "quotes" in refusal(lambda: small.freeze(lines))


def test_an_empty_question_or_answer_is_refused(small: Questions) -> None:
    """Both in one report, with the line."""
    message = refusal(
        lambda: small.freeze([*with_row(1, answer=" ")[:8], ("s4", "d", "test", "Edema", "Size", "", "x")])
    )
    assert "the answer is empty, for 1 of" in message
    assert "the question is empty, for 1 of" in message


def test_an_unknown_type_or_condition_is_refused_with_those_declared(small: Questions) -> None:
    """The cell, how often, and what is allowed."""
    message = refusal(lambda: small.freeze(with_row(0, question_type="Colour", condition="Gout")))
    assert "unknown question type 'Colour'; declared are presence, location, size, for 1 of 7 items: s1-q02" in message
    assert "unknown condition 'Gout'; declared are edema, pneumothorax" in message


def test_v10_several_images_of_one_study_are_one_item(small: Questions) -> None:
    """V10: a row per image, the same question and answer: one item, whose images stand together."""
    extra = [("s1", "second", *row[2:]) for row in ROWS if row[0] == "s1"]
    counts = small.freeze([*ROWS, *extra]).lock.subsets["test"]
    found = small.registry.read_subset(Reference("small-vqa", "v1", subset="test"))
    assert (7, "a;second") == (counts["items"], found.column("image")[0])


def test_v10_images_of_one_question_with_other_answers_are_refused(small: Questions) -> None:
    """V10: the reference is the study's; two answers to one question of it contradict each other."""
    extra = ("s1", "second", "test", "Edema", "Presence", "Is there edema?", "No.")
    assert "rows of one item differ" in refusal(lambda: small.freeze([*ROWS, extra]))


def test_a_file_may_lack_types_conditions_and_images(small: Questions) -> None:
    """The roles that a file has no column for are left out, with what depends on them."""
    small.freeze(
        ROWS,
        (", question_type: question_type, condition: condition, image: dicom_id", ""),
        ("question_types: {presence: Presence, location: Location, size: Size}\n", ""),
        ("conditions: {edema: Edema, pneumothorax: Pneumothorax}\n", ""),
    )
    found = small.scores()["closed_accuracy"]
    assert (0.5, {}) == (found["value"], found["question_types"])


def test_other_sources_name_all_questions_of_a_case(small: Questions) -> None:
    """A table and a list by study are joined to numbered items by what these share."""
    (small.root / "data").mkdir()
    (small.root / "data" / "studies.csv").write_text("study,sex\ns1,F\ns2,M\ns3,F\ns4,M\n")
    (small.root / "data" / "list.txt").write_text("s1\ns3\n")
    frozen = small.freeze(
        ROWS,
        ("quotes: plain}}", "quotes: plain}, studies: data/studies.csv, list: data/list.txt}"),
        ("source: made\n", "source: made/questions\n"),
        ("group_id: {column: study_id}", "group_id: {column: study_id}\n  joins: {made/studies: study}\n"
         "  covariates: {sex: {source: made/studies, column: sex}}"),
        ("test: {where: {column: split, one_of: test}}", "test: {in_list: made/list}"),
    )  # fmt: skip
    assert ({"F": 5}, 2) == (frozen.lock.subsets["test"]["covariates"]["sex"], frozen.lock.subsets["test"]["groups"])


# the published definition, on a made-up file of its shape


@pytest.mark.parametrize(("n_test", "said"), [(226, "as in the methods"), (224, "as in the abstract")])
def test_either_count_of_test_questions_is_accepted_and_noted(published: Questions, n_test: int, said: str) -> None:
    """226 by the methods, 224 by the abstract: both freeze, and a note says which it is."""
    frozen = published.frozen(tsv(published_rows(n_test)))
    assert n_test == frozen.lock.subsets["test"]["items"]
    assert notes(frozen)["expect.test.items"].endswith(said)


def test_another_count_of_test_questions_is_refused(published: Questions) -> None:
    """225 is neither."""
    message = refusal(lambda: published.frozen(tsv(published_rows(225))))
    assert "226 (the methods) or 224 (the abstract)    225  differs" in message


def test_the_published_counts_hold_and_contradictions_are_noted(published: Questions) -> None:
    """48 and 23 cases, 154 and 73 closed-ended, 111: hard. 68 % and 35 against 23: noted, never fatal."""
    frozen = published.frozen(tsv(published_rows()))
    test, validation = (frozen.lock.subsets[name] for name in ("test", "validation"))
    assert (48, 154, 23, 111, 73) == (
        test["groups"],
        test["closed"],
        *(validation[k] for k in ("groups", "items", "closed")),
    )
    said = notes(frozen)
    assert said["expect.roster.closed_percent"].startswith("claimed 68 (within 1), found 67")
    assert "add up to 35 cases, and it states 23" in said["expect.validation.cases.pneumothorax"]
    assert "expect.test.cases.edema" not in said


@pytest.mark.skipif(not EXPECTED.is_file(), reason="../shared is not here")
def test_the_definition_expects_what_the_page_says() -> None:
    """The counts of the definition are those that were read off the page."""
    from cxrspec.loader import load_definition

    page = json.loads(EXPECTED.read_text())
    expect = load_definition(SPECS / REAL.benchmark / f"{REAL.version}.yaml").expect or {}
    test, validation = expect["test"], expect["validation"]
    assert [page["test"]["questions_methods"], page["test"]["questions_abstract"]] == test.items.choices
    assert (page["test"]["cases"], page["validation"]["cases"]) == (test.groups.value, validation.groups.value)
    assert page["validation"]["questions"] == validation.items.value
    assert page["test"]["closed_ended"] == test.tallies["closed"].value
    assert page["validation"]["closed_ended"] == validation.tallies["closed"].value
    assert {page["test"]["per_condition"]} == {claim.value for claim in test.tallies["cases"].values()}
    assert len(page["test"]["conditions"]) == len(test.tallies["cases"])


def test_other_column_names_are_refused_with_the_mapping_to_edit(published: Questions) -> None:
    """Every column that is missing, those that the file has, and where the definition names each."""
    header = ("StudyInstanceUID", "image", "subset", "pathology", "type", "question", "reference_answer")
    message = refusal(lambda: published.frozen(tsv(published_rows(), header)))
    assert "the file has StudyInstanceUID, image, subset, pathology, type, question, reference_answer" in message
    assert "no column 'study_id'" in message
    assert "where the definition names it: items.item_id.column, items.group_id.column" in message
    for column, place in (("answer", "columns.answer.column"), ("split", "splits.test.where[0].column.column")):
        assert f"no column '{column}'" in message
        assert place in message


def test_only_fields_that_name_columns_are_named_for_a_missing_one(small: Questions) -> None:
    """A column that is called as the unit is: `items.unit` holds the same word and names no column."""
    message = refusal(lambda: small.freeze(tsv(ROWS, [name.replace("question", "q") for name in HEADER])))
    (line,) = [line for line in message.splitlines() if "no column 'question'" in line]
    assert line.endswith("where the definition names it: columns.question.column, items.item_id.numbered_by")


NAMESAKES = (
    "10.13026/cvsk-ny21",
    "MIMIC-Ext-MIMIC-CXR-VQA (Bae et al.)",
    "377,391",
    "Medical-CXR-VQA (Hu et al.)",
    "780,014",
)


def test_v7_a_namesake_with_other_columns_is_refused_naming_all_three(published: Questions) -> None:
    """V7: a table with the columns of MIMIC-Ext-MIMIC-CXR-VQA."""
    header = (
        "split",
        "idx",
        "subject_id",
        "study_id",
        "image_id",
        "question",
        "semantic_type",
        "content_type",
        "answer",
    )
    message = refusal(
        lambda: published.frozen(tsv([("test", "0", "1", "2", "a", "Is it?", "verify", "presence", "yes")], header))
    )
    assert all(name in message for name in NAMESAKES)


def test_v7_a_namesake_with_our_columns_is_refused_by_its_size(published: Questions) -> None:
    """V7: 13,793 test rows under our column names."""
    rows = [(str(at), "a", "test", "Edema", "Presence", "Is there edema?", "yes") for at in range(13_793)]
    message = refusal(lambda: published.frozen(tsv([*rows, *published_rows()])))
    assert "14,019  differs" in message
    assert all(name in message for name in NAMESAKES)


def test_v7_the_digest_holds_the_doi(published: Questions) -> None:
    """V7: a definition of another data set is another definition."""
    path = published.registry.spec_path(REAL)
    lock = published.frozen(tsv(published_rows())).lock
    assert "10.13026/cvsk-ny21" == lock.definition["sources"]["vqa"]["doi"]
    path.write_text(path.read_text().replace("doi: 10.13026/cvsk-ny21", "doi: 10.13026/1pm5-hy02"))
    assert "sources.vqa.doi" in refusal(lambda: published.frozen(tsv(published_rows())))


def test_a_missing_file_is_told_without_the_namesakes(published: Questions) -> None:
    """Nobody mistook one data set for another where there is no file."""
    from cxrspec.freeze import freeze
    from cxrspec.sources import Store

    store = Store(published.root / "cache", root=published.root, offline=True)
    assert "Medical-CXR-VQA" not in refusal(lambda: freeze(REAL, published.registry, store))


def test_the_rows_are_restricted_and_stay_on_this_machine(published: Questions) -> None:
    """`redistribute: false`: rows only with a flag, a stage of the second pipeline, and outs that are never pushed."""
    from cxrspec.pipeline import update_pipelines

    published.frozen(tsv(published_rows()))
    registry = Registry(published.root)
    assert "may not be passed on" in refusal(
        lambda: registry.read_subset(Reference(REAL.benchmark, REAL.version, subset="test"))
    )
    (published.root / ".dvc").mkdir()
    assert [published.root / "registry" / "dvc.yaml"] == update_pipelines(registry)
    stages = (published.root / "registry" / "dvc.yaml").read_text()
    assert 3 == stages.count("push: false")  # roster, test, validation
    assert b"Is thing" not in registry.lock_path(REAL).read_bytes()


def test_elixr_stands_as_reported_never_as_scored() -> None:
    """54.8 % of the earlier version with its question types, and 58.7 % of the later abstract, as printed."""
    entries = {entry.system: entry for entry in load_reported(Registry(ROOT), REAL.benchmark)}
    values = {name: [value.value for value in entry.values] for name, entry in entries.items()}
    assert {"elixr-2023-earlier": ["54.8 %", "64.5", "41.0", "25.0"], "elixr-2023-later": ["58.7 %"]} == values
    assert {"unknown"} == {entry.comparable for entry in entries.values()}


# scores


def test_scores_of_closed_ended_answers_by_hand(small: Questions) -> None:
    """References: yes, no, no, yes. Answers, strictly: undecided, no, refused, yes; leniently the first is yes."""
    small.freeze()
    found = small.scores()
    assert (0.5, 0.75) == (found["closed_accuracy"]["value"], found["closed_accuracy_lenient"]["value"])
    assert (0.5, 0.25) == (found["closed_balanced_accuracy"]["value"], found["closed_yes_rate"]["value"])
    entry = found["closed_accuracy"]
    assert (4, 3, 0, 3) == tuple(entry[key] for key in ("n_items", "n_groups", "n_missing", "n_excluded"))
    assert (2, 2, 1, 1) == tuple(entry[key] for key in ("n_positive", "n_negative", "n_said_yes", "n_said_no"))
    assert (1, 1, 0) == tuple(entry[key] for key in ("n_undecided", "n_refusal", "n_empty"))


def test_accuracy_and_balanced_accuracy_are_scikit_learns(published: Questions) -> None:
    """On the published shape, with answers that are wrong now and then."""
    published.frozen(tsv(published_rows()))
    table = published.registry.read_table(REAL, "test", published.registry.read_lock(REAL).tables["test"])
    said = {item: ("yes", "no")[at * 7 % 3 % 2] for at, item in enumerate(table.item_ids)}
    found = published.scores(answers_csv(said))
    rows = zip(table.item_ids, table.column("answer"), table.column("closed_ended"), strict=True)
    pairs = [(answer[0] == "Y", said[item] == "yes") for item, answer, closed in rows if closed == "1"]
    wanted, given = zip(*pairs, strict=True)
    assert 154 == len(wanted) == found["closed_accuracy"]["n_items"]
    for peer, metric in ((accuracy_score, "closed_accuracy"), (balanced_accuracy_score, "closed_balanced_accuracy")):
        assert pytest.approx(peer(wanted, given), abs=1e-12) == found[metric]["value"]
    assert pytest.approx(np.mean(given), abs=1e-12) == found["closed_yes_rate"]["value"]


def test_open_ended_answers_without_grades_are_compared_with_the_reference_only(small: Questions) -> None:
    """V4: exact match and token F1 say what they stand on; there is no blended number, and a note says why."""
    small.freeze()
    found = small.scores()
    assert {"reference-based"} == {found[name]["basis"] for name in ("open_exact_match", "open_token_f1")}
    assert (pytest.approx(2 / 3), pytest.approx((1 + 2 / 3 + 1) / 3)) == tuple(
        found[name]["value"] for name in ("open_exact_match", "open_token_f1")
    )
    assert not {"open_mean_grade", "overall_grade"} & set(found)
    report = small.score()
    assert "graded" not in report
    assert any("nobody has graded" in note for note in report["notes"])


def test_a_question_type_without_such_questions_is_undefined(small: Questions) -> None:
    """Null with the reason, beside the types that have a value."""
    small.freeze()
    types = small.scores()["closed_accuracy"]["question_types"]
    assert (0.5, None, None) == tuple(types[name]["value"] for name in ("presence", "location", "size"))
    assert "no closed-ended question" == types["size"]["reason"] == types["size"]["intervals"][0]["reason"]


def test_an_undefined_score_is_null_with_its_reason(small: Questions) -> None:
    """No reference answer of no: no balanced accuracy, no interval, and the command would exit with 1."""
    from cxrspec.report_file import is_undefined

    small.freeze([(*row[:6], row[6].replace("No", "Yes")) for row in ROWS])
    found = small.scores()["closed_balanced_accuracy"]
    assert (None, "no closed-ended question answered no") == (found["value"], found["reason"])
    assert is_undefined(small.score())


def test_metrics_of_questions_that_a_subset_lacks_fail_nothing(small: Questions) -> None:
    """No closed-ended question at all: no accuracy, with the reason, and no system is to blame for it."""
    from cxrspec.report_file import is_undefined

    small.freeze([(*row[:6], "it is small") for row in ROWS])
    found = small.scores()["closed_accuracy"]
    assert (None, "no closed-ended question", False) == (found["value"], found["reason"], found["applies"])
    assert not is_undefined(small.score())


def test_where_nothing_is_open_ended_no_grades_are_needed(small: Questions) -> None:
    """All closed-ended: the overall grade is the share of right answers, nothing waits for a grader, nothing fails."""
    from cxrspec.report.leaderboard import leaderboard
    from cxrspec.report_file import is_undefined

    small.freeze([(*row[:6], row[6] if row[4] == "Presence" else "Yes") for row in ROWS])
    found = small.scores(answers_csv(dict.fromkeys(ANSWERS, "yes")))
    assert pytest.approx(5 / 7) == found["overall_grade"]["value"] == found["closed_accuracy"]["value"]
    assert "read as yes or no" == found["overall_grade"]["basis"]
    for name in ("open_exact_match", "open_token_f1", "open_mean_grade"):
        assert (None, "no open-ended question") == (found[name]["value"], found[name]["reason"])
    report = small.score()
    assert not is_undefined(report)
    assert not any("nobody has graded" in note for note in report["notes"])
    row = leaderboard(SMALL, small.registry)["systems"][0]
    assert ("scored", found["overall_grade"]["value"]) == (row["state"], row["scores"]["overall_grade"]["value"])


def test_v1_longer_answers_gain_nothing(small: Questions) -> None:
    """V1: an answer that holds both words, or `no` inside others, is right about nothing."""
    small.freeze()
    found = small.scores(answers_csv(dict.fromkeys(ANSWERS, "Normal, yes and no, note that yes is possible")))
    assert (0.0, 4) == (found["closed_accuracy"]["value"], found["closed_accuracy"]["n_undecided"])
    assert 0.0 == found["closed_accuracy_lenient"]["value"]


def test_v9_empty_answers_are_wrong_and_counted(small: Questions) -> None:
    """V9: nothing is an answer, of its own kind."""
    small.freeze()
    found = small.scores(answers_csv(dict.fromkeys(ANSWERS, "")))
    assert (0.0, 4, 0) == tuple(found["closed_accuracy"][key] for key in ("value", "n_empty", "n_undecided"))
    assert (0.0, 3) == (found["open_token_f1"]["value"], found["open_token_f1"]["n_empty"])


def direct_interval(values: list[float | None], groups: list[str], low: float, high: float) -> tuple[float, float]:
    """Return the percentiles of the mean over resampled cases, in plain Python, as the documented stream draws them."""
    cases = sorted(set(groups))
    means = []
    for block in range(2):
        for drawn in resample_indices("5:test:group", block, len(cases)):
            found = [
                v for case in drawn for v, g in zip(values, groups, strict=True) if g == cases[case] and v is not None
            ]
            if found:
                means.append(sum(found) / len(found))
    return tuple(np.quantile(means, [low, high], method="linear"))  # type: ignore[return-value]


def test_intervals_resample_cases_with_all_their_questions(small: Questions) -> None:
    """The interval of the accuracy is that of a direct computation that draws whole cases."""
    small.freeze()
    interval = small.scores()["closed_accuracy"]["intervals"][0]
    right: list[float | None] = [1, 0, None, None, 0, None, 1]  # by item id; open-ended questions count for nothing
    groups = ["s1", "s1", "s1", "s2", "s2", "s3", "s3"]
    assert pytest.approx(direct_interval(right, groups, 0.05, 0.95), abs=1e-12) == (interval["low"], interval["high"])
    assert ("group", 0) == (interval["unit"], interval["n_left_out"])


def test_a_case_without_such_questions_is_drawn_all_the_same(small: Questions) -> None:
    """Resamples of one case only may have nothing to divide by; they are left out and counted."""
    rows = [row for row in ROWS if row[:5] != ("s2", "b", "test", "Edema", "Presence")]
    small.freeze(rows)
    answers = {"s1-q01": "no", "s1-q02": "no", "s1-q03": "x", "s2-q01": "x", "s3-q01": "x", "s3-q02": "yes"}
    interval = small.scores(answers_csv(answers))["closed_accuracy"]["intervals"][0]
    drawn = [row for block in range(2) for row in resample_indices("5:test:group", block, 3).tolist()]
    assert sum(set(row) == {1} for row in drawn) == interval["n_left_out"] > 0


def test_a_constant_reading_does_not_depend_on_the_reference(small: Questions) -> None:
    """Two answers of one reading have one score, and the phrase list is part of the definition's digest."""
    first = small.freeze().lock.definition_digest
    yes = small.scores(answers_csv(dict.fromkeys(ANSWERS, "yes")), "a")["closed_accuracy"]
    assert (
        yes["value"]
        == small.scores(answers_csv(dict.fromkeys(ANSWERS, "**YES**, it is")), "b")["closed_accuracy"]["value"]
    )
    path = small.registry.spec_path(SMALL)
    path.write_text(path.read_text().replace("not seen, absent]", "not seen]"))
    assert "phrases.negative" in refusal(lambda: small.frozen(tsv(ROWS)))
    assert first == small.registry.read_lock(SMALL).definition_digest


# contradictions of a definition


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kind: accuracy", "kind: token_f1", "reading belongs to accuracy"),
        ("kind: token_f1", "kind: accuracy", "these need one: strict or lenient"),
        ("name: closed_yes_rate", "name: closed_accuracy", "is also called 'closed_accuracy'"),
        ("refusal: [i cannot", "refusal: [Not Seen", "'Not Seen' stands under negative too"),
        ("affirmative: [there is", 'affirmative: ["?"', "no word in '?'"),
        ("size: Size}", "size: [Size, Location]}", "'Location' names both location and size"),
        (", condition: condition", "", "columns.condition and conditions go together"),
        ("{by: leading_yes_no}", "{by: column}", "column, one_of (closed-ended) and open belong to 'by: column'"),
        ("  test: {pool", "  other: {pool", "a metric scores 'test' unless it names a subset"),
    ],
)
def test_a_contradiction_in_the_definition_is_refused(small: Questions, old: str, new: str, message: str) -> None:
    """Before any data is opened."""
    assert message in refusal(lambda: small.freeze(ROWS, (old, new)))
