"""Own which systems a paired test separates: groups of systems whose difference may be chance share a rank.

The test is the paired bootstrap on the resamples of the intervals, by the definition's own unit. It reads what `score`
reads, and keeps nothing but a memo of resampled means.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from cxrspec import __version__
from cxrspec.digest import json_digest
from cxrspec.errors import CxrspecError, Issue, RegistryError, SubmissionError
from cxrspec.files import write_whole
from cxrspec.lock import Lock
from cxrspec.registry import Registry
from cxrspec.score import resampled_means
from cxrspec.submission import Submission, load_submission

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass
class Ranks:
    """The rank groups of some systems; 1 is the best."""

    groups: dict[str, list[int]] = field(default_factory=dict)
    """Per system the groups that it is in; two systems are in one group if and only if no test separates them."""
    untested: dict[str, str] = field(default_factory=dict)
    """Systems that could not be tested, with the reason."""


def rank_systems(lock: Lock, metric: str, systems: Sequence[str], level: float, registry: Registry) -> Ranks:
    """Return the rank groups of systems that have a value and an interval of a metric, given best first.

    Two are separated if the percentile interval of their paired difference, at the level of the metric's own first
    interval, leaves out zero. There is no correction for the number of pairs.
    """
    ranks = Ranks()
    means: dict[str, NDArray[np.float64] | None] = {}
    for system in systems:
        try:
            means[system] = _means(lock, metric, system, registry) if len(systems) > 1 else None
        except CxrspecError as error:
            ranks.untested[system] = str(error.issues[0])
    separated = [(a, b) for (a, first), (b, second) in combinations(means.items(), 2) if _differ(first, second, level)]
    for number, group in enumerate(shared_groups(list(means), separated), start=1):
        for system in group:
            ranks.groups.setdefault(system, []).append(number)
    return ranks


def shared_groups(systems: Sequence[str], separated: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the largest groups without a separated pair, in the order of the systems (Piepho 2004, insert and absorb).

    >>> shared_groups(["a", "b", "c"], [("a", "c")])
    [['a', 'b'], ['b', 'c']]
    """
    groups = [frozenset(systems)] if systems else []
    for pair in separated:
        for group in [one for one in groups if one.issuperset(pair)]:
            groups.remove(group)
            for rest in (group - {name} for name in pair):
                if not any(rest <= other for other in groups):
                    groups.append(rest)
    return sorted((sorted(group, key=systems.index) for group in groups), key=lambda one: [*map(systems.index, one)])


def _differ(first: NDArray[np.float64] | None, second: NDArray[np.float64] | None, level: float) -> bool:
    from cxrspec.metrics import percentile_interval

    if first is None or second is None:
        return False
    found = percentile_interval(first - second, level, max_left_out_share=1.0)
    return found.low is not None and found.high is not None and (found.low > 0 or found.high < 0)


def _means(lock: Lock, metric: str, system: str, registry: Registry) -> NDArray[np.float64]:
    """Return the resampled means of a system, from the memo if they were computed before on this machine."""
    import numpy as np

    submission = load_submission(registry, lock.reference, system)
    path = registry.root / ".cxrspec" / "resampled" / f"{_key(lock, submission, metric)}.npy"
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (OSError, ValueError, EOFError):
        pass
    resampled = resampled_means(submission, lock, registry).get(metric)
    if not resampled:
        raise SubmissionError(Issue("undefined", f"{lock.reference}/{system}", f"{metric} has no value on resamples"))
    found: NDArray[np.float64] = resampled[0]
    written = io.BytesIO()
    np.save(written, found, allow_pickle=False)
    try:
        with registry.writing():
            write_whole(path, written.getvalue())
    except RegistryError:
        pass  # a memo that cannot be kept is only time
    return found


def _key(lock: Lock, submission: Submission, metric: str) -> str:
    said: Mapping[str, object] = submission.model_dump(mode="json", exclude_none=True)
    return json_digest([lock.definition_digest, lock.subset_ids, said, metric, __version__])
