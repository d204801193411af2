"""Subgroups: which item is in which stratum, and scores of strata that are those of their items alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from cxrspec.definition import parse_definition
from cxrspec.metrics import bootstrap_ranking
from cxrspec.report.board import interval_text, strata_in_order
from cxrspec.report_file import read_report
from cxrspec.tasks.findings.strata import Strata
from project import FOLDER, REF, SPEC, Project, authored_project, refusal
from test_definition import edited, wide

BANDS = Strata(bands=[0.0, 20.0, 40.0])
REPORT = f"{FOLDER}/reports/ours.json"


def divided(root: Path, strata: str, *edits: tuple[str, str], more: str = "") -> Project:
    """Return a project whose first metric asks for strata, frozen from labels with some texts replaced, and scored."""
    project = authored_project(root)
    kind = "    kind: roc_auc\n    protocol: zero_shot\n"
    project.edit(SPEC, kind, f"{kind}    strata: {strata}\n{more}")
    for old, new in edits:
        project.edit("data/labels.csv", old, new)
    project.freeze()
    project.submit()
    project.score()
    return project


def first(project: Project) -> dict[str, Any]:
    """Return the score of the metric that asks for strata."""
    found: dict[str, Any] = project.report()["scores"][0]
    return found


# -- which item is in which


@pytest.mark.parametrize(
    ("cell", "band"),
    [
        ("0", "[0, 20)"),
        ("19", "[0, 20)"),
        ("19.5", "[0, 20)"),
        ("20", "[20, 40)"),
        ("039Y", "[20, 40)"),
        ("40", "40+"),
        ("040Y", "40+"),
        ("110", "40+"),
    ],
)
def test_n8_a_band_holds_its_start_and_not_the_next_one(cell: str, band: str) -> None:
    """N8: `040Y` is 40, and 40 begins a band."""
    assert [band] == [name for name, rows in BANDS.rows("age", [cell]).items() if rows]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("413", "not 0 to 110 years"),
        ("111Y", "not 0 to 110 years"),
        ("-1", "not 0 to 110 years"),
        ("", "empty"),
        ("M", "no number"),
        ("٣", "no number"),
    ],
)
def test_n8_an_impossible_age_is_missing(cell: str, reason: str) -> None:
    """N8: an age above 110 is a typing error: in no band, and counted with its reason."""
    assert [] == [name for name, rows in BANDS.rows("age", [cell]).items() if rows]
    assert {reason: 1} == BANDS.missing("age", [cell])


def test_only_ages_have_a_largest_value() -> None:
    """A number of pixels may be above 110; one below the first band is in none."""
    strata = Strata(bands=[512.0, 1024.0])
    assert {"[512, 1024)": [1], "1024+": [0]} == strata.rows("width", ["2048", "600", "100"])
    assert {"below 512": 1} == strata.missing("width", ["2048", "600", "100"])


def test_values_are_strata_as_they_stand() -> None:
    """Every value is a stratum; an empty cell is none."""
    strata = Strata(values=True)
    assert {"AP": [1, 3], "PA": [0]} == strata.rows("view", ["PA", "AP", "", "AP"])
    assert {"empty": 1} == strata.missing("view", ["PA", "AP", "", "AP"])


def test_strata_are_listed_as_a_person_would() -> None:
    """Bands and numbers by size, words by their letters."""
    assert ["[-5, 0)", "[0, 20)", "[20, 100)", "100+"] == strata_in_order(
        dict.fromkeys(["100+", "[0, 20)", "[-5, 0)", "[20, 100)"])
    )
    assert ["2", "10", "AP", "PA"] == strata_in_order(dict.fromkeys(["PA", "10", "AP", "2"]))


# -- what a definition may ask


@pytest.mark.parametrize(
    ("strata", "path", "code"),
    [
        ({"weight": "values"}, "weight", "reference-unknown"),
        ({"age": "bands"}, "age", "field-type"),
        ({"age": []}, "age/bands", "field-value"),
        ({"age": [20, 0]}, "age", "field-value"),
        ({"age": [0, 0]}, "age", "field-value"),
        ({"age": ["0"]}, "age/bands/0", "field-type"),
        ({}, "", "field-value"),
    ],
)
def test_strata_that_mean_nothing_are_refused(strata: Any, path: str, code: str) -> None:
    """A covariate must be declared; bands ascend."""
    _, issues = parse_definition(edited(wide(), "metrics/0/strata", strata))
    assert [code] == [issue.code for issue in issues]
    assert "/".join(map(str, issues[0].path)).startswith(f"metrics/0/strata/{path.partition('/')[0]}".rstrip("/"))


@pytest.mark.parametrize(
    ("strata", "word"),
    [
        ("{sex: [0, 20]}", "bands need numbers, and no cell is one: 'F', 'M'"),
        ("{mined: values}", "22 different values make no strata; at most 20 do"),
    ],
)
def test_covariates_that_divide_nothing_are_refused_at_freezing(tmp_path: Path, strata: str, word: str) -> None:
    """Bands of words and strata of one item each are seen as soon as the data are."""
    project = authored_project(tmp_path)
    project.edit(SPEC, "covariates: {age: age", "covariates: {mined: image, age: age")
    project.edit(SPEC, "  test: {pool: {split: test}, select: all}", "  test: {pool: {where: W}, select: all}")
    project.edit(SPEC, "where: W", "where: {column: set, one_of: [test, '']}")
    project.edit(
        SPEC, "    kind: roc_auc\n    protocol: zero", f"    strata: {strata}\n    kind: roc_auc\n    protocol: zero"
    )
    [(code, text)] = refusal(project.freeze)
    assert ("value-unknown", True) == (code, word in text)


# -- scores of strata


def test_a_stratum_is_scored_as_its_items_alone(tmp_path: Path) -> None:
    """The value of `view: AP` is scikit-learn's on the AP items, per finding, with their counts."""
    project = divided(tmp_path, "{view: values, sex: values}")
    table = project.registry.read_table(REF, "test", project.lock.tables["test"])
    views = project.registry.read_table(REF, "test.covariates", project.lock.tables["test.covariates"]).column("view")
    lines = project.path(f"{FOLDER}/submissions/ours/predictions.csv").read_text().splitlines()[1:]
    scores = np.array([[float(cell) for cell in line.split(",")[1:]] for line in lines])
    rows = [row for row, view in enumerate(views) if view == "AP"]
    entry = first(project)["strata"]["view"]["AP"]
    labels = [int(table.column("effusion")[row]) for row in rows]
    found = entry["findings"]["effusion"]
    assert roc_auc_score(labels, scores[rows, 1]) == pytest.approx(found["value"], abs=1e-12)
    assert (len(rows), sum(labels)) == (found["n_items"], found["n_positive"])
    assert len({table.column("group_id")[row] for row in rows}) == entry["n_groups"]


def test_every_item_is_in_one_stratum_or_counted_as_missing(tmp_path: Path) -> None:
    """N8: one age is 413 and one empty: the bands, empty ones too, and the missing add up, and a note says why."""
    project = divided(
        tmp_path,
        "{age: [0, 33, 90]}",
        ("t00.png,p00,test,Edema|Effusion,30", "t00.png,p00,test,Edema|Effusion,413"),
        ("t01.png,p00,test,No Finding,31", "t01.png,p00,test,No Finding,"),
    )
    score = first(project)
    sizes = {name: one["n_items"] for name, one in score["strata"]["age"].items()}
    assert {"age": 2} == score["n_in_no_stratum"]
    assert 20 == sum(sizes.values()) + 2
    assert (0, None, "no items") == (
        sizes["90+"],
        score["strata"]["age"]["90+"]["value"],
        score["strata"]["age"]["90+"]["findings"]["edema"]["reason"],
    )
    note = "subset test, covariate age: 2 of 20 items are in no stratum (empty 1, not 0 to 110 years 1)"
    assert note in project.report()["notes"]


def test_s1_a_stratum_that_lacks_a_class_is_null_with_its_reason(tmp_path: Path) -> None:
    """S1: all edema is on PA here; the whole metric keeps its value, and scoring does not fail for a stratum."""
    score = first(divided(tmp_path, "{view: values}"))
    view = score["strata"]["view"]["AP"]
    assert (None, "no positive among 13 items") == tuple(view["findings"]["edema"][key] for key in ("value", "reason"))
    assert (None, "undefined for edema: no positive among 13 items") == (view["value"], view["reason"])
    assert view["findings"]["effusion"]["value"] is not None
    assert score["value"] is not None


def test_a_stratum_is_resampled_within_itself_by_a_stream_of_its_own(tmp_path: Path) -> None:
    """The documented key `<seed>:<subset>:<covariate>=<stratum>:<unit>` and the stratum's items give its bounds."""
    project = divided(tmp_path, "{sex: values}")
    table = project.registry.read_table(REF, "test", project.lock.tables["test"])
    sexes = project.registry.read_table(REF, "test.covariates", project.lock.tables["test.covariates"]).column("sex")
    lines = project.path(f"{FOLDER}/submissions/ours/predictions.csv").read_text().splitlines()[1:]
    rows = [row for row, sex in enumerate(sexes) if sex == "F"]
    labels = np.array([[int(table.column("edema")[row])] for row in rows], dtype=np.int8)
    scores = np.array([[float(lines[row].split(",")[1])] for row in rows])
    drawn = bootstrap_ranking(labels, scores, stream_key="7:test:sex=F:item", resamples=100)["roc_auc"][:, 0]
    low, high = np.nanquantile(drawn, [0.05, 0.95])
    interval = first(project)["strata"]["sex"]["F"]["findings"]["edema"]["intervals"][0]
    assert (low, high) == pytest.approx((interval["low"], interval["high"]), abs=1e-12)


def test_strata_leave_every_other_number_as_it_was(tmp_path: Path) -> None:
    """Asking for subgroups adds to a metric and moves nothing of it."""
    plain = authored_project(tmp_path / "plain")
    plain.freeze()
    plain.submit()
    plain.score()
    asked = first(divided(tmp_path / "asked", "{view: values}"))
    kept = {key: value for key, value in asked.items() if key not in ("strata", "n_in_no_stratum", "signature")}
    assert kept == {key: value for key, value in first(plain).items() if key != "signature"}


def test_covariates_are_read_only_where_a_metric_asks(tmp_path: Path) -> None:
    """D2: an altered table of covariates is refused; without strata it is not even opened."""
    project = divided(tmp_path / "asked", "{view: values}")
    plain = authored_project(tmp_path / "plain")
    plain.freeze()
    plain.submit()
    for one in (project, plain):
        one.edit(f"{FOLDER}/test.covariates.tsv", "AP", "PA")
    assert ["table-altered"] == [code for code, _ in refusal(project.score)]
    assert "scored" == plain.score().state


def test_an_edited_stratum_is_found_and_mended(tmp_path: Path) -> None:
    """The comparison of two reports goes into the strata, and so does the search for what is absent."""
    project = divided(tmp_path, "{view: values}")
    before = project.path(REPORT).read_bytes()
    project.edit_json(REPORT, lambda report: report["scores"][0]["strata"]["view"]["AP"].update(n_items=3))
    assert "scored" == project.score().state
    assert before == project.path(REPORT).read_bytes()
    project.edit_json(REPORT, lambda report: report["scores"][0]["strata"]["view"]["AP"].pop("findings"))
    [(_, text)] = refusal(lambda: read_report(project.registry, REF, "ours"))
    assert "lacks 'scores[0].strata.view.AP.findings'" in text


def test_strata_are_shown_with_their_counts(tmp_path: Path) -> None:
    """`cxrspec show` prints a row per stratum and finding, and says who is in none."""
    project = divided(tmp_path, "{age: [33, 34]}")
    out = project.run("show", f"{REF}/ours").out
    age = out[out.index("  age ") :]
    assert age.index("[33, 34)") < age.index("34+")
    assert "9 of 20 items have no stratum of age" in age


# -- intervals by item and by patient


def test_both_intervals_of_a_metric_are_shown(tmp_path: Path) -> None:
    """S4: the report holds the interval by item and the one by patient, and every table prints both."""
    project = authored_project(tmp_path)
    one = "{method: bootstrap, unit: item, resamples: 100, level: 0.9, max_left_out: 1.0}"
    project.path(SPEC).write_text(
        project.path(SPEC).read_text().replace(one, f"[{one}, {one.replace('unit: item', 'unit: group')}]")
    )
    project.freeze()
    project.submit()
    project.score()
    score = first(project)
    assert ["item", "group"] == [interval["unit"] for interval in score["intervals"]]
    text = interval_text(score)
    assert text.count("[") == 2 and " by item, [" in text and text.endswith(" by group")
    assert "|ci:bootstrap100/item+bootstrap100/group|" in score["signature"]
    for command in (("show", f"{REF}/ours"), ("score", f"{REF}/ours"), ("leaderboard", str(REF))):
        assert text in project.run(*command).out
