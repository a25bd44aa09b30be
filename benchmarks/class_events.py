"""Several classes, one event at a time: predict, then learn the label.

venn-abers refits after each label. Smart brute has a binary calibrator a class, as one-vs-rest has.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from venn_abers.venn_abers import predict_proba_prefitted_va

from benchmarks.contenders import BRUTE, PACKAGE, SmartBrute
from benchmarks.multiclass import KINDS, ONE, REST, TOLERANCE, K, drawn
from benchmarks.page import Key, Section, size, table
from benchmarks.timing import Spread, in_turns, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.multiclass import Floats, Kind, Labelled
    from benchmarks.plan import Plan

    Predict = Callable[[], list[Floats]]

CLASS_EVENTS = "class events"
_SIZES = (1_000, 10_000)
_EVENTS, _FEW = 500, 5  # events in a turn; of venn-abers
_ROUNDS = 3


class Ours:
    """A calibrator of abers with n observations."""

    def __init__(self, kind: Kind, stream: Labelled, n: int) -> None:
        self._calibrator = kind(range(K))
        self._calibrator.learn_many(stream.scores[:n], stream.labels[:n])

    def step(self, scores: Floats, label: int) -> Floats:
        """Predict, then learn."""
        given = dict(enumerate(scores.tolist()))
        predicted = self._calibrator.predict_one(given)
        self._calibrator.learn_one(given, label)
        return np.array([predicted.p[k] for k in range(K)])


class Brute:
    """Smart brute for each class, normalised."""

    def __init__(self, stream: Labelled, n: int) -> None:
        self._classes = [SmartBrute(0) for _ in range(K)]
        for k, one in enumerate(self._classes):
            one.fill(np.ascontiguousarray(stream.scores[:n, k]), stream.labels[:n] == k)

    def step(self, scores: Floats, label: int) -> Floats:
        """Predict, then learn."""
        merged = []
        for k, (one, score) in enumerate(zip(self._classes, scores.tolist(), strict=True)):
            p0, p1 = one.predict_one(score)
            one.learn_one(score, int(label == k))
            merged.append(p1 / (1 - p0 + p1))
        return np.array(merged) / sum(merged)


class Package:
    """venn-abers, which takes all labels again for each prediction."""

    def __init__(self, words: str, stream: Labelled, n: int) -> None:
        self._words, self._scores, self._labels = words, stream.scores[:n], stream.labels[:n]

    def step(self, scores: Floats, label: int) -> Floats:
        """Fit and predict, then append."""
        row = scores[np.newaxis]
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # 0 / 0 in its fit
            found = predict_proba_prefitted_va(self._scores, self._labels, row, va_tpe=self._words)
        self._scores = np.vstack([self._scores, row])
        self._labels = np.append(self._labels, label)
        p: Floats = found[0][0]
        return p


def contenders(stream: Labelled, n: int) -> dict[str, Ours | Brute | Package]:
    """Return all, each with n observations."""
    return {
        REST: Ours(KINDS[REST], stream, n),
        ONE: Ours(KINDS[ONE], stream, n),
        f"{BRUTE}, {REST}": Brute(stream, n),
        f"{PACKAGE}, {REST}": Package("one_vs_rest", stream, n),
        f"{PACKAGE}, {ONE}": Package("one_vs_one", stream, n),
    }


def class_events(plan: Plan) -> Section:
    """Measure all contenders in turns, after they have predicted the same."""
    values: dict[Key, Spread] = {}
    sizes = [n for n in _SIZES if n <= max(plan.sizes)]
    for n in sizes:
        stream = drawn(n + _EVENTS * (_ROUNDS + 2), K)
        taking = {name: _Turn(one, stream, n) for name, one in contenders(stream, n).items()}
        _agree({name: turn.first() for name, turn in taking.items()})
        found = in_turns(_ROUNDS, taking)
        values |= {(CLASS_EVENTS, name, n): spread for name, spread in found.items()}
    names = dict.fromkeys(name for _, name, _ in values)
    rows = [[name, *(values[CLASS_EVENTS, name, n] for n in sizes)] for name in names]
    body = (
        f"{K} classes, `predict_one` and `learn_one` of one observation after the other; µs an"
        f" observation. Smart brute has a binary calibrator a class; venn-abers refits after each"
        f" label. The probabilities of a system agree to {TOLERANCE:.0e}.\n\n"
        + table(["µs an observation", *map(size, sizes)], rows)
    )
    return Section("Several classes, one at a time", body, values)


class _Turn:
    """A contender that takes the events after its n observations, some in each turn."""

    def __init__(self, one: Ours | Brute | Package, stream: Labelled, n: int) -> None:
        self._one, self._stream, self._next = one, stream, n
        self._events = _FEW if isinstance(one, Package) else _EVENTS

    def first(self) -> Floats:
        """Take the first event; return its probabilities."""
        return self._step()

    def __call__(self) -> float:
        """Take a turn; microseconds an event."""
        taken = seconds(lambda: [self._step() for _ in range(self._events)])
        return 1e6 * taken / self._events

    def _step(self) -> Floats:
        scores, label = self._stream.scores[self._next], int(self._stream.labels[self._next])
        self._next += 1
        return self._one.step(scores, label)


def _agree(first: dict[str, Floats]) -> None:
    for name, found in first.items():
        ours = first[ONE if name.endswith(ONE) else REST]
        if np.abs(found - ours).max() > TOLERANCE:
            msg = f"{name} predicts {found}, and abers {ours}"
            raise ArithmeticError(msg)
