"""Own the Croissant metadata of a frozen definition: files with digests, record sets with fields, splits, licence.

It describes; no row is in it, so it may leave also where the rows may not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from cxrspec.description import current_description
from cxrspec.errors import Issue
from cxrspec.lock import Lock
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.submission import task_of

CONFORMS_TO: Final = "http://mlcommons.org/croissant/1.0"
SPLIT_KINDS: Final = {
    "test": "cr:TestSplit",
    "train": "cr:TrainingSplit",
    "train_val": "cr:TrainingSplit",
    "validation": "cr:ValidationSplit",
}
"""What a subset of this name is to other programs; any other name has no kind."""
CONTEXT: Final[dict[str, Any]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "conformsTo": "dct:conformsTo",
    **{
        name: f"cr:{name}"
        for name in (
            *("citeAs", "column", "equivalentProperty", "extract", "field", "fileObject", "fileProperty", "fileSet"),
            *("format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet"),
            *("references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField"),
            "transform",
        )
    },
}
_NUMBERED: Final = re.compile(r"(?:^|[.-])v([1-9][0-9]*)$")


def croissant(reference: Reference, registry: Registry) -> tuple[dict[str, Any], list[Issue]]:
    """Return the Croissant document of a frozen definition, and a note on every table that is not here to be hashed.

    Raises:
        RegistryError: if there is no lock, or a table here is not the one that the lock names.
    """
    lock = registry.read_lock(reference)
    notes = _absent(lock, registry)
    description = current_description(lock, registry)
    document = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": reference.benchmark,
        "alternateName": str(lock.reference),
        "description": _description(lock, description),
        "version": semantic_version(reference.version),
        "identifier": [f"definition:{lock.definition_digest}", *(f"{n}={i}" for n, i in lock.subset_ids.items())],
        "license": sorted({one["licence"] for one in description.get("sources", {}).values() if "licence" in one}),
        "creator": [
            {"@type": "sc:Organization", "name": one["attribution"]}
            for one in description.get("sources", {}).values()
            if "attribution" in one
        ],
        "citeAs": " ".join(description.get("citations", ())),
        "distribution": [_file(lock, name) for name in lock.subsets],
        "recordSet": [_splits(lock), *(_records(lock, name) for name in lock.subsets)],
    }
    return {key: value for key, value in document.items() if value not in ("", [])}, notes


def semantic_version(version: str) -> str:
    """Return a version as Croissant wants it, our own behind the plus sign.

    >>> semantic_version("official-v3")
    '3.0.0+official-v3'
    >>> semantic_version("pilot")
    '1.0.0+pilot'
    """
    found = _NUMBERED.search(version)
    return f"{found[1] if found else 1}.0.0+{version}"


def _absent(lock: Lock, registry: Registry) -> list[Issue]:
    """Read and so prove the subset tables that are on this machine; return a note on each that is not."""
    notes = []
    for name in lock.subsets:
        path = registry.table_path(lock.reference, name)
        if path.is_file():
            registry.read_table(lock.reference, name, lock.tables[name])
        else:
            text = "is not on this machine; its sha256 is taken from the lock"
            notes.append(Issue("note", registry.name(path), text))
    return notes


def _description(lock: Lock, description: Mapping[str, Any]) -> str:
    parts = [description.get("title", ""), description.get("description", ""), *description.get("caveats", ())]
    if not lock.redistribute:
        parts.append("The rows may not be passed on: whoever has the sources makes these files with cxrspec freeze.")
    return " ".join(part for part in parts if part)


def _file(lock: Lock, name: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": f"{name}.tsv",
        "name": f"{name}.tsv",
        "description": f"Subset {name}: {lock.subsets[name]['items']} items, subset id {lock.subset_ids[name]}.",
        "contentUrl": f"{name}.tsv",
        "encodingFormat": "text/tab-separated-values",
        "sha256": lock.subsets[name]["digest"],
    }


def _splits(lock: Lock) -> dict[str, Any]:
    """List the subsets as splits, each with its kind where its name tells it."""
    rows = [{"splits/name": name, "splits/url": SPLIT_KINDS.get(name, "")} for name in lock.subsets]
    return {
        "@type": "cr:RecordSet",
        "@id": "splits",
        "name": "splits",
        "description": "The frozen subsets; each is a record set of its own.",
        "dataType": "cr:Split",
        "key": {"@id": "splits/name"},
        "field": [
            {"@type": "cr:Field", "@id": f"splits/{name}", "name": name, "dataType": kind}
            for name, kind in (("name", "sc:Text"), ("url", "sc:URL"))
        ],
        "data": rows,
    }


def _records(lock: Lock, name: str) -> dict[str, Any]:
    """Describe the columns of a subset; labels are integers, everything else is text."""
    columns = ("item_id", "group_id", *task_of(lock).column_names)
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"The items of subset {name} in the order of their ids.",
        "key": {"@id": f"{name}/item_id"},
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column}",
                "name": column,
                "description": _column_words(column),
                "dataType": _data_type(lock, name, column),
                "source": {"fileObject": {"@id": f"{name}.tsv"}, "extract": {"column": column}},
            }
            for column in columns
        ],
    }


def _data_type(lock: Lock, name: str, column: str) -> str:
    """A finding that is labelled 1 or 0 on every item is an integer; blank and coded cells are text."""
    subset = lock.subsets[name]
    counted = [subset.get(tally, {}).get(column) for tally in ("positives", "negatives")]
    decided = sum(count for count in counted if count is not None)
    return "sc:Integer" if None not in counted and decided == subset["items"] else "sc:Text"


def _column_words(column: str) -> str:
    known = {"item_id": "The item.", "group_id": "What the items of one patient share."}
    return known.get(column, f"The reference standard of {column}.")
