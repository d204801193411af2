"""Damaged reports: whatever is changed in one, it is refused by name or shown without a traceback."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from competition import TEST, competition
from cxrspec.errors import RegistryError
from cxrspec.export.tables import csv_table
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.report.leaderboard import leaderboard
from cxrspec.report.markdown import markdown
from cxrspec.report.report_text import show_report
from cxrspec.report.site.scores import board_protocols, reader_tables, score_forests, strata_forests
from cxrspec.report_file import read_report
from cxrspec.report_shape import shape_faults
from cxrspec.submit import TrainingList
from project import FOLDER, REF, frozen_project, refusal
from test_strata import divided

HISTORY = Path(__file__).parent / "locks" / "format-1"
DESCRIBED = ("environment", "fitted", "tolerance", "format", "reference", "system")
REMOVED = object()
VALUES = (REMOVED, None, 3, "x", [], {}, {"x": 1})
Scored = tuple[Registry, Reference, str]


def of_readers(root: Path) -> Scored:
    """Return a report with readers below curves and DeLong's intervals."""
    made = competition(root)
    made.freeze()
    made.submit()
    made.score()
    return made.registry, TEST, "ours"


def of_strata(root: Path) -> Scored:
    """Return a report with strata and an overlap that was counted."""
    project = divided(root, "{view: values}")
    project.submit("seen", trained_on=[TrainingList(b"t00\n", "l.txt")])
    project.score("seen")
    return project.registry, REF, "seen"


def of_graders(root: Path) -> Scored:
    """Return a report with graded answers."""
    shutil.copytree(HISTORY, root / "project")
    return Registry(root / "project"), Reference.parse("small-vqa@v1"), "ours"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every part; of parts that are all of one form only the first."""
    steps = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    alike = len(steps) > 1 and all(isinstance(inner, dict) for _, inner in steps)
    for step, inner in steps[:1] if alike else steps:
        if path or step not in DESCRIBED:
            yield (*path, step)
            yield from places(inner, (*path, step))


def damaged(report: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """Return the report with one part replaced or removed."""
    report = copy.deepcopy(report)
    inner: Any = report
    for step in path[:-1]:
        inner = inner[step]
    if value is REMOVED:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return report


def is_number(report: Any, path: tuple[Any, ...]) -> bool:
    """Say whether a part is a number, which another one may stand for."""
    for step in path:
        report = report[step]
    return isinstance(report, int | float)


def show_everywhere(report: dict[str, Any], scored: Scored) -> None:
    """Show a report in the terminal, on the board, in tables and on pages, as far as it alone decides."""
    registry, reference, system = scored
    registry.report_path(reference, system).write_text(json.dumps(report))
    read = read_report(registry, reference, system)
    assert read is not None
    show_report(read)
    score_forests(read["scores"]), strata_forests(read), reader_tables(read["scores"])
    board = leaderboard(reference, registry, ranks=False)
    markdown(board), csv_table(board), list(board_protocols(board))


@pytest.mark.parametrize("make", [of_readers, of_strata, of_graders])
def test_no_damage_gives_a_traceback(make: Any, tmp_path: Path) -> None:
    """Every part of a report replaced by another form, or left out: a refusal that names it, or a report shown."""
    scored = make(tmp_path)
    whole = read_report(*scored)
    assert whole is not None
    n_refused, passed = 0, []
    for path in places(whole):
        cases = [damaged(whole, path, value) for value in VALUES if value != 3 or not is_number(whole, path)]
        shown = [report for report in cases if not shape_faults(report)]
        n_refused += len(cases) - len(shown)
        passed += shown[-1:]  # the strangest of those that nobody has to refuse
    assert n_refused > 2 * len(passed)
    for report in passed:
        try:
            show_everywhere(report, scored)
        except RegistryError:
            assert (report.get("reference"), report.get("system")) != (str(scored[1]), scored[2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda report: report.update(overlap="0"), "has another form than a report in 'overlap'"),
        (lambda report: report.update(overlap={"bound": None}), "lacks 'overlap.subsets', 'overlap.notes', 'overlap.r"),
        (lambda report: report["overlap"].update(bound="about"), "has another form than a report in 'overlap.bound'"),
        (lambda report: report["overlap"].update(bound=None), "has another form than a report in 'overlap'"),
        (lambda report: report["overlap"]["subsets"]["test"].pop("n_items"), "lacks 'overlap.subsets.test.n_items'"),
        (lambda report: report["scores"][0].update(strata=[]), "has another form than a report in 'scores[0].strata'"),
        (lambda report: report["scores"][0].update(n_items="20"), "in 'scores[0].n_items'"),
        (lambda report: report["scores"][0].update(intervals=[]), "in 'scores[0]'"),
        (lambda report: report.update(agreement=[1]), "in 'agreement'"),
        (lambda report: report.update(graded=[{}]), "lacks 'graded[0].value', 'graded[0].reason'"),
    ],
)
def test_one_fault_is_one_refusal(change: Any, message: str, tmp_path: Path) -> None:
    """It names the file and the part, and the command that makes the report again."""
    project = frozen_project(tmp_path)
    project.submit("ours2", trained_on="tiny@v1:train")
    project.score("ours2")
    project.edit_json(f"{FOLDER}/reports/ours2.json", change)
    [(code, text)] = refusal(lambda: read_report(project.registry, REF, "ours2"))
    assert ("file-unsafe", True) == (code, text.startswith(f"{FOLDER}/reports/ours2.json: ") and message in text)
    assert text.endswith("Delete it and run 'cxrspec score tiny@v1/ours2'")
