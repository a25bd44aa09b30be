"""What calibration saved or cost."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers import LabelError, ParameterError, ScoreError
from abers.monitoring import ConfidenceSequence, LossDifference

Rows = list[tuple[float, float, int]]
ROWS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(0, 1)), max_size=30)


def added(rows: Rows, start: int = 0) -> LossDifference:
    """Add rows of a raw score, a served probability and a label."""
    losses = LossDifference()
    update(losses, rows, start)
    return losses


def update(losses: LossDifference, rows: Rows, start: int = 0) -> None:
    """Add more rows."""
    raw, served, labels = np.array(rows, float).reshape(-1, 3).T
    losses.update(raw, served, labels, np.arange(start, start + len(rows)))


def test_the_mean_and_its_interval() -> None:
    """The mean of differences has the margin of the sequence for a range of 6 nats."""
    rows = [(0.9, 0.5, 0), (0.9, 0.5, 1), (0.2, 0.999_9, 0)] * 200
    clipped = [math.log(5.0), math.log(5.0 / 9.0), -3.0] * 200
    losses = added(rows)
    margin = ConfidenceSequence(120.0, 0.025, 6.0).boundary(sum(x * x for x in clipped), 0.025)
    expected = [(sum(clipped) + more) / 600 for more in (0.0, -margin, margin)]
    assert losses.difference == pytest.approx(expected)
    assert (losses.count, losses.clipped) == (600, 200)


def test_the_end_is_the_latest_time() -> None:
    """Labels whose event times go back give a period that does not end before it begins."""
    losses = LossDifference()
    for times in ([-5, -9], [-7, -8]):
        losses.update([0.5, 0.5], [0.5, 0.5], [0, 1], np.array(times))
    assert (losses.start, losses.until) == (-5, -5)


SAVED = [(0.9, 0.5, 0), (0.9, 0.5, 1)] * 500
COST = [(q, p, y) for p, q, y in SAVED]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "No difference by calibration found: no label is counted yet."),
        (
            SAVED,
            (
                "Calibration saved 0.51 nats a label (at least 0.35), over 1,000 labels from "
                "event time 0 until event time 999."
            ),
        ),
        (
            COST,
            (
                "Calibration cost 0.51 nats a label (at least 0.35), over 1,000 labels from event "
                "time 0 until event time 999. To serve better probabilities, let it forget old "
                "labels (calibrator.window), serve protected probabilities (calibrator.probability "
                '= "protected"), or only monitor (calibrator.kind = "none").'
            ),
        ),
        (
            SAVED[:100],
            (
                "No difference by calibration found: from 0.09 lost to 1.11 saved nats a label are "
                "possible, over 100 labels from event time 0 until event time 99."
            ),
        ),
    ],
)
def test_sentences(rows: Rows, sentence: str) -> None:
    """A sentence says what was saved or cost at least, and what to do."""
    assert added(rows).sentence == sentence


@given(rows=ROWS, more=ROWS)
def test_restored(rows: Rows, more: Rows) -> None:
    """A restored difference goes on as the saved one would have, and batches do not matter."""
    restored = LossDifference()
    restored.load(added(rows).state())
    update(restored, more, len(rows))
    assert restored.state() == added(rows + more).state()


@given(rows=ROWS, more=ROWS)
def test_total(rows: Rows, more: Rows) -> None:
    """The total of two parts has the sums and the times of both."""
    total = LossDifference.total([added(rows), added(more, len(rows))])
    whole = added(rows + more)
    assert total.state()[:4] == pytest.approx(whole.state()[:4], abs=1e-9)
    assert total.state()[-2:] == whole.state()[-2:]


@pytest.mark.parametrize(
    ("row", "error"),
    [((1.5, 0.5, 0), ScoreError), ((0.5, -0.1, 0), ScoreError), ((0.5, 0.5, 2), LabelError)],
)
def test_bad_rows(row: tuple[float, float, int], error: type[Exception]) -> None:
    """A bad row is refused, and nothing is added."""
    losses = added(SAVED)
    state = losses.state()
    with pytest.raises(error):
        update(losses, [SAVED[0], row])
    assert losses.state() == state


def test_bad_parameters() -> None:
    """Levels that are no probabilities, and columns of other lengths, are refused."""
    with pytest.raises(ParameterError, match="alpha"):
        LossDifference(1.0)
    with pytest.raises(ParameterError, match="event times"):
        LossDifference().update([0.5], [0.5], [1], np.arange(2))


@pytest.mark.parametrize(
    "state",
    [
        (1, 4.0, 9.0, 0, 0, 0),
        (1, 1.0, 10.0, 0, 0, 0),
        (1, math.nan, 1.0, 0, 0, 0),
        (1, 1.0, 1.0, 2, 0, 0),
        (-1, 0.0, 0.0, 0, 0, 0),
        (1, 1.0, 1.0, 0, 0, 1 << 63),
    ],
)
def test_what_is_no_state(state: tuple[object, ...]) -> None:
    """A state that no difference has is refused."""
    with pytest.raises(ValueError, match=r"labels|differences|times"):
        LossDifference().load(state)


@pytest.mark.simulation
def test_wrong_claims() -> None:
    """Between equally good forecasts a difference is claimed, at any time, in few of 1,000 runs."""
    wrong = 0
    for seed in range(1_000):
        rng = np.random.default_rng([20, seed])
        p = rng.beta(2, 5, 1_000)
        sign = np.where(rng.random(1_000) < 0.5, 1.0, -1.0)
        odds = p / (1.0 - p) * np.exp(np.array([[0.8], [-0.8]]) * sign)
        raw, served = odds / (1.0 + odds)
        labels = (rng.random(1_000) < p).astype(float)
        losses, claimed = LossDifference(), False
        for start in range(0, 1_000, 100):
            part = slice(start, start + 100)
            losses.update(raw[part], served[part], labels[part], np.arange(100))
            _, lower, upper = losses.difference
            claimed |= lower > 0.0 or upper < 0.0
        wrong += claimed
    assert wrong <= 1_000 * 0.05
