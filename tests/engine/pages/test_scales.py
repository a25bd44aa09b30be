"""Scales and their round numbers, `abers.pages.figures.plot`."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from abers.pages.figures.plot import Scale, drawn, nice_ticks, number_text, widened

numbers = st.floats(-1e12, 1e12)


def test_a_scale_is_linear_and_ends() -> None:
    """The middle value is in the middle, and values outside stay at the ends."""
    scale = Scale(0, 10, 200, 100)
    assert [scale.at(one) for one in (0, 5, 10, -3, 12)] == [200, 150, 100, 200, 100]


@pytest.mark.parametrize(
    ("low", "high", "most", "values", "decimals"),
    [
        (0, 60, 6, [0, 10, 20, 30, 40, 50, 60], 0),
        (0, 50_000, 7, [0, 10_000, 20_000, 30_000, 40_000, 50_000], 0),
        (0, 0.6, 6, [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 1),
        (-7, 12, 4, [-5, 0, 5, 10], 0),
        (0.01, 0.04, 2, [0.02, 0.04], 2),
    ],
)
def test_ticks_are_round(
    low: float, high: float, most: int, values: list[float], decimals: int
) -> None:
    """Ticks are the multiples of a round step between the ends."""
    ticks = nice_ticks(low, high, most)
    assert ticks.values == pytest.approx(values)
    assert ticks.decimals == decimals


@given(numbers, numbers, st.integers(1, 12))
def test_ticks_are_few_and_inside(one: float, other: float, most: int) -> None:
    """Between any two ends there are at most as many ticks as there is room for, and one more."""
    low, high = widened((one, other))
    ticks = nice_ticks(low, high, most)
    slack = ticks.step * 1e-6
    assert len(ticks.values) <= most + 1
    assert all(low - slack <= tick <= high + slack for tick in ticks.values)
    mantissa = ticks.step / 10.0 ** math.floor(math.log10(ticks.step * (1 + 1e-9)))
    assert min(abs(mantissa - round_one) for round_one in (1, 2, 5)) < 1e-6


@given(st.lists(numbers, min_size=1))
def test_a_scale_has_an_extent(values: list[float]) -> None:
    """Ends around any values are apart, and no value is outside."""
    low, high = widened(values)
    assert low < high
    assert low <= min(values)
    assert high >= max(values)


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (12_345, 0, "12,345"),
        (-4.25, 1, "\N{MINUS SIGN}4.2"),
        (0, 2, "0"),
        (-0.01, 1, "0"),
        (2.5e12, 0, "2.5e+12"),
    ],
)
def test_numbers_are_written_as_on_the_page(value: float, decimals: int, text: str) -> None:
    """Thousands have commas, and a number below 0 a minus sign."""
    assert number_text(value, decimals) == text


@given(st.integers(1, 20_000))
def test_some_of_many_points_are_drawn(length: int) -> None:
    """At most 200 points are drawn, each once, the first and the last among them."""
    picked = [*drawn(length)]
    assert len(picked) == min(length, 200)
    assert picked == sorted(set(picked))
    assume(length > 1)
    assert (picked[0], picked[-1]) == (0, length - 1)
