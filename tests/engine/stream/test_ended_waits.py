"""Rows that say that no label will come: `ended` of `abers.stream.Events`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.engine.stream.cases import Scorer

from abers.stream import Events, Label, Observation, Processor, Settings
from abers.stream.accounts import unbalanced
from abers.stream.validation import ENDS

WAIT, ANY = 10, 1 << 53  # milliseconds; the first event starts the clock
COUNT = 40
TASKS: dict[str, dict[str, Any]] = {
    "binary": {},
    "unprotected": {"calibrator": "ivap"},
    "assumed": {"unlabelled": 0},
    "classes": {"task": "multiclass", "classes": ("0", "1")},
    "numbers": {"task": "regression", "distributions": "scored", "support": (0.5, 3.0)},
}


def with_labels(task: str = "binary", *, ends: bool = True) -> Events:
    """Return observations with a label each before the next, but for every fourth.

    Every fourth has the end of the wait for its label instead, if this is asked for.
    """
    events: list[Any] = []
    for n in range(COUNT):
        id_, time, score = f"a{n}", WAIT * n, 0.2 + 0.6 * (n % 2)
        given: Any = {"0": 1.0 - score, "1": score} if task == "classes" else score
        value: Any = {"classes": str(n % 2), "numbers": 1.0 + score}.get(task, n % 2)
        events.append(Observation(id_, time, score=given, x={"one": score}))
        events.append(Label(id_, time + (5 if n % 4 else WAIT), value=value))
    ended = np.array([n % 8 == 1 for n in range(len(events))])
    found = replace(Events.of(events), ended=ended)
    return found if ends else found.take(~ended)


def processor(task: str, learner: Any = None, **options: Any) -> Processor:  # noqa: ANN401 - settings
    """Return a processor of a kind of task."""
    return Processor(Settings(max_jump=ANY, **TASKS[task], **options), learner=learner)


@pytest.mark.parametrize("task", ["binary", "unprotected"])
def test_a_wait_ends_as_by_its_timeout(task: str) -> None:
    """Predictions and counters are those of a timeout that ends the same waits then."""
    ends, times = processor(task), processor(task, label_timeout=WAIT - 1)
    found = ends.process_batch(with_labels()).predictions
    assert [*found] == [*times.process_batch(with_labels(ends=False)).predictions]
    assert ends.counters["expired"] == 10
    assert ends.counters == times.counters | {"late_events": 0, "expired": 10}
    assert not unbalanced(ends.accounts)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("size", [1, 7])
def test_batches_and_the_journal_say_the_same(task: str, size: int) -> None:
    """Batches of any size, and their journal, lead to the state of all events at once."""
    events = with_labels(task)
    whole, parts, replayed = (processor(task) for _ in range(3))
    expected = whole.process_batch(events)
    found: list[Any] = []
    for first in range(0, len(events), size):
        outputs, entry = parts.process_logged(events[first : first + size])
        found += outputs.predictions
        replayed.apply(entry)
    assert found == [*expected.predictions]
    assert len(found) == COUNT
    assert whole.state_bytes() == parts.state_bytes() == replayed.state_bytes()
    assert not unbalanced(whole.accounts)


def test_a_learner_forgets_what_ended() -> None:
    """With a learner the waits end, too, and the labels of all others are learned."""
    one = processor("binary", learner=Scorer())
    one.process_batch(with_labels())
    assert (one.counters["labels"], one.counters["expired"]) == (30, 10)


def test_an_end_assumes_the_label() -> None:
    """The label that is assumed without one is learned at the end of the wait."""
    one = processor("assumed")
    outcomes = one.process_batch(with_labels()).outcomes or ()
    assumed = [(found.id, found.time, found.label) for found in outcomes if found.assumed]
    assert assumed == [(f"a{n}", WAIT * (n + 1), 0) for n in range(0, 40, 4)]


def test_the_end_of_an_unknown_wait_changes_nothing() -> None:
    """An id that does not wait, or a second end, is no event."""
    one = processor("binary")
    one.process_batch(with_labels())
    before = one.counters
    ends = with_labels()
    one.process_batch(ends.take(ends.kinds == ENDS))
    assert one.counters == before
