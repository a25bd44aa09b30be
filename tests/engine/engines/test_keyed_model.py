"""Models in the keyed state of an engine, which undoes steps and moves models between workers."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from abers.engines import KeyedModel
from abers.exceptions import ParameterError, SettingsError, StateError
from abers.stream import Event, Events, Label, Observation, Processor, Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream import Output

SETTINGS = Settings(calibrator="protected")
MODELS = "fraud", "churn"
EVERY = 3


class Memory(dict[str, bytes]):
    """The state of a model in an engine."""

    put, remove = dict.__setitem__, dict.__delitem__


def batch(first: int, size: int) -> list[Event]:
    """Return observations from a number on, and their labels, some of them for the next batch."""
    events: list[Event] = []
    for number in range(first, first + size):
        events.append(Observation(f"a{number}", 10 * number, score=(number * 7 % 10) / 10))
        if number:
            events.append(Label(f"a{number - 1}", 10 * number + 1, value=number * 3 % 5 % 2))
    return events


def one_processor(batches: Sequence[list[Event]]) -> list[list[Output]]:
    """Return the outputs of a processor that takes batches once."""
    processor = Processor(SETTINGS)
    return [processor.process_many(events) for events in batches]


class Engine(RuleBasedStateMachine):
    """An engine with two workers that each may get each model, and may undo its last steps."""

    def __init__(self) -> None:
        """Begin without any state."""
        super().__init__()
        self.workers = [KeyedModel(SETTINGS, every=EVERY, cached=1) for _ in range(2)]
        self.states = {name: Memory() for name in MODELS}
        self.saved: dict[str, list[Memory]] = {name: [] for name in MODELS}  # before each step
        self.batches: dict[str, list[list[Event]]] = {name: [] for name in MODELS}
        self.outputs: dict[str, list[list[Output]]] = {name: [] for name in MODELS}

    @rule(name=st.sampled_from(MODELS), worker=st.integers(0, 1), size=st.integers(0, 40))
    def steps(self, name: str, worker: int, size: int) -> None:
        """Take a step of a model at a worker."""
        events = batch(sum(len(one) for one in self.batches[name]), size)
        self.saved[name].append(Memory(self.states[name]))
        made = self.workers[worker].step(name, self.states[name], events)
        self.batches[name].append(events)
        self.outputs[name].append(made.in_order())

    @rule(name=st.sampled_from(MODELS), steps=st.integers(1, 4))
    def undoes(self, name: str, steps: int) -> None:
        """Undo steps of a model; the workers do not know it."""
        steps = min(steps, len(self.saved[name]))
        for _ in range(steps):
            self.states[name] = self.saved[name].pop()
            self.batches[name].pop()
            self.outputs[name].pop()

    @rule(worker=st.integers(0, 1))
    def starts_again(self, worker: int) -> None:
        """Lose a worker."""
        self.workers[worker] = KeyedModel(SETTINGS, every=EVERY)

    @invariant()
    def is_one_processor(self) -> None:
        """Compare the outputs of each model with those of a processor."""
        for name in MODELS:
            assert self.outputs[name] == one_processor(self.batches[name])


TestEngine = Engine.TestCase


def filled(steps: int = 7) -> Memory:
    """Return the state of a model behind some steps."""
    models, state = KeyedModel(SETTINGS, every=EVERY), Memory()
    for number in range(steps):
        models.step("fraud", state, batch(20 * number, 20))
    return state


def test_a_step_writes_what_it_adds() -> None:
    """Between two snapshots a step puts its entry and the head alone."""
    written: list[str] = []

    class Watched(Memory):
        def put(self, name: str, value: bytes) -> None:
            written.append(name)
            self[name] = value

    models, state = KeyedModel(every=4), Watched()
    for number in range(5):
        models.step("fraud", state, batch(20 * number, 20))
    assert written[:6] == ["entry-0", "head", "entry-1", "head", "entry-2", "head"]
    assert written[6:] == ["entry-3", "snapshot-0", "head", "entry-4", "head"]
    assert state.keys() == {"head", "snapshot-0", "entry-4"}


def test_a_large_snapshot_is_in_chunks() -> None:
    """A snapshot of more than 256 KiB is in values of at most so many bytes, and is read again."""
    models, state = KeyedModel(every=1), Memory()
    models.step("fraud", state, Events.of(batch(0, 10_000)))
    parts = [name for name in state if name.startswith("snapshot")]
    assert len(parts) > 1
    assert max(map(len, state.values())) <= 1 << 18
    made = KeyedModel(every=1).step("fraud", state, [Observation("b", 10**6, score=0.5)])
    assert made.predictions[0].n_labels == 9_999
    models.step("fraud", state, [])
    assert {name for name in state if name.startswith("snapshot")} == {*parts}


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *product(["snapshot-0", "entry-6"], ["missing", "cut", "flipped"]),
        ("head", "cut"),
        ("head", "flipped"),
    ],
)
def test_damage_is_refused(name: str, damage: str) -> None:
    """A state that is damaged or incomplete is refused with its model, and nothing is written."""
    state = filled()
    if damage == "missing":
        del state[name]
    else:
        at = len(state[name]) - 3
        flipped = state[name][:at] + bytes([state[name][at] ^ 4]) + state[name][at + 1 :]
        state[name] = state[name][:at] if damage == "cut" else flipped
    before = dict(state)
    with pytest.raises(StateError, match="the state of 'fraud'"):
        KeyedModel(SETTINGS, every=EVERY).step("fraud", state, batch(140, 20))
    assert state == before


def test_entries_of_another_life_are_refused() -> None:
    """Entries that are sound, and not those that the head names, are refused."""
    state, other = filled(), Memory()
    models = KeyedModel(SETTINGS, every=EVERY)
    for number in range(7):
        models.step("fraud", other, batch(20 * number, 21))
    state["entry-6"] = other["entry-6"]
    with pytest.raises(StateError, match=r"cannot be used"):
        KeyedModel(SETTINGS).step("fraud", state, [])


def test_other_settings_are_refused() -> None:
    """A state of other settings is refused, behind a snapshot and before the first."""
    for steps in (1, 3):
        with pytest.raises(SettingsError, match="the state of 'fraud'"):
            KeyedModel(Settings(window=50)).step("fraud", filled(steps), [])


def test_what_is_no_event_changes_nothing() -> None:
    """A step with what is no event is refused, and the next goes on as if it had not been."""
    models, state = KeyedModel(SETTINGS), Memory()
    wrong: Any = ["no event"]
    models.step("fraud", state, batch(0, 20))
    before = dict(state)
    with pytest.raises(ParameterError):
        models.step("fraud", state, wrong)
    assert state == before
    made = models.step("fraud", state, batch(20, 20)).in_order()
    assert made == one_processor([batch(0, 20), batch(20, 20)])[1]


@pytest.mark.parametrize("name", ["every", "cached"])
def test_numbers_are_checked(name: str) -> None:
    """Numbers below 1 are refused by their names."""
    given: Any = {name: 0}
    with pytest.raises(ParameterError, match=f"{name}=0 is not a whole number of 1 or more"):
        KeyedModel(**given)
