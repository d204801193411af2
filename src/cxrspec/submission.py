"""Own submissions: the fields of `submission.yaml`, writing one, and reading it back against the lock.

It never opens a definition file or a source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints, ValidationError

from cxrspec.digest import sha256_hex
from cxrspec.errors import DefinitionError, Issue, RegistryError, SubmissionError, listed
from cxrspec.field_errors import field_issue
from cxrspec.fields import Fields, Identifier, Sha256, SystemName, Text
from cxrspec.reference import Reference
from cxrspec.registry import Lock, Registry
from cxrspec.strict_yaml import dump_document, load_document, located
from cxrspec.tasks import TASKS, PredictionNeed, Task

SubsetId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
HEAD_PATTERN: Final = "*"


class PredictionsFile(Fields):
    """The predictions file beside `submission.yaml`."""

    file: FileName
    sha256: Sha256


class SystemCard(Fields):
    """What the system is, in its author's words; never used for scoring."""

    model_name: Text | None = None
    weights_id: Text | None = None
    description: Text | None = None
    url: Text | None = None


class Submission(Fields):
    """A system's predictions with the reference and subset ids that they were made for."""

    format: Literal[1]
    reference: Text
    subsets: Annotated[dict[Identifier, SubsetId], Field(min_length=1)]
    system: SystemName
    protocol: Identifier
    predictions: PredictionsFile
    heads: dict[Text, Text] | None = None
    """Our column: the column of the file; `"*": "prob_*"` stands for every column, by the source's label."""
    card: SystemCard | None = None
    trained_on: Text = "unknown"
    """The training data that its author declares."""
    submitted_from: Text | None = None
    """The submission that this one repeats, made for the same subsets under another definition version."""

    def head_of(self, name: str, spellings: tuple[str, ...]) -> str | None:
        """Return the column of the file that the head map names for our column, if it names one."""
        heads = self.heads or {}
        if name in heads:
            return heads[name]
        pattern = heads.get(HEAD_PATTERN)
        return pattern.replace(HEAD_PATTERN, spellings[0]) if pattern else None


def task_of(lock: Lock) -> Task:
    """Rebuild the task of a frozen definition from its lock alone."""
    document = lock.definition
    kind = TASKS[document["task"]]
    return kind.model_validate({name: value for name, value in document.items() if name in kind.model_fields})


def load_submission(registry: Registry, reference: Reference, system: str) -> Submission:
    """Load `submission.yaml`.

    Raises:
        SubmissionError: with every field that is wrong, or if there is no such submission.
    """
    path = registry.submission_folder(reference, system) / "submission.yaml"
    name = registry.name(path)
    if not path.is_file():
        systems = registry.systems(reference)
        message = f"{reference.definition} has no submission '{system}'; it has {listed(systems) or 'none'}"
        raise SubmissionError(Issue("submission-field", name, message, "Make one with 'cxrspec submit'"))
    try:
        document, places, refused = load_document(path, shown_as=name)
    except DefinitionError as error:
        raise SubmissionError(error.issues) from None
    try:
        submission = Submission.model_validate(document)
    except ValidationError as error:
        found = [field_issue(Submission, document, detail) for detail in error.errors(include_url=False)]
        raise SubmissionError([*refused, *(located(issue, name, places) for issue in found)]) from None
    if refused:
        raise SubmissionError(refused)
    return submission


def check_submission(submission: Submission, lock: Lock, system: str) -> tuple[Task, PredictionNeed]:
    """Return the task and what the protocol needs, if the submission was made for exactly this lock.

    Raises:
        SubmissionError: if it names another definition version, subset id or system, or an unknown protocol or head.
    """
    task = task_of(lock)
    where = f"submission {lock.reference}/{system}"
    issues = list(_reference_issues(submission, lock, where, system))
    if submission.protocol not in task.protocol_names:
        allowed = listed(task.protocol_names)
        message = f"unknown protocol '{submission.protocol}'; {lock.reference} allows {allowed}"
        raise SubmissionError([*issues, Issue("submission-field", where, message)])
    need = task.prediction_need(submission.protocol)
    for name in need.subsets:
        given, frozen = submission.subsets.get(name), lock.subset_ids[name]
        if given != frozen:
            message = f"subset {name} is {frozen}, the submission names {given or 'none'}"
            hint = "Make the predictions for the frozen subset and submit again"
            issues.append(Issue("submission-reference", where, message, hint))
    known = {*(column.name for column in need.columns), HEAD_PATTERN}
    if unknown := [name for name in submission.heads or {} if name not in known]:
        message = f"heads name {listed(unknown)}; {lock.reference} has {listed(sorted(known - {HEAD_PATTERN}), 20)}"
        issues.append(Issue("submission-field", where, message))
    if issues:
        raise SubmissionError(issues)
    return task, need


def read_predictions_file(registry: Registry, reference: Reference, submission: Submission) -> tuple[Path, bytes]:
    """Return the path and bytes of the predictions, proved by the sha256 that the submission names.

    Raises:
        RegistryError: if the file is not on this machine, or holds other bytes.
    """
    path = registry.submission_folder(reference, submission.system) / submission.predictions.file
    where = registry.name(path)
    if not path.is_file():
        hint = "Run 'dvc pull', or make them again with 'dvc repro'"
        raise RegistryError(Issue("table-missing", where, "is not on this machine", hint))
    data = path.read_bytes()
    if (found := sha256_hex(data)) != submission.predictions.sha256:
        message = f"has sha256 {found[:16]}..., submission.yaml says {submission.predictions.sha256[:16]}..."
        hint = "Restore the file, or submit it again with 'cxrspec submit'"
        raise RegistryError(Issue("table-altered", where, message, hint))
    return path, data


def submission_text(submission: Submission) -> bytes:
    """Return the YAML of a submission, its fields in the order of the model."""
    return dump_document(submission.model_dump(exclude_none=True))


def _reference_issues(submission: Submission, lock: Lock, where: str, system: str) -> Iterator[Issue]:
    if submission.reference != str(lock.reference):
        message = f"it was made for {submission.reference}, not for {lock.reference}"
        hint = f"Score it there, or 'cxrspec submit {lock.reference} --from {submission.reference}/{system}'"
        yield Issue("submission-reference", where, message, hint)
    if submission.system != system:
        yield Issue("submission-field", where, f"its folder is called '{system}', its system '{submission.system}'")


def parse_heads(pairs: list[str]) -> Mapping[str, str]:
    """Read `our=theirs` pairs of the command line.

    Raises:
        SubmissionError: for every pair without a name on both sides, or a name given twice.
    """
    heads: dict[str, str] = {}
    issues = []
    for pair in pairs:
        ours, separator, theirs = pair.partition("=")
        if not (separator and ours.strip() and theirs.strip()) or ours.strip() in heads:
            message = f"'{pair}' is not our=theirs with a name on each side, each of ours once"
            issues.append(Issue("submission-field", "--head", message, "Write --head pleural_effusion=Effusion"))
        heads[ours.strip()] = theirs.strip()
    if issues:
        raise SubmissionError(issues)
    return heads
