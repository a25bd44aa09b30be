"""Single events, `abers.stream.single_event`.

A processor that processes every event as a batch of one, by columns, is the specification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.cases import (
    DRAWS,
    EVENTS,
    SETTINGS,
    Scorer,
    events,
    limited,
    plain,
    stream,
)
from tests.engine.stream.replies import lab, obs, processor
from tests.engine.stream.test_tasks import TASKS

from abers.exceptions import ParameterError
from abers.stream import Label, Observation, Processor, Settings, single_event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream import Event, Output

TASK_SETTINGS = {
    "binary": (SETTINGS, DRAWS),
    "cross": (
        limited(
            calibrator=st.sampled_from(("cvap", "platt", "isotonic", "none")),
            scores=st.just("probability"),
            probability=st.just(None),
        ),
        DRAWS,
    ),
    **{task: (settings, draws) for task, (settings, draws, _) in TASKS.items()},
}


@st.composite
def lives(draw: st.DrawFn, task: str) -> tuple[Settings, list[Event]]:
    """Draw settings of a task with tests that raise an alarm after few labels, and events."""
    settings, draws = TASK_SETTINGS[task]
    testing = {
        "grace_period": draw(st.sampled_from((0, 2))),
        "average_run_length": draw(st.sampled_from((2, 3))),
        "cooldown": draw(st.sampled_from((1, 3))),
        "tolerance": 1.0,
        "retire_after": draw(st.sampled_from((None, None, None, 5))),
    }
    changed = msgspec.structs.replace(draw(settings), **testing)
    return changed, events(draw(st.lists(draws, max_size=40)))


KINDS = st.lists(st.sampled_from("ssssssbbrmnx"), min_size=40, max_size=40)
"""How each event is processed: alone, with the next in a batch, or after something else."""


def by_columns(p: Processor, event: Event) -> list[Output]:
    """Process one event as a batch."""
    return p.process_many([event])


def alarms(p: Processor) -> list[Any]:
    """Return all alarms of all keys."""
    return [alarm for one in p.histories for _, alarm in one.alarms]


def agree(
    settings: Settings, given_events: Sequence[Event], kinds: Sequence[str], most: int
) -> None:
    """Check outputs, counters, alarms and state of two processors after any mixture of calls."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single_event, "_MOST_WAITING", most)
        single, batch = Processor(settings), Processor(settings)
        held: list[Event] = []
        for event, kind in zip(given_events, kinds, strict=False):
            if kind == "b":
                held.append(event)
                continue
            pair = (single.process_many(held), batch.process_many(held))
            held = []
            assert [*map(plain, pair[0])] == [*map(plain, pair[1])]
            if kind == "r":
                assert single.state_bytes() == batch.state_bytes()
                single, batch = (Processor.restore(p.snapshot(), settings) for p in (single, batch))
            elif kind == "m":
                states = [[one.state() for one in p.monitors] for p in (single, batch)]
                assert states[0] == states[1]
            elif kind == "n" and ("m", "") in single.keys:
                single.reset_model("m")
                batch.reset_model("m")
            elif kind == "x":
                assert single.counters == batch.counters
            outputs = (single.process(event), by_columns(batch, event))
            assert [*map(plain, outputs[0])] == [*map(plain, outputs[1])]
        assert single.state_bytes() == batch.state_bytes()
        assert single.counters == batch.counters
        assert alarms(single) == alarms(batch)


@pytest.mark.parametrize("task", TASK_SETTINGS)
@given(data=st.data(), kinds=KINDS, most=st.sampled_from((1, 3, 7, 256)))
def test_any_mixture(data: st.DataObject, task: str, kinds: list[str], most: int) -> None:
    """Single events, in any mixture with batches and other calls, are as batches of one."""
    settings, made = data.draw(lives(task))
    agree(settings, made, kinds, most)


@given(EVENTS)
def test_learner(made: list[Event]) -> None:
    """With a learner, every event is a batch."""
    single, batch = (Processor(Settings(), learner=Scorer()) for _ in range(2))
    for event in made:
        assert [*map(plain, single.process(event))] == [*map(plain, by_columns(batch, event))]
    assert single.state_bytes() == batch.state_bytes()


@pytest.mark.once
@pytest.mark.parametrize("scores", ["any", "probability"])
@pytest.mark.large(1_200)
def test_long_stream(scores: Any, size: int) -> None:  # noqa: ANN401
    """Over a long stream, on which alarms are raised, outputs, alarms and state are the same."""
    settings = Settings(
        scores=scores,
        label_timeout=2_000,
        max_pending=45,
        dedup_max_ids=200,
        grace_period=20,
        average_run_length=20,
        cooldown=20,
    )
    single, batch = Processor(settings), Processor(settings)
    for event in stream(size, every=50):
        assert [*map(plain, single.process(event))] == [*map(plain, by_columns(batch, event))]
    assert single.state_bytes() == batch.state_bytes()
    assert alarms(single) == alarms(batch)
    assert alarms(single)


def test_monitors_read_all() -> None:
    """Monitors and histories that are read have taken every event, whatever waited."""
    p = processor()
    for number in range(5):
        p.process(obs(f"{number}", number))
        p.process(lab(f"{number}", number))
        assert p.monitor is not None
        assert p.monitor.count == p.histories[0].windowed.count == number + 1


def test_slots_are_used_again() -> None:
    """The slots of predictions are used again, with and without monitors."""
    for monitors in (True, False):
        p = processor(monitors=monitors, tests=False)
        for number in range(1_200):
            p.process(obs(f"{number}", number))
            p.process(lab(f"{number}", number))
        assert p._state.join.store.capacity() <= 2 * single_event._MOST_WAITING  # noqa: SLF001


def test_plain_events_make_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the default settings, the events of a known model make no batch, labels first or not."""
    p = processor(label_timeout=50)
    p.process(obs("first", 0))

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(p, "process_many", refuse)
    monkeypatch.setattr(p._state, "calibrate", refuse)  # noqa: SLF001
    for number in range(1, 300):
        early = number % 7 == 0
        pair = (obs(f"{number}", number, score=number / 300), lab(f"{number}", number))
        some = pair[::-1] if early else pair if number % 5 else pair[:1]
        outputs = [output for event in some for output in p.process(event)]
        assert len(outputs) == len(some)
    assert p.counters["expired"] > 0


def test_no_event() -> None:
    """What is neither an observation nor a label is refused, and what came is kept."""
    p = processor()
    p.process(obs("a"))
    wrong: Any = "a"
    with pytest.raises(ParameterError, match="is neither an Observation nor a Label"):
        p.process(wrong)
    assert p.waiting == (1, 0)


def test_types_of_outputs() -> None:
    """Numbers of outputs are Python's own, as those of a batch are."""
    p, other = Processor(), Processor()
    pair: list[Event] = [Observation("a", 1, score=1, extra={"k": 1}), Label("a", 2, value=True)]
    for one in (p, other):
        one.process(Observation("first", 0, score=0.5))
    for event in pair:
        assert [*map(plain, p.process(event))] == [*map(plain, other.process_many([event]))]
