"""Own the entries of `trained_on`: sorted by kind, and slips of the pen read as they are meant, or refused.

It knows what is frozen by name only; no table or list is opened here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cxrspec.errors import Issue
from cxrspec.reference import Reference
from cxrspec.submission import IdList, Submission

NOTHING: Final = "nothing"
OUTSIDE: Final = "outside "
UNKNOWN: Final = "unknown"
FORMS: Final = "benchmark@version:name of a frozen subset or split, 'outside benchmark@version:name', or a list of ids"

_OUTSIDE: Final = re.compile(r"(outside\s+)?(\S+)", re.IGNORECASE)
_FILE: Final = re.compile(
    r"(?!\w+://).*(\.(txt|csv|tsv|list|lst|json|parquet|npz|xlsx?|gz|zip)|[\\/])|(~|\.\.?)?[\\/].*|[a-z]:\\.*",
    re.IGNORECASE,
)
"""Words that end as the name of a file or folder does, or begin as a path; an address is neither."""


@dataclass(frozen=True, slots=True)
class Declared:
    """The entries of `trained_on` by kind."""

    parts: Sequence[Reference]
    """Exactly the items of a subset or split."""
    outside: Sequence[Reference]
    """Some of the items of a roster outside a subset or split, at most all."""
    lists: Sequence[IdList]
    words: Sequence[str]
    """What no computer can compare with a roster, `unknown` among it."""
    says_nothing: bool
    """Whether one entry says that nothing was trained on."""

    @classmethod
    def of(cls, submission: Submission) -> Declared:
        """Sort the entries of a submission."""
        entries = submission.trained_on
        texts = [one for one in entries if isinstance(one, str) and one != NOTHING]
        references = {text: _reference(text.removeprefix(OUTSIDE).strip()) for text in texts}
        named = [(text.startswith(OUTSIDE), found) for text, found in references.items() if found]
        return cls(
            parts=[found for outside, found in named if not outside],
            outside=[found for outside, found in named if outside],
            lists=[one for one in entries if isinstance(one, IdList)],
            words=[text for text, found in references.items() if found is None],
            says_nothing=NOTHING in entries,
        )


def _reference(text: str) -> Reference | None:
    try:
        return Reference.parse(text)
    except ValueError:
        return None


def as_meant(entry: str, frozen: Collection[Reference]) -> str:
    """Return an entry in the spelling that is read: `nothing`, `unknown`, or a part of a definition that is frozen.

    Case and blanks never matter for those. All other words stay as they are.

    >>> as_meant(" Nothing", []), as_meant("Outside  Tiny@v1:Test", [Reference("tiny", "v1")])
    ('nothing', 'outside tiny@v1:test')
    """
    text = entry.strip()
    if text.lower() in (NOTHING, UNKNOWN):
        return text.lower()
    found = _OUTSIDE.fullmatch(text)
    reference = _reference(found[2].lower()) if found else None
    if found and reference and reference.definition in frozen:
        return f"{OUTSIDE if found[1] else ''}{reference}"
    return text or entry


def word_issues(entry: str) -> Iterator[Issue]:
    """Yield why a text that is handed in is no entry: it is blank, or the name of a file that was not read."""
    place = f"trained_on '{entry}'"
    if not entry.strip():
        yield Issue("submission-field", place, "a blank says nothing", f"Leave it out, or write {NOTHING} or {UNKNOWN}")
    elif _FILE.fullmatch(entry.strip()):
        message = "looks like a file or folder, and no file of that name was read"
        yield Issue("submission-field", place, message, f"Give a list of ids that is there, or write {FORMS}")
