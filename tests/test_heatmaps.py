"""Heatmap files: Parquet lists and NumPy archives give the same maps per finding, or one refusal."""

import io
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
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
from cxrspec.predictions import ColumnNames, ExpectedItems, ExpectedPairs, Heatmaps, read_heatmaps

MASS = ColumnNames("mass", ("Mass", "Tumour"))
INFILTRATION = ColumnNames("infiltration", ("Infiltrate", "Infiltration", "Infil."))
ITEMS = ExpectedItems(
    ["a", "b"], IdRule("file_name"), ["image"], lambda: {"a": "test", "b": "test", "c": "train"}, "b@v:test", ["Hernia"]
)
EXPECTED = ExpectedPairs.of_all(ITEMS, [MASS, INFILTRATION], frame=(1024, 1024))
ONLY_MASS = replace(EXPECTED, pairs={("a", "mass"), ("b", "mass")})
MAPS = np.arange(24, dtype=np.float64).reshape(4, 2, 3) / 7
"""Of rows of pixels: two rows of three; the pairs are those of ROWS."""
ROWS = [("a.png", "Mass"), ("b.png", "Mass"), ("a.png", "Infiltrate"), ("b.png", "Infiltrate")]


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


def rows_of(rows: Sequence[tuple[str, str]], maps: Any, **columns: Any) -> bytes:
    """Return a Parquet file of pairs and their maps, in the types that pyarrow makes of them."""
    images, findings = zip(*rows, strict=True)
    return parquet(image=list(images), finding=list(findings), map=maps, **columns)


def fixed(maps: np.ndarray[Any, Any], *widths: int) -> pa.Array:
    """Return nested lists of fixed length, the innermost first."""
    array = pa.array(maps.ravel())
    for width in widths:
        array = pa.FixedSizeListArray.from_arrays(array, width)
    return array


def read(data: bytes, expected: ExpectedPairs = EXPECTED) -> Heatmaps:
    """Read heatmaps from bytes."""
    return read_heatmaps(data, expected, name="h")


def refusal(data: bytes, expected: ExpectedPairs = EXPECTED) -> str:
    """Return the text of a refusal."""
    with pytest.raises(SubmissionError) as refused:
        read(data, expected)
    return str(refused.value)


def notes(heatmaps: Heatmaps) -> list[str]:
    """Return the texts of the notes."""
    return [str(note) for note in heatmaps.notes]


def is_expected(heatmaps: Heatmaps) -> bool:
    """Say whether the maps are MAPS, each with its finding and image."""
    return (
        list(heatmaps.maps) == ["mass", "infiltration"] == list(heatmaps.items)
        and np.array_equal(MAPS[:2], heatmaps.maps["mass"])
        and np.array_equal(MAPS[2:], heatmaps.maps["infiltration"])
        and all(items.tolist() == [0, 1] for items in heatmaps.items.values())
    )


IN_ORDER = rows_of(ROWS, MAPS.tolist())
ORDER = [2, 1, 3, 0]
SHUFFLED, FLAT = [ROWS[at] for at in ORDER], MAPS[ORDER].reshape(4, 6)
IDS, FINDINGS = (np.array(column) for column in zip(*SHUFFLED, strict=True))
FORMS = {
    "rows": rows_of(SHUFFLED, MAPS[ORDER].tolist()),
    "rows of fixed length": rows_of(SHUFFLED, fixed(FLAT, 3, 2)),
    "flat, with a size": rows_of(SHUFFLED, FLAT.tolist(), height=[2] * 4, width=[3.0] * 4),
    "flat and fixed, with a size in words": rows_of(SHUFFLED, fixed(FLAT, 6), Width=["3"] * 4, Height=["2"] * 4),
    "archive of rows": archive(item_id=IDS, finding=FINDINGS, maps=MAPS[ORDER]),
    "archive of bytes": archive(image=IDS.astype("S"), finding_label=FINDINGS.astype("S"), x=MAPS[ORDER].astype(">f8")),
    "archive with an array per finding": archive(ids=np.array(["b", "a"]), Mass=MAPS[1::-1], infiltration=MAPS[:1:-1]),
}


class TestForms:
    """The form of a file never changes a map."""

    @pytest.mark.parametrize("data", FORMS.values(), ids=FORMS)
    def test_every_form_gives_the_same_maps(self, data: bytes, tmp_path: Path) -> None:
        """T12: The first bytes tell the form; maps go to their pairs by id and name, whatever the suffix."""
        path = tmp_path / "maps.csv"
        path.write_bytes(data)
        heatmaps = read_heatmaps(path, EXPECTED)
        assert is_expected(heatmaps)
        assert (heatmaps.notes, heatmaps.n_rows, heatmaps.n_left_aside) == ([], 4, 0)

    def test_a_flat_list_may_be_a_square(self) -> None:
        """S17: Without a size a list is a square, row by row."""
        heatmaps = read(rows_of(ROWS[:2], [[1.0, 2.0, 3.0, 4.0]] * 2), ONLY_MASS)
        assert heatmaps.maps["mass"].tolist() == [[[1, 2], [3, 4]]] * 2

    @pytest.mark.parametrize(
        ("stored", "dtype"),
        [("f2", np.float32), ("f4", np.float32), ("u1", np.float32), ("f8", np.float64), ("i4", np.float64)],
    )
    def test_precision_is_kept(self, stored: str, dtype: type) -> None:
        """S15: Maps are as exact as the file, and no larger."""
        maps = (1000 * MAPS / 19).astype(stored)
        forms = [
            archive(item_id=np.array(["a", "b"]), Mass=maps[:2], Infiltrate=maps[2:]),
            rows_of(ROWS, fixed(maps, 3, 2)),
        ]
        for heatmaps in map(read, forms):
            assert dtype == heatmaps.maps["mass"].dtype
            assert np.array_equal(maps[:2], heatmaps.maps["mass"])

    def test_constant_maps_are_read(self) -> None:
        """S17: A constant map is a map; that it yields no box is for the evaluation."""
        heatmaps = read(rows_of(ROWS, np.zeros((4, 2, 2)).tolist()))
        assert not heatmaps.maps["mass"].any()

    def test_what_is_not_used_is_noted(self) -> None:
        """C9: Columns and arrays beside the maps are ignored with a note."""
        maps = archive(item_id=IDS, finding=FINDINGS, maps=MAPS[ORDER], layer=np.array([4]))
        assert notes(read(maps)) == ["h: other arrays ignored: layer"]
        assert notes(read(rows_of(ROWS, MAPS.tolist(), height=[9] * 4))) == ["h: 1 column ignored (unknown): 'height'"]

    @given(st.randoms(use_true_random=False), st.booleans())
    def test_shuffling_changes_nothing(self, order: random.Random, is_archive: bool) -> None:
        """C8: Any order of rows gives the same maps and notes."""
        rows = [*ROWS, ("c", "Mass"), ("a", "Hernia"), ("a", "mass"), ("b", "Infil."), ("b", "No Finding")]
        rows.append(("a", "Tumour"))
        maps = np.concatenate([MAPS, MAPS[[3, 3, 0, 3, 3, 0]]])
        places = order.sample(range(10), 10)
        shuffled, ids, findings = maps[places], *zip(*(rows[at] for at in places), strict=True)
        if is_archive:
            heatmaps = read(archive(item_id=np.array(ids), finding=np.array(findings), maps=shuffled))
        else:
            heatmaps = read(parquet(finding=findings, map=shuffled.tolist(), image=ids))
        assert is_expected(heatmaps)
        assert (heatmaps.n_rows, heatmaps.n_left_aside) == (10, 3)
        assert notes(heatmaps) == [
            "h: rows of items outside the subset left aside: 1 (train 1)",
            "h: finding 'Infil.' is read as infiltration (alias)",
            "h: finding 'Tumour' is read as mass (alias)",
            "h: rows of other labels of the data set left aside: 2 ('Hernia' 1, 'No Finding' 1)",
            "h: repeated rows with the same map dropped: 3",
        ]

    def test_maps_of_real_size_are_read_at_once(self) -> None:
        """880 images, eight findings, 32 x 32 pixels: less than two seconds of a processor."""
        ids, names = [f"{at:08d}_000" for at in range(880)], [f"finding {at}" for at in range(8)]
        items = ExpectedItems(ids, IdRule("file_name"), ["image"], dict, "b@v:test")
        expected = ExpectedPairs.of_all(items, [ColumnNames(name) for name in names], frame=(1024, 1024))
        maps = np.random.default_rng(0).random((7040, 32, 32))
        data = rows_of([(item, name) for item in ids for name in names], fixed(maps, 32, 32))
        start = time.process_time()
        heatmaps = read(data, expected)
        assert time.process_time() - start < 2
        assert np.array_equal(maps[5::8], heatmaps.maps["finding 5"])


class TestPairs:
    """Every pair that is asked for has one map, and nothing else counts."""

    @pytest.mark.parametrize("name", ["Infiltrate", "infiltration", "INFILTRATION ", "in-fil_trate"])
    def test_spellings_of_a_finding(self, name: str) -> None:
        """N1: The box list's and the labels' name are one finding; case, blanks, `_` and `-` never matter."""
        heatmaps = read(rows_of([*ROWS[:2], ("a", name), ("b", name)], MAPS.tolist()))
        assert is_expected(heatmaps)
        assert heatmaps.notes == []

    def test_the_submissions_own_name_decides(self) -> None:
        """C7: A finding that the submission names itself has that name exactly, and no other."""
        own = replace(EXPECTED, findings=[replace(MASS, head="tumour"), INFILTRATION])
        rows = [("a", "tumour"), ("b", "tumour"), *ROWS[2:]]
        heatmaps = read(rows_of(rows, MAPS.tolist()), own)
        assert is_expected(heatmaps)
        assert heatmaps.notes == []
        assert "h:1: no finding of b@v:test in 2 of 4 rows: 'Mass' from line 1 on (2)" in refusal(IN_ORDER, own)

    def test_a_name_that_fits_two_findings_is_refused(self) -> None:
        """C7: Which of two findings is meant is not for us to say."""
        expected = replace(EXPECTED, findings=[MASS, replace(INFILTRATION, fits=("mass",))])
        assert "h:1: finding 'Mass' fits mass, infiltration. Write our name of the finding" in refusal(
            IN_ORDER, expected
        )

    def test_pairs_that_are_not_asked_for_are_left_aside(self) -> None:
        """T11: A finding may be expected on some images only; its other maps are counted and not looked at."""
        some = replace(EXPECTED, pairs={("a", "mass"), ("b", "mass"), ("b", "infiltration")})
        heatmaps = read(rows_of(ROWS, [*MAPS[:2].tolist(), [[np.nan]], MAPS[3].tolist()]), some)
        assert heatmaps.items["infiltration"].tolist() == [1]
        assert np.array_equal(MAPS[3:], heatmaps.maps["infiltration"])
        assert (heatmaps.n_rows, heatmaps.n_left_aside) == (4, 1)
        assert notes(heatmaps) == ["h: rows of (image, finding) pairs that are not asked for left aside: 1"]

    def test_a_finding_that_no_pair_names_has_no_map(self) -> None:
        """T11: A finding without expected pairs is there, and empty."""
        assert read(IN_ORDER, ONLY_MASS).maps["infiltration"].shape == (0, 2, 3)

    def test_images_outside_the_subset_are_left_aside(self) -> None:
        """T11: Maps of other known images and of other labels are counted and not looked at."""
        rows = [*ROWS, ("c", "Mass"), ("c", "whatever"), ("a", "hernia")]
        heatmaps = read(rows_of(rows, [*MAPS.tolist(), [], None, [[np.inf]]]))
        assert is_expected(heatmaps)
        assert heatmaps.n_left_aside == 3

    def test_missing_pairs_are_refused(self) -> None:
        """T10: Missing pairs are counted in all and per finding, and five of them are named."""
        ids = [f"{at:08d}_000" for at in range(4)]
        items = ExpectedItems(ids, IdRule("file_name"), ["image"], dict, "b@v:test")
        expected = ExpectedPairs.of_all(items, [MASS, INFILTRATION], frame=(1024, 1024))
        assert refusal(rows_of([("1_0", "Infiltration")], [[[1.0]]]), expected) == (
            "h: 7 of 8 (image, finding) pairs missing (87.5 % of b@v:test: mass 4, infiltration 3): "
            "00000000_000 mass, 00000000_000 infiltration, 00000001_000 mass, 00000002_000 mass, "
            "00000002_000 infiltration and 2 more. Give one map for every pair; nothing is scored on a part of them"
        )

    def test_unknown_images_and_findings_are_refused(self) -> None:
        """T11: An image or a finding that nobody knows is refused, both in one pass."""
        rows = [*ROWS, ("z", "Mass"), ("a", "Masss"), ("b", "Masss"), ("a", "Cyst")]
        assert refusal(rows_of(rows, [MAPS[0].tolist()] * 8)) == (
            "h:5: an id that is not in the release in 1 of 8 rows: 'z' in line 5 (nearest 'a'). "
            "Correct the ids, or remove the rows\n"
            "h:6: no finding of b@v:test in 3 of 7 rows: 'Masss' from line 6 on (2), 'Cyst' from line 8 on (1). "
            "The findings are mass, infiltration. Did you mean 'Mass'?"
        )

    def test_an_array_under_an_unknown_name_is_refused(self) -> None:
        """N2: An array of maps whose name is no finding is a finding that nobody knows."""
        data = archive(ids=np.array(["a", "b"]), Mass=MAPS[:2], Infiltrate=MAPS[2:], Lump=MAPS[2:])
        assert "h:1: no finding of b@v:test in 2 of 6 rows: 'Lump' from line 1 on (2)" in refusal(data)

    def test_repeated_maps_are_dropped(self) -> None:
        """T9: The same map twice, under whatever spelling of its pair, counts once."""
        heatmaps = read(rows_of([*ROWS, ("a", "Infiltration")], MAPS[[0, 1, 2, 3, 2]].tolist()))
        assert is_expected(heatmaps)
        assert notes(heatmaps) == ["h: repeated rows with the same map dropped: 1"]

    def test_two_maps_for_one_pair_are_refused(self) -> None:
        """T9: Another map for a pair is refused with both lines."""
        assert refusal(rows_of([*ROWS, ("a", "Infiltration")], MAPS[[0, 1, 2, 3, 3]].tolist())) == (
            "h:5: an (image, finding) pair repeated with another map in 1 of 5 rows: "
            "'a Infiltration' in lines 3 and 5. Keep one map per pair"
        )


class TestMaps:
    """A map is a rectangle of finite numbers, and all have one size."""

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, None])
    def test_values_that_are_not_finite_are_refused(self, value: float | None) -> None:
        """S17: NaN, infinity and nulls are refused with count, lines and pairs."""
        maps: list[Any] = MAPS.tolist()
        maps[2][1][0] = value
        shown = "nan" if value is None else str(value)
        assert refusal(rows_of(ROWS, maps)) == (
            f"h:3 map: no finite number in 1 of 4 rows: '{shown}' in line 3 (a.png Infiltrate). "
            "Every pixel needs a finite number; nothing is filled in"
        )

    def test_repeated_maps_that_are_not_finite_are_told_once(self) -> None:
        """S17: The same NaN twice is no conflict; the lines that are shown are the first of the file."""
        maps = MAPS.copy()
        maps[1:, 0, 0] = np.nan
        text = refusal(rows_of([*ROWS[::-1], ROWS[1]], maps[[3, 2, 1, 0, 1]].tolist()))
        assert text.startswith(
            "h:1 map: no finite number in 3 of 4 rows: 'nan' in line 1 (b.png Infiltrate), "
            "'nan' in line 2 (a.png Infiltrate), 'nan' in line 3 (b.png Mass). "
        )
        assert "\n" not in text

    def test_another_size_is_refused(self) -> None:
        """S17: A map of another size than most is refused and never turned: 3 x 2 is not 2 x 3."""
        maps = [*MAPS[:2].tolist(), MAPS[2].T.tolist(), MAPS[3].tolist()]
        assert refusal(rows_of(ROWS, maps)) == (
            "h:3: not the 2 x 3 that most maps have in 1 of 4 rows: 'a.png Infiltrate' in line 3 has 3 x 2. "
            "All maps must have one size"
        )

    def test_arrays_of_another_size_are_refused(self) -> None:
        """S17: So are the arrays of two findings."""
        data = archive(ids=np.array(["a", "b"]), Mass=MAPS[:2], Infiltrate=MAPS[2:, :, :2])
        assert "h:1: not the 2 x 2 that most maps have in 2 of 4 rows: 'a Mass' in line 1 has 2 x 3" in refusal(data)

    def test_every_kind_of_problem_is_told_in_one_pass(self) -> None:
        """T9: Pairs, sizes and values are all judged before the file is refused."""
        rows = [*ROWS[:3], ("a", "Mass"), ("a", "Lump"), ("z", "Mass"), ("b", "Mass")]
        nan = np.full((2, 3), np.nan).tolist()
        maps = [MAPS[0].tolist(), nan, [[1.0, 2.0], [3.0]], MAPS[1].tolist(), nan, nan, [[1.0]]]
        with pytest.raises(SubmissionError) as refused:
            read(rows_of(rows, maps))
        assert [issue.code for issue in refused.value.issues] == [
            "prediction-missing",  # b infiltration
            "prediction-value",  # line 2
            "row-shape",  # line 3 is uneven
            "prediction-duplicate",  # line 4
            "finding-unknown",  # line 5
            "prediction-unknown",  # line 6
            "row-shape",  # line 7 has another size
        ]

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (
                rows_of(ROWS, [[1.0] * 4, [1.0] * 5, [1.0] * 4, None]),
                "h:2: a list that is no square in 2 of 4 rows: 'b.png Mass' in line 2 has 5 numbers, "
                "'b.png Infiltrate' in line 4 has 0 numbers. Give columns height and width, or lists of rows",
            ),
            (
                rows_of(ROWS, FLAT.tolist(), height=[2, 3, 2, 1024], width=[3, 3, 3, 1024]),
                "h:2: a list that is not height x width long in 2 of 4 rows: 'b.png Mass' in line 2 has 6 numbers, "
                "'b.png Infiltrate' in line 4 has 6 numbers. Correct the columns height and width",
            ),
            (
                rows_of(ROWS, FLAT.tolist(), height=[2.0, -2.0, 2.5, None], width=[3.0, -3.0, 3.0, 3.0]),
                "h:2: a list that is not height x width long in 3 of 4 rows",
            ),
            (
                rows_of(ROWS, FLAT.tolist(), height=[2.0, np.inf, 1e300, -np.inf], width=[3.0] * 4),
                "h:2: a list that is not height x width long in 3 of 4 rows",
            ),
            (
                rows_of(ROWS, FLAT.tolist(), height=[2] * 4),
                "h: one column height and one column width are needed; the file has 'height' (column 4). "
                "Give both, or lists of rows, or neither if maps are square",
            ),
            (
                rows_of(ROWS, [*MAPS[:3].tolist(), [[1.0, 2.0], [1.0, 2.0, 3.0, 4.0]]]),
                "h:4: rows of a map that are empty or differ in length in 1 of 4 rows: "
                "'b.png Infiltrate' in line 4 has 6 numbers. Give every row of a map one length",
            ),
            (archive(ids=np.array(["a", "b"]), Mass=np.zeros((2, 0, 3)), Infiltrate=MAPS[2:]), "has 0 numbers"),
        ],
    )
    def test_what_is_no_rectangle_is_refused(self, data: bytes, message: str) -> None:
        """S17: The size of a map is told by the file, never guessed; what is wrong with it is told once."""
        text = refusal(data)
        assert message in text
        assert "\n" not in text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"image,finding,map\na,Mass,1 2 3",
            "h: no column of lists of numbers; the file has image, finding, map. "
            "Give the maps as a list column of Parquet, or as a NumPy archive (.npz)",
        ),
        (rows_of(ROWS, [["x"]] * 4), "h: no column of lists of numbers; the file has image, finding, map"),
        (rows_of(ROWS, [[[[1.0]]]] * 4), "h: no column of lists of numbers; the file has image, finding, map"),
        (
            rows_of(ROWS, MAPS.tolist(), other=FLAT.tolist()),
            "h: 2 columns hold lists of numbers: 'map' (column 3), 'other' (column 4). Keep the one of the maps",
        ),
        (
            parquet(image=["a"], map=[[1.0]]),
            "h: no finding column; the file has image, map. Name the column of findings 'Finding Label' or 'finding'",
        ),
        (parquet(image=["a"], item_id=["a"], map=[[1.0]]), "h: 2 id columns: 'image' (column 1), 'item_id' (column 2)"),
        (
            archive(Mass=MAPS[:2], Infiltrate=MAPS[2:]),
            "h: ids (text [n]), findings (text [n]) and maps (numbers [n, height, width]) are needed; "
            "the file has Mass float64[2, 2, 3], Infiltrate float64[2, 2, 3]. Save them as item_id, finding and maps, "
            "or item_id and one array of maps for each finding, under its name",
        ),
        (
            archive(item_id=IDS, finding=FINDINGS, a=MAPS, b=MAPS),
            "the file has item_id <U5[4], finding <U10[4], a float",
        ),
        (archive(item_id=IDS, finding=FINDINGS, maps=FLAT), "are needed; the file has item_id"),
        (
            archive(item_id=IDS[:3], finding=FINDINGS, maps=MAPS),
            "h: arrays of different lengths: item_id 3, finding 4, maps 4. Give one id and one finding per map",
        ),
        (
            archive(item_id=IDS, finding=FINDINGS, maps=MAPS.astype(object)),
            "h: the NumPy archive cannot be read without",
        ),
        (FORMS["archive of rows"][:-30], "h: the archive is damaged or of an unknown kind"),
    ],
)
def test_what_holds_no_maps_is_refused(data: bytes, message: str) -> None:
    """C11: No ids, no findings, no maps, or more than one of them: each is named."""
    assert message in refusal(data)


def test_an_array_without_ids_is_refused(tmp_path: Path) -> None:
    """C11: An array says nothing about which map is whose; both numbers of rows are shown."""
    np.save(tmp_path / "maps.npy", MAPS)
    with pytest.raises(SubmissionError, match=r"^maps\.npy: the array has 4 rows, b@v:test has 2 items, and no row"):
        read_heatmaps(tmp_path / "maps.npy", EXPECTED)


def test_importing_the_reader_is_cheap() -> None:
    """NumPy, pyarrow and pandas are imported only once there is a file to read."""
    script = "import sys, cxrspec.predictions.regions; print({'numpy', 'pyarrow', 'pandas'} & set(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed == "set()\n"
