"""The monitor of a regression calibrator, against sums from the definitions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.monitoring.scored import regression

from abers.monitoring import CentralInterval, RegressionMonitor
from abers.stream.settings import QUANTILES

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
BINS = 20


class Row(NamedTuple):
    """A prediction, its label, and the scores of the distribution."""

    score: float
    quantiles: list[float]
    label: float
    crps: float
    pit: list[float]


ENDS = st.floats(-5, 5) | st.sampled_from((-math.inf, math.inf, 0.0, 1.0))
SHARES = st.floats(0, 1) | st.sampled_from([0.0, 1.0, 0.05, 0.15, 0.5, 0.95])
SETTLED = st.lists(
    st.builds(
        Row,
        st.floats(-5, 5),
        st.lists(ENDS, min_size=len(LEVELS), max_size=len(LEVELS)).map(sorted),
        st.floats(-5, 5) | st.sampled_from((0.0, 1.0)),
        st.floats(0, 5) | st.just(math.inf),
        st.lists(SHARES, min_size=2, max_size=2).map(sorted) | SHARES.map(lambda p: [p, p]),
    ),
    min_size=1,
    max_size=20,
)
WHOLE = pytest.mark.parametrize("whole", [False, True], ids=["quantiles", "distributions"])


def watched(
    settled: list[Row], cuts: tuple[int, ...] = (), *, whole: bool = True
) -> RegressionMonitor:
    """Score predictions, in batches that end at the cuts; the band is not read."""
    monitor = RegressionMonitor(LEVELS, distributions=whole)
    ends = [0, *sorted(min(cut, len(settled)) for cut in cuts), len(settled)]
    band = [math.nan] * 2 * len(LEVELS)
    for start, end in pairwise(ends):
        part = settled[start:end]
        more = [[one.crps, *one.pit] if whole else [] for one in part]
        rows = [[a.score, *a.quantiles, *band, *b] for a, b in zip(part, more, strict=True)]
        width = 1 + len(LEVELS) + len(band) + 3 * whole
        table, labels = np.array(rows).reshape(len(part), width), np.array([a.label for a in part])
        monitor.update(regression(LEVELS, table, labels, whole=whole))
    return monitor


def pinball(level: float, quantile: float, label: float) -> float:
    """Return the loss of a quantile."""
    return level * (label - quantile) if label > quantile else (1 - level) * (quantile - label)


def mean(terms: list[float]) -> float:
    """Return the mean; NaN of an empty list."""
    return math.fsum(terms) / len(terms) if terms else math.nan


def near(expected: Any) -> Any:  # noqa: ANN401 - anything approx takes
    """Return an expectation up to rounding, where NaN equals NaN."""
    return pytest.approx(expected, abs=1e-12, nan_ok=True)


def of_finite(name: str, losses: list[float]) -> dict[str, float]:
    """Return the mean of the finite terms, and the number of others."""
    finite = [loss for loss in losses if math.isfinite(loss)]
    return {name: mean(finite), f"{name}_infinite": len(losses) - len(finite)}


def central(settled: list[Row], low: int, high: int) -> tuple[float, float]:
    """Return coverage and mean width between two quantiles."""
    covered = [float(one.quantiles[low] <= one.label <= one.quantiles[high]) for one in settled]
    ends = [(one.quantiles[low], one.quantiles[high]) for one in settled]
    return mean(covered), mean([b - a for a, b in ends if math.isfinite(a) and math.isfinite(b)])


@WHOLE
@given(settled=SETTLED)
def test_losses_coverage_and_width(settled: list[Row], whole: bool) -> None:  # noqa: FBT001
    """All numbers follow from the definitions; infinite terms are counted, not added."""
    losses = [
        mean([pinball(a, v, one.label) for a, v in zip(LEVELS, one.quantiles, strict=True)])
        if all(map(math.isfinite, one.quantiles))
        else math.inf
        for one in settled
    ]
    points = [
        mean([pinball(a, one.score, one.label) for a in LEVELS]) if math.isfinite(loss) else loss
        for one, loss in zip(settled, losses, strict=True)
    ]
    crps = of_finite("crps", [one.crps for one in settled]) if whole else {}
    distances = [
        one.crps if whole and math.isinf(one.crps) else abs(one.score - one.label)
        for one in settled
    ]
    (wide, width), (narrow, less) = central(settled, 0, 4), central(settled, 1, 3)
    monitor = watched(settled, whole=whole)
    assert monitor.views() == {
        "raw": near(of_finite("crps", distances) | of_finite("pinball", points)),
        "calibrated": near(
            crps
            | of_finite("pinball", losses)
            | {"coverage_80": wide, "width_80": width, "coverage_50": narrow, "width_50": less}
        ),
    }
    assert monitor.mean_width == near(width)
    assert monitor.intervals == [
        near(CentralInterval(0.8, wide, width)),
        near(CentralInterval(0.5, narrow, less)),
    ]
    assert monitor.count == len(settled)


def shares(low: float, high: float) -> list[Fraction]:
    """Spread one PIT value evenly from `low` to `high`; one of a point is in the bin it begins."""
    a, b = Fraction(low), Fraction(high)
    edges = [Fraction(np.arange(BINS + 1)[k] / BINS) for k in range(BINS + 1)]
    if a == b:
        last = [k for k in range(BINS) if edges[k] <= a][-1]
        return [Fraction(k == last) for k in range(BINS)]
    return [
        max(Fraction(0), min(b, end) - max(a, start)) / (b - a) for start, end in pairwise(edges)
    ]


@given(settled=SETTLED)
def test_pit_histogram(settled: list[Row]) -> None:
    """Each value is spread evenly between its ends, so the bins add up to the labels."""
    found = watched(settled).pit_histogram
    assert found is not None
    each = [shares(*one.pit) for one in settled]
    assert found.tolist() == pytest.approx([float(sum(bins)) for bins in zip(*each, strict=True)])
    assert found.sum() == pytest.approx(len(settled))


def test_pit_histogram_is_a_copy() -> None:
    """The histogram is a copy."""
    monitor = watched([Row(0.0, [0.0] * 5, 0.0, 0.0, [0.5, 0.5])])
    found = monitor.pit_histogram
    assert found is not None
    found[:] = 7.0
    assert monitor.pit_histogram is not None
    assert monitor.pit_histogram.tolist() == [0.0] * 10 + [1.0] + [0.0] * 9


def test_quantiles_have_no_pit_histogram() -> None:
    """Without distributions there are no PIT values."""
    assert RegressionMonitor(LEVELS).pit_histogram is None


@WHOLE
@given(settled=SETTLED, cuts=st.tuples(st.integers(0, 20), st.integers(0, 20)))
def test_batches_make_no_difference(
    settled: list[Row],
    cuts: tuple[int, int],
    whole: bool,  # noqa: FBT001
) -> None:
    """However predictions are batched, the sums are equal to the last bit."""
    assert watched(settled, cuts, whole=whole).state() == watched(settled, whole=whole).state()


@WHOLE
@given(settled=SETTLED)
def test_restored(settled: list[Row], whole: bool) -> None:  # noqa: FBT001
    """A restored monitor goes on as the saved one would have, also by way of bytes."""
    monitor = watched(settled, whole=whole)
    wire = msgspec.msgpack.decode(msgspec.msgpack.encode(monitor.state()))
    other = RegressionMonitor.restore(wire)
    row = [0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 0.25, 0.3, 0.7]
    for one in (monitor, other):
        one.update(regression(LEVELS, np.array([row]), np.array([1.0]), whole=whole))
    assert other.state() == monitor.state()


@WHOLE
@given(parts=st.lists(SETTLED, min_size=1, max_size=3))
def test_total(parts: list[list[Row]], whole: bool) -> None:  # noqa: FBT001
    """Monitors added up are the monitor of all predictions together."""
    total = RegressionMonitor.total([watched(part, whole=whole) for part in parts])
    together = watched([one for part in parts for one in part], whole=whole)
    assert total.views() == {name: near(view) for name, view in together.views().items()}
    assert total.intervals == [*map(near, together.intervals)]
    assert total.count == together.count
    if whole:
        assert total.pit_histogram is not None
        assert total.pit_histogram == pytest.approx(together.pit_histogram)


@pytest.mark.parametrize(
    ("levels", "names"),
    [
        (QUANTILES, ["95", "90", "80", "50"]),
        ((0.5,), []),
        ((0.1, 0.8), []),
        ((0.1, 0.3, 0.7), ["40"]),
        ((0.0125, 0.9875), ["97.5"]),
        ((1e-7, 2e-7, 1 - 2e-7, 1 - 1e-7), ["99.99998", "99.99996"]),
    ],
)
def test_central_intervals(levels: tuple[float, ...], names: list[str]) -> None:
    """Levels as far from 0 as from 1 bound an interval, named by the per cent it should cover."""
    found = list(RegressionMonitor(levels).views()["calibrated"])[2:]
    assert found == [f"{what}_{name}" for name in names for what in ("coverage", "width")]


def test_without_intervals() -> None:
    """Without a pair of levels that bounds an interval, there is a loss and no width."""
    monitor = RegressionMonitor([0.5])
    monitor.update(regression([0.5], np.array([[0.0, 1.0, 1.0, 1.0]]), np.array([3.0])))
    assert monitor.views()["calibrated"] == {"pinball": 1.0, "pinball_infinite": 0}
    assert monitor.intervals == []
    assert math.isnan(monitor.mean_width)


def test_a_loss_too_large_for_a_double_is_infinite() -> None:
    """A distance that exceeds the largest double is an infinite loss."""
    monitor = RegressionMonitor([0.25, 0.75])
    rows = np.array([[1e308, -1e308, 1e308], [0.0, -1.0, 1.0]])
    monitor.update(regression([0.25, 0.75], rows, np.array([-1.7e308, 2.0])))
    assert monitor.views() == {
        "raw": {"crps": 2.0, "crps_infinite": 1, "pinball": 1.0, "pinball_infinite": 1},
        "calibrated": {
            "pinball": 0.75,
            "pinball_infinite": 1,
            "coverage_50": 0.0,
            "width_50": 2.0,
        },
    }


@WHOLE
def test_nothing_yet(whole: bool) -> None:  # noqa: FBT001
    """Before the first label no mean is a number, and nothing is infinite."""
    monitor = RegressionMonitor(LEVELS, distributions=whole)
    for view in monitor.views().values():
        assert not any(value for name, value in view.items() if name.endswith("_infinite"))
        means = [value for name, value in view.items() if not name.endswith("_infinite")]
        assert all(map(math.isnan, means))
    assert math.isnan(monitor.mean_width)
