"""The distribution, `abers.regression.distribution`, against integrals and exact fractions."""

from __future__ import annotations

import copy
import json
import math
import pickle
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from abers import ParameterError
from abers.regression import PredictiveDistribution

if TYPE_CHECKING:
    from collections.abc import Callable

BAND = PredictiveDistribution([1.0, 2.0], [0.0, 0.25, 0.75], [0.25, 0.75, 1.0])
POINTS = st.integers(-12, 12).map(lambda halves: halves / 2)


@st.composite
def bands(draw: st.DrawFn, *, proper: bool = False) -> PredictiveDistribution:
    """Draw a band whose values are multiples of 1/16; a proper one has no mass at infinity."""
    thresholds = sorted(draw(st.sets(POINTS, min_size=1, max_size=6)))
    k = len(thresholds)
    sixteenths = st.lists(st.integers(0, 16), min_size=k + 1, max_size=k + 1).map(sorted)
    one, two = draw(sixteenths), draw(sixteenths)
    if proper:
        one[0] = two[0] = 0
        one[-1] = two[-1] = 16
    lower, upper = np.minimum(one, two) / 16, np.maximum(one, two) / 16
    support = draw(st.sampled_from((None, (-7.0, 7.0), (-6.0, 6.5))))
    return PredictiveDistribution(thresholds, lower, upper, support=support)


def exact_merge(band: PredictiveDistribution) -> list[Fraction]:
    """Merge the band in fractions: 1 - p1 / (1 - p0 + p1), before and after each threshold."""
    before = band.thresholds[0] - 1.0 if len(band.thresholds) else 0.0
    values = []
    for t in (before, *band.thresholds):
        p0, p1 = 1 - Fraction(band.upper(float(t))), 1 - Fraction(band.lower(float(t)))
        values.append(1 - p1 / (1 - p0 + p1))
    return values


def exact_crps(band: PredictiveDistribution, y: float) -> Fraction:
    """Integrate (F(t) - 1{y <= t})^2 piece by piece, the masses at infinity at their places."""
    values = exact_merge(band)
    lo, hi = (Fraction(end) for end in band.support)
    label = Fraction(y)
    start, end = min(lo, label), max(hi, label)
    cuts = sorted({start, end, label, *map(Fraction, band.thresholds.tolist())})
    total = Fraction(0)
    for left, right in pairwise(cuts):
        height = values[sum(t <= left for t in band.thresholds)]
        total += (height - (label <= left)) ** 2 * (right - left)
    return total


# CDFs


def test_values_between_thresholds() -> None:
    """Each CDF keeps its value from a threshold up to the next, and is 0 and 1 at infinity."""
    t = [-math.inf, 0.5, 1.0, 1.5, 2.0, 9.0, math.inf]
    assert BAND.lower(t).tolist() == [0.0, 0.0, 0.25, 0.25, 0.75, 0.75, 1.0]
    assert BAND.upper(t).tolist() == [0.0, 0.25, 0.75, 0.75, 1.0, 1.0, 1.0]
    assert BAND.cdf(1.5) == 0.5
    assert isinstance(BAND.cdf(1.5), float)


@given(bands())
def test_merge_is_the_minimax_one(band: PredictiveDistribution) -> None:
    """The merged CDF is 1 - p1 / (1 - p0 + p1) at every threshold, and lies in the band."""
    at = [band.thresholds[0] - 1.0, *band.thresholds]
    merged = band.cdf(at)
    assert merged == pytest.approx([float(value) for value in exact_merge(band)], abs=1e-15)
    assert (band.lower(at) <= merged + 1e-15).all()
    assert (merged <= band.upper(at) + 1e-15).all()
    assert (np.diff(merged) >= 0.0).all()


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=40), st.data())
def test_merge_ascends_although_it_is_rounded(values: list[float], data: st.DataObject) -> None:
    """For any doubles the merged CDF ascends, so that a quantile has one meaning."""
    values = [*values, *(float(np.nextafter(value, 1.0)) for value in values)]
    others = data.draw(st.lists(st.floats(0.0, 1.0), min_size=len(values), max_size=len(values)))
    one, two = np.sort(values), np.sort(others)
    band = PredictiveDistribution(
        np.arange(len(values) - 1.0), np.minimum(one, two), np.maximum(one, two)
    )
    assert (np.diff(band.cdf(np.arange(-1.0, len(values)))) >= 0.0).all()


def test_probability_above_is_the_binary_interval() -> None:
    """The pair (p0, p1) is what the upper and the lower CDF leave above the threshold."""
    assert BAND.probability_above(1.5) == (0.25, 0.75)
    assert BAND.probability_above(1.5).merged == pytest.approx(1.0 - BAND.cdf(1.5))
    p0, p1 = BAND.probability_above([0.0, 5.0])
    assert (p0.tolist(), p1.tolist()) == ([0.75, 0.0], [1.0, 0.25])


def test_one_cdf_is_its_own_merge() -> None:
    """Without an upper CDF the band has no width, and the merge is exactly the CDF given."""
    values = np.array([0.0, 0.1, 0.7, 1.0])
    single = PredictiveDistribution([1.0, 2.0, 3.0], values)
    assert single.cdf([0.0, 1.0, 2.0, 3.0]).tolist() == values.tolist()
    assert single.probability_above(2.0).width == 0.0
    assert (single.mass_below, single.mass_above) == (0.0, 0.0)


# Quantiles


@given(bands(), st.integers(1, 31))
def test_quantile_is_the_smallest_that_reaches(band: PredictiveDistribution, half: int) -> None:
    """quantile(q) is the infimum of all t with F(t) >= q, infinite inside the masses there."""
    q = half / 32 + 1 / 128  # never a value of the merge, which would be rounded either way
    values = exact_merge(band)
    reached = [value >= Fraction(q) for value in values]
    expected = (
        -math.inf
        if reached[0]
        else float(band.thresholds[reached.index(True) - 1])
        if any(reached)
        else math.inf
    )
    assert band.quantile(q) == expected


def test_quantile_at_a_value_is_where_it_is_reached() -> None:
    """A level that the CDF takes exactly belongs to the threshold where it is reached."""
    tenths = PredictiveDistribution(np.arange(10.0), np.arange(11) / 10)
    assert tenths.quantile(np.arange(1, 10) / 10).tolist() == list(range(9))


def test_intervals() -> None:
    """The interval of the band holds that of the merged CDF, and every CDF between."""
    assert BAND.interval(0.5) == (1.0, 2.0)
    assert BAND.interval(0.5, band=True) == (-math.inf, 2.0)
    low, high = BAND.interval([0.2, 0.9])
    assert (low.tolist(), high.tolist()) == ([1.0, -math.inf], [2.0, math.inf])


@given(bands(), st.floats(0.01, 0.99))
def test_interval_of_the_band_is_the_wider_one(band: PredictiveDistribution, level: float) -> None:
    """No quantile of the merged CDF lies outside the band's."""
    (low, high), (least, most) = band.interval(level), band.interval(level, band=True)
    assert least <= low <= high <= most


# Mass at infinity


@given(bands(), st.integers(1, 31))
def test_quantile_ends_are_those_of_both_cdfs(band: PredictiveDistribution, half: int) -> None:
    """They are the quantiles of the upper and of the lower CDF by itself."""
    values = band.to_dict()
    low, high = band.quantile_ends(half / 32)
    cdfs = (PredictiveDistribution(band.thresholds, values[name]) for name in ("upper", "lower"))
    assert [low, high] == [cdf.quantile(half / 32) for cdf in cdfs]
    assert low <= band.quantile(half / 32) <= high


@given(bands(), POINTS)
def test_merged_is_worth_the_same(band: PredictiveDistribution, y: float) -> None:
    """The merged CDF by itself has the scores, the mean and the quantiles of the band, exactly."""
    merged = band.merged()
    assert merged.values.tolist() == band.values.tolist()
    assert merged.to_dict()["lower"] == merged.to_dict()["upper"] == band.values.tolist()
    assert (merged.support, merged.crps(y), merged.mean) == (band.support, band.crps(y), band.mean)
    assert (merged.pit_ends(y), merged.pit(y, 1)) == (band.pit_ends(y), band.pit(y, 1))
    assert merged.interval(0.5) == merged.interval(0.5, band=True) == band.interval(0.5)


def test_masses_at_infinity() -> None:
    """What the merged CDF has below the first and above the last threshold is shown."""
    assert BAND.mass_below == pytest.approx(0.2)
    assert BAND.mass_above == pytest.approx(0.2)


@given(bands(), POINTS | st.sampled_from((-40.0, 40.0)))
def test_crps_is_the_integral(band: PredictiveDistribution, y: float) -> None:
    """The CRPS is the integral of its definition, for labels inside and outside the support."""
    assert band.crps(y) == pytest.approx(float(exact_crps(band, y)), abs=1e-12)


def naive_crps(band: PredictiveDistribution, y: float) -> float:
    """Apply the formula for steps to the finite ones alone."""
    after = band.cdf(band.thresholds)
    jumps = np.diff(after, prepend=band.mass_below)
    gaps = band.thresholds - y
    return float(2.0 * np.sum(jumps * ((gaps > 0.0) - after + jumps / 2.0) * gaps))


def test_naive_formula_is_wrong() -> None:
    """The formula without the masses at infinity gives a finite number that is no CRPS."""
    for y in (0.0, 1.25, 3.0):
        assert BAND.crps(y) == pytest.approx(float(exact_crps(BAND, y)))
        assert abs(naive_crps(BAND, y) - float(exact_crps(BAND, y))) > 0.03
    whole = PredictiveDistribution([1.0, 2.0], [0.0, 0.5, 1.0])
    assert naive_crps(whole, 1.25) == pytest.approx(whole.crps(1.25))


def test_proper_crps_is_infinite_with_mass_at_infinity() -> None:
    """Without a place for the masses at infinity the CRPS is infinite; without masses it is not."""
    assert BAND.crps(1.5, proper=True) == math.inf
    whole = PredictiveDistribution([1.0, 2.0], [0.0, 0.5, 1.0])
    assert whole.crps(1.5, proper=True) == whole.crps(1.5) == 0.25


def test_infinite_support_gives_infinite_scores() -> None:
    """Masses that are left at infinity make the CRPS infinite and the mean undefined."""
    open_ended = PredictiveDistribution([0.0], [0.1, 0.9], support=(-math.inf, math.inf))
    assert open_ended.crps(0.0) == math.inf
    assert math.isnan(open_ended.mean)
    whole = PredictiveDistribution([0.0], [0.0, 1.0], support=(-math.inf, math.inf))
    assert whole.crps(3.0) == 3.0
    assert whole.mean == 0.0


@given(bands())
def test_mean_places_the_masses(band: PredictiveDistribution) -> None:
    """The mean is that of all masses, those at infinity at the ends of the support."""
    values = [Fraction(0), *exact_merge(band), Fraction(1)]
    lo, hi = band.support
    places = [Fraction(p) for p in (lo, *band.thresholds.tolist(), hi)]
    pairs = zip(places, values[:-1], values[1:], strict=True)
    expected = sum(place * (b - a) for place, a, b in pairs)
    assert band.mean == pytest.approx(float(expected), abs=1e-12)


def test_vectors_are_their_elements() -> None:
    """Arrays of any shape give what their elements give."""
    y = np.array([[0.0, 1.0, 1.5], [2.0, 2.5, -3.0]])
    assert BAND.crps(y).tolist() == [[BAND.crps(float(v)) for v in row] for row in y]
    assert BAND.crps([]).shape == (0,)
    assert BAND.quantile(np.full((2, 3), 0.5)).shape == (2, 3)


# Chance


def test_pit_of_draws_is_uniform() -> None:
    """The PIT of what is drawn from the distribution is uniform, jumps and ends and all."""
    draws = BAND.sample(20_000, seed=1)
    assert set(draws.tolist()) == {1.0, 2.0}
    assert kstest(BAND.pit(draws, seed=2), "uniform").pvalue > 1e-3
    wide = PredictiveDistribution([0.0], [0.1, 0.7], support=(-1.0, 1.0))
    draws = wide.sample(20_000, seed=3)
    shares = [float(np.mean(draws == place)) for place in (-1.0, 0.0, 1.0)]
    assert shares == pytest.approx([0.1, 0.6, 0.3], abs=0.02)
    assert kstest(wide.pit(draws, seed=4), "uniform").pvalue > 1e-3


@given(bands(), POINTS)
def test_pit_lies_between_its_ends(band: PredictiveDistribution, y: float) -> None:
    """They are the CDF below the label and at it: beyond the support nothing is below, or above."""
    below, at = band.pit_ends(y)
    lo, hi = band.support
    assert below == (0.0 if y <= lo else band.cdf(math.nextafter(y, -math.inf)))
    assert at == (1.0 if y >= hi else band.cdf(y))
    assert below <= band.pit(y, 3) <= at


def test_pit_of_labels_beyond_the_support() -> None:
    """A label beyond the support takes the mass at infinity with it."""
    for label, least, most in ((-5.0, 0.0, 0.2), (5.0, 0.8, 1.0)):
        shares = BAND.pit([label] * 2_000, seed=0)
        assert np.min(shares) == pytest.approx(least, abs=0.01)
        assert np.max(shares) == pytest.approx(most, abs=0.01)


def test_seeds_decide() -> None:
    """The same seed gives the same draws, another seed others."""
    assert BAND.sample(9, seed=5).tolist() == BAND.sample(9, seed=5).tolist()
    assert BAND.pit(1.0, seed=5) == BAND.pit(1.0, seed=5) != BAND.pit(1.0, seed=6)


# As a value


def test_it_cannot_be_changed() -> None:
    """Its arrays refuse to be written to, and those it was made of are not its own."""
    lower = np.array([0.0, 1.0])
    distribution = PredictiveDistribution([1.0], lower)
    lower[0] = 0.5
    assert distribution.lower(0.0) == 0.0
    with pytest.raises(ValueError, match="read-only"):
        distribution.thresholds[0] = 3.0
    with pytest.raises(AttributeError):
        distribution.mean = 3.0  # type: ignore[misc]


@given(bands())
def test_copies_are_equal(band: PredictiveDistribution) -> None:
    """Pickles and copies are equal and hash alike; another support makes another distribution."""
    for other in (pickle.loads(pickle.dumps(band)), copy.copy(band)):  # noqa: S301 - our own bytes
        assert other == band
        assert hash(other) == hash(band)
        assert other.cdf(0.25) == band.cdf(0.25)
    vacuous = [0.0] * len(band.thresholds)
    wider = PredictiveDistribution(band.thresholds, [*vacuous, 0.0], support=(-9.0, 9.0))
    assert wider != band
    assert band != "a band"


def test_wire_form_is_json() -> None:
    """`to_dict` is what JSON can hold, the infinite ends of a support None."""
    band = PredictiveDistribution([1.0], [0.0, 0.5], [0.5, 1.0], support=(-math.inf, 4.0))
    assert json.loads(json.dumps(band.to_dict(), allow_nan=False)) == {
        "thresholds": [1.0],
        "lower": [0.0, 0.5],
        "upper": [0.5, 1.0],
        "support": [None, 4.0],
    }


def test_nothing_known() -> None:
    """With no threshold the vacuous band says nothing at every finite t, and means nothing."""
    vacuous = PredictiveDistribution([], [0.0], [1.0])
    assert (vacuous.lower(3.0), vacuous.upper(3.0), vacuous.cdf(3.0)) == (0.0, 1.0, 0.5)
    assert vacuous.interval(0.9) == (-math.inf, math.inf)
    assert vacuous.crps(1.0) == math.inf
    assert math.isnan(vacuous.mean)
    assert "0 steps" in repr(vacuous)


# Refusals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([2.0, 1.0], [0.0, 0.5, 1.0]), "ascend strictly"),
        (([1.0, 1.0], [0.0, 0.5, 1.0]), "ascend strictly"),
        (([math.inf], [0.0, 1.0]), "thresholds=inf is not a finite number"),
        (([1.0], [0.0, 0.5, 1.0]), r"lower has shape \(3,\), not \(2,\)"),
        (([1.0], [0.5, 0.4]), "lower is not a CDF"),
        (([1.0], [0.0, 1.1]), "lower is not a CDF"),
        (([1.0], [0.0, math.nan]), "lower is not a CDF"),
        (([1.0], [0.5, 0.6], [0.4, 0.9]), "lower is above upper"),
    ],
)
def test_what_is_no_distribution_is_refused(arguments: Any, message: str) -> None:  # noqa: ANN401
    """Thresholds that do not ascend and values that are no CDF are refused with the remedy."""
    with pytest.raises(ParameterError, match=message):
        PredictiveDistribution(*arguments)


@pytest.mark.parametrize("support", [(1.5, 9.0), (0.0, 1.5), (3.0, 0.0), (math.nan, 9.0)])
def test_support_must_span_the_thresholds(support: tuple[float, float]) -> None:
    """A support that leaves a threshold outside is refused."""
    with pytest.raises(ParameterError, match="does not span the thresholds"):
        PredictiveDistribution([1.0, 2.0], [0.0, 0.5, 1.0], support=support)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 1.1, math.nan, [0.5, 1.0]])
def test_levels_lie_inside_the_unit_interval(level: Any) -> None:  # noqa: ANN401
    """A level outside (0, 1) is refused by name."""
    with pytest.raises(ParameterError, match=r"^q=.* is not inside \(0, 1\)"):
        BAND.quantile(level)
    with pytest.raises(ParameterError, match=r"^level=.* is not inside \(0, 1\)"):
        BAND.interval(level)


@pytest.mark.parametrize("y", [math.nan, math.inf, [1.0, -math.inf]])
def test_labels_are_finite(y: Any) -> None:  # noqa: ANN401
    """A label that is not finite has no score."""
    with pytest.raises(ParameterError, match=r"y=.* is not a finite number"):
        BAND.crps(y)
    with pytest.raises(ParameterError, match=r"y=.* is not a finite number"):
        BAND.pit(y, seed=0)


@pytest.mark.parametrize("given", ["a", None, [1.0, "a"], 10**400, [[1.0], [1.0, 2.0]]])
def test_what_is_no_number_is_refused_by_name(given: Any) -> None:  # noqa: ANN401
    """Whatever is asked for, a text or an endless integer is an error that names it."""
    calls: dict[str, Callable[[Any], object]] = {
        "t": BAND.cdf,
        "q": BAND.quantile,
        "level": BAND.interval,
        "y": BAND.crps,
        "thresholds": lambda one: PredictiveDistribution(one, [0.0, 1.0]),
        "lower": lambda one: PredictiveDistribution([1.0], one),
    }
    for name, call in calls.items():
        if given is None and name == "t":
            continue  # numpy takes it for NaN, which has a message of its own
        with pytest.raises(ParameterError, match=name):
            call(given)


@pytest.mark.parametrize("support", [(1.0,), (1.0, 2.0, 3.0), 5.0, "ab", (0.0, 10**400)])
def test_support_is_a_pair(support: Any) -> None:  # noqa: ANN401
    """What is no pair of numbers is refused by name."""
    with pytest.raises(ParameterError, match="support="):
        PredictiveDistribution([1.0, 2.0], [0.0, 0.5, 1.0], support=support)


@pytest.mark.parametrize("n", [-1, 2.5, True, "3"])
def test_draws_are_counted_in_whole_numbers(n: Any) -> None:  # noqa: ANN401
    """So many draws there cannot be."""
    with pytest.raises(ParameterError, match=r"^n="):
        BAND.sample(n, seed=0)


def test_cdf_of_no_number_is_refused() -> None:
    """The CDF at NaN is an error and not the CDF at infinity."""
    with pytest.raises(ParameterError, match="t is not a number"):
        BAND.cdf([0.0, math.nan])
