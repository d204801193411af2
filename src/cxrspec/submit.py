"""Own the making of submissions: predictions read and refused before anything is written, then stored whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from cxrspec.digest import sha256_hex
from cxrspec.errors import Issue, SubmissionError, listed
from cxrspec.files import write_whole
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.score import read_predictions, read_subsets
from cxrspec.submission import (
    PredictionsFile,
    Submission,
    SystemCard,
    check_submission,
    load_submission,
    read_predictions_file,
    submission_text,
    task_of,
)

SUFFIXES: Final = (".csv", ".tsv", ".txt", ".gz", ".zip", ".parquet", ".npz")


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
    card: SystemCard | None = None
    trained_on: str = "unknown"
    submitted_from: str | None = None


def submit(request: Request, registry: Registry) -> tuple[Submission, tuple[Issue, ...]]:
    """Check a submission and write `submission.yaml` and its predictions; return it with the reader's notes.

    Raises:
        SubmissionError: with everything that is wrong, also if the system has another submission already.
        RegistryError: if the definition is not frozen, or a table is missing or altered.
    """
    lock = registry.read_lock(request.reference)
    task = task_of(lock)
    if request.protocol not in task.protocol_names:
        message = f"unknown protocol '{request.protocol}'; {lock.reference} allows {listed(task.protocol_names)}"
        raise SubmissionError(Issue("submission-field", "--protocol", message))
    need = task.prediction_need(request.protocol)
    suffix = "".join(one for one in Path(request.file_name).suffixes if one.lower() in SUFFIXES).lower() or ".csv"
    submission = Submission(
        format=1,
        reference=str(lock.reference),
        subsets={name: lock.subset_ids[name] for name in need.subsets},
        system=request.system,
        protocol=request.protocol,
        predictions=PredictionsFile(file=f"predictions{suffix}", sha256=sha256_hex(request.data)),
        heads=dict(request.heads) or None,
        card=request.card,
        trained_on=request.trained_on,
        submitted_from=request.submitted_from,
    )
    check_submission(submission, lock, request.system)
    read = read_predictions(submission, lock, registry, read_subsets(lock, need, registry), request.data)
    folder = registry.submission_folder(lock.reference, request.system)
    with registry.writing():
        _refuse_other(folder / "submission.yaml", submission_text(submission), registry)
        write_whole(folder / submission.predictions.file, request.data)
        write_whole(folder / "submission.yaml", submission_text(submission))
    return submission, read.notes


def repeat(old: Reference, system: str, new: Reference, registry: Registry) -> Request:
    """Return the request that repeats a submission under another definition version.

    Raises:
        SubmissionError: unless every subset id and prompt is the same in both versions.
    """
    submission = load_submission(registry, old, system)
    old_lock, new_lock = registry.read_lock(old), registry.read_lock(new)
    _, need = check_submission(submission, old_lock, system)
    issues = []
    for name in need.subsets:
        ours, theirs = old_lock.subset_ids[name], new_lock.subset_ids.get(name)
        if ours != theirs:
            message = f"subset {name} is {theirs or 'absent'} in {new_lock.reference}, {ours} in {old_lock.reference}"
            hint = "Make predictions for the new subset and submit those"
            issues.append(Issue("submission-reference", f"--from {old}/{system}", message, hint))
    prompts = [
        lock.definition["protocols"].get(submission.protocol, {}).get("prompts") for lock in (old_lock, new_lock)
    ]
    if prompts[0] != prompts[1]:
        message = f"the prompts of {submission.protocol} differ between {old_lock.reference} and {new_lock.reference}"
        issues.append(Issue("submission-reference", f"--from {old}/{system}", message))
    if issues:
        raise SubmissionError(issues)
    _, data = read_predictions_file(registry, old, submission)
    request = Request(new, system, submission.protocol, data, submission.predictions.file)
    return replace(
        request,
        heads=submission.heads or {},
        card=submission.card,
        trained_on=submission.trained_on,
        submitted_from=f"{old_lock.reference}/{system}",
    )


def _refuse_other(path: Path, text: bytes, registry: Registry) -> None:
    if path.is_file() and path.read_bytes() != text:
        message = f"the system '{path.parent.name}' has another submission already"
        hint = "Choose another --system name; a submission is not overwritten"
        raise SubmissionError(Issue("submission-field", registry.name(path), message, hint))
