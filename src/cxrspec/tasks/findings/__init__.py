"""Own the `findings` task: one score per finding and item against labels, ranked and averaged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from cxrspec.errors import Issue
from cxrspec.fields import (
    Column,
    FieldIssue,
    Fields,
    Identifier,
    Names,
    Positive,
    PositiveCount,
    SubsetName,
    Text,
    one_or_list,
)
from cxrspec.tasks.findings.labels import BLANK, NEGATIVE, POSITIVE, UNCERTAIN, Labels, SeparatedLabels
from cxrspec.tasks.findings.rules import check_findings
from cxrspec.tasks.named import FindingName, NamedFindings
from cxrspec.tasks.task import (
    Evaluation,
    EvaluationInput,
    Interval,
    ItemColumns,
    PredictionColumn,
    PredictionNeed,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FindingsTask", "Interval", "Metric", "Probe", "ZeroShot"]


class Prompts(Fields):
    """A score is the similarity to the positive text minus that to the negative one."""

    positive: Text
    negative: Text


class ZeroShot(Fields):
    """The submission brings one score per finding and item."""

    prompts: dict[FindingName, Prompts] | None = None
    """Per finding, the texts that an image-text model must have used."""


class Probe(Fields):
    """The submission brings one embedding per item; one logistic head per finding is fitted on a frozen subset."""

    fit_on: SubsetName
    standardize: bool
    C: Annotated[list[Positive], Field(min_length=1)]
    folds: Annotated[int, Field(ge=2, le=100)]
    select_by: Literal["log_loss"]
    solver: Literal["lbfgs", "newton-cg"]
    """Solver of the fits on folds; the refit at the chosen C always runs to the optimum, which no solver moves."""
    max_iter: PositiveCount
    tol: Positive
    class_weight: Literal["balanced"] | None = None
    tolerance: Positive
    """Largest difference of a score between two machines that still counts as equal."""


class Protocols(Fields):
    """The ways in which a system may be scored."""

    zero_shot: ZeroShot | None = None
    probe: Probe | None = None


class Metric(Fields):
    """One number of the leaderboard: a ranking metric per finding, averaged without weights."""

    name: Identifier
    kind: Literal["roc_auc", "average_precision"]
    protocol: Annotated[Literal["zero_shot", "probe"], Names("protocol")]
    average: Literal["macro"]
    subset: SubsetName | None = None
    """The subset that is scored; `test` where absent."""
    interval: Annotated[list[Interval], one_or_list("an interval nor a list of intervals"), Field(min_length=1)]

    @property
    def scored_subset(self) -> str:
        """Name of the subset that is scored."""
        return self.subset or "test"


class FindingsTask(NamedFindings):
    """Binary (or uncertain) labels per finding; ROC-AUC and average precision, by scores or by a probe."""

    NAME: ClassVar[str] = "findings"
    TALLIES: ClassVar[Mapping[str, str | None]] = {
        **dict.fromkeys(("positives", "negatives", "uncertain", "blank"), "finding"),
        "none": None,
    }
    COMPILED: ClassVar[frozenset[str]] = NamedFindings.COMPILED | {"labels"}

    labels: Labels
    protocols: Protocols
    metrics: Annotated[list[Metric], Field(min_length=1)]

    @classmethod
    def check_references(
        cls, document: Mapping[str, Any], declared: Mapping[str, Sequence[str]]
    ) -> Iterator[FieldIssue]:
        """Yield spellings that name two findings, labels outside the vocabulary, metrics and protocols without use."""
        yield from check_findings(document, declared)

    def source_columns(self) -> Sequence[Column]:
        """Return the label columns."""
        return self.labels.columns({name: self.findings[name] for name in self.column_names})

    def reference_columns(self, items: ItemColumns) -> list[list[str]]:
        """Return one column of `1`, `0`, `-1` or blank per finding."""
        return self.labels.decode(items, {name: self.spellings(name) for name in self.column_names})

    def strata(self, columns: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
        """Return which items are positive [n_items, n_findings]."""
        import numpy as np

        return np.array([[cell == POSITIVE for cell in column] for column in columns], dtype=np.bool_).T

    def tally(self, columns: Sequence[Sequence[str]]) -> dict[str, Any]:
        """Count each label per finding, and the items with none of the findings positive."""
        cells = dict(zip(self.column_names, columns, strict=True))
        names = {"positives": POSITIVE, "negatives": NEGATIVE, "uncertain": UNCERTAIN, "blank": BLANK}
        counts: dict[str, Any] = {
            name: {finding: column.count(label) for finding, column in cells.items()} for name, label in names.items()
        }
        counts["none"] = sum(POSITIVE not in row for row in zip(*columns, strict=True))
        return counts

    def check_subset(self, name: str, columns: Sequence[Sequence[str]]) -> list[Issue]:
        """Refuse uncertain or blank labels where a metric scores them or a probe is fitted on them."""
        used = {metric.scored_subset for metric in self.metrics}
        used |= {self.protocols.probe.fit_on} if self.protocols.probe else set()
        if name not in used:
            return []
        return [
            Issue(
                "value-unknown",
                f"subset {name}, finding {finding}",
                f"{column.count(UNCERTAIN):,} labels are uncertain (-1) and {column.count(BLANK):,} blank; "
                f"a subset that is scored or fitted on holds 1 and 0 only",
                "Name a source whose labels are decided, or leave the subset out of metrics and protocols",
            )
            for finding, column in zip(self.column_names, columns, strict=True)
            if UNCERTAIN in column or BLANK in column
        ]

    def kept_apart(self) -> set[tuple[str, str]]:
        """A probe's training subset shares no group with what the probe is scored on."""
        probe = self.protocols.probe
        return (
            {(probe.fit_on, one.scored_subset) for one in self.metrics if one.protocol == "probe"} if probe else set()
        )

    @property
    def protocol_names(self) -> tuple[str, ...]:
        """The declared protocols."""
        return tuple(name for name in ("probe", "zero_shot") if getattr(self.protocols, name) is not None)

    def prediction_need(self, protocol: str) -> PredictionNeed:
        """Scores for the scored subsets; a probe also needs embeddings of the subset that it is fitted on."""
        scored = sorted({metric.scored_subset for metric in self.metrics if metric.protocol == protocol})
        if protocol == "probe" and self.protocols.probe:
            return PredictionNeed("embeddings", tuple(sorted({*scored, self.protocols.probe.fit_on})))
        columns = tuple(PredictionColumn(name, self.spellings(name)) for name in self.column_names)
        vocabulary = (self.labels.vocabulary or ()) if isinstance(self.labels, SeparatedLabels) else ()
        return PredictionNeed("scores", tuple(scored), columns, tuple(vocabulary))

    def reported_metrics(self) -> list[dict[str, str]]:
        """Return the metrics as they are declared: each is one number."""
        return [
            {"name": one.name, "kind": one.kind, "protocol": one.protocol, "average": one.average}
            for one in self.metrics
        ]

    def evaluate(self, given: EvaluationInput) -> Evaluation:
        """Compute every metric of the protocol, per finding and averaged, with intervals."""
        from cxrspec.tasks.findings.evaluation import evaluate

        return evaluate(self, given)
