"""Groups of requests, `abers.stream.durable.processor`."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.cases import DRAWS, events, plain

from abers.stream import Events, Processor
from abers.stream.durable.processor import shares, together

if TYPE_CHECKING:
    from abers.stream import Event

MADE = st.lists(DRAWS, max_size=30).map(events)


@given(made=MADE, cuts=st.lists(st.integers(0, 30), max_size=4), kinds=st.lists(st.booleans()))
def test_each_request_gets_its_outputs(
    made: list[Event], cuts: list[int], kinds: list[bool]
) -> None:
    """Each request has the outputs that it would have alone, in any mix of lists and columns."""
    bounds = sorted({0, len(made), *(min(one, len(made)) for one in cuts)})
    parts = [made[start:end] for start, end in pairwise(bounds)]
    given_parts = [
        Events.of(part) if columns else part
        for part, columns in zip(parts, [*kinds, *[False] * len(parts)], strict=False)
    ]
    if not given_parts:
        return
    alone, live = Processor(), Processor()
    outputs, _ = live.process_logged(together(given_parts))
    for part, share in zip(parts, shares(outputs, [*map(len, parts)]), strict=True):
        expected = alone.process_batch(Events.of(part))
        assert [*map(plain, share.in_order())] == [*map(plain, expected.in_order())]
        assert share.predicted.tolist() == expected.predicted.tolist()
        assert share.settled.tolist() == expected.settled.tolist()
        assert share.alarms == ()
        assert share.settled_batch is None
    assert live.state_bytes() == alone.state_bytes()
