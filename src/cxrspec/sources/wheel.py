"""Own wheels: downloaded by the user's own pip, proved by the sha256 of the wheel, read as a zip, never installed.

No member is ever written to disk, and no index is named here: pip's configuration says where to look.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from cxrspec.digest import sha256_hex
from cxrspec.errors import SourceError, listed
from cxrspec.sources.fetch import ELSEWHERE, fetch_pinned, refuse_too_large, unreachable
from cxrspec.sources.store import OpenedFile, Store, refusal

if TYPE_CHECKING:
    from cxrspec.definition import WheelSource

MAX_MEMBER_BYTES: Final = 2 << 30
"""Largest member that is unpacked."""
_PIP: Final = ("-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--progress-bar=off")
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.!+_-]*[A-Za-z0-9])?")
_OTHER_HASH: Final = re.compile(r"\bGot\s+([0-9a-f]{64})\b")
_OTHER_VERSIONS: Final = re.compile(r"\(from versions: ([^)]+)\)")
_DAMAGE: Final = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
"""What a damaged or encrypted wheel raises, or one packed in a way that zipfile does not know (a RuntimeError too)."""


def open_wheel(source: WheelSource, name: str, store: Store, where: str) -> OpenedFile:
    """Return a member of a wheel, proved by the sha256 of the wheel and, where given, by its own."""
    named = source.files[name]
    content = _read_member(obtain_wheel(source, store, where), named.path, where)
    sha256 = sha256_hex(content)
    if named.sha256 not in (None, sha256):
        message = f"'{named.path}' has sha256 {sha256}; the pin is {named.sha256}"
        raise refusal("source-changed", where, message, "The wheel is the pinned one, so this pin is wrong: mend it")
    pin = {"wheel_sha256": source.sha256, "path": named.path}
    return OpenedFile(sha256, len(content), "sha256", pin, content=content)


def obtain_wheel(source: WheelSource, store: Store, where: str) -> Path:
    """Return the wheel itself, from a mirror, the cache or pip."""

    def fetch(partial: Path) -> None:
        _pip_download(source, partial, store, where)

    return fetch_pinned(store, source.sha256, where, fetch)


def _pip_download(source: WheelSource, partial: Path, store: Store, where: str) -> None:
    requirement = _requirement(source, where)
    advance = store.show(requirement, None)
    with TemporaryDirectory(dir=store.cache, prefix="pip-") as folder:
        # the hash lets pip choose the pinned one among several wheels of a version
        wanted = Path(folder, "wanted.txt")
        wanted.write_text(f"{requirement} --hash=sha256:{source.sha256}\n", encoding="utf-8")
        target = Path(folder, "wheel")
        command = [sys.executable, *_PIP, "--dest", str(target), "--requirement", str(wanted)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        wheels = list(target.glob("*.whl"))
        if done.returncode or len(wheels) != 1:
            raise _pip_refusal(requirement, done, source.sha256, store, where)
        size = wheels[0].stat().st_size
        refuse_too_large(size, store, where)
        wheels[0].replace(partial)
    advance(size)


def _requirement(source: WheelSource, where: str) -> str:
    # a requirements file can hold options and paths that run code, so nothing else may enter it
    if not _NAME.fullmatch(source.package):
        raise refusal("field-value", where, f"{source.package!r} is no name of a package")
    if not _VERSION.fullmatch(source.version):
        raise refusal("field-value", where, f"{source.version!r} is no version of a package")
    return f"{source.package}=={source.version}"


def _pip_refusal(
    requirement: str, done: subprocess.CompletedProcess[str], sha256: str, store: Store, where: str
) -> SourceError:
    if other := _OTHER_HASH.search(done.stderr):
        message = f"the wheel {requirement} on the package index has sha256 {other[1]}; the pin is {sha256}"
        return refusal("source-changed", where, message, f"Pin the wheel that is meant. {ELSEWHERE}")
    reason = f"pip cannot download {requirement}: {_last_error(done)}"
    if (others := _OTHER_VERSIONS.search(done.stderr)) and others[1] != "none":
        reason += f"; the index has {listed(reversed(others[1].split(', ')))}"
    return unreachable(store, where, reason)


def _last_error(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or [f"it ended with status {done.returncode} and no wheel"])[-1]


def _read_member(wheel: Path, member: str, where: str) -> bytes:
    from cxrspec.tables.containers import read_bounded

    try:
        with zipfile.ZipFile(wheel) as archive:
            files = {entry.filename: entry for entry in archive.infolist() if not entry.is_dir()}
            if member not in files:
                raise _no_member(member, list(files), where)
            if (size := files[member].file_size) > MAX_MEMBER_BYTES:
                message = f"'{member}' unpacks to {size:,} bytes; {MAX_MEMBER_BYTES:,} are allowed"
                raise refusal("container", where, message, "Is it the right file?")
            with archive.open(files[member]) as stream:
                return read_bounded(stream, where, MAX_MEMBER_BYTES)
    except _DAMAGE as error:
        raise refusal("container", where, f"the wheel cannot be read as a zip ({error})", "Is it a wheel?") from error


def _no_member(member: str, names: Sequence[str], where: str) -> SourceError:
    from difflib import get_close_matches

    last = PurePosixPath(member).name
    near = [name for name in names if PurePosixPath(name).name == last]
    near = near or get_close_matches(member, names, n=5, cutoff=0.4)
    hint = f"Near it: {listed(near)}" if near else f"It holds {listed(sorted(names))}"
    return refusal("source-file-missing", where, f"the wheel has no file '{member}'", hint)
