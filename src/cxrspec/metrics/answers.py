"""Own the reading of free-text answers: yes or no by leading words, normalization, token F1. Pure functions of text.

No test is ever a substring test: text is cut into words first, and what decides stands at the beginning.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, Literal

Reading = Literal["yes", "no", "undecided", "refusal", "empty"]
Polarity = Literal["yes", "no"]

_APOSTROPHES: Final = dict.fromkeys(map(ord, "\u2018\u2019\u201b\u02bc\uff07\u2032`\u00b4"), "'")
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_MARK: Final = re.compile(
    r"(?P<end>\.(?!\d)|[,;!\n\u3001\u3002\u060c\u061b])"
    r"|(?P<on>[:?()\u061f\u2012-\u2015]|(?<=\s)-+(?=\s))"
    r"|(?P<or>[/\\|&+])"
)
_LIST_MARK: Final = re.compile(r"\s*\d+[.)]\s+")
_END, _ON, _OR = ",", ":", "/"
"""A mark that ends a clause; one that leads on to what is said of the words before it; one that joins two words."""
_MARKS: Final = frozenset({_END, _ON, _OR})
_POLARITIES: Final[dict[str, Polarity]] = {"yes": "yes", "no": "no"}
_JOINING: Final = frozenset({"and", "or", _OR})
_ARTICLES: Final = frozenset({"a", "an", "the"})
_NEGATIONS: Final = frozenset(
    {
        *("no", "not", "cannot", "never", "none", "nothing", "nobody", "nowhere", "neither", "nor", "nil", "without"),
        *("absence", "absent", "lack", "lacks", "lacking", "insufficient", "inadequate", "hardly", "scarcely"),
        *("unlikely", "doubtful", "excluded", "denied"),
    }
)
"""Words after which an affirmation in the same clause is none, beside every word in `n't`."""


def words(text: str) -> list[str]:
    """Return the words of a text, caseless: runs of letters and digits, with the apostrophes inside them.

    Markdown, quotes and punctuation of any script only separate words; a leading list number (`1.`) is none.
    Compatibility forms (full width) are read as the plain letters, and invisible characters are not there.
    """
    return _WORD.findall(_plain(text))


def _plain(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).translate(_APOSTROPHES).casefold()
    seen = "".join(letter for letter in plain if unicodedata.category(letter) != "Cf")
    return _LIST_MARK.sub("", seen, count=1) if _LIST_MARK.match(seen) else seen


def _tokens(text: str) -> list[str]:
    """Return the words of a text, from the first on, with the marks between them: `,` a clause's end, `:`, `/`."""
    plain = _plain(text)
    found: list[str] = []
    at = 0
    for word in _WORD.finditer(plain):
        marks = {mark.lastgroup for mark in _MARK.finditer(plain, at, word.start())} if found else set()
        found += [_END if "end" in marks else _ON if "on" in marks else _OR] if marks else []
        found.append(word.group())
        at = word.end()
    return [*found, _END] if _MARK.search(plain, at) and found else found


def leading_polarity(text: str) -> Reading:
    """Return the yes or no that a text begins with; `undecided` if it begins with neither, or with both.

    It begins with both where the other word is joined to the first (`yes/no`, `yes no`, `Yes and no`), or follows as an
    answer of its own (`No. Yes.`, `Yes, no, maybe`, `No, yes there is`). A `no` that only opens the next clause is
    none: `Yes. No pneumothorax is seen.` and `Yes, no doubt.` say yes.
    """
    return _leading(_tokens(text))


def _leading(tokens: Sequence[str]) -> Reading:
    if not tokens:
        return "empty"
    first = _POLARITIES.get(tokens[0])
    if first is None:
        return "undecided"
    return "undecided" if _answers_again(first, tokens[1:]) else first


def _answers_again(first: Reading, rest: Sequence[str]) -> bool:
    """Return whether what follows a yes or no begins with the other one, as an answer of its own."""
    after_mark = False
    for word, following in pairwise([*rest, _END]):
        if word in (_END, _ON):
            after_mark = True
        elif word in _POLARITIES:
            is_alone = following in (_END, _ON, *_JOINING, *_POLARITIES)
            if word == "no" and after_mark and not is_alone:  # it opens a clause: `no doubt`
                return False
            if _POLARITIES[word] != first:
                return True
            after_mark = False
        elif word in _JOINING:
            after_mark = False
        else:
            return False
    return False


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

    @cached_property
    def _negations(self) -> frozenset[str]:
        """The words that take an affirmation back: our own, and every declared negative of one word."""
        return _NEGATIONS | {phrase[0] for phrase, kind in self._phrases.items() if kind == "no" and len(phrase) == 1}

    def strict(self, text: str) -> Reading:
        """Read an answer by its leading yes or no alone; a text that begins as a refusal is one."""
        tokens = _tokens(text)
        return "refusal" if _beginning(tokens, self._refusals) else _leading(tokens)

    def lenient(self, text: str) -> Reading:
        """Read an answer as `strict` does, and what that leaves undecided by the longest phrase it begins with.

        A phrase that the rest of its clause takes back decides nothing: an affirmation with a negation behind it
        (`There is absolutely no effusion`, `Present: no`), a negation with a yes behind it, and two phrases of both
        kinds joined by `and`, `or` or a slash (`Present or absent?`).
        """
        tokens, reading = _tokens(text), self.strict(text)
        if reading != "undecided" or tokens[0] in _POLARITIES:  # both yes and no stay undecided
            return reading
        said, rest = self._phrase(tokens)
        return reading if said is None or self._is_taken_back(said, rest) else said

    def _phrase(self, tokens: Sequence[str]) -> tuple[Reading | None, Sequence[str]]:
        """Return what the phrase says that tokens begin with, if they begin with one, and what follows it."""
        length = _beginning(tokens, self._phrases)
        return self._phrases.get(tuple(token for token in tokens[:length] if token not in _MARKS)), tokens[length:]

    def _is_taken_back(self, said: Reading, rest: Sequence[str]) -> bool:
        """Return whether what follows a phrase makes it say the other thing as well."""
        clause = rest[: rest.index(_END)] if _END in rest else rest
        if _answers_again(said, rest):
            return True
        if said == "yes":
            return any(word in self._negations or word.endswith("n't") for word in clause)
        return "yes" in clause or (bool(rest) and rest[0] in _JOINING and self._phrase(rest[1:])[0] == "yes")


def _beginning(tokens: Sequence[str], phrases: Mapping[tuple[str, ...], Reading]) -> int:
    """Return how many tokens the longest phrase takes up that they begin with, marks between its words aside."""
    longest = max(map(len, phrases), default=0)
    found, begun = 0, []
    for at, token in enumerate(tokens, 1):
        if token not in _MARKS:
            begun.append(token)
            found = at if tuple(begun) in phrases else found
        if len(begun) == longest:
            break
    return found


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
