"""Distribution calibration, `abers.batch.gp_beta`: against known maps and fair scores."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from functools import cache
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import integrate, special, stats

from abers import LabelError, ParameterError, ScoreError, StateError
from abers.arrays import packed
from abers.batch import GPBeta
from abers.batch._beta_curve import BetaCurve, logs
from abers.regression.scores import covered, log_score_normal
from abers.serialization import pack, seal, unpack

MAGIC = b"abersGB\x01"
Rows = tuple[Any, Any, Any]


def rows(kind: str, n: int, seed: int = 0) -> tuple[Rows, Any]:
    """Make predictions with labels, and the negative log densities that know everything."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=n)
    mean = 3.0 * x
    if kind == "scatters":  # more on the right, which a linear model with one spread ignores
        true = 0.2 + 1.5 * x
        y = mean + true * rng.normal(size=n)
        return (mean, np.full(n, 1.05), y), -stats.norm.logpdf(y, mean, true)
    if kind == "skewed":
        width = 0.5 + x
        y = mean + width * (rng.gamma(1.5, size=n) - 1.5)
        return (mean, np.full(n, 1.25), y), -stats.gamma.logpdf(y, 1.5, mean - 1.5 * width, width)
    std = 0.3 + x * rng.uniform(0.5, 1.5, size=n)
    y = mean + std * rng.normal(size=n)
    return (mean, std, y), log_score_normal(mean, std, y)


@cache
def taught(kind: str = "scatters", n: int = 1_000, inducing: int = 8, steps: int = 400) -> GPBeta:
    """Make a calibrator that has learned n labels; it is shared, and so never taught more."""
    calibrator = GPBeta(inducing=inducing, steps=steps)
    calibrator.learn_many(*rows(kind, n)[0])
    return calibrator


def quick(**options: Any) -> GPBeta:  # noqa: ANN401 - anything it takes
    """Make a calibrator whose fits take no time and are no good."""
    return GPBeta(**{"inducing": 2, "steps": 1} | options)


SOME = (np.array([0.0, 1.0, 2.5]), np.array([1.0, 0.5, 2.0]), np.array([0.5, 0.0, 9.0]))


# What it is for


@pytest.mark.parametrize(("kind", "gain"), [("scatters", 0.15), ("skewed", 0.2)])
def test_it_lowers_the_log_score_of_a_base_that_is_wrong(kind: str, gain: float) -> None:
    """On new labels it gains most of what is possible, with 32 inducing points and all defaults."""
    calibrator = taught(kind, 1_000, 32, 1_000)
    (mean, std, y), best = rows(kind, 4_000, seed=1)
    base = log_score_normal(mean, std, y).mean()
    found = calibrator.log_score_many(mean, std, y).mean()
    assert found < base - gain
    assert found > best.mean()  # or something is counted wrong


def test_it_leaves_a_base_that_is_right_nearly_alone() -> None:
    """On new labels it loses at most 0.02 nats."""
    calibrator = taught("right", 1_000, 32, 1_000)
    (mean, std, y), best = rows("right", 4_000, seed=1)
    assert calibrator.log_score_many(mean, std, y).mean() <= best.mean() + 0.02


def test_intervals_hold_their_level_where_one_map_for_all_cannot() -> None:
    """On the left as on the right, intervals of 80 % hold 80 % of new labels."""
    (mean, std, y), _ = rows("scatters", 4_000, seed=1)
    low, high = taught().quantiles_many(mean, std, [0.1, 0.9]).T
    for side in (mean < 1.0, mean > 2.0):
        assert covered(low, high, y)[side].mean() == pytest.approx(0.8, abs=0.05)
        bare = covered(mean - 1.2816 * std, mean + 1.2816 * std, y)[side].mean()
        assert abs(bare - 0.8) > 0.1


def known(mean: float) -> BetaCurve:
    """Return the map that labels are drawn by, which changes with the mean and the spread."""
    return BetaCurve(float(np.exp(-0.7 * mean)), float(np.exp(0.5 * mean)), 0.8 * mean)


def test_it_recovers_the_maps_that_made_the_labels() -> None:
    """The calibrated CDF at base quantiles is the true map there, within a few hundredths."""
    rng = np.random.default_rng(0)
    mean = rng.uniform(-1.0, 1.0, size=4_000)
    std = 0.3 + 0.2 * (mean + 1.0)
    odds = special.logit(rng.uniform(size=4_000))
    z = [
        special.ndtri(special.expit(known(m).inverse(np.array([o])))).item()
        for m, o in zip(mean.tolist(), odds.tolist(), strict=True)
    ]
    calibrator = GPBeta(inducing=16)
    calibrator.learn_many(mean, std, mean + std * np.array(z))
    u = np.linspace(0.05, 0.95, 19)
    for m in (-0.8, -0.3, 0.2, 0.7):
        spread = 0.3 + 0.2 * (m + 1.0)
        found = calibrator.distribution(m, spread).cdf(stats.norm.ppf(u, m, spread))
        assert found == pytest.approx(known(m).mapped(*logs(u)), abs=0.04)
        assert np.abs(found - u).max() > 0.08  # the base is wrong there


# What it gives


def test_until_the_first_fit_it_is_the_identity() -> None:
    """With fewer labels than inducing points every distribution is as predicted."""
    calibrator = GPBeta(inducing=4)
    calibrator.learn_many(*SOME)
    mean, std, y = SOME
    assert calibrator.cdf_many(mean, std, y) == pytest.approx(stats.norm.cdf(y, mean, std))
    known = -stats.norm.logpdf(y, mean, std)
    assert calibrator.log_score_many(mean, std, y) == pytest.approx(known)
    found = calibrator.quantiles_many(mean, std, [0.1, 0.9])
    assert found == pytest.approx(stats.norm.ppf([[0.1, 0.9]], mean[:, None], std[:, None]))
    assert calibrator.distribution(1.0, 2.0).mean == pytest.approx(1.0)


@pytest.mark.parametrize(("mean", "std"), [(0.2, 1.05), (2.8, 1.05), (-5.0, 0.1), (1.5, 40.0)])
def test_a_distribution_is_one(mean: float, std: float) -> None:
    """The CDF ascends from 0 to 1, and the density is its derivative and integrates to 1."""
    found = taught().distribution(mean, std)
    t = mean + std * np.linspace(-39.0, 39.0, 2_001)
    cdf = found.cdf(t)
    assert (np.diff(cdf) >= -1e-15).all()
    assert 0.0 <= cdf[0] < 1e-4
    assert 1.0 >= cdf[-1] > 1.0 - 1e-4
    for a, b in [(-1.0, 0.5), (0.5, 2.0)]:
        low, high = mean + a * std, mean + b * std
        mass = integrate.quad(found.density, low, high)[0]
        assert mass == pytest.approx(found.cdf(high) - found.cdf(low), abs=1e-7)
    ends = found.interval(1.0 - 1e-10)  # at most 38 spreads away, where doubles end
    whole = integrate.quad(found.density, *ends, points=found.quantile([0.1, 0.5, 0.9]), limit=200)
    assert whole[0] == pytest.approx(1.0, abs=1e-4)
    assert (found.mass_below, found.mass_above) == (0.0, 0.0)


def test_a_cdf_is_the_mean_over_draws_and_not_the_map_of_their_mean() -> None:
    """CDF and density are averages of those of the draws, which differ from the mean draw's."""
    calibrator = taught()
    mean, std, y = -5.0, 0.1, -4.95  # far from all labels: the draws differ much
    maps = calibrator._maps  # noqa: SLF001 - its draws
    assert maps is not None
    curves = maps.at(np.array([mean]), np.array([std]), 0)[..., 0]
    u, base = stats.norm.cdf(y, mean, std), stats.norm.pdf(y, mean, std)
    a, b, c = np.exp(curves[0]), np.exp(curves[1]), curves[2]
    p = special.expit(a * np.log(u) - b * np.log1p(-u) + c)
    slope = (a / u + b / (1.0 - u)) * p * (1.0 - p)
    found = calibrator.distribution(mean, std)
    assert found.cdf(y) == pytest.approx(p.mean(), rel=1e-12)
    assert found.density(y) == pytest.approx(base * slope.mean(), rel=1e-12)
    a, b, c = np.exp(curves[0].mean()), np.exp(curves[1].mean()), curves[2].mean()
    assert abs(special.expit(a * np.log(u) - b * np.log1p(-u) + c) - p.mean()) > 1e-3


def test_many_predictions_are_as_each() -> None:
    """Batches over several blocks agree with single distributions, a number a row or several."""
    (mean, std, y), _ = rows("scatters", 150, seed=2)
    calibrator, each = (
        taught(),
        [taught().distribution(*one) for one in zip(mean, std, strict=True)],
    )
    cdf, score = calibrator.cdf_many(mean, std, y), calibrator.log_score_many(mean, std, y)
    levels = [0.05, 0.5, 0.999]
    quantiles = calibrator.quantiles_many(mean, std, levels)
    for i, found in enumerate(each):
        assert cdf[i] == pytest.approx(found.cdf(y[i]), rel=1e-9)
        assert score[i] == pytest.approx(found.log_score(y[i]), rel=1e-9)
        assert quantiles[i] == pytest.approx(found.quantile(levels), rel=1e-7)
    grid = np.stack((y, y + 1.0), axis=1)
    assert calibrator.cdf_many(mean, std, grid)[:, 0] == pytest.approx(cdf, rel=1e-12)
    wide = np.repeat(y[:3, np.newaxis], 5_000, axis=1)  # more than a block by itself
    assert calibrator.cdf_many(mean[:3], std[:3], wide)[:, -1] == pytest.approx(cdf[:3], rel=1e-9)
    assert calibrator.cdf_many([], [], []).shape == (0,)
    assert calibrator.quantiles_many([], [], [0.5]).shape == (0, 1)


def test_the_maps_that_are_given_are_those_that_calibrate() -> None:
    """A calibrated CDF is the mean of the beta maps given for its prediction."""
    (mean, std, y), _ = rows("scatters", 150, seed=2)
    a, b, c = taught().maps_many(mean, std)
    below, above = stats.norm.logcdf(y, mean, std), stats.norm.logsf(y, mean, std)
    p = special.expit(a * below - b * above + c).mean(axis=0)
    assert taught().cdf_many(mean, std, y) == pytest.approx(p, rel=1e-9)
    assert GPBeta().maps_many([0.0, 1.0], [1.0, 1.0]).tolist() == [[[1.0] * 2]] * 2 + [[[0.0] * 2]]
    assert taught().maps_many([], []).shape == (3, a.shape[0], 0)


def test_far_labels_are_scored_without_a_limit() -> None:
    """Fifty spreads away on either side a score is finite, and worse than nearer by."""
    y = np.array([-50.0, -30.0, 30.0, 50.0])
    scores = taught().log_score_many(np.zeros(4), np.ones(4), y)
    assert np.isfinite(scores).all()
    assert scores[0] > scores[1]
    assert scores[3] > scores[2]


# Learning


@pytest.mark.parametrize("refit", [0.5, 1.0])
def test_fits_are_made_after_a_share_of_the_labels_held(refit: float) -> None:
    """The first is made of as many labels as there are inducing points, then by the share."""
    calibrator, fits, last = quick(refit=refit), [], None
    for i in range(1, 21):
        calibrator.learn_one(0.1 * i, 1.0, float(i % 3))
        if (now := calibrator.distribution(0.5, 1.0).cdf(0.7)) != last and i > 1:
            fits.append(i)
        last = now
    assert fits == ([2, 3, 5, 8, 12, 18] if refit < 1.0 else [2, 4, 8, 16])


TRIPLES = st.tuples(st.floats(-10.0, 10.0), st.floats(0.1, 10.0), st.floats(-10.0, 10.0))


@settings(max_examples=40)
@given(st.lists(TRIPLES, min_size=3, max_size=12), st.sampled_from([None, 4]))
def test_a_fit_is_a_function_of_what_is_held(
    triples: list[tuple[float, float, float]], window: int | None
) -> None:
    """Fitted after each label, one by one ends where a batch of what is left starts."""
    one = quick(window=window, refit=0.0)
    for triple in triples:
        one.learn_one(*triple)
    left = triples if window is None else triples[-window:]
    for order in (left, left[::-1]):
        many = quick(refit=0.0)
        many.learn_many(*np.array(order).T)
        asked = np.array([0.0, 1.0]), np.ones(2), np.array([0.5, 0.5])
        assert np.array_equal(one.cdf_many(*asked), many.cdf_many(*asked))
    assert len(one) == len(left)


def test_the_seed_is_all_there_is_to_chance() -> None:
    """The same labels and seed give the same bytes and numbers, another seed others."""
    data, _ = rows("skewed", 60)
    calibrators = [GPBeta(inducing=4, steps=30, seed=seed) for seed in (1, 1, 2)]
    for calibrator in calibrators:
        calibrator.learn_many(*data)
    blobs = [calibrator.to_bytes() for calibrator in calibrators]
    assert blobs[0] == blobs[1]
    fits = [unpack(memoryview(blob[len(MAGIC) : -16]))[-1] for blob in blobs]
    assert fits[0] != fits[2]
    found = [calibrator.cdf_many(*data) for calibrator in calibrators]
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def test_the_unit_of_the_label_does_not_matter() -> None:
    """With everything 1024 times as large, to the last bit."""
    mean, std, y = rows("skewed", 60)[0]
    small, large = GPBeta(inducing=4, steps=30), GPBeta(inducing=4, steps=30)
    small.learn_many(mean, std, y)
    large.learn_many(1024.0 * mean, 1024.0 * std, 1024.0 * y)
    found = large.cdf_many(1024.0 * mean, 1024.0 * std, 1024.0 * y)
    assert np.array_equal(found, small.cdf_many(mean, std, y))


@pytest.mark.parametrize(
    "data",
    [
        ([1.0] * 40, [2.0] * 40, [1.0] * 40),
        ([1.0] * 40, [2.0] * 40, [1e9, -1e9] * 20),
        ([0.0, 1e300] * 20, [1e-300, 1e300] * 20, [1e300, -1e300] * 20),
        ([0.0] * 39 + [1e12], [1.0] * 40, [0.0] * 40),
        ([0.0] * 39 + [1e300], [1.0] * 39 + [1e200], [0.0] * 40),
        (np.linspace(0.0, 1e-9, 40), np.geomspace(1e-6, 1e6, 40), np.zeros(40)),
    ],
)
def test_extreme_rows_keep_the_fit_finite(data: Rows) -> None:
    """Equal predictions, labels far off and all scales at once give probabilities all the same."""
    calibrator = GPBeta(inducing=8, steps=50)
    calibrator.learn_many(*data)
    cdf = calibrator.cdf_many(*data)
    assert ((cdf >= 0.0) & (cdf <= 1.0)).all()
    assert not np.isnan(calibrator.log_score_many(*data)).any()


# Bad input


@pytest.mark.parametrize("bad", [np.nan, np.inf, "much", None])
def test_what_is_no_number_is_refused(bad: Any) -> None:  # noqa: ANN401
    """Nothing is learned, and a batch names the row."""
    calibrator = quick()
    calibrator.learn_many(*SOME)
    before = calibrator.to_bytes()
    for i, error in enumerate((ScoreError, ScoreError, LabelError)):
        row: list[Any] = [1.0, 1.0, 1.0]
        row[i] = bad
        with pytest.raises(error, match="not a finite number"):
            calibrator.learn_one(*row)
        columns: list[Any] = [[1.0, each] for each in row]
        with pytest.raises(error, match="row 1"):
            calibrator.learn_many(*columns)
    assert calibrator.to_bytes() == before


@pytest.mark.parametrize("bad", [0.0, -1.0, -0.0])
def test_a_spread_that_is_not_positive_is_refused(bad: float) -> None:
    """To learn and to predict, by one and by many."""
    calibrator = quick()
    before = calibrator.to_bytes()
    with pytest.raises(ScoreError, match="not positive"):
        calibrator.learn_one(0.0, bad, 0.0)
    with pytest.raises(ScoreError, match=r"row 1: .* not positive"):
        calibrator.learn_many([0.0, 0.0], [1.0, bad], [0.0, 0.0])
    with pytest.raises(ScoreError, match="not positive"):
        calibrator.distribution(0.0, bad)
    with pytest.raises(ScoreError, match=r"row 0: .* not positive"):
        calibrator.cdf_many([0.0], [bad], [0.0])
    assert calibrator.to_bytes() == before


def test_what_is_asked_is_checked() -> None:
    """Places and labels are finite, levels inside (0, 1), and there is one of each a row."""
    calibrator, one = quick(), ([0.0], [1.0])
    with pytest.raises(ScoreError, match="row 0"):
        calibrator.cdf_many([np.nan], [1.0], [0.0])
    with pytest.raises(ScoreError):
        calibrator.distribution(np.inf, 1.0)
    for call in (calibrator.cdf_many, calibrator.log_score_many):
        with pytest.raises(ParameterError, match="not a finite number"):
            call(*one, [np.nan])
        with pytest.raises(ParameterError, match="give each a row"):
            call(*one, [0.0, 1.0])
        with pytest.raises(ParameterError, match="give each a row"):
            call(*one, 0.0)
    with pytest.raises(ParameterError, match="not inside"):
        calibrator.quantiles_many(*one, [1.0])
    with pytest.raises(ParameterError, match="2 rows"):
        calibrator.cdf_many([0.0], [1.0, 1.0], [0.0])
    with pytest.raises(ParameterError, match="2 rows"):
        calibrator.maps_many([0.0], [1.0, 1.0])
    with pytest.raises(ParameterError, match="2 rows"):
        calibrator.learn_many([0.0], [1.0, 1.0], [0.0])
    with pytest.raises(ParameterError, match="2 rows"):
        calibrator.learn_many(*one, [0.0, 1.0])


@pytest.mark.parametrize(
    "options",
    [
        {"window": 0},
        {"window": 5, "inducing": 6},
        {"inducing": 0},
        {"inducing": 2.5},
        {"steps": 0},
        {"steps": True},
        {"refit": 1.5},
        {"refit": -0.1},
        {"refit": math.nan},
        {"seed": -1},
        {"seed": None},
        {"seed": 1 << 63},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    """The message names the option."""
    with pytest.raises(ParameterError, match=next(iter(options))):
        GPBeta(**options)


def test_without_scipy_the_remedy_is_named() -> None:
    """Making one without scipy gives the pip command."""
    program = """
import sys
sys.modules["scipy"] = None
from abers import MissingExtraError
from abers.batch import GPBeta
try:
    GPBeta()
except MissingExtraError as error:
    print(error)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert "pip install 'abers[regression]'" in ran.stdout


# Saving


@pytest.mark.parametrize("options", [{}, {"window": 7}, {"refit": 0.25, "seed": 5}])
@pytest.mark.parametrize("n", [1, 9])
def test_a_saved_calibrator_goes_on_as_before(options: dict[str, Any], n: int) -> None:
    """Saved and pickled ones say the same at once and through more labels and fits."""
    calibrator = quick(**options)
    calibrator.learn_many(*rows("skewed", n)[0])
    others = [GPBeta.from_bytes(calibrator.to_bytes()), pickle.loads(pickle.dumps(calibrator))]  # noqa: S301 - own bytes
    asked = rows("skewed", 5, seed=1)[0]
    for row in zip(*rows("skewed", 20, seed=2)[0], strict=True):
        for each in (calibrator, *others):
            assert np.array_equal(each.cdf_many(*asked), calibrator.cdf_many(*asked))
        for each in (calibrator, *others):
            each.learn_one(*map(float, row))
    assert {each.to_bytes() for each in others} == {calibrator.to_bytes()}
    assert {repr(each) for each in others} == {repr(calibrator)}
    known = {"window": None, "inducing": 2, "steps": 1, "refit": 0.5, "seed": 0} | options
    assert {name: getattr(others[0], name) for name in known} == known


def test_the_order_of_arrival_does_not_show_without_a_window() -> None:
    """Saved bytes are in canonical order."""
    one, other = quick(), quick()
    one.learn_many(*SOME)
    other.learn_many(*(column[::-1] for column in SOME))
    assert one.to_bytes() == other.to_bytes()
    assert bool(quick())
    assert repr(quick(window=3)).startswith("<GPBeta(window=3, inducing=2")


def test_damaged_and_senseless_bytes_are_refused() -> None:
    """Changed bytes, and good seals over what no calibrator holds, are no calibrator."""
    calibrator = quick(window=4)
    calibrator.learn_many(*SOME)
    blob = calibrator.to_bytes()
    for at in range(0, len(blob), 7):
        with pytest.raises(StateError):
            GPBeta.from_bytes(blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :])
    whole = unpack(memoryview(blob[len(MAGIC) : -16]))
    options, due, mean, std, y, scales, flat = whole
    head = [options, due]
    assert GPBeta.from_bytes(seal(MAGIC, pack(whole))).to_bytes() == blob

    def column(*values: float) -> bytes:
        return b"".join(packed(np.array(values)))

    endless = b"".join(packed(np.full(len(flat[9:]) // 8, np.inf)))
    for wrong in (
        [options[:-1], *whole[1:]],
        [options[:8] + bytes(8) + options[16:], *whole[1:]],
        [options, bytes(8), *whole[2:]],
        [*head, mean, column(1.0, -1.0, 1.0), y, scales, flat],
        [*head, mean, std, column(1.0), scales, flat],
        [*head, *(column(*[1.0] * 5) for _ in range(3)), scales, flat],
        [*head, b"".join(packed(np.zeros(3, np.uint8))), std, y, scales, flat],
        [*head, mean, std, y, scales],
        [*head, mean, std, y, bytes(16), flat],
        [*head, mean, std, y, scales, column(0.0)],
        [*head, mean, std, y, scales, endless],
        [*head, mean, std],
    ):
        with pytest.raises(StateError):
            GPBeta.from_bytes(seal(MAGIC, pack(wrong)))
