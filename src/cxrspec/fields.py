"""Own the constrained types that YAML fields are made of, and the split into score-relevant and descriptive fields.

Nothing here knows a task, a source or a file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints


class Descriptive:
    """Mark a field that cannot change a score: it is not in the definition digest and may be mended after freezing."""


DESCRIPTIVE: Final = Descriptive()

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
Version = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*$", max_length=64)]
SystemName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$", max_length=64)]
Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$", max_length=64)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
CommitId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Text = Annotated[str, StringConstraints(min_length=1)]
Seed = Annotated[int, Field(ge=0, lt=2**53)]
"""RFC 8785 numbers are IEEE doubles, so a seed stays below 2**53."""
Count = Annotated[int, Field(ge=0)]
PositiveCount = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
OpenShare = Annotated[float, Field(gt=0, lt=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]

PATTERNS: Final[dict[str, str]] = {
    r"^[a-z0-9]+(-[a-z0-9]+)*$": "lower-case letters and digits joined by '-'",
    r"^[a-z0-9]+([.-][a-z0-9]+)*$": "lower-case letters and digits joined by '-' or '.'",
    r"^[a-z0-9]+([._-][a-z0-9]+)*$": "lower-case letters and digits joined by '-', '_' or '.'",
    r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$": "lower-case letters and digits joined by '_', beginning with a letter",
    r"^[0-9a-f]{64}$": "64 lower-case hex digits (a sha256)",
    r"^[0-9a-f]{40}$": "a full commit id of 40 lower-case hex digits; a branch or tag can move, so resolve and pin it",
}
"""What each pattern means in words, for messages."""


class Fields(BaseModel):
    """Base of every mapping in a definition: unknown fields refused, values never converted, never changed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    def score_relevant(self) -> dict[str, Any]:
        """Return what can change a score, as plain JSON values; absent optional fields are left out.

        A field added to the model later must default to None, so that digests of old definitions never move.
        """
        return dict(_partition(self, descriptive=False))

    def descriptive(self) -> dict[str, Any]:
        """Return what cannot change a score (titles, locations, licences, caveats, expectations)."""
        return dict(_partition(self, descriptive=True) or {})


def _partition(value: Any, *, descriptive: bool) -> Any:
    """Return the wanted half of a value; None where nothing of it belongs there."""
    if isinstance(value, Fields):
        parts = {}
        for name, info in type(value).model_fields.items():
            marked = any(isinstance(mark, Descriptive) for mark in info.metadata)
            part = getattr(value, name)
            parts[name] = _plain(part) if marked and descriptive else None if marked else _half(part, descriptive)
        return {name: part for name, part in parts.items() if part is not None} or (None if descriptive else {})
    if isinstance(value, dict):
        parts = {key: _half(item, descriptive) for key, item in value.items()}
    else:
        parts = {str(i): _half(item, descriptive) for i, item in enumerate(value)}
    if descriptive:
        return {key: part for key, part in parts.items() if part is not None} or None
    return parts if isinstance(value, dict) else list(parts.values())


def _half(value: Any, descriptive: bool) -> Any:
    if isinstance(value, Fields | dict | list | tuple):
        return _partition(value, descriptive=descriptive)
    return None if descriptive else value


def _plain(value: Any) -> Any:
    if isinstance(value, Fields):
        parts = {name: _plain(getattr(value, name)) for name in type(value).model_fields}
        return {name: part for name, part in parts.items() if part is not None}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True, slots=True)
class Reference:
    """`benchmark@definition_version`, optionally with `:subset` or `/system`."""

    benchmark: str
    version: str
    subset: str | None = None
    system: str | None = None

    def __str__(self) -> str:
        tail = f":{self.subset}" if self.subset else f"/{self.system}" if self.system else ""
        return f"{self.benchmark}@{self.version}{tail}"

    @property
    def definition(self) -> Reference:
        """The same reference without subset or system."""
        return Reference(self.benchmark, self.version)

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Read a reference; raise ValueError saying the form that is allowed.

        >>> Reference.parse("nih-cxr14-findings@official-v3:test").subset
        'test'
        """
        found = _REFERENCE.fullmatch(text)
        if not found:
            raise ValueError(
                f"'{text}' is no reference; write benchmark@definition_version, "
                "optionally followed by :subset or /system"
            )
        return cls(found["benchmark"], found["version"], found["subset"], found["system"])


_REFERENCE: Final = re.compile(
    r"(?P<benchmark>[a-z0-9]+(-[a-z0-9]+)*)@(?P<version>[a-z0-9]+([.-][a-z0-9]+)*)"
    r"(:(?P<subset>[a-z][a-z0-9]*(_[a-z0-9]+)*)|/(?P<system>[a-z0-9]+([._-][a-z0-9]+)*))?"
)


def _column_form(value: Any) -> Any:
    return {"column": value} if isinstance(value, str) else value


class Column(Fields):
    """A column of a source: just its name for the items source, or `{source: ..., column: ...}`."""

    column: Text
    source: Text | None = None
    """`source` or `source/file`; the items source where absent."""


ColumnRef = Annotated[Column, BeforeValidator(_column_form, json_schema_input_type=str | Column)]
"""A column named in short (`Image Index`) or in full."""


@dataclass(frozen=True, slots=True)
class FieldIssue:
    """A problem of a definition before its place in the file is known; the loader turns it into an `Issue`."""

    path: tuple[str | int, ...]
    code: str
    message: str
    hint: str = ""
