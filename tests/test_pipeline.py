"""The stages of DVC are written from the locks, beside those that a person wrote."""

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cxrspec import pipeline
from cxrspec.pipeline import ARTIFACTS, BEGIN, END, dvc_add, is_made_by_stage, is_root, stage_name, update_pipelines
from cxrspec.reference import Reference
from project import FOLDER, LOCK, REF, SPEC, Project, authored_project, frozen_project, refusal


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project that says it uses DVC."""
    project = frozen_project(tmp_path)
    project.path(".dvc").mkdir()
    return project


def stages(project: Project, name: str = "registry/dvc.yaml") -> dict[str, Any]:
    """Return the stages of a pipeline file."""
    found: dict[str, Any] = yaml.safe_load(project.path(name).read_text())["stages"]
    return found


def test_a_project_without_dvc_gets_no_pipeline(tmp_path: Path) -> None:
    """Where there is no .dvc folder nothing is written."""
    project = frozen_project(tmp_path)
    assert [] == update_pipelines(project.registry)
    assert not project.path("registry/dvc.yaml").exists()


def test_each_definition_has_one_freeze_and_one_score_stage(project: Project) -> None:
    """The stages name the definition file, the lock and every table; the lock stays in git, tables do not."""
    update_pipelines(project.registry)
    found = stages(project)
    assert ["freeze-tiny_v1", "score-tiny_v1", "leaderboard"] == list(found)
    freeze = found["freeze-tiny_v1"]
    assert ("cxrspec freeze tiny@v1", ["../specs/tiny/v1.yaml"]) == (freeze["cmd"], freeze["deps"])
    assert {"tiny/v1/lock.json": {"cache": False, "persist": True}} == freeze["outs"][0]
    assert {"tiny/v1/roster.tsv": {"persist": True}} == freeze["outs"][1]
    assert "tiny/v1/submissions" in found["score-tiny_v1"]["deps"]


def test_writing_the_stages_again_changes_nothing(project: Project) -> None:
    """The second time no file is named, written or locked."""
    assert [project.path("registry/dvc.yaml")] == update_pipelines(project.registry)
    project.path(".cxrspec/registry.lock").unlink()
    assert [] == update_pipelines(project.registry)
    assert not project.path(".cxrspec/registry.lock").exists()


def test_what_may_not_be_passed_on_is_never_pushed(tmp_path: Path) -> None:
    """`redistribute: false` gives every table `push: false`; the lock has no rows and stays in git."""
    project = authored_project(tmp_path)
    project.edit(SPEC, "attribution: nobody", "attribution: nobody\n    redistribute: false")
    project.freeze()
    project.path(".dvc").mkdir()
    update_pipelines(project.registry)
    lock, *tables = stages(project)["freeze-tiny_v1"]["outs"]
    assert {"tiny/v1/lock.json": {"cache": False, "persist": True}} == lock
    assert [{"persist": True, "push": False}] * 5 == [next(iter(table.values())) for table in tables]


@pytest.mark.parametrize(
    ("kind", "redistribute", "expected"), [("wheel", True, True), ("wheel", False, False), ("file", True, False)]
)
def test_the_root_pipeline_has_what_a_package_index_serves(
    project: Project, kind: str, redistribute: bool, expected: bool
) -> None:
    """A fresh clone can rebuild wheels that may be passed on, and nothing else."""
    lock = project.lock
    lock.document["definition"]["sources"]["labels"]["kind"] = kind
    lock.document["description"]["sources"]["labels"]["redistribute"] = redistribute
    assert expected == is_root(lock)


def test_the_stages_of_a_person_stay_as_they_are(project: Project) -> None:
    """Everything outside the two marks keeps its text, comments included."""
    text = f"# mine\nstages:\n  own: {{cmd: 'true'}}  # also mine\n{BEGIN}\n  old: {{cmd: x}}\n{END}\n# the end\n"
    project.write("registry/dvc.yaml", text)
    update_pipelines(project.registry)
    new = project.path("registry/dvc.yaml").read_text()
    assert new.startswith(f"# mine\nstages:\n  own: {{cmd: 'true'}}  # also mine\n{BEGIN}\n  freeze-tiny_v1:")
    assert f"{END}\n# the end\nartifacts:\n" in new
    assert "old" not in new


@pytest.mark.parametrize("text", ["stages: {}\n", f"stages:\n{BEGIN}\n", f"stages:\n{END}\n{BEGIN}\n"])
def test_a_pipeline_without_the_marks_is_left_alone(project: Project, text: str) -> None:
    """Without a place for our stages the two lines to add are shown, and nothing is written."""
    project.write("registry/dvc.yaml", text)
    [(code, message)] = refusal(lambda: update_pipelines(project.registry))
    assert ("file-unsafe", True) == (code, f"Put these two lines under 'stages:'\n{BEGIN}\n{END}" in message)
    assert text == project.path("registry/dvc.yaml").read_text()


def test_each_definition_is_an_artifact(project: Project) -> None:
    """DVC's registry lists it with its folder, its title and its task."""
    update_pipelines(project.registry)
    found = yaml.safe_load(project.path("registry/dvc.yaml").read_text())["artifacts"]
    assert {
        "tiny_v1": {
            "path": "tiny/v1",
            "type": "benchmark-definition",
            "desc": "A tiny benchmark",
            "labels": ["cxrspec", "findings", "tiny"],
        }
    } == found


def test_the_artifacts_of_a_person_stay_as_they_are(project: Project) -> None:
    """Ours go between two marks beside them; without the marks the lines to add are shown."""
    mine = f"stages:\n{BEGIN}\n{END}\nartifacts:\n  mine: {{path: x}} # mine\n"
    project.write("registry/dvc.yaml", mine)
    [(code, message)] = refusal(lambda: update_pipelines(project.registry))
    assert ("file-unsafe", True) == (code, "Put these two lines under 'artifacts:'" in message)
    project.write("registry/dvc.yaml", mine + "\n".join(ARTIFACTS) + "\n")
    update_pipelines(project.registry)
    text = project.path("registry/dvc.yaml").read_text()
    assert ["mine", "tiny_v1"] == list(yaml.safe_load(text)["artifacts"])
    assert "  mine: {path: x} # mine\n" in text


def test_the_leaderboard_is_made_again_when_anything_it_shows_changes(project: Project) -> None:
    """Caveats, reports, and the tables and predictions that systems are tested by; covariates are not shown."""
    update_pipelines(project.registry)
    deps = stages(project)["leaderboard"]["deps"]
    assert {"../specs/tiny/v1.yaml", "tiny/v1/reports", "tiny/v1/submissions", "tiny/v1/test.tsv"} <= set(deps)
    assert "tiny/v1/test.covariates.tsv" not in deps


def test_no_two_references_share_the_name_of_a_stage() -> None:
    """A dot, a hyphen and the border between benchmark and version stay apart."""
    references = [
        Reference(*pair) for pair in (("a", "b-c"), ("a-b", "c"), ("a", "b.c"), ("a-b", "c.d"), ("a", "b-c.d"))
    ]
    assert len(references) == len({stage_name("freeze", reference) for reference in references})


def test_dvc_accepts_the_names_of_stages() -> None:
    """DVC allows letters, digits, hyphen and underscore."""
    from dvc.stage.utils import is_valid_name

    assert is_valid_name(stage_name("freeze", Reference("a-b", "v1.0-rc.2")))


def test_reported_results_are_read_by_the_leaderboard_stage(project: Project) -> None:
    """A folder of reported results makes the leaderboard run again when it changes."""
    project.path("registry/tiny/reported").mkdir()
    update_pipelines(project.registry)
    assert "tiny/reported" in stages(project)["leaderboard"]["deps"]


def test_a_lock_frozen_meanwhile_is_not_lost(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another process froze between our look and our turn to write has its stages too."""
    real = pipeline._outdated
    looks = []

    def look_and_be_overtaken(registry: object) -> object:
        looks.append(list(real(registry)))
        if len(looks) == 1:
            project.freeze(project.define("v2"))
        return iter(looks[-1])

    monkeypatch.setattr(pipeline, "_outdated", look_and_be_overtaken)
    update_pipelines(project.registry)
    assert {"freeze-tiny_v1", "freeze-tiny_v2"} <= set(stages(project))


def test_a_damaged_lock_stops_the_rewriting(project: Project) -> None:
    """Stages of a lock that cannot be read are not dropped from the pipeline."""
    update_pipelines(project.registry)
    before = project.path("registry/dvc.yaml").read_bytes()
    project.write(LOCK, "{")
    assert ["file-unsafe"] == [code for code, _ in refusal(lambda: update_pipelines(project.registry))]
    assert before == project.path("registry/dvc.yaml").read_bytes()


def test_adding_to_dvc_needs_a_project_of_dvc(tmp_path: Path) -> None:
    """Without a .dvc folder nothing is run."""
    project = frozen_project(tmp_path)
    assert False is dvc_add(project.registry, project.path(LOCK))


def test_a_refusal_of_dvc_is_told_in_its_last_words(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a traceback nor a page of output: the last line, and what to run once it is mended."""
    monkeypatch.setattr(
        sys, "executable", str(project.write("dvc", "#!/bin/sh\necho first >&2\necho ERROR: last >&2\nexit 1\n"))
    )
    project.path("dvc").chmod(0o755)
    path = project.path(f"{FOLDER}/submissions/ours/predictions.csv")
    name = project.registry.name(path)
    message = (
        f"{name}: 'dvc add' refused it: ERROR: last. Mend that, then run 'dvc add {name}'; the file itself is whole"
    )
    assert [("file-unsafe", message)] == refusal(lambda: dvc_add(project.registry, path))


def test_predictions_that_may_not_leave_are_marked_so(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that `dvc add` wrote gets `push: false` for its one out, once."""
    path = project.path(f"{FOLDER}/submissions/ours/predictions.csv")
    monkeypatch.setattr(sys, "executable", "true")
    project.write(f"{project.registry.name(path)}.dvc", "outs:\n- md5: abc\n  path: predictions.csv\n")
    for _ in range(2):
        assert dvc_add(project.registry, path, push=False)
    added = yaml.safe_load(path.with_name("predictions.csv.dvc").read_text())
    assert {"outs": [{"md5": "abc", "path": "predictions.csv", "push": False}]} == added


def test_the_references_of_the_locks_are_all_there_is(project: Project) -> None:
    """A definition that is only authored has no stage."""
    project.define("v2")
    update_pipelines(project.registry)
    assert "freeze-tiny_v2" not in stages(project)
    assert REF == project.lock.reference


def test_predictions_that_a_stage_makes_are_not_added_to_dvc(tmp_path: Path) -> None:
    """A path that a pipeline file names as an out is the stage's; any other is added by hand."""
    project = frozen_project(tmp_path)
    path = project.path(f"{FOLDER}/submissions/metadata-only/predictions.tsv")
    assert not is_made_by_stage(project.registry, path)
    project.write("dvc.yaml", f"stages:\n  a:\n    cmd: x\n    outs:\n      - {project.registry.name(path)}\n")
    assert is_made_by_stage(project.registry, path)
