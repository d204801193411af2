"""Own the reference columns of questions: text, reference answer, whether closed-ended, type, condition, images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from pydantic import model_validator

from cxrspec.errors import IDS_LISTED, DefinitionError, Issue, listed
from cxrspec.field_errors import shown
from cxrspec.fields import Column, ColumnRef, Fields, Texts
from cxrspec.spelling import plain_name
from cxrspec.tasks.task import ItemColumns

if TYPE_CHECKING:
    from cxrspec.tasks.vqa import VqaTask

COLUMNS: Final = ("question", "answer", "closed_ended", "question_type", "condition", "image")
BETWEEN_IMAGES: Final = ";"


class QuestionColumns(Fields):
    """The columns of a table with one row per question (and image), by what they hold."""

    question: ColumnRef
    answer: ColumnRef
    """The reference answer."""
    question_type: ColumnRef | None = None
    condition: ColumnRef | None = None
    """The condition that the case was chosen for."""
    image: ColumnRef | None = None
    """Rows of one question may differ in it: several images of a study are one item."""

    @property
    def declared(self) -> list[Column]:
        """The columns that are there."""
        columns = (self.question, self.answer, self.question_type, self.condition, self.image)
        return [column for column in columns if column is not None]


class ClosedEnded(Fields):
    """Which questions are answered yes or no."""

    by: Literal["leading_yes_no", "column"]
    """`leading_yes_no`: those whose reference answer begins with yes or no; `column`: as a column of the file says."""
    column: ColumnRef | None = None
    one_of: Texts | None = None
    """The cells of the column that say so; case, blanks, `_` and `-` never matter."""
    open: Texts | None = None
    """The cells that say open-ended; any other is refused. Absent only from locks of before it was asked for."""

    @model_validator(mode="after")
    def _whole(self) -> ClosedEnded:
        if {self.column is not None, self.one_of is not None} != {self.by == "column"} or (
            self.open and not self.column
        ):
            raise ValueError("column, one_of (closed-ended) and open belong to 'by: column', and it needs them")
        if both := set(map(plain_name, self.one_of or ())) & set(map(plain_name, self.open or ())):
            raise ValueError(f"{listed(sorted(both))} cannot say both closed-ended and open-ended")
        return self


def decode_questions(task: VqaTask, items: ItemColumns) -> list[list[str]]:
    """Return the reference columns, in the order of `COLUMNS`; texts stand as they are in the file.

    Raises:
        DefinitionError: with every cell that is empty or that the definition does not know, and every closed-ended
            question whose reference answer is neither yes nor no.
    """
    from cxrspec.metrics import words

    faults = _Faults(items)
    columns = task.columns
    questions, answers = items.cells(columns.question), items.cells(columns.answer)
    for column, cells, what in ((columns.question, questions, "question"), (columns.answer, answers, "answer")):
        faults.note(column, [row for row, cell in enumerate(cells) if not cell.strip()], f"the {what} is empty")
    wordless = [row for row, cell in enumerate(answers) if cell.strip() and not words(cell)]
    faults.note(columns.answer, wordless, "the answer has no word, so that an empty answer would be right")
    decoded = [
        list(questions),
        list(answers),
        _closed(task, items, answers, faults),
        _named(items, columns.question_type, task.question_types or {}, faults, "question type"),
        _named(items, columns.condition, task.conditions or {}, faults, "condition"),
        _images(items, columns.image),
    ]
    if faults.issues:
        raise DefinitionError(faults.issues)
    return decoded


class _Faults:
    """The issues found so far, one per kind of fault."""

    def __init__(self, items: ItemColumns) -> None:
        self.items = items
        self.issues: list[Issue] = []

    def note(self, column: Column, rows: Sequence[int], fault: str, hint: str = "") -> None:
        """Note a fault of the cells of some rows, if there are any."""
        if rows:
            named = listed([self.items.item_ids[row] for row in rows], IDS_LISTED)
            message = f"{fault}, for {len(rows):,} of {len(self.items.item_ids):,} items: {named}"
            self.issues.append(Issue("value-unknown", self.items.place(column, rows[0]), message, hint))


def _closed(task: VqaTask, items: ItemColumns, answers: Sequence[str], faults: _Faults) -> list[str]:
    """Return `1` for the closed-ended questions and `0` for the others."""
    from cxrspec.metrics import leading_polarity, words

    rule = task.closed_ended
    if rule.column:
        closed = _by_column(rule.column, rule, items, faults)
    else:
        closed = [words(answer)[:1] in (["yes"], ["no"]) for answer in answers]
    undecided = [
        row
        for row, (answer, is_closed) in enumerate(zip(answers, closed, strict=True))
        if is_closed and leading_polarity(answer) not in ("yes", "no")
    ]
    fault = "a closed-ended question whose reference answer does not begin with either yes or no"
    faults.note(task.columns.answer, undecided, fault, "Mend closed_ended, or pin the file that it was written for")
    return ["1" if is_closed else "0" for is_closed in closed]


def _by_column(column: Column, rule: ClosedEnded, items: ItemColumns, faults: _Faults) -> list[bool]:
    """Return which questions a column calls closed-ended; a cell that the definition does not know is a fault."""
    kinds = ((True, rule.one_of or ()), (False, rule.open or ()))
    said = {plain_name(text): is_closed for is_closed, texts in kinds for text in texts}
    cells = items.cells(column)
    for text in sorted(text for text in set(cells) if rule.open and plain_name(text) not in said):
        rows = [row for row, cell in enumerate(cells) if cell == text]
        declared = f"one_of {listed(rule.one_of or ())} and open {listed(rule.open or ())}"
        faults.note(column, rows, f"{shown(text)} says neither closed- nor open-ended; declared are {declared}")
    return [said.get(plain_name(cell), False) for cell in cells]


def _named(
    items: ItemColumns, column: Column | None, names: Mapping[str, Sequence[str]], faults: _Faults, what: str
) -> list[str]:
    """Return our name for every cell, blank where the file has no such column."""
    if column is None:
        return [""] * len(items.item_ids)
    ours = {plain_name(spelling): name for name, spellings in names.items() for spelling in (name, *spellings)}
    cells = items.cells(column)
    for text in sorted(set(cells)):
        if plain_name(text) not in ours:
            rows = [row for row, cell in enumerate(cells) if cell == text]
            faults.note(column, rows, f"unknown {what} {shown(text)}; declared are {listed(names)}")
    return [ours.get(plain_name(cell), "") for cell in cells]


def _images(items: ItemColumns, column: Column | None) -> list[str]:
    """Return the images of every question in code-point order, joined by `;`."""
    if column is None:
        return [""] * len(items.item_ids)
    return [BETWEEN_IMAGES.join(sorted({cell.strip() for (cell,) in rows} - {""})) for rows in items.rows([column])]
