"""Own the pydantic models of a definition and its digest; no I/O.

A definition file is one flat mapping: the fields here, plus those of its task.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, SerializeAsAny, ValidationError, model_validator

from cxrspec.digest import json_digest
from cxrspec.errors import did_you_mean, listed
from cxrspec.expectations import Expectations
from cxrspec.field_errors import field_issue, shown
from cxrspec.fields import (
    DESCRIPTIVE,
    ColumnRef,
    FieldIssue,
    Fields,
    Identifier,
    PositiveCount,
    Seed,
    ShortForm,
    Slug,
    SourceName,
    SplitName,
    SubsetName,
    SubsetReference,
    Text,
    Version,
    one_or_list,
)
from cxrspec.pins import FileSource, HubSource, Source, UrlSource, WheelSource
from cxrspec.reference import Reference
from cxrspec.references import check_references
from cxrspec.tasks import TASKS, Task

__all__ = [
    "Conditions",
    "Definition",
    "FileSource",
    "GroupIdField",
    "HubSource",
    "ItemIdField",
    "ItemList",
    "Items",
    "Pool",
    "Select",
    "Source",
    "Stratified",
    "Subset",
    "UrlSource",
    "WheelSource",
    "Where",
    "parse_definition",
]

_M = TypeVar("_M", bound=Fields)


class ItemIdField(Fields):
    """How the id of an item is read from a column, in sources and submissions alike."""

    column: Text
    form: Literal["text", "file_name", "image_path", "study_path"]
    strip_suffix: Text | None = None
    prefix: Text | None = None
    numbered_by: Text | None = None
    """Several items share what the column holds, and differ in this one: their ids end in `-q01`, `-q02`, ... by the
    code-point order of its texts. Other sources, and lists, name all of them by what they share."""


class GroupIdField(Fields):
    """How the id of an item's group (the patient) is read: from a column, or from the item id by a pattern."""

    column: Text | None = None
    pattern: Text | None = None
    """A regular expression with one group, searched in the item id."""

    @model_validator(mode="after")
    def _one_way(self) -> GroupIdField:
        if (self.column is None) == (self.pattern is None):
            raise ValueError("give either column or pattern")
        try:
            groups = re.compile(self.pattern or "(.)").groups
        except re.error as error:
            raise ValueError(f"{shown(self.pattern)} is no regular expression: {error}") from None
        if groups != 1:
            raise ValueError(f"{shown(self.pattern)} has {groups} groups; one is needed: '(...)' around the group's id")
        return self


class Items(Fields):
    """The roster: every item that the sources name, with its group, and columns joined by item id."""

    unit: Literal["image", "study", "question"]
    aggregate: Literal["max", "mean"] | None = None
    """How scores of a study's images become the study's; `max` where absent. Only where the unit is a study."""
    source: SourceName
    item_id: ItemIdField
    group_id: GroupIdField
    covariates: dict[Identifier, ColumnRef] | None = None
    joins: dict[SourceName, Text] | None = None
    """Further source: its column that holds the item id; the column of `item_id` where absent."""

    @model_validator(mode="after")
    def _aggregate_of_studies(self) -> Items:
        if self.aggregate and self.unit != "study":
            raise ValueError("aggregate brings the images of a study together; with unit: image leave it out")
        return self


class Where(Fields):
    """A condition on one column: its cell is one of the texts."""

    column: ColumnRef
    one_of: Annotated[
        list[str],
        ShortForm(
            lambda value: [value] if isinstance(value, str) else value, "a text nor a list of texts", is_list=True
        ),
        Field(min_length=1),
    ]


WhereList = Annotated[list[Where], one_or_list("a condition nor a list of conditions"), Field(min_length=1)]


class ItemList(Fields):
    """A list of item ids: a file with one id a line, or a column of a table."""

    source: SourceName
    column: Text | None = None
    unknown_ids: Literal["ignored"] | None = None
    """Allows ids that are no items (the list of a larger release); where absent they are refused."""


def _list_file_form(value: Any) -> Any:
    return {"source": value} if isinstance(value, str) else value


ItemListRef = Annotated[ItemList, ShortForm(_list_file_form, "a source nor a mapping of source and column")]


class Conditions(Fields):
    """Items that meet every condition given; no condition means all items."""

    in_list: ItemListRef | None = None
    where: WhereList | None = None


class Pool(Conditions):
    """What a subset chooses from."""

    split: SplitName | None = None


class Stratified(Fields):
    """Iterative stratification (Sechidis et al. 2011) without a random generator."""

    size: PositiveCount
    minimum_positives: PositiveCount | None = None


class Select(Conditions):
    """How a subset chooses from its pool: exactly one of these."""

    all: Literal[True] | None = None
    stratified: Stratified | None = None
    per_condition: Annotated[dict[Text, PositiveCount] | None, Field(min_length=1)] = None
    """Per condition, how many of its positive items are chosen, by the rank of their seed hash. Conditions choose in
    the order of the frozen columns, and an item that one has chosen is left to no other."""

    @model_validator(mode="after")
    def _one_way(self) -> Select:
        ways = (self.all, self.where, self.in_list, self.stratified, self.per_condition)
        if sum(value is not None for value in ways) != 1:
            raise ValueError("choose exactly one of all, where, in_list, stratified and per_condition")
        return self


def _select_form(value: Any) -> Any:
    return {"all": True} if value == "all" else value


class Subset(Fields):
    """A subset that is frozen: a pool, what is kept away from it, and the selection."""

    pool: Pool
    select: Annotated[
        Select,
        ShortForm(_select_form, "'all' nor a mapping of where, in_list, stratified or per_condition", words=("all",)),
    ]
    disjoint_from: SubsetName | None = None
    disjoint_by: Literal["group_id", "item_id"] | None = None
    contained_in: Annotated[list[SubsetReference] | None, DESCRIPTIVE] = None
    """Subsets `benchmark@definition_version:subset` that hold every item of this one, checked where they are here."""
    same_as: Annotated[list[SubsetReference] | None, DESCRIPTIVE] = None
    """Subsets that hold the same items with the same labels, checked where they are here."""
    upstream_id: Annotated[Text | None, DESCRIPTIVE] = None
    """What the publisher calls this subset; it is shown beside our own id and never instead of it."""

    @model_validator(mode="after")
    def _disjoint_pair(self) -> Subset:
        if (self.disjoint_from is None) != (self.disjoint_by is None):
            raise ValueError("disjoint_from and disjoint_by go together")
        return self


class Definition(Fields):
    """One `definition_version` of a benchmark: everything a frozen subset and its scores follow from."""

    benchmark: Annotated[Slug, DESCRIPTIVE]
    definition_version: Annotated[Version, DESCRIPTIVE]
    title: Annotated[Text, DESCRIPTIVE]
    description: Annotated[Text | None, DESCRIPTIVE] = None
    supersedes: Annotated[Version | None, DESCRIPTIVE] = None
    change: Annotated[Text | None, DESCRIPTIVE] = None
    """What differs from the version that this one supersedes, in one sentence."""
    seed: Seed
    sources: Annotated[dict[Slug, Source], Field(min_length=1)]
    items: Items
    splits: dict[Identifier, Conditions] | None = None
    """The publisher's division; an item is in one split at most."""
    subsets: Annotated[dict[Identifier, Subset], Field(min_length=1)]
    expect: Annotated[dict[Identifier, Expectations] | None, DESCRIPTIVE] = None
    caveats: Annotated[list[Text] | None, DESCRIPTIVE] = None
    citations: Annotated[list[Text] | None, DESCRIPTIVE] = None
    task: SerializeAsAny[Task]

    @property
    def reference(self) -> Reference:
        """`benchmark@definition_version`."""
        return Reference(self.benchmark, self.definition_version)

    @property
    def redistribute(self) -> bool:
        """Whether files derived from the sources may be passed on."""
        return all(source.redistribute for source in self.sources.values())

    def score_relevant(self) -> dict[str, Any]:
        """Return the flat document of everything that can change a score, without identity and description."""
        own = super().score_relevant()
        return {**own.pop("task"), **own, "task": type(self.task).NAME}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the RFC 8785 JSON of `score_relevant()`."""
        return json_digest(self.score_relevant())


def parse_definition(document: Mapping[str, Any]) -> tuple[Definition | None, list[FieldIssue]]:
    """Build a definition from the flat document of its file.

    Returns the definition, or None with every field that is wrong and every name that nothing declares.
    """
    own = {key: value for key, value in document.items() if key in Definition.model_fields and key != "task"}
    rest = {key: value for key, value in document.items() if key not in Definition.model_fields}
    name = document.get("task")
    kind = TASKS.get(name) if isinstance(name, str) else None
    if kind:
        task, issues = _validate(kind, rest, beside=Definition)
    else:
        task, issues = None, [_task_issue(document)]
    definition, own_issues = _validate(Definition, own | ({"task": task} if task else {}))
    issues += [issue for issue in own_issues if issue.path != ("task",)]
    faulty = {issue.path for issue in issues}  # one fault, one issue: a name of the wrong form is not also unknown
    issues += [issue for issue in check_references(document, Definition, kind) if issue.path not in faulty]
    return (None if issues else definition), issues


def _task_issue(document: Mapping[str, Any]) -> FieldIssue:
    allowed = listed(sorted(TASKS))
    if "task" not in document:
        return FieldIssue(("task",), "field-missing", f"this required field is missing; allowed are {allowed}")
    name = document["task"]
    hint = did_you_mean(name, TASKS) if isinstance(name, str) else ""
    return FieldIssue(("task",), "field-value", f"unknown task {shown(name)}; allowed are {allowed}", hint)


def _validate(
    model: type[_M], document: Mapping[str, Any], *, beside: type[Fields] | None = None
) -> tuple[_M | None, list[FieldIssue]]:
    try:
        return model.model_validate(document), []
    except ValidationError as error:
        around = (beside,) if beside else ()
        return None, [field_issue(model, document, detail, beside=around) for detail in error.errors(include_url=False)]
