"""Long random lives of `UnboundedIVAR`, one machine for each rule of forgetting.

After every step the invariants of the core hold, and every prediction equals the definition in
fractions, rounded once, whatever was learned, removed, forgotten or restored before.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.engine.cases import GAPS
from tests.engine.mean_oracle import exact, interval

from abers import LabelError
from abers.batch import UnboundedIVAR

SCORES = st.integers(0, 6).map(float)
LABELS = st.one_of(
    st.integers(-20, 20).map(lambda eighths: eighths / 8.0), st.sampled_from((-300.0, 1e6))
)


class MeanLife(RuleBasedStateMachine):
    """What all of them live through."""

    calibrator: UnboundedIVAR
    window: int | None = None
    max_age: float | None = None

    def begin(self, m: int, **options: Any) -> None:  # noqa: ANN401
        """Begin with nothing kept."""
        self.calibrator = UnboundedIVAR(m, **options)
        self.kept: list[tuple[float, float, float]] = []  # time, score, label
        self.clock, self.newest, self.late = 0.0, -math.inf, 0

    def seen(self, time: float = -math.inf) -> list[tuple[float, float]]:
        """List what a query at a time sees."""
        if self.max_age is None:
            return [(score, label) for _, score, label in self.kept]
        horizon = max(self.newest, time) - self.max_age
        return [(score, label) for when, score, label in self.kept if when >= horizon]

    @rule(score=SCORES, label=LABELS, gap=GAPS)
    def learn(self, score: float, label: float, gap: float) -> None:
        """Learn an observation."""
        self.clock += gap
        timed = self.max_age is not None
        self.calibrator.learn_one(score, label, time=self.clock if timed else None)
        if self.max_age is not None:
            if self.clock < self.newest - self.max_age:
                self.late += 1
                return
            self.newest = max(self.newest, self.clock)
            horizon = self.newest - self.max_age
            self.kept = [row for row in self.kept if row[0] >= horizon]
        self.kept = [*self.kept, (self.clock, score, label)][-(self.window or 1 << 60) :]

    @rule(score=st.integers(-1, 13).map(lambda half: half / 2.0), ahead=GAPS)
    def predict(self, score: float, ahead: float) -> None:
        """Predict, with an age as of any time."""
        when = self.clock + ahead
        timed = self.max_age is not None
        found = self.calibrator.predict_one(score, time=when if timed else None)
        seen = self.seen(when)
        if len(seen) < 2 * self.calibrator.m:
            assert (found.low, found.high) == (-math.inf, math.inf)
            return
        low, high = interval(exact(seen), score, self.calibrator.m)
        assert (found.low, found.high) == (float(low), float(high))

    @rule()
    def restore(self) -> None:
        """Go on with a restored calibrator in place of the one that was saved."""
        saved = self.calibrator.to_bytes()
        self.calibrator = UnboundedIVAR.from_bytes(saved)
        assert self.calibrator.to_bytes() == saved

    @rule(score=SCORES)
    def refuse(self, score: float) -> None:
        """Refuse a label that no sum can take, and leave the state as it was."""
        before = self.calibrator.state_bytes()
        with pytest.raises(LabelError, match="coarser"):
            self.calibrator.learn_one(
                score,
                1e300,
                time=None
                if self.max_age is None
                else self.newest + 1.0
                if math.isfinite(self.newest)
                else 0.0,
            )
        assert self.calibrator.state_bytes() == before

    @invariant()
    def sound(self) -> None:
        """Check the invariants of the core, and what can be counted."""
        self.calibrator._check()  # noqa: SLF001 - made for tests
        assert (len(self.calibrator), self.calibrator.late) == (len(self.kept), self.late)


class UnlimitedMean(MeanLife):
    """Everything is kept, and can be removed."""

    @initialize(m=st.sampled_from((1, 2)))
    def start(self, m: int) -> None:
        """Begin without forgetting."""
        self.begin(m)

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """Remove something that was learned."""
        row = data.draw(st.sampled_from(self.kept))
        self.kept.remove(row)
        self.calibrator.remove_one(*row[1:])


class WindowMean(MeanLife):
    """The last n are kept."""

    @initialize(m=st.sampled_from((1, 2)), window=st.sampled_from((1, 3, 9)))
    def start(self, m: int, window: int) -> None:
        """Begin with a window."""
        self.window = window
        self.begin(m, window=window)


class MaxAgeMean(MeanLife):
    """What is young enough is kept."""

    @initialize(m=st.sampled_from((1, 2)), max_age=st.sampled_from((0.5, 3.0, 50.0)))
    def start(self, m: int, max_age: float) -> None:
        """Begin with a greatest age."""
        self.max_age = max_age
        self.begin(m, max_age=max_age)


TestUnlimitedMean = UnlimitedMean.TestCase
"""Without forgetting, every answer of a long random life is the definition's."""

TestWindowMean = WindowMean.TestCase
"""With a window, every answer of a long random life is the definition's."""

TestMaxAgeMean = MaxAgeMean.TestCase
"""With a greatest age, every answer of a long random life is the definition's."""
