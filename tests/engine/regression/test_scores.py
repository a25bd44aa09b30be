"""The scores, `abers.regression.scores`, against integrals, other formulas and a library."""

from __future__ import annotations

import math
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import properscoring
import pytest
from scipy import integrate, stats

from abers import MissingExtraError, ParameterError
from abers.regression import PredictiveDistribution, scores

RNG = np.random.default_rng(12)
MEANS, SPREADS, TRUTHS = RNG.normal(size=9), RNG.uniform(0.2, 3.0, 9), RNG.normal(size=9) * 2


def integral(cdf: Any, y: float, cuts: Any) -> float:  # noqa: ANN401
    """Integrate (F - 1{y <= t})^2 over all pieces between cuts."""
    edges = sorted({y, *cuts})
    return float(
        sum(integrate.quad(lambda t: (cdf(t) - (y <= t)) ** 2, a, b)[0] for a, b in pairwise(edges))
    )


def test_crps_of_samples_is_the_integral() -> None:
    """The CRPS of an empirical CDF is the integral of its definition."""
    samples = RNG.normal(size=(6, 9)).round(1)
    found = scores.crps_sample(samples, TRUTHS[:6])
    for points, y, mine in zip(samples, TRUTHS[:6].tolist(), found, strict=True):
        expected = integral(lambda t, p=points: np.mean(p <= t), y, points.tolist())
        assert mine == pytest.approx(expected, abs=1e-7)


def test_crps_of_samples_is_the_energy_form() -> None:
    """The CRPS is E|X - y| - E|X - X'| / 2, on the samples as well."""
    samples = RNG.normal(size=(9, 30))
    pairs = np.abs(samples[:, :, None] - samples[:, None, :]).mean(axis=(1, 2)) / 2
    expected = np.abs(samples - TRUTHS[:, None]).mean(axis=1) - pairs
    assert scores.crps_sample(samples, TRUTHS) == pytest.approx(expected)


def test_crps_is_that_of_a_published_library() -> None:
    """Samples, normal and step distributions have the CRPS that properscoring gives them."""
    samples = RNG.normal(size=(9, 30))
    theirs = properscoring.crps_ensemble(TRUTHS, samples)
    assert scores.crps_sample(samples, TRUTHS) == pytest.approx(theirs)
    theirs = properscoring.crps_gaussian(TRUTHS, MEANS, SPREADS)
    assert scores.crps_normal(MEANS, SPREADS, TRUTHS) == pytest.approx(theirs)
    points, masses = np.sort(samples[0]), RNG.dirichlet(np.ones(32))
    after = np.append(np.cumsum(masses)[:-1], 1.0)
    steps = PredictiveDistribution(points, after[:31], support=(-4.0, 4.0))
    places = np.tile(np.concatenate(([-4.0], points, [4.0])), (9, 1))
    weights = np.tile(np.diff(after, prepend=0.0), (9, 1))
    inside = np.clip(TRUTHS, -4.0, 4.0)
    theirs = properscoring.crps_ensemble(inside, places, weights=weights)
    assert scores.crps([steps] * 9, inside) == pytest.approx(theirs)


def test_crps_of_normals_is_the_integral() -> None:
    """The closed form for normal distributions is the integral of the definition."""
    found = scores.crps_normal(MEANS, SPREADS, TRUTHS)
    for m, s, y, mine in zip(MEANS, SPREADS, TRUTHS.tolist(), found, strict=True):
        cdf = stats.norm(m, s).cdf
        assert mine == pytest.approx(integral(cdf, y, [m - 12 * s, m, m + 12 * s]), abs=1e-6)


def test_log_scores() -> None:
    """The log score is minus the log of the density, infinite where that is 0."""
    densities = stats.norm(MEANS, SPREADS).pdf(TRUTHS)
    assert scores.log_score(densities) == pytest.approx(-np.log(densities))
    assert scores.log_score_normal(MEANS, SPREADS, TRUTHS) == pytest.approx(-np.log(densities))
    assert scores.log_score([0.0])[0] == math.inf


def test_squared_error() -> None:
    """The mean of the squared errors is the MSE."""
    assert scores.squared_error([1.0, -1.0], [3.0, 0.0]).tolist() == [4.0, 1.0]


def test_pinball_at_given_levels() -> None:
    """A quantile below the label costs its level, one above it the rest, for each unit."""
    losses = scores.pinball([[1.0, 4.0], [1.0, math.inf]], [2.0, 2.0], levels=[0.1, 0.8])
    assert losses.tolist() == pytest.approx([(0.1 * 1.0 + 0.2 * 2.0) / 2, math.inf])


def test_mean_pinball_is_half_the_crps() -> None:
    """Over many levels twice the mean pinball loss is the CRPS, of which it is a quadrature."""
    levels = (np.arange(2_000) + 0.5) / 2_000
    quantiles = stats.norm(MEANS[:, None], SPREADS[:, None]).ppf(levels)
    losses = scores.pinball(quantiles, TRUTHS, levels)
    assert 2.0 * losses == pytest.approx(scores.crps_normal(MEANS, SPREADS, TRUTHS), rel=1e-3)


def test_default_levels() -> None:
    """By default the levels are 0.05, 0.10, …, 0.95."""
    assert pytest.approx(np.arange(1, 20) * 0.05) == scores.LEVELS
    assert scores.pinball(np.zeros((1, 19)), [1.0])[0] == pytest.approx(0.5)


def test_interval_score_is_pinball_at_both_ends() -> None:
    """The interval score is the pinball loss of both ends, times 2 / (1 - level) each."""
    low, high = TRUTHS - RNG.normal(size=9) - 0.5, TRUTHS + 3.0
    losses = scores.pinball(np.stack([low, high], axis=1), TRUTHS, levels=[0.1, 0.9])
    score = scores.interval_score(low, high, TRUTHS, level=0.8)
    assert score == pytest.approx(losses * 2.0 * 2.0 / 0.2)


def test_coverage_counts_the_ends() -> None:
    """A label at an end of its interval is covered."""
    found = scores.covered([0.0] * 4, [1.0] * 4, [0.0, 1.0, 1.1, -0.1])
    assert found.tolist() == [True, True, False, False]
    assert scores.covered([-math.inf], [math.inf], [3.0]).all()


def test_histogram_bins_are_closed_on_the_left() -> None:
    """A PIT value on an edge belongs to the bin above it, and 1 to the last."""
    assert scores.pit_histogram([0.0, 0.1, 0.3, 0.7, 0.95, 1.0]).tolist() == [
        1, 1, 0, 1, 0, 0, 0, 1, 0, 2,
    ]  # fmt: skip


def test_uniformity() -> None:
    """Uniform values pass both tests, those of an overconfident forecast fail both."""
    rng = np.random.default_rng(1)
    assert min(scores.pit_uniformity(rng.random(2_000))) > 0.01
    assert max(scores.pit_uniformity(rng.beta(0.6, 0.6, 2_000))) < 1e-6


def test_uniformity_without_scipy_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without scipy the error says what to install."""
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'abers\[regression\]'"):
        scores.pit_uniformity([0.5])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: scores.crps([], [1.0]), r"y has shape \(1,\), not \(0,\)"),
        (lambda: scores.crps_sample([[1.0]], [math.nan]), "y=nan"),
        (lambda: scores.crps_sample([[math.inf]], [1.0]), "samples=inf"),
        (lambda: scores.crps_normal([0.0], [0.0], [1.0]), r"std=0\.0 is not positive"),
        (lambda: scores.log_score_normal([0.0], [-1.0], [1.0]), r"std=-1\.0 is not positive"),
        (lambda: scores.log_score([-0.5]), r"density=-0\.5 is negative"),
        (lambda: scores.squared_error([1.0], [math.inf]), "y=inf"),
        (lambda: scores.pinball([[1.0]], [1.0], levels=[1.0]), r"levels=1\.0 is not inside"),
        (lambda: scores.pinball([[1.0, 2.0]], [1.0], levels=[0.5]), "quantiles has shape"),
        (lambda: scores.interval_score([2.0], [1.0], [1.5], 0.9), "ends before it begins"),
        (lambda: scores.interval_score([1.0], [2.0], [1.5], 0.0), "is not inside"),
        (lambda: scores.covered([1.0], [2.0], [math.nan]), "y=nan"),
        (lambda: scores.pit_histogram([1.5]), r"PIT value 1\.5 is not in"),
        (lambda: scores.pit_uniformity([]), "pit is empty"),
        (lambda: scores.squared_error([1.0], ["a"]), "^y="),
        (lambda: scores.pinball(["a"], [1.0], [0.5]), "^quantiles="),
        (lambda: scores.pinball([1.0], [1.0], ["a"]), "^levels="),
        (lambda: scores.covered(["a"], [1.0], [0.5]), "^low="),
        (lambda: scores.pit_histogram(["a"]), "^pit="),
        (lambda: scores.pit_histogram([0.5], bins=0), "^bins="),
    ],
)
def test_what_is_no_forecast_is_refused(call: Any, message: str) -> None:  # noqa: ANN401
    """What cannot be scored is refused by name."""
    with pytest.raises(ParameterError, match=message):
        call()
