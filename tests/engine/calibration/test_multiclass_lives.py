"""Long random lives of calibrators of several classes, one machine a kind and rule of forgetting.

Whatever was learned, removed, refused, saved or restored before, each answer is
that of the definition in fractions, but for rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from tests.engine.cases import GAPS, OPTIONS, aging
from tests.engine.multi_oracle import MultiOracle

from abers import LabelError, OneVsOne, OneVsRest, WeightError
from abers.arrays import LEARN

LABELS = st.sampled_from(("a", "b", "c"))
PARTS = st.sampled_from((0.0, 0.25, 1 / 3, 0.5, 2.0))
SCORES = st.dictionaries(LABELS, PARTS, max_size=3)
ROWS = st.tuples(PARTS, PARTS, PARTS)
WEIGHTS = st.sampled_from((1.0, 1.0, 0.1, 3.0))


class Life(RuleBasedStateMachine):
    """What all live through."""

    kind: type[OneVsRest | OneVsOne]
    options: dict[str, Any]

    def __init__(self) -> None:
        """Begin with nothing kept."""
        super().__init__()
        self.calibrator = self.kind(**self.options, max_classes=4)
        self.oracle = MultiOracle(**self.options)
        self.clock = 0.0

    def when(self, gap: float) -> dict[str, Any]:
        """Return the time a gap after the last, for calibrators that take one."""
        if not aging(self.options):
            return {}
        self.clock += gap
        return {"time": self.clock}

    @rule(scores=SCORES, label=LABELS, weight=WEIGHTS, gap=GAPS)
    def learn(self, scores: dict[Any, float], label: str, weight: float, gap: float) -> None:
        """Learn an observation."""
        when = self.when(gap)
        self.calibrator.learn_one(scores, label, weight=weight, **when)
        self.oracle.learn(scores, label, weight, **when)

    @precondition(lambda self: self.oracle.classes)
    @rule(
        rows=st.lists(
            st.tuples(st.tuples(PARTS, PARTS, PARTS), st.integers(0, 2), GAPS), max_size=5
        )
    )
    def learn_a_batch(self, rows: list[tuple[tuple[float, ...], int, float]]) -> None:
        """Learn rows in one call."""
        classes = self.calibrator.classes
        k, n = len(classes), len(rows)
        numbers = [number % k for _, number, _ in rows]
        scores = np.array([row[:k] for row, _, _ in rows]).reshape(n, k)
        times = [self.when(gap).get("time", 0.0) for _, _, gap in rows]
        given: dict[str, Any] = {"times": times} if aging(self.options) else {}
        self.calibrator.run([LEARN] * n, scores, numbers, **given)
        for row, number, time in zip(scores.tolist(), numbers, times, strict=True):
            when = {"time": time} if aging(self.options) else {}
            self.oracle.learn(dict(zip(classes, row, strict=True)), classes[number], **when)

    @rule(scores=SCORES, weight=WEIGHTS, ahead=st.sampled_from((None, -3.0, 0.0, 2.0, 60.0)))
    def predict(self, scores: dict[Any, float], weight: float, ahead: float | None) -> None:
        """Predict, also as of another time."""
        dated = ahead is not None and aging(self.options)
        when = {"time": self.clock + (ahead or 0.0)} if dated else {}
        answer = self.calibrator.predict_one(scores, weight=weight, **when)
        ask = self.oracle.one_vs_rest if self.kind is OneVsRest else self.oracle.one_vs_one
        if not (scores or self.oracle.classes):
            assert not answer.p
            return
        for predicted, exact in zip(answer, ask(scores, weight, **when), strict=True):
            assert [*predicted] == [*exact]
            assert np.allclose(
                [*predicted.values()], [float(v) for v in exact.values()], 1e-12, 1e-15
            )

    @precondition(lambda self: not self.options and self.oracle.known)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """Remove one of those learned."""
        known = data.draw(st.sampled_from(self.oracle.known))
        self.calibrator.remove_one(known.scores, known.label, weight=known.weight)
        self.oracle.remove(known.scores, known.label, known.weight)

    @rule()
    def refuse(self) -> None:
        """Refuse what cannot be learned, and stay as it was."""
        before = self.calibrator.to_bytes()
        when = {"time": self.clock} if aging(self.options) else {}
        for error, scores, weight in (
            (LabelError, {"v": 1.0, "w": 1.0, "x": 1.0, "y": 1.0, "z": 1.0}, 1.0),
            (WeightError, {"d": 1.0}, -1.0),
        ):
            try:
                self.calibrator.learn_one(scores, "a", weight=weight, **when)
            except error:
                assert self.calibrator.to_bytes() == before
            else:
                raise AssertionError

    @rule()
    def save_and_restore(self) -> None:
        """Go on from the saved form."""
        self.calibrator = self.kind.from_bytes(self.calibrator.to_bytes())

    @rule()
    def count(self) -> None:
        """Count what is kept, and name the classes."""
        assert len(self.calibrator) == len(self.oracle)
        assert self.calibrator.classes == tuple(self.oracle.classes)
        assert self.calibrator.late == self.oracle.stream.late


def lives(kind: type[OneVsRest | OneVsOne], rule_name: str) -> Any:  # noqa: ANN401
    """Make the machine of a kind and a rule of forgetting."""
    name = f"{kind.__name__}{rule_name.title().replace('_', '')}"
    return type(name, (Life,), {"kind": kind, "options": OPTIONS[rule_name]}).TestCase  # type: ignore[attr-defined]


TestRestUnlimited = lives(OneVsRest, "unlimited")
TestRestWindow = lives(OneVsRest, "window")
TestRestMaxAge = lives(OneVsRest, "max_age")
TestRestHalfLife = lives(OneVsRest, "half_life")
TestOneUnlimited = lives(OneVsOne, "unlimited")
TestOneWindow = lives(OneVsOne, "window")
TestOneMaxAge = lives(OneVsOne, "max_age")
TestOneHalfLife = lives(OneVsOne, "half_life")
