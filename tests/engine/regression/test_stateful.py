"""Long random lives of a regression calibrator, one machine for each rule of forgetting.

After every step the invariants of the core hold, and every prediction is the
definition in fractions to the last bit, whatever was learned, removed, forgotten, refused, saved
or restored before.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.engine.cases import GAPS, WEIGHTS
from tests.engine.regression.oracle import RegressionOracle

from abers import NotHeldError
from abers.arrays import LEARN, PREDICT
from abers.regression import IVAPR

SCORES = st.sampled_from((0.1, 0.2, 1 / 3, 0.5, -1e308, 5e-324))
LABELS = st.sampled_from((0.0, 0.5, -2.0, 7.0, 1e300, 1 / 3))
STEPS = st.lists(
    st.tuples(st.sampled_from((PREDICT, LEARN)), SCORES, LABELS, WEIGHTS, GAPS), max_size=5
)


class Life(RuleBasedStateMachine):
    """What all calibrators live through."""

    calibrator: IVAPR
    oracle: RegressionOracle
    aging = False

    def begin(self, **options: Any) -> None:  # noqa: ANN401
        """Begin with nothing kept."""
        self.calibrator, self.oracle = IVAPR(**options), RegressionOracle(**options)
        self.clock = 0.0

    def when(self, gap: float) -> dict[str, Any]:
        """Return the time a gap after the last, for calibrators that take one."""
        if not self.aging:
            return {}
        self.clock += gap
        return {"time": self.clock}

    def agree(self, score: float, **when: float) -> None:
        """Compare a prediction with the definition."""
        predicted, steps = (
            self.calibrator.predict_one(score, **when),
            self.oracle.steps(score, **when),
        )
        thresholds, lower, upper = (list(column) for column in zip(*steps, strict=True))
        assert predicted.thresholds.tolist() == thresholds[1:]
        before = -1.7e308
        assert predicted.lower([before, *thresholds[1:]]).tolist() == lower
        assert predicted.upper([before, *thresholds[1:]]).tolist() == upper

    @rule(score=SCORES, label=LABELS, weight=WEIGHTS, gap=GAPS)
    def learn(self, score: float, label: float, weight: float, gap: float) -> None:
        """Learn an observation."""
        when = self.when(gap)
        self.calibrator.learn_one(score, label, weight=weight, **when)
        self.oracle.learn(score, label, weight, **when)

    @rule(score=SCORES, ahead=st.sampled_from((-9.0, 0.0, 0.5, 50.0)))
    def predict(self, score: float, ahead: float) -> None:
        """Predict as of an earlier or a later time, which changes nothing."""
        self.agree(score, **({"time": self.clock + ahead} if self.aging else {}))

    @rule(steps=STEPS)
    def run(self, steps: list[tuple[int, float, float, float, float]]) -> None:
        """Run a batch of predictions and observations."""
        if not steps:
            return
        kinds, scores, labels, weights, gaps = zip(*steps, strict=True)
        whens = [self.when(gap) for gap in gaps]
        times = [when["time"] for when in whens] if self.aging else None
        found = self.calibrator.run(
            kinds, scores, labels, levels=[0.3], weights=weights, times=times
        )
        for i, (kind, score, label, weight, _) in enumerate(steps):
            if kind == LEARN:
                self.oracle.learn(score, label, weight, **whens[i])
                continue
            reached = [t for t, _, upper in self.oracle.steps(score, **whens[i]) if upper >= 0.3]
            assert found.low[i].tolist() == (reached or [np.inf])[:1]

    @rule()
    def save_and_restore(self) -> None:
        """Go on with a restored calibrator in place of the one that was saved."""
        saved = self.calibrator.to_bytes()
        self.calibrator = IVAPR.from_bytes(saved)
        assert self.calibrator.to_bytes() == saved

    @rule()
    def pickle_and_load(self) -> None:
        """Go on with an unpickled calibrator."""
        self.calibrator = pickle.loads(pickle.dumps(self.calibrator))  # noqa: S301 - our own bytes

    @rule(score=SCORES, bad=st.sampled_from((float("nan"), float("inf"), None, "1")), gap=GAPS)
    def refuse(self, score: float, bad: Any, gap: float) -> None:  # noqa: ANN401
        """Refuse a bad label and leave the state as it was."""
        before = self.calibrator.state_bytes()
        with pytest.raises(ValueError, match="label"):
            self.calibrator.learn_one(score, bad, **self.when(gap))
        assert self.calibrator.state_bytes() == before

    @invariant()
    def sound(self) -> None:
        """Check the invariants of the core, and what can be counted."""
        self.calibrator._check()  # noqa: SLF001 - made for these tests
        assert len(self.calibrator) == len(self.oracle)
        assert self.calibrator.late == self.oracle.late


class Unlimited(Life):
    """Everything is kept, and can be removed."""

    @initialize()
    def start(self) -> None:
        """Begin without forgetting."""
        self.begin()

    @precondition(lambda self: len(self.oracle) > 0)
    @rule(data=st.data(), part=st.sampled_from((1.0, 1.0, 0.5)))
    def remove(self, data: st.DataObject, part: float) -> None:
        """Remove something that was learned, whole or in part."""
        pair = data.draw(st.sampled_from([p for p in self.oracle.history if p.weight > 0]))
        weight = max(part * pair.weight, 2.0**-30)
        if self.oracle.remove(pair.score, pair.label, weight):
            self.calibrator.remove_one(pair.score, pair.label, weight=weight)
            return
        before = self.calibrator.state_bytes()
        with pytest.raises(NotHeldError):
            self.calibrator.remove_one(pair.score, pair.label, weight=weight)
        assert self.calibrator.state_bytes() == before


class Window(Life):
    """The last n are kept."""

    @initialize(window=st.sampled_from((1, 2, 5)))
    def start(self, window: int) -> None:
        """Begin with a window."""
        self.begin(window=window)


class MaxAge(Life):
    """What is young enough is kept."""

    aging = True

    @initialize(max_age=st.sampled_from((0.5, 3.0)), clock=st.sampled_from((0.0, 1.7e9)))
    def start(self, max_age: float, clock: float) -> None:
        """Begin with a greatest age."""
        self.begin(max_age=max_age)
        self.clock = clock


class HalfLife(Life):
    """Weights decay."""

    aging = True

    @initialize(half_life=st.sampled_from((0.3, 7.0)), clock=st.sampled_from((-50.0, 1e9)))
    def start(self, half_life: float, clock: float) -> None:
        """Begin with a half-life."""
        self.begin(half_life=half_life)
        self.clock = clock


# The oracle refits for each threshold of each prediction, so lives are shorter than elsewhere.
for machine in (Unlimited, Window, MaxAge, HalfLife):
    machine.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)

TestUnlimited = Unlimited.TestCase
"""Without forgetting, every answer of a long random life is the definition's."""

TestWindow = Window.TestCase
"""With a window, every answer of a long random life is the definition's."""

TestMaxAge = MaxAge.TestCase
"""With a greatest age, every answer of a long random life is the definition's."""

TestHalfLife = HalfLife.TestCase
"""With a half-life, every answer of a long random life is the definition's."""
