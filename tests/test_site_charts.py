"""The pictures of the site: where a value stands, what is said of it in words, and nothing unescaped."""

import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxrspec.report.site.charts import Scale, bar, forest_scale, icon, stack, strip

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda value: round(value, 4))


def entry(value: float | None = 0.6, *ends: tuple[float | None, float | None]) -> dict[str, Any]:
    """Return a score with intervals."""
    return {"value": value, "reason": None, "intervals": [{"low": low, "high": high} for low, high in ends]}


def lines(svg: str, name: str) -> list[list[float]]:
    """Return x1, y1, x2, y2 of the lines whose class begins with a name."""
    found = [one for one in ElementTree.fromstring(svg).iter("line") if one.get("class", "").startswith(name)]
    return [[float(one.get(key, "nan")) for key in ("x1", "y1", "x2", "y2")] for one in found]


@given(st.lists(NUMBERS, min_size=1, max_size=8))
def test_an_axis_holds_every_value_between_round_ticks(values: list[float]) -> None:
    """The ticks are few, ascending, and no value lies outside."""
    scale = Scale.over(values)
    assert 2 <= len(scale.ticks) <= 7
    assert list(scale.ticks) == sorted(set(scale.ticks))
    assert all(-1e-6 <= scale.percent(value) <= 100 + 1e-6 for value in values)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [((0.555, 0.6, 0.5), (0.5, 0.55, 0.6)), ((0.0, 17.8), (0, 5, 10, 15, 20)), ((0.5,), (0.4, 0.6)), ((), (0, 0.5, 1))],
)
def test_ticks_are_round(values: tuple[float, ...], ticks: tuple[float, ...]) -> None:
    """Ticks are multiples of 1, 2 or 5 times a power of ten."""
    assert ticks == Scale.over(values).ticks


def test_a_strip_places_value_and_intervals() -> None:
    """Each interval has a lane of its own, the value stands in the first, and chance is a line across."""
    scale = Scale(0.5, 0.7, (0.5, 0.7))
    svg = strip(entry(0.6, (0.55, 0.65), (0.5, 0.7)), scale, "x", 0.5)
    assert [[25, 7, 75, 7], [0, 14, 100, 14]] == lines(svg, "interval")
    assert [[50, 7, 50, 7]] == lines(svg, "point")
    assert [[0, 0, 0, 20]] == lines(svg, "chance")


def test_what_is_undefined_is_not_drawn() -> None:
    """Neither a value nor an interval that is null leaves a mark."""
    svg = strip(entry(None, (None, None)), Scale.over([]), "undefined")
    assert ([], []) == (lines(svg, "interval"), lines(svg, "point"))


def test_a_forest_leaves_undefined_ends_out_of_its_axis() -> None:
    """Only numbers count, and the reference line is on the axis."""
    scale = forest_scale([entry(None, (None, None)), entry(0.8, (0.7, 0.9))], 0.5)
    assert scale.low <= 0.5
    assert scale.high >= 0.9


@pytest.mark.parametrize(
    "svg",
    [
        strip(entry(), Scale.over([0, 1]), "<&>"),
        bar(1, Scale.over([0, 1]), "<&>"),
        stack({"a": 1, "b": 3}, "<&>"),
    ],
    ids=["strip", "bar", "stack"],
)
def test_every_picture_says_what_it_shows(svg: str) -> None:
    """A picture is an image with a title, and texts cannot break out of it."""
    root = ElementTree.fromstring(svg)
    assert ("img", "<&>") == (root.get("role"), root.findtext("title"))


def test_the_parts_of_a_stack_fill_it() -> None:
    """Shares stand side by side in the order given."""
    found = re.findall(r'x="([\d.]+)" y="3" width="([\d.]+)"', stack({"a": 1, "b": 3}, ""))
    assert [("0", "25"), ("25", "75")] == found


@pytest.mark.parametrize("state", ["held", "broken", "not checked"])
def test_each_state_has_a_mark_of_its_own(state: str) -> None:
    """Tick, cross and dash differ in shape, not only in colour, and name their state."""
    others = {"held", "broken", "not checked"} - {state}
    path = ElementTree.fromstring(icon(state)).find("path")
    assert path is not None
    assert state == ElementTree.fromstring(icon(state)).findtext("title")
    assert not any(str(path.get("d")) in icon(other) for other in others)
