"""The settled batches of a processor are what its monitors scored."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.cases import EVENTS, SETTINGS

from abers.stream import Events, Processor, Settings, make_task

if TYPE_CHECKING:
    from abers.stream import Event


@given(SETTINGS, EVENTS, st.lists(st.integers(0, 40), max_size=4))
def test_what_is_settled_is_put_out(
    settings: Settings, events: list[Event], cuts: list[int]
) -> None:
    """Every settled prediction is put out once; a monitor fed with them has the same means."""
    processor = Processor(settings)
    parts = [events[start:end] for start, end in pairwise([0, *sorted(cuts), len(events)])]
    batches = [processor.process_batch(Events.of(part)).settled_batch for part in parts if part]
    settled = [one.scored for one in batches if one is not None]
    counters = processor.counters
    assert sum(map(len, settled)) == counters["labels"] + counters["assumed"]
    if (monitor := processor.monitor) is not None and any(map(len, settled)):
        mine = make_task(settings).monitor()
        for one in settled:
            mine.update(one)
        views = monitor.views()
        for (
            name,
            means,
        ) in mine.views().items():  # those of a mixture are not of settled predictions
            np.testing.assert_allclose(
                [*means.values()], [views[name][measure] for measure in means]
            )
        assert views.keys() == mine.views().keys()
