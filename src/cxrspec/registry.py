"""Own the layout of `specs/` and `registry/`, and every read and write of a frozen file.

No other module builds a path below `registry/`. A write is whole or absent; reads of frozen tables prove their digest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from cxrspec.digest import Table, sha256_hex, short_id
from cxrspec.errors import Issue, RegistryError, listed
from cxrspec.files import UNFINISHED, holding, write_whole
from cxrspec.lock import RESTORE, Lock, parse_lock
from cxrspec.provenance import Commit, DvcFiles, Git
from cxrspec.reference import Reference

BUSY_SECONDS: Final = 60.0
"""How long a writer waits for another one before it gives up."""


@dataclass(frozen=True)
class Registry:
    """The registry of the project that stands in `root`."""

    root: Path

    @classmethod
    def find(cls, start: Path | None = None) -> Registry:
        """Return the registry of the nearest folder, from `start` upwards, that has a `specs` folder.

        Raises:
            RegistryError: if there is none.
        """
        here = (start or Path.cwd()).resolve()
        for folder in (here, *here.parents):
            if (folder / "specs").is_dir():
                return cls(folder)
        message = f"no folder 'specs' in {here} or above it"
        raise RegistryError(Issue("frozen-unknown", "", message, "Go to a cxrspec project, or make 'specs/' here"))

    # -- places

    def spec_path(self, reference: Reference) -> Path:
        """Return the place of the definition file."""
        return self.root / "specs" / reference.benchmark / f"{reference.version}.yaml"

    def folder(self, reference: Reference) -> Path:
        """Return the registry folder of a definition version."""
        return self.root / "registry" / reference.benchmark / reference.version

    def lock_path(self, reference: Reference) -> Path:
        """Return the place of the lock."""
        return self.folder(reference) / "lock.json"

    def table_path(self, reference: Reference, table: str) -> Path:
        """Return the place of a table: `test`, `test.covariates` or `roster`."""
        return self.folder(reference) / f"{table}.tsv"

    def submission_folder(self, reference: Reference, system: str) -> Path:
        """Return the folder of a submission."""
        return self.folder(reference) / "submissions" / system

    def grades_folder(self, reference: Reference, system: str) -> Path:
        """Return the folder of what graders said of a system's answers."""
        return self.submission_folder(reference, system) / "grades"

    def report_path(self, reference: Reference, system: str) -> Path:
        """Return the place of a report."""
        return self.folder(reference) / "reports" / f"{system}.json"

    def reported_folder(self, benchmark: str) -> Path:
        """Return the folder of the results that others reported for a benchmark."""
        return self.root / "registry" / benchmark / "reported"

    def name(self, path: Path) -> str:
        """Return a path as it is printed: relative to the project."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()

    # -- what is there

    def authored(self) -> list[Reference]:
        """Return the references of all definition files."""
        paths = sorted((self.root / "specs").glob("*/*.yaml"))
        return [Reference(path.parent.name, path.stem) for path in paths]

    def spec_paths(self) -> list[Path]:
        """Return every YAML file below `specs/`, also one that stands where no definition may stand."""
        return sorted(path for path in (self.root / "specs").rglob("*.y*ml") if path.suffix in (".yaml", ".yml"))

    def frozen(self) -> list[Reference]:
        """Return the references of all locks."""
        paths = sorted((self.root / "registry").glob("*/*/lock.json"))
        return [Reference(path.parent.parent.name, path.parent.name) for path in paths]

    def systems(self, reference: Reference) -> list[str]:
        """Return the systems with a submission to a definition version."""
        return sorted(path.parent.name for path in self.folder(reference).glob("submissions/*/submission.yaml"))

    def scored(self, reference: Reference) -> list[str]:
        """Return the systems with a report on a definition version."""
        return sorted(path.stem for path in self.folder(reference).glob("reports/*.json"))

    # -- reading

    def read_lock(self, reference: Reference) -> Lock:
        """Read a lock.

        Raises:
            RegistryError: if there is none, or it is damaged, edited, or of a newer format.
        """
        lock = self.open_lock(reference)
        if fault := lock.fault():
            raise RegistryError(Issue("file-unsafe", self.name(self.lock_path(reference)), fault, RESTORE))
        return lock

    def open_lock(self, reference: Reference) -> Lock:
        """Read a lock whose digests may not be those of its content; raises RegistryError as `read_lock` does."""
        path = self.lock_path(reference)
        if path.is_file():
            return parse_lock(path.read_bytes(), reference, self.name(path))
        if commit := self.git.first_commit(path):
            message = f"is not here, but commit {commit.id[:12]} froze it"
            raise RegistryError(Issue("frozen-lost", self.name(path), message, self._restore_hint(path, commit)))
        frozen = [str(one) for one in self.frozen()]
        message = f"{reference.definition} is not frozen; frozen are {listed(frozen) or 'none'}"
        hint = f"Run 'cxrspec freeze {reference.definition}'"
        raise RegistryError(Issue("frozen-unknown", self.name(path), message, hint))

    def read_table(self, reference: Reference, table: str, digest: str) -> Table:
        """Read a frozen table and prove that it is the one with this digest.

        Raises:
            RegistryError: if it is not on this machine, or its bytes are others.
        """
        path = self.table_path(reference, table)
        if not path.is_file():
            again = f"'cxrspec freeze {reference.definition}' where the sources are at hand"
            hint = self.way_back(reference, again=again)
            raise RegistryError(Issue("table-missing", self.name(path), "is not on this machine", hint))
        data = path.read_bytes()
        if (found := sha256_hex(data)) != digest:
            message = f"has sha256 {short_id(found)}..., the lock says {short_id(digest)}..."
            again = f"'cxrspec freeze {reference.definition}' where the sources are at hand"
            hint = f"Delete it. {self.way_back(reference, again=again)}"
            raise RegistryError(Issue("table-altered", self.name(path), message, hint))
        return Table.decode(data)

    def way_back(self, reference: Reference, *, again: str) -> str:
        """Say how a file that is not here comes back: from DVC's remote, unless it may not be passed on, or again."""
        if self.lock_path(reference).is_file() and not self.open_lock(reference).redistribute:
            return f"It may not be passed on, so no remote has it: it stays with its owner. There, run {again}"
        return f"Run 'dvc pull', or {again}"

    def read_subset(self, reference: Reference, *, covariates: bool = False, restricted: bool = False) -> Table:
        """Read the frozen table of `benchmark@version:subset`, or that of its covariates.

        Raises:
            RegistryError: if there is no such table here, or its rows may not be passed on and `restricted` is false.
        """
        lock = self.read_lock(reference)
        name = f"{reference.subset}.covariates" if covariates else str(reference.subset)
        if reference.subset is None or name not in lock.tables:
            tables = listed([table for table in lock.tables if table.endswith(".covariates") == covariates]) or "none"
            wanted = f"has no table '{name}'" if reference.subset else "is not the name of a table"
            message = f"{wanted}; {lock.reference} has {tables}"
            raise RegistryError(Issue("frozen-unknown", str(reference), message, "Write benchmark@version:subset"))
        if not (lock.redistribute or restricted):
            message = "the rows come from a source that may not be passed on"
            raise RegistryError(Issue("restricted", str(reference), message, "Add --restricted to see them yourself"))
        return self.read_table(reference, name, lock.tables[name])

    def known_lock(self, reference: Reference) -> Lock | None:
        """Return the lock that counts as frozen: the one that git's history first knew, or else the file.

        Raises:
            RegistryError: if the file is not the lock that was committed first.
        """
        path = self.lock_path(reference)
        commit = self.git.first_commit(path)
        if commit is None:
            return self.read_lock(reference) if path.is_file() else None
        if path.is_file() and path.read_bytes() != commit.data:
            message = f"is not the lock that commit {commit.id[:12]} froze"
            hint = self._restore_hint(path, commit)
            raise RegistryError(Issue("frozen-changed", self.name(path), message, hint))
        return parse_lock(commit.data, reference, self.name(path))

    def _restore_hint(self, path: Path, commit: Commit) -> str:
        return f"Restore it with 'git checkout {commit.id[:12]} -- {self.name(path)}'"

    @cached_property
    def git(self) -> Git:
        """What git knows of the project."""
        return Git(self.root)

    @cached_property
    def dvc(self) -> DvcFiles:
        """What DVC's files record."""
        return DvcFiles(self.root)

    # -- writing

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the registry for a write; other writers wait.

        Raises:
            RegistryError: if another process holds it for a minute, naming that process; or if the disk refuses.
        """
        folder = self.root / ".cxrspec"
        try:
            with holding(folder / "registry.lock", BUSY_SECONDS):
                self._remove_unfinished()
                write_whole(folder / ".gitignore", b"*\n")
                yield
        except TimeoutError as error:
            message = f"another process holds the registry: {error}"
            hint = "Wait for it to end, or stop it; nothing was written"
            raise RegistryError(Issue("registry-busy", self.name(folder), message, hint)) from None
        except OSError as error:
            where = self.name(Path(error.filename)) if error.filename else "registry"
            message = f"cannot be written: {error.strerror or error}"
            hint = "Is there room, and the right to write? What was there before is unharmed"
            raise RegistryError(Issue("disk", where, message, hint)) from error

    def _remove_unfinished(self) -> None:
        """Remove what a writer that was killed has left behind."""
        folders = [self.root / name for name in ("registry", "specs")]
        found = [path for folder in folders for path in folder.rglob(UNFINISHED)]
        for left_over in (*found, *self.root.glob(UNFINISHED)):
            left_over.unlink(missing_ok=True)
