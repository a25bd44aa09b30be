"""Figures, `abers.pages.figures`: by the texts of their own axes, each shape is at its value."""

from __future__ import annotations

import math
import re
from datetime import datetime
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET
from zoneinfo import ZoneInfo

import pytest
from tests.engine.pages import samples
from tests.engine.pages.drawings import Drawing

from abers.pages.figures import draw, sign

ALL: dict[str, Any] = {
    "over_time": samples.over_time(zone="America/New_York"),
    "reliability": samples.reliability(),
    "gap": samples.gap(-12, -18, -6),
    "spark": samples.spark(),
    "intervals": samples.intervals(),
    "shares": samples.shares(),
}
EMPTY: dict[str, Any] = {
    "over_time": samples.over_time(0),
    "reliability": {**samples.reliability(), "promised": [None] * 5},
    "gap": {**samples.gap(0, 0, 0), "gap": None},
    "spark": samples.spark(0),
    "intervals": {**samples.intervals(0)},
    "shares": samples.shares(0),
}


def drawing(kind: str, data: Any, **kwargs: Any) -> Drawing:  # noqa: ANN401 - of any kind
    """Draw a figure and read it."""
    return Drawing(draw(kind, data, label="a figure", **kwargs))


def test_came_is_at_its_height() -> None:
    """The dots of came, the band and the promises are at the heights that the axis states."""
    data = samples.over_time()
    shown = drawing("over_time", data)
    dots = [*shown.circles("came"), *shown.circles("card")]
    assert [shown.value_up(one.y) for one in dots] == pytest.approx(
        [100 * one for one in data["came"] if one is not None], abs=0.05
    )
    for stroke, name in (("raw", "raw"), ("cal", "calibrated")):
        ((line,),) = shown.paths(stroke=stroke)
        wanted = [100 * one for one in data[name] if one is not None]  # type: ignore[literal-required]
        assert [shown.value_up(y) for _, y in line] == pytest.approx(wanted, abs=0.05)
    ((band,),) = shown.paths(fill="band")
    ends = [*data["high"], *reversed(data["low"])]
    wanted = [100 * one for one in ends if one is not None]
    assert [shown.value_up(y) for _, y in band] == pytest.approx(wanted, abs=0.05)


def test_rows_are_at_their_places() -> None:
    """Dots, alarms and the latest labels are where the axis of row numbers has them."""
    data = samples.over_time()
    data["alarms"], data["now"] = [12_000], 40_000
    shown = drawing("over_time", data)
    rows = {"10,000": 10_000.0, "40,000": 40_000.0}
    places = [shown.place_along(rows, one) for one in data["x"]]
    dots = [*shown.circles("came"), *shown.circles("card")]
    assert [one.x for one in dots] == pytest.approx(places, abs=0.1)
    (((alarm, _), _),) = next(path for path in shown.paths(stroke="no") if path)
    assert alarm == pytest.approx(shown.place_along(rows, 12_000), abs=0.1)
    ((left, _, _, _),) = shown.rectangles("now")
    assert left == pytest.approx(shown.place_along(rows, 40_000), abs=0.1)
    assert "alarm at 12,000" in shown.texts()
    assert "now" in shown.texts()


@pytest.mark.parametrize("width", [330, 520])
@pytest.mark.parametrize("row", range(2_000, 52_000, 2_000))
def test_an_alarm_has_its_row_and_now_its_name(width: float, row: int) -> None:
    """Wherever the latest alarm is, both have room."""
    data = samples.over_time()
    data["alarms"] = [row]
    texts = drawing("over_time", data, width=width).texts()
    assert {f"alarm at {row:,}", "now"} <= {*texts}


def test_figures_side_by_side_share_their_axis() -> None:
    """Two halves whose windows are at different rows have each row at the same place."""
    data, other = samples.over_time(), samples.over_time()
    for name in ("x", "labels", "came", "low", "high", "raw", "calibrated"):
        other[name] = other[name][3:20]
    other["now"] = None
    rows = {"10,000": 10_000.0, "40,000": 40_000.0}
    places = [drawing("over_time", one).place_along(rows, 12_345) for one in (data, other)]
    assert places[0] == pytest.approx(places[1], abs=0.05)


def test_times_are_those_of_the_zone() -> None:
    """Months begin at midnight in New York, and an alarm has the date that clocks there show."""
    place = ZoneInfo("America/New_York")
    data = samples.over_time(zone=place.key)
    data["alarms"] = [datetime(2013, 5, 9, 23, 30, tzinfo=place).timestamp() * 1_000]
    shown = drawing("over_time", data)
    months = {
        name: datetime(2013, month, 1, tzinfo=place).timestamp() * 1_000
        for name, month in (("Mar", 3), ("Nov", 11))
    }
    places = [shown.place_along(months, one) for one in data["x"]]
    dots = [*shown.circles("came"), *shown.circles("card")]
    assert [one.x for one in dots] == pytest.approx(places, abs=0.1)
    assert "alarm 9 May" in shown.texts()


def test_only_a_window_that_still_grows_is_hollow() -> None:
    """The last dot is hollow while its window is open."""
    data = samples.over_time()
    assert len(drawing("over_time", data).circles("card")) == 1
    data["open"] = False
    assert drawing("over_time", data).circles("card") == []


def test_a_dot_has_its_numbers() -> None:
    """A mouse on a dot shows labels, came with its range, and what was promised."""
    data = samples.over_time(2)
    data["came"], data["low"], data["high"] = [0.215, 0.3], [0.19, None], [0.242, None]
    data["raw"], data["calibrated"] = [0.417, None], [0.305, 0.31]
    data["labels"], data["open"] = [1_963, 585], False
    first, second = drawing("over_time", data).circles("came")
    assert first.title == "1,963 labels: came 21.5 % (19.0 to 24.2), raw 41.7 %, calibrated 30.5 %"
    assert second.title == "585 labels: came 30.0 %, calibrated 31.0 %"


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_lines_break_at_gaps(missing: float | None) -> None:
    """A missing value has no dot, and lines and band have a gap there."""
    data = samples.over_time(7)
    for name in ("came", "low", "high", "raw"):
        values = [*data[name]]
        values[3] = missing
        data[name] = values
    shown = drawing("over_time", data)
    assert len(shown.circles("came")) + len(shown.circles("card")) == 6
    (raw,) = shown.paths(stroke="raw")
    assert [len(part) for part in raw] == [3, 3]
    (band,) = shown.paths(fill="band")
    assert [len(part) for part in band] == [6, 6]


def test_a_model_without_raw_probabilities() -> None:
    """Without raw promises the other parts are drawn."""
    data = samples.over_time()
    data["raw"] = [None] * 25
    shown = drawing("over_time", data)
    assert shown.paths(stroke="raw") == []
    assert len(shown.paths(stroke="cal")) == 1


def test_groups_are_at_promised_and_came() -> None:
    """Each group is a dot at promised and came, with its range as a line and a title."""
    data = samples.reliability()
    shown = drawing("reliability", data)
    dots = shown.circles("cal")
    ends = {"20 %": 0.2, "80 %": 0.8}
    promised = [shown.place_along(ends, one) for one in data["promised"] if one is not None]
    assert [one.x for one in dots] == pytest.approx(promised, abs=0.1)
    came = [100 * one for one in data["came"] if one is not None]
    assert [shown.value_up(one.y) for one in dots] == pytest.approx(came, abs=0.05)
    ranges = [path for (path,) in shown.paths(stroke="cal") if len(path) == 2]
    for (top, bottom), low, high in zip(ranges, data["low"], data["high"], strict=True):
        assert (low, high) != (None, None)
        assert shown.value_up(top[1]) == pytest.approx(100 * (high or 0), abs=0.05)
        assert shown.value_up(bottom[1]) == pytest.approx(100 * (low or 0), abs=0.05)
    assert dots[1].title == "0.1 to 0.2: 2,100 cases, promised 14.5 %, came 15.5 %"


def test_tolerance_is_in_odds() -> None:
    """At each probability the green ends at odds that are 1.25 times lower and higher."""
    shown = drawing("reliability", samples.reliability())
    ((outline,),) = shown.paths(fill="tol")
    upper, lower = outline[: len(outline) // 2], outline[: len(outline) // 2 - 1 : -1]
    for (x, high), (other, low) in zip(upper[1:-1], lower[1:-1], strict=True):
        assert x == other
        p = (x - upper[0][0]) / (upper[-1][0] - upper[0][0])
        for y, factor in ((high, 1.25), (low, 1 / 1.25)):
            share = shown.value_up(y) / 100
            assert share / (1 - share) == pytest.approx(p / (1 - p) * factor, rel=0.05)


def test_the_isotonic_line_has_steps() -> None:
    """The thin line goes along or up, never both, through the fit at each place."""
    data = samples.reliability()
    shown = drawing("reliability", data)
    (line,) = max(shown.paths(stroke="cal"), key=lambda one: len(one[0]))
    assert all(x0 == x1 or y0 == y1 for (x0, y0), (x1, y1) in pairwise(line))
    ends = {"20 %": 0.2, "80 %": 0.8}
    for x, y in zip(data["isotonic_x"], data["isotonic_y"], strict=True):
        place = shown.place_along(ends, x)
        near = [shown.value_up(b) for a, b in line if abs(a - place) < 0.2]
        assert 100 * y == pytest.approx(near[-1], abs=0.05)


def test_bars_of_tenths_are_as_high_as_their_cases() -> None:
    """The height of a bar is in proportion to its cases, and the number is above it."""
    data = samples.reliability()
    shown = drawing("reliability", data)
    bars = shown.rectangles("cal")
    heights = [bottom - top for _, top, _, bottom in bars]
    assert heights == pytest.approx(
        [max(heights) * one / max(data["tenths"]) for one in data["tenths"]], abs=0.15
    )
    assert {f"{one:,}" for one in data["tenths"]} <= {*shown.texts()}


@pytest.mark.parametrize(
    ("gap", "low", "high", "arrows"),
    [(-12, -18, -6, 0), (2, 1, 2.5, 0), (-22, -42, -1, 1), (18, 9, 60, 1), (0, -50, 50, 2)],
)
def test_a_gap_is_on_the_scale_of_its_table(
    gap: float, low: float, high: float, arrows: int
) -> None:
    """0 is in the middle and a gap in proportion to the limit; an arrow says that more follows."""
    data = samples.gap(gap, low, high)
    shown = drawing("gap", data)
    left, right = 14, 230 - 14

    def place(value: float) -> float:
        return left + (right - left) * (min(21, max(-21, value)) + 21) / 42

    (dot,) = shown.circles("raw")
    assert dot.x == pytest.approx(place(gap), abs=0.06)
    ((tolerance_low, _, tolerance_high, _),) = shown.rectangles("tol")
    assert (tolerance_low, tolerance_high) == pytest.approx((place(-4.8), place(5.1)), abs=0.2)
    line = shown.paths(stroke="raw")[0][0]
    assert [x for x, _ in line] == pytest.approx([place(low), place(high)], abs=0.06)
    assert len(shown.paths(fill="raw")) == arrows


def test_a_spark_has_its_zero_and_tolerance() -> None:
    """Heights are in proportion from the line of 0 to the ends of the tolerance."""
    data = samples.spark()
    shown = drawing("spark", data)
    (((_, zero), _),) = shown.paths(stroke="soft")[0]
    ((_, top, _, bottom),) = shown.rectangles("tol")
    point = (zero - top) / 5.1
    assert bottom - zero == pytest.approx(4.8 * point, abs=0.2)
    ((line,),) = shown.paths(stroke="raw")
    assert [(zero - y) / point for _, y in line] == pytest.approx(
        [one for one in data["y"] if one is not None], abs=0.1
    )
    (end,) = shown.circles("raw")
    assert (end.x, end.y) == line[-1]
    assert shown.height == 44
    assert drawing("spark", data, width=110).height == 24


def test_what_is_saved_has_a_zero_and_no_tolerance() -> None:
    """Without a tolerance 0 is still on the scale."""
    data = samples.saved()
    data["y"] = [4.0] * 25
    shown = drawing("spark", data)
    (((_, zero), _),) = shown.paths(stroke="soft")[0]
    ((line,),) = shown.paths(stroke="cal")
    assert zero > line[0][1]
    assert shown.rectangles("tol") == []


def test_labels_stand_on_their_intervals() -> None:
    """Bars have the ends of the intervals, and a label outside the widest is large and red."""
    data = samples.intervals(5, zone=None)
    data["label"] = [50, 50, 80, 20, None]
    for band, wide in zip(data["bands"], (5, 10, 15), strict=True):
        band["low"], band["high"] = [50.0 - wide] * 5, [50.0 + wide] * 5
    shown = drawing("intervals", data)
    bars = shown.rectangles("cal")
    ends = [(shown.value_up(bottom), shown.value_up(top)) for _, top, _, bottom in bars]
    for at, wide in ((0, 15), (5, 10), (10, 5)):
        assert ends[at] == pytest.approx((50 - wide, 50 + wide), abs=0.2)
    inside, outside = shown.circles("came"), shown.circles("no")
    assert [shown.value_up(one.y) for one in inside] == pytest.approx([50, 50], abs=0.2)
    assert [shown.value_up(one.y) for one in outside] == pytest.approx([80, 20], abs=0.2)
    assert min(one.radius for one in outside) > max(one.radius for one in inside)


def test_an_interval_without_a_limit_goes_to_the_edge() -> None:
    """An infinite end is drawn to the edge, and a label beyond the other end is outside."""
    data = samples.intervals(3, zone=None)
    data["label"] = [10, 90, 50]
    data["bands"] = [{"level": 95, "low": [-math.inf] * 3, "high": [60, 60, None]}]
    shown = drawing("intervals", data)
    bars = shown.rectangles("cal")
    assert len(bars) == 2
    assert len(shown.circles("no")) == 1
    assert all(shown.value_up(bottom) <= 10 for _, _, _, bottom in bars)


def test_only_the_latest_labels_are_drawn() -> None:
    """Of many labels the last 60 are drawn."""
    data = samples.intervals(500, zone=None)
    shown = drawing("intervals", data)
    assert len(shown.circles("came")) + len(shown.circles("no")) == 60
    assert shown.texts()[-1].startswith("4")
    assert "441" in shown.texts()


def test_shares_are_stacked() -> None:
    """The area of each method is as thick as its weight, on those before it."""
    data = samples.shares(3)
    data["names"] = ["raw", "level", "stack"]
    data["shares"] = [[0.5, 0.25, 0.1], [0.3, 0.25, 0.1], [0.2, 0.5, 0.8]]
    shown = drawing("shares", data)
    below = [0.0, 0.0, 0.0]
    for number, weights in enumerate(data["shares"], 1):
        ((outline,),) = shown.paths(fill=f"m{number}")
        above = [b + 100 * (w or 0) for b, w in zip(below, weights, strict=True)]
        assert [shown.value_up(y) for _, y in outline] == pytest.approx(
            [*above, *reversed(below)], abs=0.1
        )
        below = above
    assert {"raw 10 %", "level 10 %", "stack 80 %"} <= {*shown.texts()}


def test_many_methods_are_seven_and_the_others() -> None:
    """Of more than eight methods the smallest are one area."""
    data = samples.shares(2)
    data["names"] = [f"method {one}" for one in range(11)]
    data["shares"] = [[weight] * 2 for weight in [0.01] * 4 + [0.96 / 7] * 7]
    texts = drawing("shares", data).texts()
    assert "others 4 %" in texts
    assert "method 4 14 %" in texts
    assert not any(one.startswith("method 0") for one in texts)


def test_a_small_weight_is_no_zero() -> None:
    """A weight below half a per cent is not written as 0."""
    data = samples.shares(1)
    data["names"], data["shares"] = ["raw", "level", "stack"], [[0.0], [0.001], [0.999]]
    assert {"raw 0 %", "level < 1 %", "stack 100 %"} <= {*drawing("shares", data).texts()}


@pytest.mark.parametrize("kind", EMPTY)
@pytest.mark.parametrize(
    ("missing", "text"),
    [(1_164, "1,164 more labels needed"), (1, "1 more label needed"), (0, "no labels")],
)
def test_an_empty_figure_says_what_is_missing(kind: str, missing: int, text: str) -> None:
    """Without points a figure is one line of text, which its description has too."""
    shown = drawing(kind, {**EMPTY[kind], "missing": missing})
    assert shown.texts() == [text]
    assert shown.label == f"a figure: {text}"


@pytest.mark.parametrize("kind", ALL)
def test_a_figure_is_the_same_each_time(kind: str) -> None:
    """Equal data make equal texts, as wide as their place, with coordinates of one decimal."""
    figure = draw(kind, ALL[kind], label="a figure")
    assert figure == draw(kind, ALL[kind], label="a figure")
    assert ' width="100%" role="img" ' in figure
    places = re.findall(r' (?:d|x|y|cx|cy|width|height)="([^"%]+)"', figure)
    assert places
    assert not [one for one in places if re.search(r"\.\d\d", one)]


@pytest.mark.parametrize("kind", ALL)
def test_colours_are_those_of_the_page(kind: str) -> None:
    """Every colour is a variable, so that light and dark pages both have theirs."""
    figure = draw(kind, ALL[kind], label="a figure")
    colours = {*re.findall(r'(?:fill|stroke)="([^"]+)"', figure)}
    assert {one for one in colours if not re.fullmatch(r"var\(--\w+\)", one)} <= {"none"}


HOSTILE = "\"><script>alert(1)</script>&\x00\x0b\ud800\ufffe'--"


@pytest.mark.parametrize("kind", ALL)
def test_hostile_labels_are_text(kind: str) -> None:
    """A label with markup and control characters stays the description."""
    figure = draw(kind, ALL[kind], label=HOSTILE)
    assert "<script" not in figure
    figure.encode()
    shown = Drawing(figure)
    assert shown.label == re.sub("[\x00\x0b\ud800\ufffe]", "\ufffd", HOSTILE)


def test_hostile_names_are_text() -> None:
    """Names of groups, methods and units with markup stay text."""
    groups = samples.reliability()
    groups["names"] = [HOSTILE] * 5
    methods = samples.shares()
    methods["names"] = [HOSTILE * 9] * 8
    labels = samples.intervals()
    labels["unit"] = HOSTILE
    for kind, data in (("reliability", groups), ("shares", methods), ("intervals", labels)):
        drawing(kind, data)


@pytest.mark.parametrize("kind", ["over_time", "spark", "shares", "reliability"])
def test_many_points_make_a_small_figure(kind: str) -> None:
    """Ten thousand points are some hundreds, in less than 50 kB."""
    steps = samples.reliability()
    steps["isotonic_x"] = steps["isotonic_y"] = [one / 10_000 for one in range(10_000)]
    data = {
        "over_time": samples.over_time(10_000),
        "spark": samples.spark(10_000),
        "shares": samples.shares(10_000),
        "reliability": steps,
    }
    figure = draw(kind, data[kind], label="a figure")
    assert len(figure.encode()) < 50_000
    assert len(Drawing(figure).circles("came")) <= 200


def test_signs_are_for_the_eye_alone() -> None:
    """The word next to a sign says the same, so that readers of the screen pass it over."""
    states = ["yes", "no", "partly", "undecided", "waiting", "recovering"]
    signs = {sign(one) for one in states}
    assert len(signs) == 6
    for one in signs:
        root = ET.fromstring(one)  # noqa: S314 - made by this project
        assert root.attrib["aria-hidden"] == "true"


def test_unknown_names_are_refused() -> None:
    """An unknown figure or state is an error with all that there are."""
    with pytest.raises(ValueError, match="unknown figure 'pie'; use over_time, reliability, gap"):
        drawing("pie", {})
    with pytest.raises(ValueError, match="unknown state 'maybe'; use yes, no, partly"):
        sign("maybe")
