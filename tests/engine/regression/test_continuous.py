"""Continuous calibrated distributions, `abers.regression.continuous`: against integration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from abers import ParameterError
from abers.regression import CalibratedDistribution
from abers.regression._beta_curve import BetaCurve
from abers.regression.scores import crps_normal

CURVES = [BetaCurve(0.6, 1.7, 0.4), BetaCurve(2.5, 0.8, -1.0), BetaCurve(1.0, 1.0, 0.0)]
BASES = [stats.norm(1.0, 2.0), stats.gamma(3.0), stats.uniform(-1.0, 3.0)]
EVERY = [CalibratedDistribution(base, curve) for base in BASES for curve in CURVES]
EVERY_ONE = pytest.mark.parametrize("found", EVERY)


def between(found: CalibratedDistribution) -> tuple[float, float]:
    """Give ends outside of which there is next to nothing."""
    low, high = found.interval(1.0 - 1e-13)
    return low, high


@EVERY_ONE
def test_the_density_is_that_of_the_cdf(found: CalibratedDistribution) -> None:
    """The density integrates to differences of the CDF."""
    for low, high in [(0.1, 0.5), (0.5, 1.5)]:
        mass = integrate.quad(found.density, low, high)[0]
        assert mass == pytest.approx(found.cdf(high) - found.cdf(low), abs=1e-8)
    assert np.exp(-found.log_score(0.7)) == pytest.approx(found.density(0.7), rel=1e-12)


@EVERY_ONE
def test_the_mean_is_the_integral_of_the_quantiles(found: CalibratedDistribution) -> None:
    """It agrees with adaptive integration of the tails of the CDF."""
    low, high = between(found)
    above = integrate.quad(lambda t: 1.0 - found.cdf(t), 0.5, high, limit=400)[0]
    below = integrate.quad(found.cdf, low, 0.5, limit=400)[0]
    assert found.mean == pytest.approx(0.5 + above - below, abs=1e-6)


@EVERY_ONE
@pytest.mark.parametrize("y", [0.1, 0.9, 4.0, -3.0])
def test_the_crps_is_the_integral_of_the_squared_distance(
    found: CalibratedDistribution, y: float
) -> None:
    """It agrees with its definition, also for a label that the base rules out."""
    low, high = between(found)
    left = integrate.quad(lambda t: found.cdf(t) ** 2, min(low, y), y, limit=400)[0]
    right = integrate.quad(lambda t: (1.0 - found.cdf(t)) ** 2, y, max(high, y), limit=400)[0]
    assert found.crps(y) == pytest.approx(left + right, abs=1e-6)


def test_the_crps_of_a_normal_is_the_closed_form() -> None:
    """With the identity for a map it is the published formula, to twelve digits."""
    y = np.linspace(-8.0, 9.0, 18)
    found = CalibratedDistribution(stats.norm(1.0, 2.0), BetaCurve())
    assert found.crps(y) == pytest.approx(crps_normal(np.ones(18), np.full(18, 2.0), y), rel=1e-12)
    assert found.mean == pytest.approx(1.0, abs=1e-12)


@EVERY_ONE
def test_quantiles_and_intervals_undo_the_cdf(found: CalibratedDistribution) -> None:
    """Arrays of any shape and numbers alike."""
    q = np.array([[0.05, 0.3], [0.5, 0.95]])
    assert found.cdf(found.quantile(q)) == pytest.approx(q, rel=1e-9)
    assert found.quantile(0.3) == found.quantile(q)[0, 1]
    assert found.interval(0.9) == pytest.approx((found.quantile(0.05), found.quantile(0.95)))
    assert found.interval(0.9, band=True) == found.interval(0.9)
    assert found.interval(np.array([0.9]))[1].shape == (1,)


@EVERY_ONE
def test_draws_have_uniform_pits(found: CalibratedDistribution) -> None:
    """Draws follow the CDF, and a seed gives the same ones."""
    drawn = found.sample(2_000, seed=3)
    assert stats.kstest(found.pit(drawn, seed=0), "uniform").pvalue > 0.001
    assert np.array_equal(drawn, found.sample(2_000, seed=3))


def test_it_has_the_calls_of_a_predictive_distribution() -> None:
    """Both CDFs are the one, and the interval for a probability has no width."""
    found = EVERY[0]
    assert found.lower(0.5) == found.upper(0.5) == found.cdf(0.5)
    p0, p1 = found.probability_above(0.5)
    assert p0 == p1 == 1.0 - found.cdf(0.5)
    many = found.probability_above(np.array([0.5, 0.6]))
    assert many[0].tolist() == many[1].tolist()
    assert repr(found).startswith("<CalibratedDistribution: median ")


def test_mass_beyond_all_labels_is_not_dropped() -> None:
    """With a = 0 the mean and the CRPS of a normal are infinite, of a bounded base finite."""
    flat = BetaCurve(0.0, 2.0, -1.0)
    endless = CalibratedDistribution(stats.norm(), flat)
    assert endless.quantile(0.1) == -np.inf
    assert endless.mean == -np.inf
    assert endless.crps(0.0) == np.inf
    bounded = CalibratedDistribution(stats.uniform(), flat)
    assert bounded.quantile(0.1) == 0.0
    above = integrate.quad(lambda t: 1.0 - bounded.cdf(t), 0.0, 1.0)[0]
    assert bounded.mean == pytest.approx(above, abs=1e-2)


def test_what_is_no_number_or_level_is_refused() -> None:
    """Labels are finite, levels inside (0, 1)."""
    for call in (EVERY[0].cdf, EVERY[0].crps, EVERY[0].log_score, EVERY[0].pit):
        with pytest.raises(ParameterError, match="not a finite number"):
            call(float("nan"))
    for level in (0.0, 1.0, float("nan")):
        with pytest.raises(ParameterError, match="not inside"):
            EVERY[0].quantile(level)
        with pytest.raises(ParameterError, match="not inside"):
            EVERY[0].interval(level)
