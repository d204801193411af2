"""Own which columns a definition reads from each file, and the words for a file that does not have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cxrspec.definition import Conditions, Definition
from cxrspec.errors import Issue, SourceError, listed
from cxrspec.fields import Column
from cxrspec.pins import DataSet, FileForm, FileSource
from cxrspec.strict_yaml import field_text


def needed_columns(definition: Definition) -> dict[str, set[str]]:
    """Return every column that the definition reads, by source file, so that each file is read once."""
    items = definition.items
    needed: dict[str, set[str]] = {items.source: {items.item_id.column}}
    columns = [*(items.covariates or {}).values(), *definition.task.source_columns()]
    columns += [Column(column=name) for name in (items.group_id.column, items.item_id.numbered_by) if name]
    columns += [where.column for conditions in conditions_of(definition) for where in conditions.where or ()]
    for column in columns:
        source = column.source or items.source
        key = items.item_id.column if source == items.source else (items.joins or {}).get(source)
        needed.setdefault(source, {key or items.item_id.column}).add(column.column)
    return needed


def conditions_of(definition: Definition) -> Iterator[Conditions]:
    """Yield every place in which a definition says which items it means: splits, pools and selections."""
    yield from (definition.splits or {}).values()
    for subset in definition.subsets.values():
        yield from (subset.pool, subset.select)


def form_of(definition: Definition, reference: str) -> FileForm:
    """Return how the file `source` or `source/file` is written."""
    source, _, name = reference.partition("/")
    files: Mapping[str, FileForm] = definition.sources[source].files
    return files[name or next(iter(files))]


def with_places(error: SourceError, definition: Definition, columns: Sequence[str]) -> SourceError:
    """Return the error with, for each column that is missing, where the definition names it and is to be edited."""
    document = {key: value for key, value in definition.score_relevant().items() if key not in ("sources", "seed")}

    def placed(issue: Issue) -> Issue:
        name = next((name for name in columns if issue.message.startswith(f"no column '{name}';")), None)
        if issue.code != "column-missing" or name is None:
            return issue
        places = listed([field_text(path) for path in _paths(document, name) if _names_a_column(path)])
        hint = f"Write what the file calls it where the definition names it: {places}"
        return replace(issue, hint=f"{issue.hint} {hint}".lstrip())

    return SourceError(placed(issue) for issue in error.issues)


def _paths(value: Any, wanted: str, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every text in a plain document that is the wanted one."""
    if value == wanted:
        yield path
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _paths(inner, wanted, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _paths(inner, wanted, (*path, i))


def _names_a_column(path: Sequence[str | int]) -> bool:
    """Return whether the field at a path says what a column is called: by its own name, or as labels and boxes do."""
    if path[-1] in ("column", "numbered_by") or path[:2] == ("items", "joins"):
        return True
    return path[0] in ("findings", "boxes", "conditions") or path[:2] == ("labels", "vocabulary")


def namesake_issues(definition: Definition, issues: Sequence[Issue]) -> Iterator[Issue]:
    """Yield, for each source of a name that other data sets have too, which they are; not where no content was read."""
    if all(issue.code.startswith("source-") for issue in issues):
        return
    for name, source in definition.sources.items():
        if isinstance(source, FileSource) and source.namesakes:
            ours = DataSet(title=source.attribution, doi=source.doi)
            others = " and of ".join(map(str, source.namesakes))
            message = f"this definition is of {ours}; the name is also that of {others}"
            yield Issue("source-not-data", f"sources.{name}", message, "Check which of them the file is")
