"""Definition files: every issue code by an example with its exact report, and good files with recorded digests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cxrspec.compiler import compile_definition
from cxrspec.digest import combined_id
from cxrspec.errors import CODES, DefinitionError
from cxrspec.freeze import freeze
from cxrspec.loader import load_definition
from cxrspec.sources import Store
from tiny import Define

FOLDER = Path(__file__).parent / "definitions"
SOURCE = Path(__file__).parent.parent / "src" / "cxrspec"
BAD = sorted(path.name for path in (FOLDER / "bad").iterdir())
GOOD = sorted(path.name for path in (FOLDER / "good").glob("*.yaml"))
RECORDED: dict[str, Any] = json.loads((FOLDER / "good" / "digests.json").read_text())
OF_A_FILE = ("yaml-", "field-", "reference-", "path-")


@pytest.fixture
def refused(tmp_path: Path) -> Callable[[str], DefinitionError]:
    """Load a bad definition from `specs/tiny/v1.yaml`, shown as `definition.yaml`, and return its error."""

    def load(code: str) -> DefinitionError:
        path = tmp_path / "specs" / "tiny" / "v1.yaml"
        path.parent.mkdir(parents=True)
        shutil.copy(FOLDER / "bad" / code / "definition.yaml", path)
        with pytest.raises(DefinitionError) as caught:
            load_definition(path, shown_as="definition.yaml")
        return caught.value

    return load


@pytest.mark.parametrize("code", BAD)
def test_a_bad_definition_is_reported_whole(refused: Callable[[str], DefinitionError], code: str) -> None:
    """Every fault in one pass, by line, in exactly these words."""
    assert (FOLDER / "bad" / code / "expected.txt").read_text() == f"{refused(code)}\n"


@pytest.mark.parametrize("code", BAD)
def test_a_bad_definition_has_its_fault_more_than_once(refused: Callable[[str], DefinitionError], code: str) -> None:
    """Each example shows that one fault does not hide the next of its kind."""
    assert 1 < [issue.code for issue in refused(code).issues].count(code)


def test_every_code_of_a_file_has_a_bad_definition() -> None:
    """A new issue code comes with its example."""
    assert sorted(code for code in CODES if code.startswith(OF_A_FILE)) == BAD


def test_every_code_is_used() -> None:
    """No code is listed that nothing reports."""
    text = "".join(path.read_text() for path in SOURCE.rglob("*.py") if path.name != "errors.py")
    assert [] == [code for code in CODES if f'"{code}"' not in text]


@pytest.mark.parametrize("name", GOOD)
def test_a_good_definition_freezes_to_its_recorded_digests(define: Define, store: Store, name: str) -> None:
    """H1: the same file and the same data give the same definition digest and subset ids, for ever."""
    registry, reference = define((FOLDER / "good" / name).read_text())
    lock = freeze(reference, registry, store).lock
    digests = {subset: fields["digest"] for subset, fields in lock.subsets.items()}
    found = {"definition": lock.definition_digest, "subsets": digests, "combined_id": combined_id(digests)}
    assert RECORDED[name] == found


def test_every_recorded_digest_has_its_definition() -> None:
    """The record holds nothing that is not tested."""
    assert sorted(RECORDED) == GOOD


def test_a_definition_is_known_by_its_own_folder(define: Define, tiny_document: Any, monkeypatch: Any) -> None:
    """A file that is named from within its folder stands where it belongs."""
    registry, reference = define(tiny_document)
    monkeypatch.chdir(registry.spec_path(reference).parent)
    assert reference == load_definition(Path("v1.yaml")).reference


def test_a_refused_value_is_not_refused_again(define: Define, tiny_document: Any) -> None:
    """A bare word in a field of truth values is one issue, not two."""
    text = (FOLDER / "good" / "yes-no.yaml").read_text().replace("redistribute: false", "redistribute: no")
    registry, reference = define(text)
    with pytest.raises(DefinitionError) as caught:
        load_definition(registry.spec_path(reference))
    assert ["yaml-bare-word"] == [issue.code for issue in caught.value.issues]


def test_issues_of_one_line_stand_in_their_order(define: Define, tiny_document: Any) -> None:
    """Within a line, the columns ascend."""
    text = (FOLDER / "good" / "four-value.yaml").read_text().replace("unit: item,", "unit: page,")
    registry, reference = define(text.replace("level: 0.95", "level: 2").replace("method: bootstrap", "method: none"))
    with pytest.raises(DefinitionError) as caught:
        load_definition(registry.spec_path(reference))
    columns = [int(issue.where.split(":")[2].split()[0]) for issue in caught.value.issues]
    assert sorted(columns) == columns
    assert 3 == len(columns)


def test_comments_and_layout_change_nothing(define: Define, store: Store) -> None:
    """A file without its comments, in another layout and key order, compiles to the same digests."""
    from cxrspec.strict_yaml import dump_document, load_document

    registry, reference = define((FOLDER / "good" / "separated-list.yaml").read_text())
    first = load_definition(registry.spec_path(reference))
    document, _, _ = load_document(registry.spec_path(reference), shown_as="x")
    define(dump_document(dict(reversed(document.items()))).decode())
    second = load_definition(registry.spec_path(reference))
    assert first.digest == second.digest
    tables = [compile_definition(one, store).subsets["train"].table.digest for one in (first, second)]
    assert tables[0] == tables[1]
