"""Figures of any data, `abers.pages.figures`: always XML, and never outside their frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.pages.drawings import Drawing

from abers.pages.figures import draw

if TYPE_CHECKING:
    from abers.pages.figures.data import (
        GapData,
        IntervalsData,
        OverTimeData,
        ReliabilityData,
        SharesData,
        SparkData,
        Which,
    )

finite = st.floats(allow_nan=False, allow_infinity=False)
cells = st.none() | st.floats()
whiches: st.SearchStrategy[Which] = st.sampled_from(["raw", "calibrated"])
zones = st.sampled_from([None, "UTC", "America/New_York"])
widths = st.sampled_from([330.0, 520.0, 1_060.0])
counts = st.integers(0, 10**12)


def columns(draw_from: st.DataObject, length: int, number: int) -> list[list[float | None]]:
    """Return columns of numbers and gaps."""
    return [
        draw_from.draw(st.lists(cells, min_size=length, max_size=length)) for _ in range(number)
    ]


def require_inside(figure: str) -> None:
    """Require XML whose shapes and texts are inside the frame."""
    shown = Drawing(figure)
    for x, y in shown.coordinates():
        assert 0 <= x <= shown.width
        assert 0 <= y <= shown.height
    for text in shown.root.iter("text"):
        assert 0 <= float(text.attrib["x"]) <= shown.width
        assert 0 <= float(text.attrib["y"]) <= shown.height


@given(st.lists(finite, max_size=8), zones, widths, st.data())
def test_over_time(x: list[float], zone: str | None, width: float, chosen: st.DataObject) -> None:
    """Promised and came of any size, at any times, with any alarms."""
    came, low, high, raw, calibrated = columns(chosen, len(x), 5)
    data: OverTimeData = {
        "x": sorted(x),
        "zone": zone,
        "ends": chosen.draw(st.tuples(finite, finite)),
        "labels": [1] * len(x),
        "came": came,
        "low": low,
        "high": high,
        "raw": raw,
        "calibrated": calibrated,
        "alarms": chosen.draw(st.lists(finite, max_size=9)),
        "now": chosen.draw(st.none() | finite),
        "reference": chosen.draw(st.none() | st.tuples(finite, finite)),
        "open": chosen.draw(st.booleans()),
        "missing": chosen.draw(counts),
    }
    require_inside(draw("over_time", data, label="", width=width))


@given(st.integers(0, 8), widths, st.data())
def test_reliability(groups: int, width: float, chosen: st.DataObject) -> None:
    """Groups with any shares, and any cases."""
    promised, came, low, high = columns(chosen, groups, 4)
    steps = chosen.draw(st.lists(finite, max_size=9))
    data: ReliabilityData = {
        "which": chosen.draw(whiches),
        "names": ["group"] * groups,
        "promised": promised,
        "came": came,
        "low": low,
        "high": high,
        "cases": [5] * groups,
        "tolerance": chosen.draw(st.floats(1, 1e9)),
        "isotonic_x": sorted(steps),
        "isotonic_y": steps,
        "tenths": chosen.draw(st.lists(counts, min_size=10, max_size=10)),
        "missing": chosen.draw(counts),
    }
    require_inside(draw("reliability", data, label="", width=width))


@given(cells, finite, finite, st.data())
def test_gap(gap: float | None, low: float, high: float, chosen: st.DataObject) -> None:
    """A gap of any size, on any scale."""
    tolerance = chosen.draw(st.floats(0, 1e300))
    data: GapData = {
        "which": chosen.draw(whiches),
        "gap": gap,
        "low": low,
        "high": high,
        "tolerance": (-tolerance, tolerance),
        "limit": chosen.draw(st.floats(0, 1e300)),
        "missing": 0,
    }
    require_inside(draw("gap", data, label=""))


@given(st.lists(finite, max_size=8), st.none() | st.floats(0, 1e300), st.data())
def test_spark(x: list[float], tolerance: float | None, chosen: st.DataObject) -> None:
    """Gaps of any size, with any tolerance."""
    (y,) = columns(chosen, len(x), 1)
    data: SparkData = {
        "which": chosen.draw(whiches),
        "x": sorted(x),
        "y": y,
        "tolerance": None if tolerance is None else (-tolerance, tolerance),
        "alarms": chosen.draw(st.lists(finite, max_size=3)),
        "now": chosen.draw(st.none() | finite),
        "missing": 3,
    }
    require_inside(draw("spark", data, label=""))
    require_inside(draw("spark", data, label="", width=110))


@given(st.lists(finite, max_size=8), zones, widths, st.text(max_size=30), st.data())
def test_intervals(
    x: list[float], zone: str | None, width: float, unit: str, chosen: st.DataObject
) -> None:
    """Labels and intervals of any size and unit, also without a limit."""
    label, *ends = columns(chosen, len(x), 7)
    pairs = zip((50, 80, 95), ends[::2], ends[1::2], strict=False)
    data: IntervalsData = {
        "x": x,
        "zone": zone,
        "unit": unit,
        "label": label,
        "bands": [{"level": level, "low": low, "high": high} for level, low, high in pairs],
        "missing": 3,
    }
    for band in data["bands"]:
        both = [
            (low, high) if low is None or high is None else (min(low, high), max(low, high))
            for low, high in zip(band["low"], band["high"], strict=True)
        ]
        band["low"], band["high"] = [low for low, _ in both], [high for _, high in both]
    require_inside(draw("intervals", data, label="", width=width))


@given(
    st.lists(finite, max_size=8),
    zones,
    widths,
    st.lists(st.text(max_size=60), max_size=12),
    st.data(),
)
def test_shares(
    x: list[float], zone: str | None, width: float, names: list[str], chosen: st.DataObject
) -> None:
    """Any weights of methods with any names."""
    data: SharesData = {
        "x": sorted(x),
        "zone": zone,
        "names": names,
        "shares": [*columns(chosen, len(x), len(names))],
        "missing": 3,
    }
    require_inside(draw("shares", data, label="", width=width))
