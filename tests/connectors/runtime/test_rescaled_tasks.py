"""States of tasks by other slots: each model goes to the partition that owns its slot."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abers.exceptions import SettingsError, StateError
from abers.stream import Label, Observation, Processor, Settings, accounts
from abers.stream.snapshot import read, write
from abers_connectors.runtime.application import Checkpoint, RecordCounts
from abers_connectors.runtime.rescaled_tasks import RescaledTask, SavedTask, rescaled
from abers_connectors.runtime.slots import partition_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers.stream.events import Event

MODELS = [f"model {number}" for number in range(25)]
SETTINGS = Settings(scores="probability")


def events(seed: int, count: int = 150) -> list[Event]:
    """Return observations and labels, some too early and some again."""
    random = Random(seed)  # noqa: S311 - not for secrets
    found: list[Event] = []
    for time in range(1, count):
        model, one = random.choice(MODELS), f"{random.randrange(60)}"
        if random.random() < 0.5:
            found.append(Observation(one, time, model, random.random()))
        else:
            found.append(Label(one, time, model, random.randrange(2)))
    return found


def tasks(
    given: Sequence[Event], partitions: int, options: Settings = SETTINGS
) -> tuple[list[Processor], list[SavedTask]]:
    """Return processors that took the events of their models, and their saved states."""
    processors = [Processor(options) for _ in range(partitions)]
    counts = [RecordCounts() for _ in range(partitions)]
    for one in given:
        number = partition_of(one.model, partitions)
        processors[number].process(one)
        counts[number] = counts[number].plus([int(isinstance(one, Label))], [])
    counts = [one.plus([0, 1], [(0, "bad"), (1, "tombstone")]) for one in counts]
    saved = [
        SavedTask(Checkpoint("app", number, 1, 0, (0, -1), counts=count), read(one.snapshot()))
        for number, (one, count) in enumerate(zip(processors, counts, strict=True))
    ]
    return processors, saved


def restored(one: RescaledTask) -> Processor:
    """Restore the processor of a new partition."""
    return Processor.restore(b"".join(write(one.state, None, None, "")), SETTINGS)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 20), st.integers(1, 9), st.integers(1, 9))
def test_models_go_on_in_other_partitions(seed: int, before: int, after: int) -> None:
    """Each model goes on in the partition of its slot, and all accounts add up as before."""
    first, second = events(seed), events(seed + 1)
    old, saved = tasks(first, before)
    found = [*rescaled(saved, before, after, 2)]
    assert [one.partition for one in found] == [*range(after)]
    new = [restored(one) for one in found]
    parts = [
        processor.accounts | one.counts.numbers() for processor, one in zip(new, found, strict=True)
    ]
    assert not [sentence for one in parts for sentence in accounts.unbalanced(one)]
    assert accounts.total(parts) == accounts.total(
        processor.accounts | task.checkpoint.counts.numbers()
        for processor, task in zip(old, saved, strict=True)
    )
    for one in second:
        later = msgspec.structs.replace(one, time=one.time + 1000)
        mine, theirs = (some[partition_of(one.model, len(some))] for some in (new, old))
        assert mine.process(later) == theirs.process(later)


@given(st.integers(0, 1 << 20), st.integers(1, 5), st.integers(1, 5))
@settings(max_examples=10, deadline=None)
def test_models_of_any_partitions(seed: int, before: int, after: int) -> None:
    """Where models are in any partitions, each new one gets its models of all of them."""
    mixed = [msgspec.structs.replace(one, model=one.model[::-1]) for one in events(seed)]
    processors = [Processor(SETTINGS) for _ in range(before)]
    for one in mixed:
        processors[sum(one.model.encode()) % before].process(one)
    saved = [
        SavedTask(Checkpoint("app", number, 1, 0, (0, -1)), read(one.snapshot()))
        for number, one in enumerate(processors)
    ]
    new = [restored(one) for one in rescaled(saved, None, after, 1)]
    assert [{partition_of(model, after) for model, _ in one.keys} for one in new if one.keys] == [
        {number} for number, one in enumerate(new) if one.keys
    ]
    assert sorted(key for one in new for key in one.keys) == sorted(
        key for one in processors for key in one.keys
    )


def test_states_are_read_when_they_are_wanted() -> None:
    """A new partition is complete, and goes on, before all old ones were read."""
    _, saved = tasks(events(0), 8)
    number = 0

    def counted() -> Iterator[SavedTask]:
        nonlocal number
        for number, one in enumerate(saved, 1):  # noqa: B007 - the test looks at it
            yield one

    seen = [(one.partition, number) for one in rescaled(counted(), 8, 4, 1)]
    assert seen == [(0, 3), (1, 5), (2, 7), (3, 8)]


def test_a_model_that_is_not_of_its_partition() -> None:
    """A model in a partition that does not own its slot is refused, with its name."""
    _, saved = tasks([Observation("a", 1, MODELS[0], 0.5)], 1)
    wrong = [7, 0][partition_of(MODELS[0], 8) == 7]
    one = saved[0]._replace(checkpoint=Checkpoint("app", wrong, 1, 0, (0, -1)))
    with pytest.raises(StateError, match=rf"{MODELS[0]} .*--partition {wrong} --model MODEL"):
        [*rescaled([one], 8, 16, 1)]


def test_a_model_of_two_states() -> None:
    """A model that learned in two partitions is refused, with a remedy."""
    _, saved = tasks([Observation("a", 1, MODELS[0], 0.5)], 1)
    with pytest.raises(StateError, match=r"partition . of 2: .*with kafka.route_by, which learns"):
        [*rescaled([saved[0], saved[0]], None, 2, 1)]


def test_too_many_models() -> None:
    """A new partition has no more models than a processor restores."""
    few = msgspec.structs.replace(SETTINGS, max_models=20)
    _, saved = tasks([Observation("a", 1, model, 0.5) for model in MODELS], 2, few)
    with pytest.raises(SettingsError, match=r"25 models.*limits\.max_models to 25 or more"):
        [*rescaled(saved, 2, 1, 1)]
