"""Own the files of a definition's sources: each opened and proved once, read once for all its columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from cxrspec.definition import Definition, HubSource, ItemList
from cxrspec.errors import DefinitionError, Issue, SourceError, listed
from cxrspec.needed import conditions_of, form_of, needed_columns, with_places
from cxrspec.sources import OpenedFile, Store, open_file, place_of
from cxrspec.sources.shards import Shard, joined_shards, read_shards
from cxrspec.tables import Table, read_lines, read_table


@dataclass
class SourceFiles:
    """The files of a definition's sources, each opened and proved once."""

    definition: Definition
    store: Store
    opened: dict[tuple[str, str], OpenedFile] = field(default_factory=dict)
    shards: dict[tuple[str, str], list[Shard]] = field(default_factory=dict)
    """What was read of tables that are kept as shards."""
    tables: dict[str, Table] = field(default_factory=dict)
    """What was read, by the name that the definition uses."""

    @cached_property
    def needed(self) -> dict[str, set[str]]:
        """Every column that the definition reads, by source file."""
        return needed_columns(self.definition)

    def key(self, reference: str) -> tuple[str, str]:
        """Return source and file that `source` or `source/file` names."""
        source, _, name = reference.partition("/")
        return source, name or next(iter(self.definition.sources[source].files))

    def file(self, reference: str) -> OpenedFile:
        """Open `source` or `source/file`; raises SourceError."""
        source_name, name = key = self.key(reference)
        source = self.definition.sources[source_name]
        if key not in self.opened:
            if isinstance(source, HubSource) and (paths := source.files[name].shards):
                read = self.shards.get(key) or self._read(source, paths, key)
                self.shards[key] = read
                self.opened[key] = joined_shards(read, source)
            else:
                self.opened[key] = open_file(source, name, self.store, source_name=source_name)
        return self.opened[key]

    def _read(self, source: HubSource, paths: Sequence[str], key: tuple[str, str]) -> list[Shard]:
        return read_shards(source, paths, self.columns_of(key), self.store, place_of(*key))

    def columns_of(self, key: tuple[str, str]) -> list[str]:
        """Return every column of a table of shards that the definition names."""
        lists = [pool.in_list for pool in conditions_of(self.definition) if pool.in_list]
        listed = {one.column for one in lists if one.column and self.key(one.source) == key}
        named = [columns for reference, columns in self.needed.items() if self.key(reference) == key]
        return sorted(listed.union(*named))

    @property
    def shard_columns(self) -> dict[tuple[str, str], list[str]]:
        """What is read of the tables that are kept as shards, by source and file."""
        hubs = [(name, one) for name, one in self.definition.sources.items() if isinstance(one, HubSource)]
        tables = [(name, file) for name, source in hubs for file, one in source.files.items() if one.shards]
        return {key: self.columns_of(key) for key in tables}

    def named(self, reference: str) -> OpenedFile:
        """Open a file named by a person; raises DefinitionError for a name that the definition does not declare."""
        declared = [f"{source}/{name}" for source, one in self.definition.sources.items() for name in one.files]
        single = [source for source, one in self.definition.sources.items() if len(one.files) == 1]
        if reference not in (*declared, *single):
            message = f"unknown source '{reference}'; declared are {listed(declared)}"
            raise DefinitionError(Issue("reference-unknown", "--source", message))
        return self.file(reference)

    def open_all(self) -> None:
        """Open every file of every source, also those that no column is read from; raises SourceError with all."""
        issues: list[Issue] = []
        for name, source in self.definition.sources.items():
            for file_name in source.files:
                try:
                    self.file(f"{name}/{file_name}")
                except SourceError as error:
                    issues += error.issues
        if issues:
            raise SourceError(issues)

    def refuse_same(self) -> None:
        """Refuse files of one content where the task needs different ones; raises DefinitionError with each."""
        owner: dict[str, str] = {}
        issues = []
        for what, named in self.definition.task.distinct_sources().items():
            source = named or self.definition.items.source
            digest = self.file(source).sha256
            if (other := owner.setdefault(digest, what)) != what:
                message = f"{what} has the very file of {other} (sha256 {digest[:16]}...)"
                hint = "Nobody counts twice: pin the own file of each"
                issues.append(Issue("reference-conflict", source, message, hint))
        if issues:
            raise DefinitionError(issues)

    def table(self, reference: str, columns: Iterable[str]) -> Table:
        """Read columns of a source file; the caller names all that it will ever need from that file."""
        if reference not in self.tables:
            opened = self.file(reference)
            if shards := self.shards.get(self.key(reference)):
                table = _rows_of(shards, reference)
            else:
                table = self._read_table(opened.read(), reference, sorted(set(columns)))
            cells = {name: _composed(column) for name, column in table.columns.items()}
            self.tables[reference] = replace(table, columns=cells)
        return self.tables[reference]

    def _read_table(self, data: bytes, reference: str, columns: Sequence[str]) -> Table:
        literal = form_of(self.definition, reference).quotes == "plain"
        try:
            return read_table(data, name=reference, columns=columns, literal=literal)
        except SourceError as error:
            raise with_places(error, self.definition, columns) from error

    def list_cells(self, items: ItemList) -> list[str]:
        """Return the raw ids of a list: the lines of a file, or a column of a table."""
        opened = self.file(items.source)
        if shards := self.shards.get(self.key(items.source)):
            if items.column is None:
                message = f"'{items.source}' is a table of shards, so a list in it is a column"
                raise DefinitionError(Issue("reference-conflict", items.source, message, "Name the column beside it"))
            return _rows_of(shards, items.source).columns[items.column]
        if items.column is None:
            return read_lines(opened.read(), name=items.source)
        return read_table(opened.read(), name=items.source, columns=[items.column]).columns[items.column]


class ShardRow(int):
    """The number of a row in the table that all shards make, which messages call by its shard and its number there."""

    text: str

    def __str__(self) -> str:
        """Say where the row stands."""
        return self.text

    def __format__(self, _: str) -> str:
        """Say where the row stands."""
        return self.text


def _rows_of(shards: Sequence[Shard], name: str) -> Table:
    """Return the rows of all shards, in the order of their paths, as one table."""
    lines: list[int] = []
    columns: dict[str, list[str]] = {}
    for shard in sorted(shards, key=lambda shard: shard.path):
        part = shard.table
        for head, cells in zip(part.header, part.columns, strict=True):
            columns.setdefault(head, []).extend(cells)
        for row in range(1, len(part) + 1):
            line = ShardRow(len(lines) + 1)
            line.text = f"{shard.path} row {row}"
            lines.append(line)
    return Table(name, columns, lines)


def _composed(cells: list[str]) -> list[str]:
    """Return cells in Unicode's NFC, in which definitions are read too: what looks equal must be equal."""
    return cells if "".join(cells).isascii() else [unicodedata.normalize("NFC", cell) for cell in cells]
