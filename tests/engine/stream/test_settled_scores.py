"""Settled predictions of many keys, `abers.stream.calibration_step`, against keys by themselves."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.monitoring.label_monitor import Labels

from abers.backends import core
from abers.monitoring import BinaryForecasts, ProtectionMonitor, ScoredRows, task_monitor
from abers.stream import Settings
from abers.stream.alarms import ModelHistory
from abers.stream.calibration_step import add_settled
from abers.stream.tasks.registry import make_task

if TYPE_CHECKING:
    from abers.arrays import Integers

KEYS = 3
Watched = tuple[list[Any], list[ModelHistory]]


def watched(*, raw: bool, protected: bool) -> Watched:
    """Return empty monitors and histories of all keys."""
    task = make_task(Settings(scores="probability" if raw else "any"))
    made = [task_monitor("binary", raw=raw, protected=protected) for _ in range(KEYS)]
    return made, [ModelHistory(task) for _ in range(KEYS)]


def rows(n: int, rng: np.random.Generator, *, raw: bool, protected: bool) -> ScoredRows:
    """Draw settled predictions."""
    labels = rng.integers(0, 2, n).astype(float)
    views = {"calibrated": BinaryForecasts(rng.random(n), labels)}
    if raw:
        views = {"raw": BinaryForecasts(rng.integers(0, 9, n) / 8, labels), **views}
    outside = rng.random(n) < 0.3 if protected else None
    return ScoredRows(labels, views, rng.random(n), outside)


def one_by_one(
    watching: Watched,
    keys: Integers,
    scored: ScoredRows,
    times: Integers,
) -> list[int]:
    """Add each row by itself to the monitors and windows of its key."""
    monitors, histories = watching
    ended = set()
    for row, key in enumerate(keys.tolist()):
        one = slice(row, row + 1)
        if histories[key].windowed.update(monitors[key], scored.take(one), times[one]):
            ended.add(key)
    return sorted(ended)


def state(watching: Watched) -> list[Any]:
    """Return the states of all keys."""
    monitors, histories = watching
    each = [one.state() for monitor in monitors for one in monitor.each().values()]
    return [*each, *(one.windowed.state() for one in histories)]


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 30, 130, 2_500]), max_size=6),
    seed=st.integers(0, 2**32 - 1),
    raw=st.booleans(),
    protected=st.booleans(),
)
def test_keys_together_are_as_by_themselves(
    *, sizes: list[int], seed: int, raw: bool, protected: bool
) -> None:
    """Scores, windows and the ends of these are those of single rows, however they are batched."""
    rng = np.random.default_rng(seed)
    together, alone = (watched(raw=raw, protected=protected) for _ in range(2))
    for n in sizes:
        scored = rows(n, rng, raw=raw, protected=protected)
        keys, times = np.minimum(rng.integers(0, 5, n), KEYS - 1), rng.integers(-9, 10**6, n)
        assert add_settled(*together, keys, scored, times) == one_by_one(alone, keys, scored, times)
        assert state(together) == state((deepcopy(together[0]), together[1])) == state(alone)


def test_other_monitors_take_the_rows_of_their_key() -> None:
    """With a monitor in Python, too, all have the same labels."""
    monitors, histories = watched(raw=True, protected=True)
    for one in monitors:
        one.others.append(Labels())
    rng = np.random.default_rng(1)
    scored = rows(100, rng, raw=True, protected=True)
    keys = np.arange(100) % KEYS
    assert add_settled(monitors, histories, keys, scored, np.arange(100)) == []
    for key, one in enumerate(monitors):
        protection, labels = one.others
        assert isinstance(protection, ProtectionMonitor)
        assert (one.count, protection.labels) == (sum(keys == key),) * 2
        assert labels.state()[0] == sum(keys == key)


def test_rows_that_cannot_be_scored() -> None:
    """The core refuses rows without a probability or a label, and rows that are not there."""
    scores, window, one = core.BinaryScores(), core.WindowCounter(64), np.ones(1)
    watched = [core.WatchedModel(scores, None, None, window)]
    at, offsets = np.zeros(1, np.int64), np.array([0, 1])
    for label, p, row, match in (
        (2.0, 0.5, 0, "label"),
        (1.0, 1.5, 0, "label"),
        (1.0, 0.5, 1, "differ"),
    ):
        columns = (label * one, p * one, None, one, None, at)
        with pytest.raises(ValueError, match=match):
            core.score_rows(watched, at + row, offsets, *columns)
    assert not scores.counts.any()
    with pytest.raises(ValueError, match="label"):
        window.size = 0
