"""Own the cross-field rules of a definition: every name that is used must be declared.

They read the raw document, so that a faulty field in one place hides no faulty name in another; no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cxrspec.errors import did_you_mean, listed
from cxrspec.field_errors import mapping_at
from cxrspec.fields import FieldIssue
from cxrspec.tasks import Task

COUNTS: Final = ("items", "groups", "covariates", "pool")
"""What freezing counts in every task; `expect` may claim these and the task's own tallies."""


def check_references(document: Mapping[str, Any], task: type[Task] | None) -> Iterator[FieldIssue]:
    """Check names on the raw document, so that a faulty field elsewhere hides nothing."""
    declared = {
        "source": _source_names(document),
        "split": list(mapping_at(document, "splits")),
        "subset": list(mapping_at(document, "subsets")),
    }
    for path, kind, name in _named(document):
        if isinstance(name, str) and name not in declared[kind]:
            allowed = declared[kind]
            message = f"unknown {kind} '{name}'; declared are {listed(allowed) or 'none'}"
            yield FieldIssue(path, "reference-unknown", message, did_you_mean(name, allowed))
    yield from _check_subsets(document)
    yield from _check_expectations(document, task)
    if task:
        yield from task.check_references(document, declared)


def _source_names(document: Mapping[str, Any]) -> list[str]:
    names = []
    for source, fields in mapping_at(document, "sources").items():
        files = list(mapping_at(fields, "files"))
        names += ([source] if len(files) == 1 else []) + [f"{source}/{name}" for name in files]
    return names


def _named(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str, Any]]:
    """Yield (path, kind, name) of every mention of a source, split or subset in the document."""
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from _named(item, (*path, i))
    for key, item in value.items() if isinstance(value, Mapping) else ():
        here = (*path, key)
        if key == "source" or (key == "in_list" and isinstance(item, str)):
            yield here, "source", item
        elif key == "joins" and path == ("items",):
            yield from (((*here, source), "source", source) for source in mapping_at(value, key))
        elif key == "split" and "pool" in path:
            yield here, "split", item
        elif key == "disjoint_from":
            yield here, "subset", item
        elif here != ("sources",):
            yield from _named(item, here)


def _check_subsets(document: Mapping[str, Any]) -> Iterator[FieldIssue]:
    subsets = mapping_at(document, "subsets")
    if "roster" in subsets:
        message = "'roster' is the name of the table of all items"
        yield FieldIssue(("subsets", "roster"), "reference-conflict", message, "Choose another name")
    for name in subsets:
        chain = [name]
        while isinstance(other := mapping_at(subsets, chain[-1]).get("disjoint_from"), str):
            if other in chain:
                if other == name:
                    message = f"{' -> '.join([*chain, other])} is a circle; one of them must be chosen first"
                    yield FieldIssue(("subsets", name, "disjoint_from"), "reference-conflict", message)
                break
            chain.append(other)


def _check_expectations(document: Mapping[str, Any], task: type[Task] | None) -> Iterator[FieldIssue]:
    subsets = [*mapping_at(document, "subsets"), "roster"]
    covariates = list(mapping_at(mapping_at(document, "items"), "covariates"))
    for subset, claims in mapping_at(document, "expect").items():
        if subset not in subsets:
            message = f"unknown subset '{subset}'; declared are {listed(subsets)}"
            yield FieldIssue(("expect", subset), "reference-unknown", message, did_you_mean(str(subset), subsets))
        for path, part in ((("expect", subset), claims), (("expect", subset, "pool"), mapping_at(claims, "pool"))):
            allowed = [*COUNTS, *(task.TALLIES if task else ())]
            for key in part if isinstance(part, Mapping) and task else ():
                if key not in allowed:
                    message = f"unknown count '{key}'; {task.NAME if task else ''} counts {listed(allowed)}"
                    yield FieldIssue((*path, key), "field-unknown", message, did_you_mean(str(key), allowed))
            for name in mapping_at(part, "covariates"):
                if name not in covariates:
                    message = f"unknown covariate '{name}'; declared are {listed(covariates) or 'none'}"
                    yield FieldIssue((*path, "covariates", name), "reference-unknown", message)
