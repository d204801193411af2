"""Own what graders said of a system's answers: the record of each grader, and its grades read back and proved.

A record names the grader, the answers it graded and the sha256 of the grades; it never changes.
"""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError, model_validator

from cxrspec.digest import Table, sha256_hex, short_id
from cxrspec.errors import DefinitionError, Issue, RegistryError, SubmissionError, listed
from cxrspec.field_errors import field_issue
from cxrspec.fields import Fields, Identifier, Sha256, SystemName, Text
from cxrspec.lock import Lock
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.strict_yaml import load_document, located
from cxrspec.submission import PredictionsFile, Submission, SubsetId, task_of
from cxrspec.tasks import Grades, Task

HEADER: Final = ("item_id", "grade", "comment")
AGAIN: Final = "Read the graded sheet again with 'cxrspec grade'"


class Grader(Fields):
    """Who graded: a person, or a judge, which is a system together with its prompt."""

    name: Text
    kind: Literal["human", "judge"]
    prompt_sha256: Sha256 | None = None
    """For a judge, the sha256 of the prompt file."""

    @model_validator(mode="after")
    def _whole(self) -> Grader:
        if not self.name.strip():
            raise ValueError("a grader needs a name; this one is blank")
        if (self.kind == "judge") != (self.prompt_sha256 is not None):
            raise ValueError("a judge needs prompt_sha256, and a human grader has none")
        return self

    def __str__(self) -> str:
        prompt = f", prompt {short_id(self.prompt_sha256)}" if self.prompt_sha256 else ""
        return f"{self.name} ({self.kind}{prompt})"


class GradeRecord(Fields):
    """One grader's grades of the answers of one submission."""

    format: Literal[1]
    reference: Text
    system: SystemName
    subsets: Annotated[dict[Identifier, SubsetId], Field(min_length=1)]
    predictions_sha256: Sha256
    """The answers that were graded."""
    grader: Grader
    grades: PredictionsFile


def grade_records(registry: Registry, reference: Reference, system: str) -> dict[Path, GradeRecord]:
    """Return the record of every grader of a system, by its place.

    Raises:
        SubmissionError: with every field that is wrong.
    """
    records: dict[Path, GradeRecord] = {}
    issues: list[Issue] = []
    for path in sorted(registry.grades_folder(reference, system).glob("*.yaml")):
        name = registry.name(path)
        document: dict[str, Any] = {}
        try:
            document, places, refused = load_document(path, shown_as=name)
            issues += refused
            records[path] = GradeRecord.model_validate(document)
        except DefinitionError as error:
            issues += error.issues
        except ValidationError as error:
            found = [field_issue(GradeRecord, document, detail) for detail in error.errors(include_url=False)]
            issues += [located(issue, name, places) for issue in found]
    if issues:
        raise SubmissionError(issues)
    return records


def load_grades(registry: Registry, lock: Lock, submission: Submission) -> list[Grades]:
    """Return the grades of every grader of a submission.

    Raises:
        SubmissionError: if a record is of other answers or another lock.
        RegistryError: if grades are missing, altered, or not those of exactly the questions to grade.
    """
    records = grade_records(registry, lock.reference, submission.system)
    issues = [issue for path, record in records.items() for issue in _issues(registry, path, record, lock, submission)]
    if issues:
        raise SubmissionError(issues)
    items = set(to_grade(lock, registry, submission)) if records else set()
    return [_read(registry, path, record, task_of(lock), items) for path, record in records.items()]


def grades_paths(registry: Registry, reference: Reference, system: str) -> list[Path]:
    """Return the places of the grades of every grader of a system."""
    records = grade_records(registry, reference, system)
    return [path.with_name(record.grades.file) for path, record in records.items()]


def to_grade(lock: Lock, registry: Registry, submission: Submission) -> dict[str, dict[str, str]]:
    """Return, by item id, what a grader must see beside the answer of each item that is graded."""
    task, found = task_of(lock), {}
    for name in sorted(submission.subsets):
        found.update(task.to_grade(registry.read_table(lock.reference, name, lock.tables[name])))
    return found


def _issues(registry: Registry, path: Path, record: GradeRecord, lock: Lock, submission: Submission) -> list[Issue]:
    """Return why a record is not of this submission to this lock."""
    wrong = []
    if (record.reference, record.system) != (str(lock.reference), submission.system):
        wrong.append(f"they are of {record.reference}/{record.system}")
    if record.subsets != submission.subsets:
        wrong.append(f"they are of subsets {listed([f'{k}={v}' for k, v in record.subsets.items()])}")
    if record.predictions_sha256 != submission.predictions.sha256:
        wrong.append("they are of other answers than those submitted")
    hint = "Grades belong to the answers that the grader saw; grade these answers"
    return [Issue("submission-reference", registry.name(path), text, hint) for text in wrong]


def _read(registry: Registry, path: Path, record: GradeRecord, task: Task, items: Set[str]) -> Grades:
    place = path.with_name(record.grades.file)
    where = registry.name(place)
    if not place.is_file():
        reference = Reference.parse(record.reference)
        hint = registry.way_back(reference, again="'cxrspec grade' with the graded sheet")
        raise RegistryError(Issue("table-missing", where, "is not on this machine", hint))
    data = place.read_bytes()
    if (found := sha256_hex(data)) != record.grades.sha256:
        message = f"has sha256 {short_id(found)}..., {path.name} says {short_id(record.grades.sha256)}..."
        raise RegistryError(Issue("table-altered", where, message, f"Restore the file. {AGAIN}"))
    by_item = _decoded(data, where, task)
    if by_item.keys() != items:
        message = f"holds grades of {len(by_item):,} answers, not of exactly the {len(items):,} that are graded"
        raise RegistryError(Issue("grade-sheet", where, message, AGAIN))
    grader = {**record.grader.model_dump(exclude_none=True), "sha256": record.grades.sha256}
    return Grades(grader, by_item)


def _decoded(data: bytes, where: str, task: Task) -> dict[str, float]:
    """Return the grade of every item; raises RegistryError for what no reading of a sheet can have written."""
    try:
        table = Table.decode(data)
        grades = dict(zip(table.item_ids, map(float, table.column("grade")), strict=True))
    except ValueError as error:
        raise RegistryError(Issue("file-unsafe", where, f"is no table of grades: {error}", AGAIN)) from None
    if wrong := sorted(set(grades.values()) - set(task.GRADES)):
        message = f"{listed(wrong)} is no grade; allowed are {listed(task.GRADES)}"
        raise RegistryError(Issue("grade-value", where, message, AGAIN))
    return grades
