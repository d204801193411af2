"""Handing in: everything wrong is told at once and nothing is written; what is right is stored whole, once."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cxrspec.reference import Reference
from cxrspec.submit import repeat, submit
from project import (
    FOLDER,
    LOCK,
    REF,
    TEST_ITEMS,
    TRAIN_ITEMS,
    Project,
    embeddings_csv,
    frozen_project,
    refusal,
    scores_csv,
)

HEADER, *ROWS = scores_csv().splitlines()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project with one scored system."""
    return frozen_project(tmp_path)


def csv(*rows: str, header: str = HEADER) -> str:
    """Return a predictions file of these rows."""
    return "\n".join([header, *rows]) + "\n"


def test_everything_that_is_wrong_is_told_in_one_report(project: Project) -> None:
    """A missing, an unknown and a twice different item, a NaN, a missing finding and a head: six kinds at once."""
    before = project.files(".")
    rows = [*ROWS[2:], "t03,0.9,0.9", "t99,0.1,0.2", ROWS[1].replace(ROWS[1].split(",")[1], "nan")]
    data = csv(*rows, header=HEADER.replace("Effusion", "Oedema"))
    found = refusal(lambda: project.submit("new", data, heads={"fracture": "F"}))
    assert {
        "submission-field",
        "prediction-missing",
        "prediction-unknown",
        "prediction-duplicate",
        "prediction-value",
        "finding-missing",
    } == {code for code, _ in found}
    assert before == project.files(".")


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (csv(*ROWS[1:]), "prediction-missing", "1 of 20 items missing (5 % of tiny@v1:test): t00"),
        (csv(*ROWS, "t99,0.1,0.2"), "prediction-unknown", "'t99' in line 22 (nearest "),
        (csv(*ROWS, "t03,0.9,0.9"), "prediction-duplicate", "'t03' in lines 5 and 22"),
        (csv("t00,nan,0.5", *ROWS[1:]), "prediction-value", "'nan' in line 2 (t00)"),
        (csv("t00,inf,0.5", *ROWS[1:]), "prediction-value", "'inf' in line 2 (t00)"),
        (csv("t00,,0.5", *ROWS[1:]), "prediction-value", "'' in line 2 (t00)"),
        (csv(*ROWS, header="image,Edema,Mass"), "finding-missing", "no column for 'Effusion'"),
        (csv(*ROWS, header="picture,Edema,Effusion"), "column-missing", "no id column"),
        ("", "container", ""),
        ("version https://git-lfs.github.com/spec/v1\n", "source-not-data", "pointer"),
    ],
)
def test_one_fault_is_named_with_its_place(project: Project, data: str, code: str, words: str) -> None:
    """T10, T11, S5: what the file lacks or holds too much is said with line, value and count."""
    found = refusal(lambda: project.submit("new", data.encode() or b" "))
    assert any(code == one and words in text for one, text in found) or code == "container"
    assert not project.path(f"{FOLDER}/submissions/new").exists()


def test_rows_of_other_known_items_are_left_aside_with_a_count(project: Project) -> None:
    """T11: train and test in one file are fine, and the report says how many rows were not used."""
    data = scores_csv([*TEST_ITEMS, *TRAIN_ITEMS, "x00"])
    project.submit("all", data)
    project.score("all")
    assert (61, 41) == tuple(project.report("all")["predictions"][key] for key in ("n_rows", "n_left_aside"))
    notes = "; ".join(project.report("all")["notes"])
    assert "rows of items outside the subset left aside: 41 (no split 1, train 40)" in notes
    assert project.report("ours")["scores"] == project.report("all")["scores"]


def test_a_head_map_names_columns_by_name_or_by_pattern(project: Project) -> None:
    """`our=theirs`, and `*` for the source's label: both give the scores of the plain file."""
    project.submit("named", csv(*ROWS, header="image,first,p_Effusion"), heads={"edema": "first", "*": "p_*"})
    project.score("named")
    assert project.report("ours")["scores"] == project.report("named")["scores"]


def test_a_head_that_the_file_lacks_is_refused(project: Project) -> None:
    """A named head is that column and no other, also where the label itself would fit."""
    [(code, text)] = refusal(lambda: project.submit("named", scores_csv(), heads={"edema": "first"}))
    assert ("finding-missing", True) == (code, "no column for 'first'" in text)


def test_the_same_submission_again_changes_nothing(project: Project) -> None:
    """Handing in twice is no error and writes no byte."""
    before = project.files()
    project.submit()
    assert before == project.files()


@pytest.mark.parametrize("change", ["data", "card", "protocol"])
def test_another_submission_of_one_system_is_refused(project: Project, change: str) -> None:
    """A name stands for one submission; nothing of the first is lost."""
    before = project.files()
    data = embeddings_csv() if change == "protocol" else csv(*reversed(ROWS)) if change == "data" else ""
    more = {"card": {"model_name": "x"}} if change == "card" else {"protocol": "probe"} if change == "protocol" else {}
    [(code, text)] = refusal(lambda: project.submit("ours", data, **more))
    assert ("submission-field", True) == (code, "the system 'ours' has another submission already. Choose" in text)
    assert before == project.files()


@pytest.mark.parametrize("system", ["../evil", "a/b", "A", "a b", "", ".", "x" * 65])
def test_a_name_that_is_no_name_is_refused(project: Project, system: str) -> None:
    """No name of a system leaves its folder, and a bad one gives an issue, not a traceback."""
    before = project.files(".")
    assert ["system"] == [text.split(":")[0] for _, text in refusal(lambda: project.submit(system))]
    assert before == project.files(".")


def test_an_unknown_protocol_is_refused(project: Project) -> None:
    """The protocols of the lock are listed."""
    message = "protocol: unknown protocol 'linear'; tiny@v1 allows probe, zero_shot"
    assert [("submission-field", message)] == refusal(lambda: project.submit("new", protocol="linear"))


def test_a_definition_that_is_not_frozen_takes_no_submission(project: Project) -> None:
    """There are no subset ids to be made for yet."""
    reference = project.define("v2")
    assert ["frozen-unknown"] == [code for code, _ in refusal(lambda: project.submit("new", reference=reference))]


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("p.csv", "predictions.csv"),
        ("my.model.CSV.GZ", "predictions.csv.gz"),
        ("p.parquet", "predictions.parquet"),
        ("p", "predictions.csv"),
        ("../../../p.tsv", "predictions.tsv"),
    ],
)
def test_the_stored_file_has_a_name_of_ours(project: Project, name: str, stored: str) -> None:
    """Only the kind of the file is taken from the name that it was handed in under."""
    from dataclasses import replace

    from cxrspec.submit import Request

    request = replace(Request(REF, "new", "zero_shot", scores_csv().encode(), "p.csv"), file_name=name)
    assert stored == submit(request, project.registry)[0].predictions.file


def test_the_bytes_are_stored_as_they_were_handed_in(project: Project) -> None:
    """A Parquet file stays one, and its sha256 stands in the submission."""
    columns = list(zip(*(row.split(",") for row in ROWS), strict=True))
    stream = io.BytesIO()
    numbers = {
        name: [float(cell) for cell in column] for name, column in zip(("Edema", "Effusion"), columns[1:], strict=True)
    }
    pq.write_table(pa.table({"image": list(columns[0]), **numbers}), stream)
    submission = project.submit("packed", stream.getvalue())
    path = project.registry.submission_folder(REF, "packed") / submission.predictions.file
    assert stream.getvalue() == path.read_bytes()
    project.score("packed")
    assert project.report("ours")["scores"] == project.report("packed")["scores"]


def test_shuffled_rows_and_columns_change_no_number(project: Project) -> None:
    """H1: predictions are joined by id and name, never by position."""
    rows = [",".join(reversed(row.split(","))) for row in reversed(ROWS)]
    project.submit("shuffled", csv(*rows, header=",".join(reversed(HEADER.split(",")))))
    project.score("shuffled")
    assert project.report("ours")["scores"] == project.report("shuffled")["scores"]


def test_labels_in_a_predictions_file_are_not_read(project: Project) -> None:
    """N13: the reference standard comes from the registry; a column of labels is ignored with a note."""
    project.submit("labelled", csv(*(f"{row},1" for row in ROWS), header=f"{HEADER},label"))
    project.score("labelled")
    assert project.report("ours")["scores"] == project.report("labelled")["scores"]
    assert any(
        "the reference standard comes from the registry only" in note for note in project.report("labelled")["notes"]
    )


def test_a_card_without_weights_is_noted(project: Project) -> None:
    """C14: a name alone may stand for several sets of weights, and the note says how to tell them apart."""
    from cxrspec.submit import Request

    request = Request(REF, "new", "zero_shot", scores_csv().encode(), "p.csv", card={"model_name": "CheXpert"})
    notes = [str(note) for note in submit(request, project.registry)[1]]
    assert any("the system card has no weights_id: nobody can tell which weights these are" in note for note in notes)


# -- the same subsets under another definition version

METRIC = "    name: mean_auroc_zero_shot"


def later(project: Project, *changes: tuple[str, str]) -> Reference:
    """Freeze a later version."""
    reference = project.define("v2", *changes)
    project.freeze(reference)
    return reference


def test_a_submission_is_repeated_where_the_subsets_are_the_same(project: Project) -> None:
    """A version with another interval keeps the subset ids, so its submissions may be handed in again as they are."""
    reference = later(project, ("resamples: 100", "resamples: 200"))
    request = repeat(REF, "ours", reference, project.registry)
    submission, _ = submit(request, project.registry)
    assert ("tiny@v1/ours", str(reference)) == (submission.submitted_from, submission.reference)
    old, new = (project.registry.submission_folder(one, "ours") / "predictions.csv" for one in (REF, reference))
    assert old.read_bytes() == new.read_bytes()
    assert project.score("ours", reference).state == "scored"


def test_a_head_map_and_a_card_are_repeated_too(project: Project) -> None:
    """Everything that a submission says about its file goes along."""
    project.submit("named", csv(*ROWS, header="image,a,b"), heads={"edema": "a", "effusion": "b"}, card={"url": "u"})
    reference = later(project, ("resamples: 100", "resamples: 200"))
    submission, _ = submit(repeat(REF, "named", reference, project.registry), project.registry)
    assert ({"edema": "a", "effusion": "b"}, "u") == (submission.heads, submission.card and submission.card.url)


def test_a_submission_is_not_repeated_for_other_subsets(project: Project) -> None:
    """Predictions for other items are no predictions for these."""
    fewer = ("test: {pool: {split: test}, select: all}", "test: {pool: {split: test, where: VIEW}, select: all}")
    where = ("VIEW", "{column: view, one_of: PA}")
    reference = later(project, fewer, where, ("test: {items: 20, positives: {edema: 7, effusion: 10}}", "test: {}"))
    [(code, text)] = refusal(lambda: repeat(REF, "ours", reference, project.registry))
    assert "submission-reference" == code
    ids = [project.registry.read_lock(one).subset_ids["test"] for one in (reference, REF)]
    assert text.startswith(f"--from tiny@v1/ours: subset test is {ids[0]} in tiny@v2, {ids[1]} in tiny@v1")


def test_a_submission_is_not_repeated_for_other_prompts(project: Project) -> None:
    """An image-text model's scores belong to the prompts that it was given."""
    prompts = "{prompts: {edema: {positive: e, negative: no e}, effusion: {positive: f, negative: no f}}}"
    reference = later(project, ("zero_shot: {}", f"zero_shot: {prompts}"))
    [(code, text)] = refusal(lambda: repeat(REF, "ours", reference, project.registry))
    assert ("submission-reference", True) == (
        code,
        "the prompts of zero_shot differ between tiny@v1 and tiny@v2" in text,
    )


def test_a_submission_that_is_refused_itself_is_not_repeated(project: Project) -> None:
    """What was not made for the old version is not carried into the next."""
    reference = later(project, ("resamples: 100", "resamples: 200"))
    project.edit(f"{FOLDER}/submissions/ours/submission.yaml", "reference: tiny@v1", "reference: tiny@v0")
    assert ["submission-reference"] == [
        code for code, _ in refusal(lambda: repeat(REF, "ours", reference, project.registry))
    ]


def test_predictions_that_are_not_here_cannot_be_repeated(project: Project) -> None:
    """A clone that pulled no data is told to."""
    reference = later(project, ("resamples: 100", "resamples: 200"))
    project.path(f"{FOLDER}/submissions/ours/predictions.csv").unlink()
    assert ["table-missing"] == [code for code, _ in refusal(lambda: repeat(REF, "ours", reference, project.registry))]
    assert project.path(LOCK).exists()
