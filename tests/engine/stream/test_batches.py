"""How events are batched makes no difference to `abers.stream.processor`."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.cases import EVENTS, FORGETTING, SETTINGS, Scorer, plain, rowless, stream
from tests.engine.stream.naive import Naive
from tests.engine.stream.replies import same

from abers.stream import (
    DeadLetter,
    Event,
    Events,
    Observation,
    Output,
    Processor,
    Settings,
)

CUTS = st.lists(st.integers(0, 40), max_size=6)


def batched(processor: Processor, events: list[Event], cuts: list[int]) -> list[Output]:
    """Process events in batches, and check that dead letters name the rows of their batch."""
    outputs: list[Output] = []
    for start, end in pairwise([0, *sorted(cuts), len(events)]):
        batch = events[start:end]
        outputs += (said := processor.process_many(batch))
        for dead_letter in said:
            if isinstance(dead_letter, DeadLetter) and dead_letter.row is not None:
                cause = batch[dead_letter.row]
                assert same(dead_letter.event, cause) or dead_letter.reason == "learner-failed"
    return outputs


@given(SETTINGS, EVENTS, CUTS)
def test_any_split(settings: Settings, events: list[Event], cuts: list[int]) -> None:
    """Outputs and state are the same for one batch, single events and any other batches."""
    whole, split, single = (Processor(settings) for _ in range(3))
    expected = list(map(rowless, whole.process_many(events)))
    assert list(map(rowless, batched(split, events, cuts))) == expected
    assert [rowless(o) for event in events for o in single.process(event)] == expected
    assert whole.state_bytes() == split.state_bytes() == single.state_bytes()
    assert whole.counters == split.counters == single.counters


@given(SETTINGS, EVENTS, CUTS)
def test_any_split_with_a_learner(settings: Settings, events: list[Event], cuts: list[int]) -> None:
    """The same holds with a learner, which learns between the predictions of a batch."""
    whole, split, single = (Processor(settings, learner=Scorer()) for _ in range(3))
    expected = list(map(rowless, whole.process_many(events)))
    assert list(map(rowless, batched(split, events, cuts))) == expected
    assert [rowless(o) for event in events for o in single.process(event)] == expected
    assert whole.state_bytes() == split.state_bytes() == single.state_bytes()


@given(SETTINGS, EVENTS, st.lists(st.integers(-8, 8), min_size=1, max_size=9))
def test_records_that_know_when_they_were_written(
    settings: Settings, events: list[Event], ahead: list[int]
) -> None:
    """Where every record has a time, a batch gives what its events give one by one.

    So it does where they are of a kind of number that is looked at one by one.
    """
    written = [
        msgspec.structs.replace(
            event, recorded=event.time + ahead[i % len(ahead)] if type(event.time) is int else 0
        )
        for i, event in enumerate(events)
    ]
    usual = [event for event in written if type(event.time) is int and abs(event.time) < 2**53]
    for made in (written, usual):
        whole, slow, single = (Processor(settings) for _ in range(3))
        expected = [rowless(o) for event in made for o in single.process(event)]
        assert list(map(rowless, whole.process_many(made))) == expected
        if made:
            columns = Events.of(made)
            assert columns.recorded is not None
            of_objects = replace(columns, recorded=columns.recorded.astype(object))
            assert list(map(rowless, slow.process_batch(of_objects).in_order())) == expected
        assert whole.state_bytes() == slow.state_bytes() == single.state_bytes()


@pytest.mark.parametrize("recorded", [2**63 - 1, -(2**63), 0])
def test_any_time_that_a_record_was_written_at(recorded: int) -> None:
    """However far that is from the event, nothing overflows."""
    time = 2**53 - 1
    processor = Processor(Settings(max_clock_skew=2**53))
    (said,) = processor.process(Observation("a", time, score=0.5, recorded=recorded))
    refused = isinstance(said, DeadLetter) and said.reason == "time-in-future"
    assert refused == (recorded == -(2**63))


def test_nothing_comes_of_an_empty_batch() -> None:
    """A batch without events, such as a reader makes of bad records, changes nothing."""
    processor = Processor()
    taken = processor.process_batch(Events.of([Observation("a", 5, score=0.5)])[:0])
    assert list(taken.predictions) == list(taken.outcomes or ()) == taken.dead_letters == []
    assert processor.state_bytes() == Processor().state_bytes()


@pytest.mark.parametrize("forgetting", FORGETTING[1:], ids=str)
@pytest.mark.large(1_500)
def test_long_streams(forgetting: dict[str, int], size: int) -> None:
    """Batches of any size give the same over a long stream with delayed labels."""
    spans: dict[str, Any] = {
        name: span * (1 if name == "window" else 500) for name, span in forgetting.items()
    }
    settings = Settings(
        **spans,
        label_timeout=2_000,
        max_pending=20,
        max_early=4,
        dedup_max_ids=60,
        allowed_lateness=100,
    )
    events = stream(size, every=50)
    outputs, states = [], []
    for batch in (1, 7, 500, len(events)):
        processor = Processor(settings)
        outputs.append(
            [
                rowless(output)
                for i in range(0, len(events), batch)
                for output in processor.process_many(events[i : i + batch])
            ]
        )
        states.append(processor.state_bytes())
        counters = processor.counters
    assert all(said == outputs[0] for said in outputs)
    assert all(state == states[0] for state in states)
    assert min(counters[n] for n in ("expired", "evicted", "early_labels", "forgotten")) > 0


@pytest.mark.large(3_000)
def test_long_stream_is_the_naive_one(size: int) -> None:
    """A long stream of several models gives what the naive processor gives."""
    settings = Settings(label_timeout=2_000, max_pending=20, max_early=4, dedup_max_ids=200)
    processor, naive = Processor(settings), Naive(settings)
    events = stream(size, every=30)
    said = processor.process_many(events)
    assert list(map(plain, said)) == list(map(plain, naive.process_many(events)))
    assert processor.counters == naive.counters


def test_any_iterable() -> None:
    """Events may come from any iterable."""
    one, other = Processor(), Processor()
    events = stream(30)
    assert one.process_many(iter(events)) == other.process_many(tuple(events))
