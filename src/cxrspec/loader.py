"""Own the loading of definition files: strict YAML, then the models, every issue with its line and column."""

from __future__ import annotations

from pathlib import Path

from cxrspec.definition import Definition, parse_definition
from cxrspec.errors import DefinitionError
from cxrspec.fields import FieldIssue
from cxrspec.strict_yaml import load_document, located


def load_definition(path: Path, *, shown_as: str | None = None) -> Definition:
    """Load one definition file.

    Raises:
        DefinitionError: with every issue of the file, by line, each with its line and column.
    """
    name = shown_as or path.as_posix()
    document, places, refused = load_document(path, shown_as=name)
    definition, issues = parse_definition(document)
    if definition is None or refused:
        raise DefinitionError([*refused, *(located(issue, name, places) for issue in issues)])
    expected = f"{definition.benchmark}/{definition.definition_version}.yaml"
    if not path.as_posix().endswith(f"/{expected}"):
        message = f"benchmark and definition_version ask for the file {expected}"
        issue = FieldIssue(("definition_version",), "path-mismatch", message, "Move the file, or mend the two fields")
        raise DefinitionError(located(issue, name, places))
    return definition
