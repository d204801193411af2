"""Own the few words of SVG that every picture is written in: escaped text, numbers, a line of text at a place."""

from __future__ import annotations

import re
from html import escape
from typing import Final

_ILLEGAL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # what XML may not hold


def svg_text(text: str) -> str:
    """Escape a text for XML; what XML cannot hold becomes a replacement character."""
    return escape(_ILLEGAL.sub("\ufffd", text))


def svg_number(value: float) -> str:
    """Write a number for an attribute."""
    return f"{float(value):.10g}"


def svg_line(line: str, x: float, y: float, style: str = "") -> str:
    """Write a line of text at a place."""
    return f'<text x="{svg_number(x)}" y="{svg_number(y)}"{style}>{svg_text(line)}</text>'
