"""Streams on which answers about now are read, and what a reading is compared with."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks import answer_power, answer_streams
from benchmarks.answer_streams import TOLERANCE, WARM, Setting, TrueGaps, odds_times

from abers.monitoring.answers.rows import ViewGroups


def test_true_gaps_are_those_of_the_rows_of_a_group() -> None:
    """Sums that grow with each reading equal those of all rows of a window."""
    rng = np.random.default_rng(1)
    truth = rng.beta(2.0, 3.0, 1_000)
    p = odds_times(truth, TOLERANCE)
    gaps = TrueGaps(100, ViewGroups(0.4, [0, 3, 7], [], []))
    for until in (101, 500, 900):
        gaps.add(p, truth, until)
        mine, gap = p[100:until], (truth - p)[100:until]
        groups = {
            "all": mine >= 0.0,
            "lower": mine < 0.4,
            "upper": mine >= 0.4,
            "tenth-0": mine < 0.3,
            "tenth-3": (mine >= 0.3) & (mine < 0.7),
            "tenth-7": mine >= 0.7,
        }
        for key, inside in groups.items():
            assert gaps.of(key) == pytest.approx(gap[inside].sum())


@pytest.mark.parametrize("delay", answer_streams.DELAYS)
def test_labels_are_drawn_from_forecasts_and_come_late(
    delay: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forecasts are right on average, and each label comes when its setting says."""
    rate = answer_streams.RATES[0.5]._replace(labels=4_000, chunk=20)
    monkeypatch.setitem(answer_streams.RATES, 0.5, rate)
    p, labels, arrivals = answer_streams.drawn(Setting(0.5, delay), [1])
    assert p.shape == labels.shape == arrivals.shape
    assert p.shape[0] == 20
    assert p.shape[1] >= 4_000 + WARM
    off = (labels - p).sum() / math.sqrt((p * (1.0 - p)).sum())
    assert abs(off) < 4.0
    late = arrivals - np.arange(p.shape[1]) - 1
    expected = {
        "at once": late == 0,
        "up to 2,000 late": (late >= 0) & (late <= 2_000),
        "1,000 late if 1": late == 1_000 * labels,
    }
    assert expected[delay].all()
    assert bool(np.any(late > 0)) == (delay != "at once")


@pytest.mark.simulation
def test_few_windows_are_false(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right forecasts have few windows with a range that misses, and none is called wrong."""
    rate = answer_streams.RATES[0.5]._replace(chunk=10)
    monkeypatch.setitem(answer_streams.RATES, 0.5, rate)
    streams, windows, missed, wrong, off, right, savings = answer_streams.run(
        (Setting(0.5, "at once"), 0)
    )
    assert streams == 10
    assert windows == pytest.approx(4 * streams, abs=streams)
    assert missed <= 4
    assert off <= 4
    assert (wrong, right) == (0, 0)
    assert savings <= 2


@pytest.mark.simulation
def test_right_forecasts_and_large_faults() -> None:
    """Full windows mostly say Yes of right forecasts, and No of odds that are half too high."""
    of = answer_power.lengths()
    right = of.index(answer_power.Length(0.5, 1.0, changes=False))
    wrong = of.index(answer_power.Length(0.5, 1.5, changes=False))
    change = of.index(answer_power.Length(0.5, 3.0, changes=True))
    _, yes, no = answer_power.seen((right, 1))
    assert yes > 0.5
    assert no == 0.0
    assert answer_power.seen((wrong, 1)) == (1.0, 0.0, 1.0)
    assert 0.0 < answer_power.seen((change, 1))[0] < 8_000.0
