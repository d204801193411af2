"""Own what tasks on named findings share: our names, the sources' labels, and the canonical order of the columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from cxrspec.field_errors import mapping_at
from cxrspec.fields import Identifier, Names, Text
from cxrspec.tasks.task import Task

FindingName = Annotated[Identifier, Names("finding")]


class NamedFindings(Task):
    """Base of the tasks whose reference columns are findings, one column each."""

    COMPILED: ClassVar[frozenset[str]] = frozenset({"findings", "aliases"})

    findings: Annotated[dict[Identifier, Text], Field(min_length=1)]
    """Our name: the source's label. Columns stand in code-point order of our names: key order never matters."""
    aliases: dict[FindingName, list[Text]] | None = None
    """Our name: further spellings, in lists of a source and in predictions; case, blanks, `_` and `-` never matter."""

    @classmethod
    def declared(cls, document: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return the findings, and the protocols that are not left empty."""
        protocols = mapping_at(document, "protocols")
        return {
            "finding": list(mapping_at(document, "findings")),
            "protocol": [name for name, fields in protocols.items() if fields is not None],
        }

    @property
    def finding_names(self) -> tuple[str, ...]:
        """The findings in code-point order."""
        return tuple(sorted(self.findings))

    @property
    def column_names(self) -> tuple[str, ...]:
        """The findings in code-point order."""
        return self.finding_names

    @property
    def strata_names(self) -> tuple[str, ...]:
        """The findings in code-point order."""
        return self.finding_names

    def spellings(self, finding: str) -> tuple[str, ...]:
        """Return the source's label of a finding, then its aliases."""
        return (self.findings[finding], *(self.aliases or {}).get(finding, ()))
