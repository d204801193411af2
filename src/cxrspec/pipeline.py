"""Own DVC's view of the registry: stages and artifacts of `dvc.yaml` and `registry/dvc.yaml`, written from the locks.

Only the blocks between our marks are ours; what stands outside is its author's. DVC itself is called as a command.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

from cxrspec.errors import Issue, RegistryError
from cxrspec.files import write_whole
from cxrspec.lock import Lock
from cxrspec.reference import Reference
from cxrspec.registry import Registry

BEGIN: Final = "  # -- begin: written by cxrspec from the locks, one freeze and one score per definition"
END: Final = "  # -- end: written by cxrspec"
ARTIFACTS: Final = ("  # -- begin: artifacts, one per definition, written by cxrspec", "  # -- end: artifacts")


def artifact_name(reference: Reference) -> str:
    """Return the name of a definition's artifact; DVC allows no `@` and no dot in it, and no two may share one."""
    return f"{reference.benchmark}_{reference.version.replace('.', '_')}"


def stage_name(step: str, reference: Reference) -> str:
    """Return the name of a stage, for which DVC has the same rules."""
    return f"{step}-{artifact_name(reference)}"


def update_pipelines(registry: Registry) -> list[Path]:
    """Rewrite our block of both pipeline files from the locks; return the files that changed.

    Raises:
        RegistryError: if a pipeline file lacks the marks, so that there is no place to write to.
    """
    if not (registry.root / ".dvc").is_dir() or not any(_outdated(registry)):
        return []
    with registry.writing():  # read again: another process may have frozen, or written them, meanwhile
        changed = dict(_outdated(registry))
        for path, text in changed.items():
            write_whole(path, text.encode())
    return list(changed)


def _outdated(registry: Registry) -> Iterator[tuple[Path, str]]:
    """Yield each pipeline file whose block is not what the locks ask for, with its new text."""
    locks = [registry.read_lock(reference) for reference in registry.frozen()]
    for path, wanted in (
        (registry.root / "dvc.yaml", [lock for lock in locks if is_root(lock)]),
        (registry.root / "registry" / "dvc.yaml", [lock for lock in locks if not is_root(lock)]),
    ):
        if not path.is_file() and not wanted:
            continue
        old = path.read_text(encoding="utf-8") if path.is_file() else f"stages:\n{BEGIN}\n{END}\n"
        new = _with_block(old, (BEGIN, END), list(_stages(wanted, registry, path.parent)), registry.name(path))
        new = _with_artifacts(new, wanted, registry, path)
        if new != old or not path.is_file():
            yield path, new


def is_root(lock: Lock) -> bool:
    """Return whether a machine that reaches only a package index can rebuild the definition, and may pass it on."""
    return lock.redistribute and all(source["kind"] == "wheel" for source in lock.definition["sources"].values())


def is_made_by_stage(registry: Registry, path: Path) -> bool:
    """Return whether a stage of either pipeline file names a path, so that DVC makes it and `dvc add` would refuse."""
    for file in (registry.root / "dvc.yaml", registry.root / "registry" / "dvc.yaml"):
        if file.is_file() and f"- {_relative(path, file.parent)}\n" in file.read_text(encoding="utf-8"):
            return True
    return False


def dvc_add(registry: Registry, path: Path, *, push: bool = True) -> bool:
    """Put one file under DVC, without `push` so that it never leaves this machine; return False where there is no DVC.

    Raises:
        RegistryError: with DVC's own last words, if it refuses.
    """
    if not (registry.root / ".dvc").is_dir():
        return False
    command = [sys.executable, "-m", "dvc", "add", str(path)]
    done = subprocess.run(command, cwd=registry.root, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no reason given"]
        hint = f"Mend that, then run 'dvc add {registry.name(path)}'; the file itself is whole"
        raise RegistryError(Issue("file-unsafe", registry.name(path), f"'dvc add' refused it: {words[0]}", hint))
    if not push:
        with registry.writing():
            _keep_here(path.with_name(f"{path.name}.dvc"))
    return True


def _keep_here(file: Path) -> None:
    """Say `push: false` for the one out of a `.dvc` file; `dvc add` has no option for it."""
    text = file.read_text(encoding="utf-8")
    if "push: false" not in text:
        write_whole(file, f"{text.rstrip()}\n  push: false\n".encode())


def _with_block(text: str, marks: tuple[str, str], lines: list[str], name: str) -> str:
    begin, end = map(text.find, marks)
    if not 0 <= begin < end:
        kind = "stages" if marks[0] == BEGIN else "artifacts"
        hint = "\n".join((f"Put these two lines under '{kind}:'", *marks))
        raise RegistryError(Issue("file-unsafe", name, f"has no block for the {kind} of the locks", hint))
    return text[:begin] + "\n".join([marks[0], *lines]) + "\n" + text[end:]


def _with_artifacts(text: str, locks: list[Lock], registry: Registry, path: Path) -> str:
    """List each definition in DVC's registry, where `dvc artifacts get` finds it by an annotated tag."""
    if locks and not re.search("^artifacts:", text, flags=re.MULTILINE):
        text = "\n".join((text.rstrip("\n"), "artifacts:", *ARTIFACTS, ""))
    lines = [line for lock in locks for line in _artifact(lock, registry, path.parent)]
    return _with_block(text, ARTIFACTS, lines, registry.name(path)) if locks else text


def _artifact(lock: Lock, registry: Registry, folder: Path) -> Iterator[str]:
    labels = ["cxrspec", lock.definition["task"], lock.reference.benchmark]
    yield f"  {artifact_name(lock.reference)}:"
    yield f"    path: {_relative(registry.folder(lock.reference), folder)}"
    yield "    type: benchmark-definition"
    yield f"    desc: {json.dumps(lock.document['description'].get('title', str(lock.reference)), ensure_ascii=False)}"
    yield f"    labels: [{', '.join(labels)}]"


def _stages(locks: Iterable[Lock], registry: Registry, folder: Path) -> Iterator[str]:
    locks = list(locks)
    for lock in locks:
        yield from _freeze_stage(lock, registry, folder)
        yield from _score_stage(lock, registry, folder)
    if locks:
        yield from _leaderboard_stage(locks, registry, folder)


def _freeze_stage(lock: Lock, registry: Registry, folder: Path) -> Iterator[str]:
    reference = lock.reference
    yield f"  {stage_name('freeze', reference)}:"
    yield f"    cmd: cxrspec freeze {reference}"
    yield "    deps:"
    yield f"      - {_relative(registry.spec_path(reference), folder)}"
    yield "    outs:"
    yield from _out(registry.lock_path(reference), folder, cache=False, persist=True)
    for table in lock.tables:
        yield from _out(registry.table_path(reference, table), folder, persist=True, push=lock.redistribute)


def _score_stage(lock: Lock, registry: Registry, folder: Path) -> Iterator[str]:
    reference = lock.reference
    yield f"  {stage_name('score', reference)}:"
    yield f"    cmd: cxrspec score {reference}"
    yield "    deps:"
    paths = [registry.lock_path(reference), *(registry.table_path(reference, table) for table in lock.tables)]
    for path in (*paths, registry.folder(reference) / "submissions"):
        yield f"      - {_relative(path, folder)}"
    yield "    outs:"
    yield from _out(registry.folder(reference) / "reports", folder, cache=False, persist=True)


def _leaderboard_stage(locks: list[Lock], registry: Registry, folder: Path) -> Iterator[str]:
    yield "  leaderboard:"
    yield f"    cmd: cxrspec leaderboard --write {' '.join(str(lock.reference) for lock in locks)}"
    yield "    deps:"
    benchmarks = sorted({lock.reference.benchmark for lock in locks})
    reported = [registry.reported_folder(benchmark) for benchmark in benchmarks]
    read = [path for lock in locks for path in _read_by_leaderboard(lock, registry)]
    for path in (*read, *(path for path in reported if path.is_dir())):
        yield f"      - {_relative(path, folder)}"
    yield "    outs:"
    for lock in locks:
        for name in ("leaderboard.md", "leaderboard.json"):
            yield from _out(registry.folder(lock.reference) / name, folder, cache=False)
    yield "    metrics:"
    for lock in locks:
        yield from _out(registry.folder(lock.reference) / "metrics.json", folder, cache=False)


def _read_by_leaderboard(lock: Lock, registry: Registry) -> Iterator[Path]:
    """Yield what a leaderboard is made of: reports, caveats, and what systems are tested against each other by."""
    reference = lock.reference
    yield registry.spec_path(reference)
    yield registry.lock_path(reference)
    yield from (registry.table_path(reference, table) for table in lock.tables if not table.endswith(".covariates"))
    yield registry.folder(reference) / "submissions"
    yield registry.folder(reference) / "reports"


def _out(path: Path, folder: Path, **settings: bool) -> Iterator[str]:
    """Write an out with the settings that differ from DVC's defaults."""
    defaults = {"cache": True, "persist": False, "push": True}
    chosen: dict[str, Any] = {name: value for name, value in settings.items() if defaults[name] != value}
    name = _relative(path, folder)
    if not chosen:
        yield f"      - {name}"
        return
    yield f"      - {name}:"
    for key, value in chosen.items():
        yield f"          {key}: {str(value).lower()}"


def _relative(path: Path, folder: Path) -> str:
    return PurePosixPath(os.path.relpath(path, folder)).as_posix()
