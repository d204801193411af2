"""Own the loading of definition files: strict YAML, then the models, every issue with its line and column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from cxrspec.definition import Definition, parse_definition
from cxrspec.errors import DefinitionError
from cxrspec.fields import FieldIssue
from cxrspec.strict_yaml import FieldPath, field_text, load_document, located, place_of

FORM: Final = "specs/<benchmark>/<definition_version>.yaml"


def load_definition(path: Path, *, shown_as: str | None = None) -> Definition:
    """Load one definition file.

    Raises:
        DefinitionError: with every issue of the file, by line, each with its line and column.
    """
    name = shown_as or path.as_posix()
    document, places, refused = load_document(path, shown_as=name)
    definition, issues = parse_definition(document)
    issues += _misplaced(path, document, {issue.path for issue in issues})
    if definition is None or refused or issues:
        # one fault, one issue: what the text of a field is refused for, its value is not refused for again
        texts = {issue.where.removeprefix(f"{name}:").partition(" ")[2] for issue in refused}
        issues = [issue for issue in issues if field_text(issue.path) not in texts]
        issues.sort(key=lambda issue: place_of(issue.path, places))
        raise DefinitionError([*refused, *(located(issue, name, places) for issue in issues)])
    return definition


def _misplaced(path: Path, document: Mapping[str, Any], faulty: set[FieldPath]) -> Iterator[FieldIssue]:
    """Yield an issue for each of the two fields that say another place than the one the file stands in."""
    absolute = path.absolute()
    for field, found, place in (
        ("benchmark", absolute.parent.name, "folder"),
        ("definition_version", absolute.name.removesuffix(".yaml"), "file"),
    ):
        said = document.get(field)
        if isinstance(said, str) and said != found and (field,) not in faulty:
            message = f"'{said}' is not the name of the {place}, '{found}'; a definition is the file {FORM}"
            yield FieldIssue((field,), "path-mismatch", message, "Move the file, or mend the field")
