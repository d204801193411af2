"""The interface for notebooks: its examples run, its frames hold what is frozen, and it is imported late."""

import doctest
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cxrspec
from cxrspec import api
from cxrspec.errors import RegistryError, SubmissionError
from project import FOLDER, SPEC, Project, authored_project, frozen_project, scores_csv


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project with one scored system."""
    return frozen_project(tmp_path)


EXAMPLES = [test for test in doctest.DocTestFinder().find(api) if test.examples]


@pytest.mark.parametrize("example", EXAMPLES, ids=[test.name for test in EXAMPLES])
def test_the_examples_run(example: doctest.DocTest, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the documentation shows is what happens."""
    monkeypatch.chdir(project.root)
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(example, out=told.append)
    assert (0, "") == (runner.failures, "".join(told))


def test_every_public_method_has_an_example_or_is_plain() -> None:
    """Whatever takes more than a name is shown at work."""
    shown = {test.name.rpartition(".")[2] for test in EXAMPLES}
    assert {"submit", "score", "audit", "subset", "leaderboard"} <= shown


def test_a_subset_holds_what_is_frozen(project: Project) -> None:
    """Rows, order and labels are those of the table; ids are strings."""
    frame = cxrspec.Registry(project.root).definition("tiny@v1").subset("test")
    table = project.registry.read_table(project.lock.reference, "test", project.lock.tables["test"])
    assert list(table.header) == frame.columns.tolist()
    assert table.item_ids == frame.item_id.tolist()
    assert [int(cell) for cell in table.column("effusion")] == frame.effusion.tolist()
    assert ["string", "string", "Int8", "Int8"] == [str(kind) for kind in frame.dtypes]


def test_blank_and_uncertain_labels_are_kept_apart() -> None:
    """Blank is missing, uncertain is -1, and neither becomes 0."""
    from cxrspec.digest import Table

    table = Table.sorted(("item_id", "edema"), (["a", "b", "c", "d"], ["", "-1", "0", "1"]))
    edema = api._table_frame(table, {"edema": 1}).edema
    assert [True, False, False, False] == edema.isna().tolist()
    assert [-1, 0, 1] == edema.dropna().tolist()


def test_an_altered_table_is_refused(project: Project) -> None:
    """A frame is proved by the sha256 of its file."""
    project.write(f"{FOLDER}/test.tsv", b"item_id\n")
    with pytest.raises(RegistryError, match="has sha256"):
        cxrspec.Registry(project.root).definition("tiny@v1").subset("test")


def test_rows_that_may_not_be_passed_on_need_a_word(tmp_path: Path) -> None:
    """`restricted=True` says that they are for oneself."""
    project = authored_project(tmp_path)
    project.edit(SPEC, "attribution: nobody", "attribution: nobody\n    redistribute: false")
    project.freeze()
    definition = cxrspec.Registry(project.root).definition("tiny@v1")
    with pytest.raises(RegistryError, match="Say restricted=True to read them yourself"):
        definition.subset("test")
    assert 20 == len(definition.subset("test", restricted=True))


def test_a_frame_of_predictions_scores_as_its_file(project: Project) -> None:
    """Handed in as a data frame, the same numbers give the same scores to the last digit."""
    registry = cxrspec.Registry(project.root)
    path = project.write("mine.csv", scores_csv())
    registry.submit("tiny@v1", "as-file", path, protocol="zero_shot")
    registry.submit("tiny@v1", "as-frame", pd.read_csv(path), protocol="zero_shot", weights_id="w", trained_on="mine")
    values = [registry.score(f"tiny@v1/{name}").value.tolist() for name in ("as-file", "as-frame", "ours")]
    assert values[0] == values[1] == values[2]
    assert "mine" == project.report("as-frame")["trained_on"]


def test_scores_are_those_of_the_report(project: Project) -> None:
    """Mean and findings, with the ends of the interval and the signature."""
    frame = cxrspec.Registry(project.root).score("tiny@v1/ours")
    score = project.report()["scores"][0]
    mean, edema, *_ = frame.to_dict("records")
    interval = score["intervals"][0]
    assert [score["value"], interval["low"], interval["high"]] == [
        mean[key] for key in ("value", "bootstrap_item_low", "bootstrap_item_high")
    ]
    assert (score["signature"], True) == (mean["signature"], pd.isna(mean["finding"]))
    assert ("edema", score["findings"]["edema"]["n_positive"]) == (edema["finding"], edema["n_positive"])


def test_an_audit_of_a_number_holds_the_chain_of_its_definition(project: Project) -> None:
    """Its links are those of the definition, then its own; a rewritten number breaks it."""
    registry = cxrspec.Registry(project.root)
    expected = [link.name for audit in (project.audit(), project.audit_system()) for link in audit.links]
    assert expected == [link.name for link in registry.audit("tiny@v1/ours").links]
    project.edit_json(f"{FOLDER}/reports/ours.json", lambda report: report["scores"][0].update(value=0.9))
    assert not cxrspec.Registry(project.root).audit("tiny@v1/ours").is_sound()


def test_a_deep_audit_compiles_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last link of the definition is that to its sources."""
    monkeypatch.setenv("CXRSPEC_CACHE", str(project.root / ".cxrspec" / "cache"))
    assert "compiled again" in [link.name for link in cxrspec.Registry(project.root).audit("tiny@v1", deep=True).links]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda registry: registry.definition("tiny"), ValueError, "is no reference"),
        (lambda registry: registry.definition("tiny@v9"), RegistryError, "is not frozen"),
        (lambda registry: registry.score("tiny@v1"), ValueError, "names no system"),
        (lambda registry: registry.score("tiny@v1/absent"), SubmissionError, "has no submission"),
        (lambda registry: registry.definition("tiny@v1").subset("validation"), RegistryError, "has no table"),
    ],
    ids=["form", "unknown", "no-system", "no-submission", "no-subset"],
)
def test_what_is_not_there_is_said(project: Project, call: Any, error: type[Exception], words: str) -> None:
    """An error names what is there instead."""
    with pytest.raises(error, match=words):
        call(cxrspec.Registry(project.root))


def test_importing_loads_nothing_heavy() -> None:
    """`import cxrspec` is instant; pandas comes with the first frame."""
    code = "import sys, cxrspec; print(sorted({'pandas', 'numpy', 'pydantic', 'cxrspec.api'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]\n" == done.stdout
    code = "import sys, cxrspec; cxrspec.Registry; print('pandas' in sys.modules)"
    assert "False\n" == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_an_unknown_name_is_an_attribute_error() -> None:
    """The late names do not hide a spelling mistake."""
    with pytest.raises(AttributeError, match="no attribute 'Registri'"):
        _ = cxrspec.Registri  # type: ignore[attr-defined]
