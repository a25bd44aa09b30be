"""Scores over time, `abers.monitoring.stretches`, against lists that are kept whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.monitoring import BinaryMonitor, Stretches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


class Kept:
    """Remember the labels that came."""

    def __init__(self) -> None:
        """Begin with none."""
        self.labels: list[float] = []

    def update(self, rows: Floats, labels: Floats) -> None:
        """Take a batch."""
        assert rows[:, 0].tolist() == labels.tolist()
        self.labels += labels.tolist()

    @classmethod
    def total(cls, many: Sequence[Self]) -> Self:
        """Put them behind each other."""
        whole = cls()
        whole.labels = [label for one in many for label in one.labels]
        return whole


def filled(batches: list[int], most: int = 4) -> Stretches[Kept]:
    """Take consecutive numbers in batches."""
    stretches = Stretches(Kept, most)
    for size in batches:
        labels = np.arange(stretches.count, stretches.count + size, dtype=float)
        stretches.update(labels[:, np.newaxis], labels)
    return stretches


@given(
    batches=st.lists(st.integers(0, 60), max_size=12),
    most=st.sampled_from([2, 4, 10]),
    span=st.integers(1, 5),
)
def test_every_prediction_is_in_its_stretch(batches: list[int], most: int, span: int) -> None:
    """A passage is what came just before its end; none is lost and there are not too many."""
    count = sum(batches)
    stretches = filled(batches, most)
    assert stretches.count == count
    passages = [*stretches.passages(span)]
    size, stretches_before = stretches.size, span - 1
    assert [one.end for one in passages] == [*range(size, count, size), *([count] if count else [])]
    assert len(passages) <= most
    assert size == 5 or len(passages) > most // 2  # no coarser than it has to be
    for row, one in enumerate(passages):
        first = max(row - stretches_before, 0) * size
        assert one.monitor.labels == [*map(float, range(first, one.end))]
        assert one.labels == len(one.monitor.labels)


@given(batches=st.lists(st.integers(0, 60), min_size=1, max_size=12))
def test_batches_make_no_difference(batches: list[int]) -> None:
    """However predictions are batched, the stretches are the same."""
    one = [passage.monitor.labels for passage in filled(batches).passages()]
    other = [passage.monitor.labels for passage in filled([sum(batches)]).passages()]
    assert one == other


@pytest.mark.parametrize("count", [3, 1_000, 2_561, 100_000])
def test_all_stretches_together_are_the_stream(count: int) -> None:
    """Passages over everything that came end with the scores of the whole stream."""
    rng = np.random.default_rng(count)
    rows = np.sort(rng.random((count, 3)), axis=1)
    labels = (rng.random(count) < rows[:, 1]).astype(float)
    whole = BinaryMonitor(raw=True)
    whole.update(rows, labels)
    stretches = Stretches(lambda: BinaryMonitor(raw=True))
    stretches.update(rows, labels)
    *_, last = stretches.passages(span=256)
    assert last.labels == last.end == count
    for name, means in whole.views().items():
        assert last.monitor.views()[name] == pytest.approx(means)
