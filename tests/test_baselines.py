"""Baselines: from frozen tables and nothing else, through the same door as any submission."""

import math
import shutil
from pathlib import Path

import pytest

from cxrspec.baselines import labels_request, metadata_request
from cxrspec.submit import submit
from project import FOLDER, REF, SPEC, Project, authored_project, frozen_project, refusal


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project."""
    return frozen_project(tmp_path / "frozen")


def changed(tmp_path: Path, old: str, new: str, name: str = "data/labels.csv") -> Project:
    """Return a project frozen from a source or definition with one text replaced."""
    project = authored_project(tmp_path / "changed")
    project.edit(name, old, new)
    project.freeze()
    return project


def test_the_metadata_are_age_sex_view_and_follow_up(project: Project) -> None:
    """One row per item of both subsets; the follow-up number is log(1 + n), nothing is standardized here."""
    lines = metadata_request(REF, project.registry).data.decode().splitlines()
    assert ("item_id\tage_years\tis_male\tis_ap\tlog_follow_up", 61) == (lines[0], len(lines))
    assert ["t00", "30.0", "1.0", "0.0", "0.0"] == lines[41].split("\t")
    assert ["t01", "31.0", "0.0", "1.0", repr(math.log1p(1))] == lines[42].split("\t")


def test_the_metadata_submission_is_scored_like_any_probe(project: Project) -> None:
    """It says what it is fitted on, and its score comes by the same way."""
    submit(metadata_request(REF, project.registry), project.registry)
    assert "scored" == project.score("metadata-only").state
    report = project.report("metadata-only")
    assert ("probe", "tiny@v1:train") == (report["protocol"], report["trained_on"])


def test_baselines_read_frozen_tables_and_nothing_else(project: Project) -> None:
    """Without definitions and sources the requests are the same; without a covariate table they are refused."""
    before = metadata_request(REF, project.registry)
    shutil.rmtree(project.path("specs"))
    shutil.rmtree(project.path("data"))
    assert before == metadata_request(REF, project.registry)
    project.path(f"{FOLDER}/test.covariates.tsv").unlink()
    assert ["table-missing"] == [code for code, _ in refusal(lambda: metadata_request(REF, project.registry))]


def test_an_altered_covariate_is_never_used(project: Project) -> None:
    """D2: the table of covariates is hashed like every other."""
    project.edit(f"{FOLDER}/train.covariates.tsv", "AP", "PA")
    assert ["table-altered"] == [code for code, _ in refusal(lambda: metadata_request(REF, project.registry))]


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("30,M", "413,M", "age"),
        ("30,M", ",M", "age"),
        ("30,M", "30,X", "sex"),
        ("30,M,PA,0", "30,M,LATERAL,0", "view"),
        ("30,M,PA,0", "30,M,PA,-1", "follow_up"),
    ],
)
def test_a_cell_that_is_no_value_is_refused_with_its_item(tmp_path: Path, old: str, new: str, name: str) -> None:
    """N8: an age over 110, or a word that nobody knows, is missing; nothing is filled in."""
    project = changed(tmp_path, f"t00.png,p00,test,Edema|Effusion,{old}", f"t00.png,p00,test,Edema|Effusion,{new}")
    [(code, text)] = refusal(lambda: metadata_request(REF, project.registry))
    assert ("prediction-value", True) == (code, f"1 items have no usable '{name}': t00. Nothing is filled in" in text)


@pytest.mark.parametrize("cell", ["030Y", "30Y", "30"])
def test_an_age_in_years_is_read_in_its_forms(tmp_path: Path, cell: str) -> None:
    """N8: `040Y` is forty years."""
    project = changed(tmp_path, "Edema|Effusion,30,M,PA,0", f"Edema|Effusion,{cell},M,PA,0")
    assert b"\nt00\t30.0\t" in metadata_request(REF, project.registry).data


def test_a_definition_without_covariates_has_no_metadata_baseline(tmp_path: Path) -> None:
    """The message says where a definition names them."""
    line = "  covariates: {age: age, sex: sex, view: view, follow_up: follow_up}\n"
    project = changed(tmp_path, line, "", SPEC)
    [(code, text)] = refusal(lambda: metadata_request(REF, project.registry))
    assert ("column-missing", True) == (code, "tiny@v1 froze no covariates" in text)


def test_a_definition_with_other_covariates_says_which(tmp_path: Path) -> None:
    """A covariate by another name is not guessed."""
    project = changed(tmp_path, "covariates: {age: age,", "covariates: {years: age,", SPEC)
    [(code, text)] = refusal(lambda: metadata_request(REF, project.registry))
    assert ("column-missing", True) == (code, "no covariate 'age'; frozen are follow_up, sex, view, years" in text)


def test_a_definition_without_the_protocol_is_refused(tmp_path: Path) -> None:
    """Each baseline is for one protocol; a definition without it gets a message, not a traceback."""
    project = authored_project(tmp_path)
    text = project.path(SPEC).read_text()
    head, tail = text.split("  zero_shot: {}\n")
    metrics = tail[tail.index("metrics:") :].split("  - name: ")
    kept = [one for one in metrics if "protocol: probe" not in one]
    last = metrics[-1][metrics[-1].index("expect:") :]
    project.write(SPEC, f"{head}  zero_shot: {{}}\n{'  - name: '.join(kept)}{last}")
    project.freeze()
    [(code, text)] = refusal(lambda: metadata_request(REF, project.registry))
    assert ("submission-field", True) == (code, text.endswith("'probe', which this baseline is for. It has zero_shot"))


# -- labels as scores


def mined(tmp_path: Path) -> Project:
    """Return a project with the labels frozen as a covariate, too."""
    return changed(tmp_path, "covariates: {age: age,", "covariates: {mined: findings, age: age,", SPEC)


def test_a_label_that_is_listed_scores_one(tmp_path: Path) -> None:
    """Any of the names given for a finding counts; the labels themselves are perfect."""
    project = mined(tmp_path)
    names = {"edema": ["Edema", "Oedema"], "effusion": ["Effusion"]}
    request = labels_request(REF, "mined", project.registry, covariate="mined", names=names)
    assert b"item_id\tedema\teffusion\nt00\t1\t1\nt01\t0\t0\nt02\t0\t1\n" == b"".join(request.data.splitlines(True)[:4])
    submit(request, project.registry)
    project.score("mined")
    assert [1.0, 1.0] == [score["value"] for score in project.report("mined")["scores"]]


def test_a_finding_without_a_name_is_refused(tmp_path: Path) -> None:
    """Labels that lack a finding of the definition cannot be a submission to it."""
    project = mined(tmp_path)
    request = labels_request(REF, "mined", project.registry, covariate="mined", names={"edema": ["Edema"]})
    assert ["finding-missing"] == [code for code, _ in refusal(lambda: submit(request, project.registry))]


def test_an_unknown_covariate_is_answered_with_those_there_are(project: Project) -> None:
    """The frozen covariates are listed."""
    [(code, text)] = refusal(lambda: labels_request(REF, "m", project.registry, covariate="x", names={}))
    assert ("column-missing", "covariates: no covariate 'x'; frozen are age, follow_up, sex, view") == (code, text)
