"""Zero-shot from image-text models: similarities against scikit-learn and by hand, archives read whole or refused."""

from __future__ import annotations

import gzip
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import cosine_similarity

from cxrspec.definition import parse_definition
from cxrspec.errors import SubmissionError
from cxrspec.ids import IdRule
from cxrspec.metrics.similarity import prompt_scores
from cxrspec.predictions import ColumnNames, ExpectedItems, Scores
from cxrspec.predictions.prompts import ExpectedPrompts, is_prompt_archive, read_prompt_scores
from project import REF, SPEC, TEST_ITEMS, Project, authored_project, refusal, scores_csv, value
from test_definition import codes, edited, wide
from test_embeddings import archive

ITEMS = ExpectedItems(["a", "b", "c"], IdRule("file_name"), ["image"], dict, "b@v:test")
COLUMNS = (ColumnNames("edema", ("Edema",)), ColumnNames("effusion", ("Effusion", "Pleural Effusion")))
TEXTS = {"edema": ("œdème présent", "no edema"), "effusion": ("an effusion", "no effusion")}
PROMPTS = ExpectedPrompts(COLUMNS, TEXTS, "cosine_difference")
IMAGES = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]])
ARRAYS: dict[str, Any] = {
    "item_id": np.array(["c.png", "a.png", "b.png"]),
    "embeddings": IMAGES[[2, 0, 1]],
    "prompt_finding": np.array(["effusion", "edema", "Pleural Effusion", "Edema"]),
    "prompt_polarity": np.array(["positive", "negative", "negative", "positive"]),
    "prompt_text": np.array(["an effusion", "no edema", "no effusion", "œdème présent"]),
    "prompt_embeddings": np.array([[0.0, 5.0], [0.0, 1.0], [-1.0, 0.0], [2.0, 0.0]]),
}


def read(prompts: ExpectedPrompts = PROMPTS, **changes: Any) -> Scores:
    """Read an archive with some arrays changed; None leaves one out."""
    arrays = {key: array for key, array in (ARRAYS | changes).items() if array is not None}
    return read_prompt_scores(archive(**arrays), prompts, ITEMS, name="p")


def refused(prompts: ExpectedPrompts = PROMPTS, **changes: Any) -> list[tuple[str, str]]:
    """Return code and text of every issue."""
    with pytest.raises(SubmissionError) as error:
        read(prompts, **changes)
    return [(issue.code, str(issue)) for issue in error.value.issues]


def changed(name: str, row: int, cell: Any) -> dict[str, Any]:
    """Return an array of the archive with one row changed."""
    array = ARRAYS[name].astype(object) if ARRAYS[name].dtype.kind == "U" else ARRAYS[name].copy()
    array[row] = cell
    return {name: np.array(array.tolist())}


# -- the similarity


@pytest.mark.parametrize("n", [1, 5, 1025])
def test_cosines_are_those_of_scikit_learn(n: int) -> None:
    """The score is cosine_similarity to the positive minus that to the negative, whatever the lengths."""
    rng = np.random.default_rng(n)
    images, positive, negative = (rng.normal(size=(rows, 64)) * 7 for rows in (n, 5, 5))
    expected = cosine_similarity(images, positive) - cosine_similarity(images, negative)
    assert expected == pytest.approx(prompt_scores(images, positive, negative, "cosine_difference"), abs=1e-12)
    dots = images @ positive.T - images @ negative.T
    assert dots == pytest.approx(prompt_scores(images, positive, negative, "dot_difference"), abs=1e-10)


def test_similarities_by_hand() -> None:
    """(3, 4) has cosine 0.6 with the first axis and 0.8 with the second, and dot products 6 and 4."""
    one, plus, minus = np.array([[3.0, 4.0]]), np.array([[2.0, 0.0]]), np.array([[0.0, 1.0]])
    assert pytest.approx(-0.2) == prompt_scores(one, plus, minus, "cosine_difference")[0, 0]
    assert 2.0 == prompt_scores(one, plus, minus, "dot_difference")[0, 0]


def test_equal_images_are_tied_wherever_they_stand() -> None:
    """A score depends on its own row alone, to the last bit, so no tie is broken by a block of rows."""
    rng = np.random.default_rng(0)
    image, prompts = rng.normal(size=513), rng.normal(size=(2, 3, 513))
    others = rng.normal(size=(2050, 513))
    others[[0, 7, 1023, 1024, 2049]] = image
    scores = prompt_scores(others, *prompts, "cosine_difference")
    alone = prompt_scores(image[np.newaxis], *prompts, "cosine_difference")
    assert (scores[[0, 7, 1023, 1024, 2049]] == alone).all()


@pytest.mark.parametrize(("width", "similarity"), [(3, "cosine_difference"), (2, "euclidean")])
def test_what_cannot_be_compared_is_refused(width: int, similarity: Any) -> None:
    """Another width or another word is a fault of the caller."""
    with pytest.raises(ValueError, match=r"numbers|cannot score"):
        prompt_scores(IMAGES, np.ones((1, width)), np.ones((1, width)), similarity)


# -- the archive


def test_an_archive_is_scored_by_ids_and_names() -> None:
    """Images go to the items by id, prompts to the findings by name; the order of neither matters."""
    expected = [[0.6 - 0.8, 0.8 + 0.6], [1.0 - 0.0, 0.0 + 1.0], [0.0 - 1.0, 1.0 - 0.0]]
    found = read()
    assert expected == pytest.approx(found.values, abs=1e-15)
    assert (3, 0) == (found.n_rows, found.n_left_aside)
    assert ["p: cosine_difference of 4 prompts, in embeddings of 2 numbers"] == list(map(str, found.notes))
    assert [[6 - 4, 20 + 3], [2, 1], [-2, 10]] == read(replace(PROMPTS, similarity="dot_difference")).values.tolist()


def test_t8_texts_are_compared_composed() -> None:
    """T8: an accent is one, however it is written."""
    text = unicodedata.normalize("NFD", "œdème présent")
    assert text != "œdème présent"
    assert 3 == len(read(**changed("prompt_text", 3, text)).values)


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        (
            changed("prompt_text", 1, "No edema"),
            "prompt",
            "p prompt 2 (edema negative): found 'No edema', expected 'no edema'",
        ),
        (changed("prompt_polarity", 1, "neutral"), "prompt", "p prompt 2 (edema neutral): the definition has no such"),
        (
            changed("prompt_finding", 1, "mass"),
            "prompt",
            "no such prompt; it has positive and negative of edema, effusion",
        ),
        (changed("prompt_finding", 1, "mass"), "prompt", "p: no prompt for edema negative. Every finding needs both"),
        (changed("prompt_polarity", 1, "positive"), "prompt", "p prompt 4 (Edema positive): repeats prompt 2"),
        (
            changed("prompt_embeddings", 1, [0, 0]),
            "prediction-value",
            "p prompt_embeddings: length zero, below 1e-150 or beyond 1e150, in 1 of 4: prompts 2",
        ),
        (
            changed("prompt_embeddings", 1, [0, np.inf]),
            "prediction-value",
            "p prompt_embeddings: no finite number in 1 of 4: prompts 2",
        ),
        (
            changed("embeddings", 1, [0, 0]),
            "prediction-value",
            "p:2 embedding: length zero, below 1e-150 or beyond 1e150, in 1 of 3 embeddings: line 2 (a.png)",
        ),
        (
            changed("embeddings", 1, [1e200, 0]),
            "prediction-value",
            "length zero, below 1e-150 or beyond 1e150, in 1 of 3 embeddings",
        ),
        (changed("embeddings", 1, [np.nan, 0]), "prediction-value", "p:2 embedding: no finite number in 1 of 3 rows"),
        ({"embeddings": np.ones((3, 5))}, "row-shape", "embeddings of images have 5 numbers, those of prompts 2"),
        ({"prompt_text": None}, "column-missing", "no usable prompt_text; the file has item_id <U5[3]"),
        ({"prompt_text": np.array(["x"])}, "row-shape", "arrays of prompts of different lengths: prompt_finding 4"),
        (changed("item_id", 0, "a.png"), "prediction-missing", "1 of 3 items missing"),
        (changed("item_id", 0, "a.png"), "prediction-duplicate", "an id repeated with other values"),
    ],
)
def test_what_is_not_the_definitions_is_refused(changes: dict[str, Any], code: str, message: str) -> None:
    """Each difference from the definition is shown: what was found, and what was expected."""
    assert [True] == [message in text for found, text in refused(**changes) if found == code and message in text]


def test_all_problems_of_an_archive_come_in_one_pass() -> None:
    """Texts, ids, numbers: one refusal tells them all."""
    changes = changed("prompt_text", 1, "x") | changed("item_id", 0, "z.png") | changed("embeddings", 1, [0, 0])
    assert ["prediction-missing", "prediction-unknown", "prediction-value", "prompt"] == sorted(
        code for code, _ in refused(**changes)
    )


@pytest.mark.parametrize(
    ("prompts", "lacking"),
    [
        (replace(PROMPTS, texts={}), "declares no prompts"),
        (replace(PROMPTS, similarity=None), "declares no similarity"),
    ],
)
def test_a_definition_that_says_nothing_of_prompts_takes_none(prompts: ExpectedPrompts, lacking: str) -> None:
    """Without prompts, or without a similarity, nothing says how to score an archive."""
    assert [("prompt", True)] == [(code, lacking in text) for code, text in refused(prompts)]


def test_heads_are_for_scores() -> None:
    """A map of columns has nothing to map in an archive."""
    assert ["submission-field"] == [code for code, _ in refused(replace(PROMPTS, has_heads=True))]


@pytest.mark.parametrize(("factor", "is_usable"), [(1e-170, False), (1e-140, True), (1e160, False)])
def test_short_and_long_vectors_are_told_from_zero(factor: float, is_usable: bool) -> None:
    """A vector is compared by direction alone, unless its length cannot be divided by: then that is what is said."""
    if is_usable:
        assert read().values == pytest.approx(read(embeddings=ARRAYS["embeddings"] * factor).values)
        return
    [(_, text)] = refused(embeddings=ARRAYS["embeddings"] * factor)
    assert "length zero, below 1e-150 or beyond 1e150, in 3 of 3 embeddings" in text


def test_the_embeddings_of_images_are_found_by_their_name() -> None:
    """Other matrices in the archive are ignored with a note, as long as one is called `embeddings`."""
    with_others = read(logits=np.ones((3, 5)), patches=np.ones((3, 2)))
    assert read().values.tolist() == with_others.values.tolist()
    assert "p: other arrays ignored: logits, patches" in map(str, with_others.notes)


def test_nothing_is_unpickled() -> None:
    """F1: texts that can only be read by unpickling are refused."""
    [(code, text)] = refused(prompt_text=ARRAYS["prompt_text"].astype(object))
    assert ("container", True) == (code, "without unpickling" in text)


def test_only_an_archive_with_prompts_is_one() -> None:
    """A table and an archive of plain embeddings are none."""
    assert is_prompt_archive(archive(**ARRAYS))
    assert not is_prompt_archive(archive(item_id=ARRAYS["item_id"], embeddings=IMAGES))
    assert not is_prompt_archive(b"image,edema\na,1\n")


def test_c1_the_views_of_a_study_are_scored_before_they_are_aggregated() -> None:
    """C1: a study's score is the largest of its views' scores, never that of a mean embedding."""
    study = ExpectedItems(["valid/p1/study1"], IdRule("study_path"), ["Path"], dict, "b@v:test")
    views = np.array([f"X/valid/p1/study1/view{view}.jpg" for view in (1, 2)])
    data = archive(**(ARRAYS | {"item_id": views, "embeddings": IMAGES[:2]}))
    found = read_prompt_scores(data, replace(PROMPTS, aggregate="max"), study, name="p")
    assert [[1.0, 1.4]] == pytest.approx(found.values)
    assert 2 == found.n_aggregated


# -- from definition to report


def prompted(root: Path, similarity: str = ", similarity: cosine_difference") -> Project:
    """Return a frozen project whose definition has prompts."""
    project = authored_project(root)
    pairs = ", ".join(f"{name}: {{positive: {name}, negative: no {name}}}" for name in ("edema", "effusion"))
    project.edit(SPEC, "  zero_shot: {}\n", f"  zero_shot: {{prompts: {{{pairs}}}{similarity}}}\n")
    project.freeze()
    return project


def project_arrays() -> dict[str, Any]:
    """Return an archive for the project's items, of eight numbers an embedding."""
    rng = np.random.default_rng(1)
    pairs = [(name, sign) for name in ("edema", "effusion") for sign in ("positive", "negative")]
    return {
        "item_id": np.array(TEST_ITEMS),
        "embeddings": rng.normal(size=(20, 8)).astype(np.float32),
        "prompt_finding": np.array([name for name, _ in pairs]),
        "prompt_polarity": np.array([sign for _, sign in pairs]),
        "prompt_text": np.array([name if sign == "positive" else f"no {name}" for name, sign in pairs]),
        "prompt_embeddings": rng.normal(size=(4, 8)).astype(np.float32),
    }


def test_a_score_of_prompts_is_scikit_learns(tmp_path: Path) -> None:
    """From archive to report: ROC-AUC of scikit-learn's cosine differences, and the note says how it was scored."""
    project = prompted(tmp_path)
    arrays = project_arrays()
    project.submit(data=archive(**arrays))
    project.score()
    cosines = cosine_similarity(arrays["embeddings"], arrays["prompt_embeddings"])
    table = project.registry.read_table(REF, "test", project.lock.tables["test"])
    for column, name in enumerate(("edema", "effusion")):
        labels = [int(cell) for cell in table.column(name)]
        expected = roc_auc_score(labels, cosines[:, 2 * column] - cosines[:, 2 * column + 1])
        assert expected == pytest.approx(value(project.report(), "mean_auroc_zero_shot", name), abs=1e-12)
    assert "cosine_difference of 4 prompts, in embeddings of 8 numbers" in project.report()["notes"][0]
    assert "held" == {link.name: link.state for link in project.audit_system().links}["scored again"]


def test_a_head_map_means_nothing_for_prompts(tmp_path: Path) -> None:
    """It is refused as heads are, not stored without use."""
    project = prompted(tmp_path)
    for given in ({"head_map": "chexpert"}, {"heads": {"edema": "x"}}):
        found = refusal(lambda given=given: project.submit("new", archive(**project_arrays()), **given))
        assert any(
            "heads name columns of scores, and the file holds embeddings of prompts" in text for _, text in found
        )


def test_a_packed_archive_is_told_from_a_table(tmp_path: Path) -> None:
    """An .npz in a .gz is nothing but packed twice."""
    project = prompted(tmp_path)
    [(_, text)] = refusal(lambda: project.submit("new", gzip.compress(archive(**project_arrays()))))
    assert "a NumPy archive (.npz) in another archive. Give the .npz itself; it is packed already" in text


def test_a_definition_with_prompts_takes_scores_too(tmp_path: Path) -> None:
    """What the file is decides: a native classifier brings a table."""
    project = prompted(tmp_path)
    project.submit(data=scores_csv())
    assert "scored" == project.score().state


@pytest.mark.parametrize("declared", ["", "{}"])
def test_an_archive_is_refused_where_the_definition_does_not_score_one(tmp_path: Path, declared: str) -> None:
    """Promise 2: nothing guesses a similarity, and a definition without prompts says so."""
    project = prompted(tmp_path, "") if not declared else authored_project(tmp_path)
    project.freeze()
    [(code, text)] = refusal(lambda: project.submit(data=archive(**project_arrays())))
    lacking = "prompts" if declared else "similarity to score embeddings by"
    assert ("prompt", True) == (code, f"of tiny@v1:test declares no {lacking}. Give one score" in text)


@pytest.mark.parametrize("negative", ["there", " There", "there\n"])
def test_prompts_that_say_the_same_are_refused(negative: str) -> None:
    """Every score would be 0; case and blanks make no other prompt."""
    document = edited(wide(), "protocols/zero_shot/prompts/edema/negative", negative)
    assert {"protocols/zero_shot/prompts/edema/negative": "reference-conflict"} == codes(document)


def test_prompts_for_no_finding_are_refused() -> None:
    """An empty mapping is none; whoever wants none leaves it out."""
    assert {"protocols/zero_shot/prompts": "field-value"} == codes(edited(wide(), "protocols/zero_shot/prompts", {}))


def test_a_similarity_needs_prompts() -> None:
    """A choice that nothing uses is refused where it stands, and an unknown one too."""
    document = wide()
    document["protocols"]["zero_shot"] = {"similarity": "cosine_difference"}
    assert {"protocols/zero_shot/similarity": "reference-conflict"} == codes(document)
    assert parse_definition(edited(wide(), "protocols/zero_shot/similarity", "cosine"))[0] is None
