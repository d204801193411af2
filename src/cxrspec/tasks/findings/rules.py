"""Own the cross-field rules of the `findings` task, on the raw document: what its fields contradict in each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cxrspec.errors import did_you_mean, listed
from cxrspec.field_errors import list_at, mapping_at
from cxrspec.fields import FieldIssue
from cxrspec.spelling import plain_name
from cxrspec.tasks.findings.readers import check_readers
from cxrspec.tasks.scored import check_scored

FIRST_COLUMNS: Final = ("item_id", "group_id")
"""What the frozen table of a subset begins with; no finding may be called so."""


def check_findings(document: Mapping[str, Any], declared: Mapping[str, Sequence[str]]) -> Iterator[FieldIssue]:
    """Yield every contradiction between findings, aliases, labels, protocols and metrics."""
    for name in FIRST_COLUMNS:
        if name in declared["finding"]:
            message = f"'{name}' is a column of every table"
            yield FieldIssue(("findings", name), "reference-conflict", message, "Choose another name")
    yield from _check_spellings(document)
    yield from _check_vocabulary(document)
    yield from _check_prompts(document, declared["finding"])
    yield from check_readers(document)
    yield from _check_metrics(document, declared)


def _check_spellings(document: Mapping[str, Any]) -> Iterator[FieldIssue]:
    """Refuse a spelling that names two findings, or a finding and the word for none of them."""
    negative = mapping_at(document, "labels").get("negative")
    owner = {plain_name(negative): "the word for none of them"} if isinstance(negative, str) else {}
    for path, ours, spelling in _spellings(document):
        other = owner.setdefault(plain_name(spelling), ours)
        if other != ours:
            message = f"'{spelling}' names both {other} and {ours}; case, blanks, '_' and '-' never matter"
            yield FieldIssue(path, "reference-conflict", message, "Keep one of them")


def _spellings(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """Yield (path, our name, spelling), the source's labels first."""
    for ours, theirs in mapping_at(document, "findings").items():
        if isinstance(theirs, str):
            yield ("findings", ours), ours, theirs
    aliases = mapping_at(document, "aliases")
    for ours in aliases:
        for i, theirs in enumerate(list_at(aliases, ours)):
            if isinstance(theirs, str):
                yield ("aliases", ours, i), ours, theirs


def _check_vocabulary(document: Mapping[str, Any]) -> Iterator[FieldIssue]:
    """Refuse a source's label that could never be found: outside the vocabulary, or split by the separator."""
    labels = mapping_at(document, "labels")
    vocabulary = [name for name in list_at(labels, "vocabulary") if isinstance(name, str)]
    separator = labels.get("separator")
    for ours, theirs in mapping_at(document, "findings").items():
        if not isinstance(theirs, str):
            continue
        if vocabulary and plain_name(theirs) not in set(map(plain_name, vocabulary)):
            message = f"the label '{theirs}' is not in the vocabulary: {listed(vocabulary)}"
            yield FieldIssue(("findings", ours), "reference-unknown", message, did_you_mean(theirs, vocabulary))
        if isinstance(separator, str) and separator and separator in theirs:
            message = f"the separator '{separator}' would split the label '{theirs}'"
            yield FieldIssue(("labels", "separator"), "reference-conflict", message)


def _check_prompts(document: Mapping[str, Any], findings: Sequence[str]) -> Iterator[FieldIssue]:
    zero_shot = mapping_at(mapping_at(document, "protocols"), "zero_shot")
    prompts = mapping_at(zero_shot, "prompts")
    if zero_shot.get("similarity") is not None and not prompts:
        message = "a similarity is to prompts, and there are none"
        yield FieldIssue(("protocols", "zero_shot", "similarity"), "reference-conflict", message, "Add prompts")
    path = ("protocols", "zero_shot", "prompts")
    if zero_shot.get("prompts") == {}:
        yield FieldIssue(path, "field-value", "no finding has prompts", "Name them for every finding, or leave it out")
    for name in findings if prompts else ():
        if name not in prompts:
            yield FieldIssue((*path, name), "field-missing", "this finding has no prompts, and others have")
    for name in prompts:
        texts = [mapping_at(prompts, name).get(sign) for sign in ("positive", "negative")]
        plain = [" ".join(text.split()).casefold() for text in texts if isinstance(text, str)]
        if len(plain) > 1 and plain[0] == plain[1]:
            message = "says what the positive text says, so no image is nearer to one of them"
            yield FieldIssue((*path, name, "negative"), "reference-conflict", message, "Write two different texts")


def _check_metrics(document: Mapping[str, Any], declared: Mapping[str, Sequence[str]]) -> Iterator[FieldIssue]:
    """Refuse DeLong's interval of another metric than a ROC-AUC, and protocols that no metric scores."""
    yield from check_scored(document, declared)
    metrics = [metric for metric in list_at(document, "metrics") if isinstance(metric, Mapping)]
    for i, metric in enumerate(list_at(document, "metrics")):
        if isinstance(metric, Mapping) and metric.get("kind") != "roc_auc":
            yield from _check_delong(metric, i)
    for protocol in declared["protocol"]:
        if isinstance(document.get("metrics"), list) and protocol not in [metric.get("protocol") for metric in metrics]:
            message = "no metric scores this protocol"
            yield FieldIssue(("protocols", protocol), "reference-conflict", message, "Add a metric, or leave it out")


def _check_delong(metric: Mapping[str, Any], i: int) -> Iterator[FieldIssue]:
    intervals = list_at(metric, "interval") or [mapping_at(metric, "interval")]
    for at, interval in enumerate(intervals):
        if isinstance(interval, Mapping) and interval.get("method") == "delong":
            path = ("metrics", i, "interval", at) if list_at(metric, "interval") else ("metrics", i, "interval")
            message = "DeLong's variance is that of a ROC-AUC"
            yield FieldIssue((*path, "method"), "reference-conflict", message, "Use method: bootstrap here")
