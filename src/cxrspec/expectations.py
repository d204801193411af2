"""Own the fields of `expect`: the counts that a publisher claims, and when a count found is as claimed; no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Discriminator, Field, GetJsonSchemaHandler, Tag, model_validator
from pydantic_core import CoreSchema

from cxrspec.errors import listed
from cxrspec.fields import Count, Fields, Identifier, ShortForm, Text


class Expected(Fields):
    """A count that the publisher claims: a number, one `within` some difference (never fatal), or one of several."""

    value: Count | None = None
    within: Count | None = None
    any_of: Annotated[list[Count], Field(min_length=1)] | None = None
    stated: Annotated[dict[Text, Count], Field(min_length=2)] | None = None
    """What the publisher says in one place and in another; either is accepted, and a note tells which it is."""
    note: Text | None = None
    """What to know of the claim, told where the count found is another."""

    @model_validator(mode="after")
    def _one_way(self) -> Expected:
        ways = sum(way is not None for way in (self.value, self.any_of, self.stated))
        if ways != 1 or (self.within is not None and self.value is None):
            raise ValueError("give a number, {value, within}, {any_of: [...]} or {stated: {place: number, ...}}")
        return self

    @property
    def choices(self) -> list[int]:
        """The counts that are claimed, the first one first."""
        stated = list((self.stated or {}).values())
        return self.any_of or stated or [self.value or 0]

    def allows(self, found: int) -> bool:
        """Return whether the count found is as claimed."""
        return any(abs(found - choice) <= (self.within or 0) for choice in self.choices)

    def verdict(self, found: int) -> str:
        """Say what a count found that stops nothing means for the claim; nothing where it is simply as claimed."""
        if self.stated is not None:
            places = [place for place, number in self.stated.items() if number == found]
            return f"claimed {self}; found {found:,}, as in {listed(places)}"
        return "" if found == self.choices[0] else f"claimed {self}, found {found:,}{self.remark}"

    @property
    def remark(self) -> str:
        """The note, as it ends a message."""
        return f": {self.note}" if self.note else ""

    def __str__(self) -> str:
        if self.stated is not None:
            return " or ".join(f"{number:,} ({place})" for place, number in self.stated.items())
        within = f" (within {self.within})" if self.within is not None else ""
        return " or ".join(f"{number:,}" for number in self.choices) + within


def _count_form(value: Any) -> Any:
    return {"value": value} if isinstance(value, int) and not isinstance(value, bool) else value


ExpectedCount = Annotated[
    Expected, ShortForm(_count_form, "a whole number nor a mapping of value and within, of any_of, or of stated")
]


def _shape(value: Any) -> str:
    """Tell the counts of a tally by name (`positives: {edema: 62}`) from its one count (`none: 658`)."""
    return "by_name" if isinstance(value, Mapping) and not set(value) & set(Expected.model_fields) else "count"


Tally = Annotated[
    Annotated[ExpectedCount, Tag("count")] | Annotated[dict[str, ExpectedCount], Tag("by_name")],
    Discriminator(_shape),
]


class PoolExpectations(Fields):
    """What the publisher claims of some items, by the names that freezing counts."""

    items: ExpectedCount | None = None
    groups: ExpectedCount | None = None
    images: ExpectedCount | None = None
    """Images of studies, where the ids of the items source are those of images."""
    covariates: dict[Identifier, dict[str, ExpectedCount]] | None = None
    tallies: dict[str, Tally] | None = None
    """The counts of the task, in YAML beside the others: `positives: {...}`, `none: 658`."""

    @model_validator(mode="before")
    @classmethod
    def _gather_tallies(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        own = set(cls.model_fields) - {"tallies"}
        tallies = {key: claim for key, claim in value.items() if key not in own}
        return {key: claim for key, claim in value.items() if key in own} | ({"tallies": tallies} if tallies else {})

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Let the counts of the task stand beside the others, as in YAML."""
        found = handler(schema)
        own = handler.resolve_ref_schema(found)
        own["additionalProperties"] = own["properties"].pop("tallies")["anyOf"][0]["additionalProperties"]
        return found


class Expectations(PoolExpectations):
    """What the publisher claims of one subset and of its pool, or of `roster`."""

    pool: PoolExpectations | None = None
    cells: dict[Text, Annotated[dict[Identifier, str | int], Field(min_length=1)]] | None = None
    """Published items: item id, then cells of the subset's table and of its covariates by column."""
