"""Sums of labels against a level, and verdicts on them, `abers.monitoring.forecast_groups`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from abers.monitoring import DistributionEProcess, EProcessSteps, VerdictSequence
from abers.monitoring.forecast_groups import LevelSums
from abers.monitoring.verdict import verdict_parts

COUNTED = st.lists(st.sampled_from([(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.25, 0.25)]), max_size=30)
N = 6_000
MANY = pytest.mark.parametrize("runs", [60, pytest.param(100, marks=pytest.mark.long)])


@given(rows=COUNTED, at=st.integers(0, 30))
def test_sums_are_those_of_the_definition(rows: list[tuple[float, float]], at: int) -> None:
    """They are computed here as fractions; batches make no difference."""
    least, most = np.array(rows).reshape(-1, 2).T
    parts, whole = LevelSums(0.25, 1.5), LevelSums(0.25, 1.5)
    whole.add(least, most)
    for part in (slice(at), slice(at, None)):
        parts.add(least[part], most[part])
    one = whole.groups()[0]
    assert one == parts.groups()[0]
    level, n = Fraction(1, 4), len(rows)
    squares = sum(
        max((Fraction(low) - level) ** 2, (Fraction(high) - level) ** 2) for low, high in rows
    )
    assert [one.labels, one.observed, one.squares] == [float(n), float(most.sum()), float(squares)]
    # Odds of 1/3 times 3/2 are 1/2: a probability of 1/3.
    assert one.most == pytest.approx(float(Fraction(n, 3)) + (most - least).sum())
    assert one.least == pytest.approx(float(Fraction(2 * n, 11)))


def test_another_level() -> None:
    """Verdicts on another level are neither restored nor added up."""
    one, other = (VerdictSequence("calibrated", 1.25, level=level) for level in (0.5, 0.25))
    with pytest.raises(ValueError, match="level"):
        one.load(other.state())
    with pytest.raises(ValueError, match="level"):
        VerdictSequence.total([one, other])


def decided(outcomes: Any, quantiles: list[float], *, pit: bool) -> dict[str, str]:  # noqa: ANN401
    """Return what is said of each part that is outside."""
    process = DistributionEProcess([0.8], quantiles=quantiles, pit=pit)
    n = len(outcomes)
    numbers = np.repeat(np.arange(n), 2)
    kinds = np.tile(np.array([0, 1], np.uint8), n)
    process.run(EProcessSteps(kinds, numbers, numbers, np.repeat(outcomes, 2, axis=0)))
    parts = verdict_parts([one.verdict() for one in process.verdicts if one.words.part])
    return {each.words.part: each.claim for one in parts for each in one.outside}


def outcomes_of(labels: Any, shift: float, scale: float) -> Any:  # noqa: ANN401
    """Return the outcomes of normal forecasts at 10, 50 and 90 %, with PIT values."""
    cdf = stats.norm.cdf(labels, shift, scale)
    below = [np.sign(q - cdf) * 0.5 + 0.5 for q in (0.1, 0.5, 0.9)]
    return np.column_stack(((np.abs(cdf - 0.5) <= 0.4), *below, cdf, cdf)).astype(float)


@pytest.mark.parametrize(
    ("shift", "scale", "said"),
    [
        (0.5, 1.0, {"10 %": "too high", "50 %": "too high", "middle": "too high"}),
        (-0.5, 1.0, {"10 %": "too low", "50 %": "too low", "middle": "too low"}),
        (0.0, 0.6, {"10 %": "too high", "90 %": "too low", "width": "too narrow"}),
        (0.0, 1.7, {"10 %": "too low", "90 %": "too high", "width": "too wide"}),
    ],
)
def test_what_is_wrong_with_distributions(shift: float, scale: float, said: dict[str, str]) -> None:
    """Forecasts that are shifted are too high or too low; others are too narrow or too wide."""
    labels = np.random.default_rng(1).normal(size=N)
    found = decided(outcomes_of(labels, shift, scale), [0.1, 0.5, 0.9], pit=True)
    assert said.items() <= found.items()


@pytest.mark.simulation
@MANY
def test_wrong_claims(runs: int) -> None:
    """Of right distributions few runs are ever called outside: continuous ones, and counts."""
    wrong = 0
    for seed in range(runs):
        labels = np.random.default_rng([4, seed]).normal(size=N)
        wrong += bool(decided(outcomes_of(labels, 0.0, 1.0), [0.1, 0.5, 0.9], pit=True))
    assert wrong <= runs * 0.05 + 3.0 * (runs * 0.05 * 0.95) ** 0.5


@pytest.mark.simulation
@MANY
@pytest.mark.parametrize("mean", [0.4, 2.0])
def test_quantiles_of_counts(mean: float, runs: int) -> None:
    """A quantile that many labels equal is right if few are below it and enough at most at it."""
    levels, wrong, law = [0.1, 0.5, 0.9], 0, stats.poisson(mean)
    at = law.ppf(levels)
    for seed in range(runs):
        labels = law.rvs(N, random_state=np.random.default_rng([5, seed]))
        below = [0.5 * (1.0 + np.sign(q - labels)) for q in at]
        pit = law.cdf(labels - 1), law.cdf(labels)
        covered = np.random.default_rng([6, seed]).random(N) < 0.8
        outcomes = np.column_stack((covered, *below, *pit))
        wrong += bool(decided(outcomes, levels, pit=True))
    assert wrong <= runs * 0.05 + 3.0 * (runs * 0.05 * 0.95) ** 0.5


def test_ties_are_not_held_against_a_quantile() -> None:
    """All labels at the median are neither too many below it nor too few."""
    sequence = VerdictSequence("calibrated", 1.25, level=0.5)
    ones = np.ones(5_000)
    sequence.add(0.0 * ones, ones, np.arange(5_000))
    assert sequence.verdict().status == "trustworthy"
