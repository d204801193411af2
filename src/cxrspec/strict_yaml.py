"""Own strict YAML: YAML 1.2 core scalars, no anchors, tags or repeated keys, and a place for every issue.

It knows no field: what the values mean is decided by whoever reads them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from cxrspec.errors import DefinitionError, Issue
from cxrspec.fields import FieldIssue

MAX_BYTES: Final = 2**20
"""A definition is a page of text; anything larger is a mistake or an attack."""
MAX_DEPTH: Final = 40
"""Mappings and lists inside each other; a definition needs eight."""
MAX_DIGITS: Final = 400
"""Longer numbers are text: no double holds them, and Python refuses to read the longest."""

_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]*)")
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INVISIBLE: Final = re.compile("[^\t\n\r -~\xa0-\u2027\u202a-\ufffd\U00010000-\U0010ffff]|\ufeff")
"""Control characters, and line breaks that some readers see and others do not (U+0085, U+2028, U+2029)."""
_YAML_1_1_WORDS: Final = {"yes", "no", "on", "off", "y", "n"}

Position = tuple[int, int]
FieldPath = tuple[str | int, ...]


def load_document(path: Path, *, shown_as: str) -> tuple[dict[str, Any], dict[FieldPath, Position], list[Issue]]:
    """Load a YAML mapping, the 1-based (line, column) of every field, and what strict YAML refuses in it.

    All text is brought to Unicode's NFC, so that what looks equal is equal.

    Raises:
        DefinitionError: for text that cannot be read as one mapping.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DefinitionError(Issue("yaml-syntax", shown_as, f"cannot be read: {error.strerror}")) from None
    if len(data) > MAX_BYTES:
        raise DefinitionError(Issue("yaml-syntax", shown_as, f"has {len(data):,} bytes; allowed are {MAX_BYTES:,}"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DefinitionError(Issue("yaml-syntax", shown_as, f"is not UTF-8 at byte {error.start:,}")) from None
    reader = _Reader(shown_as)
    document = reader.read(text)
    if not isinstance(document, dict):
        issue = Issue("yaml-syntax", f"{shown_as}:1:1", "the file must hold a mapping of fields", line=1)
        raise DefinitionError([*reader.issues, issue])
    return document, reader.places, reader.issues


def dump_document(document: Mapping[str, Any]) -> bytes:
    """Return the YAML of a mapping, keys in their order; text that strict YAML would read otherwise is quoted."""

    class Dumper(yaml.SafeDumper):
        """A dumper of its own, so that its rules touch no other user of PyYAML."""

        def ignore_aliases(self, data: Any) -> bool:
            """Write a value that stands in two places twice: strict YAML has no anchors."""
            return True

    Dumper.add_representer(str, _quoted_where_needed)
    return yaml.dump(dict(document), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110).encode()


def _quoted_where_needed(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    ambiguous = text in _WORDS or text.lower() in _YAML_1_1_WORDS or _NUMBER.fullmatch(text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if ambiguous else None)


class _Reader:
    """Builds plain values from YAML events, so that anchors, tags and repeated keys are seen before they act."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.issues: list[Issue] = []
        self.places: dict[FieldPath, Position] = {}
        self._events: Iterator[Any] = iter(())

    def read(self, text: str) -> Any:
        """Return the one document of the text; raises DefinitionError where nothing can be read beyond a fault."""
        if found := _INVISIBLE.search(text):
            start = text.rfind("\n", 0, found.start()) + 1
            line, column = text.count("\n", 0, start) + 1, found.start() - start + 1
            message = f"the invisible character U+{ord(found[0]):04X} is not allowed"
            raise DefinitionError(Issue("yaml-syntax", f"{self.name}:{line}:{column}", message, "Remove it", line))
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events = yaml.parse(text, Loader=loader)
        try:
            return self._document()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
            issue = Issue("yaml-syntax", f"{self.name}:{line}:{column}", error.problem or "is not YAML", line=line)
            raise DefinitionError([*self.issues, issue]) from None

    def _document(self) -> Any:
        document: Any = None
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if self.places:
                    self._refuse(event, (), "yaml-syntax", "a second document begins here", "Keep one to a file")
                    break
                document = self._value(next(self._events), ())
        return document

    def _value(self, event: Any, path: FieldPath) -> Any:
        self.places.setdefault(path, _position(event))
        if isinstance(event, yaml.AliasEvent) or event.anchor:
            mark = "*" if isinstance(event, yaml.AliasEvent) else "&"
            self._refuse(event, path, "yaml-anchor", f"'{mark}{event.anchor}' is an anchor or alias", "Write it out")
        if isinstance(event, yaml.AliasEvent):
            return None
        self._refuse_tag(event, path)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path)
        if len(path) >= MAX_DEPTH:
            message = f"nested more than {MAX_DEPTH} deep"
            where = "{}:{}:{}".format(self.name, *_position(event))
            raise DefinitionError([*self.issues, Issue("yaml-syntax", where, message, line=_position(event)[0])])
        return self._mapping(path) if isinstance(event, yaml.MappingStartEvent) else self._sequence(path)

    def _mapping(self, path: FieldPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        lines: dict[str, int] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event, path)
            line, column = _position(event)
            if key in lines:
                message = f"the key '{key}' is repeated; it first stands in line {lines[key]}"
                self._refuse(event, (*path, key), "yaml-duplicate-key", message, "Keep one of them")
            lines.setdefault(key, line)
            self.places.setdefault((*path, key), (line, column))
            value = self._value(next(self._events), (*path, key))
            if not _is_merge(event):  # refused above; it is no field of its own
                result[key] = value
        return result

    def _key(self, event: Any, path: FieldPath) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            self._refuse(event, path, "yaml-syntax", "a key must be a word", "Use a plain or quoted word")
            self._value(event, (*path, "?"))
            return "?"
        self._refuse_tag(event, path)
        if event.anchor or _is_merge(event):
            self._refuse(event, path, "yaml-anchor", "merge keys and anchors are not allowed", "Write the fields out")
        elif event.implicit[0] and event.value.lower() in _YAML_1_1_WORDS:
            self._refuse(event, path, "yaml-bare-word", f"bare '{event.value}' is ambiguous", f'Write "{event.value}"')
        return unicodedata.normalize("NFC", event.value)

    def _sequence(self, path: FieldPath) -> list[Any]:
        result: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            result.append(self._value(event, (*path, len(result))))
        return result

    def _scalar(self, event: Any, path: FieldPath) -> Any:
        text = unicodedata.normalize("NFC", event.value)
        if not event.implicit[0]:  # quoted or block text
            return text
        if text.lower() in _YAML_1_1_WORDS:
            message = f"bare '{text}' is a truth value to some readers and text to others"
            self._refuse(event, path, "yaml-bare-word", message, f'Write "{text}", or true or false')
            return text
        if text in _WORDS:
            return _WORDS[text]
        if len(text) > MAX_DIGITS:
            return text
        if _INTEGER.fullmatch(text):
            return int(text)
        return float(text) if _NUMBER.fullmatch(text) else text

    def _refuse_tag(self, event: Any, path: FieldPath) -> None:
        if event.tag:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self._refuse(event, path, "yaml-tag", f"the tag '{tag}' is not allowed", "Remove it")

    def _refuse(self, event: Any, path: FieldPath, code: str, message: str, hint: str) -> None:
        line, column = _position(event)
        where = f"{self.name}:{line}:{column} {field_text(path)}".rstrip()
        self.issues.append(Issue(code, where, message, hint, line))


def _position(event: Any) -> Position:
    """Return the 1-based line and column that an event begins at."""
    return event.start_mark.line + 1, event.start_mark.column + 1


def _is_merge(event: Any) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]


def field_text(path: FieldPath) -> str:
    """Write a field path as it is read: `metrics[1].kind`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def place_of(path: FieldPath, places: Mapping[FieldPath, Position]) -> Position:
    """Return line and column of a field; one that is absent stands at the nearest field above it."""
    while path not in places:
        path = path[:-1]
    return places[path]


def located(issue: FieldIssue, name: str, places: Mapping[FieldPath, Position]) -> Issue:
    """Give an issue of a field its line and column."""
    line, column = place_of(issue.path, places)
    where = f"{name}:{line}:{column} {field_text(issue.path)}".rstrip()
    return Issue(issue.code, where, issue.message, issue.hint, line)
