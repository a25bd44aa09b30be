"""The theorem of the band of `IVAPR`: its quantiles bound those of the fit with the true label.

Nothing is random in it. Remove each observation of a data set in turn, ask for its band, and count
over all: as the query is equally likely to be any of them, these shares are the probabilities of
the theorem. The fit here is isotonic distributional regression in fractions, one threshold at a
time, and uses no code of abers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.regression import IVAPR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Rows = list[tuple[int, float]]
    Band = Callable[[Rows, int], Any]

TAILS = [Fraction(1, 16), Fraction(1, 8), Fraction(1, 4), Fraction(3, 8), Fraction(1, 2)]
LEVELS = sorted({*TAILS, *(1 - tail for tail in TAILS)})  # each is a double
ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), min_size=1, max_size=24)
WINDOW = 11


def falling_means(sums: Iterable[tuple[Fraction, int]]) -> list[Fraction]:
    """Return the falling regression of groups, given as sums and sizes: one mean for each."""
    blocks: list[tuple[Fraction, int, int]] = []  # sum, size, groups
    for total, size in sums:
        block = (total, size, 1)
        while blocks and blocks[-1][0] * block[1] <= block[0] * blocks[-1][1]:
            last = blocks.pop()
            block = (last[0] + block[0], last[1] + block[1], last[2] + block[2])
        blocks.append(block)
    return [total / size for total, size, groups in blocks for _ in range(groups)]


def fitted(rows: Rows, t: float) -> dict[int, Fraction]:
    """Return the share of labels of at most t by score, as the fit has it."""
    groups: dict[int, list[int]] = defaultdict(list)
    for score, label in rows:
        groups[score].append(label <= t)
    scores = sorted(groups)
    means = falling_means((Fraction(sum(groups[one])), len(groups[one])) for one in scores)
    return dict(zip(scores, means, strict=True))


def thresholds(rows: Rows) -> list[float]:
    """Return all places at which a CDF can step."""
    return sorted({label for _, label in rows if math.isfinite(label)})


def quantile(cdf: dict[float, Fraction], level: Fraction) -> float:
    """Return the smallest t at which a CDF reaches a level; its first threshold is -infinity."""
    return min((t for t, value in cdf.items() if value >= level), default=math.inf)


def cdf_of(rows: Rows, score: int) -> dict[float, Fraction]:
    """Return the CDF that the fit of rows has at a score, with the value below all labels first."""
    found = {t: fitted(rows, t)[score] for t in thresholds(rows)}
    return {-math.inf: fitted(rows, -math.inf)[score]} | found


def exact_band(bag: Rows, score: int) -> tuple[dict[float, Fraction], dict[float, Fraction]]:
    """Return the lower and the upper CDF: the fits with the query's label at either infinity."""
    lower, upper = (cdf_of([*bag, (score, label)], score) for label in (math.inf, -math.inf))
    below = {-math.inf: fitted([*bag, (score, -math.inf)], -math.inf)[score]}
    return lower, upper | below


def all_kept(bag: Rows, score: int) -> Any:  # noqa: ANN401 - a distribution
    """Return the band of a calibrator that has learned a bag."""
    calibrator = IVAPR()
    calibrator.learn_many([one for one, _ in bag], [label for _, label in bag])
    return calibrator.predict_one(score)


def in_a_window(bag: Rows, score: int) -> Any:  # noqa: ANN401 - a distribution
    """Return the band of a calibrator that has forgotten all but the bag."""
    calibrator = IVAPR(window=len(bag)) if bag else IVAPR()
    for one in range(2 * WINDOW if bag else 0):
        calibrator.learn_one(one % 6, float(40 - one))
    for one, label in bag:
        calibrator.learn_one(one, label)
    return calibrator.predict_one(score)


def on_a_grid(bag: Rows, score: int) -> Any:  # noqa: ANN401 - a distribution
    """Return the band of a calibrator with a few thresholds, which are no labels."""
    calibrator = IVAPR(grid=[-2.5, 1.5, 2.0, 4.5])
    calibrator.learn_many([one for one, _ in bag], [label for _, label in bag])
    return calibrator.predict_one(score)


BANDS = pytest.mark.parametrize("band", [all_kept, in_a_window, on_a_grid])


@given(ROWS, st.integers(-1, 6))
def test_the_band_is_the_fit_with_either_label(rows: Rows, score: int) -> None:
    """Both CDFs are those of the definition, at all labels, below them, and to the last bit."""
    lower, upper = exact_band(rows, score)
    found = all_kept(rows, score)
    assert found.lower(thresholds(rows)).tolist() == [float(lower[t]) for t in thresholds(rows)]
    assert found.upper(thresholds(rows)).tolist() == [float(upper[t]) for t in thresholds(rows)]
    assert (found.lower(-9.0), found.upper(-9.0)) == (lower[-math.inf], float(upper[-math.inf]))
    assert found.thickness == max(found.upper(t) - found.lower(t) for t in (-9.0, *lower))


@given(ROWS, st.integers(-1, 6), st.sampled_from(TAILS[:-1]))
def test_the_interval_of_the_band(rows: Rows, score: int, tail: Fraction) -> None:
    """Its ends are the smallest t at which the upper, and at which the lower CDF reach the tails.

    An end is infinite where the mass below or above all labels reaches that far.
    """
    lower, upper = exact_band(rows, score)
    ends = quantile(upper, tail), quantile(lower, 1 - tail)
    found, calibrator = all_kept(rows, score), IVAPR()
    assert found.interval(float(1 - 2 * tail), band=True) == ends
    assert found.quantile_ends(float(tail))[0] == ends[0]
    assert found.quantile_ends(float(1 - tail))[1] == ends[1]
    calibrator.learn_many(*np.array(rows, float).T)
    several = calibrator.quantiles_many([score], [float(tail), float(1 - tail)])
    assert (several.low[0, 0], several.high[0, 1]) == ends


def test_ends_at_ties_and_infinity() -> None:
    """A level that a CDF reaches exactly belongs to its first threshold; beyond, ends are open."""
    rows: Rows = [(0, 1.0), (0, 2.0), (0, 2.0)]
    found = all_kept(rows, 0)  # upper is 1/4, 1/2, 1 and lower 0, 1/4, 3/4
    assert found.interval(0.5, band=True) == (-math.inf, 2.0)
    assert found.interval(0.5 - 2.0**-40, band=True) == (1.0, 2.0)
    assert found.interval(0.5 + 2.0**-40, band=True) == (-math.inf, math.inf)
    assert all_kept([], 0).interval(0.01, band=True) == (-math.inf, math.inf)
    assert (all_kept([], 0).thickness, found.thickness, found.merged().thickness) == (1.0, 0.25, 0)


@BANDS
@given(rows=ROWS)
def test_every_tail_is_at_most_its_level(band: Band, rows: Rows) -> None:
    """Leaving each out: at most q of the labels are below low, and at most 1 - q above high."""
    rows = rows[: WINDOW + 1]
    left_out = [(band(rows[:i] + rows[i + 1 :], s), y) for i, (s, y) in enumerate(rows)]
    for level in LEVELS:
        ends = [(one.quantile_ends(float(level)), y) for one, y in left_out]
        assert sum(y < low for (low, _), y in ends) <= level * len(rows)
        assert sum(y > high for (_, high), y in ends) <= (1 - level) * len(rows)
    for tail in TAILS[:-1]:
        share = 1 - 2 * tail
        intervals = [(one.interval(float(share), band=True), y) for one, y in left_out]
        assert sum(low <= y <= high for (low, high), y in intervals) >= share * len(rows)


@BANDS
@given(rows=ROWS)
def test_tails_in_level_sets_of_the_quantile(band: Band, rows: Rows) -> None:
    """The same given Q, the quantile of the fit with all labels, which lies between the two."""
    rows = rows[: WINDOW + 1]
    cdfs = {score: cdf_of(rows, score) for score, _ in rows}
    left_out = [(band(rows[:i] + rows[i + 1 :], s), s, y) for i, (s, y) in enumerate(rows)]
    for level in LEVELS:
        sets: dict[float, list[float]] = defaultdict(list)
        for one, score, label in left_out:
            middle = quantile(cdfs[score], level)
            low, high = one.quantile_ends(float(level))
            assert low <= middle <= high
            sets[middle].append(label)
        for middle, labels in sets.items():
            assert sum(y < middle for y in labels) <= level * len(labels)
            assert sum(y > middle for y in labels) <= (1 - level) * len(labels)


@given(ROWS)
def test_the_fit_is_calibrated_at_every_threshold(rows: Rows) -> None:
    """The CDF of the true label is an end of the band, and is the share of labels given itself."""
    left_out = [(all_kept(rows[:i] + rows[i + 1 :], s), s, y) for i, (s, y) in enumerate(rows)]
    for t in (-9.0, *thresholds(rows)):
        fit = fitted(rows, t)
        sets: dict[Fraction, list[bool]] = defaultdict(list)
        for one, score, label in left_out:
            assert (one.upper(t) if label <= t else one.lower(t)) == float(fit[score])
            sets[fit[score]].append(label <= t)
        for value, hits in sets.items():
            assert value * len(hits) == sum(hits)


@given(ROWS)
def test_the_fit_is_a_cdf_that_falls_with_the_score(rows: Rows) -> None:
    """The oracle itself: its CDFs ascend, and a larger score has no larger value."""
    cdfs = [cdf_of(rows, score) for score in sorted({score for score, _ in rows})]
    for one in cdfs:
        assert all(a <= b for a, b in pairwise(one.values()))
    for left, right in pairwise(cdfs):
        assert all(left[t] >= right[t] for t in left)
