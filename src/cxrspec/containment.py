"""Own the claims that tie subsets of different definition versions: one lies inside another, or is the same.

A claim is checked where the other subset is here, from whichever of the two definitions is frozen last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cxrspec.compiler import Compiled
from cxrspec.digest import Table, short_id
from cxrspec.errors import IDS_LISTED, CxrspecError, DefinitionError, Issue, listed
from cxrspec.reference import Reference
from cxrspec.registry import Registry

CLAIMS = ("contained_in", "same_as")


def check_containment(compiled: Compiled, registry: Registry) -> list[Issue]:
    """Compare every `contained_in` and `same_as` of the definition, and those that frozen ones make of its subsets.

    Returns notes on what was and was not checked.

    Raises:
        DefinitionError: with every claim that does not hold, or names no subset.
    """
    found = [*_own_claims(compiled, registry), *_claims_of_others(compiled, registry)]
    if issues := [issue for issue in found if issue.code != "note"]:
        raise DefinitionError(issues)
    return found


def _own_claims(compiled: Compiled, registry: Registry) -> Iterator[Issue]:
    for name, subset in compiled.definition.subsets.items():
        for claim in CLAIMS:
            for text in getattr(subset, claim) or ():
                where = f"subsets.{name}.{claim}"
                try:
                    other = registry.read_subset(Reference.parse(text), restricted=True)
                except ValueError as error:
                    yield Issue("reference-unknown", where, str(error), "Write benchmark@definition_version:subset")
                except CxrspecError as error:
                    yield Issue("note", where, f"not checked: {error.issues[0]}")
                else:
                    yield _compared(where, claim, compiled.subsets[name].table, other, text)


def _claims_of_others(compiled: Compiled, registry: Registry) -> Iterator[Issue]:
    """Yield what comes of the claims that other frozen definitions make of the subsets compiled now."""
    own = compiled.definition.reference
    for reference in (one for one in registry.frozen() if one != own):
        for name, claim, outer in _claims_on(own, registry.read_lock(reference).document["description"]):
            where = f"{reference}:{name} {claim}"
            try:
                inner = registry.read_subset(Reference.parse(f"{reference}:{name}"), restricted=True)
            except CxrspecError as error:
                yield Issue("note", where, f"not checked: {error.issues[0]}")
                continue
            if outer in compiled.subsets:
                yield _compared(where, claim, inner, compiled.subsets[outer].table, f"{own}:{outer}")
            else:
                message = f"{own} has no subset '{outer}'"
                yield Issue("reference-unknown", where, message, "Mend the claim, or give the subset that name")


def _claims_on(own: Reference, description: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (subset, claim, our subset) of every claim in a frozen description that names one of ours."""
    for name, subset in description.get("subsets", {}).items():
        for claim in CLAIMS:
            for text in subset.get(claim, ()):
                definition, _, outer = text.partition(":")
                if definition == str(own):
                    yield name, claim, outer


def _compared(where: str, claim: str, inner: Table, outer: Table, text: str) -> Issue:
    hint = "Mend the claim, or the subset; nothing was frozen"
    if claim == "same_as":
        if inner.digest == outer.digest:
            return Issue("note", where, f"the same as {text}: {short_id(outer.digest)}")
        message = f"{short_id(inner.digest)} is not {short_id(outer.digest)}, which is {text}"
        return Issue("expectation", where, message, hint)
    held = set(outer.item_ids)
    outside = [item for item in inner.item_ids if item not in held]
    if not outside:
        return Issue("note", where, f"all {len(inner):,} items are in {text}")
    message = f"{len(outside):,} of {len(inner):,} items are not in {text}: {listed(outside, IDS_LISTED)}"
    return Issue("expectation", where, message, hint)
