"""Own the claims that tie subsets of different definition versions: one lies inside another, or is the same.

A claim is checked where the other subset is here, from whichever of the two definitions is frozen last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cxrspec.compiler import Compiled
from cxrspec.description import current_description
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
    own = compiled.definition.reference
    for name, subset in compiled.definition.subsets.items():
        for claim in CLAIMS:
            for text in getattr(subset, claim) or ():
                where, other = f"subsets.{name}.{claim}", Reference.parse(text)
                table = compiled.subsets[name].table
                if other.definition == own:
                    sibling = compiled.subsets.get(other.subset or "")
                    yield _compared(where, claim, table, sibling.table if sibling else None, text)
                elif not registry.lock_path(other).is_file():
                    yield Issue("note", where, f"not checked: {other.definition} is not frozen here")
                else:
                    yield _with_frozen(where, claim, table, other, registry)


def _with_frozen(where: str, claim: str, inner: Table, other: Reference, registry: Registry) -> Issue:
    if other.subset not in registry.read_lock(other.definition).subsets:
        return _compared(where, claim, inner, None, str(other))
    try:
        outer = registry.read_subset(other, restricted=True)
    except CxrspecError as error:
        return Issue("note", where, f"not checked: {error.issues[0]}")
    return _compared(where, claim, inner, outer, str(other))


def _claims_of_others(compiled: Compiled, registry: Registry) -> Iterator[Issue]:
    """Yield what comes of the claims that other frozen definitions make of the subsets compiled now."""
    own = compiled.definition.reference
    for reference in (one for one in registry.frozen() if one != own):
        for name, claim, outer in _claims_on(own, current_description(registry.read_lock(reference), registry)):
            where = f"{reference}:{name} {claim}"
            try:
                inner = registry.read_subset(Reference.parse(f"{reference}:{name}"), restricted=True)
            except CxrspecError as error:
                yield Issue("note", where, f"not checked: {error.issues[0]}")
                continue
            table = compiled.subsets[outer].table if outer in compiled.subsets else None
            yield _compared(where, claim, inner, table, f"{own}:{outer}")


def _claims_on(own: Reference, description: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (subset, claim, our subset) of every claim in a description that names one of ours."""
    for name, subset in description.get("subsets", {}).items():
        for claim in CLAIMS:
            for text in subset.get(claim, ()):
                definition, _, outer = text.partition(":")
                if definition == str(own):
                    yield name, claim, outer


def _compared(where: str, claim: str, inner: Table, outer: Table | None, text: str) -> Issue:
    hint = "Mend the claim, which may be mended after freezing too, or the subset; nothing was frozen"
    if outer is None:
        return Issue("reference-unknown", where, f"there is no subset {text}", hint)
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
