"""Own reported results: numbers that others printed, kept as printed, shown beside scored ones, never ranked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from cxrspec.errors import DefinitionError, Issue, did_you_mean, listed
from cxrspec.field_errors import field_issue
from cxrspec.fields import FieldIssue, Fields, SystemName, Text
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
    versions = [one.version for one in (*registry.authored(), *registry.frozen()) if one.benchmark == benchmark]
    for path in sorted(registry.reported_folder(benchmark).glob("*.y*ml")):
        name = registry.name(path)
        try:
            document, places, refused = load_document(path, shown_as=name)
            entry = Reported.model_validate(document)
            entries.append(entry)
            issues += [*refused, *(located(one, name, places) for one in _unshown(entry, benchmark, versions))]
        except DefinitionError as error:
            issues += error.issues
        except ValidationError as error:
            found = [field_issue(Reported, document, detail) for detail in error.errors(include_url=False)]
            issues += [*refused, *(located(issue, name, places) for issue in found)]
    if issues:
        raise DefinitionError(issues)
    return entries


def _unshown(entry: Reported, benchmark: str, versions: Sequence[str]) -> Iterator[FieldIssue]:
    """Refuse a reference that no leaderboard of this benchmark would ever show."""
    if entry.reference is None or entry.reference in [f"{benchmark}@{version}" for version in versions]:
        return
    known = [f"{benchmark}@{version}" for version in dict.fromkeys(versions)]
    message = f"'{entry.reference}' is no definition version of {benchmark}; there are {listed(known) or 'none'}"
    hint = did_you_mean(entry.reference, known) or "Leave it out where the numbers match no definition"
    yield FieldIssue(("reference",), "reference-unknown", message, hint)
