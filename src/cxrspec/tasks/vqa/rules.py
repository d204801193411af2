"""Own the cross-field rules of the `vqa` task, on the raw document: what its fields contradict in each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cxrspec.errors import listed
from cxrspec.field_errors import list_at, mapping_at
from cxrspec.fields import FieldIssue
from cxrspec.spelling import plain_name
from cxrspec.tasks.scored import check_scored

_ROLES: Final = {"question_type": "question_types", "condition": "conditions"}


def check_questions(
    document: Mapping[str, Any], declared: Mapping[str, Sequence[str]], *, closed_kinds: Sequence[str]
) -> Iterator[FieldIssue]:
    """Yield every contradiction between columns, names, phrases and metrics."""
    for role, names in _ROLES.items():
        has_column = mapping_at(document, "columns").get(role) is not None
        if has_column != bool(declared[role]):
            message = f"columns.{role} and {names} go together: one has no use without the other"
            yield FieldIssue((names,), "reference-conflict", message, "Give both, or leave both out")
        yield from _check_spellings(names, mapping_at(document, names))
    closed = mapping_at(document, "closed_ended")
    if closed.get("by") == "column" and closed.get("open") is None:
        message = "the cells that say open-ended are not declared, and nothing is taken as open-ended silently"
        yield FieldIssue(("closed_ended", "open"), "field-missing", message, "Write them beside one_of, as open: [...]")
    yield from _check_phrases(mapping_at(document, "phrases"))
    yield from check_scored(document, declared)
    yield from _check_readings(list_at(document, "metrics"), closed_kinds)


def _check_spellings(field: str, names: Mapping[Any, Any]) -> Iterator[FieldIssue]:
    """Refuse a word that names two types or two conditions."""
    owner: dict[str, str] = {}
    for ours, spelled in names.items():
        for spelling in [ours, spelled] if isinstance(spelled, str) else [ours, *list_at(names, ours)]:
            if isinstance(spelling, str) and owner.setdefault(plain_name(spelling), ours) != ours:
                message = f"'{spelling}' names both {owner[plain_name(spelling)]} and {ours}"
                yield FieldIssue((field, ours), "reference-conflict", message, "Keep one of them")


def _check_phrases(phrases: Mapping[Any, Any]) -> Iterator[FieldIssue]:
    """Refuse a phrase without words, and one that would say two things."""
    from cxrspec.metrics import clashing_phrases, words

    lists = {kind: _texts(phrases.get(kind)) for kind in ("affirmative", "negative", "refusal")}
    for at, (kind, texts) in enumerate(lists.items()):
        if empty := [text for text in texts if not words(text)]:
            message = f"no word in {_quoted(empty)}"
            yield FieldIssue(("phrases", kind), "reference-conflict", message, "Leave it out")
        for other in list(lists)[:at]:
            if clashing := clashing_phrases(lists[other], [text for text in texts if words(text)]):
                message = f"{_quoted(clashing)} stands under {other} too"
                yield FieldIssue(("phrases", kind), "reference-conflict", message, "Keep one of them")


def _quoted(texts: Sequence[str]) -> str:
    return listed([f"'{text}'" for text in texts])


def _texts(value: Any) -> list[str]:
    texts = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [text for text in texts if isinstance(text, str)]


def _check_readings(metrics: Sequence[Any], closed_kinds: Sequence[str]) -> Iterator[FieldIssue]:
    """Refuse a reading where none is used, and none where one is."""
    for i, metric in enumerate(metrics):
        kind = metric.get("kind") if isinstance(metric, Mapping) else None
        if isinstance(kind, str) and (kind in closed_kinds) != (metric.get("reading") is not None):
            message = f"reading belongs to {listed(closed_kinds)}, and these need one: strict or lenient"
            yield FieldIssue(("metrics", i, "reading"), "reference-conflict", message)
