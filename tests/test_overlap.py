"""How much of what is scored the training data cover: counted by hand here, for every form and across definitions."""

import json
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from cxrspec.overlap import overlap_of
from cxrspec.report.board import overlap_text
from cxrspec.report.leaderboard import leaderboard
from cxrspec.report.markdown import markdown
from cxrspec.submission import load_submission
from cxrspec.submit import TrainingList
from project import FOLDER, REF, Project, broken, embeddings_csv, frozen_project, record_in_dvc, refusal, states

PA = (
    "test: {pool: {split: test}, select: all}",
    "test: {pool: {split: test, where: {column: view, one_of: PA}}, select: all}",
)
NO_CLAIM = ("test: {items: 20, positives: {edema: 7, effusion: 10}}", "test: {}")
PREFIX = ("item_id: {column: image, form: file_name}", "item_id: {column: image, form: file_name, prefix: w-}")
OTHER = ("main: data/labels.csv", "main: data/other.csv")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project with one scored system."""
    return frozen_project(tmp_path)


def overlap(project: Project, *trained_on: str | TrainingList) -> str:
    """Return the overlap of a system with this training data, as it is printed."""
    return overlap_text(entry(project, *trained_on))


def entry(project: Project, *trained_on: str | TrainingList, system: str = "new") -> Any:
    """Return the overlap of a system with this training data."""
    project.submit(system, trained_on=trained_on)
    return overlap_of(load_submission(project.registry, REF, system), project.lock, project.registry)


def other(project: Project, *changes: tuple[str, str], version: str = "v2") -> None:
    """Freeze another definition version."""
    project.freeze(project.define(version, *changes))


@pytest.mark.parametrize(
    ("trained_on", "text"),
    [
        (["unknown"], "unknown"),
        (["a hospital's images"], "unknown"),
        (["outside our own test list"], "unknown"),
        (["nothing"], "0"),
        (["tiny@v1:train"], "0"),
        (["outside tiny@v1:test"], "0"),
        (["outside tiny@v1:train"], "at most 20 of 20 items, 10 of 10 patients"),
        (["tiny@v1:train", "more images"], "at least 0 of 20 items, 0 of 10 patients"),
        (["outside tiny@v1:test", "more images"], "unknown"),
        ([TrainingList(b"t00\nt01\nt02\nr00\n", "l.txt")], "3 of 20 items, 2 of 10 patients"),
        ([TrainingList(b"p00\np10\np01\n", "l.txt")], "4 of 20 items, 2 of 10 patients"),
        ([TrainingList(b"t00\n", "l.txt"), TrainingList(b"p00\np01\n", "m.txt")], "4 of 20 items, 2 of 10 patients"),
        ([TrainingList(b"t00\n", "l.txt"), "outside tiny@v1:test"], "at most 1 of 20 items, 1 of 10 patients"),
        ([TrainingList(b"t00\n", "l.txt"), "more images"], "at least 1 of 20 items, 1 of 10 patients"),
    ],
)
def test_every_form_of_training_data(project: Project, trained_on: list[Any], text: str) -> None:
    """Items t00 and t01 are of patient p00, t02 and t03 of p01: each count is told by hand."""
    assert text == overlap(project, *trained_on)


def test_a_patient_counts_who_has_another_image_in_the_training_data(project: Project) -> None:
    """Each of the seven PA images has a sister outside the subset: no item is covered, and every patient is."""
    other(project, PA, NO_CLAIM)
    reference = project.define("v2", PA, NO_CLAIM)
    table = project.registry.read_table(reference, "test", project.registry.read_lock(reference).tables["test"])
    scores = "\n".join(["image,Edema,Effusion", *(f"{item},0.5,0.5" for item in table.item_ids)])
    project.submit("new", scores, reference, trained_on="outside tiny@v2:test")
    lock = project.registry.read_lock(reference)
    found = overlap_of(load_submission(project.registry, reference, "new"), lock, project.registry)
    assert "at most 0 of 7 items, 7 of 7 patients" == overlap_text(found)


@pytest.mark.parametrize("changes", [(), (PREFIX,)], ids=["same ids", "another prefix"])
def test_another_definition_of_the_same_data(project: Project, changes: tuple[tuple[str, str], ...]) -> None:
    """Its ids are compared without its prefix: images 0, 3, ... 18 of ten pairs are seven of seven patients."""
    other(project, PA, NO_CLAIM, *changes)
    found = entry(project, "tiny@v2:test")
    assert "7 of 20 items, 7 of 10 patients" == overlap_text(found)
    assert ["tiny@v2:test is the subset of 7 items, not the split of 20"] == found["notes"]


def test_a_split_of_another_definition(project: Project) -> None:
    """A split that is no subset is known from the frozen roster."""
    other(project, ("test: {where", "held: {where"), ("pool: {split: test}", "pool: {split: held}"))
    assert "20 of 20 items, 10 of 10 patients" == overlap(project, "tiny@v2:held")


def test_other_data_cover_nothing_and_say_so(project: Project) -> None:
    """Patients of two data sets may have one number: without a common image, no patient is taken for another."""
    text = project.path("data/labels.csv").read_text()
    project.write("data/other.csv", "\n".join(f"z{line}" if n else line for n, line in enumerate(text.splitlines())))
    other(project, OTHER)
    found = entry(project, "tiny@v2:test")
    note = "tiny@v2 has no image of ours by its id: taken as other data"
    assert ("0", [note]) == (overlap_text(found), found["notes"])


def test_groups_of_another_name_are_told_by_their_items(project: Project) -> None:
    """Another definition may call the patients otherwise: then our own roster says whose an image is."""
    text = project.path("data/labels.csv").read_text()  # there, the trained-on patient of r00 has the name of t00's
    project.write("data/other.csv", text.replace("png,p00", "png,q00").replace("png,p10", "png,p00"))
    other(project, OTHER)
    assert ["0", "20 of 20 items, 10 of 10 patients"] == [
        overlap_text(entry(project, f"tiny@v2:{name}", system=name)) for name in ("train", "test")
    ]


def test_an_image_that_we_do_not_know_counts_for_its_patient(project: Project) -> None:
    """A later release has one more image of p00: training on it alone covers no item of ours, and one patient."""
    text = project.path("data/labels.csv").read_text()
    project.write("data/other.csv", text + "y00.png,p00,more,Edema,30,M,AP,0\n")
    more = (
        "train: {where: {column: set, one_of: train}}",
        "train: {where: {column: set, one_of: train}}\n  more: {where: {column: set, one_of: more}}",
    )
    other(project, OTHER, more, ("roster: {items: 62}", "roster: {items: 63}"))
    assert "0 of 20 items, 1 of 10 patients" == overlap(project, "tiny@v2:more")


MORE = (
    "train: {where: {column: set, one_of: train}}",
    "train: {where: {column: set, one_of: train}}\n  more: {where: {column: set, one_of: more}}",
)


@pytest.mark.parametrize(
    ("trained_on", "text"),
    [
        (["tiny@v2:more"], "at least 0 of 20 items, 1 of 10 patients"),
        (["tiny@v2:more", "outside tiny@v1:test"], "at least 0 of 20 items, 1 of 10 patients"),
        (["tiny@v2:test"], "20 of 20 items, 10 of 10 patients"),
        (["outside tiny@v2:test"], "unknown"),
        (["tiny@v1:train", "outside tiny@v2:test"], "at least 0 of 20 items, 0 of 10 patients"),
    ],
)
def test_groups_count_whose_names_agree(project: Project, trained_on: list[str], text: str) -> None:
    """There, t02 is of another patient and y00, y02 are new: p00 is known by t00 and t01, p01 by nothing certain."""
    source = project.path("data/labels.csv").read_text().replace("t02.png,p01", "t02.png,q01")
    source += "y00.png,p00,more,Edema,30,M,AP,0\ny02.png,q01,more,Edema,30,M,AP,0\n"
    project.write("data/other.csv", source)
    other(project, OTHER, MORE, ("roster: {items: 62}", "roster: {items: 64}"))
    found = entry(project, *trained_on)
    assert text == overlap_text(found)
    note = "1 of 32 groups of tiny@v2 have images of another group here: an image that is not ours counts for its"
    assert ("exact" == found["bound"]) == (note not in f"{found['notes']}{found['reason']}")


def test_a_probe_is_counted_on_what_is_scored(project: Project) -> None:
    """The subset that a probe is fitted on is training data itself."""
    project.submit("new", embeddings_csv(), protocol="probe", trained_on="tiny@v1:train")
    submission = load_submission(project.registry, REF, "new")
    assert ["test"] == list(overlap_of(submission, project.lock, project.registry)["subsets"])


# -- in reports, boards and audits


@pytest.fixture
def listed(project: Project) -> Project:
    """Return the project with the system `seen`, whose training list has three test images."""
    project.submit("seen", trained_on=[TrainingList(b"t00\nt01\nt02\nz00\n", "l.txt")])
    project.score("seen")
    project.commit("Seen")
    return project


REPORT = f"{FOLDER}/reports/seen.json"


def test_a_report_holds_counts_and_no_id(listed: Project) -> None:
    """Not one id of the list gets into the report."""
    counts = {"items": 3, "n_items": 20, "groups": 2, "n_groups": 10}
    notes = ["trained-on.txt: 1 of 4 items are not in the roster of tiny@v1"]
    assert {"bound": "exact", "subsets": {"test": counts}, "notes": notes, "reason": None} == listed.report("seen")[
        "overlap"
    ]
    assert "t00" not in json.dumps({key: listed.report("seen")[key] for key in ("overlap", "trained_on")})


def test_score_prints_the_overlap(listed: Project) -> None:
    """Whoever scores sees it beside the numbers, and what was noticed while counting."""
    ran = listed.run("score", "tiny@v1/seen")
    assert "overlap: 3 of 20 items, 2 of 10 patients; rows left aside: 0" in ran.out
    assert "note: seen trained_on: trained-on.txt: 1 of 4 items are not in the roster" in ran.err


def test_boards_mark_the_overlap(listed: Project) -> None:
    """Each system has its own cell, and the board says what that means."""
    text = markdown(leaderboard(REF, listed.registry))
    rows = {line.split(" | ")[1]: line for line in text.splitlines() if line.startswith("| ")}
    assert "| 20 | 3 of 20 items, 2 of 10 patients | trained-on.txt (items, sha256 " in rows["seen"]
    assert "| 20 | unknown | unknown |" in rows["ours"]
    assert "overlap: how much of what is scored" in text
    assert "3 of 20 items, 2 of 10 patients" in listed.run("leaderboard", "tiny").out


def test_audit_counts_again(listed: Project) -> None:
    """The link is held and printed, and a report that says less is broken."""
    assert "held" == states(listed.audit_system("seen"))["overlap"]
    assert "overlap: 3 of 20 items, 2 of 10 patients; trained on" in listed.run("audit", "tiny@v1/seen").out
    listed.edit_json(REPORT, lambda report: report["overlap"]["subsets"]["test"].update(items=0, groups=0))
    assert ["overlap"] == broken(listed.audit_system("seen"))
    details = [link.detail for link in listed.audit_system("seen").links if link.name == "overlap"]
    assert ["the report says 0; counting again gives 3 of 20 items, 2 of 10 patients"] == details


UNCOUNTED = {"bound": None, "subsets": {}, "notes": [], "reason": "it rained"}


@pytest.mark.parametrize(
    ("change", "state"),
    [
        (lambda report: report.pop("overlap"), "not checked"),
        (lambda report: report.update(overlap=UNCOUNTED), "not checked"),
        (lambda report: report.update(overlap=None), "broken"),
    ],
    ids=["before there was any", "never counted", "none"],
)
def test_a_report_without_the_overlap_is_written_again(listed: Project, change: Any, state: str) -> None:
    """One that was never counted is not checked, one that says `unknown` against the list is broken; both gain it."""
    before = listed.path(REPORT).read_bytes()
    listed.edit_json(REPORT, change)
    assert state == states(listed.audit_system("seen"))["overlap"]
    assert ("scored", before) == (listed.score("seen").state, listed.path(REPORT).read_bytes())


def test_a_report_from_before_overlap_is_told_what_to_do(listed: Project) -> None:
    """Nothing about it is broken, and the link names the command."""
    listed.edit_json(REPORT, lambda report: report.pop("overlap"))
    [detail] = [link.detail for link in listed.audit_system("seen").links if link.name == "overlap"]
    why = "the report has none: it was written before overlap was counted"
    assert f"{why}; run 'cxrspec score tiny@v1/seen' again" == detail


def test_a_list_with_other_bytes_is_refused(listed: Project) -> None:
    """D2: the list is hashed again by `score` and by `audit`."""
    listed.write(f"{FOLDER}/submissions/seen/trained-on.txt", "r00\n")
    [(code, text)] = refusal(lambda: listed.score("seen"))
    assert ("table-altered", True) == (code, "submission.yaml says" in text)
    assert ["overlap"] == broken(listed.audit_system("seen"))


def test_the_hash_of_a_list_in_dvc_is_compared(listed: Project) -> None:
    """D2: a list is data like the predictions, and DVC must know these bytes."""
    names = [f"{FOLDER}/submissions/seen/{name}" for name in ("predictions.csv", "trained-on.txt")]
    record_in_dvc(listed, *names)
    assert "held" == states(listed.audit_system("seen"))["dvc predictions"]
    listed.edit("dvc.lock", md5(listed.path(names[1]).read_bytes()).hexdigest(), "0" * 32)
    assert ["dvc predictions"] == broken(listed.audit_system("seen"))


def test_a_list_that_is_not_here_leaves_the_overlap_as_it_was(listed: Project) -> None:
    """What another machine counted stays; nothing is counted from a list that is absent, and nothing is broken."""
    before = listed.path(REPORT).read_bytes()
    listed.path(f"{FOLDER}/submissions/seen/trained-on.txt").unlink()
    assert ("unchanged", before) == (listed.score("seen").state, listed.path(REPORT).read_bytes())
    assert ("not checked", []) == (states(listed.audit_system("seen"))["overlap"], broken(listed.audit_system("seen")))


@pytest.mark.parametrize(
    "change",
    [
        lambda report: report.update(overlap=UNCOUNTED),
        lambda report: report.update(trained_on="another-list.txt"),
        lambda report: report.update(protocol="probe"),
    ],
    ids=["never counted", "other training data", "another protocol"],
)
def test_only_counts_of_the_same_training_data_stay(listed: Project, change: Any) -> None:
    """Where the list is not here, an old reason is not passed on as if it were a count, nor are other counts."""
    listed.edit_json(REPORT, change)
    listed.path(f"{FOLDER}/submissions/seen/trained-on.txt").unlink()
    listed.score("seen")
    assert listed.report("seen")["overlap"]["reason"].endswith("trained-on.txt is not on this machine")


def test_an_overlap_that_was_never_counted_has_its_reason(listed: Project) -> None:
    """A new report says why the overlap is unknown; on a machine with the list it is counted."""
    place = f"{FOLDER}/submissions/seen/trained-on.txt"
    before, data = listed.path(REPORT).read_bytes(), listed.path(place).read_bytes()
    listed.path(place).unlink()
    listed.path(REPORT).unlink()
    scored = listed.score("seen")
    reason = f"{place} is not on this machine"
    assert reason == listed.report("seen")["overlap"]["reason"]
    assert [f"seen trained_on: {reason}"] == [str(note) for note in scored.notes if "trained_on" in str(note)]
    assert "unknown" == overlap_text(listed.report("seen")["overlap"])
    listed.write(place, data)
    assert ("scored", before) == (listed.score("seen").state, listed.path(REPORT).read_bytes())


def test_a_roster_of_another_definition_that_is_not_here_is_not_checked(project: Project) -> None:
    """The rest of the report is checked all the same."""
    other(project, PREFIX)
    project.submit("elsewhere", trained_on="tiny@v2:test")
    project.score("elsewhere")
    project.path("registry/tiny/v2/roster.tsv").unlink()
    found = states(project.audit_system("elsewhere"))
    assert ("not checked", "held") == (found["overlap"], found["scored again"])
    assert [] == broken(project.audit_system("elsewhere"))


# -- the command line


def test_training_data_of_several_kinds_are_handed_in(project: Project) -> None:
    """References, words and files stand beside each other; a file is read, not taken for words."""
    project.write("mine.txt", "t00\nt01\n")
    project.write("p.csv", project.path(f"{FOLDER}/submissions/ours/predictions.csv").read_bytes())
    options = ("--trained-on", "tiny@v1:train", "--trained-on", "mine.txt", "--trained-on", "groups:pat.txt")
    arguments = ("submit", "tiny@v1", "--system", "new", "--protocol", "zero_shot", "--predictions", "p.csv", *options)
    assert (2, True) == ((ran := project.run(*arguments)).code, "pat.txt is not a file" in ran.err)
    project.write("pat.txt", "p01\n")
    assert 0 == project.run(*arguments).code
    ran = project.run("score", "tiny@v1/new")
    assert "trained on: tiny@v1:train; trained-on-1.txt (items, sha256 " in ran.out
    assert "overlap: 4 of 20 items, 2 of 10 patients" in ran.out
