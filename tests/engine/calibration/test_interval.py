"""The merges of `abers.calibration.intervals`."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from abers import VennInterval

INTERVALS = (
    st.tuples(st.floats(0.0, 1.0, exclude_max=True), st.floats(0.0, 1.0, exclude_min=True))
    .map(sorted)
    .filter(lambda pair: pair[0] < 1.0 and pair[1] > 0.0)
    .map(lambda pair: VennInterval(*pair))
)


@pytest.mark.parametrize(
    ("p0", "p1", "log"), [(0, 1 / 2, 1 / 3), (1 / 2, 1, 2 / 3), (2 / 3, 1, 3 / 4)]
)
def test_worked_example(p0: float, p1: float, log: float) -> None:
    """The three queries of the worked example merge to 1/3, 2/3 and 3/4."""
    assert VennInterval(p0, p1).merged == pytest.approx(log, rel=1e-15)


@given(INTERVALS)
def test_log_merge_is_the_formula(interval: VennInterval) -> None:
    """The log merge is p1 / (1 - p0 + p1)."""
    p0, p1 = map(Fraction, interval)
    assert interval.merged == pytest.approx(float(p1 / (1 - p0 + p1)), rel=1e-15, abs=2.0**-53)


@given(INTERVALS)
def test_brier_merge_is_the_formula(interval: VennInterval) -> None:
    """The Brier merge is the mean, moved towards 1/2 by the width."""
    p0, p1 = map(Fraction, interval)
    mean = (p0 + p1) / 2
    exact = mean + (p1 - p0) * (Fraction(1, 2) - mean)
    assert exact == p1 + p0**2 / 2 - p1**2 / 2
    assert interval.merged_brier == pytest.approx(float(exact), rel=1e-15, abs=2.0**-52)


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_merges_are_minimax(one: float, other: float) -> None:
    """Each merge regrets label 0 as much as label 1, against p0 and p1 themselves."""
    p0, p1 = min(one, other), max(one, other)
    log, brier = VennInterval(p0, p1).merged, VennInterval(p0, p1).merged_brier
    assert math.log(p1 / log) == pytest.approx(math.log((1 - p0) / (1 - log)), abs=1e-12)
    assert (1 - brier) ** 2 - (1 - p1) ** 2 == pytest.approx(brier**2 - p0**2, abs=1e-12)


@given(INTERVALS)
@example(VennInterval(0.0, 5e-324))
@example(VennInterval(1.0 - 2.0**-53, 1.0))
@example(VennInterval(0.0, 1.0))
def test_merges_lie_between_and_are_never_0_or_1(interval: VennInterval) -> None:
    """A merge lies between p0 and p1, and within [2^-53, 1 - 2^-53]: no loss is infinite."""
    for merge in (interval.merged, interval.merged_brier):
        assert 2.0**-53 <= merge <= 1.0 - 2.0**-53
        assert interval.p0 - 2.0**-52 <= merge <= interval.p1 + 2.0**-52


@pytest.mark.parametrize("p", [1e-300, 2.0**-53, 0.25, 1.0 - 2.0**-53])
def test_merges_of_a_certain_pair(p: float) -> None:
    """Where p0 equals p1 both merges are that value, but for the clamp."""
    expected = max(p, 2.0**-53)
    assert VennInterval(p, p).merged == pytest.approx(expected, rel=1e-15)
    assert VennInterval(p, p).merged_brier == pytest.approx(expected, rel=1e-15)


def test_is_a_pair_with_a_width() -> None:
    """An interval unpacks into p0 and p1, and its width is their difference."""
    p0, p1 = interval = VennInterval(0.25, 0.75)
    assert (p0, p1) == (0.25, 0.75)
    assert interval.width == 0.5
    assert repr(interval) == "VennInterval(p0=0.25, p1=0.75)"
