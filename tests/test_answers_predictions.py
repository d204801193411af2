"""Files of free-text answers: one per question, named by item id or by case and question, every cell as it stands."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from cxrspec.errors import CxrspecError
from questions import ANSWERS, ROWS, SMALL, Questions, answers_csv, tsv

IDS = {
    (case, question): f"{case}-q{at:02d}"
    for case in ("s1", "s2", "s3")
    for at, question in enumerate(sorted(row[5] for row in ROWS if row[0] == case), start=1)
}
BY_QUESTION = [(case, question, ANSWERS[item]) for (case, question), item in IDS.items()]
HEAD = ("study_id", "question", "answer")


@pytest.fixture
def small(tmp_path: Path) -> Questions:
    """A frozen project with seven test questions about three cases."""
    (tmp_path / "specs").mkdir()
    project = Questions(tmp_path)
    project.freeze()
    return project


def refusal(run: Callable[[], object]) -> str:
    """Return the text of a refusal."""
    with pytest.raises(CxrspecError) as refused:
        run()
    return str(refused.value)


def values(small: Questions, data: bytes, system: str = "other") -> list[float | None]:
    """Return every value that a file scores."""
    return [one["value"] for one in small.scores(data, system).values()]


def test_case_and_question_name_an_answer_as_well_as_its_id(small: Questions) -> None:
    """V10: the key is study and question; both files have one score, in any row order."""
    assert values(small, b"", "by-id") == values(small, tsv(BY_QUESTION[::-1], HEAD).encode())


def test_blanks_and_composition_of_a_question_never_matter(small: Questions) -> None:
    """T8: what looks equal is equal."""
    rows = [(f" {case}", f"{question.replace(' ', '  ')} ", answer) for case, question, answer in BY_QUESTION]
    assert values(small, b"", "by-id") == values(small, tsv(rows, ("group_id", "question", "answer")).encode())


def test_parquet_is_read_too(small: Questions) -> None:
    """The same answers from Parquet, an empty one among them, have the same scores."""
    answers = ANSWERS | {"s1-q01": ""}
    found = small.scores(as_parquet(list(answers), list(answers.values())))["closed_accuracy"]
    assert (0.25, 1) == (found["value"], found["n_empty"])


def as_parquet(items: list[str], answers: list[object]) -> bytes:
    """Return answers as a Parquet file."""
    stream = io.BytesIO()
    parquet.write_table(pa.table({"item_id": items, "answer": answers}), stream)
    return stream.getvalue()


def test_a_null_is_no_answer(small: Questions) -> None:
    """Nothing is filled in: the rows are counted and named."""
    data = as_parquet(list(ANSWERS), [None if at in (0, 3) else "yes" for at in range(len(ANSWERS))])
    message = refusal(lambda: small.submit(data))
    assert "no answer (null) in 2 rows, of s1-q01, s2-q01. Answer every question" in message


def test_a_null_for_a_question_of_another_split_is_left_aside(small: Questions) -> None:
    """Only what is scored must be answered."""
    data = as_parquet([*ANSWERS, "s4-q01"], [*ANSWERS.values(), None])
    assert any("left aside" in note for note in small.submit(data))


@pytest.mark.parametrize(("value", "text", "kind"), [(True, "1", "bool"), (2.5, "2.5", "double"), (3, "3", "int64")])
def test_answers_that_are_no_texts_are_noted(small: Questions, value: object, text: str, kind: str) -> None:
    """What they are stored as, and the text that is read."""
    first = small.submit(as_parquet(list(ANSWERS), [value] * len(ANSWERS)))[0]
    assert f"a.tsv column 'answer': the answers are stored as {kind}, and read as" in first
    assert first.endswith(f"'{text}'")


@pytest.mark.parametrize("text", ["None", "N/A", "nan", "null", "NULL", "0"])
def test_what_other_readers_take_for_nothing_is_an_answer(small: Questions, text: str) -> None:
    """Each is undecided, and none is empty."""
    found = small.scores(answers_csv(ANSWERS | {"s1-q01": text}))["closed_accuracy"]
    assert (2, 0) == (found["n_undecided"], found["n_empty"])


def test_quoted_cells_may_hold_tabs_and_line_breaks(small: Questions) -> None:
    """CSV as it is written by everyone: the answer begins with no, on its second line."""
    rows = [f'{item},"{answer}"' for item, answer in (ANSWERS | {"s1-q01": '\n""No""\tthere, is none'}).items()]
    found = small.scores("\n".join(["item_id,answer", *rows]).encode())["closed_accuracy"]
    assert 0.5 == found["value"]


def test_rows_of_several_images_with_one_answer_are_one_question(small: Questions) -> None:
    """V10: repeated answers are dropped with a note."""
    notes = small.submit(tsv([*BY_QUESTION, BY_QUESTION[0]], HEAD).encode())
    assert any("repeated rows with the same answer dropped: 1" in note for note in notes)


def test_rows_of_several_images_with_other_answers_are_refused(small: Questions) -> None:
    """V10, T9: two answers to one question, with both lines."""
    case, question, answer = BY_QUESTION[0]
    message = refusal(lambda: small.submit(tsv([*BY_QUESTION, (case, question, answer + "?")], HEAD).encode()))
    assert "a question answered twice, differently, in 1 rows: 's1-q01' in lines 2 and 9" in message


def test_questions_of_another_split_are_left_aside(small: Questions) -> None:
    """T11: known cases and ids outside the subset, with a note; they change no score."""
    more = [("s4", "Is there edema?", "yes"), ("s4", "What else?", "no")]
    notes = small.submit(tsv([*BY_QUESTION, *more], HEAD).encode(), "by-question")
    assert any("rows of cases outside the subset left aside: 2" in note for note in notes)
    assert any("left aside: 1" in note for note in small.submit(answers_csv(ANSWERS | {"s4-q01": "no"}), "by-id"))
    assert 2 == small.score("by-question")["predictions"]["n_left_aside"]


@pytest.mark.parametrize("row", [("s9", "Is there edema?", "yes"), ("s1", "Is there a fracture?", "no")])
def test_an_unknown_case_or_question_is_refused(small: Questions, row: tuple[str, str, str]) -> None:
    """T11: neither is left aside, or guessed."""
    message = refusal(lambda: small.submit(tsv([*BY_QUESTION, row], HEAD).encode()))
    assert f"'{row[0]}: {row[1]}' in line 9" in message


def test_a_missing_answer_is_refused(small: Questions) -> None:
    """T10: nothing is scored on a part of the questions."""
    message = refusal(lambda: small.submit(tsv(BY_QUESTION[1:], HEAD).encode()))
    assert "1 of 7 items missing (14.3 % of small-vqa@v1:test): s1-q01" in message


def test_the_answer_column_may_be_named(small: Questions) -> None:
    """`--head answer=COLUMN`, where the file calls it otherwise or has two that fit."""
    rows = [(*row[:2], "reference", row[2]) for row in BY_QUESTION]
    data = tsv(rows, ("study_id", "question", "answer", "prediction")).encode()
    assert "2 answer columns: 'answer' (column 3), 'prediction' (column 4)" in refusal(lambda: small.submit(data))
    small.submit(data, heads={"answer": "prediction"})
    assert 0.5 == small.score()["scores"][0]["value"]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (("item_id", "question", "text"), "no answer column; the file has item_id, question, text"),
        (("id", "text", "answer"), "no case column; the file has id, text, answer"),
        (("study_id", "text", "answer"), "Answers are named by item_id, or by case and question together"),
    ],
)
def test_a_missing_column_is_named_with_those_of_the_file(
    small: Questions, header: tuple[str, ...], message: str
) -> None:
    """Every role says which names it may have."""
    assert message in refusal(lambda: small.submit(tsv(BY_QUESTION, header).encode()))


def test_the_study_column_alone_is_no_item_id(small: Questions) -> None:
    """Where ids are numbered, the column that items share names none of them."""
    message = refusal(
        lambda: small.submit(tsv([(row[0], row[2]) for row in BY_QUESTION], ("study_id", "answer")).encode())
    )
    assert "no question column" in message


def test_a_question_that_two_items_share_needs_its_id(tmp_path: Path) -> None:
    """A file with ids of its own may ask one thing twice: case and question then name neither, and the id does."""
    (tmp_path / "specs").mkdir()
    project = Questions(tmp_path)
    table = tsv([ROWS[0], (*ROWS[0][:6], "No"), *ROWS[1:]]).splitlines()
    with_ids = "\n".join([f"{table[0]}\tqid", *(f"{line}\tq{at}" for at, line in enumerate(table[1:]))]) + "\n"
    project.freeze(with_ids, ("{column: study_id, form: text, numbered_by: question}", "{column: qid, form: text}"))
    answers = {f"q{at}": "no" for at in range(8)}
    project.submit(tsv(list(answers.items()), ("qid", "answer")).encode())
    by_question = [(*line.split("\t")[:1], line.split("\t")[5], "no") for line in table[1:9]]
    assert "'s1: Is there edema?'" in refusal(lambda: project.submit(tsv(by_question, HEAD).encode(), "other"))


def test_an_answer_file_is_repeated_under_another_version(small: Questions) -> None:
    """`submit --from`: the same subset ids under a definition version with other metrics."""
    from cxrspec.freeze import freeze
    from cxrspec.reference import Reference
    from cxrspec.sources import Store
    from cxrspec.submit import repeat, submit

    small.submit()
    text = small.registry.spec_path(SMALL).read_text().replace("definition_version: v1", "definition_version: v2")
    new = Reference("small-vqa", "v2")
    small.registry.spec_path(new).write_text(text.replace("level: 0.9", "level: 0.8"))
    freeze(new, small.registry, Store(small.root / "cache", root=small.root, offline=True))
    assert "ours" == submit(repeat(SMALL, "ours", new, small.registry), small.registry)[0].system
