"""Own grading: the sheet on which a grader sees answers without their system, and the reading back of a graded one.

A sheet that lost, gained or changed a row, or lacks a grade, is refused whole.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cxrspec.digest import Table, number_text, seed_hash_order, sha256_hex
from cxrspec.errors import IDS_LISTED, Issue, RegistryError, SourceError, SubmissionError, listed
from cxrspec.files import write_whole
from cxrspec.grades import HEADER, Grader, GradeRecord, grade_records, to_grade
from cxrspec.lock import Lock
from cxrspec.reading import check_submission
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.strict_yaml import dump_document
from cxrspec.submission import PredictionsFile, Submission, load_submission, task_of
from cxrspec.tables import Table as SheetTable
from cxrspec.tables import read_table

_ROW, _GRADE, _COMMENT, _ANSWER = "row", "grade", "comment", "answer"
_UNSAFE: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class _Question:
    """One line of a sheet: its row name, and the cells that the grader must not change."""

    item_id: str
    cells: Mapping[str, str]


def grading_sheet(reference: Reference, system: str, registry: Registry, *, restricted: bool = False) -> bytes:
    """Return the sheet of a system's answers as CSV: shuffled by seed hash, without the name of the system.

    Raises:
        SubmissionError: if there is no such submission, it is refused, or its task has nothing to grade.
        RegistryError: if a table is missing or altered, or rows may not be passed on and `restricted` is false.
    """
    lock = registry.read_lock(reference)
    if not (lock.redistribute or restricted):
        message = "the questions come from a source that may not be passed on"
        hint = "Add --restricted for a grader who may see them"
        raise RegistryError(Issue("restricted", f"{lock.reference}/{system}", message, hint))
    questions = _questions(lock, load_submission(registry, reference, system), registry)
    heads = list(next(iter(questions.values())).cells)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_ROW, *heads, _GRADE, _COMMENT])
    for row, question in questions.items():
        writer.writerow([row, *(question.cells[head] for head in heads), "", ""])
    return text.getvalue().encode()


def record_grades(
    reference: Reference, system: str, registry: Registry, *, sheet: tuple[str, bytes], grader: Grader
) -> Path:
    """Read a graded sheet (name, bytes) and write its grades with their record; return the place of the grades.

    Raises:
        SubmissionError: with everything that is wrong with the sheet, also if this grader has other grades already.
        RegistryError: if a table is missing or altered.
    """
    lock = registry.read_lock(reference)
    submission = load_submission(registry, reference, system)
    grades = _graded(sheet, _questions(lock, submission, registry), task_of(lock).GRADES)
    path = _record_path(registry, reference, system, grader)
    record = GradeRecord(
        format=1,
        reference=str(lock.reference),
        system=system,
        subsets=submission.subsets,
        predictions_sha256=submission.predictions.sha256,
        grader=grader,
        grades=PredictionsFile(file=f"{path.stem}.tsv", sha256=grades.digest),
    )
    text = dump_document(record.model_dump(exclude_none=True))
    with registry.writing():
        if path.is_file() and path.read_bytes() != text:
            message = f"there are other grades of {grader} already"
            raise SubmissionError(
                Issue("submission-field", registry.name(path), message, "Name another grader; grades never change")
            )
        write_whole(path.with_name(record.grades.file), grades.text)
        write_whole(path, text)
    return path.with_name(record.grades.file)


def _record_path(registry: Registry, reference: Reference, system: str, grader: Grader) -> Path:
    """Return the place of a grader's record: where it is already, or one that no other grader has.

    Raises:
        SubmissionError: if another grader's record stands where this one would.
    """
    records = grade_records(registry, reference, system)
    for path, record in records.items():
        if record.grader == grader:
            return path
    judge = f".{grader.prompt_sha256[:8]}" if grader.prompt_sha256 else ""  # no slug of a person's name has a dot
    path = registry.grades_folder(reference, system) / f"{_slug(grader.name)}{judge}.yaml"
    if other := records.get(path):
        message = f"holds the grades of {other.grader}; a file for {grader} would be called the same"
        hint = "Name the grader so that letters and digits differ"
        raise SubmissionError(Issue("submission-field", registry.name(path), message, hint))
    return path


def _slug(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return _UNSAFE.sub("-", plain).strip("-") or sha256_hex(name.encode())[:8]


def _questions(lock: Lock, submission: Submission, registry: Registry) -> dict[str, _Question]:
    """Return, by row name and in the order of the sheet, what the grader sees; the row name tells no item or system."""
    shown = to_grade(lock, registry, submission)
    if not shown:
        message = f"{lock.reference} has nothing to grade"
        raise SubmissionError(Issue("grade-sheet", f"{lock.reference}/{submission.system}", message))
    read = check_submission(submission, lock, registry, submission.system)
    answers: dict[str, str] = {}
    for name, table in read.tables.items():
        answers |= dict(zip(table.item_ids, read.by_subset[name], strict=True))
    items, seed = sorted(shown), lock.definition["seed"]
    questions = {}
    for at in seed_hash_order(seed, items):
        item = items[at]
        row = sha256_hex(f"{seed}:{item}:{submission.predictions.sha256}".encode())[:16]
        questions[row] = _Question(item, {**shown[item], _ANSWER: answers[item]})
    return questions


def _graded(sheet: tuple[str, bytes], questions: Mapping[str, _Question], allowed: tuple[float, ...]) -> Table:
    """Return the grades of a sheet as a table; raises SubmissionError with everything that is wrong with it."""
    name, data = sheet
    heads = list(next(iter(questions.values())).cells)
    try:
        table = read_table(data, name=name, columns=[_ROW, *heads, _GRADE, _COMMENT])
    except SourceError as error:
        raise SubmissionError(error.issues) from error
    found = _Sheet(table, questions, allowed)
    if issues := list(found.issues()):
        raise SubmissionError(issues)
    rows = [(questions[row].item_id, found.grade(at), table.columns[_COMMENT][at]) for at, row in found.rows]
    return Table.sorted(HEADER, [list(column) for column in zip(*rows, strict=True)])


@dataclass(frozen=True)
class _Sheet:
    """A sheet that came back, beside the one that was given out."""

    table: SheetTable
    questions: Mapping[str, _Question]
    allowed: tuple[float, ...]

    @property
    def rows(self) -> list[tuple[int, str]]:
        """Position and row name of every line."""
        return list(enumerate(cell.strip() for cell in self.table.columns[_ROW]))

    def grade(self, at: int) -> str | None:
        """Return the grade in a line in its one form; None where it is none of those allowed."""
        text = self.table.columns[_GRADE][at].strip().replace(",", ".")
        try:
            number = float(text)
        except ValueError:
            return None
        return number_text(number) if number in self.allowed else None

    def issues(self) -> Iterator[Issue]:
        """Yield what was changed, what is missing, and what is no grade."""
        known = [(at, row) for at, row in self.rows if row in self.questions]
        seen = [row for _, row in known]
        yield from self._issue([at for at, row in self.rows if row not in self.questions], "a row that was not there")
        again = [at for i, (at, row) in enumerate(known) if row in seen[:i]]
        yield from self._issue(again, "a row that stands there twice")
        if lost := [row for row in self.questions if row not in set(seen)]:
            message = f"{len(lost):,} of {len(self.questions):,} rows are missing: {listed(lost, IDS_LISTED)}"
            yield Issue("grade-sheet", self.table.name, message, "Grade the sheet as it was given out, all of it")
        for head in next(iter(self.questions.values())).cells:
            changed = [at for at, row in known if not self._is_same(head, at, row)]
            yield from self._issue(changed, f"another text in the column '{head}' than was given out")
        blank = [at for at, _ in known if not self.table.columns[_GRADE][at].strip()]
        yield from self._issue(blank, "no grade")
        wrong = [at for at, _ in known if at not in set(blank) and self.grade(at) is None]
        shown = [f"'{self.table.columns[_GRADE][at]}'" for at in wrong]
        allowed = listed([number_text(grade) for grade in self.allowed])
        yield from self._issue(wrong, f"a grade that is none of {allowed} ({listed(shown, 3)})", "grade-value")

    def _is_same(self, head: str, at: int, row: str) -> bool:
        return _plain(self.table.columns[head][at]) == _plain(self.questions[row].cells[head])

    def _issue(self, at: list[int], what: str, code: str = "grade-sheet") -> Iterator[Issue]:
        if at:
            lines = [self.table.line_of(row) for row in at]
            message = f"{what} in {len(at):,} rows: lines {listed(lines, IDS_LISTED)}"
            hint = "Change nothing but grade and comment, and grade every row"
            yield Issue(code, f"{self.table.name}:{lines[0]}", message, hint, lines[0])


def _plain(text: str) -> str:
    """Return a text as spreadsheets keep it: they may change line ends and outer blanks, nothing else."""
    return " ".join(unicodedata.normalize("NFC", text).split())
