"""`submission.yaml`: read strictly, and held to the lock that it names."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cxrspec.errors import SubmissionError
from cxrspec.strict_yaml import load_document
from cxrspec.submission import (
    Submission,
    SystemCard,
    load_submission,
    make_submission,
    need_of,
    read_predictions_file,
    submission_issues,
    submission_text,
    task_of,
)
from cxrspec.submit import parse_heads
from project import FOLDER, LOCK, REF, Project, embeddings_csv, frozen_project, refusal

FILE = f"{FOLDER}/submissions/ours/submission.yaml"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project with one scored system."""
    return frozen_project(tmp_path)


def load(project: Project) -> Submission:
    """Load the submission of the system `ours`."""
    return load_submission(project.registry, REF, "ours")


def issues(project: Project, **changes: Any) -> list[str]:
    """Return why the submission, with some fields changed, was not made for the lock."""
    submission = load(project).model_copy(update=changes)
    return [str(one) for one in submission_issues(submission, project.lock, need_of(submission, project.lock), "ours")]


def test_what_submit_writes_is_read_back(project: Project) -> None:
    """The file of a submission holds every field that it was made with."""
    submission = load(project)
    assert ("tiny@v1", {"test": project.lock.subset_ids["test"]}) == (submission.reference, submission.subsets)
    assert [] == issues(project)


@pytest.mark.parametrize(
    ("old", "new", "code", "place"),
    [
        ("system: ours", "system: no", "yaml-bare-word", "5:9 system"),
        ("system: ours", "system: ours\nsystem: ours", "yaml-duplicate-key", "6:1 system"),
        ("system: ours", "system: &a ours", "yaml-anchor", "5:9 system"),
        ("system: ours", "system: !!python/name:os.system ours", "yaml-tag", "5:9 system"),
        ("system: ours", "system: 1e-4", "field-type", "5:1 system"),
        ("system: ours", "system: ../ours", "field-value", "5:1 system"),
        ("system: ours", "systen: ours", "field-unknown", "5:1 systen"),
        ("file: predictions.csv", "file: ../../../lock.json", "field-value", "8:3 predictions.file"),
        ("file: predictions.csv", "file: /etc/passwd", "field-value", "8:3 predictions.file"),
        ("file: predictions.csv", 'file: "a.csv\\n"', "field-value", "8:3 predictions.file"),
        ("format: 1", "format: 2", "field-value", "1:1 format"),
        ("format: 1", "format: 01", "field-value", "1:1 format"),
        ("trained_on: unknown", "trained_on: 2017", "field-type", "10:1 trained_on"),
    ],
)
def test_a_field_that_is_wrong_is_named_with_its_place(
    project: Project, old: str, new: str, code: str, place: str
) -> None:
    """Y1-Y5: submission.yaml is as strict as a definition, and no path leaves the folder of the submission."""
    project.edit(FILE, old, new)
    found = {(code, text.split(": ")[0]) for code, text in refusal(lambda: load(project))}
    assert (code, f"{FILE}:{place}") in found


def test_all_that_is_wrong_with_the_file_is_told_at_once(project: Project) -> None:
    """Four faults of four kinds come in one refusal, by line."""
    project.write(FILE, "format: 2\nreference: yes\nsubsets: {}\nsystem: A B\nprotocol: p\n")
    lines = [text.split(":")[1] for _, text in refusal(lambda: load(project))]
    assert lines == sorted(lines)
    assert {"1", "2", "3", "4"} <= set(lines)


def test_a_system_without_a_submission_is_answered_with_those_that_have_one(project: Project) -> None:
    """The message lists the systems and the command that makes a submission."""
    message = f"{FILE.replace('ours', 'yours')}: tiny@v1 has no submission 'yours'; it has ours"
    assert [("submission-field", f"{message}. Make one with 'cxrspec submit'")] == refusal(
        lambda: load_submission(project.registry, REF, "yours")
    )


def test_another_definition_version_is_refused(project: Project) -> None:
    """The message says where it may be scored, and how it may be repeated here."""
    [text] = issues(project, reference="tiny@v0")
    assert (
        "it was made for tiny@v0, not for tiny@v1. Score it there, or 'cxrspec submit tiny@v1 --from tiny@v0/ours'"
        in text
    )


@pytest.mark.parametrize(
    ("subsets", "message"),
    [
        ({"test": "0" * 16}, "subset test is {id}, the submission names 0000000000000000"),
        ({}, "subset test is {id}, the submission names none"),
        ({"test": "{id}", "dev": "0" * 16}, "subset dev is unknown, the submission names 0000000000000000"),
        ({"test": "{id}", "train": "0" * 16}, "subset train is {train}, the submission names 0000000000000000"),
    ],
)
def test_another_subset_id_is_refused(project: Project, subsets: dict[str, str], message: str) -> None:
    """Every subset id that a submission names must be the frozen one, also of a subset that is not needed."""
    ids = project.lock.subset_ids
    [text] = issues(project, subsets={name: value.replace("{id}", ids["test"]) for name, value in subsets.items()})
    assert message.format(id=ids["test"], train=ids["train"]) in text


def test_a_submission_in_the_folder_of_another_system_is_refused(project: Project) -> None:
    """The name of the folder and that in the file are one."""
    assert ["submission tiny@v1/ours: its folder is called 'ours', its system 'theirs'"] == issues(
        project, system="theirs"
    )


def test_an_unknown_protocol_is_answered_with_those_there_are(project: Project) -> None:
    """The lock says which protocols a submission may name."""
    submission = load(project).model_copy(update={"protocol": "few_shot"})
    message = "submission tiny@v1/ours: unknown protocol 'few_shot'; tiny@v1 allows probe, zero_shot"
    assert [("submission-field", message)] == refusal(lambda: need_of(submission, project.lock))


def test_heads_must_name_columns_of_the_lock(project: Project) -> None:
    """A head for a finding that does not exist would be used for nothing, silently."""
    [text] = issues(project, heads={"fracture": "Fracture", "edema": "E"})
    assert text.endswith("heads name fracture; tiny@v1 has edema, effusion")


@pytest.mark.parametrize("pattern", ["prob", "*_*"])
def test_a_pattern_of_heads_has_one_star(project: Project, pattern: str) -> None:
    """A pattern without a star would take one column for every finding."""
    [text] = issues(project, heads={"*": pattern})
    assert f"the pattern '{pattern}' would give every finding the same column" in text.replace("*_*", pattern)


def test_heads_mean_nothing_for_embeddings(project: Project) -> None:
    """A probe takes every feature, so a head map is a misunderstanding."""
    ids = project.lock.subset_ids
    [text] = issues(project, protocol="probe", subsets=dict(ids), heads={"*": "p_*"})
    assert "heads name columns of scores, and protocol probe takes embeddings" in text


def test_heads_are_looked_up_by_name_then_by_pattern(project: Project) -> None:
    """A name of its own wins; the star stands for the source's label."""
    submission = load(project).model_copy(update={"heads": {"edema": "E", "*": "p_*"}})
    found = [submission.column_names(name, (name.title(),)).head for name in ("edema", "effusion")]
    assert ["E", "p_Effusion"] == found


@pytest.mark.parametrize("pairs", [["edema"], ["edema="], ["=E"], ["edema=E", "edema=F"]])
def test_a_pair_without_two_names_is_refused(pairs: list[str]) -> None:
    """`--head` is our=theirs, each of ours once."""
    assert ["submission-field"] == [code for code, _ in refusal(lambda: parse_heads(pairs))]


def test_a_head_may_hold_an_equals_sign() -> None:
    """Only the first `=` separates."""
    assert {"edema": "a=b"} == parse_heads(["edema = a=b"])


def test_predictions_are_hashed_before_they_are_read(project: Project) -> None:
    """D2: a file with other bytes than the submission names is refused with both digests."""
    submission = load(project)
    project.path(f"{FOLDER}/submissions/ours/predictions.csv").write_bytes(b"x")
    [(code, text)] = refusal(lambda: read_predictions_file(project.registry, REF, "ours", submission.predictions))
    assert ("table-altered", True) == (code, f"submission.yaml says {submission.predictions.sha256[:16]}" in text)


def test_a_lock_of_an_unknown_task_asks_for_a_newer_cxrspec(project: Project) -> None:
    """A lock that a later cxrspec froze is not an accident of ours."""
    for change in ({"task": "segmentation"}, {"metrics": [{"name": "a", "kind": "later"}]}):
        lock = project.lock
        lock.document["definition"].update(change)
        [(code, text)] = refusal(lambda lock=lock: task_of(lock))
        assert ("lock-format", True) == (code, text.endswith("that this cxrspec cannot read. Install a newer cxrspec"))


def test_training_data_that_holds_a_test_patient_is_refused(project: Project) -> None:
    """N10: a declared training subset of this definition shares no patient with what is scored."""
    found = refusal(lambda: project.submit("leaky", trained_on="tiny@v1:test"))
    groups = ", ".join(f"p{number:02d}" for number in range(5))
    message = f"its training data tiny@v1:test shares 10 groups with subset test: {groups} and 5 more"
    assert [("submission-field", True)] == [(code, message in text) for code, text in found]
    assert not project.path(f"{FOLDER}/submissions/leaky").exists()


def test_training_data_apart_from_the_test_patients_is_fine(project: Project) -> None:
    """N10: the subset that a probe is fitted on may be declared, and any other words are its author's."""
    project.submit("fitted", embeddings_csv(), protocol="probe", trained_on="tiny@v1:train")
    project.submit("elsewhere", trained_on="tiny@v0:test and more")
    assert ["elsewhere", "fitted", "ours"] == project.registry.systems(REF)


def test_training_data_of_a_subset_that_does_not_exist_is_refused(project: Project) -> None:
    """N10: a declared subset with a slip of the pen would be checked against nothing."""
    [(code, text)] = refusal(lambda: project.submit("slip", trained_on="tiny@v1:trian"))
    assert ("submission-field", True) == (
        code,
        text.endswith("it was trained on tiny@v1:trian; tiny@v1 has test, train. Did you mean 'train'?"),
    )


def test_the_card_changes_no_number(project: Project) -> None:
    """C14: what a system is called, and which weights it has, is text beside the scores."""
    project.submit("official", card={"model_name": "CheXpert", "weights_id": "sha256:1"})
    project.score("official")
    assert project.report("ours")["scores"] == project.report("official")["scores"]
    assert {"model_name": "CheXpert", "weights_id": "sha256:1"} == project.report("official")["card"]


texts = st.text(min_size=1, max_size=30)


@settings(max_examples=300, deadline=None)
@given(texts, texts, st.dictionaries(texts, texts, max_size=2))
def test_any_text_survives_the_way_to_disk_and_back_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, words: str, heads: dict[str, str]
) -> None:
    """Y1-Y3, T8: words like yes, 0x1F, 1e-4, dates and quotes are text before and after; nothing is lost on the way."""
    submission = {
        "format": 1, "reference": "tiny@v1", "subsets": {"test": "0" * 16}, "system": "a", "protocol": "p",
        "predictions": {"file": "p.csv", "sha256": "0" * 64}, "card": {"model_name": name}, "trained_on": words,
        "heads": heads,
    }  # fmt: skip
    try:
        made = make_submission(submission)
    except SubmissionError as error:
        assert all("invisible character" in issue.message for issue in error.issues)
        return
    path = tmp_path_factory.getbasetemp() / "submission.yaml"
    path.write_bytes(submission_text(made))
    found, _, refused = load_document(path, shown_as="file")
    assert ([], made) == (refused, Submission.model_validate(found))


@pytest.mark.parametrize("text", ["a\x00", "a\x1b[31m", "a\u2028b", "a\rb", "\ufeffa", "\udce9"])
def test_invisible_characters_are_refused_before_anything_is_written(project: Project, text: str) -> None:
    """What could not be read back, or would act on a terminal, never gets into a file."""
    [(code, message)] = refusal(lambda: project.submit("new", trained_on=text))
    assert ("submission-field", True) == (code, message.startswith("trained_on: the invisible character U+"))
    assert not project.path(f"{FOLDER}/submissions/new").exists()


def test_an_empty_word_of_the_card_is_refused(project: Project) -> None:
    """A field of the card says something or is absent."""
    assert ["submission-field"] == [
        code for code, _ in refusal(lambda: project.submit("empty", card={"model_name": ""}))
    ]
    assert SystemCard() == SystemCard(model_name=None)


def test_the_lock_and_not_the_file_says_what_is_needed(project: Project) -> None:
    """A submission names a protocol; columns and subsets follow from the lock alone."""
    need = need_of(load(project), project.lock)
    assert (("test",), ["edema", "effusion"]) == (need.subsets, [column.name for column in need.columns])
    assert project.path(LOCK).exists()
