"""What a processor says that it judged is what its monitors saw."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.cases import EVENTS, SETTINGS

from abers.stream import Events, Processor, Settings, task_of

if TYPE_CHECKING:
    from abers.stream import Event


@given(SETTINGS, EVENTS, st.lists(st.integers(0, 40), max_size=4))
def test_what_is_judged_is_told(settings: Settings, events: list[Event], cuts: list[int]) -> None:
    """Every judged prediction is told once; a monitor fed with them has judged as many."""
    processor = Processor(settings)
    parts = [events[start:end] for start, end in pairwise([0, *sorted(cuts), len(events)])]
    told = [processor.take(Events.of(part)).judged for part in parts if part]
    rows = [row for one in told if one is not None for row in one.rows.tolist()]
    labels = [label for one in told if one is not None for label in one.values.tolist()]
    assert len(rows) == len(labels) == processor.counters["labels"]
    if (monitor := processor.monitor) is not None and labels:
        mine = task_of(settings).monitor()
        mine.update(np.array(rows), np.array(labels))
        for name, means in monitor.views().items():
            np.testing.assert_allclose([*mine.views()[name].values()], [*means.values()])
