"""Continuous calibrated distributions, `abers.batch.continuous`: against integration."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import integrate, special, stats

from abers import ParameterError
from abers.batch import CalibratedDistribution
from abers.batch._beta_curve import BetaCurve, BetaMixture, logs
from abers.regression import PredictiveDistribution, scores
from abers.regression.scores import crps_normal

if TYPE_CHECKING:
    from abers.batch.continuous import Smooth

CURVES = [BetaCurve(0.6, 1.7, 0.4), BetaCurve(2.5, 0.8, -1.0), BetaCurve(1.0, 1.0, 0.0)]
BASES = [stats.norm(1.0, 2.0), stats.gamma(3.0), stats.uniform(-1.0, 3.0)]
EVERY = [CalibratedDistribution(base, curve) for base in BASES for curve in CURVES]
EVERY_ONE = pytest.mark.parametrize("found", EVERY)


def between(found: CalibratedDistribution) -> tuple[float, float]:
    """Return ends outside of which there is next to nothing."""
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


@EVERY_ONE
def test_at_infinity_a_cdf_is_0_or_1(found: CalibratedDistribution) -> None:
    """As of a step CDF, also where mass lies below all labels."""
    ends = np.array([-np.inf, 0.5, np.inf])
    assert found.cdf(ends).tolist() == [0.0, found.cdf(0.5), 1.0]
    assert found.probability_above(np.inf).p1 == 0.0
    assert CalibratedDistribution(stats.norm(), BetaCurve(0.0, 2.0, -1.0)).cdf(-np.inf) == 0.0


def test_scores_take_it() -> None:
    """`scores.crps` takes these as it takes step CDFs."""
    assert scores.crps(EVERY[:2], [0.5, 0.5]).tolist() == [each.crps(0.5) for each in EVERY[:2]]


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
    with pytest.raises(ParameterError, match="t is not a number"):
        EVERY[0].cdf(float("nan"))
    for call in (EVERY[0].crps, EVERY[0].log_score, EVERY[0].pit):
        with pytest.raises(ParameterError, match="not a finite number"):
            call(float("nan"))
    for level in (0.0, 1.0, float("nan")):
        with pytest.raises(ParameterError, match="not inside"):
            EVERY[0].quantile(level)
        with pytest.raises(ParameterError, match="not inside"):
            EVERY[0].interval(level)


# The tails


def test_both_tails_are_as_exact_as_the_middle() -> None:
    """Forty spreads away the log score and the quantiles are those of the mirror image."""
    curve, mirror = BetaCurve(0.3, 0.2, 0.4), BetaCurve(0.2, 0.3, -0.4)
    found = CalibratedDistribution(stats.norm(), curve)
    reflected = CalibratedDistribution(stats.norm(), mirror)
    y = np.array([1.0, 9.0, 20.0, 40.0])
    assert found.log_score(y) == pytest.approx(reflected.log_score(-y), rel=1e-12)
    # In the far tail 1 - F is exp(-c) (1 - u)^b.
    hazard = np.exp(stats.norm.logpdf(y[2:]) - stats.norm.logsf(y[2:]))
    tail = -0.4 + 0.2 * stats.norm.logsf(y[2:])
    assert found.log_score(y[2:]) == pytest.approx(-(tail + np.log(0.2 * hazard)), rel=1e-9)
    q = np.array([1e-14, 1e-9, 0.3])
    assert found.quantile(q) == pytest.approx(-reflected.quantile(1.0 - q), rel=1e-3)
    assert found.support == (-np.inf, np.inf)


@EVERY_ONE
def test_what_the_base_rules_out_costs_infinitely(found: CalibratedDistribution) -> None:
    """Beyond the ends of the support the density is 0, and nowhere is a score NaN."""
    y = np.array([-1e3, -3.0, 0.5, 3.0, 1e3])
    low, high = found.support
    found_scores = found.log_score(y)
    assert (np.isposinf(found_scores) == ((y < low) | (y > high))).all()
    assert not np.isnan(found_scores).any()


# Mass at the ends


def test_a_label_beyond_the_support_draws_the_mass_there_out() -> None:
    """As of a step CDF, the mass at an end is put at a label beyond it; properly it is infinite."""
    found = CalibratedDistribution(stats.uniform(), BetaCurve(0.0, 2.0, -1.0))
    mass = found.mass_below
    assert mass == pytest.approx(special.expit(-1.0))
    assert found.mass_above == 0.0
    assert found.support == (0.0, 1.0)
    inside = integrate.quad(lambda t: (1.0 - found.cdf(t)) ** 2, 0.0, 1.0)[0]
    assert found.crps(-2.0) == pytest.approx(2.0 * (1.0 - mass) ** 2 + inside, abs=1e-3)
    assert found.crps(0.5, proper=True) == np.inf
    assert found.crps(np.array([0.5, 0.6]), proper=True).tolist() == [np.inf, np.inf]
    for other in EVERY:
        assert other.crps(0.5, proper=True) == other.crps(0.5)


@pytest.mark.parametrize("curve", [*CURVES, BetaCurve(0.0, 2.0, -1.0), BetaCurve(2.0, 0.0, 1.0)])
@pytest.mark.parametrize("base", BASES)
def test_on_the_wire_it_is_a_band_around_its_cdf(base: Smooth, curve: BetaCurve) -> None:
    """What goes over the wire is JSON, and a distribution whose band holds the CDF everywhere."""
    found = CalibratedDistribution(base, curve)
    wire = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    ends = [
        end if end is not None else np.inf * (2 * i - 1) for i, end in enumerate(wire["support"])
    ]
    band = PredictiveDistribution(
        wire["thresholds"], wire["lower"], wire["upper"], support=(ends[0], ends[1])
    )
    t = np.concatenate((np.linspace(-4.0, 6.0, 301), band.thresholds))
    assert (band.lower(t) <= found.cdf(t) + 1e-12).all()
    assert (found.cdf(t) <= band.upper(t) + 1e-12).all()
    assert float(np.max(band.upper(t) - band.lower(t))) <= 0.01 + 1e-9


# The mean of several maps


def test_a_mixture_is_the_mean_of_its_maps() -> None:
    """Map and slope are means; each place of a batch has maps of its own."""
    a, b, c = np.array(CURVES).T[..., np.newaxis] * np.ones(4)
    a[1], c[2] = [0.5, 1.0, 1.5, 2.0], [0.0, -3.0, 0.1, 2.0]
    u = np.array([[0.01, 0.5], [0.3, 0.999], [0.0, 1.0], [1e-12, 0.7]])
    mixture = BetaMixture(np.stack((np.log(a), np.log(b), c)))
    each = [
        [BetaCurve(*one) for one in zip(a[:, i], b[:, i], c[:, i], strict=True)] for i in range(4)
    ]
    for i in range(4):
        known = np.mean([curve.mapped(*logs(u[i])) for curve in each[i]], axis=0)
        assert mixture.mapped(*logs(u))[i] == pytest.approx(known, rel=1e-13)
    inside = np.clip(u, 1e-12, 0.999)
    for i in range(4):
        slopes = [np.exp(curve.log_slope(*logs(inside[i]))) for curve in each[i]]
        found = np.exp(mixture.log_slope(*logs(inside)))[i]
        assert found == pytest.approx(np.mean(slopes, axis=0), rel=1e-12)
    odds = special.logit(inside)
    back = special.logit(mixture.mapped(*logs(inside)))
    assert mixture.inverse(back) == pytest.approx(odds, rel=1e-6)


def test_the_inverse_holds_its_bracket_where_a_map_is_flat() -> None:
    """Maps that are far apart make a staircase, whose flat parts Newton's method cannot cross."""
    stairs = BetaMixture(np.array([[0.0, 0.0], [0.0, 0.0], [-20.0, 20.0]]))
    x = np.linspace(-30.0, 24.0, 109)
    odds = special.logit(stairs.mapped(*logs(special.expit(x))))
    flat = np.abs(x) < 12.0  # there the map is 1/2, within 1e-3
    found = stairs.inverse(odds)
    assert found[~flat] == pytest.approx(x[~flat], abs=1e-3)
    assert special.logit(stairs.mapped(*logs(special.expit(found)))) == pytest.approx(
        odds, abs=1e-9
    )
