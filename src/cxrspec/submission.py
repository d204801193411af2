"""Own submissions: the fields of `submission.yaml`, writing one, and reading it back against the lock.

It never opens a definition file or a source.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag, ValidationError, field_serializer

from cxrspec.digest import sha256_hex, short_id
from cxrspec.errors import DefinitionError, Issue, RegistryError, SubmissionError, listed
from cxrspec.field_errors import field_issue
from cxrspec.fields import FieldIssue, Fields, Identifier, PositiveCount, Sha256, ShortForm, SystemName, Text
from cxrspec.lock import Lock
from cxrspec.predictions import ColumnNames, HeadMap, heads_of, map_issues
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.strict_yaml import dump_document, field_text, load_document, located
from cxrspec.tasks import TASKS, PredictionNeed, Task

SubsetId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
HEAD_PATTERN: Final = "*"
_UNREADABLE: Final = re.compile("[^\t\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


class PredictionsFile(Fields):
    """The predictions file beside `submission.yaml`."""

    file: FileName
    sha256: Sha256


class IdList(PredictionsFile):
    """A file of the images or patients that a system was trained on, one id a line, beside the predictions."""

    holds: Literal["items", "groups"]

    def __str__(self) -> str:
        return f"{self.file} ({self.holds}, sha256 {short_id(self.sha256)})"


TrainedOn = Annotated[
    Annotated[Text, Tag("a text")] | Annotated[IdList, Tag("a list file")],
    Discriminator(lambda value: "a list file" if isinstance(value, Mapping | IdList) else "a text"),
]
"""`benchmark@version:name`, `outside benchmark@version:name`, `nothing`, a list file, or any words; see `overlap`."""


class SystemCard(Fields):
    """What the system is, in its author's words; never used for scoring."""

    model_name: Text | None = None
    weights_id: Text | None = None
    description: Text | None = None
    url: Text | None = None


class BoxForm(Fields):
    """How the coordinates of predicted boxes are written."""

    format: Literal["xywh", "xyxy"]
    """Left, top, width, height; or left, top, right, bottom."""
    width_px: PositiveCount
    height_px: PositiveCount
    """The frame whose pixels they are; the whole image is in it."""


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
    head_map: HeadMap | None = None
    """The classifier whose heads the columns are; `heads` says otherwise for single ones."""
    boxes: BoxForm | None = None
    """For predicted boxes, how they are written."""
    card: SystemCard | None = None
    trained_on: Annotated[
        list[TrainedOn],
        ShortForm(
            lambda value: [value] if isinstance(value, str | Mapping) else value, "a text nor a list", is_list=True
        ),
        Field(min_length=1),
    ] = Field(["unknown"])
    """The training data that its author declares, one entry or several."""
    submitted_from: Text | None = None
    """The submission that this one repeats, made for the same subsets under another definition version."""

    @field_serializer("trained_on")
    def _short_trained_on(self, entries: list[str | IdList]) -> Any:
        """Write a text that stands alone without a list."""
        texts = [one if isinstance(one, str) else one.model_dump() for one in entries]
        return texts[0] if len(texts) == 1 and isinstance(texts[0], str) else texts

    @property
    def files(self) -> list[str]:
        """Names of the files beside `submission.yaml`."""
        return [self.predictions.file, *(one.file for one in self.trained_on if isinstance(one, IdList))]

    @property
    def training_text(self) -> str:
        """The training data as reports and tables name it."""
        return "; ".join(map(str, self.trained_on))

    def column_names(self, name: str, spellings: tuple[str, ...]) -> ColumnNames:
        """Return which column of the file is ours: the one named in `heads`, else our head in the head map."""
        heads = self.heads or {}
        if self.head_map:
            spellings = tuple(heads_of(self.head_map, (name, *spellings))) or spellings
        pattern = heads.get(HEAD_PATTERN)
        head = heads.get(name) or (pattern.replace(HEAD_PATTERN, spellings[0]) if pattern else None)
        return ColumnNames(name, spellings, head)


def task_of(lock: Lock) -> Task:
    """Rebuild the task of a frozen definition from its lock alone.

    Raises:
        RegistryError: if this cxrspec does not know the task, or one of its settings.
    """
    document = lock.definition
    kind = TASKS.get(document.get("task", ""))
    try:
        if kind:
            return kind.model_validate({name: value for name, value in document.items() if name in kind.model_fields})
    except ValidationError:
        pass
    message = f"{lock.reference} has a task '{document.get('task')}' that this cxrspec cannot read"
    raise RegistryError(Issue("lock-format", str(lock.reference), message, "Install a newer cxrspec"))


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
    submission, issues = _validated(document)
    if submission is None or refused:
        raise SubmissionError([*refused, *(located(issue, name, places) for issue in issues)])
    return submission


def make_submission(document: Mapping[str, Any]) -> Submission:
    """Build a submission from what a person gave; raises SubmissionError with every field that is wrong."""
    document = _normalized(document)
    submission, issues = _validated(document)
    unreadable = list(_unreadable(document))
    issues = [*unreadable, *(one for one in issues if one.path not in [known.path for known in unreadable])]
    if submission is None or issues:
        raise SubmissionError(
            [Issue("submission-field", field_text(one.path), one.message, one.hint) for one in issues]
        )
    return submission


def _normalized(value: Any) -> Any:
    """Bring all text to NFC, as reading it back from YAML does."""
    if isinstance(value, Mapping):
        return {_normalized(key): _normalized(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_normalized(inner) for inner in value]
    return unicodedata.normalize("NFC", value) if isinstance(value, str) else value


def _unreadable(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[FieldIssue]:
    """Refuse characters that the file would not give back: control characters, strange line ends, broken bytes."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _unreadable(key, (*path, "name"))
            yield from _unreadable(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _unreadable(inner, (*path, i))
    elif isinstance(value, str) and (found := _UNREADABLE.search(value)):
        message = f"the invisible character U+{ord(found[0]):04X} is not allowed"
        yield FieldIssue(path, "field-value", message, "Remove it")


def _validated(document: Mapping[str, Any]) -> tuple[Submission | None, list[FieldIssue]]:
    try:
        return Submission.model_validate(document), []
    except ValidationError as error:
        return None, [field_issue(Submission, document, detail) for detail in error.errors(include_url=False)]


def need_of(submission: Submission, lock: Lock) -> PredictionNeed:
    """Return what the submission's protocol needs; raises SubmissionError if the lock has no such protocol."""
    task = task_of(lock)
    if submission.protocol in task.protocol_names:
        return task.prediction_need(submission.protocol)
    message = f"unknown protocol '{submission.protocol}'; {lock.reference} allows {listed(task.protocol_names)}"
    raise SubmissionError(Issue("submission-field", place_of_submission(lock, submission.system), message))


def submission_issues(submission: Submission, lock: Lock, need: PredictionNeed, system: str) -> list[Issue]:
    """Return why a submission was not made for exactly this lock: definition version, subset ids, system, heads."""
    where = place_of_submission(lock, system)
    return [
        *_reference_issues(submission, lock, where, system),
        *_subset_issues(submission, lock, need, where),
        *_head_issues(submission, lock, need, where),
    ]


def place_of_submission(lock: Lock, system: str) -> str:
    """Return what messages call a submission."""
    return f"submission {lock.reference}/{system}"


def _reference_issues(submission: Submission, lock: Lock, where: str, system: str) -> Iterator[Issue]:
    if submission.reference != str(lock.reference):
        message = f"it was made for {submission.reference}, not for {lock.reference}"
        hint = f"Score it there, or 'cxrspec submit {lock.reference} --from {submission.reference}/{system}'"
        yield Issue("submission-reference", where, message, hint)
    if submission.system != system:
        yield Issue("submission-field", where, f"its folder is called '{system}', its system '{submission.system}'")


def _subset_issues(submission: Submission, lock: Lock, need: PredictionNeed, where: str) -> Iterator[Issue]:
    for name in dict.fromkeys((*need.subsets, *submission.subsets)):
        given, frozen = submission.subsets.get(name), lock.subset_ids.get(name)
        if given != frozen:
            message = f"subset {name} is {frozen or 'unknown'}, the submission names {given or 'none'}"
            hint = "Make the predictions for the frozen subset and submit again"
            yield Issue("submission-reference", where, message, hint)


def _head_issues(submission: Submission, lock: Lock, need: PredictionNeed, where: str) -> Iterator[Issue]:
    heads = submission.heads or {}
    if (heads or submission.head_map) and need.kind == "embeddings":
        message = f"heads name columns of scores, and protocol {submission.protocol} takes embeddings"
        yield Issue("submission-field", where, message, "Leave heads out: every column but the id is a feature")
        return
    if submission.head_map and need.kind != "scores":
        message = f"a head map names columns of scores, and protocol {submission.protocol} takes {need.kind}"
        yield Issue("submission-field", where, message, "Leave the head map out")
    elif submission.head_map:
        others = {one.name: (one.name, *one.spellings) for one in need.columns if one.name not in heads}
        yield from map_issues(submission.head_map, others, where)
    known = [column.name for column in need.columns]
    if unknown := [name for name in heads if name not in (*known, HEAD_PATTERN)]:
        message = f"heads name {listed(unknown)}; {lock.reference} has {listed(known, 20)}"
        yield Issue("submission-field", where, message)
    if heads.get(HEAD_PATTERN, HEAD_PATTERN).count(HEAD_PATTERN) != 1:
        message = f"the pattern '{heads[HEAD_PATTERN]}' would give every finding the same column"
        yield Issue("submission-field", where, message, "Write one '*' for the source's label, as in '*=prob_*'")


def read_predictions_file(registry: Registry, reference: Reference, system: str, file: PredictionsFile) -> bytes:
    """Return the bytes of a system's predictions or list file, proved by the sha256 that its submission names.

    Raises:
        RegistryError: if the file is not on this machine, or holds other bytes.
    """
    path = registry.submission_folder(reference, system) / file.file
    where = registry.name(path)
    if not path.is_file():
        hint = registry.way_back(reference, again="'dvc repro' where a stage makes them")
        raise RegistryError(Issue("table-missing", where, "is not on this machine", hint))
    data = path.read_bytes()
    if (found := sha256_hex(data)) != file.sha256:
        message = f"has sha256 {short_id(found)}..., submission.yaml says {short_id(file.sha256)}..."
        hint = "Restore the file, or submit it again with 'cxrspec submit'"
        raise RegistryError(Issue("table-altered", where, message, hint))
    return data


def submission_text(submission: Submission) -> bytes:
    """Return the YAML of a submission, its fields in the order of the model."""
    return dump_document(submission.model_dump(exclude_none=True))
