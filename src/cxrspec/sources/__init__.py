"""Own the way from a pinned source to its bytes: mirrors, then the cache, then the network.

Bytes are checked against their pin before anyone sees them. Nothing here knows tables, items or the registry.
"""

from cxrspec.sources.index import MirrorFile
from cxrspec.sources.mirror import NeededFile, fill_mirror, source_digests
from cxrspec.sources.opening import open_file, place_of
from cxrspec.sources.store import OpenedFile, Progress, Store

__all__ = [
    "MirrorFile",
    "NeededFile",
    "OpenedFile",
    "Progress",
    "Store",
    "fill_mirror",
    "open_file",
    "place_of",
    "source_digests",
]
