"""Own the reading of free-text answers: yes or no by leading words, normalization, token F1. Pure functions of text.

No test is ever a substring test: text is cut into words first, and what decides stands at the beginning.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

Reading = Literal["yes", "no", "undecided", "refusal", "empty"]
Polarity = Literal["yes", "no"]

_APOSTROPHES: Final = dict.fromkeys(map(ord, "\u2018\u2019\u201b\u02bc\uff07\u2032`\u00b4"), "'")
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_LIST_MARK: Final = re.compile(r"\s*\d+[.)]\s+")
_POLARITIES: Final[dict[str, Polarity]] = {"yes": "yes", "no": "no"}
_JOINING: Final = frozenset({"and", "or"})
_ARTICLES: Final = frozenset({"a", "an", "the"})


def words(text: str) -> list[str]:
    """Return the words of a text, caseless: runs of letters and digits, with the apostrophes inside them.

    Markdown, quotes and punctuation of any script only separate words; a leading list number (`1.`) is none.
    Compatibility forms (full width) are read as the plain letters, and invisible characters are not there.
    """
    plain = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).translate(_APOSTROPHES).casefold()
    seen = "".join(letter for letter in plain if unicodedata.category(letter) != "Cf")
    return _WORD.findall(_LIST_MARK.sub("", seen, count=1) if _LIST_MARK.match(seen) else seen)


def leading_polarity(text: str) -> Reading:
    """Return the yes or no that a text begins with; `undecided` if it begins with neither, or with both.

    `Yes and no`, `yes/no` and `No. Yes.` begin with both.
    """
    return _leading(words(text))


def _leading(found: Sequence[str]) -> Reading:
    if not found:
        return "empty"
    first = _POLARITIES.get(found[0])
    if first is None:
        return "undecided"
    for word in found[1:]:
        if word not in _JOINING and word not in _POLARITIES:
            break
        if _POLARITIES.get(word, first) != first:
            return "undecided"
    return first


@dataclass(frozen=True)
class Readings:
    """The phrases that a definition declares: what beside a leading yes or no says so, and what refuses to answer."""

    affirmative: Sequence[str]
    negative: Sequence[str]
    refusal: Sequence[str]

    @cached_property
    def _phrases(self) -> dict[tuple[str, ...], Reading]:
        """Every phrase as words, with what it says."""
        kinds: tuple[tuple[Sequence[str], Reading], ...] = ((self.affirmative, "yes"), (self.negative, "no"))
        return {tuple(words(phrase)): kind for phrases, kind in kinds for phrase in phrases}

    @cached_property
    def _refusals(self) -> dict[tuple[str, ...], Reading]:
        return {tuple(words(phrase)): "refusal" for phrase in self.refusal}

    def strict(self, text: str) -> Reading:
        """Read an answer by its leading yes or no alone; a text that begins as a refusal is one."""
        found = words(text)
        return _beginning(found, self._refusals) or _leading(found)

    def lenient(self, text: str) -> Reading:
        """Read an answer as `strict` does, and what that leaves undecided by the longest phrase it begins with."""
        found = words(text)
        reading = self.strict(text)
        if reading != "undecided" or found[0] in _POLARITIES:  # both yes and no stay undecided
            return reading
        return _beginning(found, self._phrases) or reading


def _beginning(found: Sequence[str], phrases: dict[tuple[str, ...], Reading]) -> Reading | None:
    """Return what the longest phrase says that the words begin with."""
    longest = max(map(len, phrases), default=0)
    for length in range(min(longest, len(found)), 0, -1):
        if reading := phrases.get(tuple(found[:length])):
            return reading
    return None


def normalized(text: str) -> str:
    """Return a text by its words without articles, as exact match compares them (Rajpurkar et al., EMNLP 2016)."""
    return " ".join(_content(text))


def exact_match(answer: str, reference: str) -> float:
    """Return 1.0 if both texts are equal after normalization, else 0.0."""
    return float(normalized(answer) == normalized(reference))


def token_f1(answer: str, reference: str) -> float:
    """Return the harmonic mean of precision and recall of the words that two texts share (Rajpurkar et al. 2016).

    A text without words shares none: the value is 0.0, and 1.0 where both are without.
    """
    ours, theirs = Counter(_content(answer)), Counter(_content(reference))
    if not ours or not theirs:
        return float(ours == theirs)
    shared = (ours & theirs).total()
    return 2 * shared / (ours.total() + theirs.total())


def _content(text: str) -> list[str]:
    return [word for word in words(text) if word not in _ARTICLES]


def clashing_phrases(first: Iterable[str], second: Iterable[str]) -> list[str]:
    """Return the phrases of the second list whose words are those of one of the first."""
    taken = {tuple(words(phrase)) for phrase in first}
    return [phrase for phrase in second if tuple(words(phrase)) in taken]
