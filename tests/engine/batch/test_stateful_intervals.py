"""Long random lives of calibrators that answer with a prediction interval.

After every step a calibrator is equal to a new one that learned what is kept, and predicts the
same, whatever was predicted, learned, removed, forgotten, refused, saved or restored before.
"""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from abers import InputError
from abers.batch import ConformalInterval, SelfCalibratingInterval

NUMBERS = st.integers(0, 5).map(lambda k: k / 2.0)


class IntervalLife(RuleBasedStateMachine):
    """What both calibrators live through, with and without a window."""

    made: Any

    @initialize(window=st.sampled_from((None, 1, 4)))
    def begin(self, window: int | None) -> None:
        """Begin with nothing kept."""
        self.window = window
        self.calibrator = self.made(0.6, window=window)
        self.rows: list[tuple[float, float]] = []

    @rule(score=NUMBERS, label=NUMBERS)
    def learn(self, score: float, label: float) -> None:
        """Learn an observation."""
        self.calibrator.learn_one(score, label)
        self.keep([(score, label)])

    @rule(rows=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=4))
    def learn_many(self, rows: list[tuple[float, float]]) -> None:
        """Learn a batch."""
        self.calibrator.learn_many(*zip(*rows, strict=True))
        self.keep(rows)

    @rule(rows=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=4))
    def run(self, rows: list[tuple[float, float]]) -> None:
        """Predict and learn in turn, in one call."""
        found = self.calibrator.prequential(*zip(*rows, strict=True))
        for at, (score, label) in enumerate(rows):
            self.agree(self.fresh().predict_one(score), [column[at] for column in found])
            self.keep([(score, label)])

    @precondition(lambda self: self.rows and not self.window)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """Remove what is kept."""
        row = data.draw(st.sampled_from(self.rows))
        self.calibrator.remove_one(*row)
        self.rows.remove(row)

    @rule(score=NUMBERS)
    def refuse(self, score: float) -> None:
        """Refuse a batch with a bad row, and a removal of what is not there."""
        with pytest.raises(InputError):
            self.calibrator.learn_many([score, score], [1.0, math.nan])
        with pytest.raises(InputError):
            self.calibrator.remove_one(score, 99.0)

    @rule()
    def restore(self) -> None:
        """Go on with what was saved."""
        self.calibrator = pickle.loads(pickle.dumps(self.calibrator))  # noqa: S301 - own bytes

    @rule(scores=st.lists(NUMBERS, min_size=1, max_size=3))
    def predict(self, scores: list[float]) -> None:
        """Predict one by one and together, which changes nothing."""
        fresh, many = self.fresh(), self.calibrator.predict_many(scores)
        for at, score in enumerate(scores):
            self.agree(self.calibrator.predict_one(score), fresh.predict_one(score))
            self.agree(fresh.predict_one(score), [column[at] for column in many])

    @invariant()
    def equals_a_new_one(self) -> None:
        """Compare with a new calibrator that learned what is kept."""
        assert self.calibrator == self.fresh()
        assert len(self.calibrator) == len(self.rows)

    def keep(self, rows: list[tuple[float, float]]) -> None:
        """Note what is kept."""
        self.rows = [*self.rows, *rows][-(self.window or len(self.rows) + len(rows)) :]

    def fresh(self) -> Any:  # noqa: ANN401
        """Return a new calibrator that learned what is kept."""
        one = self.made(0.6, window=self.window)
        for row in self.rows:
            one.learn_one(*row)
        return one

    @staticmethod
    def agree(one: Any, other: Any) -> None:  # noqa: ANN401
        """Compare two predictions, to the bit."""
        np.testing.assert_array_equal(np.array(one), np.array(other))


class ConformalLife(IntervalLife):
    """The life of an interval around a prediction."""

    made = ConformalInterval


class SelfCalibratingLife(IntervalLife):
    """The life of a self-calibrating interval."""

    made = SelfCalibratingInterval


LONG = settings(stateful_step_count=25, max_examples=40, deadline=None)
TestConformalInterval = ConformalLife.TestCase
TestConformalInterval.settings = LONG
TestSelfCalibratingInterval = SelfCalibratingLife.TestCase
TestSelfCalibratingInterval.settings = LONG
