"""Own what git's history and DVC's plain files know of a file of the registry; reads only, and never imports dvc."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from cxrspec.errors import Issue, RegistryError

_GIT: Final = (
    "git",
    "--no-replace-objects",
    "--literal-pathspecs",
    "-c",
    "log.follow=false",
    "-c",
    "log.showSignature=false",
)
"""Nothing that a machine is set up with may change what history says."""
_HOOK_VARIABLES: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
"""Set inside git's hooks, where they would name another repository than the one that holds the file."""


@dataclass(frozen=True, slots=True)
class Commit:
    """The first commit that added a file, and the bytes it had there."""

    id: str
    data: bytes
    is_certain: bool = True
    """False where history was cut, so that there may be an earlier one."""


@dataclass(frozen=True)
class Git:
    """The git repository that holds the project, asked through the `git` command."""

    root: Path

    @cached_property
    def is_repository(self) -> bool:
        """Whether the project stands in a git work tree; raises RegistryError if git cannot read it."""
        return self._is_cut(self.root) is not None

    def first_commit(self, path: Path) -> Commit | None:
        """Return the first commit of HEAD's history that added the file, or None if none did.

        Raises:
            RegistryError: if git cannot tell, or two separate lines of history began with other bytes.
        """
        folder, name = _anchored(path)
        is_cut = self._is_cut(folder)
        if is_cut is None or not _git(folder, "rev-parse", "-q", "--verify", "HEAD").stdout:
            return None
        # every merge against every parent: simplified history would hide a first commit that a merge overruled
        history = ("log", "--full-history", "-m", "--topo-order", "--reverse", "--no-renames")
        found = self._told(folder, *history, "--diff-filter=A", "--format=%H", "--", name).decode().split()
        ids = list(dict.fromkeys(found))
        if not ids:
            return None
        first = Commit(ids[0], self._told(folder, "show", f"{ids[0]}:./{name}"), not is_cut)
        for other in ids[1:]:
            is_later = _git(folder, "merge-base", "--is-ancestor", first.id, other).returncode == 0
            if not is_later and self._told(folder, "show", f"{other}:./{name}") != first.data:
                message = f"commits {first.id[:12]} and {other[:12]} froze different content in separate histories"
                hint = "Neither can be trusted under this name: start the next version with 'cxrspec new'"
                raise RegistryError(Issue("frozen-changed", self._name(path), message, hint))
        return first

    def _is_cut(self, folder: Path) -> bool | None:
        """Return whether the history of the repository around a folder was cut; None if there is no repository."""
        if not any((parent / ".git").exists() for parent in (folder, *folder.parents)):
            return None
        return self._told(folder, "rev-parse", "--is-shallow-repository") == b"true\n"

    def _told(self, folder: Path, *arguments: str) -> bytes:
        """Return what git says. A failure is never taken for "nothing is known": that would unfreeze."""
        done = _git(folder, *arguments)
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
            hint = "Mend that first: without git's history nobody can tell what was frozen"
            raise RegistryError(Issue("git-unreadable", self._name(folder), f"git fails here: {words[0]}", hint))
        return bytes(done.stdout)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()


def _anchored(path: Path) -> tuple[Path, str]:
    """Return the nearest folder above a file that is there, without symlinks, and the file's name seen from it."""
    folder = path.parent
    while not folder.is_dir():
        folder = folder.parent
    return folder.resolve(), path.relative_to(folder).as_posix()


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if name not in _HOOK_VARIABLES}
    try:
        return subprocess.run([*_GIT, *arguments], cwd=folder, env=environment, capture_output=True, check=False)
    except OSError as error:
        return subprocess.CompletedProcess(arguments, 127, b"", f"the command git cannot be run: {error}".encode())


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
        forgotten: list[tuple[Path, RecordedHash]] = []
        for file in self._files():
            for path, one, is_live in self._outs(file):
                if not is_live:
                    forgotten.append((path, one))
                elif found.setdefault(path, one).md5 != one.md5:
                    message = (
                        f"two hashes are recorded for {self._name(path)}, here and in {self._name(found[path].file)}"
                    )
                    raise RegistryError(Issue("file-unsafe", self._name(file), message, _mend(file)))
        for path, one in forgotten:  # of stages that dvc.yaml no longer has: they count where nothing else is known
            found.setdefault(path, one)
        return found

    def _files(self) -> list[Path]:
        found = [path for name in ("dvc.lock", "*.dvc") for path in (self.root / "registry").rglob(name)]
        return [file for file in (self.root / "dvc.lock", *sorted(found)) if file.is_file()]

    def _outs(self, file: Path) -> Iterator[tuple[Path, RecordedHash, bool]]:
        """Yield path, hash and whether its stage is one of today; folders have no hash of their own."""
        content = self._load(file)
        try:
            if file.name == "dvc.lock":
                stages = self._stages(file.with_name("dvc.yaml"))
                named = [(stage, stages.get(name.partition("@")[0])) for name, stage in content["stages"].items()]
            else:
                named = [(content, content)]
            for stage, declared in named:
                folder = file.parent / str((declared or {}).get("wdir") or ".")
                for entry in stage.get("outs") or ():
                    md5 = str(entry.get("md5") or entry.get("md5-dos2unix") or "")
                    if md5 and not md5.endswith(".dir"):
                        # not resolved: the file may be a link into the cache
                        path = Path(os.path.normpath(folder / entry["path"]))
                        yield path, RecordedHash(file, md5, entry.get("hash") == "md5"), declared is not None
        except (AttributeError, KeyError, TypeError):
            raise self._refusal(file, "is not a file as DVC writes it") from None

    def _stages(self, file: Path) -> Mapping[str, Any]:
        content = self._load(file) if file.is_file() else None
        return (content or {}).get("stages") or {}

    def _load(self, file: Path) -> Any:
        import yaml  # imported late: it costs time, and most commands read no such file

        text = file.read_text(encoding="utf-8", errors="replace")
        if any(line.startswith(("<<<<<<<", ">>>>>>>")) for line in text.splitlines()):
            raise self._refusal(file, "holds merge conflict markers")
        try:
            return yaml.load(text, Loader=_loader())  # noqa: S506 - a safe loader
        except yaml.constructor.ConstructorError as error:
            raise self._refusal(file, str(error.problem)) from None
        except yaml.YAMLError:
            raise self._refusal(file, "is not readable") from None

    def _refusal(self, file: Path, message: str) -> RegistryError:
        return RegistryError(Issue("file-unsafe", self._name(file), message, _mend(file)))

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()


def _loader() -> Any:
    """Return a safe loader that refuses a key written twice, as a merge without conflict may leave it."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """A loader of its own, so that the rule touches no other user of PyYAML."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            names = Counter(str(key.value) for key, _ in node.value)
            if repeated := [name for name, count in names.items() if count > 1]:
                raise yaml.constructor.ConstructorError(None, None, f"holds the key '{repeated[0]}' twice")
            return super().construct_mapping(node, deep=deep)

    return Loader


def _mend(file: Path) -> str:
    if file.name == "dvc.lock":
        return "Delete it and run 'dvc repro' again; never merge it by hand"
    if file.name == "dvc.yaml":
        return "Mend it by hand; 'cxrspec freeze' writes the stages between its two marks again"
    return "Restore it with 'git checkout', or 'dvc add' the file again"
