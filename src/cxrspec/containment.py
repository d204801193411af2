"""Own the claim that a subset lies inside a frozen subset of another definition version, checked where that is here."""

from __future__ import annotations

from collections.abc import Iterator

from cxrspec.compiler import Compiled
from cxrspec.errors import IDS_LISTED, CxrspecError, DefinitionError, Issue, listed
from cxrspec.reference import Reference
from cxrspec.registry import Registry


def check_containment(compiled: Compiled, registry: Registry) -> list[Issue]:
    """Compare every `contained_in` with the frozen table that it names; return notes on what was and was not checked.

    Raises:
        DefinitionError: with every subset that has items outside, or names no subset.
    """
    found = list(_compared(compiled, registry))
    if issues := [issue for issue in found if issue.code != "note"]:
        raise DefinitionError(issues)
    return found


def _compared(compiled: Compiled, registry: Registry) -> Iterator[Issue]:
    for name, subset in compiled.definition.subsets.items():
        for text in subset.contained_in or ():
            where = f"subsets.{name}.contained_in"
            try:
                outer = set(registry.read_subset(Reference.parse(text), restricted=True).item_ids)
            except ValueError as error:
                yield Issue("reference-unknown", where, str(error), "Write benchmark@definition_version:subset")
                continue
            except CxrspecError as error:
                yield Issue("note", where, f"not checked: {error.issues[0]}")
                continue
            items = compiled.subsets[name].table.item_ids
            outside = [item for item in items if item not in outer]
            if outside:
                message = f"{len(outside):,} of {len(items):,} items are not in {text}: {listed(outside, IDS_LISTED)}"
                yield Issue("expectation", where, message, "Mend the claim, or the subset; nothing was frozen")
            else:
                yield Issue("note", where, f"all {len(items):,} items are in {text}")
