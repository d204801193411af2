"""Own the reading of free-text answers: one per question, by item id or by case and question.

Every cell is taken as it stands: `None`, `N/A` and blanks are answers. What an answer says is no business of a reader.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cxrspec.digest import Table
from cxrspec.errors import IDS_LISTED, Issue, SourceError, SubmissionError, listed
from cxrspec.predictions.alignment import ExpectedItems, IdColumn, Rows, align
from cxrspec.predictions.heads import (
    OWN_ID_COLUMN,
    ColumnNames,
    id_issues,
    ignored_notes,
    role_issues,
    spelled,
)
from cxrspec.predictions.loading import as_submission_error, load_predictions
from cxrspec.tables.sheets import Sheet, open_sheet

GROUP_COLUMN = "group_id"


@dataclass(frozen=True, slots=True)
class ExpectedQuestions:
    """The questions that a file must answer, and how files may name them."""

    items: ExpectedItems
    by_question: Mapping[tuple[str, str], str]
    """Case and question, see `question_key`: the item; a pair that two items share is left out."""
    answer: ColumnNames
    question: ColumnNames
    group_columns: Sequence[str]
    """Accepted names of the column of cases; `group_id` always is."""
    roster: Callable[[], Table]
    """Return the roster, whose groups are the cases; called only if the file has cases outside the subset."""

    @classmethod
    def of_tables(
        cls,
        items: ExpectedItems,
        tables: Iterable[Table],
        columns: Sequence[ColumnNames],
        group_column: str | None,
        roster: Callable[[], Table],
    ) -> ExpectedQuestions:
        """Expect every question of some subsets; `columns` are those of answers and of questions."""
        keys: dict[str, tuple[str, str]] = {}
        for table in tables:
            pairs = map(question_key, table.column("group_id"), table.column("question"))
            keys |= dict(zip(table.item_ids, pairs, strict=True))
        n_items = Counter(keys.values())
        asked = {key: item for item, key in keys.items() if n_items[key] == 1}
        answer, question = columns
        return cls(items, asked, answer, question, [group_column] if group_column else [], roster)


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to a subset's questions."""

    texts: list[str]
    """[n_items] in the order of the items."""
    notes: list[Issue]
    n_rows: int
    n_left_aside: int


@dataclass(frozen=True, slots=True)
class _Named:
    """The rows of a file whose case the subset may have, with the id of each one's item."""

    ids: IdColumn
    at: Sequence[int]
    """Their numbers among all rows of the file, counted from 0."""
    used: tuple[int, ...]
    """The columns that name the question."""
    notes: tuple[Issue, ...] = ()


def question_key(case: str, question: str) -> tuple[str, str]:
    """Return what a case and a question are matched by: Unicode's composition and blanks never matter."""
    return case.strip(), " ".join(unicodedata.normalize("NFC", question).split())


@as_submission_error()
def read_answers(source: Path | bytes, expected: ExpectedQuestions, *, name: str = "") -> Answers:
    """Read one answer per question from delimited text or Parquet.

    Rows that repeat a question with the same answer (one per image of a study) are dropped with a note.

    Raises:
        SubmissionError: Everything that is wrong with the file, in one pass.
    """
    name, data = load_predictions(source, name, expected.items)
    spellings = [word for column in (expected.answer, expected.question) for word in (column.name, *column.fits)]
    ids = [*expected.items.id_columns, OWN_ID_COLUMN, GROUP_COLUMN, *expected.group_columns]
    sheet = open_sheet(data, name=name, wanted=[*ids, *spellings, expected.answer.head or ""])
    answers, issues = _answer_column(sheet, expected.answer)
    named = _named_rows(sheet, expected)
    rows = align(named.ids, expected.items)
    cells = [column[row] for column in sheet.cells(answers[:1]) for row in named.at]
    texts, repeated, conflicts = _per_item(rows, cells, len(expected.items.item_ids))
    issues = [*sheet.issues, *sheet.stray(), *issues, *rows.issues, *_nulls(sheet, answers[0], named, rows), *conflicts]
    if issues:
        raise SubmissionError(issues)
    notes = [*ignored_notes(sheet, [*answers, *named.used], expected.items), *named.notes, *rows.notes, *repeated]
    if kind := sheet.kinds.get(answers[0]):
        message = f"the answers are stored as {kind}, and read as the texts that these are written as"
        example = f": '{cells[0]}'" if cells else ""
        notes.append(Issue("note", f"{name} column '{sheet.heads[answers[0]]}'", message + example))
    n_left_aside = rows.n_left_aside + len(sheet.lines) - len(named.at)
    return Answers(texts, notes, len(sheet.lines), n_left_aside)


def _answer_column(sheet: Sheet, column: ColumnNames) -> tuple[list[int], list[Issue]]:
    """Return the position of the answers, or why there is none; raises SourceError where no column fits."""
    names = [column.head] if column.head else [column.name, *column.fits]
    found = spelled(sheet, names) if column.head is None else [at for at, head in sheet.heads.items() if head in names]
    issues = list(role_issues(sheet, found, "answer", names))
    hint = "Or say which it is: --head answer=COLUMN (heads in submission.yaml)"
    issues = [replace(issue, hint=f"{issue.hint}. {hint}") for issue in issues]
    if not found:
        raise SourceError(issues)
    return found[:1], issues


def _named_rows(sheet: Sheet, expected: ExpectedQuestions) -> _Named:
    """Find the column of item ids, or else those of cases and questions; raises SourceError where neither is there."""
    ids = spelled(sheet, [OWN_ID_COLUMN, *expected.items.id_columns])
    if len(ids) > 1:
        raise SourceError(id_issues(sheet, ids, expected.items))
    if ids:
        (cells,) = sheet.cells(ids)
        return _Named(IdColumn(sheet.name, sheet.lines, cells), range(len(cells)), (ids[0],))
    groups = spelled(sheet, [*expected.group_columns, GROUP_COLUMN])
    questions = spelled(sheet, [expected.question.name, *expected.question.fits])
    if len(groups) == len(questions) == 1:
        return _by_question(sheet, groups[0], questions[0], expected)
    issues = [
        *role_issues(sheet, groups, "case", [*expected.group_columns, GROUP_COLUMN]),
        *role_issues(sheet, questions, "question", [expected.question.name, *expected.question.fits]),
    ]
    hint = "Answers are named by item_id, or by case and question together"
    raise SourceError(replace(issue, hint=f"{issue.hint}. {hint}") for issue in issues)


def _by_question(sheet: Sheet, group_at: int, question_at: int, expected: ExpectedQuestions) -> _Named:
    """Find the item of every row by its case and question; rows of other known cases are left aside with a note."""
    keys = [question_key(*pair) for pair in zip(*sheet.cells([group_at, question_at]), strict=True)]
    ours = {case for case, _ in expected.by_question}
    others = {case for case, _ in keys} - ours
    known = set(expected.roster().column("group_id")) if others else set()
    at = [row for row, (case, _) in enumerate(keys) if case not in others or case not in known]
    ids = [expected.by_question.get(keys[row], ": ".join(keys[row])) for row in at]
    notes = []
    if n_aside := len(keys) - len(at):
        notes.append(Issue("note", sheet.name, f"rows of cases outside the subset left aside: {n_aside:,}"))
    lines = [sheet.lines[row] for row in at]
    return _Named(IdColumn(sheet.name, lines, ids), at, (group_at, question_at), tuple(notes))


def _per_item(rows: Rows, cells: Sequence[str], n_items: int) -> tuple[list[str], list[Issue], list[Issue]]:
    """Return the answer of every item, with notes on rows that repeat one and issues of those that contradict one."""
    first: dict[int, int] = {}
    repeated, differing = 0, []
    for row, (item, at) in enumerate(zip(rows.items, rows.at, strict=True)):
        other = first.setdefault(item, row)
        if other != row:
            repeated += 1
            if cells[rows.at[other]] != cells[at]:
                differing.append((other, row))
    texts = [""] * n_items
    for item, row in first.items():
        texts[item] = cells[rows.at[row]]
    notes = []
    if repeated:
        notes.append(Issue("note", rows.ids.file, f"repeated rows with the same answer dropped: {repeated:,}"))
    return texts, notes, list(_conflicts(rows, differing))


def _nulls(sheet: Sheet, answer: int, named: _Named, rows: Rows) -> Iterator[Issue]:
    """Yield the questions whose answer is a null: nothing says that an empty answer was meant."""
    ours = {named.at[at] for at in rows.at}
    if nulls := [row for row in sheet.nulls(answer) if row in ours]:
        of = {named.at[at]: rows.ids.cells[at] for at in rows.at}
        message = f"no answer (null) in {len(nulls):,} rows, of {listed([of[row] for row in nulls], IDS_LISTED)}"
        hint = "Answer every question; an empty answer is an empty text, and is counted as such"
        yield Issue("prediction-missing", f"{sheet.name}:{sheet.lines[nulls[0]]}", message, hint, sheet.lines[nulls[0]])


def _conflicts(rows: Rows, differing: Sequence[tuple[int, int]]) -> Iterator[Issue]:
    if differing:
        found = [f"'{rows.ids.cells[rows.at[b]]}' in lines {rows.line(a)} and {rows.line(b)}" for a, b in differing]
        line = rows.line(differing[0][1])
        message = f"a question answered twice, differently, in {len(differing):,} rows: {listed(found, IDS_LISTED)}"
        hint = "Give one answer per question; several images of a study are one question"
        yield Issue("prediction-duplicate", f"{rows.ids.file}:{line}", message, hint, line)
