"""Own the cross-field rules of a definition: every name that is used must be declared.

They read the raw document, so that a faulty field in one place hides no faulty name in another; no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, get_args, get_origin

from cxrspec.errors import did_you_mean, listed
from cxrspec.field_errors import NAMES_LISTED, Path, document_path, is_fields, list_at, mapping_at, shown
from cxrspec.fields import FieldIssue, Fields, Names, ShortForm
from cxrspec.spelling import plain_name
from cxrspec.tasks import Task

COUNTS: Final = ("items", "groups", "images", "covariates", "pool", "cells")
"""What freezing finds in every task; `expect` may claim these and the task's own tallies."""
OF_SUBSETS: Final = ("pool", "cells")
"""What only a subset has, and its pool has not."""


def check_references(document: Mapping[str, Any], model: type[Fields], task: type[Task] | None) -> Iterator[FieldIssue]:
    """Check names on the raw document of a definition, so that a faulty field elsewhere hides nothing."""
    declared = {
        "source": _source_names(document),
        "split": list(mapping_at(document, "splits")),
        "subset": list(mapping_at(document, "subsets")),
        "covariate": list(mapping_at(mapping_at(document, "items"), "covariates")),
        **(task.declared(document) if task else {}),
    }
    sources = mapping_at(document, "sources")
    faulty = {
        name for name in sources if not mapping_at(sources[name], "files")
    }  # told already; nobody knows its files
    for one in (model, task) if task else (model,):
        for path, kind, name in dict.fromkeys(mentions(one, document)):  # members of a union mention it alike
            if kind == "source" and name.partition("/")[0] in faulty:
                continue
            if name not in declared.get(kind, (name,)):
                yield undeclared(document_path(document, path)[0], kind, name, declared[kind])
    yield from _check_names(document)
    yield from _check_subsets(document)
    if task:
        yield from _check_conditions(document, task.STRATA, declared.get(task.STRATA, ()))
    yield from _check_expectations(document, task, declared)
    yield from _check_intervals(document)
    if task:
        yield from task.check_references(document, declared)


def undeclared(path: Path, kind: str, name: str, declared: Sequence[str]) -> FieldIssue:
    """Return the issue of a name that nothing declares."""
    message = f"unknown {kind} {shown(name)}; declared are {listed(declared) or 'none'}"
    return FieldIssue(path, "reference-unknown", message, did_you_mean(name, declared))


def mentions(
    annotation: Any, value: Any, path: Path = (), marks: Sequence[Any] = ()
) -> Iterator[tuple[Path, str, str]]:
    """Yield (path, kind, name) of every name in a raw value whose type says, by `Names`, that it must be declared."""
    for mark in marks:
        if isinstance(mark, ShortForm):
            value = mark.expand(value)
        if isinstance(mark, Names) and isinstance(value, str):
            yield path, mark.kind, value
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from mentions(parts[0], value, path, parts[1:])
    elif is_fields(annotation):
        for name, field in annotation.model_fields.items():
            if isinstance(value, Mapping) and name in value:
                yield from mentions(field.annotation, value[name], (*path, name), field.metadata)
    elif origin is dict:
        for key, inner in value.items() if isinstance(value, Mapping) else ():
            yield from mentions(parts[0], key, (*path, key))
            yield from mentions(parts[1], inner, (*path, key))
    elif origin is list:
        for i, inner in enumerate(value if isinstance(value, list) else ()):
            yield from mentions(parts[0], inner, (*path, i))
    else:  # a union, or a type without parts
        for part in parts:
            yield from mentions(part, value, path)


def _source_names(document: Mapping[str, Any]) -> list[str]:
    names = []
    for source, fields in mapping_at(document, "sources").items():
        files = list(mapping_at(fields, "files"))
        names += ([source] if len(files) == 1 else []) + [f"{source}/{name}" for name in files]
    return names


def _check_names(document: Mapping[str, Any]) -> Iterator[FieldIssue]:
    """Refuse names that would mean two things in a frozen table, a join or a chain of versions."""
    items = mapping_at(document, "items")
    if "item_id" in mapping_at(items, "covariates"):
        message = "'item_id' is the first column of the table of covariates"
        yield FieldIssue(("items", "covariates", "item_id"), "reference-conflict", message, "Choose another name")
    source = items.get("source")
    if isinstance(source, str) and source in mapping_at(items, "joins"):
        message = f"{shown(source)} is the items source; its ids stand in the column of item_id"
        yield FieldIssue(("items", "joins", source), "reference-conflict", message, "Leave it out")
    version = document.get("definition_version")
    if version is not None and version == document.get("supersedes"):
        message = f"{shown(version)} cannot supersede itself"
        yield FieldIssue(("supersedes",), "reference-conflict", message, "Name the version before it")


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


def _check_conditions(document: Mapping[str, Any], kind: str, declared: Sequence[str]) -> Iterator[FieldIssue]:
    """Refuse conditions of a selection that the task does not declare, or that name one of its columns twice."""
    known = set(map(plain_name, declared))
    subsets = mapping_at(document, "subsets")
    for subset in subsets:
        seen: dict[str, Any] = {}
        for name in mapping_at(mapping_at(subsets[subset], "select"), "per_condition"):
            path: Path = ("subsets", subset, "select", "per_condition", name)
            if plain_name(str(name)) not in known:
                yield undeclared(path, kind, str(name), declared)
            elif (first := seen.setdefault(plain_name(str(name)), name)) != name:
                message = f"'{name}' and '{first}' are one {kind}"
                yield FieldIssue(path, "reference-conflict", message, "Keep one of them")


def _check_expectations(
    document: Mapping[str, Any], task: type[Task] | None, declared: Mapping[str, Sequence[str]]
) -> Iterator[FieldIssue]:
    subsets = [*mapping_at(document, "subsets"), "roster"]
    covariates = list(mapping_at(mapping_at(document, "items"), "covariates"))
    for subset, claims in mapping_at(document, "expect").items():
        path: Path = ("expect", subset)
        if subset not in subsets:
            yield undeclared(path, "subset", str(subset), subsets)
        if subset == "roster" and "pool" in mapping_at(document["expect"], subset):
            message = "the roster is chosen from no pool"
            yield FieldIssue((*path, "pool"), "reference-conflict", message, "Claim the counts of the roster itself")
        for item, row in mapping_at(claims, "cells").items():
            columns = ["group_id", *declared.get("finding", mapping_at(claims["cells"], item)), *covariates]
            if subset == "roster":
                message = "cells are those of a subset's table; the roster has none"
                yield FieldIssue((*path, "cells", item), "reference-conflict", message, "Claim them of a subset")
                continue
            for name in row if isinstance(row, Mapping) else ():
                if name not in columns:
                    yield undeclared((*path, "cells", item, name), "column", str(name), columns)
        for place, part in ((path, claims), ((*path, "pool"), mapping_at(claims, "pool"))):
            for name in mapping_at(part, "covariates"):
                if name not in covariates:
                    yield undeclared((*place, "covariates", name), "covariate", str(name), covariates)
            if task and isinstance(part, Mapping):
                yield from _check_tallies(place, part, task, declared)


def _check_tallies(
    path: Path, claims: Mapping[str, Any], task: type[Task], declared: Mapping[str, Sequence[str]]
) -> Iterator[FieldIssue]:
    for count, claim in claims.items():
        place, by = (*path, count), task.TALLIES.get(count)
        allowed = [name for name in (*COUNTS, *task.TALLIES) if path[-1] != "pool" or name not in OF_SUBSETS]
        if count not in allowed:
            message = f"unknown count '{count}'; {task.NAME} counts {listed(allowed, NAMES_LISTED)}"
            yield FieldIssue(place, "field-unknown", message, did_you_mean(str(count), allowed))
        elif by and isinstance(claim, Mapping):
            for name in claim:
                if name not in declared[by]:
                    yield undeclared((*place, name), by, str(name), declared[by])
        elif by and isinstance(claim, int):
            yield FieldIssue(place, "field-type", f"{count} are counted by {by}: give a mapping of {by} to count")


def _check_intervals(document: Mapping[str, Any]) -> Iterator[FieldIssue]:
    """Refuse two intervals of one metric that nobody could tell apart in print: of one method and unit."""
    for i, metric in enumerate(list_at(document, "metrics")):
        intervals = list_at(metric, "interval") if isinstance(metric, Mapping) else []
        seen: set[tuple[str, str]] = set()
        for at, one in enumerate(intervals):
            if not (isinstance(one, Mapping) and isinstance(one.get("method"), str)):
                continue
            key = (one["method"], str(one.get("unit")))
            if key in seen:
                message = "another interval is of this method and unit; in print nobody could tell them apart"
                path = ("metrics", i, "interval", at)
                yield FieldIssue(path, "reference-conflict", message, "Keep one of them, or ask in another metric")
            seen.add(key)
