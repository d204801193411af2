"""Head maps: the heads of known classifiers by name, matrices without names, and heads that were never trained."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cxrspec.errors import SubmissionError
from cxrspec.ids import IdRule
from cxrspec.predictions import ColumnNames, ExpectedItems, Scores, read_scores
from cxrspec.predictions.head_maps import HEAD_MAPS, HeadMap, heads_of, map_issues
from cxrspec.submission import load_submission, submission_issues, task_of
from cxrspec.submit import repeat, submit
from cxrspec.tasks import PredictionNeed
from project import FOLDER, REF, TEST_ITEMS, Project, frozen_project, refusal, scores_csv

IDS = ["a", "b", "c"]
EXPECTED = ExpectedItems(IDS, IdRule("file_name"), ["image"], lambda: {"d": "train"}, "b@v:test")
EDEMA, EFFUSION = ColumnNames("edema", ("Edema",)), ColumnNames("pleural_effusion", ("Effusion",))
XRV = [name for name in HEAD_MAPS if name.startswith("torchxrayvision-")]


def matrix(name: HeadMap) -> np.ndarray:
    """Return scores [3, n_heads]: the head's position / 100, plus the row's number / 10; NaN where a head is blank."""
    heads = np.array([at / 100 if head else np.nan for at, head in enumerate(HEAD_MAPS[name])])
    return heads + np.arange(3)[:, np.newaxis] / 10


def archive(scores: np.ndarray, **more: Any) -> bytes:
    """Return a NumPy archive of scores, the rows in another order than the ids."""
    stream = io.BytesIO()
    np.savez(stream, ids=np.array(["c.png", "a.png", "b.png"]), scores=scores[[2, 0, 1]], **more)
    return stream.getvalue()


def parquet(scores: np.ndarray, kind: Any) -> bytes:
    """Return a Parquet file of ids and one column of lists."""
    stream = io.BytesIO()
    pq.write_table(pa.table({"image": IDS, "scores": pa.array(scores.tolist(), kind)}), stream)
    return stream.getvalue()


def read(data: bytes | Sequence[str], head_map: HeadMap | None, *columns: ColumnNames) -> Scores:
    """Read scores from bytes or the lines of a file."""
    content = data if isinstance(data, bytes) else "\n".join(data).encode()
    return read_scores(content, columns or (EDEMA, EFFUSION), EXPECTED, name="p", head_map=head_map)


def refused(data: bytes | Sequence[str], head_map: HeadMap | None, *columns: ColumnNames) -> str:
    """Return the text of a refusal."""
    with pytest.raises(SubmissionError) as caught:
        read(data, head_map, *columns)
    return str(caught.value)


# -- the maps themselves


def test_every_map_that_a_submission_may_name_has_its_heads() -> None:
    """The names in submission.yaml and the maps are the same."""
    assert list(get_args(HeadMap)) == list(HEAD_MAPS)


@pytest.mark.parametrize(
    ("name", "n_heads", "n_blank"),
    [
        ("torchxrayvision-all", 18, 0),
        ("torchxrayvision-nih", 18, 4),
        ("torchxrayvision-pc", 18, 3),
        ("torchxrayvision-chex", 18, 7),
        ("torchxrayvision-mimic_nb", 18, 7),
        ("torchxrayvision-mimic_ch", 18, 7),
        ("torchxrayvision-rsna", 18, 16),
        ("chexpert", 14, 0),
        ("nih", 14, 0),
        ("nih-alphabetical", 14, 0),
    ],
)
def test_heads_and_blank_heads_are_as_many_as_published(name: HeadMap, n_heads: int, n_blank: int) -> None:
    """S9: 4 blank heads in nih, 3 in pc, 7 in chex and mimic, 16 in rsna."""
    assert (n_heads, n_blank) == (len(HEAD_MAPS[name]), HEAD_MAPS[name].count(""))


def test_the_two_orders_of_nih_hold_the_same_heads() -> None:
    """CheXNet's order begins with the eight of ChestX-ray8; both have all fourteen once."""
    assert sorted(HEAD_MAPS["nih"]) == list(HEAD_MAPS["nih-alphabetical"])
    assert [len(HEAD_MAPS[name]) == len(set(HEAD_MAPS[name])) for name in ("nih", "chexpert")] == [True, True]


@pytest.mark.parametrize(
    ("name", "spellings", "head"),
    [
        ("torchxrayvision-all", ["pleural_effusion"], "Effusion"),
        ("torchxrayvision-all", ["fluid", "Pleural Effusion"], "Effusion"),
        ("chexpert", ["effusion"], "Pleural Effusion"),
        ("chexpert", ["airspace_opacity", "Airspace opacity"], "Lung Opacity"),
        ("nih", ["pleural_thickening"], "Pleural_Thickening"),
        ("nih", ["thickening", "Pleural Thickening"], "Pleural_Thickening"),
        ("nih", ["x", "P.T."], "Pleural_Thickening"),
        ("nih", ["infiltration", "Infiltrate"], "Infiltration"),
        ("torchxrayvision-all", ["CARDIOMEGALY"], "Cardiomegaly"),
    ],
)
def test_a_finding_is_found_by_its_concept(name: HeadMap, spellings: list[str], head: str) -> None:
    """C7, N1, N2: one finding has many spellings, and each model its own."""
    assert [head] == heads_of(name, spellings)


@pytest.mark.parametrize("spelling", ["lesion", "thickening", "pleural", "opacity", "nodule_or_mass", ""])
def test_a_part_of_a_name_is_no_name(spelling: str) -> None:
    """A finding that merely resembles a head is not taken for it."""
    assert [[]] * len(HEAD_MAPS) == [heads_of(name, [spelling]) for name in HEAD_MAPS]


def test_a_finding_without_a_trained_head_is_refused() -> None:
    """S9: a head that is blank in these weights is named as such; what the model never had is not."""
    findings = {"mass": ["mass", "Mass"], "edema": ["Edema"], "scoliosis": ["Scoliosis"]}
    [issue] = map_issues("torchxrayvision-chex", findings, "s")
    message = (
        "s: torchxrayvision-chex has no trained head for mass (its head 'Mass' is blank), scoliosis; it has Atelectasis"
    )
    assert ("finding-missing", True) == (issue.code, str(issue).startswith(message))


def test_a_finding_that_is_two_heads_is_refused() -> None:
    """Which of the two counts, only the author can say."""
    [issue] = map_issues("nih", {"nodule_or_mass": ["Nodule", "Mass"]}, "s")
    assert str(issue) == "s: 2 heads of nih fit nodule_or_mass: Mass, Nodule. Say which: --head 'nodule_or_mass=Mass'"


# -- matrices without names


@pytest.mark.parametrize("name", [one for one in HEAD_MAPS if one != "torchxrayvision-rsna"])
@pytest.mark.parametrize(
    "form",
    [
        archive,
        lambda scores: archive(scores.astype(np.float64), view=np.array(["AP"] * 3)),
        lambda scores: parquet(scores, pa.list_(pa.float64())),
        lambda scores: parquet(scores, pa.list_(pa.float64(), scores.shape[1])),
    ],
    ids=["npz", "npz with more", "list", "fixed list"],
)
def test_a_matrix_takes_its_names_from_the_map(name: HeadMap, form: Any) -> None:
    """S9: each finding is read from the place of its head, whatever the order of the rows."""
    places = [HEAD_MAPS[name].index(heads_of(name, [spelling])[0]) / 100 for spelling in ("Edema", "Effusion")]
    expected = np.array(places) + np.arange(3)[:, np.newaxis] / 10
    columns = [ColumnNames(one.name, tuple(heads_of(name, one.fits))) for one in (EDEMA, EFFUSION)]
    np.testing.assert_array_equal(expected, read(form(matrix(name)), name, *columns).values)


def test_blank_heads_of_a_matrix_are_dropped_with_a_note() -> None:
    """S9: whatever stands in them, NaN or 0.5, is not read; the order that was assumed is told."""
    notes = [str(note) for note in read(archive(matrix("torchxrayvision-nih")), "torchxrayvision-nih").notes]
    [order] = [note for note in notes if "in the order of torchxrayvision-nih" in note]
    assert "Atelectasis, Consolidation, Infiltration, Pneumothorax" in order
    assert order.endswith("Mass, Hernia; 4 blank heads dropped")


@pytest.mark.parametrize(
    ("width", "name", "message"),
    [
        (14, "torchxrayvision-all", "14 columns of scores, but torchxrayvision-all has 18 heads. As many heads"),
        (17, "torchxrayvision-nih", "17 columns of scores, but torchxrayvision-nih has 18 heads. Give one"),
        (18, None, "18 columns of scores without names. If its columns are the heads of"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", [archive, lambda scores: parquet(scores, pa.list_(pa.float32()))], ids=["npz", "list"])
def test_a_matrix_of_another_width_or_without_a_map_is_refused(width: int, name: Any, message: str, form: Any) -> None:
    """Nothing is taken by position that nobody has named."""
    assert message in refused(form(np.zeros((3, width))), name)


def test_a_column_of_lists_beside_named_scores_is_ignored() -> None:
    """Whoever keeps embeddings in the file of scores has named the scores."""
    stream = io.BytesIO()
    table = {"image": ["a", "b", "c"], "Edema": [0.1, 0.2, 0.3], "Effusion": [0.0, 0.5, 1.0], "x": [[1.0]] * 3}
    pq.write_table(pa.table(table), stream)
    assert [[0.1, 0.0], [0.2, 0.5], [0.3, 1.0]] == read(stream.getvalue(), None).values.tolist()


def test_lists_of_integers_are_told_from_scores() -> None:
    """An integer is no score of a classifier, and the message says what stands there."""
    data = parquet(np.zeros((3, 18), dtype=np.int64), pa.list_(pa.int64()))
    assert "holds lists of integers or lists of lists; scores are one list of floats per row" in refused(data, "nih")


def test_a_matrix_is_read_as_strictly_as_a_table() -> None:
    """T10, T11, S5: missing and unknown ids, and numbers that are not finite, are refused with their places."""
    scores = matrix("nih")
    scores[0, HEAD_MAPS["nih"].index("Edema")] = np.nan
    stream = io.BytesIO()
    np.savez(stream, ids=np.array(["c.png", "a.png", "x.png"]), scores=scores[[2, 0, 1]])
    text = refused(stream.getvalue(), "nih")
    assert "1 of 3 items missing" in text and "'x.png' in line 3" in text
    assert "column 'Edema': no finite number in 1 of 2 rows: 'nan' in line 2 (a.png)" in text


def test_a_matrix_whose_rows_differ_in_length_is_refused() -> None:
    """A row that lacks a head cannot be read by position."""
    rows = [[0.1] * 14, [0.1] * 13, [0.1] * 14]
    stream = io.BytesIO()
    pq.write_table(pa.table({"image": IDS, "scores": rows}), stream)
    assert "p:2: not the 14 numbers that most have in 1 of 3 rows: 'b' in line 2 has 13" in refused(
        stream.getvalue(), "nih"
    )


def test_logits_are_taken_as_they_are() -> None:
    """S6: rank metrics take any finite number, with a note that they are none in [0, 1]."""
    found = read(archive(matrix("chexpert") * 40 - 3), "chexpert", EDEMA)
    assert found.values.min() < 0 and found.values.max() > 1
    assert any("values outside [0, 1]" in str(note) for note in found.notes)


def test_no_finding_is_no_finding() -> None:
    """N12: the fifteenth class follows from the findings; a score for it is ignored with a note."""
    notes = [str(note) for note in read(archive(matrix("chexpert")), "chexpert", EDEMA).notes]
    assert any("1 column ignored (it follows from the findings): 'No Finding'" in note for note in notes)


# -- tables with names


def test_columns_of_a_table_are_found_by_the_heads_of_the_map() -> None:
    """S9: columns without a name are dropped with a note; the values of the others are those of a plain file."""
    lines = ["image,Effusion,,Edema,", "a,0.1,0.5,0.2,0.5", "b,0.3,0.5,0.4,0.5", "c,0.5,0.5,0.6,0.5"]
    found = read(lines, "torchxrayvision-chex")
    assert [[0.2, 0.1], [0.4, 0.3], [0.6, 0.5]] == found.values.tolist()
    assert any("columns without a name dropped: 2" in str(note) for note in found.notes)


@pytest.mark.parametrize("name", HEAD_MAPS)
def test_calibrated_scores_are_told_from_probabilities(name: HeadMap) -> None:
    """S10: torchxrayvision's own calibration is noted, and no other model's."""
    pneumonia = ColumnNames("pneumonia", ("Pneumonia",))
    notes = [str(note) for note in read(archive(matrix(name)), name, pneumonia).notes]
    assert (name in XRV) == any("its values rank, and are no probabilities" in note for note in notes)


# -- submissions


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project with one scored system."""
    return frozen_project(tmp_path)


def submitted(project: Project, head_map: str = "torchxrayvision-chex", threshold: float = 0.5) -> None:
    """Submit the project's scores as a matrix of the heads of a map, the blank ones at 0.5, and score it.

    The scores are mapped as torchxrayvision does, so that a threshold becomes 0.5: one of 0.5 changes nothing.
    """
    rows = [line.split(",")[1:] for line in scores_csv().splitlines()[1:]]
    raw = np.array(rows, dtype=np.float64)
    mapped = np.where(raw < threshold, raw / (2 * threshold), 1 - (1 - raw) / (2 * (1 - threshold)))
    own = dict(zip(("Edema", "Effusion"), mapped.T, strict=True))
    heads: Any = HEAD_MAPS[head_map]  # type: ignore[index]
    columns = [own.get(head.removeprefix("Pleural "), np.full(len(TEST_ITEMS), 0.5)) for head in heads]
    stream = io.BytesIO()
    np.savez(stream, item_id=np.array(TEST_ITEMS), scores=np.array(columns).T)
    project.submit("mapped", stream.getvalue(), head_map=head_map)
    project.score("mapped")


@pytest.mark.parametrize("head_map", ["torchxrayvision-all", "torchxrayvision-nih", "chexpert", "nih"])
def test_a_matrix_with_a_map_scores_as_the_plain_file_does(project: Project, head_map: str) -> None:
    """The map is stored by its name, and resolved whenever the file is read."""
    submitted(project, head_map)
    assert project.report("ours")["scores"] == project.report("mapped")["scores"]
    assert f"\nhead_map: {head_map}\n" in project.path(f"{FOLDER}/submissions/mapped/submission.yaml").read_text()
    assert "scored again" not in [link.name for link in project.audit_system("mapped").links if link.state != "held"]


def test_a_calibrated_head_has_the_ranks_of_the_raw_one(project: Project) -> None:
    """S10: mapping the operating point to 0.5 leaves both metrics and their intervals as they were."""
    submitted(project, threshold=0.0983)
    assert project.report("ours")["scores"] == project.report("mapped")["scores"]


def test_pairs_win_over_the_map(project: Project) -> None:
    """`--head` says otherwise for one finding; the map holds for the rest, and the star stands for its heads."""
    lines = scores_csv().splitlines()
    project.submit(
        "pair",
        "\n".join(["image,mine,Effusion", *lines[1:]]),
        head_map="chexpert",
        heads={"edema": "mine", "effusion": "Effusion"},
    )
    project.submit(
        "star", "\n".join(["image,p_Edema,p_Pleural Effusion", *lines[1:]]), head_map="chexpert", heads={"*": "p_*"}
    )
    for system in ("pair", "star"):
        project.score(system)
        assert project.report("ours")["scores"] == project.report(system)["scores"]


def test_a_required_finding_whose_head_is_blank_is_refused(project: Project) -> None:
    """S9: also where a column of that name is in the file, and not where a column of one's own stands for it."""
    [(code, text)] = refusal(lambda: project.submit("blank", head_map="torchxrayvision-rsna"))
    message = (
        "torchxrayvision-rsna has no trained head for edema (its head 'Edema' is blank), effusion (its head 'Effusion'"
    )
    assert ("finding-missing", True) == (code, message in text)
    assert not project.path(f"{FOLDER}/submissions/blank").exists()
    project.submit("own", head_map="torchxrayvision-rsna", heads={"edema": "Edema", "effusion": "Effusion"})
    assert "torchxrayvision-rsna" == load_submission(project.registry, REF, "own").head_map


def test_an_unknown_map_is_answered_with_those_there_are(project: Project) -> None:
    """A slip of the pen is told from a map."""
    [(code, text)] = refusal(lambda: project.submit("slip", head_map="torchxrayvision-chexpert"))
    assert ("submission-field", True) == (
        code,
        "head_map: 'torchxrayvision-chexpert' is not allowed; allowed are" in text,
    )


def test_a_map_means_nothing_for_embeddings(project: Project) -> None:
    """A probe takes every feature, whatever they are called."""
    found = refusal(lambda: project.submit("probe", protocol="probe", head_map="chexpert"))
    assert any("heads name columns of scores, and protocol probe takes embeddings" in text for _, text in found)


@pytest.mark.parametrize("kind", ["boxes", "heatmaps", "answers"])
def test_a_map_means_nothing_without_columns_of_scores(project: Project, kind: Any) -> None:
    """It is refused where a protocol takes anything else, not stored without use."""
    submission = project.submit("mapped", head_map="chexpert")
    need = PredictionNeed(kind, ("test",), task_of(project.lock).prediction_need("zero_shot").columns)
    [issue] = submission_issues(submission, project.lock, need, "mapped")
    assert f"a head map names columns of scores, and protocol zero_shot takes {kind}" in issue.message


def test_a_map_is_repeated_under_another_version(project: Project) -> None:
    """Everything that a submission says about its file goes along."""
    submitted(project)
    reference = project.define("v2", ("resamples: 100", "resamples: 200"))
    project.freeze(reference)
    assert (
        "torchxrayvision-chex"
        == submit(repeat(REF, "mapped", reference, project.registry), project.registry)[0].head_map
    )


def test_a_map_is_named_on_the_command_line(project: Project) -> None:
    """`--head-map` with a file whose columns are the model's own."""
    project.write("p.csv", scores_csv(columns=("Edema", "Pleural Effusion")))
    options = ("--system", "new", "--protocol", "zero_shot", "--predictions", "p.csv", "--head-map", "chexpert")
    assert 0 == project.run("submit", "tiny@v1", *options).code
    assert "chexpert" == load_submission(project.registry, REF, "new").head_map
