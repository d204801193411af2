"""Own the comparison of two submissions of one definition version, scored by the same code as `score`.

It says in words what the numbers show and what they do not; it writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cxrspec.errors import Issue, SubmissionError, listed
from cxrspec.lock import Lock
from cxrspec.reading import check_submission
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.submission import Submission, load_submission, need_of, task_of
from cxrspec.tasks import EvaluationInput


@dataclass(frozen=True)
class Comparison:
    """The first system minus the second, metric by metric."""

    lock: Lock
    first: Submission
    second: Submission
    one_sided: bool
    metrics: Sequence[Mapping[str, Any]]
    notes: Sequence[Issue]

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as `--json` prints it."""
        return {
            "reference": str(self.lock.reference),
            "first": self.first.system,
            "second": self.second.system,
            "protocol": self.first.protocol,
            "definition_digest": self.lock.definition_digest,
            "subsets": {name: self.lock.subset_ids[name] for name in need_of(self.first, self.lock).subsets},
            "alternative": "first is larger" if self.one_sided else "they differ",
            "metrics": list(self.metrics),
            "shows": list(self.shows()),
            "does_not_show": list(self.does_not_show()),
            "notes": [note.as_json() for note in self.notes],
        }

    def shows(self) -> Iterator[str]:
        """Say in words what the numbers are."""
        sides = "one-sided: the first is larger" if self.one_sided else "two-sided"
        systems = f"{self.first.system} minus {self.second.system}"
        yield f"a difference is {systems}, on the same items of {self.lock.reference}"
        tests = self._tests()
        for test, where in tests.items():
            if test:
                yield f"p is {test} ({sides}), for {listed(where)}"
        if untested := tests.get(None):
            yield f"no test was made for {listed(untested)}: no bootstrap interval, so no resamples for one"
        yield "adjusted p: Benjamini and Hochberg over the findings of one metric; the p of a mean is not adjusted"

    def does_not_show(self) -> Iterator[str]:
        """Say in words what must not be read into the numbers."""
        yield "that two systems are equal: a large p is only no evidence that they differ"
        yield "what either would score if it were trained again, or on other items, subsets or definition versions"
        for metric in self.metrics:
            if metric["kind"] == "roc_auc" and metric["n_groups"] < metric["n_items"]:
                items = f"{metric['n_items']:,} items of {metric['n_groups']:,} groups"
                yield f"p without dependence: DeLong's test takes the {items} of {metric['metric']} as independent"

    def _tests(self) -> dict[str | None, list[str]]:
        """Return which numbers each test is of; under None those that none was made for."""
        found: dict[str | None, list[str]] = {}
        for metric in self.metrics:
            bootstrap = f"the paired bootstrap by {metric['unit']} on the resamples of the intervals"
            for name, entry in (
                ("each finding", next(iter(metric["findings"].values()))),
                ("the mean", metric["mean"]),
            ):
                words = {"DeLong": "DeLong's paired test", "paired bootstrap": bootstrap}
                found.setdefault(words.get(entry["test"]), []).append(f"{name} of {metric['metric']}")
        return found


def compare(first: Reference, second: Reference, registry: Registry, *, one_sided: bool = False) -> Comparison:
    """Compare two submissions of one definition version under one protocol; nothing is written.

    Raises:
        SubmissionError: if they are not of the same definition version and protocol, or one of them is refused.
        RegistryError: if the definition is not frozen, or a table or predictions are missing or altered.
    """
    lock = registry.read_lock(first.definition)
    if first.definition != second.definition:
        raise SubmissionError(_other_version(lock, registry.read_lock(second.definition), second.system or ""))
    one, other = (load_submission(registry, lock.reference, named.system or "") for named in (first, second))
    if issue := _mismatch(one, other, lock):
        raise SubmissionError(issue)
    read = [check_submission(each, lock, registry, each.system) for each in (one, other)]
    given = [EvaluationInput(one.protocol, lock.definition["seed"], found.tables, found.by_subset) for found in read]
    metrics = task_of(lock).compare(*given, one_sided=one_sided)
    if metrics is None:
        message = f"the task '{lock.definition['task']}' has no comparison of systems"
        raise SubmissionError(Issue("submission-field", "compare", message))
    notes = list(dict.fromkeys(note for found in read for note in found.notes))
    return Comparison(lock, one, other, one_sided, metrics, notes)


def _mismatch(first: Submission, second: Submission, lock: Lock) -> Issue | None:
    if first.system == second.system:
        return Issue("submission-field", "compare", f"'{first.system}' is named twice", "Name two systems")
    if first.protocol != second.protocol:
        message = f"'{first.system}' is of protocol {first.protocol}, '{second.system}' of {second.protocol}"
        hint = f"A difference would be one of protocols; {lock.reference} scores each on its own"
        return Issue("submission-reference", "compare", message, hint)
    return None


def _other_version(first: Lock, second: Lock, system: str) -> Issue:
    """Refuse two definition versions, with the way to compare them if there is one."""
    ids = [listed([f"{name} {one}" for name, one in lock.subset_ids.items()]) for lock in (first, second)]
    message = f"two systems are compared on the same frozen items only; one is of {first.reference} ({ids[0]}), "
    message += f"the other of {second.reference} ({ids[1]})"
    hint = "A score on one subset says nothing of another: submit predictions of both systems to one of them"
    if first.subset_ids == second.subset_ids:
        hint = f"Their subsets are equal: 'cxrspec submit {first.reference} --from {second.reference}/{system}'"
    return Issue("submission-reference", "compare", message, hint)
