"""Own the chain of evidence: each link re-derived and compared. Writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from cxrspec.compiler import compile_definition
from cxrspec.digest import short_id
from cxrspec.errors import CxrspecError, SubmissionError, listed
from cxrspec.freeze import changed_fields, check_frozen, lock_document
from cxrspec.grades import grades_paths, load_grades
from cxrspec.loader import load_definition
from cxrspec.lock import Lock, parse_lock
from cxrspec.overlap import is_counted, overlap_of
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.report.board import overlap_text
from cxrspec.report_file import read_report, report_differences
from cxrspec.score import evaluate_submission
from cxrspec.sources import Store
from cxrspec.submission import (
    Submission,
    load_submission,
    need_of,
    read_predictions_file,
    submission_issues,
)

State = Literal["held", "broken", "not checked"]

ABSENT: Final = frozenset({"table-missing", "source-unreachable", "source-access", "git-unreadable"})
"""Codes that say that something is not here, which proves nothing either way."""


@dataclass(frozen=True, slots=True)
class Link:
    """One link of the chain: what was compared, and what came of it."""

    name: str
    state: State
    detail: str


@dataclass
class Audit:
    """The chain behind one definition version, or behind one system's report on it."""

    reference: Reference
    links: list[Link] = field(default_factory=list)
    basis: dict[str, Any] = field(default_factory=dict)
    """What the numbers stand on: digests, subset ids with counts, sources."""

    def is_sound(self, *, strict: bool = False) -> bool:
        """Whether no link is broken; with `strict`, whether every link is held."""
        allowed = {"held"} if strict else {"held", "not checked"}
        return all(link.state in allowed for link in self.links)

    def as_json(self) -> dict[str, Any]:
        """Return the audit as `--json` prints it."""
        links = [{"name": link.name, "state": link.state, "detail": link.detail} for link in self.links]
        return {"reference": str(self.reference), "basis": self.basis, "links": links}


def audit_definition(reference: Reference, registry: Registry, store: Store | None = None) -> Audit:
    """Audit a frozen definition; with a store (`--deep`) it is compiled again from its sources."""
    audit = Audit(reference.definition)
    lock = _read_lock(audit, reference, registry)
    if lock is None:
        return audit
    _add(audit, "lock", lambda: _check_lock(lock))
    _add(audit, "definition", lambda: _check_definition(lock, registry))
    for table, digest in lock.tables.items():
        _add(audit, f"table {table}", partial(_check_table, lock, table, digest, registry))
    paths = [registry.lock_path(reference), *(registry.table_path(reference, table) for table in lock.tables)]
    _add(audit, "dvc", lambda: _check_dvc(paths, registry))
    _add(audit, "commit", lambda: _check_commit(lock, registry))
    if store:
        _add(audit, "compiled again", lambda: _check_compiled(lock, registry, store))
    return audit


def systems_to_audit(reference: Reference, registry: Registry) -> list[str]:
    """Return the systems with a submission or a report: a report whose submission is gone proves nothing."""
    return sorted({*registry.systems(reference), *registry.scored(reference)})


def audit_system(reference: Reference, system: str, registry: Registry) -> Audit:
    """Audit a system's report: its submission, its predictions, and every number scored again."""
    audit = Audit(Reference(reference.benchmark, reference.version, system=system))
    lock = _read_lock(audit, reference, registry)
    if lock is None:
        return audit
    try:
        submission = load_submission(registry, reference, system)
    except CxrspecError as error:
        audit.links.append(Link("submission", "broken", str(error)))
        return audit
    folder = registry.submission_folder(reference, system)
    paths = [folder / name for name in submission.files]
    _add(audit, "submission", lambda: _check_submission(submission, lock, system))
    _add(audit, "predictions", lambda: _check_predictions(submission, lock, registry, system))
    grades = _add_grades(audit, submission, lock, registry)
    _add(audit, "dvc predictions", lambda: _check_dvc([*paths, *grades], registry))
    _add(audit, "scored again", lambda: _check_scored(submission, lock, registry, system))
    _add(audit, "overlap", lambda: _check_overlap(submission, lock, registry, system))
    return audit


def _add_grades(audit: Audit, submission: Submission, lock: Lock, registry: Registry) -> list[Path]:
    """Check the grades where there are records of graders, or a report that stands on some; return their places."""
    report: Mapping[str, Any] = {}
    with suppress(CxrspecError):  # a damaged report breaks the links that are about it
        report = read_report(registry, lock.reference, submission.system) or {}
    try:
        paths = grades_paths(registry, lock.reference, submission.system)
    except CxrspecError as error:
        audit.links.append(Link("grades", "broken", str(error)))
        return []
    if paths or report.get("graded"):
        _add(audit, "grades", lambda: _check_grades(submission, lock, registry, report))
    return paths


def _check_grades(submission: Submission, lock: Lock, registry: Registry, report: Mapping[str, Any]) -> Link:
    """Compare the grades with their records, with the answers that were graded, and with the report."""
    found = load_grades(registry, lock, submission)
    given = sorted(one.grader["sha256"] for one in found)
    if report and sorted({score["grader"]["sha256"] for score in report.get("graded", ())}) != sorted(set(given)):
        return _broken("the report was computed from other grades than those that are here")
    named = [f"{one.grader['name']} {short_id(one.grader['sha256'])}..." for one in found]
    return _held(f"sha256 of {listed(named)} in {'record and report' if report else 'record'} alike")


def _add(audit: Audit, name: str, check: Callable[[], Link]) -> None:
    """Run one check; an error of ours breaks the link, or leaves it unchecked where a file is only absent."""
    try:
        link = check()
    except CxrspecError as error:
        absent = all(issue.code in ABSENT for issue in error.issues)
        link = _not_checked(str(error)) if absent else _broken(str(error))
    audit.links.append(replace(link, name=name))


def _held(detail: str) -> Link:
    return Link("", "held", detail)


def _broken(detail: str) -> Link:
    return Link("", "broken", detail)


def _not_checked(detail: str) -> Link:
    return Link("", "not checked", detail)


def _read_lock(audit: Audit, reference: Reference, registry: Registry) -> Lock | None:
    try:
        lock = registry.open_lock(reference)  # one that was edited is audited too
    except CxrspecError as error:
        audit.links.append(Link("lock", "broken", str(error)))
        return None
    audit.basis = {
        "definition_digest": lock.definition_digest,
        "combined_id": lock.document["combined_id"],
        "subsets": {
            name: {"id": lock.subset_ids[name], "items": subset["items"], "groups": subset["groups"]}
            | ({"upstream_id": lock.upstream_ids[name]} if name in lock.upstream_ids else {})
            for name, subset in lock.subsets.items()
        },
        "sources": lock.document["sources"],
    }
    return lock


def _check_lock(lock: Lock) -> Link:
    """Derive the lock's own digests from its own content."""
    if fault := lock.fault():
        return _broken(fault)
    ids = ", ".join(f"{name}={value}" for name, value in lock.subset_ids.items())
    return _held(f"definition {short_id(lock.definition_digest)}, subsets {ids}")


def _check_definition(lock: Lock, registry: Registry) -> Link:
    """Compare the definition file with the definition that the lock holds."""
    path = registry.spec_path(lock.reference)
    if not path.is_file():
        return _not_checked(f"{registry.name(path)} is not here")
    notes = check_frozen(load_definition(path, shown_as=registry.name(path)), lock, registry)
    mended = f" ({notes[0].message})" if notes else ""
    return _held(f"{registry.name(path)} is the definition that was frozen{mended}")


def _check_table(lock: Lock, table: str, digest: str, registry: Registry) -> Link:
    """Hash the table, count its rows and groups, and compare all with the lock."""
    found = registry.read_table(lock.reference, table, digest)
    counted = lock.document["roster"] if table == "roster" else lock.subsets[table.partition(".")[0]]
    counts = {"items": len(found)}
    if "group_id" in found.header:
        counts["groups"] = len(set(found.column("group_id")))
    if wrong := [f"{n:,} {name}, not {counted.get(name)}" for name, n in counts.items() if counted.get(name) != n]:
        return _broken(f"its sha256 is the lock's, but it has {listed(wrong)} as the lock counts")
    return _held(f"{len(found):,} rows, sha256 {short_id(digest)}...")


def _check_dvc(paths: Sequence[Path], registry: Registry) -> Link:
    """Compare the hash that DVC recorded with each file; what is absent leaves the link unchecked."""
    recorded = registry.dvc.recorded
    absent = [registry.name(path) for path in paths if not path.is_file()]
    unknown = [registry.name(path) for path in paths if path not in recorded]
    here = [path for path in paths if path.is_file() and path in recorded]
    if wrong := [path for path in here if not recorded[path].matches(path.read_bytes())]:
        names = listed([f"{registry.name(path)} (in {registry.name(recorded[path].file)})" for path in wrong])
        return _broken(f"the MD5 that DVC recorded is another for {names}")
    if absent or unknown:
        why = [f"not on this machine: {listed(absent, 3)}"] if absent else []
        why += [f"not recorded by DVC yet: {listed(unknown, 3)}"] if unknown else []
        return _not_checked("; ".join(why))
    of = "the file" if len(paths) == 1 else f"each of {len(paths)} files"
    return _held(f"the MD5 that DVC recorded is that of {of}")


def _check_commit(lock: Lock, registry: Registry) -> Link:
    """Compare the lock with the one that was committed first: the hardest link to rewrite."""
    path = registry.lock_path(lock.reference)
    if not registry.git.is_repository:
        return _not_checked("the project is not in a git repository")
    commit = registry.git.first_commit(path)
    if commit is None:
        return _not_checked(f"{registry.name(path)} is not committed yet")
    if commit.data != lock.data:
        first = parse_lock(commit.data, lock.reference, f"commit {commit.id[:12]}")
        changed = changed_fields(dict(first.document), dict(lock.document)) or ["its text"]
        return _broken(f"commit {commit.id[:12]} froze another lock; this one differs in {listed(changed)}")
    if not commit.is_certain:
        return _not_checked(f"commit {commit.id[:12]} has this lock, but history is cut: run 'git fetch --unshallow'")
    return _held(f"frozen by commit {commit.id[:12]}")


def _check_compiled(lock: Lock, registry: Registry, store: Store) -> Link:
    """Compile the definition again from its sources and compare everything that was frozen."""
    path = registry.spec_path(lock.reference)
    if not path.is_file():
        return _not_checked(f"{registry.name(path)} is not here")
    new = lock_document(compile_definition(load_definition(path, shown_as=registry.name(path)), store))
    parts = ("definition", "sources", "roster", "subsets", "combined_id")
    changed = changed_fields({part: lock.document[part] for part in parts}, {part: new[part] for part in parts})
    if changed:
        return _broken(f"compiling the sources again gives other {listed(changed)}")
    return _held("compiling the sources again gives every digest and count of the lock")


def _check_submission(submission: Submission, lock: Lock, system: str) -> Link:
    """Compare what the submission names with the lock."""
    if issues := submission_issues(submission, lock, need_of(submission, lock), system):
        raise SubmissionError(issues)
    ids = ", ".join(f"{name}={value}" for name, value in submission.subsets.items())
    return _held(f"made for {submission.reference}, protocol {submission.protocol}, subsets {ids}")


def _check_predictions(submission: Submission, lock: Lock, registry: Registry, system: str) -> Link:
    """Compare the predictions file with the submission and with the report."""
    report = read_report(registry, lock.reference, system)
    if report and report["predictions"]["sha256"] != submission.predictions.sha256:
        return _broken("the report was computed from other predictions than the submission names")
    read_predictions_file(registry, lock.reference, system, submission.predictions)
    named = "submission and report alike" if report else "the submission"
    return _held(f"sha256 {short_id(submission.predictions.sha256)}... in {named}")


def _check_scored(submission: Submission, lock: Lock, registry: Registry, system: str) -> Link:
    """Score the submission again and compare every number of the report."""
    report = read_report(registry, lock.reference, system)
    if report is None:
        return _not_checked(f"there is no report; run 'cxrspec score {lock.reference}/{system}'")
    new, _ = evaluate_submission(submission, lock, registry, system)
    if changed := report_differences({**report, "overlap": None}, new):
        return _broken(f"scoring again gives other {listed(changed)}")
    tolerance = new["tolerance"]
    return _held(f"scoring again gives every number{f', within {tolerance:g}' if tolerance else ''}")


def _check_overlap(submission: Submission, lock: Lock, registry: Registry, system: str) -> Link:
    """Count again how much of what is scored the declared training data cover."""
    report = read_report(registry, lock.reference, system)
    if report is None:
        return _not_checked("there is no report")
    said, found = report.get("overlap"), overlap_of(submission, lock, registry)
    if is_counted(found) and ("overlap" not in report or (said and not is_counted(said))):
        why = said["reason"] if said else "it was written before overlap was counted"
        return _not_checked(f"the report has none: {why}; run 'cxrspec score {lock.reference}/{system}' again")
    if said != found:
        return _broken(f"the report says {overlap_text(said)}; counting again gives {overlap_text(found)}")
    return _held(f"overlap: {overlap_text(found)}; trained on: {submission.training_text}")
