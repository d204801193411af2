"""Own the heuristic that assigns questions to a case (Kohlberger et al., PhysioNet 2025), without randomness; no I/O.

A case gets the questions of the condition that it was chosen for, one per question type; those of one further positive
condition, or else the presence question of one negative condition; and one question that depends on no condition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from cxrspec.spelling import plain_name

PRESENCE: Final = "presence"
POSITIVE: Final = "1"
NEGATIVE: Final = ("0", "")
"""A condition that a report does not mention counts as negative, as in the label tables; uncertain is neither."""


class Question(NamedTuple):
    """A question, or a template of one; without a condition it may be asked of every case."""

    condition: str
    question_type: str
    text: str


def assign_questions(
    case: str, labels: Mapping[str, str], chosen_for: str, templates: Sequence[Question], seed: int
) -> list[Question]:
    """Return the questions of one case, each text once, in code-point order.

    Whatever the published text calls random is decided by SHA-256 of `"<seed>:<case>:<what is chosen>"`, the smallest
    first; the order of templates never matters.

    Args:
        case: its id.
        labels: its label of every condition: `1`, `0`, `-1` or blank.
        chosen_for: the condition that the case was chosen for.
        templates: every question that may be asked.
        seed: the definition's.
    """

    def first(options: Iterable[str]) -> str:
        return min(options, key=lambda option: hashlib.sha256(f"{seed}:{case}:{option}".encode()).digest())

    asked = _of_condition(chosen_for, templates, first)
    others = sorted({one.condition for one in templates} - {chosen_for, ""})
    positive = [name for name in others if labels.get(name) == POSITIVE]
    presence = [one for one in templates if plain_name(one.question_type) == PRESENCE]
    negative = [name for name in others if labels.get(name, "") in NEGATIVE and name in {o.condition for o in presence}]
    if positive:
        asked += _of_condition(first(positive), templates, first)
    elif negative:
        asked += _of_condition(first(negative), presence, first)
    if independent := {one.text: one for one in templates if not one.condition}:
        asked.append(independent[first(independent)])
    return sorted({one.text: one for one in reversed(asked)}.values())


def _of_condition(
    condition: str, templates: Sequence[Question], first: Callable[[Iterable[str]], str]
) -> list[Question]:
    """Return one question of the condition per question type."""
    by_type: dict[str, list[str]] = {}
    for one in templates:
        if one.condition == condition:
            by_type.setdefault(one.question_type, []).append(one.text)
    return [Question(condition, name, first(texts)) for name, texts in sorted(by_type.items())]
