"""Embedding files: NumPy archives, Parquet lists and tables give the same matrix, or one refusal."""

import io
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxrspec.errors import SubmissionError
from cxrspec.ids import IdRule
from cxrspec.predictions import Embeddings, ExpectedItems, read_embeddings

IDS = ["a", "b", "c"]
EXPECTED = ExpectedItems(
    IDS, IdRule("file_name"), ["image"], lambda: dict.fromkeys("abcd", "train"), "b@v:train", ["Mass"]
)
MATRIX = np.array([[0.1, 2.0], [-0.3, 4.0], [0.5, 6.0]], dtype=np.float32)
SHUFFLED = [2, 0, 1]


def archive(**arrays: Any) -> bytes:
    """Return a NumPy archive."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def parquet(**columns: Any) -> bytes:
    """Return a Parquet file."""
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


def read(data: bytes | Sequence[str], expected: ExpectedItems = EXPECTED) -> Embeddings:
    """Read embeddings from bytes or the lines of a file."""
    return read_embeddings(data if isinstance(data, bytes) else "\n".join(data).encode(), expected, name="e")


def refusal(data: bytes | Sequence[str]) -> str:
    """Return the text of a refusal."""
    with pytest.raises(SubmissionError) as refused:
        read(data)
    return str(refused.value)


FORMS = {
    "npz": archive(item_id=np.array(["c.png", "a.png", "b.png"]), x=MATRIX[SHUFFLED]),
    "npz of bytes": archive(names=np.array([b"c", b"a", b"b"]), x=MATRIX[SHUFFLED].astype(np.float64)),
    "npz with a text beside the ids": archive(
        ids=np.array(["c", "a", "b"]), view=np.array(["AP"] * 3), x=MATRIX[SHUFFLED]
    ),
    "fixed list": parquet(
        image=["c", "a", "b"], x=pa.FixedSizeListArray.from_arrays(pa.array(MATRIX[SHUFFLED].ravel()), 2)
    ),
    "list": parquet(image=["c", "a", "b"], x=MATRIX[SHUFFLED].tolist(), age=[1, 2, 3]),
    "columns": parquet(f1=MATRIX[SHUFFLED, 1], image=["c", "a", "b"], f0=MATRIX[SHUFFLED, 0]),
    "text": b"f1,image,f0\n6.0,c,0.5\n2,a,0.10000000149011612\n4,b,-0.30000001192092896",
}


@pytest.mark.parametrize("data", FORMS.values(), ids=FORMS)
def test_every_form_gives_the_same_matrix(data: bytes, tmp_path: Path) -> None:
    """T12: The first bytes tell the form; rows go to the items by id, whatever the suffix."""
    path = tmp_path / "embeddings.csv"
    path.write_bytes(data)
    assert np.array_equal(MATRIX.astype(np.float64), read_embeddings(path, EXPECTED).values)


def test_features_have_the_order_of_their_names() -> None:
    """C8: Columns of features stand in code-point order, so their order in the file never matters."""
    embeddings = read(FORMS["columns"])
    assert embeddings.feature_names == ("f0", "f1")
    assert read(FORMS["npz"]).feature_names is None


@given(st.randoms(use_true_random=False))
def test_shuffling_changes_nothing(order: random.Random) -> None:
    """C8: Any order of rows and columns gives the same embeddings."""
    heads = ["image", "f0", "f1", "f10", "f2"]
    rows = [[item, *(str(row * 10 + at) for at in range(4))] for row, item in enumerate([*IDS, "d"])]
    places = list(range(5))
    order.shuffle(places)
    order.shuffle(rows)
    embeddings = read([",".join(row[place] for place in places) for row in [heads, *rows]])
    assert embeddings.values.tolist() == [[row * 10 + at for at in range(4)] for row in range(3)]
    assert (embeddings.n_rows, embeddings.n_left_aside) == (4, 1)


def test_labels_are_no_features() -> None:
    """N13: A label that stands in the file would leak into a probe, so it is left out and noted."""
    embeddings = read(["image,f0,label,Mass,No Finding,Unnamed: 5", "a,1,0,0,0,9", "b,2,1,1,1,8", "c,3,0,0,0,7"])
    assert embeddings.values.tolist() == [[1.0], [2.0], [3.0]]
    assert [str(note) for note in embeddings.notes] == [
        "e: columns without a name dropped: 1",
        "e: 1 column ignored (the reference standard comes from the registry only): 'label'",
        "e: 1 column ignored (other labels of the data set): 'Mass'",
        "e: 1 column ignored (it follows from the findings): 'No Finding'",
    ]


def test_arrays_that_are_not_used_are_noted() -> None:
    """T12: What else is in an archive is named."""
    data = archive(item_id=np.array(IDS), x=MATRIX, y=np.array([0, 1, 0]))
    assert [str(note) for note in read(data).notes] == ["e: other arrays ignored: y"]


def test_the_array_called_embeddings_is_taken() -> None:
    """T12: Of several matrices the one that is called so, and without one the choice is refused."""
    other = np.zeros((3, 5), dtype=np.float32)
    found = read(archive(item_id=np.array(IDS), logits=other, embeddings=MATRIX))
    assert MATRIX.tolist() == found.values.tolist()
    assert ["e: other arrays ignored: logits"] == [str(note) for note in found.notes]
    assert "one of embeddings (float [n, d]) are needed" in refusal(archive(item_id=np.array(IDS), a=other, b=MATRIX))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            parquet(image=IDS, x=[[1, 2]] * 3),
            "e: 'x' holds lists of integers or lists of lists; embeddings are one list of floats per row",
        ),
        (
            archive(x=MATRIX),
            "e: one array of ids (text [n]) and one of embeddings (float [n, d]) are needed; "
            "the file has x float32[3, 2]. Save them as item_id and embeddings",
        ),
        (archive(item_id=np.array(IDS[:2]), x=MATRIX), "e: 2 ids, but 3 rows of embeddings. Give one id per row"),
        (parquet(image=IDS, x=[[1.0]] * 3, y=[[1.0]] * 3), "e: 2 columns hold lists of numbers: 'x', 'y'"),
        (
            parquet(image=IDS, x=[[1.0, 2.0], [1.0, 2.0], None]),
            "e:3: not the 2 numbers that most have in 1 of 3 rows: 'c' in line 3 has 0",
        ),
        (parquet(image=IDS), "e: no features"),
        (parquet(x=[[1.0]] * 3), "e: no id column; the file has x"),
        (["image,f0,f0", "a,1,1", "b,1,1", "c,1,1"], "e: features whose name stands twice: f0"),
        (["image,f0,f1", "a,1,1", "b,1", "c,1,1"], "e:3: not the header's 3 cells in 1 of 3 rows: line 3 has 2"),
        (["image,f0", "a,1", "b,1", "c,1", "c,2"], "e:5: an id repeated with other values in 1 of 4 rows"),
        (["image,f0", "a,1", "b,1", "c,1", "x,1"], "e:5: an id that is not in the release in 1 of 4 rows"),
    ],
)
def test_what_is_no_embedding_is_refused(data: bytes | list[str], message: str) -> None:
    """C11: No ids, no common length, nothing to read: each is named."""
    assert message in refusal(data)


def test_a_damaged_archive_is_refused() -> None:
    """T12: A NumPy archive that was cut off is a damaged archive."""
    assert "e: the archive is damaged or of an unknown kind" in refusal(FORMS["npz"][:-30])


def test_an_archive_is_bounded_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """T12: What an archive says of its size is judged before anything of it is read."""
    monkeypatch.setattr("cxrspec.predictions.archives.MAX_BYTES", 100)
    assert "bytes once unpacked, more than 100. Is it the right file?" in refusal(FORMS["npz"])


def test_pickled_ids_are_never_loaded() -> None:
    """F1: An archive with pickled objects is refused before anything of it runs."""

    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return exec, ("raise SystemExit('unpickled')",)

    assert "without unpickling" in refusal(archive(item_id=np.array([Trap()] * 3, dtype=object), x=MATRIX))


def test_values_that_are_not_finite_are_refused() -> None:
    """S5: One line tells the rows with NaN, infinity or words, and the missing items are told in the same pass."""
    assert refusal(["image,f0,f1", "a,1,nan", "b,x,1"]) == (
        "e: 1 of 3 items missing (33.3 % of b@v:train): c. "
        "Predict every item of the subset; nothing is scored on a part of it\n"
        "e:2 embedding: no finite number in 2 of 2 rows: 'nan' in line 2 (a), 'x' in line 3 (b). "
        "Every item needs a finite number; nothing is filled in"
    )


def test_a_null_in_a_list_is_no_number() -> None:
    """S5: A null in a list is not filled in."""
    assert "no finite number in 1 of 3 rows: 'nan' in line 2 (b)" in refusal(
        parquet(image=IDS, x=[[1.0, 2.0], [1.0, None], [1.0, 2.0]])
    )
