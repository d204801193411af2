"""Box files: whatever the header and the order of rows, the same boxes, or one refusal that names every problem."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxrspec.errors import SubmissionError
from cxrspec.ids import IdRule
from cxrspec.predictions import ColumnNames, ExpectedItems, ExpectedPairs, PredictedBoxes, read_boxes
from cxrspec.predictions.boxes import BoxFormat

MASS = ColumnNames("mass", ("Mass",))
INFILTRATION = ColumnNames("infiltration", ("Infiltrate", "Infiltration"))
IDS = ["00000001_000", "00000001_001", "00000003_000"]
ROSTER = {**dict.fromkeys(IDS, "test"), "00000002_000": "train_val"}
ITEMS = ExpectedItems(
    item_ids=IDS,
    rule=IdRule("file_name"),
    id_columns=["Image Index"],
    known=lambda: ROSTER,
    reference="nih-cxr14-localization@bbox-2017-v1:boxed",
    known_labels=["Hernia"],
)
EXPECTED = ExpectedPairs.of_all(ITEMS, [MASS, INFILTRATION], frame=(1024, 512))
HEAD = "item_id,finding,x,y,w,h"
ROWS = ["00000001_000.png,Mass,10,20,30,40", "00000003_000.png,Infiltrate,1.5,2.25,100,200"]
BOXES = [[20.0, 10.0, 60.0, 40.0], [2.25, 1.5, 202.25, 101.5]]


def read(
    lines: Sequence[str] | bytes,
    box_format: BoxFormat = "xywh",
    expected: ExpectedPairs = EXPECTED,
    frame: tuple[int, int] = (1024, 512),
) -> PredictedBoxes:
    """Read boxes from bytes or the lines of a file."""
    data = lines if isinstance(lines, bytes) else "\n".join(lines).encode()
    return read_boxes(data, expected, name="b.csv", format=box_format, frame=frame)


def refusal(lines: Sequence[str] | bytes, box_format: BoxFormat = "xywh", expected: ExpectedPairs = EXPECTED) -> str:
    """Return the text of a refusal."""
    with pytest.raises(SubmissionError) as refused:
        read(lines, box_format, expected)
    return str(refused.value)


def notes(boxes: PredictedBoxes) -> list[str]:
    """Return the texts of the notes."""
    return [str(note) for note in boxes.notes]


class TestHeaders:
    """The four coordinates are found by their names, and the declared format says what they are."""

    @pytest.mark.parametrize(
        "head",
        [
            "Image Index,Finding Label,Bbox [x,y,w,h]",
            "Image Index,Finding Label,Bbox [x,y,w,h],,,",
            "Image Index,Finding Label,Bbox x,Bbox y,Bbox w,Bbox h",
            "Image Index,Finding Label,bbox_x,bbox_y,bbox_width,bbox_height",
            "image_index,FINDING,xmin,y_min,Width,height",
            "item_id,finding,left,top,width,height",
        ],
    )
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_headers_of_width_and_height(self, head: str, end: str) -> None:
        """N3: The forms of the box list's header, with either line end, are the same four columns."""
        boxes = read(end.join([head, *ROWS, ""]).encode())
        assert boxes.boxes.tolist() == BOXES
        assert (boxes.items.tolist(), boxes.findings.tolist(), boxes.scores) == ([0, 2], [0, 1], None)
        assert (boxes.notes, boxes.n_rows, boxes.n_left_aside) == ([], 2, 0)

    @pytest.mark.parametrize(
        "head",
        ["x0,y0,x1,y1", "x1,y1,x2,y2", "xmin,ymin,xmax,ymax", "X_Min,Y_Min,X_Max,Y_Max", "left,top,right,bottom"],
    )
    def test_headers_of_corners(self, head: str) -> None:
        """N3: Corners are rows and columns at once; `x1` is the left where `x2` is the right."""
        boxes = read(
            [f"item_id,finding,{head}", "1_0,Mass,10,20,40,60", "3_0,Infiltrate,1.5,2.25,101.5,202.25"], "xyxy"
        )
        assert boxes.boxes.tolist() == BOXES

    def test_empty_fields_after_the_box_do_not_matter(self) -> None:
        """N3: Trailing empty fields are there in some copies and not in others."""
        lines = ["Image Index,Finding Label,Bbox [x,y,w,h],,,", f"{ROWS[0]},,,", ROWS[1]]
        assert read(lines).boxes.tolist() == BOXES

    def test_a_seventh_field_is_refused(self) -> None:
        """N3: Something beyond the box has no name, so that it cannot be ignored."""
        assert refusal(["Image Index,Finding Label,Bbox [x,y,w,h],,,", f"{ROWS[0]},7,,", ROWS[1]]) == (
            "b.csv:2 column 7: the cell '7' stands under a header without a name. Name the column, or remove it"
        )

    def test_the_other_format_is_refused_by_its_header(self) -> None:
        """N3: A header of widths under the format of corners is a wrong declaration."""
        assert refusal([HEAD, *ROWS], "xyxy") == (
            "b.csv: the columns x, y, w, h are boxes as xywh, but the format is declared as xyxy. "
            "Declare xywh, or give boxes as xyxy"
        )

    def test_a_missing_coordinate_is_refused(self) -> None:
        """C9: A coordinate that is not there is named, and so are the headers that would do."""
        assert refusal(["item_id,finding,x,y,w", "1_0,Mass,1,2,3"]) == (
            "b.csv: no column 'h' for boxes as xywh; the file has item_id, finding, x, y, w. "
            "Name the columns x, y, w, h or x, y, width, height or xmin, ymin, width, height "
            "or left, top, width, height"
        )

    def test_columns_that_are_not_one_box_are_refused(self) -> None:
        """C7: The size of the image beside the size of the box: which is meant is not for us to say."""
        assert refusal([f"{HEAD},width,height", "1_0,Mass,1,2,3,4,5,6"]) == (
            "b.csv: 6 columns for the four coordinates of a box: 'x' (column 3), 'y' (column 4), 'w' (column 5), "
            "'h' (column 6), 'width' (column 7), 'height' (column 8). Keep the four that are meant"
        )

    def test_ids_and_findings_must_be_there(self) -> None:
        """N15: Without ids or findings no box belongs anywhere; both are told at once, with the coordinates."""
        text = refusal(["patient,x,y", "1,2,3"])
        assert [line.partition(";")[0] for line in text.splitlines()] == [
            "b.csv: no id column",
            "b.csv: no finding column",
            "b.csv: no column 'w', 'h' for boxes as xywh",
        ]

    def test_two_score_columns_are_refused(self) -> None:
        """C7: There is one score, or none."""
        assert "b.csv: 2 score columns: 'score' (column 7), 'Score' (column 8). Keep one of them" in refusal(
            [f"{HEAD},score,Score", f"{ROWS[0]},1,1"]
        )

    def test_parquet_boxes_are_the_numbers_themselves(self, tmp_path: Path) -> None:
        """T12: Parquet by magic bytes: coordinates come through exactly, with their score."""
        table = {"item_id": ["3_0"], "finding": ["mass"], "x": [0.1], "y": [0.2], "w": [1.7], "h": [3], "score": [0.3]}
        pq.write_table(pa.table(table), tmp_path / "boxes.csv")
        boxes = read_boxes(tmp_path / "boxes.csv", EXPECTED, format="xywh", frame=(1024, 512))
        assert boxes.boxes.tolist() == [[0.2, 0.1, 0.2 + 3, 0.1 + 1.7]]
        assert boxes.scores is not None
        assert boxes.scores.tolist() == [0.3]

    def test_decimal_commas_of_a_semicolon_file(self) -> None:
        """T5: With `;` between columns and a comma in every value, the comma is decimal, and that is noted."""
        boxes = read([HEAD.replace(",", ";"), "1_0;Mass;10,0;20,0;30,5;40,25"])
        assert boxes.boxes.tolist() == [[20.0, 10.0, 60.25, 40.5]]
        assert notes(boxes)[-1] == "b.csv: decimal commas read as decimal points"

    def test_other_columns_are_noted(self) -> None:
        """C9: What is not used is counted."""
        assert notes(read([f"{HEAD},confidence", f"{ROWS[0]},0.5"])) == [
            "b.csv: 1 column ignored (unknown): 'confidence'"
        ]


class TestPairs:
    """A pair has any number of boxes, and its image and finding are known."""

    def test_images_without_boxes_need_no_row(self) -> None:
        """T10: Boxes need not be there: none for a finding, none for an image, several for a pair."""
        boxes = read([HEAD, ROWS[0], "1_0,Mass,0,0,1024,512"])
        assert boxes.items.tolist() == [0, 0]
        assert boxes.boxes.tolist() == [[0.0, 0.0, 512.0, 1024.0], BOXES[0]]

    def test_a_file_without_boxes_is_noted(self) -> None:
        """T10: A localizer that finds nothing has a file with a header only, and that is worth a note."""
        boxes = read([HEAD])
        assert (boxes.boxes.shape, boxes.items.tolist(), boxes.n_rows) == ((0, 4), [], 0)
        assert notes(boxes) == ["b.csv: no box for any image"]

    def test_what_is_not_asked_for_is_left_aside(self) -> None:
        """T11: Other images, other labels and pairs outside the definition are counted and not looked at."""
        lines = [HEAD, *ROWS, "2_0,Mass,nan,x,,-1", "1_0,Hernia,-1,-1,-1,-1", "1_1,Mass,0,0,0,0"]
        asked = replace(EXPECTED, pairs=[pair for pair in EXPECTED.pairs if pair != ("00000001_001", "mass")])
        boxes = read(lines, expected=asked)
        assert boxes.boxes.tolist() == BOXES
        assert (boxes.n_rows, boxes.n_left_aside) == (5, 3)
        assert notes(boxes) == [
            "b.csv: 3 ids were re-padded (spreadsheet?)",
            "b.csv: rows of items outside the subset left aside: 1 (train_val 1)",
            "b.csv: rows of other labels of the data set left aside: 1 ('Hernia' 1)",
            "b.csv: rows of (image, finding) pairs that are not asked for left aside: 1",
        ]

    def test_unknown_images_and_findings_are_refused(self) -> None:
        """T11: An image or a finding that nobody knows is refused, both in one pass."""
        assert refusal([HEAD, *ROWS, "00000009_000,Mass,1,1,1,1", "00000001_000,Infiltrat,1,1,9,9"]) == (
            "b.csv:4: an id that is not in the release in 1 of 4 rows: "
            "'00000009_000' in line 4 (nearest '00000001_000'). Correct the ids, or remove the rows\n"
            "b.csv:5: no finding of nih-cxr14-localization@bbox-2017-v1:boxed in 1 of 3 rows: "
            "'Infiltrat' from line 5 on (1). The findings are mass, infiltration. Did you mean 'Infiltrate'?"
        )

    def test_repeated_boxes_are_dropped(self) -> None:
        """T9: The same box of a pair with the same score counts once; with another score it is another box."""
        rows = ["1_0,Mass,10,20,30,40,0.5", "1_0,Mass,1e1,20,30,40.0,.5", "1_0,mass,10,20,30,40,0.6"]
        boxes = read([f"{HEAD},score", *rows])
        assert boxes.scores is not None
        assert boxes.scores.tolist() == [0.5, 0.6]
        assert notes(boxes)[-1] == "b.csv: repeated rows with the same box dropped: 1"

    def test_boxes_that_differ_in_the_last_bit_are_two(self) -> None:
        """T9: Only what stands in the file tells whether rows are the same."""
        boxes = read([HEAD, "1_0,Mass,990,20,30,30", "1_0,Mass,990,20,30.000000000000004,30"])
        assert boxes.boxes.tolist() == [[20.0, 990.0, 50.0, 1020.0]] * 2

    @given(st.randoms(use_true_random=False), st.booleans())
    def test_shuffling_changes_nothing(self, order: random.Random, is_scored: bool) -> None:
        """C8: Any order of rows and columns gives the same boxes, in the same order."""
        heads = ["item_id", "finding", "x", "y", "w", "h", *(["score"] if is_scored else [])]
        rows = [
            [item, finding, str(x), "0", str(w), "3.5", *([str(x / 7)] if is_scored else [])]
            for item in ("1_0", "00000001_001", "2_0")
            for finding in ("Mass", "mass", "Infiltrate", "Hernia")
            for x, w in ((-0.0, 5), (0.0, 5), (1.1, 3), (1.1, 2))
        ]
        expected = read([",".join(row) for row in [heads, *rows]])
        places = order.sample(range(len(heads)), len(heads))
        order.shuffle(rows)
        shuffled = read([",".join(row[place] for place in places) for row in [heads, *rows]])
        assert expected.boxes.tobytes() == shuffled.boxes.tobytes()
        assert expected.items.tolist() == shuffled.items.tolist() == [0] * 6 + [1] * 6
        assert expected.findings.tolist() == shuffled.findings.tolist() == [0, 0, 0, 1, 1, 1] * 2
        assert str(expected.scores) == str(shuffled.scores)
        assert (expected.scores is None) == (not is_scored)
        assert notes(expected) == notes(shuffled)


class TestBoxes:
    """A box is finite, has a size, and lies in its frame, in pixels."""

    def test_what_is_no_number_is_counted_per_column(self) -> None:
        """S5: NaN, infinity and empty cells are refused per column; the hint says how to give no box."""
        assert refusal([f"{HEAD},score", "1_0,Mass,nan,1,1,1,1", "1_1,Mass,,1,1,inf,1", "3_0,Mass,5,6,7,8,x"]) == (
            "b.csv:2 column 'x': no finite number in 2 of 3 rows: "
            "'nan' in line 2 (1_0 Mass), '' in line 3 (1_1 Mass). "
            "Every box needs finite numbers; an image without boxes needs no row\n"
            "b.csv:3 column 'h': no finite number in 1 of 3 rows: 'inf' in line 3 (1_1 Mass). "
            "Every box needs finite numbers; an image without boxes needs no row\n"
            "b.csv:4 column 'score': no finite number in 1 of 3 rows: 'x' in line 4 (3_0 Mass). "
            "Every box needs finite numbers; an image without boxes needs no row"
        )

    def test_a_box_outside_the_frame_is_refused(self) -> None:
        """N3: The frame is width x height; a box that leaves it on any side is shown as it stands in the file."""
        inside = [f"1_0,Mass,{at},0,1,1" for at in range(50)]
        outside = ["1_0,Mass,-2e-6,0,9,9", "1_0,Mass,0,-1,9,9", "1_1,Mass,1020,0,5,9", "3_0,Mass,0,500, 9,12.5"]
        assert refusal([HEAD, *inside, *outside]) == (
            "b.csv:52: a box that leaves the frame 1024 x 512 in 4 of 54 rows: "
            "'-2e-6, 0, 9, 9' in line 52 (1_0 Mass), '0, -1, 9, 9' in line 53 (1_0 Mass), "
            "'1020, 0, 5, 9' in line 54 (1_1 Mass), '0, 500, 9, 12.5' in line 55 (3_0 Mass). "
            "Clip the boxes, or declare the frame whose pixels they are"
        )

    def test_a_rounding_error_is_no_way_out_of_the_frame(self) -> None:
        """N3: Copies differ by 5e-8 pixels; a box may leave the frame by a millionth, and is not clipped."""
        assert read([HEAD, "1_0,Mass,-1e-6,0,9,512.000001"]).boxes.tolist() == [[0.0, -1e-6, 512.000001, 9 - 1e-6]]

    @pytest.mark.parametrize("size", ["0,5", "5,0", "-1,5", "5,-1", "1e-20,5"])
    def test_a_box_without_size_is_refused(self, size: str) -> None:
        """N3: Neither width nor height may be zero or negative, also once it is added to a corner."""
        rows = [f"1_0,Mass,{at},0,1,1" for at in range(50)]
        assert refusal([HEAD, *rows, f"1_0,Mass,10,20,{size}"]) == (
            f"b.csv:52: a box without positive size in 1 of 51 rows: '10, 20, {size.replace(',', ', ')}' "
            "in line 52 (1_0 Mass). Correct the boxes, or remove them"
        )

    def test_infinities_that_cancel_are_refused(self) -> None:
        """S5: Infinities are refused where they stand, whatever their sum."""
        text = refusal([HEAD, *ROWS, "1_0,Mass,inf,0,-inf,5"])
        assert [line.partition(":")[2][:12] for line in text.splitlines()] == ["4 column 'x'", "4 column 'w'"]

    def test_a_sum_beyond_all_numbers_is_refused(self) -> None:
        """S5: Two finite numbers whose sum is not are a box outside the frame."""
        assert "a box that leaves the frame 1024 x 512 in 1 of 1 rows" in refusal([HEAD, "1_0,Mass,1e308,0,1e308,5"])

    def test_fractions_are_refused(self) -> None:
        """N3: Coordinates that all lie in [0, 1.5] are fractions of the image, not pixels."""
        assert refusal([HEAD, "1_0,Mass,0.1,0.2,0.3,0.4", "1_1,Mass,0.5,0.5,0.5,1"]) == (
            "b.csv: coordinates look like fractions: all 2 boxes lie inside [0, 1.5]. "
            "Give pixels of the frame 1024 x 512"
        )

    def test_one_large_box_makes_pixels(self) -> None:
        """N3: A tiny box beside a larger one is in pixels."""
        assert len(read([HEAD, "1_0,Mass,0.1,0.2,0.3,0.4", ROWS[1]]).boxes) == 2

    def test_widths_declared_as_corners_are_suspected(self) -> None:
        """N3: Where many corners are the wrong way round, and none would be as widths, the format is asked for."""
        rows = [f"1_0,Mass,{100 + at},200,50,60" for at in range(7)]
        text = refusal(["item_id,finding,x0,y0,x1,y1", *rows], "xyxy")
        assert text.startswith(
            "b.csv:2: a box without positive size in 7 of 7 rows: '100, 200, 50, 60' in line 2 (1_0 Mass), "
        )
        assert text.endswith(
            "'104, 200, 50, 60' in line 6 (1_0 Mass) and 2 more. "
            "Read as xywh, 0 boxes would be faulty, as xyxy 7 are: declare the format xywh?"
        )

    def test_corners_declared_as_widths_are_suspected(self) -> None:
        """N3: Where many widths leave the frame, and none would as corners, the format is asked for."""
        text = refusal([HEAD, "1_0,Mass,700,300,900,400", "1_1,Mass,600,300,800,400"])
        assert "a box that leaves the frame 1024 x 512 in 2 of 2 rows" in text
        assert text.endswith("Read as xyxy, 0 boxes would be faulty, as xywh 2 are: declare the format xyxy?")

    def test_a_wrong_frame_is_no_wrong_format(self) -> None:
        """N3: Where many boxes would be faulty in either format, neither is proposed."""
        text = refusal([HEAD, *(f"1_0,Mass,{1100 + at},0,50,60" for at in range(20)), "1_0,Mass,1000,9,1010,20"])
        assert text.endswith("Clip the boxes, or declare the frame whose pixels they are")

    def test_every_problem_is_told_in_one_pass(self) -> None:
        """T9: Rows, ids, findings and boxes are all judged before the file is refused."""
        rows = ["1_0,Mass,1", "9_9,Mass,1,1,1,1", "1_0,Lump,1,1,1,1", "1_0,Mass,x,1,1,1", "1_0,Mass,1,1,0,9"]
        with pytest.raises(SubmissionError) as refused:
            read([HEAD, *rows, "1_0,Mass,1000,0,30,30"])
        assert [issue.code for issue in refused.value.issues] == [
            "row-shape",
            "prediction-unknown",
            "finding-unknown",
            "prediction-value",
            "prediction-box",
            "prediction-box",
        ]

    def test_rows_are_judged_even_without_coordinates(self) -> None:
        """T9: A missing column hides no unknown image."""
        with pytest.raises(SubmissionError) as refused:
            read(["item_id,finding,x", "9_9,Mass,1"])
        assert [issue.code for issue in refused.value.issues] == ["column-missing", "prediction-unknown"]


class TestFrames:
    """Boxes come in pixels of the frame that the definition names."""

    def test_boxes_of_another_frame_are_scaled(self) -> None:
        """N3: The declared frame holds the whole image; its boxes are scaled to the definition's, with a note."""
        boxes = read([HEAD, "00000001_000,Mass,100,10,412,11"], frame=(512, 128))
        assert boxes.boxes.tolist() == [[40.0, 200.0, 84.0, 1024.0]]
        assert notes(boxes) == ["b.csv: boxes scaled from the frame 512 x 128 to 1024 x 512"]

    def test_boxes_are_judged_in_their_own_frame(self) -> None:
        """N3: What leaves the declared frame is refused, though it would lie in the definition's."""
        with pytest.raises(SubmissionError, match="a box that leaves the frame 512 x 128 in 1 of 1 rows"):
            read([HEAD, "1_0,Mass,100,10,413,11"], frame=(512, 128))
