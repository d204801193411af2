"""The picture of one item: every box where it is, every number in words, nothing from outside, nothing unescaped."""

import base64
import re
import struct
import zlib
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from cxrspec.report.picture import MOST_CELLS, localization_picture

SVG = "{http://www.w3.org/2000/svg}"
REFERENCE = {"reference": [(100.0, 200.0, 300.5, 500.25)]}
DETECTED = {"> 60": [(100, 200, 300, 500), (600, 10, 700, 60)], "> 180": [(150, 250, 200, 300)]}
MAP = np.arange(12.0).reshape(3, 4)


def picture(**changes: Any) -> str:
    """Draw a picture with one reference box, two boxes above 60 and one above 180."""
    given = {"title": "a.png Mass", "frame": (1024, 800), "reference": REFERENCE, "detected": DETECTED, "heatmap": MAP}
    return localization_picture(**{**given, **changes})


def drawn(svg: str, kind: str) -> list[ElementTree.Element]:
    """Return the rects of a class."""
    return [rect for rect in ElementTree.fromstring(svg).iter(f"{SVG}rect") if rect.get("class") == kind]


def placed(svg: str, kind: str) -> list[tuple[float, ...]]:
    """Return row0, col0, height and width of each rect of a class."""
    return [tuple(float(rect.get(key, "")) for key in ("y", "x", "height", "width")) for rect in drawn(svg, kind)]


def description(svg: str) -> str:
    """Return the words that stand for the picture."""
    return ElementTree.fromstring(svg).findtext(f"{SVG}desc") or ""


def pixels(svg: str) -> np.ndarray:
    """Return the palette levels of the embedded map, checked chunk by chunk."""
    [image] = [one for one in ElementTree.fromstring(svg).iter(f"{SVG}image") if one.get("class") == "heatmap"]
    data, position, chunks = base64.b64decode(image.get("href", "").partition(",")[2]), 8, {}
    while position < len(data):
        (length,) = struct.unpack_from(">I", data, position)
        kind_and_body = data[position + 4 : position + 8 + length]
        assert struct.unpack_from(">I", data, position + 8 + length) == (zlib.crc32(kind_and_body),)
        chunks[kind_and_body[:4]] = kind_and_body[4:]
        position += 12 + length
    width, height = struct.unpack_from(">2I", chunks[b"IHDR"])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any()
    return rows[:, 1:]


def test_every_box_is_one_rect_in_pixels_of_the_frame() -> None:
    """Rows are y and columns are x; fractions of a pixel stay."""
    assert [(100, 200, 200.5, 300.25)] == placed(picture(), "reference")
    assert {(100, 200, 200, 300), (600, 10, 100, 50), (150, 250, 50, 50)} == set(placed(picture(), "detected"))
    assert 3 == len(placed(picture(), "detected"))


def test_the_reference_is_solid_and_thresholds_differ_in_colour_and_dash() -> None:
    """Nobody needs colour to tell the lines apart."""
    styles = {
        (rect.findtext(f"{SVG}title"), rect.get("stroke"), rect.get("stroke-dasharray"))
        for kind in ("reference", "detected")
        for rect in drawn(picture(), kind)
    }
    assert {"reference", "> 60", "> 180"} == {label for label, _, _ in styles}
    assert 3 == len({colour for _, colour, _ in styles}) == len({dash for _, _, dash in styles})
    assert ["none"] == [dash for label, _, dash in styles if label == "reference"]


def test_the_words_say_how_many_boxes_and_how_good() -> None:
    """The description holds what the picture shows."""
    svg = picture(reference={"reference": [(100, 200, 300, 500)]})
    assert (
        "Heatmap of 3 x 4 values from 0 to 11. Frame of 1024 x 800 pixels. reference: 1 box. "
        "> 60: 2 boxes, best IoU 1.000, best IoBB 1.000. > 180: 1 box, best IoU 0.042, best IoBB 1.000."
    ) == description(svg)
    assert "img" == ElementTree.fromstring(svg).get("role")
    assert "a.png Mass" == ElementTree.fromstring(svg).findtext(f"{SVG}title")


def test_the_legend_says_the_same_words() -> None:
    """What a screen reader hears also stands under the picture."""
    texts = [text.text for text in ElementTree.fromstring(picture()).iter(f"{SVG}text")]
    for words in ("reference: 1 box", "> 180: 1 box, best IoU", "Heatmap of 3 x 4 values from 0 to 11"):
        assert any(text and text.startswith(words) for text in texts), words


def test_a_box_on_the_reference_hides_nothing() -> None:
    """The bands lie below every line, and the wider reference below the dashes."""
    svg = picture(detected={"> 60": REFERENCE["reference"]})
    assert svg.rindex("<path") < svg.index('class="reference"') < svg.index('class="detected"')
    [below], [above] = drawn(svg, "reference"), drawn(svg, "detected")
    assert float(below.get("stroke-width", "")) > float(above.get("stroke-width", ""))


def test_each_box_has_a_label_that_covers_no_other() -> None:
    """Where boxes coincide the labels part, and stay inside the frame."""
    whole = [(0, 0, 800, 1024)]
    chips = placed(picture(reference={"reference": whole}, detected={"> 60": whole, "> 180": whole}), "chip")
    assert 3 == len(chips)
    for position, (row, col, height, width) in enumerate(chips):
        assert 0 <= row <= row + height <= 800.001
        assert 0 <= col <= col + width <= 1024.001
        for other in chips[:position]:
            rows_meet = row < other[0] + other[2] and other[0] < row + height
            assert not (rows_meet and col < other[1] + other[3] and other[1] < col + width)


def test_texts_are_escaped() -> None:
    """A name with markup or control characters is only a name."""
    name = "</title><script>alert('\"&')</script>\x00\ud800"
    svg = picture(title=name, reference={name: [(0, 0, 9, 9)]}, detected={name: [(0, 0, 9, 9)]})
    assert name.replace("\x00\ud800", "\ufffd\ufffd") == ElementTree.fromstring(svg).findtext(f"{SVG}title")
    assert "<script" not in svg
    assert svg.encode()


def test_nothing_comes_from_outside() -> None:
    """The only addresses are the namespace and embedded data."""
    svg = picture()
    assert ["http://www.w3.org/2000/svg"] == re.findall(r"https?://[^\"]+", svg)
    assert all(address.startswith("data:image/png;base64,") for address in re.findall(r'href="([^"]*)', svg))
    assert "url(" not in svg


def test_without_detections_the_picture_says_so() -> None:
    """No box is a result, not a gap."""
    svg = picture(detected={"> 60": [], "> 180": np.empty((0, 4))})
    assert [] == drawn(svg, "detected")
    assert description(svg).endswith("reference: 1 box. > 60: no box. > 180: no box.")


def test_without_a_reference_there_is_no_best() -> None:
    """A value against nothing is not shown."""
    assert "best" not in picture(reference={"reference": []})


def test_a_constant_map_is_one_colour() -> None:
    """A map without a range divides by nothing and says that it is constant."""
    svg = picture(heatmap=np.full((7, 7), 0.5), detected={"> 60": []})
    assert {0} == set(pixels(svg).ravel().tolist())
    assert description(svg).startswith("Heatmap of 7 x 7 values, constant at 0.5.")


def test_a_map_spans_the_levels_and_keeps_its_orientation() -> None:
    """The first row is on top, the minimum 0 and the maximum 255."""
    levels = pixels(picture())
    high, wide = MOST_CELLS // 3, MOST_CELLS // 4
    assert (high * 3, wide * 4) == levels.shape
    assert np.rint(MAP / 11 * 255).tolist() == levels[::high, ::wide].tolist()


def test_a_large_map_keeps_its_peak() -> None:
    """Blocks show their maximum, so no single pixel gets lost."""
    heatmap = np.zeros((1000, 1500))
    heatmap[999, 1499] = 1
    levels = pixels(picture(heatmap=heatmap))
    assert (MOST_CELLS, MOST_CELLS) == levels.shape
    assert [[MOST_CELLS - 1, MOST_CELLS - 1]] == np.argwhere(levels).tolist()
    assert 255 == levels[-1, -1]


def test_colours_span_the_map_as_given() -> None:
    """Where every block holds a peak the map is all high, not all low."""
    assert {255} == set(pixels(picture(heatmap=np.indices((1024, 1024)).sum(axis=0) % 2)).ravel().tolist())


def test_predicted_boxes_need_no_map() -> None:
    """Boxes alone are drawn on an empty frame."""
    svg = picture(heatmap=None)
    assert "<image" not in svg
    assert description(svg).startswith("No heatmap. ")
    assert 3 == len(drawn(svg, "detected"))


def test_the_same_input_is_the_same_picture() -> None:
    """A picture can be kept and compared; arrays of boxes are boxes."""
    assert picture() == picture(detected={label: np.array(boxes) for label, boxes in DETECTED.items()})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"frame": (0, 5)}, "0 x 5 pixels"),
        ({"heatmap": np.array([[0.0, np.nan]])}, "not finite"),
        ({"heatmap": np.zeros(4)}, "shape"),
        ({"heatmap": np.zeros((0, 4))}, "shape"),
        ({"reference": {"reference": [(0, 0, np.inf, 4)]}}, "finite"),
        ({"detected": {"> 60": [(9, 0, 4, 4)]}}, "ends before it starts"),
    ],
)
def test_what_cannot_be_drawn_is_refused(changes: dict[str, Any], message: str) -> None:
    """No SVG with a negative width or a `nan` in it."""
    with pytest.raises(ValueError, match=message):
        picture(**changes)
