"""What a system was trained on: slips are refused, lists are read by the rules of predictions, words stay words."""

import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cxrspec.declared import Declared
from cxrspec.errors import SubmissionError
from cxrspec.submission import IdList, load_submission, make_submission
from cxrspec.submit import Request, TrainingList, repeat, submit
from cxrspec.training import Trained
from project import FOLDER, REF, TEST_ITEMS, Project, frozen_project, refusal

DIGEST = "0" * 64


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project with one scored system."""
    return frozen_project(tmp_path)


@pytest.fixture
def trained(project: Project) -> Trained:
    """Return the reader of training data of the project's definition."""
    return Trained(project.lock, project.registry)


def document(trained_on: Any) -> dict[str, Any]:
    """Return the fields of a submission with this training data."""
    return {
        "format": 1, "reference": "tiny@v1", "subsets": {"test": "0" * 16}, "system": "a", "protocol": "zero_shot",
        "predictions": {"file": "p.csv", "sha256": DIGEST}, "trained_on": trained_on,
    }  # fmt: skip


def refused(project: Project, *trained_on: str | TrainingList) -> list[str]:
    """Return why a submission with this training data is refused."""
    return [text for _, text in refusal(lambda: project.submit("new", trained_on=trained_on))]


# -- the field


@pytest.mark.parametrize(
    "trained_on", ["unknown", "a text", ["one", "two"], [{"file": "a", "sha256": DIGEST, "holds": "items"}, "b"]]
)
def test_every_form_is_written_as_it_is_read(trained_on: Any) -> None:
    """A text that stands alone stays a text, so the files of old are written as they were."""
    assert trained_on == make_submission(document(trained_on)).model_dump()["trained_on"]


def test_a_list_of_one_text_is_that_text() -> None:
    """Two spellings of one declaration give one file."""
    assert "a" == make_submission(document(["a"])).model_dump()["trained_on"]


@pytest.mark.parametrize(
    ("trained_on", "message"),
    [
        (5, "trained_on: 5 is neither a text nor a list"),
        ([], "trained_on: an empty list is too short"),
        ([5], "trained_on[0]: 5 is not text"),
        (["a", ""], "trained_on[1]: '' is too short"),
        ([{"file": "a", "sha256": DIGEST}], "trained_on[0].holds: this required field is missing"),
        ([{"file": "../a", "sha256": DIGEST, "holds": "items"}], "trained_on[0].file: '../a' is not"),
        ([{"file": "a", "sha256": DIGEST, "holds": "rows"}], "trained_on[0].holds: 'rows' is not allowed"),
        ([{"fiel": "a", "sha256": DIGEST, "holds": "items"}], "trained_on[0].fiel: unknown field 'fiel'; allowed"),
        (["a", "b\x00"], "trained_on[1]: the invisible character U+0000"),
    ],
)  # fmt: skip
def test_an_entry_that_is_wrong_is_named(trained_on: Any, message: str) -> None:
    """Y1-Y5: every entry of the list has its place and its own words."""
    with pytest.raises(SubmissionError) as caught:
        make_submission(document(trained_on))
    assert any(str(issue).startswith(message) for issue in caught.value.issues)


def test_entries_are_sorted_by_kind() -> None:
    """What parses as a reference is one, with or without `outside`; everything else is its author's words."""
    entries = ["a@v1:b", "outside a@v1:c", "outside the hospital", "unknown", "A@v1:b"]
    declared = Declared.of(make_submission(document(entries)))
    assert (["a@v1:b"], ["a@v1:c"]) == (list(map(str, declared.parts)), list(map(str, declared.outside)))
    assert ["outside the hospital", "unknown", "A@v1:b"] == declared.words


# -- references


def test_a_definition_that_is_not_frozen_is_answered_with_those_that_are(project: Project) -> None:
    """A slip in the name of a definition would leave the overlap unknown, silently."""
    [text] = refused(project, "tiny@v2:train")
    assert text.endswith("it was trained on tiny@v2:train; frozen are tiny@v1. Did you mean 'tiny@v1'?")


@pytest.mark.parametrize("entry", ["tiny@v1:trian", "outside tiny@v1:trian"])
def test_a_name_that_does_not_exist_is_answered_with_those_that_do(project: Project, entry: str) -> None:
    """N10: subsets and splits are listed, and the nearest is asked for."""
    [text] = refused(project, entry)
    assert text.endswith(f"it was trained on {entry}; tiny@v1 has test, train. Did you mean 'train'?")


@pytest.mark.parametrize("prefix", ["", "outside "])
def test_a_reference_without_a_subset_is_told_how_to_name_one(project: Project, prefix: str) -> None:
    """A whole definition is no training data."""
    [text] = refused(project, f"{prefix}tiny@v1")
    message = f"it was trained on {prefix}tiny@v1; tiny@v1 has test, train"
    assert text.endswith(f"{message}. Write {prefix}tiny@v1:test, or one of the others")


def test_the_files_of_splits_by_list_are_named(project: Project) -> None:
    """N11: where the publisher's split is a list, the message says which file it is."""
    project.write("data/seen.txt", "\n".join(f"r{number:02d}.png" for number in range(40)))
    split = ("train: {where: {column: set, one_of: train}}", "train: {in_list: lists/seen}")
    source = "  lists: {kind: file, files: {seen: data/seen.txt}, licence: CC0, attribution: nobody}\n"
    project.freeze(project.define("v2", split, ("items:\n", f"{source}items:\n")))
    [text] = refused(project, "tiny@v2:official")
    assert "tiny@v2 has test, train (by list: train is lists/seen). Write tiny@v2:test" in text


def test_a_split_of_this_definition_that_shares_a_group_is_refused(project: Project) -> None:
    """N10: that holds for a split that is no subset too."""
    reference = project.define("v2", ("test: {where", "held: {where"), ("pool: {split: test}", "pool: {split: held}"))
    project.freeze(reference)
    [(_, text)] = refusal(lambda: project.submit("new", reference=reference, trained_on="tiny@v2:held"))
    assert "its training data tiny@v2:held shares 10 groups with subset test: p00, p01" in text


def test_nothing_and_something_contradict_each_other(project: Project) -> None:
    """A system is trained on nothing or on something."""
    assert ["submission tiny@v1/new: it was trained on 'nothing' and on something else"] == refused(
        project, "nothing", "some images"
    )


def test_nothing_stands_there_once(project: Project) -> None:
    """Saying it twice is no contradiction, and no entry either."""
    message = "submission tiny@v1/new: it was trained on 'nothing', which stands there more than once"
    assert [message] == refused(project, "nothing", "Nothing")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Nothing", "nothing"),
        ("UNKNOWN ", "unknown"),
        ("Tiny@V1:Train", "tiny@v1:train"),
        ("Outside   tiny@v1:test", "outside tiny@v1:test"),
        ("OUTSIDE TINY@V1:TEST", "outside tiny@v1:test"),
    ],
)
def test_case_and_blanks_are_read_as_they_are_meant(project: Project, written: str, meant: str) -> None:
    """A capital letter would leave the overlap unknown, silently; the note says what was read."""
    data = project.path(f"{FOLDER}/submissions/ours/predictions.csv").read_bytes()
    submission, notes = submit(Request(REF, "new", "zero_shot", data, "p.csv", trained_on=[written]), project.registry)
    assert [meant] == submission.trained_on
    assert [f"trained_on '{written}': read as '{meant}'"] == [str(one) for one in notes if "read as" in str(one)]


@pytest.mark.parametrize("words", ["Nothing but X-rays", "Outside our hospital", "A@v1:b", "https://a.org/ids.txt"])
def test_other_words_stay_as_they_are(project: Project, words: str) -> None:
    """What names nothing frozen is its author's words, and so is an address."""
    assert [words] == project.submit("new", trained_on=[words]).trained_on


@pytest.mark.parametrize(
    "entry", ["missing_ids.txt", "my lists/ids.CSV", "./ids", "lists/", "C:\\data\\ids", "ids.txt.gz"]
)
def test_the_name_of_a_file_is_no_word(project: Project, entry: str) -> None:
    """A list that was not found would leave the overlap unknown, silently."""
    [text] = refused(project, entry)
    assert text.startswith(f"trained_on '{entry}': looks like a file or folder, and no file of that name was read")


@pytest.mark.parametrize("entry", [" ", "\t"])
def test_a_blank_is_refused(project: Project, entry: str) -> None:
    """Whoever says nothing leaves it out."""
    assert any("a blank says nothing" in text for text in refused(project, entry))


def test_a_folder_is_no_list(project: Project) -> None:
    """The command line says so, except where a folder has the name of a word."""
    project.write("lists/a.txt", "t00\n")
    project.write("nothing/a.txt", "t00\n")
    project.write("p.csv", project.path(f"{FOLDER}/submissions/ours/predictions.csv").read_bytes())
    options = ("submit", "tiny@v1", "--system", "new", "--protocol", "zero_shot", "--predictions", "p.csv")
    ran = project.run(*options, "--trained-on", "lists")
    assert (2, True) == (ran.code, "--trained-on lists is a folder; name a file of ids" in ran.err)
    assert 0 == project.run(*options, "--trained-on", "nothing").code


@pytest.mark.parametrize(("words", "noted"), [("unknown", False), ("tiny@v1:train", False), ("X-rays", True)])
def test_words_are_noted(project: Project, words: str, noted: bool) -> None:
    """An author's words stay allowed, and the note says what could be counted instead."""
    data = project.path(f"{FOLDER}/submissions/ours/predictions.csv").read_bytes()
    _, notes = submit(Request(REF, "new", "zero_shot", data, "p.csv", trained_on=words), project.registry)
    found = [str(note) for note in notes if "words of your own, so the overlap is unknown" in str(note)]
    assert [noted] * noted == ["; tiny@v1 has test, train" in note for note in found]


# -- lists


@pytest.mark.parametrize("name", ["t00", "t00.png", "t00.PNG", " t00 ", "images\\t00.png", "/data/images/t00.jpg"])
def test_the_ids_of_a_list_are_read_as_those_of_predictions(trained: Trained, name: str) -> None:
    """T1: one canonicaliser of ids for the roster, predictions and lists alike."""
    holds, covered = trained.id_list(f"{name}\n".encode(), "l.txt")
    assert ("items", {"t00"}, {"p00"}) == (holds, covered.items, covered.groups)


@pytest.mark.parametrize(
    "data",
    ["t00\nt01\n", "\ufefft00\r\nt01", "image\nt00\nt01\n", "item_id\nt00\nt01\n", "t00\n\n\nt01\nt00\n"],
    ids=["plain", "marked", "headed", "our head", "repeated"],
)
def test_a_list_is_one_id_a_line(trained: Trained, data: str) -> None:
    """T4, T7: marks, line ends, blank and repeated lines and the head of the column count for nothing."""
    assert {"t00", "t01"} == trained.id_list(data.encode(), "l.txt")[1].items


def test_a_packed_list_is_unpacked(trained: Trained) -> None:
    """T12: what holds for tables holds for lists."""
    assert {"t00"} == trained.id_list(gzip.compress(b"t00\n"), "l.txt")[1].items


def test_a_list_of_patients_covers_all_of_their_images(trained: Trained) -> None:
    """Whoever trained on a patient may have seen every image of that patient."""
    holds, covered = trained.id_list(b"p00\np10\n", "l.txt")
    assert ("groups", {"t00", "t01", "r00", "r01"}, {"p00", "p10"}) == (holds, covered.items, covered.groups)


def test_unknown_ids_are_counted(trained: Trained) -> None:
    """A training list may name images of other data; how many is said, not which."""
    note = "l.txt: 2 of 3 items are not in the roster of tiny@v1"
    assert [note] == trained.id_list(b"t00\nz00\nz01\n", "l.txt")[1].notes


@pytest.mark.parametrize("holds", [None, "items", "groups"])
def test_a_list_without_a_known_id_is_refused(trained: Trained, holds: Any) -> None:
    """Its ids are written in another way, or it is another file."""
    [(code, text)] = refusal(lambda: trained.id_list(b"z00,0.5\nz01,0.5\n", "l.txt", holds))
    kinds = holds or "items or groups"
    message = f"none of its 2 lines is among the {kinds} of the roster of tiny@v1; it has 'z00,0.5', 'z01,0.5'"
    hint = "Write one id a line, like 'r00' for an item or 'p10' for its group"
    assert ("submission-field", f"l.txt: {message}. {hint}") == (code, text)


def test_what_a_list_holds_can_be_declared(project: Project) -> None:
    """Where an id names an item and a group, only its author can tell which is meant."""
    source = project.path("data/labels.csv").read_text()
    project.write("data/twin.csv", source.replace("t00.png,p00", "p00.png,p00").replace("t01.png,p00", "t01.png,p00"))
    reference = project.define("v2", ("main: data/labels.csv", "main: data/twin.csv"))
    project.freeze(reference)
    trained = Trained(project.registry.read_lock(reference), project.registry)
    [(_, text)] = refusal(lambda: trained.id_list(b"p00\n", "l.txt"))
    assert text.endswith("and as many are groups. Say which: items:FILE or groups:FILE")
    assert [{"p00"}, {"p00", "t01"}] == [trained.id_list(b"p00", "l", holds)[1].items for holds in ("items", "groups")]


def test_patients_that_lost_their_zeros_or_gained_some_are_known(project: Project) -> None:
    """T2: a patient is a number in one file and padded in another."""
    project.write("data/labels.csv", project.path("data/labels.csv").read_text().replace("png,p", "png,1"))
    reference = project.define("v2")
    project.freeze(reference)
    trained = Trained(project.registry.read_lock(reference), project.registry)
    holds, covered = trained.id_list(b"00100\n", "l.txt")
    assert ("groups", {"100"}) == (holds, covered.groups)


def test_a_file_that_is_no_list_is_refused(trained: Trained) -> None:
    """N14: a pointer in the place of a list is told from a list."""
    [(code, text)] = refusal(lambda: trained.id_list(b"version https://git-lfs.github.com/spec/v1\n", "l.txt"))
    assert ("source-not-data", True) == (code, "git-lfs pointer" in text)


def table(rows: list[str]) -> bytes:
    """Return a Parquet file of ids."""
    stream = io.BytesIO()
    pq.write_table(pa.table({"item_id": rows}), stream)
    return stream.getvalue()


def zipped(name: str) -> bytes:
    """Return a zip that holds a file of this name."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        packed.writestr(name, "x")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (table(["t00"]), "a Parquet table"),
        (gzip.compress(table(["t00"])), "a Parquet table"),
        (zipped("[Content_Types].xml"), "an Excel or Office file"),
        (zipped("item_id.npy"), "a NumPy archive (.npz)"),
    ],
    ids=["parquet", "packed parquet", "xlsx", "npz"],
)
def test_a_table_in_the_place_of_a_list_is_named(trained: Trained, data: bytes, kind: str) -> None:
    """N14: its first bytes are told from ids, and the hint is that of a list."""
    [(code, text)] = refusal(lambda: trained.id_list(data, "l.parquet"))
    assert ("source-not-data", True) == (code, text.startswith(f"l.parquet: the file is {kind}, not a "))
    assert text.endswith("Write a text file with one entry a line")


def test_a_list_is_stored_beside_the_predictions(project: Project) -> None:
    """Its bytes, under a name of ours, with its sha256 and what it holds."""
    data = "\n".join(TEST_ITEMS).encode()
    submission = project.submit("new", trained_on=[TrainingList(data, "../my.list.txt.gz"), "more"])
    assert [["more"], ["trained-on.txt.gz"]] == [
        [one for one in submission.trained_on if isinstance(one, str)],
        [one.file for one in submission.trained_on if isinstance(one, IdList)],
    ]
    assert data == project.path(f"{FOLDER}/submissions/new/trained-on.txt.gz").read_bytes()
    assert submission == load_submission(project.registry, REF, "new")


def test_several_lists_are_numbered(project: Project) -> None:
    """Two lists of one system do not overwrite each other."""
    submission = project.submit("new", trained_on=[TrainingList(b"t00", "a.txt"), TrainingList(b"p01", "b.csv")])
    stored = [(one.file, one.holds) for one in submission.trained_on if isinstance(one, IdList)]
    assert [("trained-on-1.txt", "items"), ("trained-on-2.csv", "groups")] == stored


def test_a_list_that_is_refused_stores_nothing_and_hides_nothing(project: Project) -> None:
    """All that is wrong is told in one report."""
    found = refused(project, TrainingList(b"z00", "l.txt"), "tiny@v1:test", "tiny@v0:test")
    assert ["l.txt", "submission tiny@v1/new", "submission tiny@v1/new"] == [text.split(": ")[0] for text in found]
    assert not project.path(f"{FOLDER}/submissions/new").exists()


def test_a_list_is_repeated_under_another_version(project: Project) -> None:
    """Everything that a submission says goes along, its files too."""
    project.submit("new", trained_on=[TrainingList(b"t00", "a.txt", "items"), "more"])
    reference = project.define("v2", ("resamples: 100", "resamples: 200"))
    project.freeze(reference)
    submission, _ = submit(repeat(REF, "new", reference, project.registry), project.registry)
    assert load_submission(project.registry, REF, "new").trained_on == submission.trained_on
    assert (project.registry.submission_folder(reference, "new") / "trained-on.txt").read_bytes() == b"t00"


def test_an_empty_text_is_refused(project: Project) -> None:
    """Whoever says nothing leaves the field out; an empty word is a slip."""
    assert ["trained_on: '' is too short; at least 1 character is needed"] == refused(project, "")
