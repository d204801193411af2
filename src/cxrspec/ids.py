"""Own the one canonical form of item ids, for reference standard and submissions alike.

It never looks at a file: who reads one hands the raw ids over. A step that would merge two reference
ids is switched off, so the form is injective on them (images into one study excepted, where that is the rule).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import eq, ne
from typing import Literal, NamedTuple

from cxrspec.errors import IDS_LISTED, DefinitionError, Issue, listed

Form = Literal["text", "file_name", "study_path", "image_path"]
IMAGE_EXTENSIONS = frozenset({"png", "jpg", "jpeg", "dcm", "bmp", "tif", "tiff"})

_PADDED_LENGTH = 12
_NIH_NAME = re.compile(r"([0-9]{1,8})_([0-9]{1,3})")
_IMAGE_TAIL = re.compile(r"(?:.*/)?((?:train|valid|test)/.+)")
_STUDY_TAIL = re.compile(r"(?:.*/)?((?:train|valid|test)/[^/]+/[^/]+)(?:/(.*))?")
_TAILS = {"study_path": _STUDY_TAIL, "image_path": _IMAGE_TAIL}


@dataclass(frozen=True, slots=True)
class IdRule:
    """How a definition writes its ids; the same rule reads the ids of every submission."""

    form: Form = "text"
    """`file_name` drops folders and image extension; the path forms keep the tail from train/, valid/ or test/."""
    strip_suffix: str | None = None
    prefix: str = ""


class _Step(NamedTuple):
    apply: Callable[[str], str]
    merges: bool = False
    """Merging ids is what the step is for."""


@dataclass(frozen=True, slots=True)
class Canonicalizer:
    """The steps of a rule that are safe on one reference standard. Build it with `from_raw` or `from_reference`."""

    rule: IdRule
    on_paths: tuple[_Step, ...]
    """Steps on the whole text, prefix included."""
    on_names: tuple[_Step, ...]
    """Steps on what follows the prefix, once the first ones are done."""

    @classmethod
    def from_raw(cls, rule: IdRule, raw_ids: Iterable[str]) -> Canonicalizer:
        """Switch on each step that keeps the distinct ids of a source distinct.

        Raises:
            DefinitionError: The rule wants a path and some ids have no train/, valid/ or test/ folder.
        """
        ids = list(dict.fromkeys(map(_clean, raw_ids)))
        _refuse_misfits(rule, ids)
        on_paths, names = _safe_steps(_path_steps(rule), ids)
        bodies = [text.removeprefix(rule.prefix) for text in names]
        if _n_merged(bodies):
            return cls.from_raw(replace(rule, prefix=""), ids)
        on_names, _ = _safe_steps(_name_steps(rule), bodies)
        return cls(rule, on_paths, on_names)

    @classmethod
    def from_reference(cls, rule: IdRule, canonical_ids: Iterable[str]) -> Canonicalizer:
        """Switch on each step that leaves every id of the frozen reference standard as it is."""
        ids = list(canonical_ids)
        if not all(text.startswith(rule.prefix) for text in ids):
            rule = replace(rule, prefix="")
        bodies = [text.removeprefix(rule.prefix) for text in ids]
        return cls(rule, _keeping_steps(_path_steps(rule), bodies), _keeping_steps(_name_steps(rule), bodies))

    @property
    def steps(self) -> tuple[str, int, int]:
        """The prefix, and how many steps on paths and on names are on: equal for equal reading of one rule."""
        return self.rule.prefix, len(self.on_paths), len(self.on_names)

    def canonical(self, raw: str) -> str:
        """Return the canonical form of one raw id."""
        return self.canonical_all([raw])[0][0]

    def canonical_all(self, raws: Sequence[str]) -> tuple[list[str], int]:
        """Return the canonical ids in the given order, and how many of them had lost their leading zeros.

        An id that does not fit the form comes back as it stands, so that it is reported as unknown.
        """
        prefix = self.rule.prefix
        ids = list(map(_clean, raws))
        for step in self.on_paths:
            ids = list(map(step.apply, ids))
        if prefix:
            ids = [text.removeprefix(prefix) for text in ids]
        n_repadded = 0
        for step in self.on_names:
            before, ids = ids, list(map(step.apply, ids))
            if step.apply is _repad:
                n_repadded = sum(map(ne, before, ids))
        return ([prefix + text for text in ids] if prefix else ids), n_repadded

    def fits(self, raw: str) -> bool:
        """Say whether a raw id has the shape that the form asks for; every text fits `text` and `file_name`."""
        tail = _TAILS.get(self.rule.form)
        return tail is None or tail.fullmatch(_clean(raw).removeprefix(self.rule.prefix)) is not None

    def views(self, raws: Sequence[str]) -> list[str]:
        """Return, for `study_path`, the view of each raw id: empty where the id names the study itself."""
        matches = (_STUDY_TAIL.fullmatch(_clean(raw).removeprefix(self.rule.prefix)) for raw in raws)
        return [_drop_extension(match[2] or "") if match else "" for match in matches]


def numbered(ids: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Return ids that tell apart what shares one: `-q01`, `-q02`, ... by the code-point order of each one's texts.

    Blanks between the words of a text never matter, and rows of one id and text are one item.
    """
    plain = [" ".join(unicodedata.normalize("NFC", text).split()) for text in texts]
    by_id: dict[str, set[str]] = {}
    for item, text in zip(ids, plain, strict=True):
        by_id.setdefault(item, set()).add(text)
    rank = {(item, text): at for item, found in by_id.items() for at, text in enumerate(sorted(found), start=1)}
    return [f"{item}-q{rank[item, text]:02d}" for item, text in zip(ids, plain, strict=True)]


def nearest_ids(words: Sequence[str], ids: Iterable[str]) -> list[str]:
    """Return for each word the id that shares the most characters at the same place, counted from either end.

    Ties go to the first in code-point order; without any id the answers are empty.
    """
    import numpy as np  # imported late: only a faulty input pays for it

    ordered = sorted(ids)
    if not ordered:
        return [""] * len(words)
    longest = max(map(len, ordered))
    words = [word[: 2 * longest] for word in words]  # what is longer is far from every id, and must cost no memory
    width = max(map(len, [*ordered, *words]))

    def letters(texts: Sequence[str]) -> np.ndarray[tuple[int, int], np.dtype[np.uint32]]:
        return np.array(texts, dtype=f"<U{width}").view(np.uint32).reshape(len(texts), width)

    lengths = np.array([len(text) for text in ordered])
    from_left, from_right = letters(ordered), letters([text.rjust(width) for text in ordered])
    found = []
    for word in words:
        left = (from_left == letters([word])).sum(axis=1)
        right = (from_right == letters([word.rjust(width)])).sum(axis=1)
        padding = width - np.maximum(lengths, len(word))
        found.append(ordered[int(np.argmax(np.maximum(left, right) - padding - abs(lengths - len(word))))])
    return found


def _path_steps(rule: IdRule) -> list[_Step]:
    return [_Step(_basename)] if rule.form == "file_name" else []


def _name_steps(rule: IdRule) -> list[_Step]:
    steps = {
        "text": [],
        "file_name": [_Step(_drop_extension), _Step(_repad)],
        "study_path": [_Step(partial(_tail, _STUDY_TAIL), merges=True)],
        "image_path": [_Step(partial(_tail, _IMAGE_TAIL)), _Step(_drop_extension)],
    }[rule.form]
    if rule.strip_suffix:
        suffix = rule.strip_suffix
        steps.append(_Step(lambda text: text.removesuffix(suffix).rstrip()))
    return steps


def _safe_steps(steps: Iterable[_Step], ids: list[str]) -> tuple[tuple[_Step, ...], list[str]]:
    """Return the steps that merge no ids unless that is their purpose, and the distinct ids after them."""
    safe = []
    for step in steps:
        after = list(map(step.apply, ids))
        if step.merges or not _n_merged(after):
            safe.append(step)
            ids = list(set(after)) if step.merges else after
    return tuple(safe), ids


def _keeping_steps(steps: Iterable[_Step], ids: Sequence[str]) -> tuple[_Step, ...]:
    return tuple(step for step in steps if all(map(eq, map(step.apply, ids), ids)))


def _n_merged(ids: Sequence[str]) -> int:
    return len(ids) - len(set(ids))


def _clean(raw: str) -> str:
    return unicodedata.normalize("NFC", raw).strip().replace("\\", "/")


def _basename(text: str) -> str:
    return text.rpartition("/")[2].lstrip()


def _drop_extension(text: str) -> str:
    stem, _, extension = text.rpartition(".")
    return stem.rstrip() if stem and extension.lower() in IMAGE_EXTENSIONS else text


def _repad(text: str) -> str:
    if len(text) >= _PADDED_LENGTH:
        return text
    match = _NIH_NAME.fullmatch(text)
    return f"{match[1]:0>8}_{match[2]:0>3}" if match else text


def _tail(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.fullmatch(text)
    return match[1].rstrip() if match else text


def _refuse_misfits(rule: IdRule, ids: Sequence[str]) -> None:
    tail = _TAILS.get(rule.form)
    misfits = [text for text in ids if not tail.fullmatch(text.removeprefix(rule.prefix))] if tail else []
    if misfits:
        found = listed([f"'{text}'" for text in misfits], IDS_LISTED)
        raise DefinitionError(
            Issue(
                code="value-unknown",
                where="item_id",
                message=f"{len(misfits):,} of {len(ids):,} ids have no train/, valid/ or test/ folder: {found}",
                hint=f"The form {rule.form} keeps the path from there on; for other ids use text or file_name",
            )
        )
