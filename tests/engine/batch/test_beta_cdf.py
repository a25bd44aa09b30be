"""Beta calibration of a CDF, `abers.batch.pit_maps`: against scipy and known maps."""

from __future__ import annotations

import pickle
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import optimize, special, stats

from abers import ParameterError, ScoreError, StateError
from abers.batch import BetaCDF
from abers.batch._beta_curve import BetaCurve, fitted, logs
from abers.regression import PredictiveDistribution
from abers.serialization import pack, seal, unpack

KNOWN = BetaCurve(0.6, 1.7, 0.4)
# Exponentials of what is logistic but for a heavy tail on one side, for which b is 0.
_ODDS = special.logit(np.linspace(0.01, 0.99, 60))
SKEWED = np.repeat(np.exp(-2.0 - 0.1 * np.where(_ODDS < 0.0, 2.0 * _ODDS, _ODDS)), 500)
CURVES = st.builds(BetaCurve, st.floats(0.05, 5.0), st.floats(0.05, 5.0), st.floats(-3.0, 3.0))


def pits(curve: BetaCurve, n: int, seed: int = 0) -> Any:  # noqa: ANN401 - an array
    """Draw PIT values of a base that needs the map."""
    return unmapped(curve, np.random.default_rng(seed).random(n))


def mapped(curve: BetaCurve, u: Any) -> Any:  # noqa: ANN401 - arrays
    """Map probabilities."""
    return curve.mapped(*logs(np.asarray(u)))


def unmapped(curve: BetaCurve, p: Any) -> Any:  # noqa: ANN401 - arrays
    """Find what is mapped to probabilities."""
    return special.expit(curve.inverse(special.logit(np.asarray(p))))


def taught(values: Any, **options: Any) -> BetaCDF:  # noqa: ANN401 - anything it takes
    """Make a calibrator that has learned the values."""
    calibrator = BetaCDF(**options)
    calibrator.learn_many(values)
    return calibrator


def parameters(calibrator: BetaCDF) -> tuple[float, float, float]:
    """Return the three parameters."""
    return calibrator.a, calibrator.b, calibrator.c


# The map


@given(CURVES, st.lists(st.floats(1e-9, 1.0 - 1e-9), min_size=1))
def test_the_map_is_the_logistic_of_its_formula(curve: BetaCurve, us: list[float]) -> None:
    """Inside (0, 1) the map is the formula, and 0 and 1 stay."""
    u = np.array(us)
    expected = special.expit(curve.a * np.log(u) - curve.b * np.log1p(-u) + curve.c)
    assert mapped(curve, u) == pytest.approx(expected, rel=1e-12)
    assert mapped(curve, [0.0, 1.0]).tolist() == [0.0, 1.0]


@given(CURVES, st.lists(st.floats(0.01, 0.99), min_size=1))
def test_the_inverse_undoes_the_map(curve: BetaCurve, us: list[float]) -> None:
    """A probability comes back, within what its neighbours tell apart."""
    found = mapped(curve, us)
    inside = found < 1.0 - 1e-6  # nearer to 1 doubles are too coarse
    assert unmapped(curve, found[inside]) == pytest.approx(np.array(us)[inside], rel=1e-8)


@given(CURVES, st.floats(0.01, 0.99))
def test_the_slope_is_the_derivative_of_the_map(curve: BetaCurve, u: float) -> None:
    """The log slope agrees with differences of the map."""
    step = 1e-5 * min(u, 1.0 - u)
    low, high = mapped(curve, [u - step, u + step])
    slope = float(np.exp(curve.log_slope(*logs(np.array(u)))))
    assert (high - low) / (2.0 * step) == pytest.approx(slope, rel=1e-3, abs=1e-9)


def test_a_map_without_a_or_b_leaves_mass_beyond() -> None:
    """With a = 0 the map starts at the logistic of c, and smaller levels have no inverse inside."""
    flat = BetaCurve(0.0, 2.0, -1.0)
    assert mapped(flat, [0.0, 1.0]).tolist() == [special.expit(-1.0), 1.0]
    assert unmapped(flat, [0.1, 0.2]).tolist() == [0.0, 0.0]
    assert unmapped(flat, [0.3]).item() > 0.0
    steep = BetaCurve(2.0, 0.0, 1.0)
    assert mapped(steep, [0.0, 1.0]).tolist() == [0.0, special.expit(1.0)]
    assert unmapped(steep, [0.9]).tolist() == [1.0]


# The fit


def test_the_fit_recovers_a_known_map() -> None:
    """From 20 000 values the parameters and the map come back."""
    calibrator = taught(pits(KNOWN, 20_000))
    assert parameters(calibrator) == pytest.approx(KNOWN, abs=0.05)
    grid = np.linspace(0.0, 1.0, 101)
    assert calibrator.calibrated(grid) == pytest.approx(mapped(KNOWN, grid), abs=0.01)


def test_values_that_are_uniform_leave_the_identity() -> None:
    """A calibrated base is left nearly alone."""
    calibrator = taught(np.random.default_rng(2).random(20_000))
    assert parameters(calibrator) == pytest.approx((1.0, 1.0, 0.0), abs=0.05)


def _objective(theta: Any, u: Any) -> float:  # noqa: ANN401 - arrays
    """Negative log posterior by definition."""
    a, b, c = theta
    z = a * np.log(u) - b * np.log1p(-u) + c
    slope = (a / u + b / (1.0 - u)) * special.expit(z) * special.expit(-z)
    return float(((theta - np.array([1.0, 1.0, 0.0])) ** 2).sum() / 2.0 - np.log(slope).sum())


@pytest.mark.parametrize(
    "values",
    [
        [0.5],
        [0.5] * 20,
        [0.1, 0.2, 0.9],
        np.random.default_rng(0).beta(0.3, 0.3, 100),
        np.random.default_rng(1).beta(5.0, 0.5, 100),
        SKEWED,
        1.0 - SKEWED,
    ],
)
def test_the_fit_is_the_maximum_under_the_bounds(values: Any) -> None:  # noqa: ANN401
    """A general optimiser with bounds finds the same parameters."""
    u = np.asarray(values)
    bounds = [(0.0, None), (0.0, None), (None, None)]
    with np.errstate(divide="ignore", invalid="ignore"):  # a = b = 0 is tried as well
        found = optimize.minimize(
            _objective,
            [1.0, 1.0, 0.0],
            (u,),
            method="Nelder-Mead",
            bounds=bounds,
            tol=1e-9,
            options={"maxiter": 5_000},
        )
        best = _objective(np.array(fitted(u)), u)
    assert best <= found.fun + 1e-9 * len(u)
    assert fitted(u) == pytest.approx(found.x, rel=1e-2, abs=1e-2)


def test_a_parameter_that_would_be_negative_is_0() -> None:
    """Where the free maximum has a or b below 0, the best map with 0 takes its place."""
    low, high = fitted(1.0 - SKEWED), fitted(SKEWED)
    assert (low.a, high.b) == (0.0, 0.0)
    assert (low.b, low.c) == pytest.approx((high.a, -high.c), rel=1e-9)
    assert low.b > 1.0


@pytest.mark.parametrize("values", [[0.0] * 20, [1.0] * 20, [0.0, 1.0] * 10, [0.3] * 1000])
def test_extreme_values_keep_the_fit_finite(values: list[float]) -> None:
    """Values of 0 and 1, or all the same, give parameters and probabilities all the same."""
    calibrator = taught(values)
    assert np.isfinite(parameters(calibrator)).all()
    mapped = calibrator.calibrated(np.linspace(0.0, 1.0, 11))
    assert (np.diff(mapped) >= 0.0).all()


# The stream


def test_with_nothing_learned_it_is_the_identity() -> None:
    """An empty calibrator changes nothing."""
    u = np.linspace(0.0, 1.0, 11)
    assert parameters(BetaCDF()) == (1.0, 1.0, 0.0)
    assert BetaCDF().calibrated(u) == pytest.approx(u, abs=1e-15)


def test_fits_are_made_after_a_share_of_the_values_held() -> None:
    """With a share of 1/2 the fits are at 1, 2, 3, 5, 8, 12 and 18 values."""
    calibrator, fits, last = BetaCDF(refit=0.5), [], (1.0, 1.0, 0.0)
    for i, value in enumerate(pits(KNOWN, 20).tolist(), start=1):
        calibrator.learn_one(value)
        if parameters(calibrator) != last:
            fits.append(i)
            last = parameters(calibrator)
    assert fits == [1, 2, 3, 5, 8, 12, 18]


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12), st.sampled_from([None, 5]))
def test_a_fit_is_a_function_of_what_is_held(values: list[float], window: int | None) -> None:
    """Fitted after each value, one by one ends where a batch of what is left starts."""
    one = BetaCDF(window, refit=0.0)
    for value in values:
        one.learn_one(value)
    assert parameters(one) == parameters(taught(values if window is None else values[-window:]))


def test_bad_values_and_options_are_refused() -> None:
    """Nothing is learned from a batch with a bad value."""
    calibrator = taught([0.2, 0.4])
    before = calibrator.to_bytes()
    with pytest.raises(ScoreError, match="row 1"):
        calibrator.learn_many([0.1, 1.5])
    assert calibrator.to_bytes() == before
    for refit in (-0.1, 1.5):
        with pytest.raises(ParameterError, match="refit"):
            BetaCDF(refit=refit)
    assert BetaCDF(refit=0.25).refit == 0.25


@pytest.mark.parametrize("options", [{}, {"window": 7}, {"refit": 0.5}])
def test_a_saved_calibrator_goes_on_as_before(options: dict[str, Any]) -> None:
    """Saved and pickled ones have the same map at once and through more labels."""
    calibrator = taught(pits(KNOWN, 10), **options)
    others = [BetaCDF.from_bytes(calibrator.to_bytes())]
    others.append(pickle.loads(pickle.dumps(calibrator)))  # noqa: S301 - own bytes
    for value in pits(KNOWN, 20, seed=1).tolist():
        for each in (calibrator, *others):
            assert parameters(each) == parameters(calibrator)
        for each in (calibrator, *others):
            each.learn_one(value)
    assert {each.to_bytes() for each in others} == {calibrator.to_bytes()}


def test_bytes_that_no_calibrator_wrote_are_refused() -> None:
    """A good seal over senseless parameters is no calibrator."""
    magic, blob = b"abersBF\x01", taught([0.2, 0.4]).to_bytes()
    window, column, fit = unpack(memoryview(blob[len(magic) : -16]))
    bad = np.array([np.nan]).tobytes()
    for wrong in (fit[:-1], fit[:-8] + bad, fit[:8] + bytes(8) + fit[16:], bad + fit[8:]):
        with pytest.raises(StateError):
            BetaCDF.from_bytes(seal(magic, pack([window, column, wrong])))
    with pytest.raises(StateError):
        BetaCDF.from_bytes(seal(magic, pack([window, column])))
    assert BetaCDF.from_bytes(seal(magic, pack([window, column, fit]))).to_bytes() == blob


# Distributions


def test_a_step_base_has_its_merged_cdf_mapped() -> None:
    """At every threshold the merged CDF is mapped; the support stays."""
    base = PredictiveDistribution(
        [1.0, 2.0], [0.0, 0.25, 0.75], [0.25, 0.75, 1.0], support=(-5.0, 5.0)
    )
    calibrator = taught(pits(KNOWN, 100))
    found = calibrator.distribution(base)
    t = np.array([0.0, 1.0, 1.5, 2.0, 3.0])
    assert np.array_equal(found.cdf(t), calibrator.calibrated(base.cdf(t)))
    assert found.support == (-5.0, 5.0)


def test_it_lowers_the_log_score_of_a_miscalibrated_base() -> None:
    """A base with half the true spread loses more than 0.5 nats a label, and gets them back."""
    y = np.random.default_rng(0).normal(size=4_000)
    base = stats.norm(0.0, 0.5)
    found = taught(base.cdf(y[:2_000])).distribution(base)
    truth = -stats.norm.logpdf(y[2_000:]).mean()
    assert -base.logpdf(y[2_000:]).mean() > truth + 0.5
    assert found.log_score(y[2_000:]).mean() == pytest.approx(truth, abs=0.03)
