"""Own the matching of a predictions file's column heads with what a definition asks for, by name only.

Nothing is taken by position, and every head that is not used is accounted for in a note.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from unicodedata import normalize

from cxrspec.errors import Issue, listed
from cxrspec.predictions.alignment import ExpectedItems
from cxrspec.spelling import plain_name
from cxrspec.tables.sheets import Sheet

OWN_ID_COLUMN = "item_id"

_PANDAS_BLANK = re.compile(r"Unnamed: \d+(\.\d+)?")
NO_FINDING = "nofinding"
_LABELS = frozenset({"label", "labels", "findinglabel", "findinglabels", "target", "targets"})


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """One column that a scores file must have."""

    name: str
    """Our name of the finding."""
    fits: tuple[str, ...] = ()
    """Spellings that fit it: the source's label, then aliases. Case, blanks, `_` and `-` never matter."""
    head: str | None = None
    """The submission's own word on which column it is: then that column, spelled exactly so."""


@dataclass(frozen=True, slots=True)
class Heads:
    """Which columns of a sheet are used."""

    ids: int | None
    """Position of the id column."""
    found: Mapping[str, int]
    """Position by finding, in the order that was asked for; a missing one has an issue instead."""
    notes: Sequence[Issue]
    issues: Sequence[Issue]


def match_heads(sheet: Sheet, columns: Sequence[ColumnNames], expected: ExpectedItems) -> Heads:
    """Match the id column and one column per finding; missing or ambiguous ones are issues."""
    ids = id_positions(sheet, expected)
    fitting = {column: _fitting(sheet, column) for column in columns}
    taken = {at for positions in [ids, *fitting.values()] for at in positions}
    return Heads(
        ids=ids[0] if len(ids) == 1 else None,
        found={column.name: positions[0] for column, positions in fitting.items() if len(positions) == 1},
        notes=[*_alias_notes(sheet, fitting), *ignored_notes(sheet, taken, expected)],
        issues=[
            *id_issues(sheet, ids, expected),
            *_missing_issues(sheet, [column for column, positions in fitting.items() if not positions], taken),
            *_double_issues(sheet, fitting),
        ],
    )


def id_positions(sheet: Sheet, expected: ExpectedItems) -> list[int]:
    """Return the positions of all columns that may be the id column."""
    return spelled(sheet, [*expected.id_columns, OWN_ID_COLUMN])


def id_issues(sheet: Sheet, positions: Sequence[int], expected: ExpectedItems) -> Iterator[Issue]:
    """Yield an issue unless exactly one column is the id column."""
    return role_issues(sheet, positions, "id", [*expected.id_columns, OWN_ID_COLUMN])


def role_issues(sheet: Sheet, positions: Sequence[int], role: str, names: Iterable[str]) -> Iterator[Issue]:
    """Yield an issue unless exactly one column has a role (`id` or `finding`); `names` are those that it may have."""
    if not positions:
        allowed = " or ".join(f"'{name}'" for name in dict.fromkeys(names))
        message = f"no {role} column; the file has {listed(sheet.heads.values()) or 'no named column'}"
        yield Issue("column-missing", sheet.name, message, f"Name the column of {role}s {allowed}")
    elif len(positions) > 1:
        message = f"{len(positions)} {role} columns: {quoted(sheet, positions)}"
        yield Issue("column-ambiguous", sheet.name, message, "Keep one of them")


def is_blank(head: str) -> bool:
    """Say whether pandas made up the head of a column that had none."""
    return _PANDAS_BLANK.fullmatch(head.strip()) is not None


def is_label(head: str, expected: ExpectedItems) -> bool:
    """Say whether a column holds labels of the data set, which are never read from a submission."""
    return plain_name(head) in {NO_FINDING, *_LABELS, *map(plain_name, expected.known_labels)}


def ignored_notes(sheet: Sheet, taken: Iterable[int], expected: ExpectedItems) -> Iterator[Issue]:
    """Yield one note per kind of column that is not used."""
    known, used = set(map(plain_name, expected.known_labels)), set(taken)
    kinds: dict[str, list[str]] = {}
    for at, head in sheet.heads.items():
        if at not in used and not is_blank(head):
            kinds.setdefault(_why_ignored(plain_name(head), known), []).append(f"'{head}'")
    n_blank = _n_blank(sheet)
    if n_blank:
        yield Issue("note", sheet.name, f"columns without a name dropped: {n_blank:,}")
    for why, heads in kinds.items():
        columns = "1 column" if len(heads) == 1 else f"{len(heads):,} columns"
        yield Issue("note", sheet.name, f"{columns} ignored ({why}): {listed(heads)}")


def _why_ignored(head: str, known: set[str]) -> str:
    if head == NO_FINDING:
        return "it follows from the findings"
    if head in _LABELS:
        return "the reference standard comes from the registry only"
    return "other labels of the data set" if head in known else "unknown"


def spelled(sheet: Sheet, spellings: Iterable[str]) -> list[int]:
    """Return the positions of the columns whose head is one of the spellings, in plain form."""
    allowed = set(map(plain_name, spellings))
    return [at for at, head in sheet.heads.items() if plain_name(head) in allowed]


def _fitting(sheet: Sheet, column: ColumnNames) -> list[int]:
    if column.head is not None:
        wanted = normalize("NFC", column.head)
        return [at for at, head in sheet.heads.items() if normalize("NFC", head) == wanted]
    return spelled(sheet, [column.name, *column.fits])


def quoted(sheet: Sheet, positions: Iterable[int]) -> str:
    """Return the heads of some columns as messages show them."""
    return listed([f"'{sheet.heads[at]}' (column {at + 1})" for at in positions])


def _n_blank(sheet: Sheet) -> int:
    return len(sheet.unnamed) + sum(map(is_blank, sheet.heads.values()))


def _alias_notes(sheet: Sheet, fitting: Mapping[ColumnNames, Sequence[int]]) -> Iterator[Issue]:
    for column, positions in fitting.items():
        own = {plain_name(spelling) for spelling in (column.name, *column.fits[:1])}
        for head in [sheet.heads[at] for at in positions]:
            if column.head is None and plain_name(head) not in own:
                yield Issue("note", sheet.name, f"column '{head}' is read as {column.name} (alias)")


def _missing_issues(sheet: Sheet, missing: Sequence[ColumnNames], taken: set[int]) -> Iterator[Issue]:
    if not missing:
        return
    free = [head for at, head in sheet.heads.items() if at not in taken and not is_blank(head)]
    wanted = [column.head or next(iter(column.fits), column.name) for column in missing]
    absent = listed([f"'{name}'{_near(name, free)}" for name in wanted])
    n_blank = _n_blank(sheet)
    untrained = f"{n_blank:,} columns have no name: a head that was not trained cannot be scored. " if n_blank else ""
    yield Issue(
        "finding-missing",
        sheet.name,
        f"no column for {absent}; the file has {listed(sheet.heads.values()) or 'no named column'}",
        f"{untrained}Every finding needs its column: name it so, or map it with --head (heads in submission.yaml)",
    )


def _near(wanted: str, heads: Sequence[str]) -> str:
    from difflib import get_close_matches  # imported late: only a faulty input pays for it

    close = get_close_matches(wanted, heads, n=1, cutoff=0.6)
    return f" (near '{close[0]}')" if close else ""


def _double_issues(sheet: Sheet, fitting: Mapping[ColumnNames, Sequence[int]]) -> Iterator[Issue]:
    """Refuse two columns for one finding, and one column that fits two unless the submission says so itself."""
    hint = "Keep one, or map it with --head (heads in submission.yaml)"
    for column, positions in fitting.items():
        if len(positions) > 1:
            message = f"{len(positions)} columns fit {column.name}: {quoted(sheet, positions)}"
            yield Issue("column-ambiguous", sheet.name, message, hint)
    uses = Counter(at for column, positions in fitting.items() if column.head is None for at in positions)
    for at in [at for at, n_uses in uses.items() if n_uses > 1]:
        names = listed([column.name for column, positions in fitting.items() if at in positions])
        yield Issue("column-ambiguous", sheet.name, f"column '{sheet.heads[at]}' fits {names}", hint)
