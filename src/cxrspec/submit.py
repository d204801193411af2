"""Own the making of submissions: predictions read and refused before anything is written, then stored whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from cxrspec.declared import FORMS, UNKNOWN, Declared, as_meant, word_issues
from cxrspec.digest import sha256_hex
from cxrspec.errors import Issue, SubmissionError, listed
from cxrspec.files import write_whole
from cxrspec.lock import Lock
from cxrspec.reading import check_submission
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.submission import (
    IdList,
    Submission,
    SystemCard,
    load_submission,
    make_submission,
    need_of,
    read_predictions_file,
    submission_issues,
    submission_text,
    task_of,
)
from cxrspec.training import Holds, Trained, names_text

SUFFIXES: Final = (".csv", ".tsv", ".txt", ".gz", ".zip", ".parquet", ".npz")


@dataclass(frozen=True, slots=True)
class TrainingList:
    """A file of the ids that a system was trained on, one a line."""

    data: bytes
    file_name: str
    holds: Holds | None = None
    """What the ids are of; told from the roster where absent."""


@dataclass(frozen=True)
class Request:
    """What a researcher hands in."""

    reference: Reference
    system: str
    protocol: str
    data: bytes
    """The predictions file as it is."""
    file_name: str
    heads: Mapping[str, str] = field(default_factory=dict)
    head_map: str | None = None
    boxes: Mapping[str, Any] | None = None
    """For predicted boxes, the fields of a `BoxForm`."""
    card: Mapping[str, str | None] = field(default_factory=dict)
    """The fields of a `SystemCard`."""
    trained_on: str | Sequence[str | TrainingList] = UNKNOWN
    submitted_from: str | None = None


def submit(request: Request, registry: Registry) -> tuple[Submission, tuple[Issue, ...]]:
    """Check a submission and write `submission.yaml` and its predictions; return it with the reader's notes.

    Raises:
        SubmissionError: with everything that is wrong, also if the system has another submission already.
        RegistryError: if the definition is not frozen, or a table is missing or altered.
    """
    lock = registry.read_lock(request.reference)
    request, meant = _as_meant(request, registry)
    lists, issues = _training_lists(request, lock, registry)
    submission = _submission(request, lock, list(lists))
    try:
        read = check_submission(submission, lock, registry, request.system, (request.file_name, request.data))
    except SubmissionError as error:
        raise SubmissionError([*issues, *error.issues]) from error
    if issues:
        raise SubmissionError(issues)
    folder, text = registry.submission_folder(lock.reference, request.system), submission_text(submission)
    with registry.writing():
        _refuse_other(folder / "submission.yaml", text, registry)
        write_whole(folder / submission.predictions.file, request.data)
        for one, data in lists.items():
            write_whole(folder / one.file, data)
        write_whole(folder / "submission.yaml", text)
    return submission, (*read.notes, *_card_notes(submission), *meant, *_training_notes(submission, lock))


def _as_meant(request: Request, registry: Registry) -> tuple[Request, list[Issue]]:
    """Return the request with its training data as they are meant, and a note on each that was written otherwise.

    What repeats a submission is left as it was accepted.
    """
    if request.submitted_from:
        return request, []
    given = [request.trained_on] if isinstance(request.trained_on, str) else request.trained_on
    frozen = registry.frozen()
    meant = [as_meant(one, frozen) if isinstance(one, str) else one for one in given]
    notes = [
        Issue("note", f"trained_on '{one}'", f"read as '{other}'")
        for one, other in zip(given, meant, strict=True)
        if isinstance(one, str) and one.strip() != other
    ]
    return replace(request, trained_on=meant), notes


def _training_lists(request: Request, lock: Lock, registry: Registry) -> tuple[dict[IdList, bytes], list[Issue]]:
    """Return the list files under the names that they are stored under, and why other entries are refused."""
    trained, lists = Trained(lock, registry), {}
    texts = [] if request.submitted_from else [one for one in request.trained_on if isinstance(one, str)]
    issues = [issue for text in texts for issue in word_issues(text)]
    given = [one for one in request.trained_on if isinstance(one, TrainingList)]
    for number, one in enumerate(given, 1):
        try:
            holds, _ = trained.id_list(one.data, one.file_name, one.holds)
        except SubmissionError as error:
            issues += error.issues
            continue
        name = f"trained-on{f'-{number}' if len(given) > 1 else ''}{_suffix(one.file_name, '.txt')}"
        lists[IdList(file=name, sha256=sha256_hex(one.data), holds=holds)] = one.data
    return lists, issues


def _suffix(file_name: str, otherwise: str) -> str:
    """Return the endings that tell the kind of a file; nothing else of its name is kept."""
    return "".join(one.lower() for one in Path(file_name).suffixes if one.lower() in SUFFIXES) or otherwise


def _submission(request: Request, lock: Lock, lists: Sequence[IdList]) -> Submission:
    protocols = task_of(lock).protocol_names
    if not protocols:
        message = f"{lock.reference} has no protocol: it freezes items and their labels, and nothing is scored on it"
        raise SubmissionError(Issue("submission-field", "protocol", message, "Submit to a definition with protocols"))
    if request.protocol not in protocols:
        message = f"unknown protocol '{request.protocol}'; {lock.reference} allows {listed(protocols)}"
        raise SubmissionError(Issue("submission-field", "protocol", message))
    need = task_of(lock).prediction_need(request.protocol)
    entries = [request.trained_on] if isinstance(request.trained_on, str) else request.trained_on
    trained_on = [*(one for one in entries if isinstance(one, str)), *(one.model_dump() for one in lists)]
    document = {
        "format": 1,
        "reference": str(lock.reference),
        "subsets": {name: lock.subset_ids[name] for name in need.subsets},
        "system": request.system,
        "protocol": request.protocol,
        "predictions": {
            "file": f"predictions{_suffix(request.file_name, '.csv')}",
            "sha256": sha256_hex(request.data),
        },
        "heads": dict(request.heads) or None,
        "head_map": request.head_map,
        "boxes": request.boxes,
        "card": {name: text for name, text in request.card.items() if text is not None} or None,
        "trained_on": trained_on[0] if len(trained_on) == 1 else trained_on or None,
        "submitted_from": request.submitted_from,
    }
    return make_submission({name: value for name, value in document.items() if value is not None})


def _card_notes(submission: Submission) -> list[Issue]:
    """Say what keeps a reader from knowing which weights these are; a name alone may mean several."""
    card = submission.card or SystemCard()
    absent = [name for name in ("model_name", "weights_id") if getattr(card, name) is None]
    if not absent:
        return []
    options = " and ".join(f"--{name.replace('_', '-')}" for name in absent)
    message = f"the system card has no {' and no '.join(absent)}: nobody can tell which weights these are"
    return [Issue("note", submission.system, message, f"Another submission can say it with {options}")]


def _training_notes(submission: Submission, lock: Lock) -> list[Issue]:
    """Say which words about the training data no computer can compare with what is scored."""
    return [
        Issue(
            "note",
            f"trained_on '{words}'",
            "words of your own, so the overlap is unknown",
            f"To have it counted: {FORMS}; {names_text(lock)}",
        )
        for words in Declared.of(submission).words
        if words != UNKNOWN
    ]


def repeat(old: Reference, system: str, new: Reference, registry: Registry) -> Request:
    """Return the request that repeats a submission under another definition version.

    Raises:
        SubmissionError: unless every subset id and prompt is the same in both versions.
    """
    submission = load_submission(registry, old, system)
    old_lock, new_lock = registry.read_lock(old), registry.read_lock(new)
    issues = submission_issues(submission, old_lock, need_of(submission, old_lock), system)
    if issues or (issues := list(repetition_issues(submission, old_lock, new_lock))):
        raise SubmissionError(issues)
    return Request(
        new_lock.reference,
        system,
        submission.protocol,
        read_predictions_file(registry, old_lock.reference, system, submission.predictions),
        submission.predictions.file,
        heads=submission.heads or {},
        head_map=submission.head_map,
        boxes=submission.boxes.model_dump() if submission.boxes else None,
        card=submission.card.model_dump() if submission.card else {},
        trained_on=[_given_again(one, submission, registry, old_lock) for one in submission.trained_on],
        submitted_from=f"{old_lock.reference}/{system}",
    )


def _given_again(entry: str | IdList, submission: Submission, registry: Registry, lock: Lock) -> str | TrainingList:
    if isinstance(entry, str):
        return entry
    data = read_predictions_file(registry, lock.reference, submission.system, entry)
    return TrainingList(data, entry.file, entry.holds)


def repetition_issues(submission: Submission, old: Lock, new: Lock) -> Iterator[Issue]:
    """Yield why predictions made for one definition version are none for another."""
    where = f"--from {old.reference}/{submission.system}"
    for name in need_of(submission, old).subsets:
        ours, theirs = old.subset_ids[name], new.subset_ids.get(name)
        if ours != theirs:
            message = f"subset {name} is {theirs or 'absent'} in {new.reference}, {ours} in {old.reference}"
            hint = "Make predictions for the new subset and submit those"
            yield Issue("submission-reference", where, message, hint)
    settings = [lock.definition["protocols"].get(submission.protocol) or {} for lock in (old, new)]
    if settings[0].get("prompts") != settings[1].get("prompts"):
        message = f"the prompts of {submission.protocol} differ between {old.reference} and {new.reference}"
        yield Issue("submission-reference", where, message, "Make predictions with the new prompts and submit those")


def _refuse_other(path: Path, text: bytes, registry: Registry) -> None:
    if path.is_file() and path.read_bytes() != text:
        message = f"the system '{path.parent.name}' has another submission already"
        hint = "Choose another --system name; a submission is not overwritten"
        raise SubmissionError(Issue("submission-field", registry.name(path), message, hint))


def parse_heads(pairs: Sequence[str]) -> Mapping[str, str]:
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
