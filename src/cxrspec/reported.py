"""Own reported results: numbers that others printed, kept as printed, shown beside scored ones, never ranked."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from cxrspec.errors import DefinitionError, Issue
from cxrspec.field_errors import field_issue
from cxrspec.fields import Fields, SystemName, Text
from cxrspec.registry import Registry
from cxrspec.strict_yaml import load_document, located


class Publication(Fields):
    """Where a number was printed."""

    citation: Text
    edition: Text | None = None
    place: Text
    """The table, figure or sentence that holds it."""


class ReportedValue(Fields):
    """One number as printed: text, so that no digit is gained or lost."""

    metric: Text
    value: Annotated[Text, Field(pattern=r"^-?[0-9.,]+( ?%)?$")]
    finding: Text | None = None
    interval: Text | None = None


class Reported(Fields):
    """What one publication reports of one system."""

    format: Literal[1]
    system: SystemName
    title: Text
    reference: Text | None = None
    """The definition version that the numbers claim to be on; none where they match no definition."""
    comparable: Literal["yes", "no", "unknown"]
    reason: Text
    publication: Publication
    values: Annotated[list[ReportedValue], Field(min_length=1)]
    notes: list[Text] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the entry as plain values."""
        return self.model_dump(exclude_none=True)


def load_reported(registry: Registry, benchmark: str) -> list[Reported]:
    """Load every reported result of a benchmark, by file name.

    Raises:
        DefinitionError: with every issue of every file.
    """
    entries: list[Reported] = []
    issues: list[Issue] = []
    for path in sorted(registry.reported_folder(benchmark).glob("*.yaml")):
        name = registry.name(path)
        try:
            document, places, refused = load_document(path, shown_as=name)
            issues += refused
            entries.append(Reported.model_validate(document))
        except DefinitionError as error:
            issues += error.issues
        except ValidationError as error:
            found = [field_issue(Reported, document, detail) for detail in error.errors(include_url=False)]
            issues += [located(issue, name, places) for issue in found]
    if issues:
        raise DefinitionError(issues)
    return entries
