"""What leaves for other programs: valid by their own readers, proved before it leaves, and without a row."""

import csv
import importlib.util
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries

import cxrspec
from cxrspec.export import (
    checked_board,
    checked_report,
    croissant,
    csv_table,
    eval_results,
    latex_table,
    markdown_table,
    model_card,
)
from cxrspec.export.croissant import semantic_version
from cxrspec.export.tables import latex_text
from cxrspec.reference import Reference
from cxrspec.report.leaderboard import leaderboard
from cxrspec.submit import TrainingList
from project import FOLDER, REF, SPEC, TEST_ITEMS, Project, authored_project, frozen_project, refusal, scores_csv
from tiny import tiny_tables

REPORT = f"{FOLDER}/reports/ours.json"
READ_CROISSANT = """
import json, socket, sys
def refuse(*_): raise OSError("a reader of Croissant reached for the network")
socket.socket.connect = refuse
import mlcroissant
dataset = mlcroissant.Dataset(jsonld=sys.argv[1])
records = {one.name: list(dataset.records(one.uuid)) for one in dataset.metadata.record_sets}
issues = dataset.metadata.ctx.issues
print(json.dumps({"errors": sorted(map(str, issues.errors)), "records": records}, default=bytes.decode))
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project with one scored system."""
    return frozen_project(tmp_path)


def undefined(project: Project) -> dict[str, Any]:
    """Return the leaderboard of a report whose first score is undefined."""

    def undefine(report: Any) -> None:
        score = report["scores"][0]
        score |= {"value": None, "reason": "no positive among 20 items"}
        score["intervals"] = [{**one, "low": None, "high": None, "reason": "none"} for one in score["intervals"]]

    project.edit_json(REPORT, undefine)
    return leaderboard(REF, project.registry)


def csv_rows(text: str) -> list[dict[str, str]]:
    """Return the rows of a CSV below its comments."""
    return list(csv.DictReader(line for line in io.StringIO(text) if not line.startswith("#")))


# -- Croissant


def read_by_mlcroissant(project: Project) -> Any:
    """Return what mlcroissant, without a network, finds in the document beside its tables."""
    if importlib.util.find_spec("mlcroissant") is None:
        pytest.skip("mlcroissant is not installed: pip install 'cxrspec[dev]'")
    path = project.write(f"{FOLDER}/croissant.json", json.dumps(croissant(REF, project.registry)[0]))
    done = subprocess.run(
        [sys.executable, "-c", READ_CROISSANT, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_croissant_is_valid_and_gives_the_frozen_rows(project: Project) -> None:
    """Its own reader finds no error, hashes the tables, and reads the rows that are frozen."""
    found = read_by_mlcroissant(project)
    table = project.registry.read_table(REF, "test", project.lock.tables["test"])
    assert [] == found["errors"]
    assert table.item_ids == [row["test/item_id"] for row in found["records"]["test"]]
    assert list(map(int, table.column("edema"))) == [row["test/edema"] for row in found["records"]["test"]]
    assert [("test", "cr:TestSplit"), ("train", "cr:TrainingSplit")] == [
        (row["splits/name"], row["splits/url"]) for row in found["records"]["splits"]
    ]


def test_croissant_says_what_the_lock_says(project: Project) -> None:
    """Files with sha256, version, licence and identity."""
    document, notes = croissant(REF, project.registry)
    assert [] == notes
    assert [project.lock.tables[name] for name in ("test", "train")] == [
        file["sha256"] for file in document["distribution"]
    ]
    assert ("1.0.0+v1", ["CC0"], "tiny@v1") == (document["version"], document["license"], document["alternateName"])
    assert f"definition:{project.lock.definition_digest}" in document["identifier"]


def test_croissant_says_what_was_mended_after_freezing(project: Project) -> None:
    """Caveats and licences are those of the definition file of today."""
    project.edit(SPEC, "It is tiny.", "It is very tiny.")
    project.edit(SPEC, "licence: CC0", "licence: CC-BY-4.0")
    document = croissant(REF, project.registry)[0]
    assert ("CC-BY-4.0", True) == (*document["license"], "It is very tiny." in document["description"])


def test_croissant_holds_no_row(project: Project) -> None:
    """It describes the tables; no item is in it."""
    assert not any(item in json.dumps(croissant(REF, project.registry)[0]) for item in TEST_ITEMS)


def test_an_altered_table_is_not_described(project: Project) -> None:
    """The table that is here must be the one whose sha256 is exported."""
    project.write(f"{FOLDER}/test.tsv", b"item_id\n")
    assert ["table-altered"] == [code for code, _ in refusal(lambda: croissant(REF, project.registry))]


def test_an_absent_table_is_noted(project: Project) -> None:
    """Its sha256 is the lock's, and the document is the same."""
    document = croissant(REF, project.registry)[0]
    project.path(f"{FOLDER}/test.tsv").unlink()
    assert (document, [f"{FOLDER}/test.tsv"]) == (
        croissant(REF, project.registry)[0],
        [note.where for note in croissant(REF, project.registry)[1]],
    )


def test_cells_that_are_no_label_are_text(tmp_path: Path) -> None:
    """A finding is an integer where every item is decided, and text where one is uncertain or blank."""
    project, reference = Project(tmp_path), Reference("tiny", "four-value")
    for name, text in tiny_tables().items():
        project.write(f"data/{name}", text)
    definition = Path(__file__).parent / "definitions" / "good" / "four-value.yaml"
    project.write("specs/tiny/four-value.yaml", definition.read_text())
    project.freeze(reference)
    lock = project.registry.read_lock(reference)
    for records in croissant(reference, project.registry)[0]["recordSet"][1:]:
        subset = lock.subsets[records["name"]]
        open_cells = {name for tally in ("uncertain", "blank") for name, count in subset[tally].items() if count}
        types = {one["name"]: one["dataType"] for one in records["field"] if not one["name"].endswith("_id")}
        assert types == {name: "sc:Text" if name in open_cells else "sc:Integer" for name in types}
    assert any(lock.subsets["train"]["uncertain"].values())


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("official-v3", "3.0.0+official-v3"), ("v12", "12.0.0+v12"), ("pilot.a", "1.0.0+pilot.a"), ("rev2", "1.0.0+rev2")],
)
def test_versions_are_semantic(ours: str, theirs: str) -> None:
    """The number at the end of ours is the major one; ours is kept whole."""
    assert theirs == semantic_version(ours)


# -- the hub


def test_the_model_card_is_read_back_by_the_hub_library(project: Project) -> None:
    """Value, definition version, subset id, interval and signature stand where `EvalResult` has them."""
    board, report, _ = checked_report(REF, "ours", project.registry)
    results = ModelCard(model_card(project.lock, report, board)).data.eval_results
    for result, score in zip(results, report["scores"], strict=True):
        interval = score["intervals"][0]
        assert (score["value"], score["kind"], "test") == (
            result.metric_value,
            result.metric_type,
            result.dataset_split,
        )
        assert "tiny@v1" == result.dataset_args["definition_version"]
        assert project.lock.subset_ids["test"] == result.dataset_args["subset_id"]
        assert [interval["low"]] == [one["low"] for one in result.metric_args["intervals"]]
        assert score["signature"] == result.metric_args["signature"]


def test_eval_results_are_read_back_by_the_hub_library(project: Project) -> None:
    """One entry per number, the data set as it is named, interval and signature in the notes."""
    _, report, _ = checked_report(REF, "ours", project.registry)
    entries = parse_eval_result_entries(yaml.safe_load(eval_results(project.lock, report, "someone/tiny")))
    assert [(score["metric"], score["value"]) for score in report["scores"]] == [
        (entry.task_id, entry.value) for entry in entries
    ]
    assert {"someone/tiny"} == {entry.dataset_id for entry in entries}
    assert all(
        str(entry.notes).endswith(score["signature"]) for entry, score in zip(entries, report["scores"], strict=True)
    )


def test_the_hub_data_set_of_a_definition_is_named_with_its_revision(project: Project) -> None:
    """A source on the hub is the data set that results are of; another one has no revision that we know."""
    lock, revision = project.lock, "0" * 40
    lock.document["definition"]["sources"]["labels"] = {"kind": "hf_dataset", "revision": revision}
    lock.document["description"]["sources"]["labels"]["repository"] = "someone/tiny"
    entries = {
        named: yaml.safe_load(eval_results(lock, project.report(), named))[0]["dataset"] for named in (None, "x/y")
    }
    assert ("someone/tiny", revision) == (entries[None]["id"], entries[None]["revision"])
    assert ("x/y", None) == (entries["x/y"]["id"], entries["x/y"].get("revision"))


def test_an_undefined_number_is_told_and_not_claimed(project: Project) -> None:
    """The metadata leave it out, the card says why."""
    board = undefined(project)
    card = model_card(project.lock, project.report(), board)
    assert 1 == len(ModelCard(card).data.eval_results)
    assert "— (no positive among 20 items)" in card
    assert 1 == len(yaml.safe_load(eval_results(project.lock, project.report())))


# -- tables


def test_csv_has_every_number_at_full_precision(project: Project) -> None:
    """What the report holds is read back to the last digit."""
    rows = csv_rows(csv_table(leaderboard(REF, project.registry)))
    for score in project.report()["scores"]:
        found = {row["finding"]: row for row in rows if row["metric"] == score["metric"]}
        assert {"", *score["findings"]} == set(found)
        for finding, entry in (("", score), *score["findings"].items()):
            interval = entry["intervals"][0]
            numbers = [float(found[finding][key]) for key in ("value", "bootstrap_item_low", "bootstrap_item_high")]
            assert [entry["value"], interval["low"], interval["high"]] == numbers
            assert score["signature"] == found[finding]["signature"]


def test_csv_comments_hold_caveats_and_training_data(project: Project) -> None:
    """Above the header, so that a reader that knows comments reads the table alone."""
    comments = [line for line in csv_table(leaderboard(REF, project.registry)).splitlines() if line.startswith("#")]
    assert {"# caveat: It is tiny.", "# ours was trained on: unknown; overlap: unknown", "# tiny@v1"} <= set(comments)


@pytest.mark.parametrize("write", [csv_table, latex_table, markdown_table])
def test_undefined_has_its_reason(project: Project, write: Any) -> None:
    """Neither zero nor a word that only programs know."""
    text = write(undefined(project))
    assert "no positive among 20 items" in text
    assert not re.search(r"\b(nan|None)\b", text)


def test_undefined_is_an_empty_cell_for_programs(project: Project) -> None:
    """Columns of numbers hold numbers alone, and the reasons stand in columns of their own."""
    row = next(one for one in csv_rows(csv_table(undefined(project))) if not one["finding"])
    assert ("", "", "no positive among 20 items") == (row["value"], row["bootstrap_item_low"], row["reason"])
    assert "none" == row["bootstrap_item_reason"]


@pytest.mark.parametrize("write", [latex_table, markdown_table])
def test_tables_carry_signatures_and_caveats(project: Project, write: Any) -> None:
    """Whoever pastes the table has what a publication must say."""
    text = write(leaderboard(REF, project.registry))
    assert all(score["signature"] in text for score in project.report()["scores"])
    assert "It is tiny." in text
    assert "90 \\% interval by item" in text or "90 % interval by item" in text


def test_a_board_with_many_numbers_has_a_row_per_number(project: Project) -> None:
    """Beyond six numbers, systems are columns."""
    board = leaderboard(REF, project.registry)
    [row] = board["systems"]
    one = row["scores"]["mean_auroc_zero_shot"]
    board["metrics"] = [{"name": f"m{at}", "kind": "roc_auc", "protocol": "zero_shot"} for at in range(7)]
    row["scores"] = {f"m{at}": one for at in range(7)}
    assert "| number | finding | ours |" in markdown_table(board)
    assert 7 == latex_table(board).count("on test & ")


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a_b & 50 % #1 $x {y}", r"a\_b \& 50 \% \#1 \$x \{y\}"),
        ("\\input{x}", r"\textbackslash{}input\{x\}"),
        ("~^<>|", r"\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}\textbar{}"),
        ("—", "---"),
    ],
)
def test_latex_is_escaped(text: str, escaped: str) -> None:
    """No text of a definition or a system becomes a command."""
    assert escaped == latex_text(text)


def test_a_line_break_cannot_leave_a_comment(project: Project) -> None:
    """A text with line breaks stays in its comment, in all three forms."""
    board = leaderboard(REF, project.registry)
    board["caveats"] = ["one\n\\input{evil}"]
    assert not [line for line in latex_table(board).splitlines() if line.startswith("\\input")]
    assert not [line for line in csv_table(board).splitlines() if line.startswith("\\input")]


# -- proof


def test_a_rewritten_number_does_not_leave(project: Project) -> None:
    """Every link behind a number is checked before it is exported."""
    project.edit_json(REPORT, lambda report: report["scores"][0].update(value=0.9))
    for run in (lambda: checked_board(REF, project.registry), lambda: checked_report(REF, "ours", project.registry)):
        [(code, text)] = refusal(run)
        assert "audit-broken" == code
        assert "link 'scored again' is broken" in text


def seen(project: Project) -> None:
    """Score a system that was trained on three images of two patients that are scored."""
    project.submit("seen", trained_on=[TrainingList(b"t00\nt01\nt02\nz00\n", "l.txt")])
    project.score("seen")


@pytest.mark.parametrize("export", ["csv", "latex", "markdown"])
def test_a_system_with_an_overlap_is_checked_too(project: Project, export: str) -> None:
    """Every number that leaves is proved, whether it is ranked or not."""
    seen(project)
    assert "overlap" in project.run("export", export, "tiny@v1").out
    project.edit_json(f"{FOLDER}/reports/seen.json", lambda report: report["scores"][0].update(value=0.9))
    ran = project.run("export", export, "tiny@v1")
    assert (1, "") == (ran.code, ran.out)
    assert "link 'scored again' is broken" in ran.err


def test_a_card_says_the_overlap(project: Project) -> None:
    """A system that saw the test images has a card, which says so; so do the tables and the frame."""
    seen(project)
    board, report, _ = checked_report(REF, "seen", project.registry)
    card = model_card(project.lock, report, board)
    assert "Not ranked beside other systems: its training data cover 3 of 20 items, 2 of 10 patients." in card
    assert "overlap: 3 of 20 items" in ModelCard(card).data.eval_results[0].metric_args["trained_on"]
    assert "overlap: 3 of 20 items" in eval_results(project.lock, report)
    rows = [row for row in csv_rows(csv_table(board)) if row["system"] == "seen"]
    assert {("overlap", "3 of 20 items, 2 of 10 patients", report["trained_on"])} == {
        (row["rank"], row["overlap"], row["trained_on"]) for row in rows
    }
    assert r"overlap & seen & " in latex_table(board)
    frame = cxrspec.Registry(project.root).definition("tiny@v1").leaderboard()
    assert ["ours", "seen"] == frame.system.unique().tolist()


def test_what_cannot_be_checked_is_noted(project: Project) -> None:
    """Without predictions the number leaves with a note, as an audit would say."""
    next(project.path(f"{FOLDER}/submissions/ours").glob("predictions.*")).unlink()
    _, notes = checked_board(REF, project.registry)
    assert any("link 'scored again' is not checked" in note.message for note in notes)


@pytest.mark.parametrize("system", ["absent", "unscored"])
def test_a_system_without_a_number_has_no_card(project: Project, system: str) -> None:
    """The refusal names the command that mends it."""
    project.submit("unscored")
    [(code, text)] = refusal(lambda: checked_report(REF, system, project.registry))
    assert "table-missing" == code
    assert f"Run 'cxrspec score tiny@v1/{system}'" in text


# -- commands

COMMANDS = {
    "croissant": "tiny@v1",
    "csv": "tiny@v1",
    "latex": "tiny@v1",
    "markdown": "tiny@v1",
    "model-card": "tiny@v1/ours",
    "eval-results": "tiny@v1/ours",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_has_the_bytes_of_standard_output(project: Project, name: str) -> None:
    """`--out` writes what would be printed, and the same again."""
    printed = project.run("export", name, COMMANDS[name])
    assert 0 == printed.code
    for _ in range(2):
        assert (0, "") == (project.run("export", name, COMMANDS[name], "--out", "sub/x").code, "")
        assert printed.data == project.path("sub/x").read_bytes()


def test_a_card_needs_a_system(project: Project) -> None:
    """A reference without a system is wrong usage."""
    assert (2, 2) == (
        project.run("export", "model-card", "tiny@v1").code,
        project.run("export", "eval-results", "tiny@v1").code,
    )


def test_rows_that_may_not_be_passed_on_are_described_only(tmp_path: Path) -> None:
    """A restricted definition is exported with digests and counts, and says that its rows stay."""
    project = authored_project(tmp_path)
    project.edit(SPEC, "attribution: nobody", "attribution: nobody\n    redistribute: false")
    project.freeze()
    project.submit(data=scores_csv())
    project.score()
    for name, reference in COMMANDS.items():
        out = project.run("export", name, reference).out
        assert out
        assert not any(re.search(rf"\b{item}\b", out) for item in TEST_ITEMS)
    assert "may not be passed on" in project.run("export", "croissant", "tiny@v1").out
