"""Own the command that searches for shards that a publisher did not name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
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
from cxrspec.errors import listed

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
    plain = asdict(replace(found, claims=[]))
    counts = {"n_combinations": found.n_combinations, "is_complete": found.is_complete, "is_unique": found.is_unique}
    claims = [claim.as_json() for claim in found.claims]
    return {"reference": str(reference), **plain, **counts, "claims": claims}


def _show(reference: Reference, found: Discovery) -> None:
    from cxrspec.claims import claim_table
    from cxrspec.discover import MOST_COUNTED
    from cxrspec.report.terminal import note, say

    say(
        f"{reference}: {found.n_shards} shards of {found.n_bytes / 1e6:,.1f} MB in all; "
        f"the columns that were read are {found.n_read / 1e6:,.1f} MB as text"
    )
    if found.n_shared_items:
        note(f"{found.n_shared_items:,} items stand in several shards; combinations that hold one twice are not found")
    many = "more than " * (found.n_summed > MOST_COUNTED)
    say(
        f"{len(found.narrowed_by)} claims add up over shards; {many}{min(found.n_summed, MOST_COUNTED):,} of "
        f"{found.n_combinations:,} combinations of {found.size} meet them, {found.n_candidates:,} of these with the "
        f"claimed groups; {found.n_compiled:,} were tried, and {len(found.found):,} meet every claim"
    )
    if found.claims:
        say(claim_table(found.claims))
    say("\n".join(_verdict(reference, found)))


def _verdict(reference: Reference, found: Discovery) -> Iterator[str]:
    """Yield what the search says in words, then the combinations in the form in which a definition names them."""
    if found.is_unique:
        yield f"pin these in the next version ('cxrspec new {reference} NEW_VERSION'), under {found.place}:"
    elif not found.is_complete:
        yield "the claims do not tell the shards apart; write down more of what the publisher says under expect"
    elif found.found:
        yield "several combinations fit; write down more of what the publisher says under expect"
    elif found.claims:
        yield "no combination meets every claim; the table is of the nearest one. Mend expect, match or count"
    elif found.unmet:
        yield f"no combination meets, taken alone: {listed(found.unmet)}. Mend expect, match or count"
    else:
        yield "each claim is met by some combination, and all together by none. Mend expect, match or count"
    for one in found.found:
        yield "shards:"
        yield from (f"  - {path}" for path in one)
