"""Own the four values of a label table of CheXpert's kind: 1.0, 0.0, -1.0 (uncertain) and blank (not mentioned)."""

from __future__ import annotations


def four_value(text: str) -> str | None:
    """Return a cell as `1`, `0`, `-1` or blank; None for anything else."""
    if not text.strip():
        return ""
    try:
        return {1.0: "1", 0.0: "0", -1.0: "-1"}.get(float(text))
    except ValueError:
        return None
