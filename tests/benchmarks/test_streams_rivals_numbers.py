"""Rivals of numbers, and what they learn from, do what their definitions say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from benchmarks.papers.streams_numbers import fitted
from benchmarks.papers.streams_rivals_numbers import (
    Base,
    ClippedNormal,
    distribution_rivals,
    scored,
)
from benchmarks.papers.streams_steps import BY_LABEL, LAWS_OF_NUMBERS, Steps, equal, steps
from scipy.integrate import quad
from scipy.stats import norm

from abers.learners.gaussian import BayesianLinear
from abers.mathematics import LEARN, PREDICT

if TYPE_CHECKING:
    from numpy.typing import NDArray

N, SUPPORT = 200, (-2.0, 6.0)
RNG = np.random.default_rng(5)
MEAN, STD = RNG.normal(size=N), RNG.uniform(0.5, 2.0, N)
Y = np.clip(MEAN + RNG.normal(0.5, 1.5, N), *SUPPORT)
BASE = Base(MEAN, STD, SUPPORT)
ROWS = 0, 9, 10, 11, 60, N - 1


def known(order: Steps, row: int) -> list[int]:
    """List the rows whose labels came before a row was predicted, as they came."""
    until = int(np.flatnonzero((order.rows == row) & (order.kinds == PREDICT))[0])
    found: list[int] = order.rows[:until][order.kinds[:until] == LEARN].tolist()
    return found


def sampled(points: NDArray[np.float64], y: float) -> float:
    """Return the CRPS of equal masses at points, by its definition as a kernel score."""
    at = np.clip(points, *SUPPORT)
    spread = np.abs(at[:, np.newaxis] - at).mean()
    return float(np.abs(at - y).mean() - 0.5 * spread)


@pytest.mark.parametrize(("mean", "std"), [(0.5, 1.0), (-3.0, 0.7), (5.0, 4.0)])
@pytest.mark.parametrize("y", [-2.0, 0.7, 6.0])
def test_the_clipped_normal(mean: float, std: float, y: float) -> None:
    """The CRPS is the integral of squared distances over the support."""
    found = ClippedNormal(mean, std, SUPPORT)
    low, high = SUPPORT
    below = quad(lambda t: norm.cdf(t, mean, std) ** 2, low, y)[0]
    above = quad(lambda t: norm.sf(t, mean, std) ** 2, y, high)[0]
    assert found.crps(y) == pytest.approx(below + above, abs=1e-9)
    ends = norm.interval(0.8, mean, std)
    assert found.interval(0.8) == pytest.approx(np.clip(ends, low, high))


@pytest.mark.parametrize("delay", [0, 15])
def test_windows_of_residuals(delay: int) -> None:
    """The last residuals have equal masses on the mean; before ten labels it is the base."""
    order = steps(equal(delay), Y)
    for window in (100, 300, 1_000):
        found = scored(distribution_rivals(BASE)[f"residuals, {window:,}"], Y, order)
        for row in ROWS:
            last = known(order, row)[-window:]
            wanted = sampled(MEAN[row] + Y[last] - MEAN[last], Y[row]) if len(last) >= 10 else None
            own = ClippedNormal(MEAN[row], STD[row], SUPPORT).crps(Y[row])
            assert found.crps[row] == pytest.approx(own if wanted is None else wanted), row


def test_the_averaged_normal() -> None:
    """Residuals have weights of .98 to the power of the labels since, divided by their sum."""
    order = steps(equal(15), Y)
    found = scored(distribution_rivals(BASE)["EWMA normal"], Y, order)
    for row in (60, N - 1):
        came = known(order, row)
        weights = 0.98 ** np.arange(len(came))[::-1]
        residuals = Y[came] - MEAN[came]
        mean = np.average(residuals, weights=weights)
        std = np.sqrt(np.average((residuals - mean) ** 2, weights=weights))
        wanted = ClippedNormal(MEAN[row] + mean, std, SUPPORT)
        assert found.crps[row] == pytest.approx(wanted.crps(Y[row]))
        assert found.ends[row] == pytest.approx(wanted.interval(0.8))


def test_the_conformal_predictive_system() -> None:
    """The CDF is (residuals below + 1/2) / (n + 1), where these are scaled by the deviation."""
    order = steps(equal(15), Y)
    found = scored(distribution_rivals(BASE)["crepes"], Y, order)
    for row in (60, N - 1):
        came = known(order, row)
        points = np.sort(MEAN[row] + STD[row] * (Y[came] - MEAN[came]) / STD[came])
        grid = np.linspace(*SUPPORT, 400_001)
        cdf = (np.searchsorted(points, grid, side="right") + 0.5) / (len(came) + 1)
        squares = (cdf - (grid >= Y[row])) ** 2
        assert found.crps[row] == pytest.approx(np.trapezoid(squares, grid), abs=1e-4)


def test_no_rival_knows_labels_that_have_not_come() -> None:
    """Other labels at the end change no interval before they come."""
    order, changed = steps(equal(30), Y), np.where(np.arange(N) < 100, Y, -Y)
    for name in distribution_rivals(BASE):
        found, other = (scored(distribution_rivals(BASE)[name], y, order) for y in (Y, changed))
        assert found.ends[:131].tolist() == other.ends[:131].tolist(), name


def test_late_numbers() -> None:
    """By label, numbers above the median come last, and the others sooner."""
    order, seen = steps(LAWS_OF_NUMBERS[BY_LABEL](50), Y), 0
    late: dict[bool, list[int]] = {True: [], False: []}
    for kind, row in zip(order.kinds.tolist(), order.rows.tolist(), strict=True):
        seen += kind == PREDICT
        if kind == LEARN and seen < N:
            late[bool(Y[row] > np.median(Y))].append(seen - 1 - row)
    assert {*late[True]} == {50}
    assert 3 < np.mean(late[False]) < 17


@pytest.mark.parametrize("law", ["at once", "late", "by label"])
def test_the_base_knows_what_came(law: str) -> None:
    """The base is fitted to the labels that came, anew when they are 5 % more than at its last."""
    x = RNG.normal(size=(N, 2))
    order, fitted_to = steps(LAWS_OF_NUMBERS[law](50), Y), 0
    mean, std, first = fitted(x, Y, order)
    for row in range(N):
        came = known(order, row)
        if len(came) >= max(100, int(fitted_to * 1.05), fitted_to + 1):
            fitted_to = len(came)
            model = BayesianLinear().fit(x[sorted(came)], Y[sorted(came)])
        assert (row >= first) == bool(fitted_to)
        if row >= first:
            (wanted,) = np.column_stack(model.predict(x[row : row + 1]))
            assert [mean[row - first], std[row - first]] == pytest.approx(wanted)
