"""Own the reading of covariate cells as numbers: ages in the forms that files hold them in, and what counts as missing.

Frozen cells are text; nothing here changes or fills in one.
"""

from __future__ import annotations

import re
from typing import Final

OLDEST_YEARS: Final = 110
"""Greater ages in old copies of the files are typing errors; they are missing, not old."""

_AGE: Final = re.compile(r"([0-9]{1,9}(\.[0-9]{1,9})?)Y?")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?")


def age_years(cell: str) -> float | None:
    """Return an age (`58`, `058Y`) in years, or None for a word, an empty cell and an age above 110."""
    found = _AGE.fullmatch(cell)
    return float(found[1]) if found and float(found[1]) <= OLDEST_YEARS else None


def is_number(cell: str) -> bool:
    """Say whether a cell is a number, or years (`058Y`), however unlikely."""
    return bool(_NUMBER.fullmatch(cell) or _AGE.fullmatch(cell))


def covariate_number(name: str, cell: str) -> float | None:
    """Return the number in a cell of a covariate; cells of `age`, and years in any covariate, are read as ages."""
    if name == "age" or cell.endswith("Y"):
        return age_years(cell)
    return float(cell) if _NUMBER.fullmatch(cell) else None
