"""The index of all models, `abers_connectors.runtime.models`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from abers.stream import Events, Label, Observation, Processor, Settings
from abers_connectors.runtime.models import ModelIndex, model_status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream import Event

PROBABILITIES = Settings(scores="probability", max_models=2_000)


def learn(processor: Processor, model: str, labels: Sequence[int], score: float = 0.5) -> None:
    """Process observations of one score with their labels."""
    first = processor.counters["observations"]
    events: list[Event] = []
    for number, label in enumerate(labels, first):
        events.append(Observation(f"{number}", number, model, score=score))
        events.append(Label(f"{number}", number, model, value=label))
    processor.process_batch(Events.of(events))


def listed(index: ModelIndex) -> list[str]:
    """Return the names of the models, worst first."""
    return [one.key[0] for one in index.worst_first()]


def test_the_strongest_evidence_is_first() -> None:
    """The model whose labels disagree most with its scores is first, however many labels it has."""
    processor, index = Processor(PROBABILITIES), ModelIndex()
    learn(processor, "right", [0, 1] * 300)
    learn(processor, "wrong", [1] * 500, score=0.1)
    index.update({0: processor})
    assert listed(index) == ["wrong", "right"]
    wrong, _ = index.worst_first()
    tests = processor.monitors[1].tests
    strongest = max(tests, key=lambda one: one.log_wealth - one.log_threshold)
    assert (wrong.labels, wrong.view, wrong.test) == (500, strongest.view, strongest.name)
    assert (wrong.log_wealth, wrong.log_threshold) == (
        strongest.log_wealth,
        strongest.log_threshold,
    )
    raising = [one for one in tests if one.name == "change-tolerance"]
    assert wrong.active == any(one.active for one in raising)
    assert wrong.active
    assert wrong.alarms == sum(one.incidents for one in raising) >= 1


def test_a_model_of_two_partitions() -> None:
    """A model of two partitions is listed once, with all labels and the stronger evidence."""
    calm, odd, index = Processor(PROBABILITIES), Processor(PROBABILITIES), ModelIndex()
    learn(calm, "m", [0, 1] * 50)
    learn(odd, "m", [1] * 500, score=0.1)
    index.update({0: calm, 1: odd})
    (one,) = index.statuses
    alone = model_status(("m", ""), odd.monitors[0])
    assert (one.labels, one.margin, one.active) == (600, alone.margin, True)
    assert alone.active


def renewed(index: ModelIndex, processor: Processor) -> list[str]:
    """Update an index, and return the models whose status is another object."""
    before = {one.key: one for one in index.statuses}
    index.update({0: processor})
    return [one.key[0] for one in index.statuses if one is not before.get(one.key)]


def test_only_changes_are_renewed() -> None:
    """Evidence is made only of models with a new label, or with one that never came."""
    processor = Processor(Settings(scores="probability", label_timeout=1_000, grace_period=0))
    for model in "abc":
        learn(processor, model, [0, 1, 1])
    processor.process(Observation("waits", 500, "c", score=0.5))
    index = ModelIndex()
    assert renewed(index, processor) == ["a", "b", "c"]
    assert renewed(index, processor) == []
    learn(processor, "b", [1])
    assert renewed(index, processor) == ["b"]
    for number in range(5):  # as many as move the clock of the model far
        processor.process(Observation(f"later{number}", 5_000 + number, "c", score=0.5))
    assert processor.counters["expired"] == 1
    assert renewed(index, processor) == ["c"]


def test_a_bounded_number_is_renewed() -> None:
    """An update renews so many models at most; new ones are listed at once, and all get their turn.

    The labels that were known at the first update are there from the first.
    """
    processor, index = Processor(PROBABILITIES), ModelIndex(renewed=4)
    for number in range(10):
        learn(processor, f"m{number}", [0, 1])
    found = []
    for _ in range(3):
        index.update({0: processor})
        assert {one.labels for one in index.statuses} == {2}
        found.append(sum(one.margin > -math.inf for one in index.statuses))
    assert found == [4, 8, 10]
    for _ in range(5):  # one that changes again and again does not keep the others from theirs
        learn(processor, "m0", [1])
        learn(processor, "m9", [1])
        index.update({0: processor})
    assert {one.key[0]: one.labels for one in index.statuses}.items() >= {"m9": 7, "m0": 7}.items()


def test_models_that_are_gone() -> None:
    """A model that no processor has any more is dropped, and one that was reset begins anew."""
    processor, index = Processor(PROBABILITIES), ModelIndex()
    learn(processor, "m", [0, 1])
    learn(processor, "n", [0, 1])
    index.update({0: processor})
    before = index.statuses
    processor.reset_model("m")
    index.update({0: processor})
    assert {one.key[0]: one.labels for one in index.statuses} == {"m": 0, "n": 2}
    index.update({})
    assert index.statuses == ()
    assert [one.labels for one in before] == [2, 2]  # what others read does not change


def test_without_tests() -> None:
    """Without tests there is no evidence, and the model with most labels is first."""
    processor, index = Processor(Settings(tests=False)), ModelIndex()
    learn(processor, "few", [1])
    learn(processor, "many", [0, 1, 1])
    index.update({0: processor})
    assert listed(index) == ["many", "few"]
    assert {(one.view, one.test, one.margin) for one in index.statuses} == {("", "", -math.inf)}
