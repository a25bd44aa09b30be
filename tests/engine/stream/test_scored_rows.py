"""Scored rows of settled predictions, as the outcomes of the same processor have them."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from hypothesis import given
from tests.engine.stream.cases import EVENTS, SETTINGS

from abers.stream import Event, Events, Label, Observation, Processor, Settings


@given(SETTINGS, EVENTS)
def test_scored_rows_are_those_of_the_outcomes(settings: Settings, events: list[Event]) -> None:
    """Each outcome has its row of the settled batch: key, delay, and label in the same order.

    Late labels have none, since another was assumed and scored before. No time is too far ahead
    here; `test_clocks` has the delays of those that are.
    """
    processor = Processor(msgspec.structs.replace(settings, max_jump=2**53))
    outputs = processor.process_batch(Events.of(events))
    assert outputs.settled_batch is not None
    found = [one for one in outputs.outcomes or () if not one.late]
    keys = processor.keys
    assert [keys[key] for key in outputs.settled_batch.keys.tolist()] == [
        (one.model, one.segment) for one in found
    ]
    assert outputs.settled_batch.delays.tolist() == [
        one.time - one.prediction_time for one in found
    ]


def test_settled_batch_only_with_monitors_or_outcomes() -> None:
    """Without monitors and outcomes there is no settled batch; with either there is."""
    events = Events.of([Observation("a", 1, score=0.5), Label("a", 2, value=1)])
    for monitors, outcomes in ((False, False), (True, False), (False, True)):
        processor = Processor(Settings(monitors=monitors), outcomes=outcomes)
        batch = processor.process_batch(events).settled_batch
        assert (batch is None) == (not monitors and not outcomes)


def test_a_loss_that_is_infinite() -> None:
    """What had the probability 0 and came costs an infinite loss, without a warning."""
    processor = Processor(Settings(calibrator="none", scores="probability"))
    events: list[Event] = [Observation("a", 1, score=1.0), Label("a", 2, value=0)]
    settled = processor.process_batch(Events.of(events)).settled_batch
    assert settled is not None
    scored = settled.scored
    assert [*scored.forecasts] == ["raw", "calibrated"]
    for one in scored.forecasts.values():
        assert (one.losses.tolist(), one.squares.tolist()) == ([math.inf], [1.0])


def test_a_loss_of_nothing_is_no_negative_zero() -> None:
    """What was certain and came costs 0."""
    processor = Processor(Settings(calibrator="none", scores="probability"))
    events: list[Event] = [Observation("a", 1, score=1.0), Label("a", 2, value=1)]
    settled = processor.process_batch(Events.of(events)).settled_batch
    assert settled is not None
    assert not np.signbit(settled.scored.forecasts["raw"].losses[0])
