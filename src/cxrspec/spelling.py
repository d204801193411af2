"""Own the form in which names are compared: one rule for the labels of definitions, sources and submissions."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_SPACING: Final = re.compile(r"[\s_-]+")


def plain_name(name: str) -> str:
    """Return a name without case, blanks, `_` and `-`, the form in which labels and column heads are compared.

    >>> plain_name("Pleural_Thickening")
    'pleuralthickening'
    """
    return _SPACING.sub("", unicodedata.normalize("NFC", name)).casefold()
