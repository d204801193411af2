"""Own the strata of a metric: which items of a subset are in which, by the values or bands of a frozen covariate.

An item whose covariate is missing is in no stratum, and counted; nothing here computes a score.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

from pydantic import Field, model_validator

from cxrspec.digest import Table, number_text
from cxrspec.errors import IDS_LISTED, Issue, listed
from cxrspec.fields import Fields, Identifier, Names, ShortForm
from cxrspec.tasks.covariates import OLDEST_YEARS, covariate_number, is_number

MOST_STRATA: Final = 20
"""A covariate with more values than this is no division into subgroups unless it has bands."""

CovariateName = Annotated[Identifier, Names("covariate")]
Number = Annotated[float, Field(allow_inf_nan=False)]


class Strata(Fields):
    """How a covariate divides the items of a subset: by each of its values, or into bands of its numbers."""

    values: Literal[True] | None = None
    bands: Annotated[list[Number], Field(min_length=1)] | None = None
    """Where the bands start, ascending; each ends before the next one starts, the last one is open."""

    @model_validator(mode="after")
    def _one_way(self) -> Strata:
        if (self.values is None) == (self.bands is None):
            raise ValueError("give either values or the starts of bands")
        if self.bands and sorted(set(self.bands)) != self.bands:
            raise ValueError("the starts of bands must ascend, each once")
        return self

    @property
    def band_names(self) -> list[str]:
        """What the bands are called: `[0, 20)`, `[20, 40)`, and the last one `40+`."""
        starts = [number_text(start) for start in self.bands or ()]
        return [f"[{low}, {high})" for low, high in pairwise(starts)] + [f"{starts[-1]}+"]

    def rows(self, name: str, cells: Sequence[str]) -> dict[str, list[int]]:
        """Return the rows of every stratum of a covariate; rows without a value are in none."""
        if self.bands is None:
            return {
                value: [row for row, cell in enumerate(cells) if cell == value] for value in sorted({*cells} - {""})
            }
        bands: list[list[int]] = [[] for _ in self.bands]
        for row, cell in enumerate(cells):
            number = covariate_number(name, cell)
            if number is not None and number >= self.bands[0]:
                bands[bisect_right(self.bands, number) - 1].append(row)
        return dict(zip(self.band_names, bands, strict=True))

    def missing(self, name: str, cells: Sequence[str]) -> Counter[str]:
        """Count the rows that are in no stratum, by the reason."""
        return Counter(reason for reason in (self._why_missing(name, cell) for cell in cells) if reason)

    def _why_missing(self, name: str, cell: str) -> str:
        if not cell:
            return "empty"
        if self.bands is None:
            return ""
        number = covariate_number(name, cell)
        if number is None:
            return f"not 0 to {OLDEST_YEARS} years" if is_number(cell) else "no number"
        return f"below {number_text(self.bands[0])}" if number < self.bands[0] else ""


def _short_form(value: Any) -> Any:
    if value == "values":
        return {"values": True}
    return {"bands": value} if isinstance(value, list) else value


StrataRef = Annotated[Strata, ShortForm(_short_form, "'values' nor a list of where bands start", words=("values",))]
"""Strata written in short: `values`, or the list of where the bands start."""


def covariate_issues(subset: str, strata: Mapping[str, Strata], covariates: Table) -> Iterator[Issue]:
    """Yield why the covariates of a subset cannot divide it as declared."""
    for name, one in strata.items():
        present = sorted({*covariates.column(name)} - {""})
        where = f"subset {subset}, covariate {name}"
        if one.bands is None and len(present) > MOST_STRATA:
            message = f"{len(present):,} different values make no strata; at most {MOST_STRATA} do"
            yield Issue("value-unknown", where, message, "Give the starts of bands, as in 'age: [0, 20, 40, 60, 80]'")
        if one.bands is not None and not any(map(is_number, present)):
            found = listed([f"'{cell}'" for cell in present], IDS_LISTED) or "empty cells only"
            message = f"bands need numbers, and no cell is one: {found}"
            yield Issue("value-unknown", where, message, "Write 'values', or name a covariate of numbers")


def missing_note(subset: str, name: str, counts: Counter[str], n_items: int) -> Issue:
    """Return the note that some items are in no stratum of a covariate, with the reasons."""
    reasons = listed([f"{reason} {n:,}" for reason, n in sorted(counts.items())])
    message = f"{counts.total():,} of {n_items:,} items are in no stratum ({reasons})"
    return Issue("note", f"subset {subset}, covariate {name}", message)
