"""The merges of `abers.calibration.intervals`."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.oracles.elementary import geometric_mean

from abers import CrossInterval, VennInterval
from abers.calibration import brier_merge, cross_brier_merge, cross_ends, cross_log_merge

pytestmark = pytest.mark.native

PAIRS = st.tuples(st.floats(0.0, 1.0, exclude_max=True), st.floats(2.0**-63, 1.0)).map(sorted)
FOLDS = st.lists(PAIRS.filter(lambda pair: pair[0] < 1.0 and pair[1] > 0.0), min_size=1, max_size=9)


def interval(pairs: list[list[float]]) -> CrossInterval:
    """Make the prediction of some folds."""
    p0, p1 = zip(*pairs, strict=True)
    return CrossInterval(p0, p1)


def root(factors: list[Fraction]) -> float:
    """Geometric mean by the exact product, brought into the range of doubles before its root."""
    product = math.prod(factors)
    if product == 0:
        return 0.0
    power = product.numerator.bit_length() - product.denominator.bit_length()
    k = len(factors)
    scaled = float(product / Fraction(2) ** power)
    return math.pow(scaled, 1 / k) * math.exp2(power / k)


@given(FOLDS)
@example([[0.1, 0.1], [0.9, 0.9]])
@example([[0.0, 2.0**-63]] * 9)
@example([[1.0 - 2.0**-53, 1.0]] * 9)
def test_merges_and_ends_are_the_formulas(pairs: list[list[float]]) -> None:
    """Both merges and both ends are what geometric and plain means of exact fractions give."""
    made = interval(pairs)
    for_0 = root([1 - Fraction(p0) for p0, _ in pairs])
    for_1 = root([Fraction(p1) for _, p1 in pairs])
    clip = (2.0**-53, 1 - 2.0**-53)
    assert made.low == pytest.approx(min(1 - for_0, for_1), rel=1e-13, abs=1e-15)
    assert made.high == pytest.approx(max(1 - for_0, for_1), rel=1e-13, abs=1e-15)
    assert made.width == pytest.approx(abs(for_1 - 1 + for_0), abs=1e-14)
    log = min(max(for_1 / (for_0 + for_1), clip[0]), clip[1])
    assert made.merged == pytest.approx(log, rel=1e-13, abs=1e-16)
    exact = [Fraction(p1) + Fraction(p0) ** 2 / 2 - Fraction(p1) ** 2 / 2 for p0, p1 in pairs]
    brier = min(max(float(sum(exact) / len(exact)), clip[0]), clip[1])
    assert made.merged_brier == pytest.approx(brier, rel=1e-13, abs=1e-15)


@given(FOLDS)
def test_log_merge_lies_between_the_ends(pairs: list[list[float]]) -> None:
    """In whichever order the means come, the merge lies between the ends and is never 0 or 1."""
    made = interval(pairs)
    assert made.low - 2.0**-52 <= made.merged <= made.high + 2.0**-52
    assert 0.0 < made.merged < 1.0
    assert 0.0 < made.merged_brier < 1.0


def test_ends_that_cross_are_sorted() -> None:
    """Folds sure of .1 and of .9 give the ends .3 and .7, and the merge .5."""
    made = CrossInterval((0.1, 0.9), (0.1, 0.9))
    assert (made.low, made.high, made.merged) == pytest.approx((0.3, 0.7, 0.5), rel=1e-14)


@given(PAIRS.filter(lambda pair: pair[0] < 1.0))
def test_one_fold_is_a_venn_abers_interval(pair: list[float]) -> None:
    """Alone, or several times over, an interval keeps its ends and merges."""
    single = VennInterval(*pair)
    for folds in (1, 4):
        made = interval([pair] * folds)
        assert made.merged == pytest.approx(single.merged, rel=1e-13, abs=1e-16)
        assert made.merged_brier == pytest.approx(single.merged_brier, rel=1e-14, abs=1e-16)
        assert (made.low, made.high) == pytest.approx(single, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("folds", [2, 100, 5_000])
def test_many_folds_and_tiny_probabilities_do_not_underflow(folds: int) -> None:
    """The product of thousands of tiny probabilities is no double; their mean is."""
    made = CrossInterval((0.0,) * folds, (1e-300,) * folds)
    assert made.high == pytest.approx(1e-300, rel=1e-10)
    assert made.merged == 2.0**-53
    sure = CrossInterval((1.0 - 2.0**-53,) * folds, (1.0,) * folds)
    assert sure.merged == pytest.approx(1.0, abs=2.0**-52)
    assert sure.merged < 1.0
    assert 1.0 - sure.low == pytest.approx(2.0**-53)


def test_a_certain_fold_is_no_error() -> None:
    """A p0 that rounds to 1 makes the mean 0 and the merge almost 1, without a warning."""
    made = CrossInterval((1.0, 0.2), (1.0, 0.5))
    assert made.merged == 1.0 - 2.0**-53
    assert made.high == 1.0


def test_arrays_are_merged_row_by_row() -> None:
    """Arrays of any leading shape and memory order give the values of each prediction alone."""
    rng = np.random.default_rng(5)
    p0 = rng.random((7, 6, 5)) * 0.9
    p1 = p0 + rng.random(p0.shape) * (1 - p0)
    for order in ("C", "F"):
        q0, q1 = np.array(p0, order=order), np.array(p1, order=order)
        log, brier, (low, high) = (
            cross_log_merge(q0, q1), cross_brier_merge(q0, q1), cross_ends(q0, q1)
        )  # fmt: skip
        for at in np.ndindex(7, 6):
            one = CrossInterval(tuple(p0[at].tolist()), tuple(p1[at].tolist()))
            merged = (log[at], brier[at], low[at], high[at])
            assert merged == pytest.approx(
                (one.merged, one.merged_brier, one.low, one.high), rel=1e-15
            )


@given(st.lists(PAIRS, min_size=1))
def test_brier_merge_of_arrays_is_that_of_each(pairs: list[list[float]]) -> None:
    """`brier_merge` gives each interval's own merge, to the last bit."""
    p0, p1 = np.array(pairs).T
    assert brier_merge(p0, p1).tolist() == [VennInterval(*pair).merged_brier for pair in pairs]


@given(FOLDS)
def test_geometric_means_are_those_of_the_specification(pairs: list[list[float]]) -> None:
    """The ends are equal to the bit to those of the reference, whatever the processor."""
    found = interval(pairs)
    for_0 = geometric_mean([1.0 - one for one in found.p0])
    ends = sorted([1.0 - for_0, geometric_mean([*found.p1])])
    assert [found.low, found.high] == ends


def test_a_missing_probability_has_no_merge() -> None:
    """NaN in a fold makes the merge NaN, on both backends, and no other row changes."""
    p = np.array([[0.1, np.nan], [0.2, 0.2]])
    found = cross_log_merge(p, p)
    assert np.isnan(found[0])
    assert found[1] == pytest.approx(0.2)
