"""The leaderboard: what fits the lock stands in order with its signature; everything else is named, never ranked."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from cxrspec.report.board import has_entries, interval_text, metric_heading, ranked
from cxrspec.report.leaderboard import leaderboard, write_leaderboard
from cxrspec.report.markdown import markdown
from project import FOLDER, REF, Project, embeddings_csv, frozen_project, refusal, scores_csv
from test_reported import ENTRY

REPORT = f"{FOLDER}/reports/ours.json"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project with one scored system."""
    return frozen_project(tmp_path)


def board(project: Project) -> dict[str, Any]:
    """Return the leaderboard of the definition."""
    return leaderboard(REF, project.registry)


def reasons(project: Project) -> dict[str, str]:
    """Return why each system that is not scored has no row."""
    return {
        row["system"]: f"{row['state']}: {row['reason']}"
        for row in board(project)["systems"]
        if row["state"] != "scored"
    }


def test_a_row_has_values_intervals_counts_and_signature(project: Project) -> None:
    """Every number of the report that is shown stands in the board, with what it is worth."""
    [row] = board(project)["systems"]
    score, of_report = row["scores"]["mean_auroc_zero_shot"], project.report()["scores"][0]
    assert [of_report[key] for key in ("value", "intervals", "signature")] == [
        score[key] for key in ("value", "intervals", "signature")
    ]
    assert (20, "test", 7) == (score["n_items"], score["subset"], score["findings"]["edema"]["n_positive"])


def test_the_best_comes_first_and_the_undefined_last() -> None:
    """Systems are ranked by the first metric of their protocol; a tie goes by name."""
    values = {"d": None, "c": 0.5, "b": 0.0, "a": 0.5}
    rows = [
        {"system": name, "state": "scored", "protocol": "p", "scores": {"m": {"value": value, "intervals": []}}}
        for name, value in values.items()
    ]
    found = {"systems": rows, "metrics": [{"name": "m", "protocol": "p"}]}
    assert ["a", "c", "b", "d"] == [row["system"] for row in ranked(found, "p")]


def test_protocols_are_ranked_apart(project: Project) -> None:
    """A probe and a zero-shot system never stand in one table."""
    project.submit("fitted", embeddings_csv(), protocol="probe")
    project.score("fitted")
    found = board(project)
    assert [["ours"], ["fitted"]] == [[row["system"] for row in ranked(found, one)] for one in ("zero_shot", "probe")]
    assert markdown(found).index("## zero_shot") < markdown(found).index("## probe")


def test_a_signature_that_systems_share_stands_there_once(project: Project) -> None:
    """It names no system: two with one signature need one line, on the terminal and in Markdown."""
    project.submit("other")
    project.score("other")
    board = leaderboard(REF, project.registry)
    signature = board["systems"][0]["scores"]["mean_auroc_zero_shot"]["signature"]
    assert [f"- `{signature}` (other, ours)"] == [line for line in markdown(board).splitlines() if signature in line]
    assert 1 == project.run("leaderboard", "tiny").out.count(signature)


def test_subsets_are_named_in_every_heading(project: Project) -> None:
    """C10: a score on a validation subset is never read as one on the test subset."""
    [row] = board(project)["systems"]
    assert "mean_auroc_zero_shot on test" == metric_heading("mean_auroc_zero_shot", [row])
    assert "| rank | system | mean_auroc_zero_shot on test |" in markdown(board(project))


def test_a_board_is_of_one_definition_version(project: Project) -> None:
    """C10: scores of another version stand on a board of their own."""
    reference = project.define("v2", ("resamples: 100", "resamples: 200"))
    project.freeze(reference)
    project.submit("theirs", scores_csv(), reference)
    project.score("theirs", reference)
    boards = [leaderboard(one, project.registry) for one in (REF, reference)]
    assert [["ours"], ["theirs"]] == [[row["system"] for row in one["systems"]] for one in boards]


def test_a_system_that_is_not_scored_is_named(project: Project) -> None:
    """A submission waits for its score beside the table."""
    project.submit("new")
    assert {"new": "unscored: not scored yet"} == reasons(project)
    assert "- new: unscored: not scored yet" in markdown(board(project))


def test_a_report_of_other_predictions_is_not_shown(project: Project) -> None:
    """Numbers stand beside a system only if they are those of its submission."""
    project.edit_json(REPORT, lambda report: report["predictions"].update(sha256="0" * 64))
    assert {"ours": "outdated: its report is of other predictions; score it again"} == reasons(project)


@pytest.mark.parametrize(
    "change",
    [
        lambda report: report.update(definition_digest="0" * 64),
        lambda report: report["subsets"]["test"].update(id="0" * 16),
        lambda report: report["scores"].pop(),
        lambda report: report["scores"].reverse(),
    ],
)
def test_a_report_of_another_lock_is_not_shown(project: Project, change: Any) -> None:
    """A report with another definition, subset or set of metrics is named, not ranked."""
    project.edit_json(REPORT, change)
    assert {"ours": "outdated: its report is of another lock; score it again"} == reasons(project)


def test_a_submission_that_cannot_be_read_does_not_stop_the_board(project: Project) -> None:
    """One faulty submission.yaml is named with its fault; the others stand."""
    project.write(f"{FOLDER}/submissions/bad/submission.yaml", "format: 2\n")
    assert {"bad"} == set(reasons(project))
    assert ["ours"] == [row["system"] for row in ranked(board(project), "zero_shot")]


def test_a_report_whose_submission_is_gone_is_not_shown(project: Project) -> None:
    """Without a submission nobody can tell what the numbers are of."""
    shutil.rmtree(project.path(f"{FOLDER}/submissions/ours"))
    assert [] == board(project)["systems"]


def test_a_damaged_report_stops_the_board(project: Project) -> None:
    """Half a report is the user's to mend before anything is published."""
    project.write(REPORT, "{")
    assert ["file-unsafe"] == [code for code, _ in refusal(lambda: board(project))]


def test_reported_results_stand_beside_and_are_never_ranked(project: Project) -> None:
    """They keep their digits, are marked, and an entry that claims another version is left out."""
    project.write("registry/tiny/reported/a.yaml", ENTRY)
    project.define("v2")
    project.write("registry/tiny/reported/b.yaml", ENTRY.replace("tiny@v1", "tiny@v2"))
    found = board(project)
    assert (["ours"], ["chexnet"]) == (
        [row["system"] for row in found["systems"]],
        [one["system"] for one in found["reported"]],
    )
    assert "| CheXNet | mean ROC-AUC 0.8410 | no: a split of its own | A paper Table 2 |" in markdown(found)


def test_a_definition_without_systems_has_no_board(project: Project) -> None:
    """Boards with nothing on them can be told from others, and are not shown."""
    reference = project.define("v2")
    project.freeze(reference)
    assert [True, False] == [has_entries(leaderboard(one, project.registry)) for one in (REF, reference)]


def test_a_bar_or_line_break_in_a_text_does_not_break_the_table(project: Project) -> None:
    """What an author declares is one cell of one line."""
    project.submit("new", trained_on="a | b\n\n# c")
    project.score("new")
    line = next(line for line in markdown(board(project)).splitlines() if "| new |" in line)
    assert line.endswith("| 20 | unknown | a \\| b # c |")


@pytest.mark.parametrize(
    ("value", "low", "text"),
    [
        (0.5, 0.25, "0.500 [0.250, 0.750]"),
        (0.5, None, "0.500 (no interval: why)"),
        (None, None, "undefined (why)"),
    ],
)
def test_a_value_is_written_with_its_interval_or_the_reason(value: float | None, low: float | None, text: str) -> None:
    """No number stands without its interval, and no gap without a reason."""
    interval = {"low": low, "high": 0.75, "reason": "why"}
    assert text == interval_text({"value": value, "reason": "why", "intervals": [interval]})


def test_the_files_of_a_board_stay_the_same(project: Project) -> None:
    """Writing again changes no byte; the metrics of DVC are the means alone."""
    write_leaderboard(REF, project.registry)
    before = project.files()
    write_leaderboard(REF, project.registry)
    assert before == project.files()
    means = {score["metric"]: score["value"] for score in project.report()["scores"]}
    assert {"ours": means} == json.loads(before[f"{FOLDER}/metrics.json"])
    assert json.loads(json.dumps(board(project))) == json.loads(before[f"{FOLDER}/leaderboard.json"])


def test_a_report_with_a_number_that_json_does_not_have_is_refused_and_no_board_written(tmp_path: Path) -> None:
    """NaN and infinity in a report are damage: nothing prints them, and the written board stays as it was."""
    project = frozen_project(tmp_path)
    project.run("leaderboard", "--write", str(REF))
    before = project.path(f"{FOLDER}/leaderboard.md").read_bytes()
    path = project.path(f"{FOLDER}/reports/ours.json")
    whole = path.read_text()
    for number in ("NaN", "1e999"):
        path.write_text(re.sub(r'("value": )[0-9.]+', rf"\g<1>{number}", whole, count=1))
        for command in (("leaderboard", "--write", str(REF)), ("show", f"{REF}/ours", "--json")):
            ran = project.run(*command)
            assert (1, True) == (ran.code, "is not a readable report" in ran.err)
    assert before == project.path(f"{FOLDER}/leaderboard.md").read_bytes()
