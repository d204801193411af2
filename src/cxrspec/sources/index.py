"""Own `index.json` of a mirror folder: what each file called by its sha256 is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from cxrspec.digest import json_text
from cxrspec.files import writing_whole
from cxrspec.sources.store import refusal

INDEX: Final = "index.json"
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class MirrorFile:
    """One file of a mirror, as its index describes it."""

    sha256: str
    size: int
    name: str
    licence: str
    revision: str | None = None
    """Commit of a data set's file; with `path` and `etag` what finds a file whose definition gives no sha256."""
    path: str | None = None
    etag: str | None = None
    columns: list[str] | None = None
    """Where the file holds columns that were read from a shard: which, and the size of the whole shard."""
    kinds: list[str] | None = None
    shard_size: int | None = None


def read_index(folder: Path, where: str) -> list[dict[str, Any]]:
    """Return the entries of a mirror's index, none where it has none; raise SourceError if it cannot be read."""
    path = folder / INDEX
    if not path.is_file():
        return []
    try:
        entries = json.loads(path.read_bytes())
    except ValueError:
        entries = None
    if not isinstance(entries, list) or not all(map(_is_entry, entries)):
        message = f"{path} is not a list of objects with a sha256"
        raise refusal("file-unsafe", where, message, "Delete it and run cxrspec fetch REF --to DIR again")
    return entries


def merge_index(folder: Path, files: Iterable[MirrorFile], where: str) -> None:
    """Write the index with these files added; entries of other files, and further fields, stay as they are."""
    merged = {_key(entry): entry for entry in read_index(folder, where)}
    for file in files:
        entry = {key: value for key, value in asdict(file).items() if value is not None}
        merged[_key(entry)] = merged.get(_key(entry), {}) | entry
    with writing_whole(folder / INDEX) as out:
        out.write(json_text([merged[key] for key in sorted(merged)]))


def _is_entry(entry: Any) -> bool:
    # the digest becomes a path, so it must be one
    return isinstance(entry, dict) and bool(_SHA256.fullmatch(str(entry.get("sha256"))))


def _key(entry: dict[str, Any]) -> tuple[str, str, str]:
    return entry["sha256"], str(entry.get("revision", "")), str(entry.get("path", ""))
