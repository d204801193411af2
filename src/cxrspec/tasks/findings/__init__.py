"""Own the `findings` task: one score per finding and item against labels, ranked and averaged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, Tag, model_validator

from cxrspec.choices import Similarity
from cxrspec.digest import Table
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
    chosen_by,
    one_or_list,
)
from cxrspec.tasks.findings.delong import DeLongInterval
from cxrspec.tasks.findings.labels import BLANK, NEGATIVE, POSITIVE, UNCERTAIN, ColumnLabels, Labels
from cxrspec.tasks.findings.readers import READERS_BELOW, Readers, ReadersMetric
from cxrspec.tasks.findings.rules import check_findings
from cxrspec.tasks.findings.strata import CovariateName, StrataRef, covariate_issues
from cxrspec.tasks.findings.uncertainty import UncertainPolicies, check_policies, expand_policy, policy_notes
from cxrspec.tasks.interval import Interval
from cxrspec.tasks.named import FindingName, NamedFindings
from cxrspec.tasks.scored import ScoredMetric
from cxrspec.tasks.task import (
    Curves,
    Evaluation,
    EvaluationInput,
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
    similarity: Similarity | None = None
    """How its embeddings of images and prompts are scored; where absent, it must bring scores."""


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
    uncertain: UncertainPolicies | None = None
    """What is made of uncertain training labels (-1), for all findings or each; where absent they are refused."""
    tolerance: Positive
    """Largest difference of a score between two machines that still counts as equal."""


class Protocols(Fields):
    """The ways in which a system may be scored."""

    zero_shot: ZeroShot | None = None
    probe: Probe | None = None


class Metric(ScoredMetric):
    """One number of the leaderboard: a ranking metric per finding, averaged without weights."""

    name: Identifier
    kind: Literal["roc_auc", "average_precision"]
    protocol: Annotated[Literal["zero_shot", "probe"], Names("protocol")]
    average: Literal["macro"]
    interval: Annotated[
        list[
            Annotated[
                Annotated[Interval, Tag("bootstrap")] | Annotated[DeLongInterval, Tag("delong")],
                chosen_by("method", "delong", otherwise="bootstrap"),
            ]
        ],
        one_or_list("an interval nor a list of intervals"),
        Field(min_length=1),
    ]
    strata: Annotated[dict[CovariateName, StrataRef] | None, Field(min_length=1)] = None
    """Covariates by which the metric is asked for subgroups too: `values`, or a list of where bands start."""


class FindingsTask(NamedFindings):
    """Binary (or uncertain) labels per finding; ROC-AUC and average precision, by scores or by a probe."""

    NAME: ClassVar[str] = "findings"
    HUB_TASK: ClassVar[str] = "image-classification"
    TALLIES: ClassVar[Mapping[str, str | None]] = {
        **dict.fromkeys(("positives", "negatives", "uncertain", "blank", "negatives_or_blank"), "finding"),
        "none": None,
    }
    COMPILED: ClassVar[frozenset[str]] = NamedFindings.COMPILED | {"labels"}
    USED_BY: ClassVar[Mapping[str, str]] = {"readers": READERS_BELOW}

    labels: Labels
    readers: Readers | None = None
    protocols: Protocols
    metrics: list[
        Annotated[
            Annotated[Metric, Tag("roc_auc")] | Annotated[ReadersMetric, Tag(READERS_BELOW)],
            chosen_by("kind", READERS_BELOW, otherwise="roc_auc"),
        ]
    ]
    """None of them, and no protocol, where a definition only freezes labels."""

    @model_validator(mode="before")
    @classmethod
    def _expand_policy(cls, document: Any) -> Any:
        return expand_policy(document)

    @classmethod
    def check_references(
        cls, document: Mapping[str, Any], declared: Mapping[str, Sequence[str]]
    ) -> Iterator[FieldIssue]:
        """Yield spellings that name two findings, labels outside the vocabulary, metrics and protocols without use."""
        yield from check_findings(document, declared)
        yield from check_policies(document, declared["finding"])

    def source_columns(self) -> Sequence[Column]:
        """Return the label columns, then those of the readers."""
        columns = self.labels.columns(self._source_names)
        if self.readers and isinstance(self.labels, ColumnLabels):
            columns += self.readers.columns(self.labels, self._source_names)
        return columns

    @property
    def _source_names(self) -> dict[str, str]:
        """Our name: the source's label, in code-point order of our names."""
        return {name: self.findings[name] for name in self.finding_names}

    @property
    def column_names(self) -> tuple[str, ...]:
        """The findings in code-point order, then the reads of each reader."""
        return (*self.finding_names, *(self.readers.column_names(self.finding_names) if self.readers else ()))

    def reference_columns(self, items: ItemColumns) -> list[list[str]]:
        """Return one column of `1`, `0`, `-1` or blank per finding, then per reader and finding."""
        columns = self.labels.decode(items, {name: self.spellings(name) for name in self.finding_names})
        if self.readers and isinstance(self.labels, ColumnLabels):
            columns += self.readers.decode(items, self.labels, self._source_names)
        return columns

    def _of_findings(self, columns: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
        return columns[: len(self.findings)]

    def strata(self, columns: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
        """Return which items are positive [n_items, n_findings]."""
        import numpy as np

        return np.array(
            [[cell == POSITIVE for cell in column] for column in self._of_findings(columns)], dtype=np.bool_
        ).T

    def tally(self, columns: Sequence[Sequence[str]]) -> dict[str, Any]:
        """Count each label per finding, and the items with none of the findings positive."""
        cells = dict(zip(self.finding_names, self._of_findings(columns), strict=True))
        names = {"positives": POSITIVE, "negatives": NEGATIVE, "uncertain": UNCERTAIN, "blank": BLANK}
        counts: dict[str, Any] = {
            name: {finding: column.count(label) for finding, column in cells.items()} for name, label in names.items()
        }
        if any(counts["blank"].values()):  # publishers count what is not mentioned as negative
            counts["negatives_or_blank"] = {
                finding: counts["negatives"][finding] + counts["blank"][finding] for finding in cells
            }
        counts["none"] = sum(POSITIVE not in row for row in zip(*cells.values(), strict=True))
        return counts

    def check_subset(self, name: str, columns: Sequence[Sequence[str]]) -> list[Issue]:
        """Refuse uncertain or blank labels where a metric scores them or a probe is fitted on them."""
        scored = {metric.scored_subset for metric in self.metrics}
        probe = self.protocols.probe
        used = scored | ({probe.fit_on} if probe and not probe.uncertain else set())
        if name not in used:
            return []
        issues = [
            Issue(
                "value-unknown",
                f"subset {name}, finding {finding}",
                f"{column.count(UNCERTAIN):,} labels are uncertain (-1) and {column.count(BLANK):,} blank; "
                f"a subset that is scored or fitted on holds 1 and 0 only",
                "Name a source whose labels are decided, or leave the subset out of metrics and protocols; "
                "what a probe is fitted on may have a policy, protocols.probe.uncertain",
            )
            for finding, column in zip(self.finding_names, self._of_findings(columns), strict=True)
            if UNCERTAIN in column or BLANK in column
        ]
        if self.readers and name in scored:
            issues += self.readers.subset_issues(name, self.finding_names, columns[len(self.findings) :])
        return issues

    def check_covariates(self, name: str, covariates: Table) -> list[Issue]:
        """Refuse covariates that cannot divide a scored subset as its metrics ask."""
        asked = [metric.strata or {} for metric in self._ranking_metrics if metric.scored_subset == name]
        return list(dict.fromkeys(issue for strata in asked for issue in covariate_issues(name, strata, covariates)))

    def notes(self) -> list[Issue]:
        """Note a policy for uncertain labels that holds for every finding."""
        probe = self.protocols.probe
        return policy_notes(probe.uncertain) if probe and probe.uncertain else []

    def distinct_sources(self) -> Mapping[str, str]:
        """Return the sources of the labels and of every reader."""
        if self.readers and isinstance(self.labels, ColumnLabels):
            return self.readers.sources(self.labels.source or "")
        return {}

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
        columns = tuple(PredictionColumn(name, self.spellings(name)) for name in self.finding_names)
        zero_shot = self.protocols.zero_shot or ZeroShot()
        prompts = {name: (one.positive, one.negative) for name, one in (zero_shot.prompts or {}).items()}
        known = tuple(self.labels.vocabulary or ())
        return PredictionNeed("scores", tuple(scored), columns, known, prompts, zero_shot.similarity)

    def divided_subsets(self, protocol: str) -> set[str]:
        """Return the scored subsets of metrics that ask for strata."""
        asked = [metric for metric in self._ranking_metrics if metric.protocol == protocol and metric.strata]
        return {metric.scored_subset for metric in asked}

    @property
    def _ranking_metrics(self) -> list[Metric]:
        return [metric for metric in self.metrics if isinstance(metric, Metric)]

    def reported_metrics(self, counts: Mapping[str, Mapping[str, Any]] | None = None) -> list[dict[str, str]]:
        """Return the metrics as they are declared: each is one number."""
        return [
            {"name": one.name, "kind": one.kind, "protocol": one.protocol, "average": one.average}
            for one in self.metrics
        ]

    def evaluate(self, given: EvaluationInput) -> Evaluation:
        """Compute every metric of the protocol, per finding and averaged, with intervals."""
        from cxrspec.tasks.findings.evaluation import evaluate

        return evaluate(self, given)

    def curves(self, given: EvaluationInput) -> Mapping[str, Mapping[str, Curves]]:
        """Return the curves by subset and finding, with the readers who are compared."""
        from cxrspec.tasks.findings.curves import curves

        return curves(self, given)

    def compare(self, first: EvaluationInput, second: EvaluationInput, *, one_sided: bool) -> list[dict[str, Any]]:
        """Return the differences of the ranking metrics, per finding and of the mean."""
        from cxrspec.tasks.findings.comparison import compare

        return list(compare(self, first, second, one_sided=one_sided))
