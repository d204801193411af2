"""Own the comparison of what a definition expects with what compiling it found: counts, and cells of single items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cxrspec.definition import Definition
from cxrspec.digest import Table
from cxrspec.expectations import Expectations, Expected, PoolExpectations


@dataclass(frozen=True)
class Claim:
    """One expected count, or cell, beside the one found."""

    path: str
    expected: Expected | str
    found: int | str | None
    """None where the definition expects a count that nothing counts, or a cell of an item that is not there."""

    @property
    def holds(self) -> bool:
        """Whether what was found is as claimed."""
        if isinstance(self.expected, str):
            return self.found == self.expected
        return isinstance(self.found, int) and self.expected.allows(self.found)

    @property
    def verdict(self) -> str:
        """What a count found that stops nothing means for the claim; nothing where it is simply as claimed."""
        if isinstance(self.expected, str) or not isinstance(self.found, int):
            return ""
        return self.expected.verdict(self.found)

    @property
    def is_fatal(self) -> bool:
        """Whether freezing must stop: a claim `within` depends on unstated tie-breaking and never stops it."""
        near = isinstance(self.expected, Expected) and self.expected.within is not None
        return not self.holds and not (near and self.found is not None)

    @property
    def remark(self) -> str:
        """What the claim's author says to whoever finds another count."""
        return "" if isinstance(self.expected, str) else self.expected.remark

    def as_json(self) -> dict[str, Any]:
        """Return the claim as `--json` prints it."""
        return {"claim": self.path, "claimed": str(self.expected), "found": self.found, "holds": self.holds}

    @property
    def shown(self) -> str:
        """What was found, as tables and notes print it."""
        if self.found is None:
            return "not there" if isinstance(self.expected, str) else "not counted"
        return f"{self.found:,}" if isinstance(self.found, int) else f"'{self.found}'"


def count_claims(definition: Definition, counts: Mapping[str, Mapping[str, Any]]) -> Iterator[Claim]:
    """Yield every count that the definition expects beside the one found; `counts` are by subset, and of `roster`."""
    for name, expected in sorted((definition.expect or {}).items()):
        yield from _compared(name, expected, counts[name])


def cell_claims(definition: Definition, cells: Mapping[str, Callable[[str, str], str | None]]) -> Iterator[Claim]:
    """Yield every cell that the definition expects beside the one found; `cells` reads the tables by subset."""
    for name, expected in sorted((definition.expect or {}).items()):
        for item, row in (expected.cells or {}).items() if isinstance(expected, Expectations) else ():
            for column, cell in row.items():
                yield Claim(f"{name}.cells.{item}.{column}", str(cell), cells[name](item, column))


def cells_of(table: Table, covariates: Table | None) -> Callable[[str, str], str | None]:
    """Return what reads one cell of a subset by item id and column; None where there is no such item or column."""
    columns = {name: one.columns[at] for one in (table, covariates) if one for at, name in enumerate(one.header)}
    position = {item: row for row, item in enumerate(table.item_ids)}

    def cell(item: str, column: str) -> str | None:
        return columns[column][position[item]] if item in position and column in columns else None

    return cell


def _compared(path: str, expected: PoolExpectations, counts: Mapping[str, Any]) -> Iterator[Claim]:
    for name in ("items", "groups", "images"):
        if (claim := getattr(expected, name)) is not None:
            yield Claim(f"{path}.{name}", claim, counts.get(name))
    for name, tally in (expected.tallies or {}).items():
        found = counts.get(name)
        if isinstance(tally, Expected):
            yield Claim(f"{path}.{name}", tally, found if isinstance(found, int) else None)
        else:
            yield from _counted(f"{path}.{name}", tally, found)
    for name, values in (expected.covariates or {}).items():
        yield from _counted(f"{path}.covariates.{name}", values, counts.get("covariates", {}).get(name))
    if isinstance(expected, Expectations) and expected.pool:
        yield from _compared(f"{path}.pool", expected.pool, counts["pool"])


def _counted(path: str, claims: Mapping[str, Expected], found: Any) -> Iterator[Claim]:
    for name, claim in claims.items():
        yield Claim(f"{path}.{name}", claim, found.get(name, 0) if isinstance(found, Mapping) else None)


def claim_table(claims: Sequence[Claim]) -> str:
    """Lay out every claim beside what was found, as text."""
    rows = [("expected of", "claimed", "found", "")]
    for claim in claims:
        claimed = f"'{claim.expected}'" if isinstance(claim.expected, str) else str(claim.expected)
        rows.append((claim.path, claimed, claim.shown, "" if claim.holds else f"differs{claim.remark}"))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    return "\n".join(
        f"  {a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}  {mark}".rstrip() for a, b, c, mark in rows
    )
