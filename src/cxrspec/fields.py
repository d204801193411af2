"""Own the constrained types that YAML fields are made of, and the split into score-relevant and descriptive fields.

Nothing here knows a task, a source or a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from cxrspec.reference import Reference


class Descriptive:
    """Mark a field that cannot change a score: it is not in the definition digest and may be mended after freezing."""


DESCRIPTIVE: Final = Descriptive()


@dataclass(frozen=True, slots=True)
class Names:
    """Mark a field, or the keys of a mapping, that must name something which the definition declares elsewhere."""

    kind: str
    """What is named, in the words of messages: source, split, subset, covariate, finding, protocol."""


@dataclass(frozen=True, slots=True)
class ShortForm:
    """Let a field be written in a short form beside its long one, a mapping or a list."""

    expand: Callable[[Any], Any]
    """Return the long form of a short one, and any other value as it is."""
    allowed: str
    """What a message says after "is neither"."""
    words: tuple[str, ...] = ()
    """The short forms, where they are fixed words."""
    is_list: bool = False
    """Whether the long form is a list, not a mapping."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Expand before the value is validated."""
        return core_schema.no_info_before_validator_function(self._expanded, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Allow both forms: a short one is as the part of the long form that it becomes."""
        long = handler(schema)
        if self.is_list:
            return {"anyOf": [long["items"], long]}
        kinds: tuple[Any, ...] = ([],) if self.words else ("", 0, [])
        becomes = [form for form in map(self.expand, kinds) if isinstance(form, Mapping)]
        parts = [handler.resolve_ref_schema(long)["properties"][next(iter(form))] for form in becomes]
        short = [{"enum": list(self.words)}, *parts] if self.words else parts
        return {"anyOf": [*short, long]}

    def _expanded(self, value: Any) -> Any:
        long = self.expand(value)
        if isinstance(long, list if self.is_list else Mapping | Fields):
            return long
        takes_text = self.expand("") != ""
        context = {"allowed": self.allowed, "words": self.words, "takes_text": takes_text}
        raise PydanticCustomError("short_form", "short form", context)


def one_or_list(allowed: str) -> ShortForm:
    """Return the short form of a list of mappings: its one mapping."""
    return ShortForm(lambda value: [value] if isinstance(value, Mapping) else value, allowed, is_list=True)


def chosen_by(field: str, *others: str, otherwise: str) -> Discriminator:
    """Return what chooses between models by the text of a field: one of `others`, else the tag `otherwise`.

    So a field that is missing or wrong hides no other fault: the usual model reports them all.
    """

    def tag(value: Any) -> str:
        found = value.get(field) if isinstance(value, Mapping) else getattr(value, field, None)
        return found if isinstance(found, str) and found in others else otherwise

    return Discriminator(tag)


Texts = Annotated[
    list[Annotated[str, StringConstraints(min_length=1)]],
    ShortForm(lambda value: [value] if isinstance(value, str) else value, "a text nor a list of texts", is_list=True),
    Field(min_length=1),
]
"""One text, or a list of them."""
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
PositiveCount = Annotated[int, Field(ge=1, lt=2**53)]
Share = Annotated[float, Field(ge=0, le=1)]
OpenShare = Annotated[float, Field(gt=0, lt=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]

PATTERNS: Final[dict[str, str]] = {
    r"^[a-z0-9]+(-[a-z0-9]+)*$": "lower-case letters and digits joined by '-'",
    r"^[a-z0-9]+([.-][a-z0-9]+)*$": "lower-case letters and digits joined by '-' or '.'",
    r"^[a-z0-9]+([._-][a-z0-9]+)*$": "lower-case letters and digits joined by '-', '_' or '.'",
    r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$": "lower-case letters and digits joined by '_', beginning with a letter",
    r"^[A-Za-z0-9][A-Za-z0-9._-]*$": "letters, digits, '.', '_' and '-', beginning with a letter or digit",
    r"^[0-9a-f]{16}$": "16 lower-case hex digits (a subset id)",
    r"^[0-9a-f]{64}$": "64 lower-case hex digits (a sha256)",
    r"^[0-9a-f]{40}$": "a full commit id of 40 lower-case hex digits; a branch or tag can move, so resolve and pin it",
    r"^-?[0-9.,]+( ?%)?$": "a number as it was printed",
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


def _subset_reference(text: str) -> str:
    if Reference.parse(text).subset is None:
        raise ValueError(f"'{text}' names no subset; write benchmark@definition_version:subset")
    return text


SubsetReference = Annotated[Text, AfterValidator(_subset_reference)]
"""`benchmark@definition_version:subset`."""


SourceName = Annotated[Text, Names("source")]
"""`source` or `source/file`."""
SplitName = Annotated[Identifier, Names("split")]
SubsetName = Annotated[Identifier, Names("subset")]


class Column(Fields):
    """A column of a source: just its name for the items source, or `{source: ..., column: ...}`."""

    column: Text
    source: SourceName | None = None
    """The items source where absent."""


def _column_form(value: Any) -> Any:
    return {"column": value} if isinstance(value, str) else value


ColumnRef = Annotated[Column, ShortForm(_column_form, "the name of a column nor a mapping of source and column")]
"""A column named in short (`Image Index`) or in full."""


@dataclass(frozen=True, slots=True)
class FieldIssue:
    """A problem of a definition before its place in the file is known; the loader turns it into an `Issue`."""

    path: tuple[str | int, ...]
    code: str
    message: str
    hint: str = ""
