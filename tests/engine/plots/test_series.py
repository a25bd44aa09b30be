"""Scores over time drawn, `abers.plots.series`."""

from __future__ import annotations

from abers.plots import series


def test_a_line_for_each_view() -> None:
    """Numbers stand where they were found, and one that is not there leaves a gap."""
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
    """Of one number no line can be seen, so it has a marker."""
    views: dict[str, list[float | None]] = {"raw": [None, 0.5], "calibrated": [0.4, 0.3]}
    drawn = series([1, 2], views, title="Brier score", y_name="mean")
    assert [one.mode for one in drawn.data] == ["lines+markers", "lines"]
