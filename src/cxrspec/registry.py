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
from cxrspec.files import UNFINISHED, holding
from cxrspec.lock import RESTORE, Lock, parse_lock
from cxrspec.provenance import DvcFiles, Git
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

    def frozen(self) -> list[Reference]:
        """Return the references of all locks."""
        paths = sorted((self.root / "registry").glob("*/*/lock.json"))
        return [Reference(path.parent.parent.name, path.parent.name) for path in paths]

    def systems(self, reference: Reference) -> list[str]:
        """Return the systems with a submission to a definition version."""
        return sorted(path.parent.name for path in self.folder(reference).glob("submissions/*/submission.yaml"))

    # -- reading

    def read_lock(self, reference: Reference) -> Lock:
        """Read a lock.

        Raises:
            RegistryError: if there is none, or it is damaged or of a newer format.
        """
        path = self.lock_path(reference)
        if not path.is_file():
            frozen = [str(one) for one in self.frozen()]
            message = f"{reference.definition} is not frozen; frozen are {listed(frozen) or 'none'}"
            raise RegistryError(
                Issue("frozen-unknown", self.name(path), message, f"Run 'cxrspec freeze {reference.definition}'")
            )
        return self.parse_lock(path.read_bytes(), reference)

    def parse_lock(self, data: bytes, reference: Reference) -> Lock:
        """Parse the bytes of a lock; raises RegistryError as `read_lock` does."""
        where = self.name(self.lock_path(reference))
        try:
            document = json.loads(data)
            number = document["format"]
        except (ValueError, KeyError, TypeError):
            hint = "Restore it with 'git checkout'"
            raise RegistryError(Issue("file-unsafe", where, "is not a readable lock", hint)) from None
        if not isinstance(number, int) or number > LOCK_FORMAT:
            message = f"has format {number}; this cxrspec reads formats up to {LOCK_FORMAT}"
            raise RegistryError(Issue("lock-format", where, message, "Install a newer cxrspec"))
        lock = Lock(data, document)
        if lock.reference != reference.definition:
            message = f"says that it is {lock.reference}"
            raise RegistryError(Issue("file-unsafe", where, message, "Restore it with 'git checkout'"))
        return lock

    def read_table(self, reference: Reference, table: str, digest: str) -> Table:
        """Read a frozen table and prove that it is the one with this digest.

        Raises:
            RegistryError: if it is not on this machine, or its bytes are others.
        """
        path = self.table_path(reference, table)
        if not path.is_file():
            hint = f"Run 'dvc pull', or 'cxrspec freeze {reference.definition}' where the sources are at hand"
            raise RegistryError(Issue("table-missing", self.name(path), "is not on this machine", hint))
        data = path.read_bytes()
        if (found := sha256_hex(data)) != digest:
            message = f"has sha256 {short_id(found)}..., the lock says {short_id(digest)}..."
            hint = f"Delete it and run 'dvc pull' or 'cxrspec freeze {reference.definition}'"
            raise RegistryError(Issue("table-altered", self.name(path), message, hint))
        return Table.decode(data)

    def read_subset(self, reference: Reference, *, covariates: bool = False, restricted: bool = False) -> Table:
        """Read the frozen table of `benchmark@version:subset`, or that of its covariates.

        Raises:
            RegistryError: if there is no such table here, or its rows may not be passed on and `restricted` is false.
        """
        lock = self.read_lock(reference)
        name = f"{reference.subset}.covariates" if covariates else str(reference.subset)
        if reference.subset is None or name not in lock.tables:
            tables = listed([table for table in lock.tables if table.endswith(".covariates") == covariates])
            message = f"{lock.reference} has no table '{name if reference.subset else ''}'; it has {tables}"
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
            hint = f"Restore it with 'git checkout {commit.id[:12]} -- {self.name(path)}'"
            raise RegistryError(Issue("frozen-changed", self.name(path), message, hint))
        return self.parse_lock(commit.data, reference)

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
            RegistryError: if another process holds it for a minute, naming that process.
        """
        from filelock import FileLock, Timeout

        folder = self.root / ".cxrspec"
        folder.mkdir(exist_ok=True)
        owner = folder / "registry.owner.json"
        lock = FileLock(folder / "registry.lock", timeout=BUSY_SECONDS)
        try:
            # the operating system frees the lock when its holder dies, so a stale one cannot exist
            with lock:
                for left_over in (self.root / "registry").rglob(UNFINISHED):  # of a writer that was killed
                    left_over.unlink(missing_ok=True)
                write_whole(owner, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())
                yield
        except Timeout:
            holder = owner.read_text() if owner.is_file() else "unknown"
            message = f"another process holds the registry: {holder}"
            hint = "Wait for it to end, or stop it; nothing was written"
            raise RegistryError(Issue("registry-busy", self.name(folder), message, hint)) from None
