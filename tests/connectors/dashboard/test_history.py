"""The history of a model, `abers_connectors.dashboard.history`, against the whole stream."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from abers.monitoring import ScoredRows
from abers.monitoring.regression import central_pairs
from abers.stream import Settings, SettledBatch
from abers_connectors.dashboard.history import ModelHistory

SETTINGS = Settings(task="regression")


def numbered(first: int, size: int) -> ScoredRows:
    """Return predictions that contain their number, and labels."""
    numbers = np.arange(first, first + size, dtype=np.float64)
    quantiles = np.column_stack([numbers + at for at in range(len(SETTINGS.quantiles))])
    covered = {share: numbers > 0.0 for _, _, share in central_pairs(SETTINGS.quantiles)}
    return ScoredRows(numbers % 2.0, scores=numbers, quantiles=quantiles, covered=covered)


@given(st.lists(st.integers(0, 450), max_size=8))
def test_the_last_outcomes_are_kept(batches: list[int]) -> None:
    """In any batches, the last 200 predictions are kept in their order, with their labels."""
    history, count = ModelHistory(SETTINGS), 0
    for size in batches:
        none = np.zeros(size, np.int64)
        history.take(SettledBatch(none, none, numbered(count, size)), [], [])
        count += size
    last = numbered(max(count - 200, 0), min(count, 200))
    assert last.scores is not None
    assert last.quantiles is not None
    assert history.windowed.count == count
    assert history.labels.tolist() == last.labels.tolist()
    assert history.scores.tolist() == last.scores.tolist()
    assert history.quantiles.tolist() == last.quantiles.tolist()
    assert len([*history.windowed.windows()]) <= 256
