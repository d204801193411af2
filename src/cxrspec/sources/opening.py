"""Own the one entry to the bytes of a source, whatever its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cxrspec.sources.hub import open_hub
from cxrspec.sources.local import open_local
from cxrspec.sources.store import OpenedFile, Store, disk_refusals
from cxrspec.sources.url import open_url
from cxrspec.sources.wheel import open_wheel

if TYPE_CHECKING:
    from cxrspec.definition import Source


def open_file(source: Source, name: str, store: Store, *, source_name: str) -> OpenedFile:
    """Return one file of a source: from a mirror, else the cache, else the network, checked against its pin.

    Args:
        source: A source of a definition.
        name: A key of its `files`.
        store: Where to look and to keep.
        source_name: What the definition calls the source, for messages.

    Raises:
        SourceError: The file cannot be had from here, or its bytes are not the pinned ones.
    """
    where = place_of(source_name, name)
    with disk_refusals(where):
        return _open(source, name, store, where)


def place_of(source_name: str, name: str = "") -> str:
    """Return how messages name a source, or a file of it: its field in the definition."""
    return f"sources.{source_name}" + (f".files.{name}" if name else "")


def _open(source: Source, name: str, store: Store, where: str) -> OpenedFile:
    if source.kind == "wheel":
        return open_wheel(source, name, store, where)
    if source.kind == "url":
        return open_url(source, name, store, where)
    if source.kind == "hf_dataset":
        return open_hub(source, name, store, where)
    return open_local(source, name, store, where)
