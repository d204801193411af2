"""How answers are read: every reading below was worked out by hand, from the rule and not from the code."""

from __future__ import annotations

import re
import string
from collections import Counter

import pytest

from cxrspec.loader import load_definition
from cxrspec.metrics import Readings, clashing_phrases, exact_match, leading_polarity, token_f1, words
from cxrspec.tasks.vqa import VqaTask
from questions import REAL, SPECS


def published() -> Readings:
    """Return the phrases of the published definition."""
    task = load_definition(SPECS / REAL.benchmark / f"{REAL.version}.yaml").task
    assert isinstance(task, VqaTask)
    return Readings(task.phrases.affirmative, task.phrases.negative, task.phrases.refusal)


READINGS = published()
Y, N, U, R, E = "yes", "no", "undecided", "refusal", "empty"
# (answer, strict reading, lenient reading)
ANSWERS: list[tuple[str, str, str]] = [
    # the words themselves, however they are dressed
    ("Yes.", Y, Y),
    ("yes", Y, Y),
    ("YES!!!", Y, Y),
    ("No", N, N),
    ("no.", N, N),
    ("**Yes**", Y, Y),
    ("**No**", N, N),
    ("_no_", N, N),
    ("`No`", N, N),
    ("# Yes", Y, Y),
    ("> No", N, N),
    ("- Yes", Y, Y),
    ("1. Yes", Y, Y),
    ("2) No, none.", N, N),
    ("\n\n  Yes\n", Y, Y),
    ('"Yes"', Y, Y),
    ("'No'", N, N),
    ("\u201cYes\u201d", Y, Y),  # curly quotes
    ("\u2018No.\u2019", N, N),
    ("\u00abYes\u00bb", Y, Y),  # French quotes
    ("\u201eNo\u201c", N, N),  # German quotes
    ("\u300cNo\u300d", N, N),  # Japanese brackets
    ("Yes\u3002", Y, Y),  # ideographic full stop
    ("No\u060c there is nothing", N, N),  # Arabic comma
    ("\u00a1Yes!", Y, Y),  # Spanish marks
    ("\u00bfNo?", N, N),
    ("\uff39\uff45\uff53", Y, Y),  # full-width letters
    ("\u200bYes", Y, Y),  # a zero-width space in front
    ("\u2705 Yes", Y, Y),  # an emoji in front
    # sentences that begin with them
    ("yes there is", Y, Y),
    ("Yes, on the right.", Y, Y),
    ("Yes - there is no doubt about it", Y, Y),
    ("No, there is no pneumothorax.", N, N),
    ("No evidence of pneumothorax", N, N),
    ("No focal consolidation.", N, N),
    ("No, no, no.", N, N),
    ("Yes. However, no effusion is seen.", Y, Y),
    # a `no` that only opens the next clause is no answer of its own
    ("Yes. No pneumothorax is seen.", Y, Y),
    ("Yes, no doubt.", Y, Y),
    ("Yes, no doubt about it", Y, Y),
    ("Yes; no fracture.", Y, Y),
    ("Yes \u2014 no effusion, though", Y, Y),
    ("Yes (no effusion)", Y, Y),
    ("**Yes**\n\nNo pneumothorax.", Y, Y),
    ("No. No effusion either.", N, N),
    ("Yes, yes, no question", Y, Y),
    # both polarities in front say neither
    ("Yes. No.", U, U),
    ("Yes - no", U, U),
    ("yes no", U, U),
    ("Yes no effusion", U, U),
    ("Yes/no effusion", U, U),
    ("Yes & no", U, U),
    ("Yes, and no.", U, U),
    ("Yes. No, there is not", U, U),
    ("No, yes there is one", U, U),
    ("No. Yes, a small one", U, U),
    ("Yes and no", U, U),
    ("yes/no", U, U),
    ("No. Yes.", U, U),
    ("No or yes", U, U),
    ("Yes, no, maybe", U, U),
    ("No no yes", U, U),
    # `no` and `yes` inside other words, and further on, say nothing
    ("Normal heart.", U, U),
    ("Note the left base.", U, U),
    ("Nodule", U, U),
    ("Unknown", U, U),
    ("Eyes closed", U, U),
    ("Yesterday's film", U, U),
    ("Nothing", U, U),
    ("The answer cannot be yes", U, U),
    ("Effusion: no", U, U),
    ("Heart size is normal, no effusion", U, U),
    # phrases that the definition declares, in front only
    ("There is no pneumothorax", U, N),
    ("There is an effusion", U, Y),
    ("There are no lines", U, N),
    ("There isn\u2019t any", U, N),  # curly apostrophe
    ("not seen", U, N),
    ("Not present.", U, N),
    ("Not sure", U, U),
    ("Absent", U, N),
    ("Present", U, Y),
    ("none", U, N),
    ("None.", U, N),
    ("Nope", U, N),
    ("Yep", U, Y),
    ("Answer: Yes", U, Y),
    ("The answer is no.", U, N),
    ("Pneumothorax is not present", U, U),
    ("Presently unclear", U, U),
    ("There's no effusion", U, N),
    ("There\u2019s an effusion", U, Y),
    ("Final answer: No", U, N),
    ("**Final answer:** yes", U, Y),
    ("It is absent", U, N),
    ("It's present.", U, Y),
    ("There is an absence of effusion", U, N),
    ("Without doubt yes", U, Y),
    ("There is no doubt", U, Y),
    ("None seen", U, N),
    ("There are no effusions or positive findings", U, N),
    ("Absent. There is a nodule, though", U, N),
    ("There is a 1.5 cm nodule", U, Y),
    # a phrase that its clause takes back says nothing
    ("There is absolutely no effusion", U, U),
    ("There is nothing abnormal", U, U),
    ("There is a complete absence of effusion", U, U),
    ("There is a lack of evidence", U, U),
    ("There is an effusion that isn't there", U, U),
    ("There is no doubt that it is absent", U, U),
    ("Present: no", U, U),
    ("Seen: no", U, U),
    ("Seen - no", U, U),
    ("Present? No.", U, U),
    ("Present, no.", U, U),
    ("Present or absent?", U, U),
    ("Present/absent", U, U),
    ("Absent or present?", U, U),
    ("Absent/present", U, U),
    ("Positive and negative", U, U),
    ("Negative and positive", U, U),
    ("Positive/negative", U, U),
    ("Without question yes", U, U),
    ("Absent: yes", U, U),
    ("Absent? Yes.", U, U),
    # what follows in another clause takes nothing back
    ("There is an effusion. No pneumothorax is seen.", U, Y),
    ("There is an effusion, not a pneumothorax", U, Y),
    ("Present, no doubt", U, Y),
    ("N/A", U, U),
    ("maybe", U, U),
    ("Ja", U, U),
    ("S\u00ed", U, U),
    # refusals and nothing at all
    ("I cannot tell", R, R),
    ("I can't determine this from the image.", R, R),
    ("I\u2019m sorry, but I cannot interpret images", R, R),
    ("As an AI, I am not a doctor. No.", R, R),
    ("No idea", R, R),
    ("There is insufficient evidence", R, R),
    ("Insufficient evidence of effusion", R, R),
    ("There is no way to tell", R, R),
    ("", E, E),
    ("   ", E, E),
    ("...", E, E),
    ("**", E, E),
    ("\u2014", E, E),
]


@pytest.mark.parametrize(("answer", "strict", "lenient"), ANSWERS, ids=[repr(one[0]) for one in ANSWERS])
def test_v1_v2_v9_an_answer_is_read_by_its_leading_words(answer: str, strict: str, lenient: str) -> None:
    """V1, V2, V9: each answer has the strict and the lenient reading that was worked out by hand."""
    assert (strict, lenient) == (READINGS.strict(answer), READINGS.lenient(answer))


def test_the_table_is_long_enough_to_mean_something() -> None:
    """Sixty answers at least, no answer twice, and every reading occurs."""
    assert 60 <= len(ANSWERS) == len({answer for answer, _, _ in ANSWERS})
    assert {Y, N, U, R, E} == {strict for _, strict, _ in ANSWERS} == {lenient for _, _, lenient in ANSWERS}


def test_lenient_only_decides_what_strict_leaves_undecided() -> None:
    """No phrase turns a yes into a no, a refusal into an answer, or both polarities into one."""
    decided = [(s, lenient) for _, s, lenient in ANSWERS if s != U]
    assert all(strict == lenient for strict, lenient in decided)


def test_the_longest_phrase_decides() -> None:
    """`there is no` is longer than `there is`, whatever their order in the definition."""
    for affirmative, negative in ((["there is"], ["there is no"]), (["there is no doubt"], ["there is no"])):
        found = Readings(affirmative, negative, [])
        assert "yes" == found.lenient("There is no doubt" if "doubt" in affirmative[0] else "There is one")
        assert "no" == found.lenient("There is no effusion")


def test_a_phrase_is_words_not_letters() -> None:
    """`not seen` is not the beginning of `not seenable`, and punctuation between its words does not matter."""
    found = Readings(["x"], ["not seen"], [])
    assert ("undecided", "no", "no") == tuple(map(found.lenient, ("not seenable", "Not -- seen", "NOT, SEEN here")))


def test_leading_polarity_knows_no_phrases() -> None:
    """Reference answers are read by yes and no alone."""
    assert ("yes", "no", "undecided", "empty") == tuple(map(leading_polarity, ("Yes.", "No, none", "Absent", "?")))


def test_clashing_phrases_are_those_of_the_same_words() -> None:
    """Case and punctuation make no other phrase."""
    assert ["Not, seen!"] == clashing_phrases(["not seen"], ["Not, seen!", "seen"])


def squad_tokens(text: str) -> list[str]:
    """Return the tokens of SQuAD's evaluation script: lower case, no punctuation, no articles."""
    plain = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", plain).split()


def squad_f1(answer: str, reference: str) -> float:
    """Return F1 as SQuAD's evaluation script computes it."""
    ours, theirs = squad_tokens(answer), squad_tokens(reference)
    shared = sum((Counter(ours) & Counter(theirs)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(ours), shared / len(theirs)
    return 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("the left base", "Left base."),
        ("left lower lobe, left base", "left base"),
        ("right", "left base"),
        ("small small effusion", "a small effusion"),
        ("in the left lung base and the right apex", "left base and right base"),
        ("An apple", "apple"),
    ],
)
def test_token_f1_and_exact_match_are_those_of_squad(answer: str, reference: str) -> None:
    """Where no punctuation joins words, both are those of SQuAD's script (Rajpurkar et al. 2016), written out here."""
    assert pytest.approx(squad_f1(answer, reference), abs=1e-15) == token_f1(answer, reference)
    assert float(squad_tokens(answer) == squad_tokens(reference)) == exact_match(answer, reference)


def test_texts_without_words_share_none() -> None:
    """Nothing matches nothing only."""
    assert (0.0, 0.0, 1.0) == (token_f1("", "left"), token_f1("the", "left"), token_f1("...", ""))
    assert (0.0, 1.0) == (exact_match("", "left"), exact_match("The LEFT", "left"))


def test_words_of_other_scripts_are_words() -> None:
    """Letters of every script count; composed and decomposed forms are one."""
    assert ["\u03c0\u03bd\u03b5\u03cd\u03bc\u03c9\u03bd", "\u5de6"] == words(
        "\u03c0\u03bd\u03b5\u03cd\u03bc\u03c9\u03bd \u5de6\u3002"
    )
    assert words("caf\u00e9") == words("cafe\u0301")
