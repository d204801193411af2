"""Tables: the same cells whatever the delimiter, encoding and line ends, or a refusal that names line and column."""

import codecs
import gzip
import io
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxrspec.errors import SourceError
from cxrspec.tables import Table, read_lines, read_table


def read(text: str | bytes, columns: Sequence[str] | None = None, literal: bool = False) -> Table:
    """Read a table from text or bytes."""
    data = text.encode() if isinstance(text, str) else text
    return read_table(data, name="t.csv", columns=columns, literal=literal)


def refusal(text: str | bytes, columns: Sequence[str] | None = None) -> str:
    """Return the text of the refusal of a table."""
    with pytest.raises(SourceError) as refused:
        read(text, columns)
    return str(refused.value)


def parquet(**columns: object) -> bytes:
    """Return a Parquet file of the given columns."""
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", ["", "\n", "\n\n"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_line_ends_never_matter(end: str, last: str, quote: str) -> None:
    """T7: CRLF, CR, no newline at the end and empty last lines give the same cells and lines."""
    table = read(f"id,p\n{quote}a{quote},1\n\nb,2{last}".replace("\n", end))
    assert table.columns == {"id": ["a", "b"], "p": ["1", "2"]}
    assert [table.line_of(row) for row in range(2)] == [2, 4]


@pytest.mark.parametrize(
    "data",
    [
        codecs.BOM_UTF8 + "id,p\né,1".encode(),
        "id,p\né,1".encode("utf-16"),
        codecs.BOM_UTF16_BE + "id,p\né,1".encode("utf-16-be"),
        gzip.compress("id,p\né,1".encode()),
    ],
)
def test_a_byte_order_mark_is_no_part_of_the_header(data: bytes) -> None:
    """T4: UTF-8 with a mark, and UTF-16 by its mark, are read."""
    assert read(data).columns == {"id": ["é"], "p": ["1"]}


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ("id,p\né,1".encode("latin-1"), "t.csv:2: byte 0xe9 at offset 5"),
        (codecs.BOM_UTF8 + "id,p\né,1".encode("latin-1"), "t.csv:2: byte 0xe9 at offset 8"),
        ("id,p\na,1".encode("utf-16-le"), "t.csv:1: byte 0x00 at offset 1"),
    ],
)
def test_other_encodings_are_refused_with_the_offset(data: bytes, place: str) -> None:
    """T4: Bytes that are not UTF-8 are refused, never guessed at."""
    assert (
        refusal(data) == f"{place} is not UTF-8 text. UTF-8, and UTF-16 with its mark, are read: save the file as UTF-8"
    )


def test_a_mark_alone_is_an_empty_file() -> None:
    """T4: A byte order mark and nothing else is no table."""
    assert refusal(codecs.BOM_UTF8) == "t.csv: the file is empty, not a table"


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_header_tells_the_delimiter(delimiter: str) -> None:
    """T5: The delimiter is the one that yields the wanted columns."""
    assert read(f"id{delimiter}p\na{delimiter}1", ["p"]).columns == {"p": ["1"]}


def test_a_quoted_header_tells_the_delimiter_too() -> None:
    """T5: Where every cell is quoted, the quotes fit only around the right delimiter."""
    assert read('"id";"p, q"\n"a";"0,5"').columns == {"id": ["a"], "p, q": ["0,5"]}


def test_wanted_columns_decide_over_the_number_of_fields() -> None:
    """T5: A header full of commas is still split by tabs if only that yields the wanted columns."""
    assert read("id\tBbox [x,y,w,h]\na\t1,2,3,4", ["id"]).columns == {"id": ["a"]}


def test_quoted_cells_keep_delimiters_and_line_breaks() -> None:
    """T7: Quoted cells follow the csv rules, and the next row still knows its line."""
    table = read('id,q\na,"one, ""two""\nthree"\nb,x\n')
    assert table.columns == {"id": ["a", "b"], "q": ['one, "two"\nthree', "x"]}
    assert [table.line_of(row) for row in range(2)] == [2, 4]


def test_literal_quotes_stand_for_themselves() -> None:
    """Quotes of a literal TSV enclose nothing."""
    assert read('id\tq\na\t"yes" or "no\nb\t"', literal=True).columns == {"id": ["a", "b"], "q": ['"yes" or "no', '"']}


def test_an_open_quote_is_refused_at_its_line() -> None:
    """T7: A quote that never closes would swallow the rest of the file."""
    assert refusal('id,q\na,x\nb,"y\nc,z\n') == (
        "t.csv:3: the quotes do not match (unexpected end of data). Close or double the quote"
    )


def test_an_index_column_is_dropped() -> None:
    """T14: A first column 0..n-1 without a name, or called `Unnamed: 0`, is the index of pandas."""
    assert read(",id\n0,a\n1,b").columns == read("Unnamed: 0,id\n0,a\n1,b").columns == {"id": ["a", "b"]}


def test_a_first_column_that_is_no_index_stays() -> None:
    """T14: Other numbers are not an index."""
    assert read("Unnamed: 0,id\n7,a\n1,b").columns == {"Unnamed: 0": ["7", "1"], "id": ["a", "b"]}


def test_cells_under_no_name_are_refused() -> None:
    """T14: What stands under a header without a name has no meaning, so it is not ignored."""
    assert refusal("id,,p\na,,1\nb,x,2") == (
        "t.csv:3 column 2: the cell 'x' stands under a header without a name. Name the column, or remove it"
    )


@pytest.mark.parametrize("tail", ["", ",,,"])
def test_trailing_fields_without_a_name_may_be_absent(tail: str) -> None:
    """N3: The box list has 9 header fields, three of them empty, over rows of 6 fields."""
    table = read(f"Image Index,Finding Label,Bbox [x,y,w,h],,,\na.png,Mass,1,2,3,4{tail}", ["Bbox [x", "h]"])
    assert table.columns == {"Bbox [x": ["1"], "h]": ["4"]}


def test_a_seventh_field_of_a_box_is_refused() -> None:
    """N3: A non-empty cell beyond the named fields is no box."""
    assert "the cell '5' stands under a header without a name" in refusal("i,f,x,y,w,h,,,\na,b,1,2,3,4,5,,")


@pytest.mark.parametrize("quote", ["", '"'])
def test_ragged_rows_are_counted_and_five_are_shown(quote: str) -> None:
    """Rows of another length than the header are refused, the first five with their lines."""
    rows = "\n".join([f"{quote}ok{quote},1", *["x"] * 6, "x,1,2"])
    assert refusal(f"id,p\n{rows}") == (
        "t.csv:3: not the header's 2 cells in 7 of 8 rows: line 3 has 1, line 4 has 1, line 5 has 1, line 6 has 1, "
        "line 7 has 1 and 2 more. Give every row one cell per column, and quote cells that hold the delimiter"
    )


@pytest.mark.parametrize("head", [" edema ", "EDEMA", '"Edema\n"'])
def test_column_names_are_trimmed_and_caseless(head: str) -> None:
    """T15: Blanks, case and a line break in a header never matter, if only one column fits."""
    assert read(f"id,{head}\na,1", ["Edema"]).columns == {"Edema": ["1"]}


def test_the_exact_name_wins() -> None:
    """T15: A column that is spelled exactly so is meant."""
    assert read("edema,Edema\n0,1", ["Edema"]).columns == {"Edema": ["1"]}


@pytest.mark.parametrize("header", ["EDEMA,edema", "Edema,Edema"])
def test_two_columns_for_one_name_are_refused(header: str) -> None:
    """T15: Where two columns fit, neither is taken."""
    first, second = header.split(",")
    assert refusal(f"{header}\n0,1", ["Edema"]) == (
        f"t.csv: 2 columns fit 'Edema': '{first}' (column 1), '{second}' (column 2). Keep one of them"
    )


def test_a_missing_column_names_what_is_there() -> None:
    """T15: The refusal lists ten columns and a near name."""
    header = ",".join(["Image_Index", *map(str, range(11))])
    assert refusal(f"{header}\n{'a,' * 11}a", ["Image Index"]) == (
        "t.csv: no column 'Image Index'; the file has Image_Index, 0, 1, 2, 3, 4, 5, 6, 7, 8 and 2 more. "
        "Did you mean 'Image_Index'?"
    )


def test_everything_wrong_is_told_at_once() -> None:
    """All faults of a table come in one error, those of the whole file first."""
    with pytest.raises(SourceError) as refused:
        read("id,,p\na,x,1\nb", ["id", "q"])
    assert [issue.code for issue in refused.value.issues] == ["column-missing", "row-shape", "row-shape"]


def test_a_mirror_without_ids_is_refused() -> None:
    """N15: Rows that carry a patient id only cannot back items."""
    assert refusal(parquet(**{"Patient ID": [1, 2]}), ["image.path"]) == (
        "t.csv: no column 'image.path'; the file has Patient ID"
    )


def test_the_id_of_a_mirror_is_its_embedded_file_name() -> None:
    """N15: A field of a struct is a column, and the bytes beside it are never read."""
    images = [{"bytes": bytes(100_000), "path": f"{at:08d}_000.png"} for at in range(20)]
    stream = CountingFile(parquet(image=images, age=list(range(20))))
    table = read_table(stream, name="shard", columns=["image.path", "age"])
    assert table.columns["image.path"][:2] == ["00000000_000.png", "00000001_000.png"]
    assert table.columns["age"][-1] == "19"
    assert 0 < stream.n_read < 20_000


class CountingFile(io.BytesIO):
    """A file that counts the bytes that are read from it."""

    n_read = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Read and count."""
        data = super().read(size)
        self.n_read += len(data)
        return data


def test_parquet_cells_are_text(tmp_path: Path) -> None:
    """T12: Parquet gives the cells that text would; a null is empty, a list is joined as the NIH joins labels."""
    path = tmp_path / "labels.csv"
    cells = {
        "id": ["a", None],
        "n": [1, -1],
        "x": pa.array([0.1, 1.0], pa.float64()),
        "b": [True, False],
        "labels": [["Mass", "Hernia"], []],
        "kind": pa.array(["AP", "PA"]).dictionary_encode(),
        "__index_level_0__": [0, 1],
    }
    path.write_bytes(parquet(**cells))
    assert read_table(path, name="labels").columns == {
        "id": ["a", ""],
        "n": ["1", "-1"],
        "x": ["0.1", "1"],
        "b": ["1", "0"],
        "labels": ["Mass|Hernia", ""],
        "kind": ["AP", "PA"],
    }


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"image": [b"x"]}, "column 'image' holds binary, which is no text"),
        ({"image": [["a|b", "c"]]}, "column 'image' has lists whose texts hold '|'"),
    ],
)
def test_parquet_columns_that_are_no_text_are_refused(columns: dict[str, object], message: str) -> None:
    """T12: Image bytes are no cells, and a joined list must stay what it was."""
    assert message in refusal(parquet(**columns), ["image"])


def test_damaged_parquet_is_refused() -> None:
    """F1: The first bytes promise Parquet, the rest does not keep it."""
    assert refusal(b"PAR1 and then nothing").startswith("t.csv: the Parquet file is damaged (")


def test_parquet_is_bounded_while_it_is_unpacked() -> None:
    """T12: A column that is tiny on disk and huge in memory is refused at the limit."""
    data = parquet(p=[0.5] * 200_000)
    assert len(data) < 20_000
    with pytest.raises(SourceError, match=r"^p: more than 1,000,000 bytes once unpacked"):
        read_table(data, name="p", limit=1_000_000)


def test_parquet_may_be_packed() -> None:
    """T12: Parquet out of a gzip is Parquet."""
    assert read(gzip.compress(parquet(id=["a"]))).columns == {"id": ["a"]}


def test_a_list_is_its_lines() -> None:
    """T7: A list has one entry a line; blanks and line ends never matter."""
    assert read_lines(b"\xef\xbb\xbfa.png\r\n\r\n b.png", name="list") == ["a.png", "b.png"]


cells = st.text(st.characters(codec="utf-8", exclude_characters='\r\n,;\t"\0\ufeff'), min_size=1, max_size=5)


@given(st.lists(st.tuples(cells, cells), max_size=8))
def test_cells_come_back_untouched(rows: list[tuple[str, str]]) -> None:
    """T7: Odd white space and separators of other scripts are no line ends; cells are never trimmed."""
    plain = "id,p\n" + "".join(f"{a},{b}\n" for a, b in rows)
    quoted = "id,p\n" + "".join(f'"{a}","{b}"\n' for a, b in rows)
    expected = {"id": [a for a, _ in rows], "p": [b for _, b in rows]}
    assert expected == read(plain, ["id", "p"]).columns == read(quoted, ["id", "p"]).columns
