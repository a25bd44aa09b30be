"""The range of the calibration error, against grids, brute force and streams with known truth."""

from __future__ import annotations

import copy
import math
import pickle
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special
from tests.oracles import calibration_error as oracle

from abers.backends import core
from abers.exceptions import LabelError, ParameterError, ScoreError
from abers.monitoring import CalibrationError, CalibrationErrorSequence, PrequentialScores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats

SHAPE = oracle.SHAPE
PRIOR = SHAPE * math.log(SHAPE) - special.gammaln(SHAPE) - math.log(special.gammainc(SHAPE, SHAPE))


def one_sided(s: float, v: float) -> float:
    """Return the logarithm of the mixture of one side, by scipy."""
    a, x = v + SHAPE, s + v + SHAPE
    share = special.gammainc(a, x) if x > 0.0 else 0.0
    if share == 0.0:  # the other side is more than exp(30) times as large
        return -math.inf
    return float(PRIOR + special.gammaln(a) + math.log(share) - a * math.log(x) + x - SHAPE)


def mixture(s: float, v: float) -> float:
    """Return the logarithm of the mean of both sides."""
    return float(np.logaddexp(one_sided(s, v), one_sided(-s, v))) - math.log(2.0)


def bins_of(p: Floats, y: Floats) -> Floats:
    """Return labels, ones, forecasts and squares of ten bins."""
    at = np.minimum((10.0 * p).astype(int), 9)
    terms = np.stack([np.ones(len(p)), y, p, (y - p) ** 2])
    return np.ascontiguousarray([terms[:, at == k].sum(axis=1) for k in range(10)])


def drawn(n: int, odds: float, seed: int) -> tuple[Floats, Floats]:
    """Return forecasts whose odds are so many times too high, and labels."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2.0, 5.0, n)
    return p, (rng.random(n) < p / (p + (1.0 - p) * odds)).astype(float)


# The mixture


@given(s=st.floats(0, 1e3), v=st.floats(0, 1e5))
def test_both_sides_in_closed_form(s: float, v: float) -> None:
    """The mixture of both sides is that of scipy, also where one needs no gamma function."""
    found = oracle.TwoSidedMixture(SHAPE)
    assert found.log_at(s, v).value == pytest.approx(mixture(s, v), rel=1e-7, abs=1e-7)
    assert found.log_at_zero(v) == pytest.approx(mixture(0.0, v), rel=1e-7, abs=1e-7)


@given(s=st.floats(0.1, 1e3), v=st.floats(0, 1e4))
def test_slopes_are_derivatives(s: float, v: float) -> None:
    """First and second derivative are those of differences, and the mixture is convex."""
    found, step = oracle.TwoSidedMixture(SHAPE), 1e-4 * (1.0 + s) / 2.0
    below, at, above = (found.log_at(one, v) for one in (max(s - step, 0.0), s, s + step))
    width = s + step - max(s - step, 0.0)
    assert at.first == pytest.approx((above.value - below.value) / width, rel=1e-4, abs=1e-6)
    assert at.second == pytest.approx((above.first - below.first) / width, rel=1e-4, abs=1e-7)
    assert at.second > 0.0


# The ends


@st.composite
def sums(draw: st.DrawFn) -> Floats:
    """Draw the sums of bins, some of them empty."""
    rows = []
    for _ in range(draw(st.integers(1, 10))):
        n = draw(st.integers(0, 5_000))
        ones = draw(st.integers(0, n))
        forecasts = n * draw(st.floats(0, 1))
        squares = n * draw(st.floats(0, 1))
        rows.append([n, ones, forecasts, squares])
    return np.array(rows, dtype=float)


@given(bins=sums(), alpha=st.floats(1e-9, 0.9))
def test_the_core_equals_its_oracle(bins: Floats, alpha: float) -> None:
    """Both ends are those of plain Python, to the last bit."""
    assert core.calibration_error(bins, alpha) == oracle.calibration_error(bins.tolist(), alpha)


def ends_on_a_grid(bins: Sequence[Sequence[float]], alpha: float, steps: int) -> list[float]:
    """Return the least and the largest sum of distances that two bins can have, by brute force."""
    grids = []
    for n, ones, forecasts, squares in bins:
        least, most = (ones - forecasts + one for one in (-90.0, 90.0))
        grid = np.linspace(max(least, -forecasts), min(most, n - forecasts), steps)
        logs = np.array([mixture(abs(ones - forecasts - one), squares) for one in grid])
        grids.append((np.abs(grid), logs))
    (first, of_first), (second, of_second) = grids
    possible = of_first[:, None] + of_second[None, :] <= -math.log(alpha)
    distances = (first[:, None] + second[None, :])[possible]
    return [float(distances.min()), float(distances.max())]


@pytest.mark.parametrize("ones", [(250, 900), (150, 800), (230, 840), (10, 980)])
def test_ends_of_two_bins_on_a_grid(ones: tuple[int, int]) -> None:
    """Both ends are within .2 % of those of all true probabilities on a grid."""
    bins = [
        [1_000.0, float(ones[0]), 250.0, 180.0],
        [1_200.0, float(ones[1]), 900.0, 230.0],
    ]
    low, high = core.calibration_error(np.array(bins), 0.05)
    assert [low, high] == pytest.approx(ends_on_a_grid(bins, 0.05, 2_001), abs=0.002 * high)


def farthest_alone(bin_: Sequence[float], budget: float) -> float:
    """Return the largest distance from 0 that a bin can have if it uses the budget alone."""
    n, ones, forecasts, squares = bin_

    def left(r: float) -> float:
        return budget - mixture(r, squares) + mixture(0.0, squares)

    reach = float(n) if left(float(n)) >= 0.0 else float(optimize.brentq(left, 0.0, n))
    middle = ones - forecasts
    return max(abs(min(middle + reach, n - forecasts)), abs(max(middle - reach, -forecasts)))


@pytest.mark.parametrize(("odds", "n"), [*product((1.0, 1.5, 3.0), (200, 3_000))])
def test_ends_of_ten_bins_by_a_general_solver(odds: float, n: int) -> None:
    """What bins can be off together is what a solver of constrained problems finds."""
    bins = bins_of(*drawn(n, odds, 1))
    bins = bins[bins[:, 0] > 0.0]
    deviations = np.abs(bins[:, 1] - bins[:, 2])
    budget = -math.log(0.05) - sum(mixture(0.0, one) for one in bins[:, 3])
    farthest = np.array([farthest_alone(one, budget) for one in bins.tolist()])

    def evidence(distances: Floats) -> float:
        pairs = zip(np.abs(distances), bins[:, 3], strict=True)
        return float(-math.log(0.05) - sum(mixture(r, v) for r, v in pairs))

    def most(limits: Floats) -> float:
        if evidence(limits) >= 0.0:
            return float(limits.sum())
        found = optimize.minimize(
            lambda r: -r.sum(),
            np.minimum(limits, 0.1),
            bounds=[(0.0, limit) for limit in limits],
            constraints=[{"type": "ineq", "fun": evidence}],
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-10},
        )
        return float(-found.fun)

    low, high = core.calibration_error(np.ascontiguousarray(bins), 0.05)
    total = deviations.sum()
    rest = np.maximum(farthest - deviations, 0.0)
    assert high == pytest.approx(total + most(rest), rel=1e-4)
    assert low == pytest.approx(max(total - most(deviations), 0.0), rel=1e-3, abs=1e-3)


@given(bins=sums(), alpha=st.floats(1e-6, 0.5))
def test_ends_are_possible_errors(bins: Floats, alpha: float) -> None:
    """The ends are around the plain error, no error exceeds 1, and less alpha is wider."""
    labels = bins[:, 0].sum()
    plain = np.abs(bins[:, 1] - bins[:, 2]).sum()
    low, high = core.calibration_error(bins, alpha)
    assert 0.0 <= low <= plain * (1 + 1e-9) + 1e-9
    assert plain - 1e-9 <= high * (1 + 1e-9) + 1e-9
    assert high <= labels * (1.0 + 1e-9) + 1e-9
    wider = core.calibration_error(bins, alpha / 10.0)
    assert wider[0] <= low + 1e-6 * labels
    assert wider[1] >= high - 1e-6 * labels


def test_probabilities_are_not_below_0() -> None:
    """Where forecasts add up to little, so does the error on the side of true probabilities of 0.

    Forecasts add up to three, so the sum of true probabilities is at most three below.
    """
    rare = np.array([[1_000.0, 0.0, 3.0, 0.01], [0.0, 0.0, 0.0, 0.0]])
    budget = math.log(2.0) - mixture(0.0, 0.01)
    _, high = core.calibration_error(rare, 0.5)
    assert high == pytest.approx(farthest_alone(rare[0].tolist(), budget), rel=1e-6)
    assert high < 20.0


@pytest.mark.parametrize("n", [1, 10, 10**5, 10**8, 10**11])
def test_any_number_of_labels(n: int) -> None:
    """Ends are found for a single label, and for more than any stream has."""
    bins = np.array([[n, 0.5 * n, 0.4 * n, 0.25 * n], [n, 0.0, 1e-9 * n, 1e-18 * n]])
    low, high = core.calibration_error(bins, 0.05)
    assert 0.0 <= low <= 0.1 * n <= high


# The sequence


def test_error_is_that_of_the_bins() -> None:
    """A sequence has the sums of its forecasts, and the plain error of the scores."""
    p, y = drawn(5_000, 1.5, 2)
    sequence, scores = CalibrationErrorSequence(0.1), PrequentialScores()
    for part in np.array_split(np.arange(5_000), 7):
        sequence.update(p[part], y[part])
    scores.update_many(p, y)
    error = sequence.error()
    low, high = core.calibration_error(bins_of(p, y), 0.1)
    assert (error.low, error.high) == pytest.approx((low / 5_000, high / 5_000), rel=1e-9)
    assert error.plain == pytest.approx(scores.ece, rel=1e-9)
    assert error.labels == 5_000


def test_nothing_is_known_before_the_first_label() -> None:
    """Without labels the error may be anything; a single label leaves it so, but for rounding."""
    sequence = CalibrationErrorSequence()
    assert math.isnan(sequence.error().plain)
    found = sequence.error()
    assert (found.low, found.high, found.labels) == (0.0, 1.0, 0)
    sequence.update([0.25], [1])
    assert (sequence.error().low, sequence.error().high) == (0.0, 0.75)


def test_totals_and_copies() -> None:
    """A total has the labels of its parts; copies and pickles go on alike."""
    p, y = drawn(4_000, 1.0, 3)
    whole, parts = CalibrationErrorSequence(), [CalibrationErrorSequence() for _ in range(2)]
    whole.update(p, y)
    for part, rows in zip(parts, (slice(0, 1_500), slice(1_500, None)), strict=True):
        part.update(p[rows], y[rows])
    total, one = CalibrationErrorSequence.total(parts).error(), whole.error()
    assert (total.low, total.high) == pytest.approx((one.low, one.high), rel=1e-9, abs=1e-12)
    for copied in (copy.deepcopy(whole), pickle.loads(pickle.dumps(whole))):  # noqa: S301 - ours
        copied.update(p, y)
        assert copied.error().labels == 8_000
    assert whole.error() == one


def test_bad_input_changes_nothing() -> None:
    """A forecast that is no probability, or a label that is none, is refused as a whole."""
    sequence = CalibrationErrorSequence()
    sequence.update([0.5], [1])
    before = sequence.error()
    with pytest.raises(ScoreError):
        sequence.update([0.5, 1.5], [1, 0])
    with pytest.raises(LabelError):
        sequence.update([0.5, 0.5], [1, 2])
    assert sequence.error() == before
    for alpha in (0.0, 1.0, math.nan):
        with pytest.raises(ParameterError, match="alpha"):
            CalibrationErrorSequence(alpha)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.06149, 0.09251, "between 6.1 and 9.3 points"),
        (0.0, 0.02101, "at most 2.2 points"),
        (0.0, 0.14, "at most 14 points"),
        (0.0204, 0.1311, "between 2 and 14 points"),
        (0.0004, 0.0211, "between 0.04 and 2.2 points"),
    ],
)
def test_sentences_are_cautious(low: float, high: float, said: str) -> None:
    """The low end is rounded down and the high end up, and a wide range has no decimals."""
    error = CalibrationError(0.0, low, high, 10)
    assert error.ends == said
    assert error.sentence == f"The calibration error is {said}."


# Streams


def misses(odds: float, runs: int, n: int, alpha: float) -> int:
    """Return how many runs had the truth outside their range at any of many reads."""
    found = 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, 7])
        p = rng.beta(2.0, 5.0, n)
        truth = p / (p + (1.0 - p) * odds)
        y = (rng.random(n) < truth).astype(float)
        at, sums_of = np.minimum((10.0 * p).astype(int), 9), np.zeros((10, 5))
        terms = np.stack([np.ones(n), y, p, (y - p) ** 2, truth - p], axis=1)
        missed = False
        for begin in range(0, n, 40):
            np.add.at(sums_of, at[begin : begin + 40], terms[begin : begin + 40])
            error = np.abs(sums_of[:, 4]).sum()
            low, high = core.calibration_error(np.ascontiguousarray(sums_of[:, :4]), alpha)
            missed = missed or not low - 1e-9 <= error <= high + 1e-9
        found += missed
    return found


@pytest.mark.simulation
@pytest.mark.parametrize("odds", [1.0, 1.5])
def test_few_runs_ever_miss(odds: float) -> None:
    """The truth is ever outside, at any read, in at most a share alpha of the runs."""
    assert misses(odds, 200, 2_000, 0.2) <= 0.2 * 200


def test_ranges_become_narrow() -> None:
    """A range has the truth, and shrinks with the labels."""
    p, y = drawn(20_000, 1.5, 5)
    truth = float((p - p / (p + (1.0 - p) * 1.5)).mean())
    sequence, widths = CalibrationErrorSequence(), []
    for begin, end in ((0, 1_000), (1_000, 5_000), (5_000, 20_000)):
        sequence.update(p[begin:end], y[begin:end])
        error = sequence.error()
        assert error.low < truth < error.high
        widths.append(error.high - error.low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.035
