"""Own what the command line shows of definitions: the list, what freezing came to, what one is or is meant to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from cxrspec.report.terminal import add_row, new_table, out, say, show_issues, show_list

if TYPE_CHECKING:
    from cxrspec.freeze import Frozen

_PINS = ("package", "version", "repository", "revision", "sha256")
"""What a source or one of its files is pinned by."""


def show_listing(rows: list[dict[str, Any]]) -> None:
    """Print the definitions with their state."""
    table = new_table("definition", "state", "subsets", "systems")
    for row in rows:
        subsets = ", ".join(f"{name} {count:,}" for name, count in row["subsets"].items())
        style = "green" if row["state"] == "frozen" else "yellow"
        add_row(table, row["reference"], Text(row["state"], style), subsets, ", ".join(row["systems"]))
    out().print(table)


def show_frozen(frozen: Frozen, *, with_claims: bool) -> None:
    """Print what freezing one definition came to, with the claims beside what was counted if asked."""
    from cxrspec.claims import claim_table

    show_issues(frozen.notes, kind="note")
    ids = ", ".join(f"{name} {digest}" for name, digest in frozen.lock.subset_ids.items())
    say(f"{frozen.reference}: {frozen.state}; subset ids {ids}")
    if with_claims and frozen.claims:
        say(claim_table(frozen.claims))


def show_lock(document: Mapping[str, Any], subset_ids: Mapping[str, str], description: Mapping[str, Any]) -> None:
    """Print what a frozen definition is: identity, subsets with counts, sources with pins and licences, caveats.

    The description is today's, in which a caveat may have been added since.
    """
    say(f"{document['benchmark']}@{document['definition_version']}  {description.get('title', '')}", "bold")
    say(f"definition {document['definition_digest'][:16]}, all subsets together {document['combined_id']}")
    counts = new_table("subset", "id", "items", "groups", "n positive")
    for name, subset in document["subsets"].items():
        positives = ", ".join(f"{finding} {n:,}" for finding, n in subset.get("positives", {}).items())
        add_row(counts, name, subset_ids[name], f"{subset['items']:,}", f"{subset['groups']:,}", positives)
    out().print(counts)
    for name, subset in description.get("subsets", {}).items():
        if "upstream_id" in subset:
            say(f"{name}: its publisher calls this subset {subset['upstream_id']}; our id is {subset_ids[name]}")
    sources = new_table("source", "file", "sha256", "proof", "licence")
    for source, files in document["sources"].items():
        licence = description.get("sources", {}).get(source, {}).get("licence", "")
        for name, entry in files.items():
            add_row(sources, source, name, entry["sha256"][:16], entry.get("proof", ""), licence)
    out().print(sources)
    show_list("caveats", description.get("caveats", ()))


def show_authored(document: Mapping[str, Any]) -> None:
    """Print what a definition that is not frozen is meant to be, and what keeps it from being frozen."""
    definition, description = document["definition"], document["description"]
    reference = f"{document['benchmark']}@{document['definition_version']}"
    say(f"{reference}  {description['title']}", "bold")
    say(f"definition {document['definition_digest'][:16]}, {document['state']}", "yellow")
    for one in document["unnamed"]:
        say(f"it cannot be frozen yet: {one['where']}: {one['reason']}; run 'cxrspec discover {reference}'", "yellow")
    if "description" in description:
        say(" ".join(description["description"].split()))
    _show_measured(definition, document["parts"])
    sources = new_table("source", "file", "pinned by", "licence")
    for name, source in definition["sources"].items():
        said = {**source, **description["sources"][name]}
        for file, one in said["files"].items():
            add_row(sources, name, file, _pin_text(said, one), said["licence"])
    out().print(sources)
    subsets = new_table("subset", "pool", "select", "kept apart from", "its publisher calls it")
    for name, subset in definition["subsets"].items():
        upstream = description.get("subsets", {}).get(name, {}).get("upstream_id", "")
        pool, select = (_flow(subset[part]) or "all" for part in ("pool", "select"))
        add_row(subsets, name, pool, select, subset.get("disjoint_from", ""), upstream)
    out().print(subsets)
    show_list("expected", (f"{name}: {_expected(claims)}" for name, claims in description.get("expect", {}).items()))
    show_list("caveats", description.get("caveats", ()))


def _show_measured(definition: Mapping[str, Any], parts: Mapping[str, Any]) -> None:
    say(f"task {definition['task']}; {'; '.join(f'{kind}: {_flow(names)}' for kind, names in parts.items())}")
    metrics = definition.get("metrics", ())
    texts = [f"{one['name']} ({one['kind']}, {one['protocol']}, on {one.get('subset', 'test')})" for one in metrics]
    say(f"metrics: {', '.join(texts)}" if texts else "metrics: none; it freezes items and their labels")


def _pin_text(source: Mapping[str, Any], file: Any) -> str:
    """Write what a file of a source is pinned by; digests and commits in short."""
    pins = {**source, **(file if isinstance(file, Mapping) else {})}
    words = [
        f"{name} {str(pins[name])[:16] if name in ('revision', 'sha256') else pins[name]}"
        for name in _PINS
        if name in pins
    ]
    if pins.get("match"):
        words.append(f"{pins['count']} of {pins['match']}, not named")
    return ", ".join(words) or "nothing: freezing records its sha256"


def _expected(claims: Mapping[str, Any]) -> str:
    """Write what a publisher claims; of published cells only the number of items."""
    counts = {name: claim for name, claim in claims.items() if name not in ("cells", "tallies")}
    text = _flow({**counts, **claims.get("tallies", {})})
    return f"{text}, cells of {len(claims['cells']):,} items" if "cells" in claims else text


def _flow(value: Any) -> str:
    """Write plain values on one line: `split test, where (column view, one_of AP)`."""
    if isinstance(value, Mapping):
        if "value" in value:
            rest = {name: one for name, one in value.items() if name != "value"}
            return f"{_flow(value['value'])}{f' ({_flow(rest)})' if rest else ''}"
        words = (
            name
            if one is True
            else f"{name} ({_flow(one)})"
            if isinstance(one, Mapping) and "value" not in one
            else f"{name} {_flow(one)}"
            for name, one in value.items()
        )
        return ", ".join(words)
    if isinstance(value, list | tuple):
        return ", ".join(map(_flow, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)
