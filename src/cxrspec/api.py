"""Own the interface for notebooks: references as text, tables as data frames. It computes nothing itself.

>>> import cxrspec
>>> registry = cxrspec.Registry(".")
>>> registry.definitions()
['tiny@v1']
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cxrspec.audit import Audit, audit_definition, audit_system
from cxrspec.digest import Table
from cxrspec.errors import Issue, RegistryError, SubmissionError
from cxrspec.lock import Lock
from cxrspec.reference import Reference
from cxrspec.registry import Registry as Files
from cxrspec.report.leaderboard import leaderboard
from cxrspec.report.numbers import board_rows, columns_of, report_rows
from cxrspec.score import score
from cxrspec.sources import Store
from cxrspec.submit import Request, submit

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Definition", "Registry"]


class Registry:
    """The registry of a project.

    >>> import cxrspec
    >>> registry = cxrspec.Registry(".")
    >>> registry.definition("tiny@v1").title
    'A tiny benchmark'
    """

    def __init__(self, root: str | Path = ".") -> None:
        """Find the project that a folder belongs to.

        Raises:
            RegistryError: if neither the folder nor one above it has a folder `specs`.
        """
        self.files = Files.find(Path(root))

    def __repr__(self) -> str:
        return f"Registry({str(self.files.root)!r})"

    def definitions(self) -> list[str]:
        """Return the references of all frozen definitions."""
        return [str(one) for one in self.files.frozen()]

    def definition(self, reference: str) -> Definition:
        """Return a frozen definition, `benchmark@definition_version`.

        Raises:
            ValueError: if the text is no reference.
            RegistryError: if it is not frozen, or its lock is damaged.
        """
        return Definition(self.files, self.files.read_lock(Reference.parse(reference)))

    def submit(
        self,
        reference: str,
        system: str,
        predictions: pd.DataFrame | str | Path,
        *,
        protocol: str,
        heads: Mapping[str, str] | None = None,
        **card: str,
    ) -> str:
        """Check predictions and hand them in for a definition; return the reference of the submission.

        A data frame has the item ids in its first column and one column per finding; a path may be any file that
        `cxrspec submit` takes. Nothing is put under DVC.

        >>> import cxrspec
        >>> registry = cxrspec.Registry(".")
        >>> ids = registry.definition("tiny@v1").subset("test").item_id
        >>> import pandas as pd
        >>> constant = pd.DataFrame({"image": ids, "edema": 0.5, "effusion": 0.5})
        >>> registry.submit("tiny@v1", "constant", constant, protocol="zero_shot", trained_on="nothing")
        'tiny@v1/constant'

        Args:
            reference: `benchmark@definition_version`.
            system: name of the system.
            predictions: scores or embeddings, as a data frame or as a file.
            protocol: a protocol of the definition.
            heads: our name: the column of the file, for a finding that is called differently there.
            card: `trained_on`, and the fields of the system card: `model_name`, `weights_id`, `description`, `url`.

        Raises:
            SubmissionError: with everything that is wrong with the predictions.
        """
        data, name = _bytes_of(predictions)
        trained_on = card.pop("trained_on", "unknown")
        request = Request(
            Reference.parse(reference),
            system,
            protocol,
            data,
            name,
            heads=heads or {},
            card=card,
            trained_on=trained_on,
        )
        submission, _ = submit(request, self.files)
        return f"{submission.reference}/{submission.system}"

    def score(self, reference: str) -> pd.DataFrame:
        """Score a submission, write its report, and return its numbers, one a row, with the columns of `export csv`.

        A row is of a finding, a question type, a stratum of a covariate or a reader; one that names none of them is of
        everything together. An undefined value is missing, with its reason beside it. Where several graders agree or
        not, `attrs["agreement"]` says how far.

        >>> import cxrspec
        >>> registry = cxrspec.Registry(".")
        >>> scores = registry.score("tiny@v1/ours")
        >>> scores.columns.tolist()[:6]
        ['system', 'protocol', 'metric', 'kind', 'subset', 'subset_id']
        >>> round(float(scores.value[0]), 3)
        0.525

        Raises:
            SubmissionError: if the submission is not for this definition, or its predictions are refused.
            RegistryError: if a frozen table or the predictions are missing or altered.
        """
        parsed = Reference.parse(reference)
        if parsed.system is None:
            raise ValueError(f"'{reference}' names no system; write {reference}/SYSTEM")
        scored = score(parsed.definition, parsed.system, self.files)
        if scored.report is None:
            raise SubmissionError(scored.notes)
        frame = _frame(list(report_rows(scored.report)))
        frame.attrs["agreement"] = scored.report.get("agreement", {})
        return frame

    def audit(self, reference: str, *, deep: bool = False) -> Audit:
        """Derive every link again between a number, or a definition, and its frozen items; nothing is written.

        >>> import cxrspec
        >>> audit = cxrspec.Registry(".").audit("tiny@v1/ours")
        >>> audit.is_sound()
        True
        >>> [link.name for link in audit.links if link.state == "not checked"]
        ['dvc', 'dvc predictions']

        Args:
            reference: a definition, or with `/system` a number on it, whose chain holds the definition's.
            deep: compile the definition again from its sources.
        """
        parsed = Reference.parse(reference)
        store = Store.from_environment(self.files.root) if deep else None
        audit = audit_definition(parsed.definition, self.files, store)
        if parsed.system is None:
            return audit
        of_system = audit_system(parsed.definition, parsed.system, self.files)
        return Audit(of_system.reference, [*audit.links, *of_system.links], audit.basis)


class Definition:
    """A frozen definition: what its lock says, and its tables.

    >>> import cxrspec
    >>> definition = cxrspec.Registry(".").definition("tiny@v1")
    >>> definition.subset_ids["test"]
    '75181ee96d618841'
    """

    def __init__(self, files: Files, lock: Lock) -> None:
        """Hold a lock, and the registry that its tables stand in."""
        self._files = files
        self.lock = lock

    def __repr__(self) -> str:
        return f"Definition({str(self.lock.reference)!r})"

    @property
    def reference(self) -> str:
        """`benchmark@definition_version`."""
        return str(self.lock.reference)

    @property
    def title(self) -> str:
        """What the definition calls itself."""
        return str(self.lock.document["description"].get("title", ""))

    @property
    def caveats(self) -> list[str]:
        """What a reader of its numbers must know."""
        return list(self.lock.document["description"].get("caveats", ()))

    @property
    def subset_ids(self) -> dict[str, str]:
        """Per subset its id, the first 16 hex digits of its sha256."""
        return self.lock.subset_ids

    @property
    def systems(self) -> list[str]:
        """The systems with a submission."""
        return self._files.systems(self.lock.reference)

    def subset(self, name: str, *, covariates: bool = False, restricted: bool = False) -> pd.DataFrame:
        """Return a frozen subset, proved by its sha256: one row per item, in the order of the file.

        Ids and text are strings; labels are nullable `Int8`: 1, 0, -1 for uncertain, missing for blank.

        >>> import cxrspec
        >>> test = cxrspec.Registry(".").definition("tiny@v1").subset("test", covariates=True)
        >>> test.columns.tolist()
        ['item_id', 'group_id', 'edema', 'effusion', 'age', 'follow_up', 'sex', 'view']
        >>> int(test.edema.sum()), str(test.edema.dtype)
        (7, 'Int8')

        Args:
            name: name of the subset.
            covariates: add the frozen covariates, as text.
            restricted: return rows also where a source may not be passed on: they are for you alone.

        Raises:
            RegistryError: if there is no such subset here, its bytes are not the frozen ones, or its rows may not be
                passed on.
        """
        reference = Reference(self.lock.reference.benchmark, self.lock.reference.version, subset=name)
        if not (restricted or self.lock.redistribute):
            message = "its rows come from a source that may not be passed on"
            raise RegistryError(
                Issue("restricted", str(reference), message, "Say restricted=True to read them yourself")
            )
        table = self._files.read_subset(reference, restricted=restricted)
        frame = _table_frame(table, labels=self.lock.subsets[name].get("positives", {}))
        if covariates:
            more = self._files.read_subset(reference, covariates=True, restricted=restricted)
            frame = frame.merge(_table_frame(more), on="item_id", validate="one_to_one")
        return frame

    def leaderboard(self) -> pd.DataFrame:
        """Return every number that stands on the leaderboard, best system first, with the columns of `export csv`.

        `rank` is the rank group of the system, or the state that keeps it from one: `overlap`, `undefined`.

        >>> import cxrspec
        >>> board = cxrspec.Registry(".").definition("tiny@v1").leaderboard()
        >>> board.query("finding.isna()")[["rank", "metric"]].values.tolist()
        [['1', 'mean_auroc_zero_shot'], ['1', 'mean_ap_zero_shot']]
        """
        board = leaderboard(self.lock.reference, self._files)
        frame = _frame(list(board_rows(board)))
        agreements = {row["system"]: row["agreement"] for row in board["systems"] if "agreement" in row}
        frame.attrs["agreement"] = agreements
        return frame


def _bytes_of(predictions: pd.DataFrame | str | Path) -> tuple[bytes, str]:
    """Return predictions as a file: its bytes and its name."""
    if isinstance(predictions, (str, Path)):
        path = Path(predictions)
        return path.read_bytes(), path.name
    return predictions.to_csv(index=False).encode(), "predictions.csv"


def _table_frame(table: Table, labels: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """Return a table as a data frame of strings, the columns of labels as nullable small integers."""
    import pandas as pd

    columns: dict[str, Any] = {}
    for name in table.header:
        cells = table.column(name)
        if labels and name in labels:
            columns[name] = pd.array([int(cell) if cell else None for cell in cells], dtype="Int8")
        else:
            columns[name] = pd.array(cells, dtype="string")
    return pd.DataFrame(columns)


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return rows as a data frame with nullable columns."""
    import pandas as pd

    return pd.DataFrame(rows, columns=columns_of(rows)).convert_dtypes()
