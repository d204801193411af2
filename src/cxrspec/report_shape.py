"""Own the shape of a report: what whoever shows, exports or audits one finds in it. It compares and opens nothing.

What only describes how the numbers came about is not here, and unknown parts are no fault: later versions may add some.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from cxrspec.errors import listed
from cxrspec.strict_yaml import field_text


class _Part(BaseModel):
    """Base of every part: values are never converted."""

    model_config = ConfigDict(strict=True, frozen=True)


class _Interval(_Part):
    method: str
    level: float
    unit: str | None = None
    resamples: int | None = None
    low: float | None
    high: float | None
    reason: str | None

    @model_validator(mode="after")
    def _has_both_ends(self) -> _Interval:
        if (self.low is None) != (self.high is None):
            raise ValueError("one end without the other")
        return self


class _Value(_Part):
    value: float | None
    reason: str | None
    n_items: int
    intervals: list[_Interval]


class _Reader(_Part):
    margin: float | None
    sensitivity: float | None
    specificity: float | None
    precision: float | None


class _Finding(_Value):
    n_positive: int
    n_negative: int
    n_missing: int
    n_excluded: int
    readers: dict[str, _Reader] = {}
    majority_vote: _Reader | None = None


class _Answers(_Value):
    """A value of answers has some of these counts; which ones depends on the metric."""

    n_groups: int
    n_missing: int = 0
    n_excluded: int = 0
    n_positive: int = 0
    n_negative: int = 0
    n_said_yes: int = 0
    n_said_no: int = 0
    n_undecided: int = 0
    n_refusal: int = 0
    n_empty: int = 0

    @property
    def counts(self) -> set[str]:
        """Names of the counts that are there."""
        return _Answers.model_fields.keys() & self.model_fields_set


class _Stratum(_Value):
    n_groups: int
    findings: dict[str, _Finding]


class _Convention(_Part):
    curve: str
    line: str


class _Score(_Answers):
    metric: str
    kind: str
    subset: str
    signature: str
    basis: str = ""
    findings: dict[str, _Finding] = {}
    question_types: dict[str, _Answers] = {}
    strata: dict[str, dict[str, _Stratum]] = {}
    n_in_no_stratum: dict[str, int] = {}
    convention: _Convention | None = None
    total: int | None = None

    @model_validator(mode="after")
    def _has_its_parts(self) -> _Score:
        has_parts = self.findings or "question_types" in self.model_fields_set  # a file of questions may lack types
        if not has_parts or not (self.intervals or self.convention):
            raise ValueError("neither findings nor question types, or no interval")
        if self.strata.keys() != self.n_in_no_stratum.keys():
            raise ValueError("a covariate without the items that are in none of its strata")
        if any(one.counts != self.counts for one in self.question_types.values()):
            raise ValueError("question types with other counts than all questions")
        return self


class _Grader(_Part):
    name: str
    kind: str
    sha256: str
    prompt_sha256: str = ""


class _Graded(_Score):
    question_types: dict[str, _Answers]
    grader: _Grader


class _Agreement(_Part):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, float | None]
    """Coefficients by name."""

    graders: list[str]
    n_items: int
    reason: str | None


class _Covered(_Part):
    items: int
    n_items: int
    groups: int
    n_groups: int


class _Overlap(_Part):
    bound: Literal["exact", "at_most", "at_least"] | None
    subsets: dict[str, _Covered]
    notes: list[str]
    reason: str | None

    @model_validator(mode="after")
    def _has_counts_or_none(self) -> _Overlap:
        if (self.bound is None) != (not self.subsets):
            raise ValueError("counts without a bound, or a bound without counts")
        return self


class _Subset(_Part):
    id: str


class _Predictions(_Part):
    sha256: str
    n_left_aside: int


class _Report(_Part):
    protocol: str
    definition_digest: str
    subsets: dict[str, _Subset]
    predictions: _Predictions
    card: dict[str, str]
    trained_on: str
    scores: list[_Score]
    graded: list[_Graded] = []
    agreement: _Agreement | None = None
    overlap: _Overlap | None = None
    notes: list[str]

    @model_validator(mode="after")
    def _fits_itself(self) -> _Report:
        scores = [*self.scores, *self.graded]
        if not {score.subset for score in scores} <= self.subsets.keys():
            raise ValueError("a score of a subset that is not among the subsets")
        if len({(*score.findings, *score.question_types) for score in scores}) > 1:
            raise ValueError("scores of different findings or question types")
        return self


_ABSENT: Final = "missing"


def shape_faults(report: Mapping[str, Any]) -> list[str]:
    """Return what a report lacks, and which of its parts have another form than a report has."""
    try:
        _Report.model_validate(report)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
    else:
        return []
    places = [(detail["type"] == _ABSENT, f"'{field_text(detail['loc']) or 'scores'}'") for detail in details]
    absent, wrong = ([place for lacks, place in places if lacks is kind] for kind in (True, False))
    faults = [f"lacks {listed(absent)}"] if absent else []
    return faults + ([f"has another form than a report in {listed(wrong)}"] if wrong else [])
