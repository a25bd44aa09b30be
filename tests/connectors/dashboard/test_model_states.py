"""The list of models by harm, `abers_connectors.dashboard.observer`."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from abers.stream import Event, Events, Label, Observation, Processor, Settings
from abers_connectors.dashboard.observer import ModelStates, Observer

if TYPE_CHECKING:
    from abers.monitoring import TaskMonitor
    from abers_connectors.dashboard.observer import Key

SETTINGS = Settings(scores="probability", calibrator="none", max_models=1_000)


class Made:
    """Models whose answers are counted when they are made."""

    def __init__(self) -> None:
        self.processor, self.observer = Processor(SETTINGS), Observer()
        self.observer.hold({0: self.processor})
        self.states = ModelStates()
        self.asked: list[Key] = []
        self.rng, self.number = random.Random(3), 0  # noqa: S311 - no secret

    def learn(self, model: str, count: int, factor: float = 1.0) -> None:
        """Process labels of a model, which come as often as promised times a factor."""
        events: list[Event] = []
        for number in range(self.number, self.number + count):
            score = self.rng.uniform(0.2, 0.8)
            label = int(self.rng.random() < score * factor)
            events.append(Observation(f"{number}", number, model, score=score))
            events.append(Label(f"{number}", number, model, value=label))
        self.number += count
        self.processor.process_batch(Events.of(events))

    def renew(self) -> list[Key]:
        """Renew states, and return whose were made."""
        self.asked.clear()
        self.observer.update()
        self.states.renew(self.observer.index.worst_first(), self._monitor)
        return [*self.asked]

    def _monitor(self, key: Key) -> TaskMonitor | None:
        self.asked.append(key)
        return self.observer.total(key)


def test_the_most_harmful_first() -> None:
    """Models are sorted by the latest labels that are wrong at least, then by state."""
    made = Made()
    made.learn("right", 4_000)
    made.learn("few", 10)
    made.learn("off", 2_000, 0.5)
    made.learn("much-off", 4_000, 0.5)
    made.renew()
    listed = made.states.listed
    assert [one.key[0] for one in listed[:2]] == ["much-off", "off"]
    assert listed[-1].key[0] == "few"
    for one in listed:
        monitor = made.observer.total(one.key)
        assert monitor is not None
        answers = monitor.answers()
        assert answers is not None
        assert one.found is not None
        assert one.found.wrong_by == answers.wrong_by
        assert one.found.states == {each.question: each.state for each in answers.answers}


def test_answers_are_made_again_after_one_label_more_in_a_hundred() -> None:
    """A model with few new labels keeps its states, and its number of labels is new."""
    made = Made()
    made.learn("m", 1_000)
    assert made.renew() == [("m", "")]
    made.learn("m", 10)
    assert made.renew() == []
    assert made.states.listed[0].status.labels == 1_010
    made.learn("m", 1)
    assert made.renew() == [("m", "")]


def test_a_thousand_models_take_turns() -> None:
    """A renewal makes the answers of at most ten models, and no busy model delays the others."""
    made = Made()
    for number in range(1_000):
        made.learn(f"m{number}", 1)
    turns = []
    for _ in range(100):
        turns.append(made.renew())
        made.learn("m0", 2)
    assert {len(one) for one in turns} == {10}
    assert len({key for one in turns for key in one}) == len(made.states.listed) == 1_000
    assert made.renew() == [("m0", "")]
