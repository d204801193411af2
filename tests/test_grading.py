"""Grading: the blinded sheet, its way back, what graders make of the scores, and the audit of it all."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import cohen_kappa_score

from cxrspec.audit import audit_system
from cxrspec.digest import sha256_hex
from cxrspec.errors import CxrspecError
from cxrspec.grades import Grader
from cxrspec.grading import grading_sheet, record_grades
from cxrspec.metrics import resample_indices
from cxrspec.report.leaderboard import leaderboard
from project import Project
from questions import ANSWERS, REAL, ROWS, SMALL, SPECS, Questions, answers_csv, published_rows, tsv

GRADES = {"s1-q03": "1", "s2-q01": "0.5", "s3-q01": "0"}
HUMAN = Grader(name="A. Reader", kind="human")
PROMPT = sha256_hex(b"Grade the answer.")
JUDGE = Grader(name="judge-x 2026-01", kind="judge", prompt_sha256=PROMPT)


@pytest.fixture
def graded(tmp_path: Path) -> Questions:
    """A frozen project with the answers of `ours`, none graded yet."""
    (tmp_path / "specs").mkdir()
    project = Questions(tmp_path)
    project.freeze()
    project.submit()
    return project


def sheet_rows(project: Questions, system: str = "ours") -> list[dict[str, str]]:
    """Return the rows of a new sheet."""
    return list(csv.DictReader(io.StringIO(grading_sheet(SMALL, system, project.registry).decode())))


def filled(project: Questions, grades: dict[str, str], system: str = "ours") -> list[dict[str, str]]:
    """Return the rows of a sheet with a grade per item, found by the answer that it shows."""
    by_answer = {ANSWERS[item]: grade for item, grade in grades.items()}
    return [{**row, "grade": by_answer[row["answer"]]} for row in sheet_rows(project, system)]


def as_csv(rows: list[dict[str, str]]) -> bytes:
    """Return a sheet as it comes back."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def record(project: Questions, rows: list[dict[str, str]], grader: Grader = HUMAN, system: str = "ours") -> Path:
    """Read a sheet back."""
    return record_grades(SMALL, system, project.registry, sheet=("sheet.csv", as_csv(rows)), grader=grader)


def refusal(run: Callable[[], object]) -> str:
    """Return the text of a refusal."""
    with pytest.raises(CxrspecError) as refused:
        run()
    return str(refused.value)


def graded_scores(report: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Return the graded scores by metric and grader."""
    return {(one["metric"], one["grader"]["name"]): one for one in report["graded"]}


# the sheet


def test_the_sheet_is_blinded(graded: Questions) -> None:
    """Open-ended questions only; neither the system, the item, nor the case stands on it."""
    text = grading_sheet(SMALL, "ours", graded.registry).decode()
    assert ["row", "question", "reference_answer", "image", "answer", "grade", "comment"] == text.splitlines()[0].split(
        ","
    )
    assert sorted(ANSWERS[item] for item in GRADES) == sorted(row["answer"] for row in sheet_rows(graded))
    assert not any(word in text for word in ("ours", "s1", "s2", "s3", "Is there edema"))


def test_the_sheet_is_shuffled_by_seed_hash(graded: Questions) -> None:
    """The order is that of SHA-256 of `<seed>:<item_id>`; writing it again gives the same bytes."""
    order = sorted(GRADES, key=lambda item: hashlib.sha256(f"5:{item}".encode()).digest())
    assert [ANSWERS[item] for item in order] == [row["answer"] for row in sheet_rows(graded)]
    assert grading_sheet(SMALL, "ours", graded.registry) == grading_sheet(SMALL, "ours", graded.registry)


def test_a_sheet_of_another_system_is_refused(graded: Questions) -> None:
    """Rows are named after the answers' file too, so two sheets are never taken for each other."""
    graded.submit(answers_csv(ANSWERS | {"s1-q01": "Yes."}), "theirs")
    assert "a row that was not there in 3 rows" in refusal(
        lambda: record(graded, filled(graded, GRADES), system="theirs")
    )


def test_answers_stand_on_the_sheet_as_they_are(graded: Questions) -> None:
    """Commas, quotes, line breaks and formulas survive the way to the grader and back."""
    odd = '=1+1, "left"\nbase'
    data = io.StringIO()
    csv.writer(data).writerows([("item_id", "answer"), *(ANSWERS | {"s1-q03": odd}).items()])
    graded.submit(data.getvalue().encode(), "odd", "a.csv")
    rows = [{**row, "grade": "1"} for row in sheet_rows(graded, "odd")]
    assert odd in [row["answer"] for row in rows]
    assert record(graded, rows, system="odd").is_file()


def changed(rows: list[dict[str, str]], at: int = 0, **cells: str) -> list[dict[str, str]]:
    """Return a sheet with other cells in one row."""
    return [{**row, **cells} if place == at else row for place, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: changed(rows, answer="better"), "in the column 'answer' than was given out in 1 rows: lines 2"),
        (lambda rows: changed(rows, question="Other?"), "another text in the column 'question'"),
        (lambda rows: changed(rows, reference_answer="x"), "another text in the column 'reference_answer'"),
        (lambda rows: changed(rows, image="x"), "another text in the column 'image'"),
        (lambda rows: changed(rows, row="0" * 16), "a row that was not there in 1 rows: lines 2"),
        (lambda rows: changed(rows, row="0" * 16), "1 of 3 rows are missing"),
        (lambda rows: rows[1:], "1 of 3 rows are missing"),
        (lambda rows: [*rows, rows[0]], "a row that stands there twice in 1 rows: lines 5"),
        (lambda rows: changed(rows, 1, grade=""), "no grade in 1 rows: lines 3"),
        (lambda rows: changed(rows, 1, grade="0.7"), "a grade that is none of 0, 0.5, 1 ('0.7') in 1 rows: lines 3"),
        (lambda rows: changed(rows, 1, grade="right"), "a grade that is none of 0, 0.5, 1 ('right')"),
        (lambda rows: changed(rows, 1, grade="nan"), "a grade that is none of 0, 0.5, 1 ('nan')"),
        (lambda rows: [{k: v for k, v in row.items() if k != "grade"} for row in rows], "no column 'grade'"),
    ],
)  # fmt: skip
def test_v5_a_changed_or_incomplete_sheet_is_refused(graded: Questions, change: Any, message: str) -> None:
    """V5: with the lines, and nothing is written."""
    assert message in refusal(lambda: record(graded, change(filled(graded, GRADES))))
    assert not graded.registry.grades_folder(SMALL, "ours").exists()


def test_everything_wrong_with_a_sheet_is_told_at_once(graded: Questions) -> None:
    """One report for a sheet with three faults."""
    rows = changed(changed(changed(filled(graded, GRADES), 0, grade="2"), 1, grade=""), 2, answer="x")
    message = refusal(lambda: record(graded, rows))
    assert all(word in message for word in ("none of 0, 0.5, 1", "no grade", "another text"))


def test_spreadsheets_may_change_order_line_ends_and_decimal_points(graded: Questions) -> None:
    """T5, T7: rows in any order, `0,5` behind semicolons, CRLF and a byte order mark."""
    rows = [{**row, "grade": row["grade"].replace(".", ",")} for row in filled(graded, GRADES)][::-1]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=";", lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    data = b"\xef\xbb\xbf" + text.getvalue().encode()
    path = record_grades(SMALL, "ours", graded.registry, sheet=("sheet.csv", data), grader=HUMAN)
    assert path.read_bytes() == record(graded, filled(graded, GRADES)).read_bytes()


def test_the_grades_are_a_table_by_item(graded: Questions) -> None:
    """Item, grade and comment, sorted; the record names its digest."""
    path = record(graded, changed(filled(graded, GRADES), 0, comment="close"))
    lines = path.read_text().splitlines()
    assert "item_id\tgrade\tcomment" == lines[0]
    assert [f"{item}\t{grade}" for item, grade in GRADES.items()] == [line.rpartition("\t")[0] for line in lines[1:]]
    assert sha256_hex(path.read_bytes()) in path.with_suffix(".yaml").read_text()


def test_grades_of_one_grader_never_change(graded: Questions) -> None:
    """The same again changes nothing; others need another name."""
    record(graded, filled(graded, GRADES))
    record(graded, filled(graded, GRADES))
    assert "there are other grades of A. Reader (human) already" in refusal(
        lambda: record(graded, filled(graded, GRADES | {"s1-q03": "0"}))
    )


def test_graders_of_one_file_name_are_told_apart(graded: Questions) -> None:
    """`A Reader` is not said to be `A. Reader`, whose grades stand where its own would."""
    record(graded, filled(graded, GRADES))
    other = Grader(name="A-Reader", kind="human")
    message = refusal(lambda: record(graded, filled(graded, GRADES), other))
    assert "holds the grades of A. Reader (human); a file for A-Reader (human) would be called the same" in message


def test_a_person_may_be_called_as_a_judge_s_file_is(graded: Questions) -> None:
    """A judge's file has its prompt's digest behind a dot, and no person's file has a dot."""
    record(graded, filled(graded, GRADES), JUDGE)
    person = Grader(name=f"{JUDGE.name} {PROMPT[:8]}", kind="human")
    record(graded, filled(graded, GRADES), person)
    assert {JUDGE.name, person.name} == {one["grader"]["name"] for one in graded.score()["graded"]}


def test_a_record_under_an_older_name_is_the_grader_s(graded: Questions) -> None:
    """Whatever its file is called: the same grades change nothing, others are refused."""
    path = record(graded, filled(graded, GRADES), JUDGE).with_suffix(".yaml")
    older = path.with_name(path.name.replace(f".{PROMPT[:8]}", f"-{PROMPT[:8]}"))
    path.rename(older)
    text = older.read_text().replace(path.stem, older.stem)
    older.write_text(text)
    path.with_suffix(".tsv").rename(older.with_suffix(".tsv"))
    assert older.with_suffix(".tsv") == record(graded, filled(graded, GRADES), JUDGE)
    assert "there are other grades of judge-x" in refusal(lambda: record(graded, filled(graded, SECOND), JUDGE))


def test_a_grader_has_a_name() -> None:
    """A blank is none."""
    with pytest.raises(ValueError, match="a grader needs a name"):
        Grader(name="  ", kind="human")


def test_v6_a_judge_needs_its_prompt_and_a_person_has_none() -> None:
    """V6: a judge is its name and the digest of its prompt."""
    for fields in ({"kind": "judge"}, {"kind": "human", "prompt_sha256": PROMPT}):
        with pytest.raises(ValueError, match="a judge needs prompt_sha256"):
            Grader(name="x", **fields)  # type: ignore[arg-type]


# scores


def test_graded_scores_by_hand(graded: Questions) -> None:
    """Grades 1, 0.5 and 0: mean 0.5; with 2 of 4 closed-ended right, (1.5 + 2) / 7 overall."""
    record(graded, filled(graded, GRADES))
    found = graded_scores(graded.score())
    mean, overall = found["open_mean_grade", "A. Reader"], found["overall_grade", "A. Reader"]
    assert (0.5, 3, "graded") == (mean["value"], mean["n_items"], mean["basis"])
    assert (pytest.approx(3.5 / 7), 7) == (overall["value"], overall["n_items"])
    types = {name: entry["value"] for name, entry in mean["question_types"].items()}
    assert {"location": 1.0, "size": 0.25, "presence": None} == types
    assert f"|grader:A. Reader/human/grades={mean['grader']['sha256'][:16]}|" in mean["signature"]


def test_the_interval_of_the_mean_grade_resamples_cases(graded: Questions) -> None:
    """Against a direct computation: one graded question per case."""
    import numpy as np

    record(graded, filled(graded, GRADES))
    interval = graded_scores(graded.score())["open_mean_grade", "A. Reader"]["intervals"][0]
    drawn = np.concatenate([resample_indices("5:test:group", block, 3) for block in range(2)])
    means = np.array([1, 0.5, 0])[drawn].mean(axis=1)
    assert pytest.approx(np.quantile(means, [0.05, 0.95]), abs=1e-12) == [interval["low"], interval["high"]]


def test_v6_two_judges_are_two_results(graded: Questions) -> None:
    """V6: one name with two prompts is two judges; no number mixes them, and the signatures differ."""
    other = Grader(name=JUDGE.name, kind="judge", prompt_sha256=sha256_hex(b"Grade kindly."))
    record(graded, filled(graded, GRADES), JUDGE)
    record(graded, filled(graded, dict.fromkeys(GRADES, "1")), other)
    report = graded.score()
    means = [one for one in report["graded"] if one["metric"] == "open_mean_grade"]
    assert [0.5, 1.0] == sorted(one["value"] for one in means)
    assert 2 == len({one["grader"]["prompt_sha256"] for one in means}) == len({one["signature"] for one in means})


SECOND = {"s1-q03": "1", "s2-q01": "0", "s3-q01": "0"}


def test_two_graders_have_cohens_kappa_and_alpha(graded: Questions) -> None:
    """Kappa is scikit-learn's; alpha for the ordinal grades stands beside it."""
    record(graded, filled(graded, GRADES))
    assert "agreement" not in graded.score()
    record(graded, filled(graded, SECOND), JUDGE)
    found = graded.score()["agreement"]
    peer = cohen_kappa_score([2, 1, 0], [2, 0, 0])
    assert (pytest.approx(peer), 3, None) == (found["cohen_kappa"], found["n_items"], found["reason"])
    assert 0 < found["krippendorff_alpha_ordinal"] < 1
    assert ["A. Reader", JUDGE.name] == found["graders"]


def test_agreement_is_compared_as_numbers_are(graded: Questions) -> None:
    """The last bit of a coefficient may differ between machines; more than that is another report."""
    from cxrspec.report_file import report_differences

    for grader, grades in ((HUMAN, GRADES), (JUDGE, SECOND)):
        record(graded, filled(graded, grades), grader)
    report = graded.score()
    kappa = report["agreement"]["cohen_kappa"]
    for change, differences in ((1e-14, []), (1e-3, ["agreement.cohen_kappa"])):
        other = report | {"agreement": report["agreement"] | {"cohen_kappa": kappa + change}}
        assert differences == report_differences(report, other)


def test_three_graders_have_fleiss_kappa(graded: Questions) -> None:
    """Agreement on two of three answers by all, on the third by two of three."""
    for name, grades in (("a", GRADES), ("b", SECOND), ("c", GRADES)):
        record(graded, filled(graded, grades), Grader(name=name, kind="human"))
    found = graded.score()["agreement"]
    chance = (3 / 9) ** 2 + (2 / 9) ** 2 + (4 / 9) ** 2
    assert pytest.approx(((1 + 1 / 3 + 1) / 3 - chance) / (1 - chance)) == found["fleiss_kappa"]


def test_graders_who_give_one_grade_throughout_have_no_kappa(graded: Questions) -> None:
    """Null with the reason."""
    for name in ("a", "b"):
        record(graded, filled(graded, dict.fromkeys(GRADES, "1")), Grader(name=name, kind="human"))
    found = graded.score()["agreement"]
    assert (None, None) == (found["cohen_kappa"], found["krippendorff_alpha_ordinal"])
    assert "every grade is the same" in found["reason"]


def test_the_leaderboard_shows_every_grader(graded: Questions) -> None:
    """Graded numbers stand with their grader, outside the ranking; a report without new grades is outdated."""
    from cxrspec.report.markdown import markdown

    record(graded, filled(graded, GRADES))
    graded.score()
    record(graded, filled(graded, SECOND), JUDGE)
    assert "of other grades" in leaderboard(SMALL, graded.registry)["systems"][0]["reason"]
    graded.score()
    board = leaderboard(SMALL, graded.registry)
    text = markdown(board)
    assert "| open_mean_grade on test | ours | A. Reader (human) | 0.500" in text
    assert f"{JUDGE.name} (judge, prompt {PROMPT[:16]})" in text
    assert "cohen kappa" in text
    assert all(score["signature"] in text for score in board["systems"][0]["graded"])


# audit


def states(project: Questions) -> dict[str, str]:
    """Return the state of every link of the audit of `ours`."""
    return {link.name: link.state for link in audit_system(SMALL, "ours", project.registry).links}


def test_the_audit_covers_grades(graded: Questions) -> None:
    """Held where record, grades and report agree; no such link where nobody graded."""
    graded.score()
    assert "grades" not in states(graded)
    record(graded, filled(graded, GRADES))
    graded.score()
    assert ("held", "held") == (states(graded)["grades"], states(graded)["scored again"])


def test_an_altered_grade_breaks_the_chain(graded: Questions) -> None:
    """A grade raised in the table is found by the digest of the record, and score refuses it."""
    path = record(graded, filled(graded, GRADES))
    graded.score()
    path.write_text(path.read_text().replace("s3-q01\t0", "s3-q01\t1"))
    assert "broken" == states(graded)["grades"]
    assert "has sha256" in refusal(graded.score)


def test_grades_and_record_altered_together_break_the_chain(graded: Questions) -> None:
    """The report holds the digest of the grades too, and scoring again gives other numbers."""
    path = record(graded, filled(graded, GRADES))
    graded.score()
    old = sha256_hex(path.read_bytes())
    path.write_text(path.read_text().replace("s3-q01\t0", "s3-q01\t1"))
    yaml = path.with_suffix(".yaml")
    yaml.write_text(yaml.read_text().replace(old, sha256_hex(path.read_bytes())))
    assert ("broken", "broken") == (states(graded)["grades"], states(graded)["scored again"])


@pytest.mark.parametrize("gone", [".tsv", "both"])
def test_lost_grades_are_noticed(graded: Questions, gone: str) -> None:
    """Absent grades prove nothing; a report whose graders are gone is of other grades."""
    path = record(graded, filled(graded, GRADES))
    graded.score()
    path.unlink()
    if gone == "both":
        path.with_suffix(".yaml").unlink()
    assert {".tsv": "not checked", "both": "broken"}[gone] == states(graded)["grades"]


def test_grades_of_other_answers_are_refused(graded: Questions) -> None:
    """A record that is moved to another system's folder is not of its answers."""
    path = record(graded, filled(graded, GRADES))
    graded.submit(answers_csv(ANSWERS | {"s3-q01": "huge"}), "theirs")
    folder = graded.registry.grades_folder(SMALL, "theirs")
    folder.mkdir()
    for one in (path, path.with_suffix(".yaml")):
        (folder / one.name).write_bytes(one.read_bytes())
    message = refusal(lambda: graded.score("theirs"))
    assert "they are of small-vqa@v1/ours" in message
    assert "they are of other answers than those submitted" in message


def test_a_grade_that_no_sheet_gave_is_refused(graded: Questions) -> None:
    """V5: 0.7 in a table whose record names its digest."""
    path = record(graded, filled(graded, GRADES))
    old = sha256_hex(path.read_bytes())
    path.write_text(path.read_text().replace("\t0.5", "\t0.7"))
    yaml = path.with_suffix(".yaml")
    yaml.write_text(yaml.read_text().replace(old, sha256_hex(path.read_bytes())))
    assert "0.7 is no grade; allowed are 0.0, 0.5, 1.0" in refusal(graded.score)


def test_grades_of_fewer_answers_are_refused(graded: Questions) -> None:
    """Nothing counts as 0 because nobody graded it."""
    path = record(graded, filled(graded, GRADES))
    old = sha256_hex(path.read_bytes())
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    yaml = path.with_suffix(".yaml")
    yaml.write_text(yaml.read_text().replace(old, sha256_hex(path.read_bytes())))
    assert "holds grades of 2 answers, not of exactly the 3 that are graded" in refusal(graded.score)


# the command line


def test_the_command_line_writes_reads_scores_and_audits(graded: Questions, tmp_path: Path) -> None:
    """A sheet goes out, comes back twice, and its numbers are printed with their graders."""
    project, name = Project(tmp_path), f"{SMALL}/ours"
    assert 0 == project.run("grade", name, "--to", "sheet.csv").code
    assert "read it back" in project.run("grade", name, "--to", "sheet.csv").out  # the same again
    assert "sheet.csv" == project.run("grade", name, "--to", "sheet.csv", "--json").json["sheet"]
    rows = filled(graded, GRADES)
    (tmp_path / "back.csv").write_bytes(as_csv(rows))
    (tmp_path / "prompt.txt").write_text("Grade the answer.")
    assert (
        "graded by A. Reader (human)" in project.run("grade", name, "--from", "back.csv", "--grader", "A. Reader").out
    )
    ran = project.run("grade", name, "--from", "back.csv", "--judge", "j", "--prompt", "prompt.txt", "--json")
    assert PROMPT == ran.json["grader"]["prompt_sha256"]
    out = project.run("score", name).out
    assert "open_mean_grade on test by j (judge, prompt" in out
    assert "graders agree: cohen kappa 1.000" in out
    assert 0 == project.run("audit", name).code
    assert "graded" in project.run("leaderboard", "small-vqa").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Give --to for a new sheet, or --from for a graded one."),
        (("--to", "a", "--from", "b"), "Give --to for a new sheet, or --from for a graded one."),
        (
            ("--from", "back.csv", "--grader", " "),
            "Give --grader NAME for a person, or --judge NAME with --prompt FILE.",
        ),
        (("--from", "back.csv"), "Give --grader NAME for a person, or --judge NAME with --prompt FILE."),
        (
            ("--from", "back.csv", "--judge", "x"),
            "Give --grader NAME for a person, or --judge NAME with --prompt FILE.",
        ),
        (("--from", "back.csv", "--grader", "x"), "back.csv is not a file."),
        (("--from", "b", "--judge", "x", "--prompt", "p"), "p is not a file."),
    ],
)
def test_wrong_usage_is_told(graded: Questions, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    """Exit code 2, and the words for it."""
    ran = Project(tmp_path).run("grade", f"{SMALL}/ours", *arguments)
    assert (2, True) == (ran.code, message in ran.err)


def test_a_sheet_that_is_there_is_never_overwritten(graded: Questions, tmp_path: Path) -> None:
    """Somebody may have graded on it."""
    (tmp_path / "sheet.csv").write_text("graded already")
    ran = Project(tmp_path).run("grade", f"{SMALL}/ours", "--to", "sheet.csv")
    assert (1, "graded already") == (ran.code, (tmp_path / "sheet.csv").read_text())


def test_a_restricted_sheet_needs_the_flag(tmp_path: Path) -> None:
    """Rows of a credentialed file leave the project only on purpose, with a reminder."""
    project = Questions(tmp_path, REAL)
    project.define((SPECS / REAL.benchmark / f"{REAL.version}.yaml").read_text(encoding="utf-8"))
    lock = project.frozen(tsv(published_rows())).lock
    items = project.registry.read_table(REAL, "test", lock.tables["test"]).item_ids
    project.submit(answers_csv(dict.fromkeys(items, "yes")))
    refused = Project(tmp_path).run("grade", f"{REAL}/ours", "--to", "sheet.csv")
    assert (1, True) == (refused.code, "may not be passed on" in refused.err)
    allowed = Project(tmp_path).run("grade", f"{REAL}/ours", "--to", "sheet.csv", "--restricted")
    assert (0, True) == (allowed.code, "keep it out of git" in allowed.err)


def test_a_definition_without_graded_metrics_has_nothing_to_grade(tmp_path: Path) -> None:
    """Nobody grades what no number will stand on."""
    (tmp_path / "specs").mkdir()
    project = Questions(tmp_path)
    changes = [("kind: mean_grade", "kind: token_f1"), ("kind: overall_grade", "kind: yes_rate")]
    project.freeze(ROWS, *changes)
    project.submit()
    assert "has nothing to grade" in refusal(lambda: grading_sheet(SMALL, "ours", project.registry))


def test_a_task_without_open_answers_has_nothing_to_grade(tmp_path: Path) -> None:
    """Findings are scored by numbers."""
    from project import REF, frozen_project

    project = frozen_project(tmp_path / "findings")
    assert "tiny@v1 has nothing to grade" in refusal(lambda: grading_sheet(REF, "ours", project.registry))
