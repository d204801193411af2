"""Own freezing: a definition compiled once, written once, compared ever after. There is no way to unfreeze."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cxrspec.claims import Claim, claim_table
from cxrspec.compiler import Compiled, compile_definition, unnamed_shards
from cxrspec.containment import check_containment
from cxrspec.definition import Definition
from cxrspec.description import description_of
from cxrspec.digest import combined_id, json_text, short_id
from cxrspec.errors import CxrspecError, DefinitionError, Issue, RegistryError, SourceError, listed
from cxrspec.files import write_whole
from cxrspec.loader import load_definition
from cxrspec.lock import LOCK_FORMAT, Lock, parse_lock
from cxrspec.needed import namesake_issues
from cxrspec.pins import FileSource
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.sources import Store
from cxrspec.sources.store import hash_file


@dataclass
class Frozen:
    """What freezing one definition came to."""

    reference: Reference
    state: Literal["frozen", "unchanged", "restored", "checked"]
    lock: Lock
    claims: list[Claim] = field(default_factory=list)
    notes: list[Issue] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as `--json` prints it."""
        claims = [claim.as_json() for claim in self.claims]
        notes = [note.as_json() for note in self.notes]
        ids = self.lock.subset_ids
        return {"reference": str(self.reference), "state": self.state, "subsets": ids, "claims": claims, "notes": notes}


def freeze(reference: Reference, registry: Registry, store: Store, *, check: bool = False) -> Frozen:
    """Freeze a definition; again with the same content it changes nothing, with other content it is refused.

    With `check` the definition is compiled again and compared, and nothing is written.

    Raises:
        DefinitionError: for a faulty definition, or data or counts that contradict it.
        RegistryError: if the frozen definition would change.
        SourceError: if a source that is needed cannot be opened.
    """
    path = registry.spec_path(reference)
    definition = load_definition(path, shown_as=registry.name(path))
    lock = registry.known_lock(reference)
    notes = definition.task.notes() + (check_frozen(definition, lock, registry) if lock else [])
    if check:
        return _check(definition, lock, registry, store, notes)
    if lock and _holds(registry, lock):
        _refuse_changed_files(definition, lock, registry, store)
        return Frozen(reference, "unchanged", lock, notes=notes)
    try:
        compiled = compile_definition(definition, store)
        notes += _claim_notes(compiled, registry)
    except (DefinitionError, SourceError) as error:
        raise type(error)([*error.issues, *namesake_issues(definition, error.issues)]) from error
    state = _write_once(registry, compiled)
    return Frozen(reference, state, registry.read_lock(reference), compiled.claims, notes)


def _check(definition: Definition, lock: Lock | None, registry: Registry, store: Store, notes: list[Issue]) -> Frozen:
    """Compile again and compare with the lock and with the tables that are here."""
    reference = definition.reference
    if lock is None:
        message = "is not frozen, so there is nothing to compare"
        raise RegistryError(Issue("frozen-unknown", str(reference), message, f"Run 'cxrspec freeze {reference}'"))
    _holds(registry, lock)
    compiled = compile_definition(definition, store)
    _refuse_difference(lock, _lock_of(compiled, registry), registry)
    return Frozen(reference, "checked", lock, compiled.claims, notes + _claim_notes(compiled, registry))


def validate_definition(path: Path, registry: Registry) -> tuple[list[Issue], list[Issue], str | None]:
    """Check one definition file without opening data; return issues, notes and, if it is fine, its digest."""
    try:
        definition = load_definition(path, shown_as=registry.name(path))
        lock = registry.known_lock(definition.reference)
        if lock is None:
            _refuse_lost(registry, definition.reference)
        notes = definition.task.notes() + (check_frozen(definition, lock, registry) if lock else [])
    except CxrspecError as error:
        return error.issues, [], None
    hint = f"Run 'cxrspec discover {definition.reference}'"
    notes += [Issue("note", where, f"{said}; freeze refuses it", hint) for where, said in unnamed_shards(definition)]
    return [], notes, definition.digest


def check_frozen(definition: Definition, lock: Lock, registry: Registry) -> list[Issue]:
    """Compare a definition with its lock; return notes on descriptive fields that were mended since.

    Raises:
        RegistryError: if anything that can change a score differs, naming the fields.
    """
    where = registry.name(registry.spec_path(definition.reference))
    if changed := changed_fields(lock.definition, definition.score_relevant()):
        message = f"{definition.reference} is frozen, and these fields were changed: {listed(changed)}"
        command = f"cxrspec new {definition.reference} NEW_VERSION"
        hint = f"Start the next version with '{command}', which takes the changes along, then restore this file"
        raise RegistryError(Issue("frozen-changed", where, message, hint))
    said = {"supersedes": lock.document.get("supersedes"), **lock.document["description"]}
    mended = changed_fields(said, {"supersedes": definition.supersedes, **description_of(definition)})
    if not mended:
        return []
    return [Issue("note", where, f"mended since it was frozen, without effect on any score: {listed(mended)}")]


def changed_fields(old: Any, new: Any, path: str = "") -> list[str]:
    """Return the paths at which two plain documents differ, the shortest that tell the difference.

    >>> changed_fields({"seed": 1, "metrics": [{"kind": "a"}]}, {"seed": 2, "metrics": [{"kind": "b"}]})
    ['metrics[0].kind', 'seed']
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        steps = [(f"{path}.{key}" if path else str(key), key) for key in sorted({*old, *new}, key=str)]
        missing = object()
        return [
            found for step, key in steps for found in changed_fields(old.get(key, missing), new.get(key, missing), step)
        ]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [found for i, (a, b) in pairs for found in changed_fields(a, b, f"{path}[{i}]")]
    return [] if old == new and type(old) is type(new) else [path]


def lock_document(compiled: Compiled) -> dict[str, Any]:
    """Return the content of `lock.json`: the score-relevant definition, source pins, digests and counts."""
    definition = compiled.definition
    digests = {name: subset.table.digest for name, subset in compiled.subsets.items()}
    return {
        "format": LOCK_FORMAT,
        "benchmark": definition.benchmark,
        "definition_version": definition.definition_version,
        "supersedes": definition.supersedes,
        "definition": definition.score_relevant(),
        "definition_digest": definition.digest,
        "description": description_of(definition),
        "sources": _sources(compiled),
        "roster": {"digest": compiled.roster.digest, **compiled.roster_counts},
        "subsets": {
            name: {
                "digest": subset.table.digest,
                "covariates_digest": subset.covariates.digest if subset.covariates else None,
                **subset.counts,
            }
            for name, subset in compiled.subsets.items()
        },
        "combined_id": combined_id(digests),
    }


def _sources(compiled: Compiled) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (source, name), opened in sorted(compiled.files.items()):
        entry = {"sha256": opened.sha256, "size": opened.size, "proof": opened.proof, **opened.pin}
        found.setdefault(source, {})[name] = entry
    return found


def _lock_of(compiled: Compiled, registry: Registry) -> Lock:
    reference = compiled.definition.reference
    return parse_lock(json_text(lock_document(compiled)), reference, registry.name(registry.lock_path(reference)))


def _tables(compiled: Compiled) -> Iterator[tuple[str, bytes]]:
    yield "roster", compiled.roster.text
    for name, subset in compiled.subsets.items():
        yield name, subset.table.text
        if subset.covariates:
            yield f"{name}.covariates", subset.covariates.text


def _holds(registry: Registry, lock: Lock) -> bool:
    """Return whether lock and tables are all here; raises RegistryError for a table that was altered."""
    present = [registry.table_path(lock.reference, table).is_file() for table in lock.tables]
    for table, digest in lock.tables.items():
        if registry.table_path(lock.reference, table).is_file():
            registry.read_table(lock.reference, table, digest)
    return all(present) and registry.lock_path(lock.reference).is_file()


def _write_once(registry: Registry, compiled: Compiled) -> Literal["frozen", "restored", "unchanged"]:
    """Write the tables, then the lock, whose rename is the moment of freezing."""
    reference = compiled.definition.reference
    new = _lock_of(compiled, registry)
    with registry.writing():
        old = registry.known_lock(reference)  # asked again: another process may have frozen it meanwhile
        if old:
            _refuse_difference(old, new, registry)
        else:
            _refuse_lost(registry, reference, new)
        for table, text in _tables(compiled):
            write_whole(registry.table_path(reference, table), text)
        for folder in ("submissions", "reports"):  # so that the pipeline's paths exist from the start
            write_whole(registry.folder(reference) / folder / ".gitkeep", b"")
        write_whole(registry.lock_path(reference), (old or new).data)
    return "restored" if old else "frozen"


def _refuse_difference(old: Lock, new: Lock, registry: Registry) -> None:
    parts = ("definition", "definition_digest", "sources", "roster", "subsets", "combined_id")
    changed = changed_fields({p: old.document[p] for p in parts}, {p: new.document[p] for p in parts})
    if changed:
        where = registry.name(registry.lock_path(old.reference))
        message = f"{old.reference} is frozen, and compiling it now gives other {listed(changed)}"
        hint = f"Restore the frozen sources, or start the next version with 'cxrspec new {old.reference} NEW_VERSION'"
        raise RegistryError(Issue("frozen-changed", where, message, hint))


def _refuse_changed_files(definition: Definition, lock: Lock, registry: Registry, store: Store) -> None:
    """Refuse a file of this machine that is not the frozen one; the definition may pin it by its place only."""
    frozen = lock.document["sources"]
    issues = []
    for name, source in definition.sources.items():
        for file_name, named in source.files.items() if isinstance(source, FileSource) else ():
            path, digest = store.root / named.path, frozen[name][file_name]["sha256"]
            if path.is_file() and (found := hash_file(path)) != digest:
                message = f"has sha256 {short_id(found)}..., {lock.reference} was frozen with {short_id(digest)}..."
                hint = f"Restore it, or start the next version with 'cxrspec new {lock.reference} NEW_VERSION'"
                issues.append(Issue("frozen-changed", f"{registry.name(path)} (sources.{name})", message, hint))
    if issues:
        raise RegistryError(issues)


def _refuse_lost(registry: Registry, reference: Reference, new: Lock | None = None) -> None:
    """Refuse to freeze anew what only DVC remembers, unless the bytes are the same."""
    path = registry.lock_path(reference)
    recorded = registry.dvc.recorded.get(path)
    if recorded and not (new and recorded.matches(new.data)):
        message = f"{registry.name(recorded.file)} knows a lock with MD5 {recorded.md5} that is not here"
        hint = f"Restore it from git or a colleague, or by 'cxrspec freeze {reference}' with the definition as it was"
        raise RegistryError(Issue("frozen-lost", registry.name(path), message, hint))


def _claim_notes(compiled: Compiled, registry: Registry) -> list[Issue]:
    """Return what was left aside, and the claims that hold nearly or could not be checked; refuse those that fail."""
    _refuse_unmet_claims(compiled, registry)
    return [*compiled.notes, *_near_claims(compiled), *check_containment(compiled, registry)]


def _refuse_unmet_claims(compiled: Compiled, registry: Registry) -> None:
    fatal = [claim for claim in compiled.claims if claim.is_fatal]
    if not fatal:
        return
    path = registry.spec_path(compiled.definition.reference)
    message = f"{len(fatal)} of {len(compiled.claims)} expected counts differ:\n{claim_table(compiled.claims)}\n"
    hint = "Mend expect where the claim is wrong, or the definition where it is right; nothing was frozen"
    raise DefinitionError(Issue("expectation", registry.name(path), message, hint))


def _near_claims(compiled: Compiled) -> list[Issue]:
    said = [(claim.path, claim.verdict) for claim in compiled.claims if not claim.is_fatal]
    return [Issue("note", f"expect.{path}", verdict) for path, verdict in said if verdict]
