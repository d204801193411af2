"""Own the readers of the `findings` task: their fields, their columns, and the labels that must be their majority."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from cxrspec.errors import IDS_LISTED, DefinitionError, Issue, listed
from cxrspec.field_errors import list_at, mapping_at
from cxrspec.fields import Column, FieldIssue, Fields, Identifier, Names, SourceName
from cxrspec.tasks.findings.labels import BLANK, NEGATIVE, POSITIVE, UNCERTAIN, ColumnLabels
from cxrspec.tasks.scored import ScoredMetric
from cxrspec.tasks.task import ItemColumns

READERS_BELOW: Final = "readers_below_curve"

ReaderSources = Annotated[dict[Identifier, SourceName], Field(min_length=1)]


class Readers(Fields):
    """Radiologists whose reads stand beside the labels, in one source each, encoded and called as the labels are."""

    comparison: ReaderSources
    """Who is compared with systems: our name of the reader, and the source of the reads."""
    reference: ReaderSources | None = None
    """Who made the reference standard; never one of those who are compared."""

    @property
    def comparison_names(self) -> tuple[str, ...]:
        """The readers who are compared, in code-point order."""
        return tuple(sorted(self.comparison))

    @property
    def _sources(self) -> dict[str, str]:
        """Every reader's source, those who are compared first, each kind in code-point order."""
        kinds = (self.comparison, self.reference or {})
        return {name: kind[name] for kind in kinds for name in sorted(kind)}

    def sources(self, labels: str) -> dict[str, str]:
        """Return the source of every reader and that of the labels, by what messages call them."""
        return {"the labels": labels} | {f"reader {name}": source for name, source in self._sources.items()}

    def column_names(self, findings: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the readers' columns in a frozen table: `<reader>.<finding>`."""
        return tuple(read_column(reader, finding) for reader in self._sources for finding in findings)

    def columns(self, labels: ColumnLabels, findings: Mapping[str, str]) -> list[Column]:
        """Return the source columns that are read; `findings` maps our name to the column of the sources."""
        found = [column for source in self._sources.values() for column in _reads(source, labels).columns(findings)]
        if labels.majority_of:
            sources = (labels.source, *(self.reference or {}).values())
            found += [Column(column=name, source=one) for name in labels.checked(findings) for one in sources]
        return found

    def decode(self, items: ItemColumns, labels: ColumnLabels, findings: Mapping[str, str]) -> list[list[str]]:
        """Return the readers' columns of `1`, `0`, `-1` or blank, as `column_names` has them.

        Raises:
            DefinitionError: for cells of no encoding, and for labels that are not the majority that they are to be.
        """
        spellings = {name: (theirs,) for name, theirs in findings.items()}
        if labels.majority_of:
            self._check_majority(items, labels, labels.checked(findings))
        return [
            column for source in self._sources.values() for column in _reads(source, labels).decode(items, spellings)
        ]

    def _check_majority(self, items: ItemColumns, labels: ColumnLabels, names: Sequence[str]) -> None:
        """Refuse labels that differ from the majority of the reference readers; an item that nobody read has none."""
        columns = {name: (name,) for name in names}
        label_columns = labels.decode(items, columns)
        votes = [_reads(source, labels).decode(items, columns) for source in (self.reference or {}).values()]
        wrong: dict[str, list[int]] = {}
        n_cells = 0
        for name, cells, *reads in zip(names, label_columns, *votes, strict=True):
            for row, (label, *calls) in enumerate(zip(cells, *reads, strict=True)):
                if label == BLANK and set(calls) == {BLANK}:
                    continue
                n_cells += 1
                if label != _majority(calls):
                    wrong.setdefault(name, []).append(row)
        if wrong:
            raise DefinitionError(_majority_issue(items, labels, wrong, n_cells, sorted(self.reference or {})))

    def subset_issues(self, subset: str, findings: Sequence[str], columns: Sequence[Sequence[str]]) -> list[Issue]:
        """Return, per reader, why the reads [one column each] cannot stand beside the curve of a scored subset."""
        issues = []
        for position, reader in enumerate(self._sources):
            reads = columns[position * len(findings) : (position + 1) * len(findings)]
            if n_open := sum(cell in (BLANK, UNCERTAIN) for column in reads for cell in column):
                message = f"{n_open:,} of {sum(map(len, reads)):,} reads are blank or uncertain (-1)"
                hint = "A reader says yes or no of every finding and item that is scored"
                issues.append(Issue("value-unknown", f"subset {subset}, reader {reader}", message, hint))
        return issues


class ReadersMetric(ScoredMetric):
    """How many of the comparison readers lie below a system's curve: per finding a count, its mean over findings."""

    name: Identifier
    kind: Literal["readers_below_curve"]
    protocol: Annotated[Literal["zero_shot", "probe"], Names("protocol")]
    average: Literal["macro"]
    curve: Literal["roc", "precision_recall", "both"]
    """`both` counts a reader who is below on ROC and on precision-recall."""
    line: Literal["step", "interpolated"]
    """The staircase of thresholds, or what is achievable between them."""
    ties: Literal["strict", "inclusive"]
    """Whether a reader on the curve (within 1e-12) counts as below: no, or yes."""

    interval: ClassVar[tuple[()]] = ()

    def summary(self, counts: Sequence[int | None]) -> dict[str, Any]:
        """Return what a report says beside the mean over findings: the convention, and the total."""
        known = [count for count in counts if count is not None]
        convention = {"curve": self.curve, "line": self.line, "ties": self.ties}
        return {"convention": convention, "total": sum(known) if len(known) == len(counts) else None}


def read_column(reader: str, finding: str) -> str:
    """Return the name of a reader's column in a frozen table; neither name has a dot."""
    return f"{reader}.{finding}"


def check_readers(document: Mapping[str, Any]) -> Iterator[FieldIssue]:
    """Yield what contradicts itself in the raw document: readers of two kinds, votes that may be tied, no readers."""
    readers, labels = mapping_at(document, "readers"), mapping_at(document, "labels")
    comparison, reference = mapping_at(readers, "comparison"), mapping_at(readers, "reference")
    yield from _check_distinct(document, comparison, reference)
    if readers and labels.get("encoding") == "separated_list":
        message = "reads stand in one column per finding, and are called as the labels are"
        yield FieldIssue(("readers",), "reference-conflict", message, "Use labels of one column per finding")
    if labels.get("majority_of") is not None:
        path = ("labels", "majority_of")
        if not reference:
            message = "there are no readers.reference whose majority the labels could be"
            yield FieldIssue(path, "reference-conflict", message, "Declare them, or leave this out")
        elif len(reference) % 2 == 0:
            message = f"the vote of {len(reference)} readers may be tied"
            yield FieldIssue(path, "reference-conflict", message, "An odd number of readers has a majority")
    for i, metric in enumerate(list_at(document, "metrics")):
        if isinstance(metric, Mapping) and metric.get("kind") == READERS_BELOW and not comparison:
            message = "there are no readers.comparison that could lie below a curve"
            yield FieldIssue(("metrics", i, "kind"), "reference-conflict", message, "Declare them")


def _check_distinct(
    document: Mapping[str, Any], comparison: Mapping[Any, Any], reference: Mapping[Any, Any]
) -> Iterator[FieldIssue]:
    """Refuse a reader of both kinds, one who counts twice, and one who is the labels: by name, and by pin."""
    labels = mapping_at(document, "labels").get("source") or mapping_at(document, "items").get("source")
    owner = {} if labels is None else {pinned_file(document, labels): "the labels"}
    for kind, readers in (("reference", reference), ("comparison", comparison)):
        for name, source in readers.items():
            path, hint = ("readers", kind, name), "Keep one of them"
            other = owner.setdefault(pinned_file(document, source), f"the {kind} reader '{name}'")
            if kind == "comparison" and (name in reference or other.startswith("the reference")):
                message = f"'{name}' is a reference reader too; a reader is never compared with an own vote"
                yield FieldIssue(path, "reference-conflict", message, hint)
            elif other != f"the {kind} reader '{name}'":
                message = f"'{name}' has the file of {other}; nobody counts twice"
                yield FieldIssue(path, "reference-conflict", message, hint)


def pinned_file(document: Mapping[str, Any], reference: Any) -> str:
    """Return what tells the file that `source` or `source/file` names from others: its sha256, or else its place."""
    name, _, file = str(reference).partition("/")
    source = mapping_at(mapping_at(document, "sources"), name)
    files = mapping_at(source, "files")
    pin = files.get(file or next(iter(files), ""))
    if isinstance(pin, Mapping) and isinstance(pin.get("sha256"), str):
        return str(pin["sha256"])
    place = pin.get("path", pin.get("url")) if isinstance(pin, Mapping) else pin
    if not isinstance(place, str):
        return str(reference)
    return " ".join(str(part) for part in (source.get("kind"), source.get("sha256"), source.get("revision"), place))


def _reads(source: str, labels: ColumnLabels) -> ColumnLabels:
    return ColumnLabels(encoding=labels.encoding, source=source)


def _majority(calls: Sequence[str]) -> str | None:
    """Return what most readers say, or None if one of them says neither yes nor no."""
    if not {POSITIVE, NEGATIVE}.issuperset(calls):
        return None
    return POSITIVE if 2 * calls.count(POSITIVE) > len(calls) else NEGATIVE


def _majority_issue(
    items: ItemColumns, labels: ColumnLabels, wrong: Mapping[str, Sequence[int]], n_cells: int, readers: Sequence[str]
) -> Issue:
    n_wrong = sum(map(len, wrong.values()))
    ids = sorted({items.item_ids[row] for rows in wrong.values() for row in rows})
    by_column = listed([f"'{name}' {len(rows):,}" for name, rows in wrong.items()])
    message = f"{n_wrong:,} of {n_cells:,} cells are not the majority of {listed(readers)} ({by_column}), of items "
    message += listed([f"'{one}'" for one in ids], IDS_LISTED)
    return Issue("label-majority", labels.source or "", message, "Pin the files that belong together")
