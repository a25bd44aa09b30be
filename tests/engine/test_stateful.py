"""Long random lives of a calibrator, one machine for each rule of forgetting.

After every step the invariants of the core hold, and every prediction equals the
definition in fractions to the last bit, whatever was learned, removed, forgotten, refused, saved
or restored before.
"""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.engine.cases import BEYOND, EXTREMES, FEW, GAPS, LABELS, SCORES, WEIGHTS, check
from tests.engine.oracle import UNIT, Oracle

from abers import NotHeldError, VennAbers
from abers.arrays import LEARN, PREDICT

STEPS = st.lists(
    st.tuples(st.sampled_from((PREDICT, LEARN)), SCORES, LABELS, WEIGHTS, GAPS), max_size=8
)
TIES = st.sampled_from((*FEW, *EXTREMES))


class Life(RuleBasedStateMachine):
    """What all calibrators live through."""

    calibrator: VennAbers
    oracle: Oracle
    aging = False

    def begin(self, **options: Any) -> None:  # noqa: ANN401
        """Begin with nothing kept."""
        self.calibrator, self.oracle = VennAbers(**options), Oracle(**options)
        self.clock = 0.0

    def when(self, gap: float) -> dict[str, Any]:
        """Return the time a gap after the last, for calibrators that take one."""
        if not self.aging:
            return {}
        self.clock += gap
        return {"time": self.clock}

    @rule(score=SCORES | TIES, label=LABELS, weight=WEIGHTS, gap=GAPS)
    def learn(self, score: float, label: int, weight: float, gap: float) -> None:
        """Learn an observation."""
        when = self.when(gap)
        self.calibrator.learn_one(score, label, weight=weight, **when)
        self.oracle.learn(score, label, weight, **when)

    @rule(score=SCORES | TIES, label=LABELS, weights=st.lists(WEIGHTS, max_size=6), gap=GAPS)
    def learn_ties(self, score: float, label: int, weights: list[float], gap: float) -> None:
        """Learn several observations of one score, label and time in a batch."""
        when = self.when(gap)
        n = len(weights)
        times = [when["time"]] * n if when else None
        self.calibrator.learn_many([score] * n, [label] * n, weights=weights, times=times)
        for weight in weights:
            self.oracle.learn(score, label, weight, **when)

    @rule(score=SCORES | TIES, weight=WEIGHTS)
    def predict(self, score: float, weight: float) -> None:
        """Predict as of the newest time."""
        asked = self.calibrator.predict_one(score, weight=weight)
        assert asked == self.oracle.predict(score, weight)

    @rule(score=SCORES | TIES, weight=WEIGHTS, ahead=st.sampled_from((-9.0, 0.0, 0.5, 3.0, 50.0)))
    def predict_at(self, score: float, weight: float, ahead: float) -> None:
        """Predict as of an earlier or a later time, which changes nothing."""
        when = {"time": self.clock + ahead} if self.aging else {}
        asked = self.calibrator.predict_one(score, weight=weight, **when)
        assert asked == self.oracle.predict(score, weight, **when)

    @rule(steps=STEPS)
    def run(self, steps: list[tuple[int, float, int, float, float]]) -> None:
        """Run a batch of predictions and observations."""
        if not steps:
            return
        kinds, scores, labels, weights, gaps = zip(*steps, strict=True)
        whens = [self.when(gap) for gap in gaps]
        times = [when["time"] for when in whens] if self.aging else None
        p0, p1 = self.calibrator.run(kinds, scores, labels, weights=weights, times=times)
        for i, (kind, score, label, weight, _) in enumerate(steps):
            if kind == PREDICT:
                assert (p0[i], p1[i]) == self.oracle.predict(score, weight, **whens[i])
            else:
                self.oracle.learn(score, label, weight, **whens[i])

    @rule(score=SCORES)
    def fit(self, score: float) -> None:
        """Ask for the isotonic fit, at any score and at those kept."""
        value, expected = self.calibrator.isotonic(score), self.oracle.isotonic(score)
        assert (value is None) == (expected is None)
        if expected is not None:
            assert value == pytest.approx(float(expected), rel=1e-12, abs=1e-12)
        for held, fitted in self.oracle.fit():
            assert self.calibrator.isotonic(held) == float(fitted)

    @rule()
    def save_and_restore(self) -> None:
        """Go on with a restored calibrator in place of the one that was saved."""
        saved = self.calibrator.to_bytes()
        self.calibrator = VennAbers.from_bytes(saved)
        assert self.calibrator.to_bytes() == saved

    @rule()
    def pickle_and_load(self) -> None:
        """Go on with an unpickled calibrator."""
        self.calibrator = pickle.loads(pickle.dumps(self.calibrator))  # noqa: S301 - our own bytes

    @rule(score=SCORES, bad=st.sampled_from((2, None, "1")), gap=GAPS)
    def refuse(self, score: float, bad: Any, gap: float) -> None:  # noqa: ANN401
        """Refuse a bad label and leave the state as it was."""
        before = self.calibrator.state_bytes()
        with pytest.raises(ValueError, match="label"):
            self.calibrator.learn_one(score, bad, **self.when(gap))
        assert self.calibrator.state_bytes() == before

    @invariant()
    def sound(self) -> None:
        """Check the invariants of the core, and what can be counted."""
        check(self.calibrator)
        assert len(self.calibrator) == len(self.oracle)
        assert self.calibrator.late == self.oracle.late


class Unlimited(Life):
    """Everything is kept, and can be removed."""

    @initialize()
    def start(self) -> None:
        """Begin without forgetting."""
        self.begin()

    @precondition(lambda self: len(self.oracle) > 0)
    @rule(data=st.data(), part=st.sampled_from((1.0, 1.0, 0.5, 0.1)))
    def remove(self, data: st.DataObject, part: float) -> None:
        """Remove something that was learned, whole or in part."""
        entry = data.draw(st.sampled_from([e for e in self.oracle.entries if e.weight > 0]))
        self.try_to_remove(entry.score, entry.label, max(part * entry.weight, 1.0) / UNIT)

    @rule(score=SCORES | TIES, label=LABELS, weight=WEIGHTS)
    def remove_anything(self, score: float, label: int, weight: float) -> None:
        """Remove what may never have been learned."""
        self.try_to_remove(score, label, weight)

    def try_to_remove(self, score: float, label: int, weight: float) -> None:
        """Remove exactly if the definition allows it; else nothing changes."""
        if self.oracle.remove(score, label, weight):
            self.calibrator.remove_one(score, label, weight=weight)
            return
        before = self.calibrator.state_bytes()
        with pytest.raises(NotHeldError):
            self.calibrator.remove_one(score, label, weight=weight)
        with pytest.raises(NotHeldError, match=r"^row 2: "):
            self.calibrator.run([1, 0, 2], [score, 0.1, BEYOND], [label] * 3, weights=[weight] * 3)
        assert self.calibrator.state_bytes() == before


class Window(Life):
    """The last n are kept."""

    @initialize(window=st.sampled_from((1, 2, 5, 20)))
    def start(self, window: int) -> None:
        """Begin with a window."""
        self.begin(window=window)


class MaxAge(Life):
    """What is young enough is kept."""

    aging = True

    @initialize(max_age=st.sampled_from((0.5, 3.0, 100.0)), clock=st.sampled_from((0.0, 1.7e9)))
    def start(self, max_age: float, clock: float) -> None:
        """Begin with a greatest age."""
        self.begin(max_age=max_age)
        self.clock = clock


class HalfLife(Life):
    """Weights decay; gaps of many half-lives change the scale again and again."""

    aging = True

    @initialize(
        half_life=st.sampled_from((0.3, 1.0, 7.0)), clock=st.sampled_from((-50.0, 0.0, 1e9))
    )
    def start(self, half_life: float, clock: float) -> None:
        """Begin with a half-life."""
        self.begin(half_life=half_life)
        self.clock = clock


TestUnlimited = Unlimited.TestCase
"""Without forgetting, every answer of a long random life is the definition's."""

TestWindow = Window.TestCase
"""With a window, every answer of a long random life is the definition's."""

TestMaxAge = MaxAge.TestCase
"""With a greatest age, every answer of a long random life is the definition's."""

TestHalfLife = HalfLife.TestCase
"""With a half-life, every answer of a long random life is the definition's."""
