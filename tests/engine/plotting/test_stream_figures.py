"""Scores over time drawn, `abers.plotting.stream_figures`."""

from __future__ import annotations

from itertools import combinations

from abers.plotting import bars, series


def test_a_line_for_each_view() -> None:
    """Numbers are at their positions, and a missing one leaves a gap."""
    views: dict[str, list[float | None]] = {
        "raw": [0.5, None, 0.25],
        "calibrated": [0.4, 0.3, 0.2],
    }
    drawn = series([1, 2, 4], views, title="Brier score", y_name="mean")
    assert [(one.name, one.x, one.y) for one in drawn.data] == [
        (name, (1, 2, 4), tuple(numbers)) for name, numbers in views.items()
    ]
    assert not any(one.connectgaps for one in drawn.data)
    titles = (drawn.layout.title.text, drawn.layout.xaxis.title.text, drawn.layout.yaxis.title.text)
    assert titles == ("Brier score", "labels so far", "mean")


def test_a_view_of_one_number_is_a_point() -> None:
    """A single number has a marker, because it makes no line."""
    views: dict[str, list[float | None]] = {"raw": [None, 0.5], "calibrated": [0.4, 0.3]}
    drawn = series([1, 2], views, title="Brier score", y_name="mean")
    assert [one.mode for one in drawn.data] == ["lines+markers", "lines"]


def test_other_lines_differ_in_two_ways() -> None:
    """Lines of other names differ by colour and by dash, and raw keeps its style among them."""
    names = ["raw", *"abcdefg"]
    views: dict[str, list[float | None]] = {name: [0.0, 1.0] for name in names}
    lines = {one.name: one.line for one in series([1, 2], views, title="", y_name="").data}
    alone = series([1, 2], {"raw": [0.0, 1.0]}, title="", y_name="").data[0].line
    assert lines.pop("raw") == alone
    for one, other in combinations(lines.values(), 2):
        assert one.color != other.color
        assert one.dash != other.dash or {one.dash} == {"solid"}
    assert alone.color not in {one.color for one in lines.values()}


def test_a_bar_for_each_name() -> None:
    """Bars have the given lengths, and the first name is at the top."""
    weights = {"raw": 0.25, "platt": 0.75}
    drawn = bars(weights, title="Weights", x_name="weight", y_name="method")
    (trace,) = drawn.data
    assert (trace.y, trace.x, trace.orientation) == (("raw", "platt"), (0.25, 0.75), "h")
    assert drawn.layout.yaxis.autorange == "reversed"
    assert drawn.layout.xaxis.title.text == "weight"
    assert drawn.layout.yaxis.title.text == "method"
