"""Scores: the numbers of an outside implementation, from locks and frozen tables alone, with bytes that stay."""

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from cxrspec.digest import json_text
from cxrspec.report_file import is_undefined, read_report, report_differences
from project import (
    FOLDER,
    LOCK,
    REF,
    TEST_ITEMS,
    Project,
    broken,
    embeddings_csv,
    frozen_project,
    record_in_dvc,
    refusal,
    scores_csv,
    value,
)

REPORT = f"{FOLDER}/reports/ours.json"
PREDICTIONS = f"{FOLDER}/submissions/ours/predictions.csv"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project with one scored system."""
    return frozen_project(tmp_path)


@pytest.fixture
def probe(project: Project) -> Project:
    """Return the project with a probe scored as `ours`, too."""
    shutil.rmtree(project.path(f"{FOLDER}/submissions/ours"))
    project.path(REPORT).unlink()
    project.submit("ours", embeddings_csv(), protocol="probe")
    project.score()
    return project


def columns(text: str, delimiter: str) -> dict[str, list[str]]:
    """Return the columns of a table by name."""
    header, *rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))


@pytest.mark.parametrize(
    ("metric", "outside"), [("mean_auroc_zero_shot", roc_auc_score), ("mean_ap_zero_shot", average_precision_score)]
)
def test_every_number_is_that_of_scikit_learn(project: Project, metric: str, outside: Any) -> None:
    """From definition to report, ROC-AUC and average precision are scikit-learn's, and the mean is theirs."""
    table = columns(project.path(f"{FOLDER}/test.tsv").read_text(), "\t")
    scores = columns(project.path(PREDICTIONS).read_text(), ",")
    assert table["item_id"] == scores["image"]
    expected = {
        ours: outside([int(cell) for cell in table[ours]], [float(cell) for cell in scores[theirs]])
        for ours, theirs in (("edema", "Edema"), ("effusion", "Effusion"))
    }
    assert expected == {name: pytest.approx(value(project.report(), metric, name), abs=1e-12) for name in expected}
    assert sum(expected.values()) / 2 == pytest.approx(value(project.report(), metric), abs=1e-12)


def test_a_report_says_what_a_number_stands_on(project: Project) -> None:
    """Counts of every kind, digests, and a signature stand beside each value."""
    report = project.report()
    entry = report["scores"][0]["findings"]["edema"]
    counts = ("n_items", "n_positive", "n_negative", "n_missing", "n_excluded")
    assert (20, 7, 13, 0, 0) == tuple(entry[count] for count in counts)
    assert project.lock.tables["test"] == report["subsets"]["test"]["digest"]
    assert project.lock.definition_digest == report["definition_digest"]


def test_a_signature_has_its_fields_in_their_order(probe: Project) -> None:
    """Nine fields, separated by bars, as the design prints them."""
    ids = probe.lock.subset_ids
    assert [
        "tiny@v1",
        f"definition:{probe.lock.definition_digest[:16]}",
        f"subsets:test={ids['test']},train={ids['train']}",
        "n:20",
        "metric:mean_auroc_probe",
        "protocol:probe",
        "ci:bootstrap100/item",
        "seed:7",
        "cxrspec:0.1.0",
    ] == probe.report()["scores"][0]["signature"].split("|")


def test_a_finding_without_a_positive_is_null_with_a_reason(project: Project) -> None:
    """S1: undefined is null, so is the mean, and the reason says which finding; the report is written all the same."""
    none = ("test: {pool: {split: test}, select: all}", "test: {pool: {split: test, where: NONE}, select: all}")
    where = ("NONE", "{column: findings, one_of: [Effusion, No Finding]}")
    reference = project.define(
        "v2", none, where, ("test: {items: 20, positives: {edema: 7, effusion: 10}}", "test: {}")
    )
    project.freeze(reference)
    project.submit("ours", scores_csv(), reference)
    scored = project.score("ours", reference)
    assert scored.report is not None
    assert (None, None) == tuple(value(scored.report, "mean_auroc_zero_shot", name) for name in (None, "edema"))
    assert value(scored.report, "mean_auroc_zero_shot", "effusion") is not None
    assert scored.report["scores"][0]["reason"].startswith("undefined for edema: ")
    assert (True, False) == (is_undefined(scored.report), is_undefined(project.report()))
    assert b"NaN" not in project.registry.report_path(reference, "ours").read_bytes()


# -- bytes that stay


def test_scoring_again_keeps_the_bytes(project: Project) -> None:
    """The second time nothing is written, not even the time of the file."""
    before = project.path(REPORT).stat().st_mtime_ns
    assert "unchanged" == project.score().state
    assert before == project.path(REPORT).stat().st_mtime_ns


def test_scoring_elsewhere_gives_the_same_bytes(project: Project) -> None:
    """A report that was deleted comes back to the byte."""
    before = project.path(REPORT).read_bytes()
    project.path(REPORT).unlink()
    assert "scored" == project.score().state
    assert before == project.path(REPORT).read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        lambda report: report["environment"].update(numpy="0.1"),
        lambda report: report["scores"][0].update(
            signature=report["scores"][0]["signature"].replace("cxrspec:0.1.0", "cxrspec:0.0.1")
        ),
        lambda report: report["scores"][0].update(value=report["scores"][0]["value"] + 1e-13),
    ],
    ids=["environment", "version", "rounding"],
)
def test_another_machine_leaves_the_report_as_it_is(project: Project, change: Any) -> None:
    """S13: libraries, our own version and the last bit are described, never compared."""
    project.edit_json(REPORT, change)
    before = project.path(REPORT).read_bytes()
    assert "unchanged" == project.score().state
    assert before == project.path(REPORT).read_bytes()


EDITS: dict[str, Any] = {
    "scores[0].value": lambda report: report["scores"][0].update(value=0.9),
    "scores[0].findings.edema.n_positive": lambda report: report["scores"][0]["findings"]["edema"].update(n_positive=8),
    "scores[0].intervals[0].low": lambda report: report["scores"][0]["intervals"][0].update(low=0.1),
    "scores[0].intervals[0].level": lambda report: report["scores"][0]["intervals"][0].update(level=0.9001),
    "scores[0].signature": lambda report: report["scores"][0].update(signature="tiny@v1|n:20|cxrspec:0.1.0"),
    "tolerance": lambda report: report.update(tolerance=1.0),
    "trained_on": lambda report: report.update(trained_on="nothing"),
    "card": lambda report: report.update(card={"model_name": "x"}),
    "predictions.n_rows": lambda report: report["predictions"].update(n_rows=21),
    "definition_digest": lambda report: report.update(definition_digest="0" * 64),
    "notes[0]": lambda report: report["notes"].__setitem__(0, "fine"),
    "extra": lambda report: report.update(extra=1),
    "fitted": lambda report: report.update(fitted={"edema": {"C": 3.0}}),
}  # fmt: skip


@pytest.mark.parametrize("path", EDITS)
def test_a_report_that_was_edited_is_written_again(project: Project, path: str) -> None:
    """Everything but the described parts is compared, and the right bytes come back."""
    before = project.path(REPORT).read_bytes()
    project.edit_json(REPORT, EDITS[path])
    assert [True] == [one.startswith(path) for one in report_differences(project.report(), json.loads(before))]
    assert "scored" == project.score().state
    assert before == project.path(REPORT).read_bytes()


def test_a_probe_within_its_tolerance_leaves_the_bytes(probe: Project) -> None:
    """S13: a difference that another machine may make is none."""
    probe.edit_json(REPORT, lambda report: report["scores"][0].update(value=report["scores"][0]["value"] + 4.9e-4))
    before = probe.path(REPORT).read_bytes()
    assert "unchanged" == probe.score().state
    assert before == probe.path(REPORT).read_bytes()


@pytest.mark.parametrize("path", ["scores[0].value", "scores[0].intervals[0].level", "tolerance"])
def test_a_probe_off_by_more_is_written_again(probe: Project, path: str) -> None:
    """The tolerance is for computed values only: settings and the tolerance itself are exact."""
    before = probe.path(REPORT).read_bytes()
    edits = {**EDITS, "tolerance": lambda report: report.update(tolerance=5.1e-4)}
    probe.edit_json(REPORT, edits[path])
    assert "scored" == probe.score().state
    assert before == probe.path(REPORT).read_bytes()


HEADS: dict[str, Any] = {
    "C": lambda head: head.update(C=0.5),
    "coefficients": lambda head: head["coefficients"].__setitem__(0, head["coefficients"][0] * 1.01 + 0.01),
    "intercept": lambda head: head.update(intercept=head["intercept"] + 0.01),
    "cv_log_loss": lambda head: head["cv_log_loss"].update({"0.1": head["cv_log_loss"]["0.1"] + 1e-3}),
    "converged": lambda head: head.update(converged=False),
    "n_positive": lambda head: head.update(n_positive=12),
    "n_items": lambda head: head.pop("n_items"),
    "uncertain": lambda head: head.update(uncertain="U-Ones"),
}


@pytest.mark.parametrize("part", HEADS)
def test_a_forged_head_is_found_and_mended(probe: Project, part: str) -> None:
    """The fitted C, its weights and counts are part of the report: `audit` names what differs, `score` restores it."""
    before = probe.path(REPORT).read_bytes()
    probe.edit_json(REPORT, lambda report: HEADS[part](report["fitted"]["edema"]))
    assert [f"fitted.edema.{part}"] == report_differences(probe.report(), json.loads(before))
    assert ["scored again"] == broken(probe.audit_system())
    assert ("scored", before) == (probe.score().state, probe.path(REPORT).read_bytes())


def other_machine(report: dict[str, Any]) -> None:
    """Move every number of a head by what another machine may, and more of its fits on folds stop short."""
    head = report["fitted"]["edema"]
    largest = max(map(abs, [*head["coefficients"], head["intercept"]]))
    head["coefficients"] = [one + 4e-4 * largest for one in head["coefficients"]]
    head["cv_log_loss"] = {C: loss - 4e-4 for C, loss in head["cv_log_loss"].items()}
    head["n_cv_not_converged"] += 1


def test_a_head_of_another_machine_leaves_the_bytes(probe: Project) -> None:
    """S13: weights agree relative to the largest, losses absolutely; fits on folds may stop short elsewhere."""
    probe.edit_json(REPORT, other_machine)
    before = probe.path(REPORT).read_bytes()
    assert ("unchanged", before) == (probe.score().state, probe.path(REPORT).read_bytes())


@pytest.mark.parametrize("fitted", [None, [], {}, {"edema": 3, "effusion": {}}, {"edema": {}}])
def test_heads_of_another_form_differ(probe: Project, fitted: Any) -> None:
    """What is no mapping of heads is no match, and no traceback."""
    found = report_differences({**probe.report(), "fitted": fitted}, probe.report())
    assert {"fitted"} == {path.partition(".")[0] for path in found}


def test_numbers_that_notes_quote_may_differ_within_the_tolerance() -> None:
    """A note that names a value of a probe is the same note on another machine."""
    old, new = (
        {"tolerance": tolerance, "notes": [f"ROC-AUC {auc} looks inverted"]}
        for auc, tolerance in ((0.341, 0.1), (0.342, 0.1))
    )
    assert [] == report_differences(old, new)
    assert ["notes[0]"] == report_differences({**old, "tolerance": None}, {**new, "tolerance": None})


# -- what is refused


def test_a_wrong_reference_and_wrong_predictions_come_in_one_report(project: Project) -> None:
    """Another version, another subset id, a missing item: all at once, and the old report stays."""
    before = project.path(REPORT).read_bytes()
    data = scores_csv(TEST_ITEMS[1:]).encode()
    project.path(PREDICTIONS).write_bytes(data)
    from hashlib import sha256

    text = project.path(PREDICTIONS).with_name("submission.yaml").read_text()
    text = text.replace("reference: tiny@v1", "reference: tiny@v0").replace(project.lock.subset_ids["test"], "0" * 16)
    lines = [f"  sha256: {sha256(data).hexdigest()}" if "sha256" in line else line for line in text.splitlines()]
    project.path(PREDICTIONS).with_name("submission.yaml").write_text("\n".join(lines))
    codes = [code for code, _ in refusal(project.score)]
    assert ["prediction-missing", "submission-reference", "submission-reference"] == sorted(codes)
    assert before == project.path(REPORT).read_bytes()


@pytest.mark.parametrize("table", ["test", "roster"])
def test_an_altered_table_is_never_scored_against(project: Project, table: str) -> None:
    """D2: the tables that scoring reads are hashed; the roster is read when the file has other rows."""
    project.submit("all", scores_csv([*TEST_ITEMS, "x00"]))
    with project.path(f"{FOLDER}/{table}.tsv").open("ab") as stream:
        stream.write(b"x")
    assert ["table-altered"] == [code for code, _ in refusal(lambda: project.score("all"))]


def test_altered_predictions_are_never_scored(project: Project) -> None:
    """D2: predictions with other bytes than the submission names are refused, time and size kept."""
    path = project.path(PREDICTIONS)
    path.write_bytes(path.read_bytes()[:-2] + b"9\n")
    assert ["table-altered"] == [code for code, _ in refusal(project.score)]


def test_an_edited_lock_is_never_scored_against(project: Project) -> None:
    """A lock whose seed was changed by hand would sign numbers with a digest that is not theirs."""
    project.edit_json(LOCK, lambda lock: lock["definition"].update(seed=8))
    assert ["file-unsafe"] == [code for code, _ in refusal(project.score)]


@pytest.mark.parametrize("recorded", [True, False])
def test_predictions_that_are_not_here_leave_the_report(project: Project, recorded: bool) -> None:
    """In a clone without data a report stays as it is; predictions that nobody knows are an error."""
    before = project.path(REPORT).read_bytes()
    if recorded:
        record_in_dvc(project, PREDICTIONS)
        project.path(REPORT).unlink()
    project.path(PREDICTIONS).unlink()
    assert "absent" == project.score().state
    assert recorded or before == project.path(REPORT).read_bytes()


def test_a_submission_without_predictions_is_refused(project: Project) -> None:
    """Neither here, nor in DVC, nor scored before: then there is nothing to score."""
    project.path(PREDICTIONS).unlink()
    project.path(REPORT).unlink()
    assert ["table-missing"] == [code for code, _ in refusal(project.score)]


def test_absent_predictions_do_not_hide_a_wrong_submission(project: Project) -> None:
    """A submission for another version is refused whether or not its predictions are here."""
    project.path(PREDICTIONS).unlink()
    project.edit(f"{FOLDER}/submissions/ours/submission.yaml", "reference: tiny@v1", "reference: tiny@v0")
    assert ["submission-reference"] == [code for code, _ in refusal(project.score)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "file-unsafe"),
        ("[]", "file-unsafe"),
        ('{"format": 1}', "file-unsafe"),
        ('{"format": 2}', "lock-format"),
        ('{"format": 1, "scores": 3}', "file-unsafe"),
    ],
)
def test_a_damaged_report_is_named(project: Project, text: str, code: str) -> None:
    """A report that cannot be read says how to get a whole one."""
    project.write(REPORT, text)
    assert code in {code for code, _ in refusal(project.score)}


@pytest.mark.parametrize("part", ["system", "reference", "scores", "notes", "predictions"])
def test_a_report_that_lacks_a_part_is_named(project: Project, part: str) -> None:
    """Whoever shows a report later finds every part in its place."""
    project.edit_json(REPORT, lambda report: report.pop(part))
    assert {"file-unsafe"} == {code for code, _ in refusal(lambda: read_report(project.registry, REF, "ours"))}


def test_a_report_copied_from_another_system_is_named(project: Project) -> None:
    """A report stands under its own system's name only."""
    shutil.copy(project.path(REPORT), project.path(f"{FOLDER}/reports/theirs.json"))
    [(code, text)] = refusal(lambda: read_report(project.registry, REF, "theirs"))
    assert ("file-unsafe", True) == (code, "says that it is of tiny@v1/ours" in text)


# -- blind to definitions and sources


def test_scoring_needs_neither_definitions_nor_sources(project: Project) -> None:
    """With specs/ and the data gone, the numbers are the same."""
    before = project.path(REPORT).read_bytes()
    shutil.rmtree(project.path("specs"))
    shutil.rmtree(project.path("data"))
    project.path(REPORT).unlink()
    assert "scored" == project.score().state
    assert before == project.path(REPORT).read_bytes()


def test_scoring_imports_nothing_that_reads_definitions_or_sources(project: Project) -> None:
    """A whole process that scores never loads the loader, the compiler, freezing or a source."""
    blind = ("loader", "compiler", "definition", "freeze", "items", "selection", "sources", "references")
    code = f"""
import sys
from pathlib import Path
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.score import score
print(score(Reference("tiny", "v1"), "ours", Registry(Path({str(project.root)!r}))).state)
print([name for name in {blind} if "cxrspec." + name in sys.modules])
print([name for name in ("dvc", "huggingface_hub", "requests") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ["unchanged", "[]", "[]"] == done.stdout.splitlines()


def test_a_report_is_canonical_json(project: Project) -> None:
    """The file in git is what reading and writing it again gives."""
    data = project.path(REPORT).read_bytes()
    assert data == json_text(json.loads(data))


def test_no_row_stands_in_a_report(project: Project) -> None:
    """Reports hold counts and digests, no item, no patient, no path of this machine."""
    text = project.path(REPORT).read_text()
    assert [] == [word for word in (*TEST_ITEMS, "p00", str(project.root)) if word in text]
