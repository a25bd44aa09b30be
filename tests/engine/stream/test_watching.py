"""Whoever watches a processor sees what its monitors see, and changes nothing."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.cases import EVENTS, SETTINGS, plain

from abers.stream import Label, Observation, Processor, Settings, task_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.stream import Event

    Floats = NDArray[np.float64]


@given(SETTINGS, EVENTS, st.lists(st.integers(0, 40), max_size=4))
def test_an_onlooker_is_told_what_is_judged(
    settings: Settings, events: list[Event], cuts: list[int]
) -> None:
    """Every judged prediction is told once; a monitor fed with them has judged as many."""
    told: list[tuple[Floats, Floats]] = []
    watched, alone = Processor(settings, outcomes=False), Processor(settings, outcomes=False)
    watched.watch(lambda rows, labels: told.append((rows, labels)))
    for start, end in pairwise([0, *sorted(cuts), len(events)]):
        part = events[start:end]
        seen, unseen = watched.process_many(part), alone.process_many(part)
        assert [*map(plain, seen)] == [*map(plain, unseen)]
    assert watched.state_bytes() == alone.state_bytes()
    rows = [row for batch, _ in told for row in batch.tolist()]
    labels = [label for _, batch in told for label in batch.tolist()]
    assert len(rows) == len(labels) == watched.counters["labels"]
    if (monitor := watched.monitor) is not None and labels:
        mine = task_of(settings).monitor()
        mine.update(np.array(rows), np.array(labels))
        for name, means in monitor.views().items():
            np.testing.assert_allclose([*mine.views()[name].values()], [*means.values()])


def test_where_nothing_is_judged_nothing_is_told() -> None:
    """Without monitors an onlooker is told nothing."""
    told: list[Floats] = []
    processor = Processor(Settings(monitors=False))
    processor.watch(lambda rows, _: told.append(rows))
    processor.process_many([Observation("a", 1, score=0.5), Label("a", 2, value=1)])
    assert (told, processor.counters["labels"]) == ([], 1)
