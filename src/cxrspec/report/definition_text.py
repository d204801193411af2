"""Own what the command line shows of definitions: the list, what freezing came to, and what one of them is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from cxrspec.report.terminal import add_row, new_table, out, say, show_issues, show_list

if TYPE_CHECKING:
    from cxrspec.freeze import Frozen


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
