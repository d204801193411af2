"""Own what every task is: its YAML fields, its item columns, its prediction columns, its checks and its evaluation.

A task sees columns and arrays, never files, sources or the registry.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from cxrspec.choices import Similarity
from cxrspec.digest import Table
from cxrspec.errors import Issue
from cxrspec.fields import Column, FieldIssue, Fields

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cxrspec.metrics import CurvePoints, ReaderPoint


class ItemColumns(Protocol):
    """The columns of the sources, joined to the items by key; what a task compiles its reference columns from."""

    @property
    def item_ids(self) -> Sequence[str]:
        """Canonical item ids, in the order of every column."""

    def cells(self, column: Column) -> Sequence[str]:
        """Return the text of a column, one cell per item; an item that a joined source lacks has an empty cell."""

    def rows(self, columns: Sequence[Column]) -> Sequence[Sequence[tuple[str, ...]]]:
        """Return, per item, the rows of another source that name it: any number, each as the cells of the columns."""

    def place(self, column: Column, row: int) -> str:
        """Say where a cell stands (`labels:17 column 'Finding Labels'`), for messages."""


@dataclass(frozen=True, slots=True)
class PredictionColumn:
    """One column that a predictions file must have, and the spellings that fit it."""

    name: str
    spellings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PredictionNeed:
    """What a protocol asks of a predictions file."""

    kind: Literal["scores", "embeddings", "heatmaps", "boxes", "answers"]
    subsets: tuple[str, ...]
    """Subsets whose items must all be there, each exactly once."""
    columns: tuple[PredictionColumn, ...] = ()
    """The columns of a `scores` file; an `embeddings` file has whatever features it has."""
    known_labels: tuple[str, ...] = ()
    prompts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Per column the positive and negative text whose embeddings a `scores` file may bring instead of scores."""
    similarity: Similarity | None = None
    """How embeddings of images and prompts become scores; without it they are refused."""
    frame: tuple[int, int] | None = None
    """Width and height in pixels of the images that heatmaps and boxes are of."""


@dataclass(frozen=True)
class Grades:
    """One grader's grades of a system's answers."""

    grader: Mapping[str, str]
    """`name` and `kind` (`human` or `judge`); for a judge `prompt_sha256`; `sha256` of the grades."""
    by_item: Mapping[str, float]


@dataclass(frozen=True)
class EvaluationInput:
    """Everything that a score is computed from: frozen tables, and predictions aligned to their rows."""

    protocol: str
    seed: int
    subsets: Mapping[str, Table]
    predictions: Mapping[str, Any]
    """Per subset: scores [n_items, n_columns], embeddings [n_items, n_features] or answers [n_items], rows as in the
    table; or the heatmaps or boxes of a localizer."""
    covariates: Mapping[str, Table] = field(default_factory=dict)
    """Per subset of `Task.divided_subsets` its covariates, rows as in the table."""
    grades: Sequence[Grades] = ()
    """What each grader says of the answers to grade; nothing where nobody graded them."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """What a picture of one item and finding shows; boxes are half-open (row0, col0, row1, col1) in pixels."""

    frame: tuple[int, int]
    """Width and height of the image."""
    reference: NDArray[np.float64]
    """[r, 4]"""
    detected: Mapping[str, NDArray[np.float64]]
    """[n, 4] by threshold, `> 60`, or `boxes`."""
    heatmap: NDArray[np.float64] | None
    """[S1, S2]"""


@dataclass(frozen=True, eq=False)
class Curves:
    """The curves of one finding, with the points of the readers who are compared."""

    points: CurvePoints
    readers: Mapping[str, ReaderPoint]
    vote: ReaderPoint | None
    """The majority vote of these readers; None where there are none, or an even number."""


@dataclass
class Evaluation:
    """The scores of one submission as plain JSON values, with what was noticed on the way."""

    scores: list[dict[str, Any]] = field(default_factory=list)
    graded: list[dict[str, Any]] = field(default_factory=list)
    """Scores that stand on one grader's word, which each of them names."""
    agreement: dict[str, Any] = field(default_factory=dict)
    """How far several graders agree; empty with fewer than two."""
    fitted: dict[str, Any] = field(default_factory=dict)
    notes: list[Issue] = field(default_factory=list)
    resampled: dict[str, list[NDArray[np.float64]]] = field(default_factory=dict)
    """Per metric that has a value, its mean on each resample [R], one array per interval; paired between systems."""
    tolerance: float | None = None
    """Largest difference between two runs that still counts as equal; None means equal to rounding (1e-12)."""


class Task(Fields):
    """Base of the tasks; a subclass declares its YAML fields and answers these questions about them."""

    NAME: ClassVar[str]
    HUB_TASK: ClassVar[str] = "other"
    """What the Hugging Face hub calls the task in metadata."""
    TALLIES: ClassVar[Mapping[str, str | None]]
    """Names of the counts that `tally` returns and `expect` may claim; the kind of name each is counted by, if any."""
    COMPILED: ClassVar[frozenset[str]] = frozenset()
    """Fields that only say how reference columns are compiled: what they change is seen in the frozen tables."""
    USED_BY: ClassVar[Mapping[str, str]] = {}
    """Fields that only metrics of one kind use, with that kind: what they change moves no other score."""
    STRATA: ClassVar[str] = "finding"
    """What a column of `strata` is, by the kinds of `declared`; a selection by condition names these."""

    @classmethod
    @abstractmethod
    def declared(cls, document: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return, by kind, the names that the task's fields declare in a raw document; see `fields.Names`."""

    @classmethod
    @abstractmethod
    def check_references(
        cls, document: Mapping[str, Any], declared: Mapping[str, Sequence[str]]
    ) -> Iterator[FieldIssue]:
        """Yield what contradicts itself in the raw document; parts of the wrong type are passed over."""

    @abstractmethod
    def source_columns(self) -> Sequence[Column]:
        """Return the source columns that `reference_columns` will ask for."""

    @property
    @abstractmethod
    def column_names(self) -> tuple[str, ...]:
        """Names of the reference columns of a subset table, in the canonical order."""

    @abstractmethod
    def reference_columns(self, items: ItemColumns) -> list[list[str]]:
        """Return the cells of the reference columns, one list per name; raises DefinitionError with every bad cell."""

    @abstractmethod
    def strata(self, columns: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
        """Return the labels [n_items, n_labels] that a stratified selection balances."""

    @property
    @abstractmethod
    def strata_names(self) -> tuple[str, ...]:
        """What messages call the columns of `strata`."""

    @abstractmethod
    def tally(self, columns: Sequence[Sequence[str]]) -> dict[str, Any]:
        """Count what the reference columns hold, by the names in `TALLIES`."""

    def tally_groups(self, columns: Sequence[Sequence[str]], groups: Sequence[str]) -> dict[str, Any]:
        """Count groups by what their items' reference columns hold, by the names in `TALLIES`; nothing by default."""
        return {}

    def varying_columns(self) -> Sequence[Column]:
        """Return the columns of the items source in which rows of one item may differ; read by `ItemColumns.rows`."""
        return ()

    @abstractmethod
    def check_subset(self, name: str, columns: Sequence[Sequence[str]]) -> list[Issue]:
        """Return why the subset cannot serve what the definition uses it for."""

    def check_covariates(self, name: str, covariates: Table) -> list[Issue]:
        """Return why the covariates of a subset cannot serve what the definition uses them for."""
        return []

    def notes(self) -> list[Issue]:
        """Return what an author should know of choices that were written in short."""
        return []

    def distinct_sources(self) -> Mapping[str, str]:
        """Return sources that must hold different files, by what messages call each."""
        return {}

    def kept_apart(self) -> set[tuple[str, str]]:
        """Return (fitted on, scored on) of subsets that must not share a group."""
        return set()

    @property
    @abstractmethod
    def protocol_names(self) -> tuple[str, ...]:
        """The protocols that a submission may name."""

    @abstractmethod
    def prediction_need(self, protocol: str) -> PredictionNeed:
        """Return what a submission under `protocol` must bring."""

    def divided_subsets(self, protocol: str) -> set[str]:
        """Return the subsets whose covariates the metrics of a protocol ask for."""
        return set()

    @abstractmethod
    def reported_metrics(self, counts: Mapping[str, Mapping[str, Any]] | None = None) -> list[dict[str, str]]:
        """Return name, kind, protocol and average of every number of a report, in its order, given a lock's counts."""

    def expected_pairs(self, protocol: str, table: Table) -> set[tuple[str, str]]:
        """Return the pairs of item and finding that heatmaps or boxes must be for; none where a row is an item."""
        return set()

    GRADES: ClassVar[tuple[float, ...]] = ()
    """The grades that an answer may be given; none for a task that has nothing to grade."""

    def to_grade(self, table: Table) -> dict[str, dict[str, str]]:
        """Return, by item id, what a grader must see beside the answer of each item that is graded."""
        return {}

    def drawing(self, given: EvaluationInput, item_id: str, finding: str) -> Drawing | None:
        """Return what a picture of one item and finding shows; None for a task that has no picture.

        Raises:
            ValueError: if there is no such item or finding, or no prediction is expected for it.
        """
        return None

    def curves(self, given: EvaluationInput) -> Mapping[str, Mapping[str, Curves]] | None:
        """Return the curves by subset and finding; None for a task that has none."""
        return None

    def compare(
        self, first: EvaluationInput, second: EvaluationInput, *, one_sided: bool
    ) -> list[dict[str, Any]] | None:
        """Return, per metric, the first system minus the second with a test; None for a task that has no comparison.

        Each has `metric`, `kind`, `n_items`, `n_groups`, the `unit` of its resamples, and per finding and for the
        `mean` both values, `delta`, `interval`, `test`, `p` and `reason`; the findings also `p_adjusted`.
        """
        return None

    @abstractmethod
    def evaluate(self, given: EvaluationInput) -> Evaluation:
        """Compute every metric of the protocol."""
