"""The monitor of a regression calibrator, against sums from the definitions."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.monitoring import RegressionMonitor
from abers.stream.settings import QUANTILES

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
ENDS = st.floats(-5, 5) | st.sampled_from((-math.inf, math.inf, 0.0, 1.0))
Settled = list[tuple[float, list[float], float]]
SETTLED = st.lists(
    st.tuples(
        st.floats(-5, 5),
        st.lists(ENDS, min_size=len(LEVELS), max_size=len(LEVELS)).map(sorted),
        st.floats(-5, 5) | st.sampled_from((0.0, 1.0)),
    ),
    min_size=1,
    max_size=20,
)


def watched(settled: Settled, cuts: tuple[int, ...] = ()) -> RegressionMonitor:
    """Judge predictions, in batches that end at the cuts; the band is not looked at."""
    monitor = RegressionMonitor(LEVELS)
    ends = [0, *sorted(min(cut, len(settled)) for cut in cuts), len(settled)]
    for start, end in pairwise(ends):
        part = settled[start:end]
        rows = [[score, *quantiles, *[math.nan] * 2 * len(LEVELS)] for score, quantiles, _ in part]
        width = 1 + 3 * len(LEVELS)
        monitor.update(np.array(rows).reshape(len(part), width), np.array([y for *_, y in part]))
    return monitor


def pinball(level: float, quantile: float, label: float) -> float:
    """Give the loss of a quantile."""
    return level * (label - quantile) if label > quantile else (1 - level) * (quantile - label)


def mean(terms: list[float]) -> float:
    """Give the mean; NaN of nothing."""
    return math.fsum(terms) / len(terms) if terms else math.nan


@given(settled=SETTLED)
def test_losses_coverage_and_width(settled: Settled) -> None:
    """All follow from the definitions; what is infinite is counted, and in no sum."""
    finite = [(q, y) for _, q, y in settled if all(map(math.isfinite, q))]
    losses = [pinball(a, v, y) for q, y in finite for a, v in zip(LEVELS, q, strict=True)]
    monitor = watched(settled)
    assert monitor.views() == {
        "calibrated": pytest.approx(
            {
                "pinball": mean(losses),
                "pinball_infinite": len(settled) - len(finite),
                "coverage_80": mean([q[0] <= y <= q[4] for _, q, y in settled]),
                "coverage_50": mean([q[1] <= y <= q[3] for _, q, y in settled]),
            },
            abs=1e-12,
            nan_ok=True,
        )
    }
    bounded = [(q[0], q[4]) for _, q, _ in settled if math.isfinite(q[0]) and math.isfinite(q[4])]
    widths = [high - low for low, high in bounded]
    assert monitor.mean_width == pytest.approx(mean(widths), abs=1e-12, nan_ok=True)


@given(settled=SETTLED, cuts=st.tuples(st.integers(0, 20), st.integers(0, 20)))
def test_batches_make_no_difference(settled: Settled, cuts: tuple[int, int]) -> None:
    """However predictions are batched, the sums are equal to the last bit."""
    assert watched(settled, cuts).state() == watched(settled).state()


@given(settled=SETTLED)
def test_restored(settled: Settled) -> None:
    """A restored monitor goes on as the saved one would have."""
    monitor = watched(settled)
    other = RegressionMonitor.restore(monitor.state())
    for one in (monitor, other):
        one.update(np.array([[0.5, 1.0, 2.0, 3.0, 4.0, 5.0]]), np.array([1.0]))
    assert other.state() == monitor.state()


@given(parts=st.lists(SETTLED, min_size=1, max_size=3))
def test_total(parts: list[Settled]) -> None:
    """Monitors added up are the monitor of all predictions together."""
    total = RegressionMonitor.total([watched(part) for part in parts])
    whole = watched([one for part in parts for one in part])
    assert total.views()["calibrated"] == pytest.approx(
        whole.views()["calibrated"], abs=1e-12, nan_ok=True
    )
    assert total.mean_width == pytest.approx(whole.mean_width, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("levels", "names"),
    [
        (QUANTILES, ["coverage_95", "coverage_90", "coverage_80", "coverage_50"]),
        ((0.5,), []),
        ((0.1, 0.8), []),
        ((0.1, 0.3, 0.7), ["coverage_40"]),
        ((0.0125, 0.9875), ["coverage_97.5"]),
        ((1e-7, 2e-7, 1 - 2e-7, 1 - 1e-7), ["coverage_99.99998", "coverage_99.99996"]),
    ],
)
def test_central_intervals(levels: tuple[float, ...], names: list[str]) -> None:
    """Levels as far from 0 as from 1 bound an interval, named by the per cent it should cover."""
    assert list(RegressionMonitor(levels).views()["calibrated"])[2:] == names


def test_without_intervals() -> None:
    """Where no two levels bound an interval there is a loss and no width."""
    monitor = RegressionMonitor([0.5])
    monitor.update(np.array([[0.0, 1.0, 1.0, 1.0]]), np.array([3.0]))
    assert monitor.views() == {"calibrated": {"pinball": 1.0, "pinball_infinite": 0}}
    assert math.isnan(monitor.mean_width)


def test_a_loss_too_large_for_a_double_is_infinite() -> None:
    """A label further from a quantile than any double costs infinitely much."""
    monitor = RegressionMonitor([0.25, 0.75])
    rows = np.array([[0.0, -1e308, 1e308], [0.0, -1.0, 1.0]])
    monitor.update(rows, np.array([-1.7e308, 2.0]))
    found = monitor.views()["calibrated"]
    assert found == {"pinball": 0.75, "pinball_infinite": 1, "coverage_50": 0.0}
    assert monitor.mean_width == 2.0


def test_nothing_yet() -> None:
    """Before the first label no mean is a number, and nothing is infinite."""
    monitor = RegressionMonitor(LEVELS)
    found = monitor.views()["calibrated"]
    assert found.pop("pinball_infinite") == 0
    assert all(map(math.isnan, [*found.values(), monitor.mean_width]))
