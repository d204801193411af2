"""Own the content of `lock.json`: its shape, what can be read off it, and the digests that it holds of itself.

Nothing here knows where a lock stands, or what git and DVC know of it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cxrspec.digest import combined_id, json_digest, short_id
from cxrspec.errors import Issue, RegistryError
from cxrspec.ids import IdRule
from cxrspec.reference import Reference

LOCK_FORMAT: Final = 1
"""Raised when a reader of the old form could misread the new one; old forms are read for ever."""

RESTORE: Final = "Restore it with 'git checkout'; a frozen lock is never edited"

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_PARTS: Final[dict[str, type]] = {
    "benchmark": str,
    "definition_version": str,
    "definition": dict,
    "definition_digest": str,
    "description": dict,
    "sources": dict,
    "roster": dict,
    "subsets": dict,
    "combined_id": str,
}


@dataclass(frozen=True)
class Lock:
    """A frozen definition: the parsed `lock.json` with the bytes it was read from."""

    data: bytes
    document: Mapping[str, Any]

    @property
    def reference(self) -> Reference:
        """`benchmark@definition_version`."""
        return Reference(self.document["benchmark"], self.document["definition_version"])

    @property
    def definition(self) -> dict[str, Any]:
        """The score-relevant definition as plain values."""
        return dict(self.document["definition"])

    @property
    def id_rule(self) -> IdRule:
        """How the definition writes its item ids."""
        rule = self.definition["items"]["item_id"]
        return IdRule(rule["form"], rule.get("strip_suffix"), rule.get("prefix", ""))

    @property
    def definition_digest(self) -> str:
        """SHA-256 of the score-relevant definition."""
        return str(self.document["definition_digest"])

    @property
    def subsets(self) -> Mapping[str, Mapping[str, Any]]:
        """Per subset its digests and counts."""
        found: Mapping[str, Mapping[str, Any]] = self.document["subsets"]
        return found

    @property
    def subset_ids(self) -> dict[str, str]:
        """Per subset its id, the first 16 hex digits of its digest."""
        return {name: short_id(subset["digest"]) for name, subset in self.subsets.items()}

    @property
    def upstream_ids(self) -> dict[str, str]:
        """What publishers call their subsets, for those that have such a name."""
        described = self.document["description"].get("subsets", {})
        return {name: subset["upstream_id"] for name, subset in described.items() if "upstream_id" in subset}

    @property
    def tables(self) -> dict[str, str]:
        """Every frozen table by the name of its file, with its SHA-256."""
        found = {"roster": str(self.document["roster"]["digest"])}
        for name, subset in self.subsets.items():
            found[name] = str(subset["digest"])
            if subset.get("covariates_digest"):
                found[f"{name}.covariates"] = str(subset["covariates_digest"])
        return found

    @property
    def redistribute(self) -> bool:
        """Whether rows may be passed on; an absent mark means yes."""
        sources = self.document["description"].get("sources", {}).values()
        return all(source.get("redistribute", True) for source in sources)

    def fault(self) -> str:
        """Return which digest of the lock is not that of its own content, or an empty string."""
        if json_digest(self.definition) != self.definition_digest:
            return "definition_digest is not the digest of the definition that the lock holds"
        if (
            combined_id({name: subset["digest"] for name, subset in self.subsets.items()})
            != self.document["combined_id"]
        ):
            return "combined_id is not that of the subset digests"
        return ""


def parse_lock(data: bytes, reference: Reference, where: str) -> Lock:
    """Parse the bytes of a lock.

    Raises:
        RegistryError: if it is damaged, of a newer format, or of another definition.
    """
    try:
        document = json.loads(data, parse_constant=refuse_constant, parse_float=finite_number)
        number = document["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RegistryError(Issue("file-unsafe", where, "is not a readable lock", RESTORE)) from None
    if not isinstance(number, int) or number > LOCK_FORMAT:
        message = f"has format {number}; this cxrspec reads formats up to {LOCK_FORMAT}"
        raise RegistryError(Issue("lock-format", where, message, "Install a newer cxrspec"))
    if faults := list(_shape_faults(document)):
        raise RegistryError([Issue("file-unsafe", where, fault, RESTORE) for fault in faults])
    lock = Lock(data, document)
    if lock.reference != reference.definition:
        raise RegistryError(Issue("file-unsafe", where, f"says that it is {lock.reference}", RESTORE))
    return lock


def refuse_constant(word: str) -> None:
    """Refuse NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(f"{word} is no number of JSON")


def finite_number(text: str) -> float:
    """Read a number of JSON; one beyond the range of a double raises ValueError."""
    number = float(text)
    if not math.isfinite(number):
        refuse_constant(text)
    return number


def _shape_faults(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a hand has damaged, so that whoever reads a lock later finds every part in its place."""
    for name, kind in _PARTS.items():
        if not isinstance(document.get(name), kind):
            yield f"lacks '{name}', or it has the wrong form"
    for name, subset in _mappings(document.get("subsets")):
        if not _NAME.fullmatch(name):
            yield f"'{name}' is no name of a subset"
        counted = all(isinstance(subset.get(count), int) for count in ("items", "groups"))
        covariates = subset.get("covariates_digest")
        if not (counted and _is_sha256(subset.get("digest")) and (covariates is None or _is_sha256(covariates))):
            yield f"subsets.{name} lacks a count or a sha256"
    roster = document.get("roster")
    if isinstance(roster, dict) and not _is_sha256(roster.get("digest")):
        yield "roster lacks its sha256"
    for name, files in _mappings(document.get("sources")):
        if not all(isinstance(file, dict) and _is_sha256(file.get("sha256")) for file in files.values()):
            yield f"sources.{name} lacks a sha256"


def _mappings(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the mappings inside a mapping; what is no mapping counts as an empty one."""
    for name, inner in value.items() if isinstance(value, dict) else ():
        yield name, inner if isinstance(inner, dict) else {}


def _is_sha256(value: Any) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None
