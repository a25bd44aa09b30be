"""Long random lives of a processor, `abers.stream.processor`, next to the naive one.

Whatever comes, one at a time or in batches, with or without a save and restore in
between, outputs, counters and clock are those of the rules, applied one event at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.engine.stream.cases import (
    DRAWS,
    FOREVER,
    IDS,
    MODELS,
    SETTINGS,
    Draw,
    Scorer,
    event,
    plain,
)
from tests.engine.stream.naive import Naive

from abers.stream import Event, Label, Observation, Processor, Settings, accounts

if TYPE_CHECKING:
    from collections.abc import Sequence

POSITIONS = st.sampled_from((None, 7, {"offset": [1, 2], "file": "é"}))


class Life(RuleBasedStateMachine):
    """What all processors live through."""

    processor: Processor
    naive: Naive
    learner: type[Scorer] | None = None

    def __init__(self) -> None:
        """Begin at time 0."""
        super().__init__()
        self.now = 0

    @initialize(settings=SETTINGS)
    def start(self, settings: Settings) -> None:
        """Begin with nothing."""
        given, own = (self.learner() if self.learner else None for _ in range(2))
        self.settings = settings
        self.processor = Processor(settings, learner=given)
        self.naive = Naive(settings, learner=own)

    @rule(draw=DRAWS)
    def one(self, draw: Draw) -> None:
        """Take one event."""
        (event,) = self.events([draw])
        self.compare(self.processor.process(event), self.naive.process(event))

    @rule(draws=st.lists(DRAWS, max_size=15))
    def many(self, draws: list[Draw]) -> None:
        """Take a batch of events."""
        events = self.events(draws)
        self.compare(self.processor.process_many(events), self.naive.process_many(events))

    @rule(draw=DRAWS, other=DRAWS, gap=st.sampled_from((0, 1, 3, 30)))
    def pair(self, draw: Draw, other: Draw, gap: int) -> None:
        """Take an observation and its label, in either order."""
        pair = [draw, other._replace(id=draw.id, model=draw.model, observed=not draw.observed)]
        events = self.events([pair[0], pair[1]._replace(gap=gap)])
        self.compare(self.processor.process_many(events), self.naive.process_many(events))

    @rule(ahead=st.sampled_from((1, 5, 30, FOREVER)))
    def pause(self, ahead: int) -> None:
        """Let time pass."""
        self.now += ahead

    def events(self, draws: Sequence[Draw]) -> list[Event]:
        """Make the events that come next."""
        made = []
        for draw in draws:
            self.now += draw.gap
            made.append(event(draw, self.now))
        return made

    def compare(self, outputs: list[Any], expected: list[Any]) -> None:
        """Compare what came out, and what can be seen from outside."""
        assert list(map(plain, outputs)) == list(map(plain, expected)), self.naive.summary()
        assert self.processor.counters == self.naive.counters
        assert self.processor.clock == self.naive.clock

    @invariant()
    def accounted(self) -> None:
        """Close the accounts: every event, and every prediction, has one end or waits."""
        if not hasattr(self, "naive"):
            return
        undecided = sum(not one.assumed for one in self.naive.pending)
        of = accounts.numbers(self.naive.counters, undecided, len(self.naive.early))
        assert self.processor.accounts == of
        assert accounts.unbalanced(of) == []

    def teardown(self) -> None:
        """Reveal all that waits and is remembered: label, observe and outwait every id."""
        if not hasattr(self, "naive"):
            return
        names = [(name, model) for model in MODELS for name in IDS]
        when: dict[str, Any] = {"time": self.now, "recorded": self.now}
        end: dict[str, Any] = {"time": self.now + 4 * FOREVER, "recorded": self.now + 4 * FOREVER}
        x = {"a": 0.5}
        last: list[Event] = [
            *(Label(name, model=model, value=1, **when) for name, model in names[::2]),
            *(Observation(name, model=model, score=0.5, x=x, **when) for name, model in names),
            *(Label(name, model=model, value=0, **when) for name, model in names[1::2]),
            Observation("last", score=0.5, x=x, **end),
        ]
        self.compare(self.processor.process_many(last), self.naive.process_many(last))


class Scores(Life):
    """Scores come with the events, so the processor can be saved without a key."""

    @rule(position=POSITIONS)
    def save_and_restore(self, position: Any) -> None:  # noqa: ANN401
        """Go on with a restored processor in place of the one that was saved."""
        blob = self.processor.snapshot(position)
        restored = Processor.restore(blob, self.settings)
        assert restored.position == position
        assert restored.state_bytes() == self.processor.state_bytes()
        assert restored.snapshot(position) == blob
        self.processor = restored
        self.compare([], [])


class Learner(Life):
    """A learner scores the features, and at times fails."""

    learner = Scorer


TestScores = Scores.TestCase
"""Through a long random life the processor does what the rules say."""

TestLearner = Learner.TestCase
"""Through a long random life with a learner the processor does what the rules say."""
