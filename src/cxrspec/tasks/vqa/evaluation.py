"""Own how answers are scored: what is right, what graders say, by question type and together, intervals by case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cxrspec.digest import Table
from cxrspec.errors import Issue, listed
from cxrspec.metrics import (
    BLOCK,
    Reading,
    Readings,
    cohen_kappa,
    exact_match,
    fleiss_kappa,
    krippendorff_alpha,
    leading_polarity,
    resample_counts,
    token_f1,
)
from cxrspec.tasks.task import Evaluation, EvaluationInput, Grades

if TYPE_CHECKING:
    from cxrspec.tasks.interval import Interval
    from cxrspec.tasks.vqa import AnswerMetric, VqaTask

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

BASES = {
    **dict.fromkeys(("accuracy", "balanced_accuracy", "yes_rate"), "read as yes or no"),
    **dict.fromkeys(("exact_match", "token_f1"), "reference-based"),
    **dict.fromkeys(("mean_grade", "overall_grade"), "graded"),
}
"""What the numbers of each kind stand on: the words of the answer, the reference answer's words, or a grader."""


class Values(NamedTuple):
    """What a metric is a mean of: one value per item, over each of some sets of items, then over the sets."""

    value: Floats
    """[n_items]"""
    sets: list[tuple[str, Flags]]
    """Name and members [n_items]: all that count, or for balanced accuracy those of either reference answer."""


def evaluate(task: VqaTask, given: EvaluationInput) -> Evaluation:
    """Compute every metric of the protocol; undefined values are None with a reason."""
    result = Evaluation()
    subsets = {name: _Scored(task, name, given) for name in sorted({one.scored_subset for one in task.metrics})}
    for metric in task.metrics:
        scored = subsets[metric.scored_subset]
        if not scored.is_graded(metric):
            result.scores.append(scored.score(metric, None))
            if result.scores[-1]["value"] is not None:
                result.resampled[metric.name] = scored.resampled(metric)
        else:
            result.graded += [scored.score(metric, grades) for grades in given.grades]
    if len(given.grades) > 1:
        result.agreement = agreement(given.grades)
    graded = [metric.name for metric in task.metrics if subsets[metric.scored_subset].is_graded(metric)]
    if graded and not given.grades:
        message = f"nobody has graded the open-ended answers, so {listed(graded)} are not there"
        result.notes.append(Issue("note", "grades", message, "Make a sheet for a grader with 'cxrspec grade'"))
    return result


def agreement(grades: Sequence[Grades]) -> dict[str, Any]:
    """Return how far graders of the same items agree: a kappa, and Krippendorff's alpha for the ordinal grades."""
    items = sorted(grades[0].by_item)
    ratings = np.array([[one.by_item[item] for item in items] for one in grades])
    levels = np.unique(ratings)
    kappa = "cohen_kappa" if len(grades) == 2 else "fleiss_kappa"
    if len(grades) == 2:
        found = cohen_kappa(*ratings.tolist())
    else:
        found = fleiss_kappa((ratings[:, :, np.newaxis] == levels).sum(axis=0))
    values = {kappa: found, "krippendorff_alpha_ordinal": krippendorff_alpha(ratings, "ordinal")}
    undefined = [name for name, value in values.items() if value is None]
    return {
        "graders": [one.grader["name"] for one in grades],
        "n_items": len(items),
        **values,
        "reason": f"undefined for {', '.join(undefined)}: every grade is the same" if undefined else None,
    }


class _Scored:
    """One subset with its answers as they are read, and the resamples that all its metrics share."""

    def __init__(self, task: VqaTask, name: str, given: EvaluationInput) -> None:
        self.task, self.name, self.seed = task, name, given.seed
        self.table: Table = given.subsets[name]
        self.answers: Sequence[str] = given.predictions[name]
        self.reference = self.table.column("answer")
        self.types = np.array(self.table.column("question_type"), dtype=np.str_)
        self.is_closed: Flags = np.array(self.table.column("closed_ended")) == "1"
        self.groups: NDArray[np.int64] = np.unique(self.table.column("group_id"), return_inverse=True)[1]
        phrases = task.phrases
        self.readings = Readings(phrases.affirmative, phrases.negative, phrases.refusal)
        self._weights: dict[tuple[str, int], Floats] = {}
        self._read: dict[str, NDArray[np.str_]] = {}

    @cached_property
    def wanted(self) -> NDArray[np.str_]:
        """What the reference answers say [n_items]; only looked at where a question is closed-ended."""
        return np.array([leading_polarity(text) for text in self.reference])

    def read(self, reading: str) -> NDArray[np.str_]:
        """Return how the answers are read [n_items], each text once."""
        if reading not in self._read:
            read = self.readings.strict if reading == "strict" else self.readings.lenient
            known: dict[str, Reading] = {text: read(text) for text in set(self.answers)}
            self._read[reading] = np.array([known[text] for text in self.answers])
        return self._read[reading]

    def is_graded(self, metric: AnswerMetric) -> bool:
        """Return whether a number stands on grades: where no question is open-ended, none does."""
        return BASES[metric.kind] == "graded" and not self.is_closed.all()

    def score(self, metric: AnswerMetric, grades: Grades | None) -> dict[str, Any]:
        """Return one number, by question type too, with its counts and intervals."""
        values = self._values(metric, grades)
        everything = np.ones(len(self.table), dtype=np.bool_)
        entry = {
            "metric": metric.name,
            "kind": metric.kind,
            "protocol": metric.protocol,
            "basis": BASES["accuracy" if metric.kind == "overall_grade" and not grades else metric.kind],
            "subset": self.name,
            **self._entry(metric, values, everything),
            "question_types": {
                name: self._entry(metric, values, self.types == name) for name in self.task.strata_names
            },
        }
        if not entry["n_items"]:  # the subset has no such question: nothing that a system could be undefined on
            entry["applies"] = False
        if metric.reading:
            entry["reading"] = metric.reading
        if grades:
            entry["grader"] = dict(grades.grader)
        return entry

    def resampled(self, metric: AnswerMetric) -> list[Floats]:
        """Return a number that needs no grades on each resample, for each of its intervals."""
        values = self._values(metric, None)
        return [self._resampled(*values, fields) for fields in metric.interval]

    def _values(self, metric: AnswerMetric, grades: Grades | None) -> Values:
        closed, opened = self.is_closed, ~self.is_closed
        if metric.kind in ("exact_match", "token_f1"):
            compare = exact_match if metric.kind == "exact_match" else token_f1
            pairs = zip(self.answers, self.reference, strict=True)
            return Values(np.array([compare(*pair) for pair in pairs]), [("open-ended question", opened)])
        if metric.kind == "yes_rate":
            said = (self.read(metric.reading or "strict") == "yes").astype(np.float64)
            return Values(said, [("closed-ended question", closed)])
        graded = np.array(
            [
                grades.by_item[item] if grades and not is_closed else np.nan  # a missing grade is never a 0
                for item, is_closed in zip(self.table.item_ids, closed, strict=True)
            ]
        )
        if metric.kind == "mean_grade":
            return Values(graded, [("open-ended question", opened)])
        decided = np.isin(self.wanted, ("yes", "no"))  # what says neither is never right, whatever it is compared with
        right = ((self.read(metric.reading or "strict") == self.wanted) & decided).astype(np.float64)
        if metric.kind == "overall_grade":
            everything = np.ones(len(self.table), dtype=np.bool_)
            return Values(np.where(closed, right, graded), [("question", everything)])
        if metric.kind == "accuracy":
            return Values(right, [("closed-ended question", closed)])
        sides = [(f"closed-ended question answered {said}", closed & (self.wanted == said)) for said in ("yes", "no")]
        return Values(right, sides)

    def _entry(self, metric: AnswerMetric, values: Values, among: Flags) -> dict[str, Any]:
        """Return value, reason, counts and intervals among some of the items."""
        sets = [(what, members & among) for what, members in values.sets]
        counted: Flags = np.logical_or.reduce([members for _, members in sets])
        absent = [what for what, members in sets if not members.any()]
        reason = f"no {' and no '.join(absent)}" if absent else None
        value = None if reason else float(np.mean([values.value[members].mean() for _, members in sets]))
        return {
            "value": value,
            "reason": reason,
            "n_items": int(counted.sum()),
            "n_groups": len(np.unique(self.groups[counted])),
            "n_missing": 0,
            "n_excluded": int((among & ~counted).sum()),
            **self._counts(metric, counted),
            "intervals": [
                fields.entry(None if reason else self._resampled(values.value, sets, fields), reason)
                for fields in metric.interval
            ],
        }

    def _counts(self, metric: AnswerMetric, counted: Flags) -> dict[str, int]:
        """Count, of the closed-ended items that count, what the reference answers and the system's answers say."""
        if metric.reading is None:
            answers = [text for text, counts in zip(self.answers, counted, strict=True) if counts]
            return {"n_empty": sum(self.readings.strict(text) == "empty" for text in answers)}
        closed = counted & self.is_closed
        wanted, said = Counter(self.wanted[closed].tolist()), Counter(self.read(metric.reading)[closed].tolist())
        return {
            "n_positive": wanted["yes"],
            "n_negative": wanted["no"],
            **{f"n_said_{kind}": said[kind] for kind in ("yes", "no")},
            **{f"n_{kind}": said[kind] for kind in ("undecided", "refusal", "empty")},
        }

    def _resampled(self, value: Floats, sets: Sequence[tuple[str, Flags]], fields: Interval) -> Floats:
        """Return the metric on each resample [resamples]; NaN where a set has no item in it."""
        weights = self._weights_of(fields)
        means = []
        for _, members in sets:
            size = members @ weights
            total = np.where(members, value, 0.0) @ weights
            means.append(np.divide(total, size, out=np.full_like(size, np.nan), where=size > 0))
        return np.asarray(np.mean(means, axis=0))

    def _weights_of(self, fields: Interval) -> Floats:
        """Return how often each item occurs in each resample, [n_items, resamples]; a drawn case has all its items."""
        key = (fields.unit, fields.resamples)
        if key not in self._weights:
            units = np.arange(len(self.table)) if fields.unit == "item" else self.groups
            stream, n_units = f"{self.seed}:{self.name}:{fields.unit}", int(units.max()) + 1
            blocks = [resample_counts(stream, block, n_units)[units] for block in range(-(-fields.resamples // BLOCK))]
            self._weights[key] = np.concatenate(blocks, axis=1)[:, : fields.resamples].astype(np.float64)
        return self._weights[key]
