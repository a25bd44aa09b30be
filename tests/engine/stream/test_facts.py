"""What labels say of predictions, in arrays: as the outcomes of the same processor have it."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from hypothesis import given
from tests.engine.stream.cases import EVENTS, SETTINGS

from abers.stream import Event, Events, Label, Observation, Processor, Settings


@given(SETTINGS, EVENTS)
def test_what_was_judged_is_told_with_its_outcome(settings: Settings, events: list[Event]) -> None:
    """Each outcome has its row of what was judged: key, delay, and label in the same order.

    No time is too far ahead here; `test_clocks` has the delays of those that are.
    """
    processor = Processor(msgspec.structs.replace(settings, max_jump=2**53))
    outputs = processor.take(Events.of(events))
    assert outputs.judged is not None
    told = [*(outputs.outcomes or ())]
    keys = processor.keys
    assert [keys[key] for key in outputs.judged.keys.tolist()] == [
        (one.model, one.segment) for one in told
    ]
    assert outputs.judged.delays.tolist() == [one.time - one.predicted for one in told]


def test_where_nothing_is_judged_nothing_is_counted() -> None:
    """Without monitors and outcomes nothing is told; with either of them it is."""
    events = Events.of([Observation("a", 1, score=0.5), Label("a", 2, value=1)])
    for monitors, outcomes in ((False, False), (True, False), (False, True)):
        processor = Processor(Settings(monitors=monitors), outcomes=outcomes)
        assert (processor.take(events).judged is None) == (not monitors and not outcomes)


def test_a_loss_that_is_infinite() -> None:
    """What had the probability 0 and came costs an infinite loss, without a warning."""
    processor = Processor(Settings(calibrator="uncalibrated", scores="probability"))
    events: list[Event] = [Observation("a", 1, score=1.0), Label("a", 2, value=0)]
    judged = processor.take(Events.of(events)).judged
    assert judged is not None
    facts = processor.facts(judged)
    assert [*facts.forecasts] == ["raw", "calibrated"]
    for one in facts.forecasts.values():
        assert (one.losses.tolist(), one.squares.tolist()) == ([math.inf], [1.0])


def test_a_loss_of_nothing_is_no_negative_zero() -> None:
    """What was certain and came costs 0."""
    processor = Processor(Settings(calibrator="uncalibrated", scores="probability"))
    events: list[Event] = [Observation("a", 1, score=1.0), Label("a", 2, value=1)]
    judged = processor.take(Events.of(events)).judged
    assert judged is not None
    assert not np.signbit(processor.facts(judged).forecasts["raw"].losses[0])
