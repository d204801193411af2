"""Own the one shape that every problem takes, and the five exceptions.

Library code raises; only the command line prints. Nothing here reads, writes or formats for a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NAMES_LISTED = 10
IDS_LISTED = 5


@dataclass(frozen=True, slots=True)
class Issue:
    """One problem (or, as a note, one thing worth knowing) with its place and the way to mend it.

    The printed text is: place, what was found, what is allowed, what to do.
    """

    code: str
    """Stable reason code, a key of `CODES`; a code never changes its meaning."""
    where: str
    """File, line and column where known, then the field: `specs/x/v2.yaml:14:11 metrics[1].kind`."""
    message: str
    hint: str = ""
    line: int = 0
    """1-based line for sorting; 0 where a line means nothing."""

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}. {self.hint}" if self.hint else text

    def as_json(self) -> dict[str, str]:
        """Return the issue as the JSON object that `--json` prints."""
        return {"code": self.code, "where": self.where, "message": self.message, "hint": self.hint}


class CxrspecError(Exception):
    """Base of every error that a user can mend; carries all issues found in one pass."""

    def __init__(self, issues: Issue | Iterable[Issue]) -> None:
        self.issues: list[Issue] = [issues] if isinstance(issues, Issue) else sorted(issues, key=lambda i: i.line)
        super().__init__("\n".join(str(issue) for issue in self.issues))


class DefinitionError(CxrspecError):
    """A definition, or the data it names, does not say what it must."""


class SourceError(CxrspecError):
    """A source cannot be reached, or its bytes are not the pinned ones."""


class SubmissionError(CxrspecError):
    """A submission or its predictions file is refused."""


class RegistryError(CxrspecError):
    """What is frozen would be changed, or is not what the lock says."""


def listed(names: Sequence[object] | Iterable[object], limit: int = NAMES_LISTED) -> str:
    """Join at most `limit` names with commas, then say how many more there are.

    >>> listed(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    shown = [str(name) for name in names]
    if len(shown) <= limit:
        return ", ".join(shown)
    return f"{', '.join(shown[:limit])} and {len(shown) - limit:,} more"


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """Return `Did you mean 'x'?` for the closest allowed word, or an empty string."""
    from difflib import get_close_matches  # imported late: only a faulty input pays for it

    close = get_close_matches(word, list(allowed), n=1, cutoff=0.6)
    return f"Did you mean '{close[0]}'?" if close else ""


CODES: dict[str, str] = {
    # -- the text of a definition
    "yaml-syntax": "the file is not readable YAML",
    "yaml-duplicate-key": "a mapping names one key twice",
    "yaml-anchor": "anchors, aliases and merge keys are not allowed",
    "yaml-tag": "tags are not allowed",
    "yaml-bare-word": "yes, no, on and off must be quoted",
    # -- the fields of a definition
    "field-unknown": "the field does not exist",
    "field-missing": "a required field is absent",
    "field-type": "the value has the wrong type",
    "field-value": "the value is not one of those allowed, or out of range",
    "reference-unknown": "the definition names a source, subset, protocol or finding that it does not declare",
    "reference-conflict": "two parts of the definition contradict each other",
    "path-mismatch": "the file's place and its benchmark and definition_version differ",
    # -- sources
    "source-unreachable": "a source cannot be reached from here",
    "source-changed": "the bytes of a source are not those of its pin",
    "source-not-data": "the file is a pointer, a page or another thing than the data",
    "source-file-missing": "a source has no file of that name",
    "source-unnamed": "the definition does not say which shards its publisher means",
    "source-access": "the host asks for a login, for terms to be accepted, or to slow down",
    # -- containers and tables
    "container": "the container cannot be opened as one table",
    "encoding": "the text is in no supported encoding",
    "column-missing": "a needed column is absent",
    "column-ambiguous": "two columns fit one name",
    "row-shape": "a row has another number of cells than the header",
    # -- the data behind a definition
    "value-unknown": "a cell holds a value that the encoding does not know",
    "label-majority": "labels are not the majority of the readers that they are said to be",
    "item-duplicate": "two rows of the items source give one item id",
    "item-missing": "a named item does not exist",
    "split-overlap": "an item belongs to two splits",
    "subset-empty": "a subset has no items",
    "subset-leak": "a system would be fitted on groups that it is scored on",
    "selection-impossible": "the pool cannot satisfy the selection",
    "expectation": "a count differs from what the definition expects",
    # -- the registry
    "frozen-changed": "a frozen definition was edited",
    "frozen-unknown": "the definition is not frozen",
    "frozen-lost": "git or DVC knows a lock that is not here",
    "lock-format": "the lock was written by a newer cxrspec, or is not a lock",
    "table-altered": "a frozen table is not the one that the lock names",
    "table-missing": "a frozen table is not on this machine",
    "restricted": "the rows may not be passed on",
    "registry-busy": "another process is writing to the registry",
    "file-unsafe": "a merge conflict or damage makes a file unreadable",
    "git-unreadable": "git cannot tell what was frozen",
    "audit-broken": "a link between a number and its frozen items is broken, so the number is not exported",
    "disk": "the disk refuses to write a file",
    # -- submissions
    "submission-reference": "the submission names another definition version or subset than the one scored",
    "submission-field": "a field of submission.yaml is wrong",
    "prediction-missing": "items of the subset have no prediction",
    "prediction-unknown": "predictions name items that the sources do not know",
    "prediction-duplicate": "one item has two different predictions",
    "prediction-value": "a prediction is not a finite number",
    "prompt": "a prompt of a submission is not one that the definition declares",
    "finding-missing": "a finding of the definition has no column",
    "undefined": "a score that the definition asks for has no value",
    "finding-unknown": "predictions name a finding that the definition does not have",
    "prediction-box": "a predicted box has no positive size, leaves the frame, or is not in its pixels",
    "grade-sheet": "a graded sheet is not the one that was given out, or lacks grades",
    "grade-value": "a grade is none of those that the task allows",
    # -- notes: accepted, and worth knowing
    "note": "accepted as it stands",
}
