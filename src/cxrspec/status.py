"""Own the state of a project: what waits for its maintainer, and the command that mends it.

It reads no source and writes nothing; frozen tables are hashed only on request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cxrspec.compiler import unnamed_shards
from cxrspec.definition import Definition
from cxrspec.errors import CxrspecError, Issue, RegistryError, SubmissionError, listed
from cxrspec.freeze import validate_definition
from cxrspec.loader import load_definition
from cxrspec.lock import Lock
from cxrspec.pins import FileSource
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.report.leaderboard import leaderboard
from cxrspec.submission import Submission, load_submission, need_of, submission_issues, task_of
from cxrspec.submit import repetition_issues

PROBLEMS: Final = ("faulty", "altered", "refused")
"""States that no ordinary work leads to; the others only say what comes next."""
_ALTERED: Final = ("frozen-changed", "frozen-lost", "file-unsafe", "table-altered", "lock-format")


@dataclass(frozen=True, slots=True)
class Pending:
    """One thing that waits: what it is of, in which state, why, and what to do."""

    of: Reference
    state: str
    detail: str
    command: str

    def as_json(self) -> dict[str, str]:
        """Return it as `--json` prints it."""
        return {"reference": str(self.of), "state": self.state, "detail": self.detail, "command": self.command}


def project_status(registry: Registry, *, hashing: bool = False) -> list[Pending]:
    """Return everything that waits, by definition; with `hashing` the frozen tables are proved too."""
    authored, frozen = registry.authored(), registry.frozen()
    newer = _superseding(registry, frozen)
    found: list[Pending] = []
    for reference in sorted({*authored, *frozen}, key=str):
        waiting = list(_of_file(reference, registry)) if reference in authored else []
        found += waiting
        if reference not in frozen or any(one.state == "altered" for one in waiting):
            continue
        try:
            lock = registry.read_lock(reference)
            found += [
                *_of_tables(lock, registry, hashing=hashing),
                *_of_systems(lock, registry, newer.get(reference, [])),
            ]
        except CxrspecError as error:
            found.append(_issue(reference, error.issues))
    return found


def _of_file(reference: Reference, registry: Registry) -> Iterator[Pending]:
    """Yield what waits at a definition file: its faults, an edit after freezing, or freezing itself."""
    path = registry.spec_path(reference)
    issues, _, digest = validate_definition(path, registry)
    if issues:
        yield _issue(reference, issues, command=f"cxrspec validate {registry.name(path)}")
    elif digest and not registry.lock_path(reference).is_file():
        known = registry.known_lock(reference)
        state, detail = (
            ("altered", "git knows its lock, which is not here") if known else ("authored", "not frozen yet")
        )
        definition = load_definition(path)
        unnamed = unnamed_shards(definition)
        command = f"cxrspec {'discover' if unnamed else 'freeze'} {reference}"
        yield Pending(reference, state, "; ".join([detail, *(said for _, said in unnamed)]), command)
        yield from _missing_sources(reference, definition, registry)


def _issue(reference: Reference, issues: Sequence[Issue], *, command: str = "") -> Pending:
    first, *others = issues
    state = "altered" if first.code in _ALTERED else "faulty"
    more = f" and {len(others):,} more" if others else ""
    return Pending(
        reference, state, f"{first.where}: {first.message}{more}", command if state == "faulty" else first.hint
    )


def _missing_sources(reference: Reference, definition: Definition, registry: Registry) -> Iterator[Pending]:
    """Yield the files of this machine that freezing would read, and that are not here."""
    files = [
        file.path
        for source in definition.sources.values()
        if isinstance(source, FileSource)
        for file in source.files.values()
    ]
    if missing := [name for name in files if not (registry.root / name).exists()]:
        yield Pending(
            reference, "out of reach", f"source files are not here: {listed(missing, 3)}", f"put {missing[0]} there"
        )


def _of_tables(lock: Lock, registry: Registry, *, hashing: bool) -> Iterator[Pending]:
    missing = []
    for table, digest in lock.tables.items():
        path = registry.table_path(lock.reference, table)
        if not path.is_file():
            missing.append(path)
        elif hashing:
            try:
                registry.read_table(lock.reference, table, digest)
            except RegistryError as error:
                yield _issue(lock.reference, error.issues)
    if missing:
        yield _missing(lock, lock.reference, missing, registry, otherwise=f"cxrspec freeze {lock.reference}")


def _missing(lock: Lock, of: Reference, paths: Sequence[Path], registry: Registry, *, otherwise: str) -> Pending:
    """Say how files that are not in place come back: from the cache of DVC, from its remote, or made again.

    No remote has those that may not be passed on.
    """
    names = f"{listed([path.name for path in paths], 3)} of {registry.name(paths[0].parent)}"
    recorded = [registry.dvc.recorded.get(path) for path in paths]
    cache = registry.root / ".dvc" / "cache" / "files" / "md5"
    if all(one and (cache / one.md5[:2] / one.md5[2:]).is_file() for one in recorded):
        folder = registry.name(paths[0].parent)
        return Pending(of, "not checked out", f"only in DVC's cache: {names}", f"dvc checkout --recursive {folder}")
    config = registry.root / ".dvc" / "config"
    has_remote = lock.redistribute and config.is_file() and "remote" in config.read_text(encoding="utf-8")
    return Pending(
        of, "out of reach", f"not on this machine: {names}", "dvc pull" if has_remote and any(recorded) else otherwise
    )


def _of_systems(lock: Lock, registry: Registry, newer: Sequence[Reference]) -> Iterator[Pending]:
    reference = lock.reference
    rows = leaderboard(reference, registry, ranks=False)["systems"]
    if not rows and task_of(lock).protocol_names:
        yield Pending(reference, "unscored", "no system was submitted", f"cxrspec submit {reference} --system NAME ...")
    for row in rows:
        of = Reference(reference.benchmark, reference.version, system=row["system"])
        if row["state"] == "refused":
            yield Pending(of, "refused", row["reason"], f"cxrspec score {of}")
            continue
        submission = load_submission(registry, reference, row["system"])
        if issues := _misdirected(submission, lock, row["system"]):
            yield Pending(of, "refused", issues[0].message, issues[0].hint or f"cxrspec score {of}")
            continue
        path = registry.submission_folder(reference, row["system"]) / submission.predictions.file
        if not path.is_file():
            yield _missing(lock, of, [path], registry, otherwise="dvc repro -P")
        elif row["state"] in ("unscored", "outdated"):
            yield Pending(of, row["state"], row["reason"], f"cxrspec score {of}")
        if newer and not any(row["system"] in registry.systems(one) for one in newer):
            detail = f"{reference.version} is superseded by {listed([one.version for one in newer])}"
            yield Pending(of, "stale", detail, _renewal(submission, lock, registry.read_lock(newer[0])))


def _misdirected(submission: Submission, lock: Lock, system: str) -> list[Issue]:
    """Return why a submission is not for this lock."""
    try:
        return submission_issues(submission, lock, need_of(submission, lock), system)
    except SubmissionError as error:
        return error.issues


def _renewal(submission: Submission, old: Lock, new: Lock) -> str:
    """Return the command that brings a system to a newer version: its predictions again where they fit, or new ones."""
    if not any(repetition_issues(submission, old, new)):
        return f"cxrspec submit {new.reference} --from {old.reference}/{submission.system}"
    return f"cxrspec submit {new.reference} --system {submission.system} --predictions FILE ..."


def _superseding(registry: Registry, frozen: Sequence[Reference]) -> dict[Reference, list[Reference]]:
    """Return, by version, the frozen ones that follow it along any branch, the furthest first.

    Versions that stand side by side never supersede each other; one that is not frozen yet supersedes nothing itself.
    """
    before = {one: _before(one, registry) for one in {*registry.authored(), *frozen}}
    found: dict[Reference, list[tuple[int, str, Reference]]] = {}
    for newest in frozen:
        line = [newest]
        while (older := before.get(line[-1])) and older not in line:
            found.setdefault(older, []).append((-len(line), str(newest), newest))
            line.append(older)
    return {older: [newest for *_, newest in sorted(newer, key=lambda one: one[:2])] for older, newer in found.items()}


def _before(reference: Reference, registry: Registry) -> Reference | None:
    try:
        if registry.lock_path(reference).is_file():
            older = registry.read_lock(reference).document.get("supersedes")
        else:
            older = load_definition(registry.spec_path(reference)).supersedes
    except CxrspecError:  # told where its file is looked at
        return None
    return Reference(reference.benchmark, older) if older else None
