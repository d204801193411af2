"""Own what the pages say of a definition, frozen or not: rules, names, subsets, sources, claims. It opens nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cxrspec.expectations import Expected
from cxrspec.lock import Lock
from cxrspec.report.intervals import interval_kind
from cxrspec.report.site.charts import Scale, bar, stack
from cxrspec.submission import task_of

Document = Mapping[str, Any]

SHARES: Final = {"positives": "positive", "images_with": "with a box"}
"""Tallies that count items, so that they have a share of the subset; with the word for them."""
TOTALS: Final = {
    "none": "items with none of them",
    "closed": "closed-ended",
    "open": "open-ended",
    "yes": "closed-ended that say yes",
    "no": "closed-ended that say no",
}
"""Counts whose own name says too little, in words."""
ROUNDED: Final = "closed_percent"
"""A share among the tallies, which the counts beside it say exactly."""
MOST_PARTS: Final = 6
"""A covariate with more values than this is no picture."""
NAMED: Final = {"findings": "Findings", "question_types": "Question types", "conditions": "Conditions"}
"""Fields that give names of ours to the sources' own words, with their headings."""
COMMON: Final = ("seed", "sources", "items", "splits", "subsets", "protocols", "metrics", "task")
"""Fields that every definition has, which stand in sections of their own."""
FACTS: Final = ("kind", "package", "version", "repository", "revision", "sha256", "doi", "licence", "attribution")
"""What is said of a source, in this order; the rest follows."""
SHOWN_TEXTS: Final = 40
"""A longer list of texts is cut, and its length told."""


def subsets(lock: Lock) -> list[dict[str, Any]]:
    """Return the subsets of a lock with their counts, prevalence bars and covariates."""
    tallies = task_of(lock).TALLIES
    return [
        {
            "name": name,
            "id": lock.subset_ids[name],
            "digest": subset["digest"],
            "items": subset["items"],
            "groups": subset["groups"],
            "rule": selection_rule(lock.definition["subsets"][name]),
            "totals": {
                TOTALS.get(key, key.replace("_", " ")): subset[key]
                for key, by in tallies.items()
                if not by and key in subset and key != ROUNDED
            },
            "tables": [
                table for kind in dict.fromkeys(filter(None, tallies.values())) for table in _tallied(lock, name, kind)
            ],
            "covariates": list(_covariates(subset)),
        }
        for name, subset in lock.subsets.items()
    ]


def _tallied(lock: Lock, name: str, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the table of what is counted by one kind of name: a bar for the first tally, numbers for the others."""
    subset = lock.subsets[name]
    found = {key: subset[key] for key, by in task_of(lock).TALLIES.items() if by == kind and key in subset}
    found = {key: counts for key, counts in found.items() if any(counts.values())}
    if not found:
        return
    drawn = next((key for key in SHARES if key in found), next(iter(found)))
    total = subset["items"] if drawn in SHARES else None
    most = max(found[drawn].values()) / (total or 1)
    scale = Scale.over([0.0, 100 * most if total else most], whole=not total)
    rows = []
    for label in dict.fromkeys(label for counts in found.values() for label in counts):
        count = found[drawn].get(label, 0)
        share = 100 * count / total if total else None
        words = (
            f"{label}: {count:,} {SHARES.get(drawn, drawn)}{f', {share:.1f} % of items' if share is not None else ''}"
        )
        shown = bar(count if share is None else share, scale, words)
        others = [counts.get(label, 0) for key, counts in found.items() if key != drawn]
        rows.append({"label": label, "bar": shown, "count": count, "share": share, "others": others})
    others = [key.replace("_", " ") for key in found if key != drawn]
    yield {
        "kind": kind,
        "drawn": drawn.replace("_", " "),
        "others": others,
        "axis": scale.axis(" %" if total else ""),
        "rows": rows,
    }


def _covariates(subset: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, counts in subset.get("covariates", {}).items():
        if 0 < len(counts) <= MOST_PARTS:
            total = sum(counts.values()) or 1
            parts = [(value, count, 100 * count / total) for value, count in counts.items()]
            words = ", ".join(f"{value or 'not stated'} {count:,} ({share:.0f} %)" for value, count, share in parts)
            yield {"name": name, "stack": stack(counts, f"{name}: {words}"), "parts": parts}


def selection_rule(subset: Document) -> str:
    """Write how a subset is chosen, as the definition declares it."""
    rule = f"chosen from {words_of(subset['pool']) or 'all items'}; {words_of(subset['select'])}"
    if "disjoint_from" in subset:
        rule += f"; shares no {subset['disjoint_by']} with {subset['disjoint_from']}"
    return rule


def protocols(definition: Document) -> list[dict[str, Any]]:
    """Return each protocol's settings; what is set per finding, such as prompts, as a table."""
    found = []
    for name, settings in definition.get("protocols", {}).items():
        tables = {key: value for key, value in settings.items() if _is_table(value)}
        plain = {_plain(key): words_of(value) for key, value in settings.items() if key not in tables}
        found.append({"name": name, "settings": plain, "tables": [_table(key, rows) for key, rows in tables.items()]})
    return found


def rules(definition: Document) -> dict[str, str]:
    """Return the task's own fields in words: encodings, columns, phrases, readers, frames."""
    return {_plain(key): words_of(value) for key, value in definition.items() if key not in COMMON and key not in NAMED}


def names(definition: Document) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return (heading, [(our name, the source's words)]) of what the definition names."""
    return [
        (heading, [(ours, words_of(theirs)) for ours, theirs in definition[key].items()])
        for key, heading in NAMED.items()
        if definition.get(key)
    ]


def items_text(definition: Document) -> str:
    """Say what an item is, and what makes a group."""
    unit, group = definition["items"]["unit"], definition["items"].get("group_id", {})
    by = f"a value of {group['column']}" if "column" in group else f"what {group.get('pattern')} finds in the item id"
    return f"One item is one {unit}; a group is what shares {by}."


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value) and all(isinstance(one, Mapping) for one in value.values())


def _table(name: str, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    columns = list(dict.fromkeys(key for row in rows.values() for key in row))
    cells = {label: [words_of(row.get(key, "")) for key in columns] for label, row in rows.items()}
    return {"name": name, "columns": columns, "rows": cells}


def words_of(value: Any) -> str:
    """Write a plain value as a person reads it; a column is its name, a flag that is set its own."""
    if isinstance(value, Mapping):
        if set(value) == {"column"}:
            return str(value["column"])
        return ", ".join(_plain(key) if one is True else f"{_plain(key)}: {_inner(one)}" for key, one in value.items())
    if isinstance(value, list):
        more = f" and {len(value) - SHOWN_TEXTS:,} more" if len(value) > SHOWN_TEXTS else ""
        return ", ".join(map(_inner, value[:SHOWN_TEXTS])) + more
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _inner(value: Any) -> str:
    """Write a value inside another: what has several parts stands in parentheses."""
    words = words_of(value)
    several = isinstance(value, Mapping | list) and len(value) > 1
    return f"({words})" if several else words


def sources(definition: Document, description: Document, found: Document) -> list[dict[str, Any]]:
    """Return the sources with their pins, licences and files; `found` is what a lock says of each file."""
    listed = []
    for name, pinned in definition["sources"].items():
        described = description.get("sources", {}).get(name, {})
        said = {key: value for key, value in {**pinned, **described}.items() if key not in ("files", "redistribute")}
        ordered = sorted(said.items(), key=lambda one: FACTS.index(one[0]) if one[0] in FACTS else len(FACTS))
        told, frozen = described.get("files", {}), found.get(name, {})
        files = {
            file: {**pinned["files"].get(file, {}), **told.get(file, {}), **frozen.get(file, {})}
            for file in {**pinned["files"], **frozen}
        }
        listed.append(
            {
                "name": name,
                "facts": {_plain(key): words_of(value) for key, value in ordered},
                "restricted": described.get("redistribute") is False,
                "files": {file: _file(one) for file, one in files.items()},
            }
        )
    return listed


def _file(one: Document) -> dict[str, Any]:
    """Return a file's place, proof, size and sha256; shards that nobody has named are said by their pattern."""
    place = one.get("path") or one.get("url") or words_of(one.get("shards", []))
    if "match" in one:
        place = f"{one['count']} shards, not named, of {one['match']}"
    return {"place": place, "proof": one.get("proof"), "size": one.get("size"), "sha256": one.get("sha256")}


def metric_rows(definition: Document) -> list[dict[str, str]]:
    """Return the metrics as they are declared, with their settings and intervals in words."""
    apart = ("name", "kind", "protocol", "subset", "interval")
    return [
        {
            "name": metric["name"],
            "kind": metric["kind"],
            "protocol": metric["protocol"],
            "subset": metric.get("subset", "test"),
            "settings": words_of({key: value for key, value in metric.items() if key not in apart}),
            "intervals": "; ".join(map(interval_kind, metric.get("interval") or ())),
        }
        for metric in definition.get("metrics", ())
    ]


def claims(expect: Document) -> Iterator[tuple[str, str, str]]:
    """Yield (what is counted, the number as claimed, what is noted) of everything that a publisher claims."""
    for name, expected in sorted(expect.items()):
        yield from _claims(name, expected)


def _claims(path: str, expected: Document) -> Iterator[tuple[str, str, str]]:
    if set(expected) & set(Expected.model_fields):
        claim = Expected.model_validate(expected)
        yield path, str(claim), claim.note or ""
        return
    for key, inner in expected.items():
        if key == "cells":
            yield f"{path}, published cells", f"{len(inner):,} items", ""
        else:
            yield from _claims(path if key == "tallies" else f"{path}, {_plain(key)}", inner)
