"""What is gathered of a stream, `abers_connectors.report.gathering`, against the whole of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from abers.stream import Judged, Settings
from abers_connectors.report.gathering import Gathered

if TYPE_CHECKING:
    from numpy.typing import NDArray


def numbered(first: int, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rows of score, p0 and p1 that tell their number, and labels."""
    numbers = np.arange(first, first + size, dtype=np.float64)
    return np.column_stack([numbers, 0.0 * numbers, 0.0 * numbers + 1.0]), numbers % 2.0


@given(st.lists(st.integers(0, 450), max_size=8))
def test_the_last_outcomes_are_kept(batches: list[int]) -> None:
    """However they came, the last 200 predictions are there in their order, beside their labels."""
    gathered, count = Gathered(Settings()), 0
    for size in batches:
        none = np.zeros(size, np.int64)
        gathered.take(Judged(none, none, *numbered(count, size)), [], [])
        count += size
    rows, labels = numbered(max(count - 200, 0), min(count, 200))
    assert gathered.stretches.count == count
    assert gathered.labels.tolist() == labels.tolist()
    assert gathered.rows.tolist() == rows.tolist()
    assert len([*gathered.stretches.passages()]) <= 256
