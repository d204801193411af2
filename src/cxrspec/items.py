"""Own the roster: the rows of the items source made items, and columns of other sources joined to them by item id.

Joins are by id and column name only, never by position.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cxrspec.definition import ItemIdField, ItemList
from cxrspec.errors import IDS_LISTED, DefinitionError, Issue, listed
from cxrspec.field_errors import shown
from cxrspec.fields import Column
from cxrspec.ids import Canonicalizer, IdRule, numbered
from cxrspec.source_files import SourceFiles
from cxrspec.tables import Table


def id_rule(item_id: ItemIdField) -> IdRule:
    """Return the rule by which ids of sources and submissions become item ids."""
    return IdRule(item_id.form, item_id.strip_suffix, item_id.prefix or "")


class JoinedItems:
    """Every item of the roster in id order, with the columns of all sources joined to it."""

    def __init__(self, files: SourceFiles) -> None:
        """Open the items source and build the roster.

        Raises:
            DefinitionError: for ids that do not fit the form, rows of one item that disagree, rows without id, items
                without group.
            SourceError: for a source that cannot be opened.
        """
        self.files = files
        self.definition = files.definition
        self.items = files.definition.items
        self.source = self.items.source
        self._needed = files.needed
        table = files.table(self.source, self._needed[self.source])
        raw_ids = table.columns[self.items.item_id.column]
        self.canonicalizer = Canonicalizer.from_raw(id_rule(self.items.item_id), raw_ids)
        self._rows = {self.source: self._index(self.source, table, self.items.item_id.column)}
        self.item_ids: list[str] = sorted(self._rows[self.source])
        self.shared_ids = self._shared(table)
        self.group_ids = self._groups()
        self.n_images = self._images(raw_ids)

    def cells(self, column: Column) -> list[str]:
        """Return the cells of a column in item order; an item that a joined source lacks has an empty cell."""
        source = column.source or self.source
        table = self.files.table(source, self._needed[source])
        if source not in self._rows:
            self._rows[source] = self._joined(source, table)
        cells, rows = table.columns[column.column], self._rows[source]
        return [cells[row] if (row := rows.get(name)) is not None else "" for name in self._names(source)]

    def rows(self, columns: Sequence[Column]) -> list[list[tuple[str, ...]]]:
        """Return, per item, the rows of one source that name it, each as the cells of the columns.

        Raises:
            DefinitionError: if rows name no item of the roster.
        """
        source = columns[0].source or self.source
        table = self.files.table(source, self._needed[source])
        ids, names = self._row_ids(source, table, self._key(source)), self._names(source)
        found: dict[str, list[tuple[str, ...]]] = {name: [] for name in names}
        if unknown := sorted({item for item in ids if item not in found}):
            message = f"{len(unknown):,} rows name no item of the roster: {listed(unknown, IDS_LISTED)}"
            raise DefinitionError(Issue("item-missing", source, message, "Name the column of ids under items.joins"))
        for item, cells in zip(ids, zip(*(table.columns[c.column] for c in columns), strict=True), strict=True):
            found[item].append(cells)
        return [found[name] for name in names]

    def place(self, column: Column, row: int) -> str:
        """Say where the cell of an item stands, or that its source has no row for the item."""
        source = column.source or self.source
        table_row = self._rows[source].get(self._names(source)[row])
        line = " (no row)" if table_row is None else f":{self.files.table(source, ()).line_of(table_row)}"
        return f"{source}{line} column '{column.column}'"

    def listed(self, items: ItemList) -> tuple[set[str], list[str]]:
        """Return the ids that a list names: those of items, and the others in code-point order."""
        named = set(self.canonicalizer.canonical_all(self.files.list_cells(items))[0])
        known = named.intersection(self.shared_ids)
        return known, sorted(named - known)

    def row_notes(self, source: str) -> Iterator[Issue]:
        """Yield the rows of a joined source that change nothing: of no item of the roster, or there before."""
        ids, _ = self.canonicalizer.canonical_all(
            self.files.table(source, self._needed[source]).columns[self._key(source)]
        )
        if extra := sorted(set(ids) - set(self.shared_ids)):
            message = f"{len(extra):,} of its ids are no items and left aside: {listed(extra, IDS_LISTED)}"
            yield Issue("note", source, message)
        if n_repeated := len(ids) - len(set(ids)):
            yield Issue("note", source, f"{n_repeated:,} rows repeat another row of their item, with the same cells")

    def only(self, rows: Sequence[int]) -> ItemRows:
        """Return a view of some items, given by their positions."""
        return ItemRows(self, rows)

    def reading_issues(self, subset: str, item_ids: Sequence[str]) -> list[Issue]:
        """Refuse a subset whose ids alone would be read by other steps than those of the roster."""
        alone = Canonicalizer.from_reference(id_rule(self.items.item_id), item_ids)
        if alone.steps == self.canonicalizer.steps:
            return []
        message = "its ids need folders or endings that only other items of the roster show to be needed"
        return [Issue("item-duplicate", f"subset {subset}", message, "Write items.item_id.form: text")]

    def _key(self, source: str) -> str:
        return (self.items.joins or {}).get(source, self.items.item_id.column)

    def _names(self, source: str) -> list[str]:
        """Return, per item, the id by which a source names it."""
        return self.item_ids if source == self.source else self.shared_ids

    def _row_ids(self, source: str, table: Table, key: str) -> list[str]:
        """Return, per row, the item that it names; in another source than that of numbered items, what they share."""
        ids, _ = self.canonicalizer.canonical_all(table.columns[key])
        number = self.items.item_id.numbered_by
        return ids if number is None or source != self.source else numbered(ids, table.columns[number])

    def _shared(self, table: Table) -> list[str]:
        """Return, per item, the id before it was numbered: the item id itself, where items are not."""
        if self.items.item_id.numbered_by is None:
            return self.item_ids
        ids, _ = self.canonicalizer.canonical_all(table.columns[self.items.item_id.column])
        return [ids[self._rows[self.source][item]] for item in self.item_ids]

    def _joined(self, source: str, table: Table) -> dict[str, int]:
        """Map item id to row in a further source; a source of other items altogether is refused."""
        key = self._key(source)
        rows = self._index(source, table, key)
        names = list(dict.fromkeys(self.shared_ids))
        if rows.keys().isdisjoint(names):
            message = f"no row names an item; its column '{key}' holds {listed(map(shown, rows), IDS_LISTED)}"
            message += f", items are {listed(map(shown, names), IDS_LISTED)}"
            raise DefinitionError(Issue("item-missing", source, message, "Name the column of ids under items.joins"))
        return rows

    def _index(self, source: str, table: Table, key: str) -> dict[str, int]:
        """Map item id to its first row; rows of one item must agree in every column that is read."""
        ids = self._row_ids(source, table, key)
        rows: dict[str, int] = {}
        differing: dict[str, list[int]] = {}
        varying = {one.column for one in self.definition.task.varying_columns() if source == self.source}
        compared = [cells for name, cells in table.columns.items() if name not in {key, *varying}]
        for row, item in enumerate(ids):
            first = rows.setdefault(item, row)
            if first != row and any(cells[first] != cells[row] for cells in compared):
                differing.setdefault(item, [first]).append(row)
        issues = [*_without_id(source, table, key), *_differing(source, table, differing)]
        if issues:
            raise DefinitionError(issues)
        return rows

    def _images(self, raw_ids: Sequence[str]) -> list[int]:
        """Return how many images each study has, where the ids of the items source name images; else nothing."""
        if self.items.item_id.form != "study_path" or not any(views := self.canonicalizer.views(raw_ids)):
            return []
        ids, _ = self.canonicalizer.canonical_all(raw_ids)
        found = Counter(item for item, _ in set(zip(ids, views, strict=True)))
        return [found[item] for item in self.item_ids]

    def _groups(self) -> list[str]:
        rule = self.items.group_id
        if rule.column is not None:
            groups = [cell.strip() for cell in self.cells(Column(column=rule.column))]
        else:
            pattern = re.compile(rule.pattern or "")
            groups = [found[1] if (found := pattern.search(item)) else "" for item in self.item_ids]
        if missing := [item for item, group in zip(self.item_ids, groups, strict=True) if not group]:
            message = f"no group id for {len(missing):,} of {len(groups):,} items: {listed(missing, IDS_LISTED)}"
            raise DefinitionError(Issue("value-unknown", f"{self.source} items.group_id", message))
        return groups


def _without_id(source: str, table: Table, key: str) -> Iterator[Issue]:
    lines = [table.line_of(row) for row, cell in enumerate(table.columns[key]) if not cell.strip()]
    if lines:
        message = f"no id in the column '{key}' of {len(lines):,} of {len(table.columns[key]):,} rows: lines "
        message += listed(lines, IDS_LISTED)
        yield Issue("value-unknown", f"{source}:{lines[0]}", message, "Pin a file without such rows", lines[0])


def _differing(source: str, table: Table, differing: Mapping[str, Sequence[int]]) -> Iterator[Issue]:
    if differing:
        first = table.line_of(next(iter(differing.values()))[0])
        places = {item: listed([table.line_of(row) for row in rows], IDS_LISTED) for item, rows in differing.items()}
        found = listed([f"'{item}' (lines {lines})" for item, lines in places.items()], IDS_LISTED)
        message = f"rows of one item differ in a column that is read, for {len(differing):,} items: {found}"
        yield Issue("item-duplicate", f"{source}:{first}", message, "Pin a file with one row per item", first)


@dataclass(frozen=True)
class ItemRows:
    """Some of the items, as a task sees them."""

    items: JoinedItems
    chosen: Sequence[int]

    @property
    def item_ids(self) -> list[str]:
        """Their ids."""
        return [self.items.item_ids[row] for row in self.chosen]

    def cells(self, column: Column) -> list[str]:
        """Return the cells of a column for these items."""
        cells = self.items.cells(column)
        return [cells[row] for row in self.chosen]

    def rows(self, columns: Sequence[Column]) -> list[list[tuple[str, ...]]]:
        """Return the rows of a joined source for these items."""
        rows = self.items.rows(columns)
        return [rows[row] for row in self.chosen]

    def place(self, column: Column, row: int) -> str:
        """Say where the cell of the `row`-th of these items stands."""
        return self.items.place(column, self.chosen[row])
