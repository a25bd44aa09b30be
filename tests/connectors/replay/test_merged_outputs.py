"""Merged outputs: whatever is processed in parts has the outputs of one processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.cases import rowless
from tests.engine.stream.test_model_streams import KINDS, settings, streams

from abers.stream import Events, Outputs, Processor
from abers_connectors.replay.workers import ShardOutputs, merged_outputs


def listed(outputs: Outputs) -> list[Any]:
    """Return all that is comparable in outputs."""
    predicted, settled = outputs.predicted.tolist(), outputs.settled.tolist()
    return [
        [*zip(predicted, map(rowless, outputs.predictions), strict=True)],
        [*zip(settled, map(rowless, outputs.outcomes or ()), strict=outputs.outcomes is not None)],
        [(row, one.row, rowless(one)) for row, one in outputs.dead_letters],
        [row for row, _ in outputs.alarms],
        [alarm for _, alarm in outputs.alarms],
    ]


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_parts_have_the_outputs_of_the_whole(data: st.DataObject, kind: str) -> None:
    """Each batch, processed in parts by model and merged, has the outputs of one processor."""
    wanted, of = data.draw(settings(kind)), data.draw(streams(kind))
    names = [model for model, own in of.items() for _ in own]
    order = data.draw(st.permutations(names))
    queues = {model: iter(own) for model, own in of.items()}
    events = [next(queues[model]) for model in order]
    shards = np.array([data.draw(st.sampled_from((0, 1, 2))) for _ in of], np.int64)
    shard_of = dict(zip(of, shards.tolist(), strict=True))
    outcomes = data.draw(st.booleans())
    whole = Processor(wanted, outcomes=outcomes)
    several = [Processor(wanted, outcomes=outcomes) for _ in range(3)]
    size = data.draw(st.integers(1, 40))
    for first in range(0, len(events), size):
        batch = Events.of(events[first : first + size])
        here = np.array([shard_of[model] for model in order[first : first + size]])
        parts = []
        for shard in sorted({*here.tolist()}):
            rows = np.flatnonzero(here == shard)
            parts.append(ShardOutputs(rows, several[shard].process_batch(batch.take(rows))))
        assert listed(merged_outputs(parts)) == listed(whole.process_batch(batch))
