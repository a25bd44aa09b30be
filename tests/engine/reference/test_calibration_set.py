"""The parts of `abers.reference` that `abers.VennAbers` does not show."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from abers.arrays import LEARN, ONE, PREDICT, REMOVE
from abers.reference.calibration_set import CalibrationSet, decayed
from abers.reference.isotonic import pool

GROUPS = st.lists(
    st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 40)).filter(any), max_size=30
).map(lambda weights: [(float(i), pair) for i, pair in enumerate(weights)])


@given(GROUPS)
def test_pool_is_isotonic_regression(groups: list[tuple[float, tuple[int, int]]]) -> None:
    """Pooling results in scipy's weighted isotonic regression of the mean label of each group."""
    values = {}
    for block in pool(groups):
        for score in range(int(block.lower), int(block.upper) + 1):
            values[float(score)] = block.value
    assert list(values) == [score for score, _ in groups]
    if groups:
        weights = [sum(pair) for _, pair in groups]
        means = [pair[1] / sum(pair) for _, pair in groups]
        fit = isotonic_regression(means, weights=weights).x
        assert list(values.values()) == pytest.approx(fit, rel=1e-6, abs=1e-6)


@given(GROUPS)
def test_pool_is_exact(groups: list[tuple[float, tuple[int, int]]]) -> None:
    """Blocks are ordered, strictly increasing, and hold exactly the weights of their groups."""
    blocks = pool(groups)
    for left, right in pairwise(blocks):
        assert left.upper < right.lower
        assert left.positives * right.weight < right.positives * left.weight
    for block in blocks:
        inside = [pair for score, pair in groups if block.lower <= score <= block.upper]
        assert block.weight == sum(map(sum, inside))
        assert block.positives == sum(positives for _, positives in inside)
        assert block.value == float(Fraction(block.positives, block.weight))


def test_pool_of_nothing() -> None:
    """No groups, no blocks."""
    assert pool([]) == []


@given(st.integers(1, 1 << 57), st.floats(-1e6, 1e6), st.floats(0.01, 1e4))
def test_decayed_is_exponential(weight: int, time: float, half_life: float) -> None:
    """A decayed weight is weight * 2^(time / half_life - exponent), to the rounding of doubles."""
    exponent = math.floor(time / half_life) - 3
    expected = weight * 2.0 ** (time / half_life - exponent)
    assert decayed(weight, time, half_life, exponent) == pytest.approx(expected, rel=1e-9, abs=8)


@given(st.integers(1, 1 << 57), st.floats(-1e6, 1e6), st.floats(0.01, 1e4), st.integers(0, 40))
def test_a_change_of_scale_shifts_bits_out(
    weight: int, time: float, half_life: float, shift: int
) -> None:
    """On a scale k steps further the weight is that of the old scale without its last k bits."""
    exponent = math.floor(time / half_life)
    before = decayed(weight, time, half_life, exponent)
    assert decayed(weight, time, half_life, exponent + shift) == before >> shift
    assert decayed(weight, time, half_life, exponent - 3) == before << 3


@pytest.mark.parametrize("weight", [1, 3, ONE, (1 << 57) - 1])
def test_whole_half_lives_are_exact(weight: int) -> None:
    """After whole half-lives nothing is rounded but what falls below one unit."""
    for k in (0, 1, 17, 30):
        assert decayed(weight, 2.5 * k, 2.5, 0) == int(float(weight)) << k
        assert decayed(weight, -2.5 * k, 2.5, 0) == int(float(weight)) >> k


def test_run_stops_at_the_first_refusal() -> None:
    """`run` returns the number of steps that it did, and does not touch the rest."""
    held = CalibrationSet()
    p0, p1 = np.full(4, np.nan), np.full(4, np.nan)
    steps = np.array([LEARN, PREDICT, REMOVE, PREDICT])
    scores, labels = np.full(4, 0.5), np.array([1, 0, 0, 0], np.uint8)
    assert held.run(steps.astype(np.uint8), scores, labels, None, None, p0, p1) == 2
    assert np.isnan(p0).tolist() == [True, False, True, True]
    assert (p0[1], p1[1]) == (1 / 2, 1.0)


def test_check_shows_the_state() -> None:
    """A broken invariant raises an AssertionError that carries the state."""
    held = CalibrationSet()
    held.learn(0.5, 1)
    held.check()
    held.size = 0
    with pytest.raises(AssertionError, match=r"'size': 0.*0\.5"):
        held.check()
