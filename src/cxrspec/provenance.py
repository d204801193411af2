"""Own what git and DVC's plain files know of a file of the registry; reads only, and never imports dvc."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from cxrspec.errors import Issue, RegistryError


@dataclass(frozen=True, slots=True)
class Commit:
    """The first commit that added a file, and the bytes it had there."""

    id: str
    data: bytes


@dataclass(frozen=True)
class Git:
    """The git repository that holds the project, asked through the `git` command."""

    root: Path

    @cached_property
    def is_repository(self) -> bool:
        """Whether the project stands in a git work tree."""
        return self._run("rev-parse", "--is-inside-work-tree") == b"true\n"

    @cached_property
    def is_shallow(self) -> bool:
        """Whether history was cut, so that a first commit may not be the first."""
        return self._run("rev-parse", "--is-shallow-repository") == b"true\n"

    def first_commit(self, path: Path) -> Commit | None:
        """Return the first commit of HEAD's history that added the file, or None if none did."""
        if not self.is_repository:
            return None
        name = path.relative_to(self.root).as_posix()
        found = self._run("log", "--reverse", "--diff-filter=A", "--format=%H", "--", name)
        commits = (found or b"").decode().split()
        if not commits:
            return None
        data = self._run("show", f"{commits[0]}:./{name}")
        return None if data is None else Commit(commits[0], data)

    def _run(self, *arguments: str) -> bytes | None:
        try:
            done = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, check=False)
        except OSError:  # no git on this machine: nothing is known
            return None
        return done.stdout if done.returncode == 0 else None


@dataclass(frozen=True, slots=True)
class RecordedHash:
    """An MD5 that DVC recorded for a file; a label only, our own proof is SHA-256."""

    file: Path
    md5: str
    is_raw: bool
    """False for hashes of DVC before 3, which may be of text with CRLF made LF."""

    def matches(self, data: bytes) -> bool:
        """Return whether the bytes have this MD5."""
        texts = [data] if self.is_raw else [data, data.replace(b"\r\n", b"\n")]
        return any(hashlib.md5(text, usedforsecurity=False).hexdigest() == self.md5 for text in texts)


@dataclass(frozen=True)
class DvcFiles:
    """The `dvc.lock` and `.dvc` files of the project, read as the plain YAML that they are."""

    root: Path

    @cached_property
    def recorded(self) -> dict[Path, RecordedHash]:
        """The recorded hash of every file that is an out of a stage or was added.

        Raises:
            RegistryError: for a file with conflict markers, unreadable YAML, or two hashes of one path.
        """
        found: dict[Path, RecordedHash] = {}
        for file in self._files():
            for path, entry in _outs(file, self._load(file)):
                one = RecordedHash(file, entry["md5"], entry.get("hash") == "md5")
                if found.setdefault(path, one).md5 != one.md5:
                    where, name = self._name(file), self._name(path)
                    message = f"two hashes are recorded for {name}, here and in {self._name(found[path].file)}"
                    raise RegistryError(Issue("file-unsafe", where, message, _mend(file)))
        return found

    def _files(self) -> list[Path]:
        locks = [self.root / "dvc.lock", self.root / "registry" / "dvc.lock"]
        return [file for file in locks if file.is_file()] + sorted((self.root / "registry").rglob("*.dvc"))

    def _load(self, file: Path) -> Any:
        text = file.read_text(encoding="utf-8", errors="replace")
        if any(line.startswith(("<<<<<<<", ">>>>>>>")) for line in text.splitlines()):
            raise RegistryError(Issue("file-unsafe", self._name(file), "holds merge conflict markers", _mend(file)))
        try:
            return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader
        except yaml.YAMLError:
            raise RegistryError(Issue("file-unsafe", self._name(file), "is not readable", _mend(file))) from None

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def _outs(file: Path, content: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    stages = content.get("stages", {}).values() if file.name == "dvc.lock" else [content]
    for stage in stages:
        for entry in stage.get("outs") or ():
            md5 = entry.get("md5", "")
            if md5 and not md5.endswith(".dir"):
                yield (file.parent / entry["path"]).resolve(), entry


def _mend(file: Path) -> str:
    if file.name == "dvc.lock":
        return "Delete it and run 'dvc repro' again; never merge it by hand"
    return "Restore it with 'git checkout', or 'dvc add' the file again"
