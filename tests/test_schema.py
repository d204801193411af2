"""The JSON Schema that editors use: current, true to the loader on good files, and of use on bad ones."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from cxrspec.schema import SCHEMA_LINE, SCHEMA_PATH, definition_schema
from cxrspec.strict_yaml import load_document
from cxrspec.tasks import TASKS
from tiny import TINY

ROOT = Path(__file__).parents[1]
DEFINITIONS = ROOT / "tests" / "definitions"
SPECS = sorted(ROOT.glob("specs/*/*.yaml"))
SEEN_BY_EDITORS = ("field-missing", "field-type", "field-unknown", "field-value")


def faults(document: Any) -> list[str]:
    """Return the path of everything that the schema refuses."""
    return [error.json_path for error in Draft7Validator(definition_schema()).iter_errors(document)]


def loaded(path: Path) -> dict[str, Any]:
    """Return a definition file as plain values."""
    return load_document(path, shown_as=path.name)[0]


def test_the_schema_is_a_schema() -> None:
    """It is valid JSON Schema by the draft that it names."""
    Draft7Validator.check_schema(definition_schema())


def test_the_schema_in_the_repository_is_current() -> None:
    """Editors see the models as they are; 'cxrspec schema' writes the file again."""
    assert definition_schema() == json.loads((ROOT / SCHEMA_PATH).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", [*SPECS, *sorted(DEFINITIONS.glob("good/*.yaml"))], ids=lambda path: path.stem)
def test_what_loads_is_valid(path: Path) -> None:
    """No editor marks a good definition, in whatever short forms it is written."""
    assert [] == faults(loaded(path))


@pytest.mark.parametrize("code", SEEN_BY_EDITORS)
def test_a_bad_field_is_seen_by_an_editor(code: str) -> None:
    """What one field says wrongly is marked while it is written."""
    assert faults(loaded(DEFINITIONS / "bad" / code / "definition.yaml"))


def test_fields_are_described_by_their_docstrings() -> None:
    """An editor shows what a field means: what stands under it in the code, also in a base class."""
    found = definition_schema()["$defs"]
    assert found["FindingsTask"]["properties"]["change"]["description"].startswith("What differs from the version")
    assert found["FindingsTask"]["properties"]["aliases"]["description"].startswith("Our name: further spellings")
    assert found["WheelSource"]["properties"]["redistribute"]["description"].startswith("False keeps every file")


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_every_definition_names_the_schema(path: Path) -> None:
    """The first line leads an editor from the definition to the schema."""
    line = path.read_text(encoding="utf-8").splitlines()[0]
    assert SCHEMA_LINE == line
    assert ROOT / SCHEMA_PATH == (path.parent / line.rpartition("=")[2]).resolve()


@pytest.mark.parametrize("task", sorted(TASKS))
def test_each_task_has_its_own_fields(task: str) -> None:
    """The fields of one task are unknown to another, and those of every definition known to all."""
    fields = definition_schema()["$defs"][TASKS[task].__name__]["properties"]
    assert {"seed", "sources", *TASKS[task].model_fields} <= set(fields)
    assert [] == [name for other in TASKS if other != task for name in _own(other) - _own(task) if name in fields]


def _own(task: str) -> set[str]:
    return set(TASKS[task].model_fields)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"seed": "7"}, "$.seed"),
        ({"splits": {"Test": {}}}, "$.splits"),
        ({"task": "finding"}, "$.task"),
        ({"expect": {"test": {"items": -1}}}, "$.expect"),
        ({"subsets": {"test": {"pool": {}, "select": "some"}}}, "$.subsets.test.select"),
        ({"metrics": [{"name": "a"}]}, "$.metrics[0]"),
        ({"frame": {"width_px": 1, "height_px": 1}}, "$"),
    ],
)
def test_a_fault_is_placed(change: dict[str, Any], where: str) -> None:
    """An editor underlines the field that is wrong."""
    assert where in faults(TINY | change)


@pytest.mark.parametrize(
    "change",
    [
        {"expect": {"test": {"items": 3, "positives": {"edema": {"value": 1, "within": 1}}, "none": {"any_of": [1]}}}},
        {"splits": {"test": {"where": {"column": {"column": "a", "source": "b"}, "one_of": ["x", "y"]}}}},
        {"splits": {"test": {"where": [{"column": "a", "one_of": "x"}], "in_list": {"source": "tiny/list"}}}},
        {"metrics": [{**TINY["metrics"][0], "interval": [TINY["metrics"][0]["interval"]]}]},
    ],
)
def test_long_and_short_forms_are_both_valid(change: dict[str, Any]) -> None:
    """What the loader takes, the schema takes."""
    assert [] == faults(TINY | change)
