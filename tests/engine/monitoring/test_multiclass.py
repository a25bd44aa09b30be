"""The monitor of a multi-class calibrator, against sums from the definitions."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.monitoring.scored import classes

from abers.monitoring import MultiClassMonitor, MultiClassScores, Reliability

K = 3
PARTS = st.lists(st.integers(0, 9), min_size=K, max_size=K).filter(any)
SHARES = PARTS.map(lambda parts: [part / sum(parts) for part in parts])
ENDS = st.lists(st.floats(0, 1), min_size=K, max_size=K)
Settled = list[tuple[list[float], list[float], list[float], list[float], int]]
SETTLED = st.lists(
    st.tuples(SHARES, SHARES, ENDS, ENDS, st.integers(0, K - 1)), min_size=1, max_size=20
)


def watched(settled: Settled, *, raw: bool = True, cuts: tuple[int, ...] = ()) -> MultiClassMonitor:
    """Score predictions, in batches that end at the cuts."""
    monitor = MultiClassMonitor(raw=raw)
    ends = [0, *sorted(min(cut, len(settled)) for cut in cuts), len(settled)]
    for start, end in pairwise(ends):
        part = settled[start:end]
        rows = np.array([sum(parts, []) for *parts, _ in part]).reshape(len(part), 4 * K)  # noqa: RUF017
        monitor.update(classes(rows, np.array([label for *_, label in part], float), raw=raw))
    return monitor


def means(forecasts: list[list[float]], labels: list[int]) -> dict[str, float]:
    """Score forecasts by the definitions."""
    pairs = list(zip(forecasts, labels, strict=True))
    losses = [-math.log(f[label]) if f[label] else math.inf for f, label in pairs]
    squares = [(f[c] - (c == label)) ** 2 for f, label in pairs for c in range(K)]
    right = [f.index(max(f)) == label for f, label in pairs]
    return {
        "log_loss": math.fsum(losses) / len(pairs),
        "log_loss_infinite": losses.count(math.inf),
        "brier": math.fsum(squares) / len(pairs),
        "accuracy": sum(right) / len(pairs),
    }


@given(settled=SETTLED)
def test_both_views_and_the_width(settled: Settled) -> None:
    """Raw and calibrated forecasts have separate scores; the width is that of the label."""
    raw, p, low, high, labels = (list(column) for column in zip(*settled, strict=True))
    monitor = watched(settled)
    assert monitor.views() == {
        "raw": pytest.approx(means(raw, labels), abs=1e-12),
        "calibrated": pytest.approx(means(p, labels), abs=1e-12),
    }
    widths = [above[i] - below[i] for below, above, i in zip(low, high, labels, strict=True)]
    assert monitor.mean_width == pytest.approx(math.fsum(widths) / len(widths), abs=1e-12)


@given(settled=SETTLED, cuts=st.tuples(st.integers(0, 20), st.integers(0, 20)))
def test_batches_make_no_difference(settled: Settled, cuts: tuple[int, int]) -> None:
    """However predictions are batched, the sums are equal to the last bit."""
    assert watched(settled, cuts=cuts).state() == watched(settled).state()


@given(settled=SETTLED, raw=st.booleans())
def test_restored(settled: Settled, raw: bool) -> None:  # noqa: FBT001
    """A restored monitor goes on as the saved one would have."""
    monitor = watched(settled, raw=raw)
    other = MultiClassMonitor.restore(monitor.state())
    for one in (monitor, other):
        one.update(classes(np.array([[0.5, 0.25, 0.25] * 4]), np.array([1.0]), raw=raw))
    assert other.state() == monitor.state()
    assert other.views() == monitor.views()


@given(parts=st.lists(SETTLED, min_size=1, max_size=3), raw=st.booleans())
def test_total(parts: list[Settled], raw: bool) -> None:  # noqa: FBT001
    """Monitors added up are the monitor of all predictions together."""
    total = MultiClassMonitor.total([watched(part, raw=raw) for part in parts])
    whole = watched([one for part in parts for one in part], raw=raw)
    assert total.views() == {name: pytest.approx(view) for name, view in whole.views().items()}
    assert total.mean_width == pytest.approx(whole.mean_width, abs=1e-12)


@given(settled=SETTLED)
def test_reliability_is_that_of_the_class_called_most_probable(settled: Settled) -> None:
    """The diagram compares its probability with its frequency, also in a total of parts."""
    expected = Reliability()
    for _, p, _, _, label in settled:
        expected.update_many([max(p)], [p.index(max(p)) == label])
    total = MultiClassMonitor.total([watched(settled[:5]), watched(settled[5:])])
    for monitor in (watched(settled), total):
        assert monitor.calibrated.state()[-1] == expected.state()


def test_a_probability_a_little_above_1() -> None:
    """A probability above 1 by rounding counts as 1 in the diagram."""
    scores = MultiClassScores()
    scores.update_many(np.array([[1.004, 0.0]]), np.array([0]))
    assert scores.reliability is not None
    assert scores.reliability.diagram().upper.tolist() == [1.0]
    assert MultiClassScores.restore(scores.state()).state() == scores.state()


def test_restored_from_a_state_without_diagrams() -> None:
    """A state saved without a diagram is restored with an empty diagram."""
    scores = MultiClassScores()
    scores.update_many(np.array([[0.5, 0.5]]), np.array([0]))
    restored = MultiClassScores.restore(scores.state()[:5])
    assert restored.means() == scores.means()
    assert restored.state()[-1] == Reliability().state()


def test_ties_go_to_the_first_class() -> None:
    """Of classes of the same probability the first is the forecast."""
    scores = MultiClassScores()
    scores.update_many(np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]), np.array([0, 1]))
    assert scores.accuracy == 0.5


def test_an_infinite_loss_is_counted() -> None:
    """A forecast of 0 for the label has an infinite loss, which later labels do not hide."""
    scores = MultiClassScores()
    scores.update_many(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1, 0]))
    assert (scores.infinite, scores.log_loss, scores.brier) == (1, math.inf, 1.25)
    total = MultiClassScores.total([MultiClassScores(), scores])
    assert total.state() == scores.state()


def test_scores_that_are_no_probabilities() -> None:
    """Without raw forecasts any score is accepted, and none is scored."""
    row = [17.0, -3.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    monitor = MultiClassMonitor(raw=False)
    monitor.update(classes(np.array([row]), np.array([0.0]), raw=False))
    assert monitor.views() == {"calibrated": means([[1.0, 0.0, 0.0]], [0])}


def test_nothing_yet() -> None:
    """Before the first label no mean is a number, and nothing is infinite."""
    monitor = MultiClassMonitor(raw=True)
    assert math.isnan(monitor.mean_width)
    for view in monitor.views().values():
        assert view.pop("log_loss_infinite") == 0
        assert all(map(math.isnan, view.values()))
