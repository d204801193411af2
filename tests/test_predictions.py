"""Score files: whatever the spelling, the same values for the same items, or one refusal that names every problem."""

import io
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxrspec.errors import SubmissionError
from cxrspec.ids import IdRule
from cxrspec.predictions import ColumnNames, ExpectedItems, Scores, read_scores
from cxrspec.predictions.values import Aggregate

EDEMA = ColumnNames("edema", ("Edema",))
EFFUSION = ColumnNames("pleural_effusion", ("Effusion", "Pleural Effusion"))
THICKENING = ColumnNames("pleural_thickening", ("Pleural_Thickening", "PT", "P.T."))
ROSTER = {f"nih-{image}": "test" for image in ("00000001_000", "00000001_001", "00000003_000")} | {
    "nih-00000002_000": "train_val",
    "nih-00000002_001": "train_val",
    "nih-00000004_000": "",
}
NIH = ExpectedItems(
    item_ids=["nih-00000001_000", "nih-00000001_001", "nih-00000003_000"],
    rule=IdRule("file_name", prefix="nih-"),
    id_columns=["Image Index"],
    known=lambda: ROSTER,
    reference="nih-cxr14-fourteen@official-v1:test",
    known_labels=["Mass", "Nodule", "Hernia"],
)
STUDIES = ["valid/patient1/study1", "valid/patient2/study1"]
CHEXPERT = ExpectedItems(
    item_ids=STUDIES,
    rule=IdRule("study_path"),
    id_columns=["Path"],
    known=lambda: dict.fromkeys(STUDIES, "valid") | {"train/patient3/study1": "train"},
    reference="chexpert@valid-v1:valid",
)
ROWS = ["00000001_000,0.9", "00000001_001,0.2", "00000003_000,0.4"]


def read(
    lines: Sequence[str],
    columns: Sequence[ColumnNames] = (EDEMA,),
    expected: ExpectedItems = NIH,
    aggregate: Aggregate | None = None,
) -> Scores:
    """Read scores from the lines of a file."""
    return read_scores("\n".join(lines).encode(), columns, expected, name="p.csv", aggregate=aggregate)


def refusal(
    lines: Sequence[str],
    columns: Sequence[ColumnNames] = (EDEMA,),
    expected: ExpectedItems = NIH,
    aggregate: Aggregate | None = None,
) -> str:
    """Return the text of the refusal of the lines of a file."""
    with pytest.raises(SubmissionError) as refused:
        read(lines, columns, expected, aggregate)
    return str(refused.value)


def notes(scores: Scores) -> list[str]:
    """Return the texts of the notes."""
    return [str(note) for note in scores.notes]


def column(scores: Scores, at: int = 0) -> list[float]:
    """Return one column of the values."""
    return scores.values[:, at].tolist()


class TestItems:
    """Rows and items are joined by id."""

    def test_a_clean_file_has_nothing_to_note(self, tmp_path: Path) -> None:
        """Values stand in the order of the items, at full precision."""
        path = tmp_path / "preds.csv"
        path.write_text(
            "Image Index,Edema\n00000003_000.png,0.30000000000000004\n00000001_001.png,.2\n1_0.png,1e-300\n"
        )
        scores = read_scores(path, [EDEMA], NIH)
        assert column(scores) == [1e-300, 0.2, 0.1 + 0.2]
        assert scores.values.dtype == np.float64
        assert (scores.n_rows, scores.n_left_aside, scores.n_aggregated) == (3, 0, 0)

    def test_lost_zeros_are_noted(self) -> None:
        """T2: Ids that a spreadsheet has eaten into are padded, and counted in a note."""
        scores = read(["item_id,Edema", "1_0,0.9", "1_1,0.2", "00000003_000,0.4"])
        assert column(scores) == [0.9, 0.2, 0.4]
        assert notes(scores) == ["p.csv: 2 ids were re-padded (spreadsheet?)"]

    def test_a_bare_number_is_no_id(self) -> None:
        """T2: A patient number alone names no image."""
        assert "an id that is not in the release in 1 of 4 rows: '1' in line 5" in refusal(
            ["item_id,Edema", *ROWS, "1,0.5"]
        )

    def test_composed_and_decomposed_ids_join(self) -> None:
        """T8: NFC and NFD spellings of an id are the same item."""
        expected = ExpectedItems(["caf\u00e9"], IdRule("text"), ["id"], dict, "b@v:s")
        assert column(read(["id,Edema", "cafe\u0301,0.5"], expected=expected)) == [0.5]

    def test_repeated_rows_with_equal_values_are_dropped(self) -> None:
        """T9: The same id with the same values, in whatever spelling, counts once."""
        scores = read(["item_id,Edema", *ROWS, "1_0.png,0.90"])
        assert column(scores) == [0.9, 0.2, 0.4]
        assert notes(scores)[-1] == "p.csv: repeated rows with the same values dropped: 1"

    def test_repeated_rows_with_other_values_are_refused(self) -> None:
        """T9: The same id with other values is refused with both lines."""
        assert refusal(["item_id,Edema", *ROWS, "00000001_000,0.3"]) == (
            "p.csv:5: an id repeated with other values in 1 of 4 rows: '00000001_000' in lines 2 and 5. "
            "Keep one row per item"
        )

    def test_missing_items_are_refused(self) -> None:
        """T10: A file that lacks items is never scored on the rest."""
        assert refusal(["item_id,Edema", ROWS[0]]) == (
            "p.csv: 2 of 3 items missing (66.7 % of nih-cxr14-fourteen@official-v1:test): "
            "nih-00000001_001, nih-00000003_000. Predict every item of the subset; nothing is scored on a part of it"
        )

    def test_a_sample_of_a_release_is_refused(self) -> None:
        """N16: Three of many ids are a sample: five of the missing are shown, and their number."""
        ids = [f"nih-{number:08d}_000" for number in range(1, 25_597)]
        expected = ExpectedItems(ids, NIH.rule, (), dict, "b@v:test")
        assert refusal(["item_id,Edema", "1_0,1", "2_0,1", "3_0,1"], expected=expected) == (
            "p.csv: 25,593 of 25,596 items missing (100 % of b@v:test): nih-00000004_000, nih-00000005_000, "
            "nih-00000006_000, nih-00000007_000, nih-00000008_000 and 25,588 more. "
            "Predict every item of the subset; nothing is scored on a part of it"
        )

    def test_rows_of_other_known_items_are_left_aside(self) -> None:
        """T11: Train and test in one file is fine; what is not asked for is counted, and not looked at."""
        scores = read(["item_id,Edema", *ROWS, "00000002_000,nan", "2_1,x", "00000004_000,1"])
        assert column(scores) == [0.9, 0.2, 0.4]
        assert (scores.n_rows, scores.n_left_aside) == (6, 3)
        assert notes(scores)[-1] == "p.csv: rows of items outside the subset left aside: 3 (no split 1, train_val 2)"

    def test_unknown_ids_are_refused_with_the_nearest(self) -> None:
        """T11: An id that no source knows is refused; the first five show the nearest known id."""
        strangers = [f"9999999{at}_000,0.5" for at in range(7)]
        assert refusal(["item_id,Edema", *ROWS, *strangers]) == (
            "p.csv:5: an id that is not in the release in 7 of 10 rows: "
            "'99999990_000' in line 5 (nearest 'nih-00000001_000'), "
            "'99999991_000' in line 6 (nearest 'nih-00000001_000'), "
            "'99999992_000' in line 7 (nearest 'nih-00000002_000'), "
            "'99999993_000' in line 8 (nearest 'nih-00000003_000'), "
            "'99999994_000' in line 9 (nearest 'nih-00000004_000') and 2 more. Correct the ids, or remove the rows"
        )

    def test_the_roster_is_loaded_only_when_needed(self) -> None:
        """T11: A file of exactly the subset's items never costs a look at the roster."""

        def never() -> dict[str, str]:
            raise AssertionError("the roster was loaded")

        expected = ExpectedItems(NIH.item_ids, NIH.rule, (), never, "b@v:test")
        assert column(read(["item_id,Edema", *ROWS], expected=expected)) == [0.9, 0.2, 0.4]

    def test_arrays_without_ids_are_refused(self, tmp_path: Path) -> None:
        """C11: An array says nothing about which row is which; both numbers of rows are shown."""
        np.save(tmp_path / "preds.npy", np.zeros((668, 5)))
        with pytest.raises(SubmissionError) as refused:
            read_scores(tmp_path / "preds.npy", [EDEMA], NIH)
        assert str(refused.value) == (
            "preds.npy: the array has 668 rows, nih-cxr14-fourteen@official-v1:test has 3 items, and no row has an id. "
            "Give ids: a table with an id column"
        )

    def test_no_id_column_is_refused(self) -> None:
        """N15: Without a column of ids nothing can be joined."""
        assert refusal(["Patient ID,Edema", "1,0.5"]) == (
            "p.csv: no id column; the file has Patient ID, Edema. Name the column of ids 'Image Index' or 'item_id'"
        )

    def test_two_id_columns_are_refused(self) -> None:
        """C7: Which of two id columns is meant is not for us to say."""
        assert refusal(["image_index,item_id,Edema", "a,b,1"]) == (
            "p.csv: 2 id columns: 'image_index' (column 1), 'item_id' (column 2). Keep one of them"
        )


class TestStudies:
    """A study has one score, whatever the number of its views."""

    VIEWS = (
        r"CheXpert-v1.0-small\valid\patient1\study1\view1_frontal.jpg,0.2",
        "CheXpert-v1.0/valid/patient1/study1/view2_lateral.jpg,0.7",
        "/data/valid/patient2/study1/view1_frontal.jpg,0.1",
    )

    @pytest.mark.parametrize(("aggregate", "value"), [("max", 0.7), ("mean", (0.2 + 0.7) / 2)])
    def test_views_are_aggregated(self, aggregate: Aggregate, value: float) -> None:
        """C2: The score of a study is the maximum of its views, or the mean if the definition says so."""
        assert column(read(["Path,Edema", *self.VIEWS], expected=CHEXPERT, aggregate=aggregate)) == [value, 0.1]

    def test_both_counts_are_noted(self) -> None:
        """C1: A file of images says how many became how many studies."""
        scores = read(["Path,Edema", *self.VIEWS], expected=CHEXPERT, aggregate="max")
        assert notes(scores) == ["p.csv: 3 images -> 2 studies, agg=max"]
        assert scores.n_aggregated == 3

    def test_a_file_of_studies_is_not_aggregated(self) -> None:
        """C1: Where rows are studies already, nothing is brought together."""
        scores = read(
            ["Path,Edema", "valid/patient1/study1,0.7", "valid/patient2/study1/,0.1"], (EDEMA,), CHEXPERT, "max"
        )
        assert (column(scores), scores.notes, scores.n_aggregated) == ([0.7, 0.1], [], 0)

    def test_without_aggregation_two_views_are_a_duplicate(self) -> None:
        """C2: Views are brought together only where the definition says how."""
        assert "an id repeated with other values" in refusal(["Path,Edema", *self.VIEWS], expected=CHEXPERT)

    def test_a_repeated_view_is_a_duplicate(self) -> None:
        """T9: One image twice with other values is refused, even where views are aggregated."""
        again = "valid/patient1/study1/view1_frontal.png,0.3"
        assert "in lines 2 and 5" in refusal(["Path,Edema", *self.VIEWS, again], (EDEMA,), CHEXPERT, "max")

    def test_a_study_beside_its_views_is_refused(self) -> None:
        """C1: A row of the study itself and rows of its views cannot both be its score."""
        assert refusal(["Path,Edema", *self.VIEWS, "valid/patient1/study1,0.9"], (EDEMA,), CHEXPERT, "max") == (
            "p.csv:5: a row of the study beside rows of its views in 1 of 4 rows: 'valid/patient1/study1' in line 5. "
            "Keep one row per study, or only the rows of views"
        )

    def test_a_path_without_a_split_is_refused(self) -> None:
        """C6: Without valid/ the study is unknown; the hint shows how ids look."""
        assert refusal(["Path,Edema", *self.VIEWS, "patient9/study1/view1.jpg,1"], (EDEMA,), CHEXPERT, "max") == (
            "p.csv:5: no train/, valid/ or test/ folder in the id of 1 of 4 rows: "
            "'patient9/study1/view1.jpg' in line 5. "
            "Write ids like 'train/patient3/study1'"
        )

    @given(st.permutations(range(6)))
    def test_the_mean_does_not_know_the_order_of_rows(self, order: list[int]) -> None:
        """C2: Sums of floats depend on their order, the mean of views must not."""
        values = (0.1, 0.2, 0.3, 1e16, 1.0, -1e16)
        rows = [f"valid/patient1/study1/view{at}.jpg,{value}" for at, value in enumerate(values)]
        lines = ["Path,Edema", "valid/patient2/study1/view1.jpg,0"]
        shuffled = read([*lines, *(rows[at] for at in order)], (EDEMA,), CHEXPERT, "mean")
        assert column(read([*lines, *rows], (EDEMA,), CHEXPERT, "mean")) == column(shuffled)


class TestColumns:
    """Columns are matched by name."""

    @pytest.mark.parametrize("head", ["edema", "EDEMA", " edema ", "E_d-e ma"])
    def test_case_and_spacing_never_matter(self, head: str) -> None:
        """N2: Case, blanks, `_` and `-` in a head are no difference, and nothing to note."""
        assert read([f"Image_Index,{head}", *ROWS]).notes == []

    @pytest.mark.parametrize("head", ["pleural thickening", "Pleural_Thickening", "pleural-thickening"])
    def test_spellings_of_pleural_thickening(self, head: str) -> None:
        """N2: The spellings that circulate are one finding."""
        assert read([f"item_id,{head}", *ROWS], [THICKENING]).notes == []

    @pytest.mark.parametrize("head", ["PT", "P.T."])
    def test_an_alias_is_noted(self, head: str) -> None:
        """N2: An abbreviation fits only as a declared alias, and that is noted."""
        assert notes(read([f"item_id,{head}", *ROWS], [THICKENING])) == [
            f"p.csv: column '{head}' is read as pleural_thickening (alias)"
        ]

    def test_an_undeclared_abbreviation_fits_nothing(self) -> None:
        """N2: Without the alias an abbreviation is an unknown column."""
        assert "no column for 'Pleural_Thickening'" in refusal(
            ["item_id,PT", *ROWS], [ColumnNames("pleural_thickening", ("Pleural_Thickening",))]
        )

    def test_two_columns_for_one_finding_are_refused(self) -> None:
        """C7: Where two columns fit a finding, neither is taken."""
        assert refusal(["item_id,Pleural_Effusion,Pleural Effusion", "1_0,1,1", "1_1,1,1", "3_0,1,1"], [EFFUSION]) == (
            "p.csv: 2 columns fit pleural_effusion: 'Pleural_Effusion' (column 2), 'Pleural Effusion' (column 3). "
            "Keep one, or map it with --head (heads in submission.yaml)"
        )

    def test_a_named_head_decides(self) -> None:
        """C7: What the submission says itself is taken exactly so."""
        named = ColumnNames("pleural_effusion", EFFUSION.fits, head="Pleural Effusion")
        lines = ["item_id,Pleural_Effusion,Pleural Effusion", "1_0,0,1", "1_1,0,0.5", "3_0,0,1"]
        assert column(read(lines, [named])) == [1.0, 0.5, 1.0]

    def test_a_named_head_must_be_there(self) -> None:
        """C7: A head map that names no column is refused, even if another column would fit."""
        named = ColumnNames("edema", ("Edema",), head="prob_Edema")
        assert refusal(["item_id,Edema", *ROWS], [named]) == (
            "p.csv: no column for 'prob_Edema' (near 'Edema'); the file has item_id, Edema. "
            "Every finding needs its column: name it so, or map it with --head (heads in submission.yaml)"
        )

    def test_one_column_for_two_findings_is_refused(self) -> None:
        """C7: A column that fits two findings belongs to neither until the submission says so."""
        both = [ColumnNames("lung_opacity", ("Opacity",)), ColumnNames("airspace_opacity", ("Airspace", "opacity"))]
        assert "p.csv: column 'Opacity' fits lung_opacity, airspace_opacity." in refusal(
            ["item_id,Opacity", *ROWS], both
        )

    def test_swapped_columns_change_nothing(self) -> None:
        """C8: Lung Lesion and Lung Opacity stand in either order."""
        columns = [ColumnNames("lung_lesion", ("Lung Lesion",)), ColumnNames("lung_opacity", ("Lung Opacity",))]
        one = read(["item_id,Lung Lesion,Lung Opacity", "1_0,.1,.9", "1_1,.2,.8", "3_0,.3,.7"], columns)
        other = read(["Lung Opacity,item_id,Lung Lesion", ".9,1_0,.1", ".8,1_1,.2", ".7,3_0,.3"], columns)
        assert [0.1, 0.2, 0.3] == column(one) == column(other)
        assert [0.9, 0.8, 0.7] == column(one, 1) == column(other, 1)

    def test_a_missing_finding_is_refused(self) -> None:
        """C9: A file without a finding is never scored on the others; near columns are named."""
        assert refusal(["item_id,prob_Edema", *ROWS], [EDEMA, EFFUSION]) == (
            "p.csv: no column for 'Edema' (near 'prob_Edema'), 'Effusion'; the file has item_id, prob_Edema. "
            "Every finding needs its column: name it so, or map it with --head (heads in submission.yaml)"
        )

    def test_columns_of_other_labels_are_counted(self) -> None:
        """C9: Further labels of the data set, and columns that nobody knows, are ignored with a count each."""
        lines = ["item_id,Edema,Mass,nodule,HERNIA,logit", *(f"{row},1,2,3,4" for row in ROWS)]
        assert notes(read(lines)) == [
            "p.csv: 3 columns ignored (other labels of the data set): 'Mass', 'nodule', 'HERNIA'",
            "p.csv: 1 column ignored (unknown): 'logit'",
        ]

    def test_no_finding_is_ignored(self) -> None:
        """N12: `No Finding` follows from the findings and is never scored by accident."""
        scores = read(["item_id,Edema,No Finding", *(f"{row},1" for row in ROWS)])
        assert notes(scores) == ["p.csv: 1 column ignored (it follows from the findings): 'No Finding'"]

    @pytest.mark.parametrize("head", ["label", "Labels", "Finding Labels", "target"])
    def test_label_columns_are_ignored(self, head: str) -> None:
        """N13: The reference standard never comes from a submission."""
        scores = read([f"item_id,Edema,{head}", *(f"{row},1" for row in ROWS)])
        assert notes(scores) == [
            f"p.csv: 1 column ignored (the reference standard comes from the registry only): '{head}'"
        ]

    @pytest.mark.parametrize("blank", ["", "Unnamed: 2"])
    def test_blank_heads_are_dropped(self, blank: str) -> None:
        """S9: Columns without a name, as torchxrayvision writes for untrained heads, are dropped with a count."""
        scores = read([f"item_id,Edema,{blank}", *(f"{row},0.5" for row in ROWS)])
        assert notes(scores) == ["p.csv: columns without a name dropped: 1"]

    def test_a_finding_without_a_trained_head_is_refused(self) -> None:
        """S9: A required finding that is absent while heads are blank cannot be scored for this model."""
        lines = ["item_id,Edema,,", *(f"{row},0.5,0.5" for row in ROWS)]
        assert (
            "no column for 'Effusion'; the file has item_id, Edema. "
            "2 columns have no name: a head that was not trained cannot be scored. Every finding"
        ) in refusal(lines, [EDEMA, EFFUSION])

    def test_an_index_column_is_nothing_to_note(self) -> None:
        """T14: The index that pandas writes is no blank head."""
        assert read([",item_id,Edema", *(f"{at},{row}" for at, row in enumerate(ROWS))]).notes == []


class TestValues:
    """A value is a finite number, or the file is refused."""

    def test_what_is_no_number_is_counted_per_column(self) -> None:
        """S5: NaN, infinity and empty cells are refused per column, with count, lines and ids."""
        assert refusal(["item_id,Edema,Effusion", "1_0,nan,1", "1_1,,inf", "3_0,0.1,1e999"], [EDEMA, EFFUSION]) == (
            "p.csv:2 column 'Edema': no finite number in 2 of 3 rows: 'nan' in line 2 (1_0), '' in line 3 (1_1). "
            "Every item needs a finite number; nothing is filled in\n"
            "p.csv:3 column 'Effusion': no finite number in 2 of 3 rows: "
            "'inf' in line 3 (1_1), '1e999' in line 4 (3_0). "
            "Every item needs a finite number; nothing is filled in"
        )

    @pytest.mark.parametrize("value", ["0_5", "٠.٥", "0x1", "true", "0.5.1", "1 2", "None"])
    def test_only_plain_numbers_count(self, value: str) -> None:
        """S5: Digit separators, other scripts' digits, hexadecimals and words are no scores."""
        assert f"'{value}' in line 4 (00000003_000)" in refusal(["item_id,Edema", *ROWS[:2], f"00000003_000,{value}"])

    def test_blanks_around_a_number_do_not_matter(self) -> None:
        """T15: A cell is read as Python reads a float, blanks and exponents included."""
        assert column(read(["item_id, Edema", "1_0, 1e-3", "1_1,+.5 ", "3_0,1"])) == [0.001, 0.5, 1.0]

    @pytest.mark.parametrize("number", [0.1 + 0.2, 1 / 3, 5e-324, -15.361, 1e16, 1.7976931348623157e308])
    def test_a_number_survives_its_text(self, number: float) -> None:
        """S15: The shortest text that Python writes is read back to the last bit."""
        assert column(read(["item_id,Edema", *ROWS[:2], f"00000003_000,{number!r}"]))[2] == number

    def test_the_way_a_number_is_written_does_not_matter(self) -> None:
        """S15: `-15.361` and `-15.361000` are one number, so one row repeats the other."""
        scores = read(["item_id,Edema", *ROWS[:2], "00000003_000,-15.361", "00000003_000,-15.361000"])
        assert column(scores)[2] == -15.361

    def test_decimal_commas_of_a_semicolon_file(self) -> None:
        """T5: With `;` between columns and a comma in every value, the comma is decimal, and that is noted."""
        scores = read(["item_id;Edema", "00000001_000;0,91", "00000001_001;0,5", "00000003_000;3,2E-05"])
        assert column(scores) == [0.91, 0.5, 3.2e-5]
        assert notes(scores) == ["p.csv: decimal commas read as decimal points"]

    @pytest.mark.parametrize("value", ["0.5", "", "1"])
    def test_mixed_decimals_are_refused(self, value: str) -> None:
        """T5: One value without a comma among values with one is refused, not guessed at."""
        assert refusal(["item_id;Edema", "00000001_000;0,91", "00000001_001;0,5", f"00000003_000;{value}"]) == (
            f"p.csv:4 column 'Edema': no finite number in 1 of 3 rows: '{value}' in line 4 (00000003_000). "
            "Write decimal points; commas are read only where ';' separates the columns and every value has one"
        )

    def test_quoted_decimal_commas_are_refused(self) -> None:
        """T5: In a comma-separated file a comma in a value is an accident."""
        assert "commas are read only where ';'" in refusal(["item_id,Edema", *ROWS[:2], '00000003_000,"0,5"'])

    def test_values_outside_0_and_1_are_noted(self) -> None:
        """S6: Logits are taken as they are: never clipped, only noted."""
        scores = read(["item_id,Edema,Effusion", "1_0,-3.2,0", "1_1,4.1,1", "3_0,0,0.5"], [EDEMA, EFFUSION])
        assert column(scores) == [-3.2, 4.1, 0.0]
        assert notes(scores)[1:] == ["p.csv: values outside [0, 1] (-3.2 to 4.1), taken as they are, in 'Edema'"]

    def test_a_constant_column_is_noted(self) -> None:
        """S11: The same value for every item is accepted with its consequence."""
        assert notes(read(["item_id,Edema", *(f"{row[:12]},0.25" for row in ROWS)])) == [
            "p.csv column 'Edema': the same value 0.25 for all items: AUROC is 0.5 by construction"
        ]

    def test_a_constant_half_is_a_blank_head(self) -> None:
        """S9: The constant 0.5 is what calibration makes of a head that was never trained."""
        assert notes(read(["item_id,Edema", *(f"{row[:12]},0.5" for row in ROWS)])) == [
            "p.csv column 'Edema': the same value 0.5 for all items: AUROC is 0.5 by construction; "
            "torchxrayvision gives 0.5 for a head that was not trained"
        ]


class TestWholeFiles:
    """One pass tells everything, and the layout of a file never changes a value."""

    def test_every_problem_is_told_in_one_pass(self) -> None:
        """T9: Rows, columns, ids and values are all judged before the file is refused."""
        lines = ["item_id,Edema,Edema", "1_0,1,1", "1_1,1", "9_9,1,1"]
        with pytest.raises(SubmissionError) as refused:
            read(lines, [EDEMA, EFFUSION])
        assert [issue.code for issue in refused.value.issues] == [
            "finding-missing",
            "column-ambiguous",
            "prediction-missing",
            "row-shape",
            "prediction-unknown",
        ]

    def test_importing_the_reader_is_cheap(self) -> None:
        """NumPy, pyarrow and pandas are imported only once there is a file to read."""
        script = "import sys, cxrspec.predictions; print({'numpy', 'pyarrow', 'pandas'} & set(sys.modules))"
        printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        assert printed == "set()\n"

    def test_a_thing_that_is_no_table_is_a_refused_submission(self) -> None:
        """N14: What the table reader refuses, the submission's reader refuses."""
        assert refusal(["version https://git-lfs.github.com/spec/v1"]).startswith(
            "p.csv: the file is a 42-byte git-lfs"
        )

    def test_a_file_that_is_not_there_is_refused(self, tmp_path: Path) -> None:
        """A path that cannot be read is a refused submission too."""
        with pytest.raises(SubmissionError, match=r"^p\.csv: cannot be read"):
            read_scores(tmp_path / "p.csv", [EDEMA], NIH)

    def test_parquet_scores_are_the_numbers_themselves(self) -> None:
        """T12: Parquet by magic bytes: single and double precision come through exactly, a null is no number."""
        stream = io.BytesIO()
        single = np.array([0.1, 0.2, 0.3], np.float32)
        table = {"Image Index": [row[:12] for row in ROWS], "Edema": single, "Effusion": [1, 0, None]}
        pq.write_table(pa.table(table), stream)
        assert column(read_scores(stream.getvalue(), [EDEMA], NIH, name="p.csv")) == single.astype(np.float64).tolist()
        with pytest.raises(SubmissionError, match=r"p\.csv:3 column 'Effusion': .* 'nan' in line 3 \(00000003_000\)"):
            read_scores(stream.getvalue(), [EDEMA, EFFUSION], NIH, name="p.csv")

    def test_parquet_scores_may_be_texts(self) -> None:
        """T12: A Parquet column of texts is read as the same cells in a text file would be."""
        stream = io.BytesIO()
        pq.write_table(pa.table({"item_id": [row[:12] for row in ROWS], "Edema": ["0.1", "1e-3", " 1"]}), stream)
        assert column(read_scores(stream.getvalue(), [EDEMA], NIH)) == [0.1, 0.001, 1.0]

    @given(st.randoms(use_true_random=False), st.sampled_from([",", ";", "\t"]), st.sampled_from(["\n", "\r\n", "\r"]))
    def test_shuffling_changes_nothing(self, order: random.Random, delimiter: str, end: str) -> None:
        """C8: Any order of rows and columns gives the same values for the same items."""
        columns = [EDEMA, EFFUSION, THICKENING]
        heads = ["Image Index", *(names.fits[0] for names in columns), "age"]
        rows = [[item, *(repr(at + place / 7) for place in range(3)), "x"] for at, item in enumerate(NIH.item_ids)]
        rows += [["00000002_000.png", "1", "2", "3", "y"], rows[0]]
        places = list(range(len(heads)))
        order.shuffle(places)
        order.shuffle(rows)
        lines = [delimiter.join(row[place] for place in places) for row in [heads, *rows]]
        scores = read_scores(end.join(lines).encode(), columns, NIH)
        assert scores.values.tolist() == [[at + place / 7 for place in range(3)] for at in range(3)]
        assert (scores.n_rows, scores.n_left_aside) == (5, 1)


def test_an_endless_id_costs_no_memory_and_little_text() -> None:
    """T11: An id of a hundred thousand characters is one unknown id, shown in part, whatever the release."""
    message = refusal(["Image Index,Edema", *ROWS, f"{'9' * 100_000},0.1"])
    assert f"in 1 of 4 rows: '{'9' * 60}…' in line 5 (nearest " in message
    assert len(message) < 500
