"""Own the command that searches for shards that a publisher did not name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cxrspec.cli.application import (
    DefinitionArgument,
    JsonOption,
    MirrorOption,
    app,
    leave,
    open_registry,
    open_store,
    print_json,
)

if TYPE_CHECKING:
    from cxrspec.discover import Discovery
    from cxrspec.reference import Reference


@app.command(epilog="Example: cxrspec discover nih-cxr14-findings@atlas-full-v2")
def discover(reference: DefinitionArgument, as_json: JsonOption = False, mirror: MirrorOption = None) -> None:
    """Find the shards that a definition does not name.

    The columns that the definition reads are fetched from every shard that matches, and the combinations that meet
    every expectation are printed, to be pinned in the next definition version. Exit code 1 unless exactly one fits.
    """
    from cxrspec.discover import discover as search
    from cxrspec.loader import load_definition

    registry = open_registry()
    path = registry.spec_path(reference)
    definition = load_definition(path, shown_as=registry.name(path))
    with open_store(registry, mirror) as store:
        found = search(definition, store)
    print_json(_as_json(reference, found)) if as_json else _show(reference, found)
    leave(not found.is_unique)


def _as_json(reference: Reference, found: Discovery) -> dict[str, Any]:
    return {
        "reference": str(reference),
        "place": found.place,
        "n_shards": found.n_shards,
        "n_bytes": found.n_bytes,
        "n_read": found.n_read,
        "n_combinations": found.n_combinations,
        "n_candidates": found.n_candidates,
        "narrowed_by": found.narrowed_by,
        "found": found.found,
        "claims": [claim.as_json() for claim in found.claims],
    }


def _show(reference: Reference, found: Discovery) -> None:
    from cxrspec.claims import claim_table
    from cxrspec.discover import MOST_COMPILED
    from cxrspec.report.terminal import say

    say(
        f"{reference}: {found.n_shards} shards of {found.n_bytes / 1e6:,.1f} MB in all; "
        f"the columns that were read are {found.n_read / 1e6:,.1f} MB as text"
    )
    more = "more than " * (found.n_candidates > MOST_COMPILED)
    say(
        f"{len(found.narrowed_by)} claims add up over shards; {more}{min(found.n_candidates, MOST_COMPILED):,} of "
        f"{found.n_combinations:,} combinations of {found.size} meet them, and {len(found.found):,} meet every claim"
    )
    if found.claims:
        say(claim_table(found.claims))
    if found.is_unique:
        say(f"pin these in the next version ('cxrspec new {reference} NEW_VERSION'), under {found.place}:")
    elif found.found:
        say("several combinations fit; write down more of what the publisher says under expect:")
    else:
        say("no combination meets every claim; mend expect, match or count. The table is of the nearest candidate")
    for one in found.found:
        say("\n".join(["shards:", *(f"  - {path}" for path in one)]))
