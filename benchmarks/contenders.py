"""Ways to the same probabilities: abers on both backends, and its alternatives.

Every contender is as fast as it can be without becoming another algorithm. All predict the same to
the last bits; the benchmark checks that before it starts.
"""

from __future__ import annotations

import warnings
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from scipy.optimize import isotonic_regression
from venn_abers.venn_abers import calc_p0p1, calc_probs

from abers import VennAbers
from abers import reference as _reference
from abers.arrays import LEARN, PREDICT, REMOVE
from benchmarks import rivals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.streams import Floats, Labels


class Contender(Protocol):
    """A calibrator that starts with a bag of observations."""

    def fill(self, scores: Floats, labels: Labels) -> None:
        """Learn the first observations."""

    def prequential(self, scores: Floats, labels: Labels) -> tuple[Floats, Floats]:
        """Predict each observation, then learn it."""

    def unlearn(self, scores: Floats, labels: Labels) -> None:
        """Undo `prequential`; only without a window."""


class _OnBackend(VennAbers):
    """A calibrator that holds its observations in a set of some backend."""

    def __init__(self, window: int, backend: Any = None) -> None:  # noqa: ANN401 - either class
        super().__init__(window=window or None)
        if backend is not None:
            self._held = backend(window)


class Abers:
    """`VennAbers` on a backend, which is changed behind its back to have both in one process."""

    def __init__(self, window: int, backend: Any = None) -> None:  # noqa: ANN401 - either class
        """Make an empty calibrator, on the native core unless another backend is given."""
        self.calibrator = _OnBackend(window, backend)

    def fill(self, scores: Floats, labels: Labels) -> None:
        """Learn the first observations."""
        self.calibrator.learn_many(scores, labels)

    def prequential(self, scores: Floats, labels: Labels) -> tuple[Floats, Floats]:
        """Predict each observation, then learn it, in one call."""
        return self.calibrator.prequential(scores, labels)

    def unlearn(self, scores: Floats, labels: Labels) -> None:
        """Remove what was learned."""
        self.calibrator.run(np.full(len(scores), REMOVE, np.uint8), scores, labels)


class SmartBrute:
    """Two sorted arrays and two isotonic fits a query: six lines of plain Python, and their frame.

    A query with label 1 goes before its ties and one with label 0 behind them: a falling run is
    pooled anyway, so ties are pooled without weights. (Pooling all falling runs before the fits
    was tried: slower up to n = 1e5, and a fifth faster at n = 1e6.)
    """

    def __init__(self, window: int) -> None:
        """Make an empty one; a window of 0 keeps everything."""
        self._scores, self._labels = np.empty(0), np.empty(0)
        self._window = window
        self._arrived: deque[tuple[float, int]] = deque()

    def fill(self, scores: Floats, labels: Labels) -> None:
        """Sort the first observations, among ties label 1 first."""
        order = np.lexsort((-labels.astype(np.int64), scores))
        self._scores, self._labels = scores[order], labels[order].astype(np.float64)
        if self._window:
            self._arrived.extend(zip(scores.tolist(), labels.tolist(), strict=True))

    def prequential(self, scores: Floats, labels: Labels) -> tuple[Floats, Floats]:
        """Predict each observation, then learn it."""
        predicted = np.empty((2, len(scores)))
        for i, (score, label) in enumerate(zip(scores.tolist(), labels.tolist(), strict=True)):
            predicted[:, i] = self.predict_one(score)
            self.learn_one(score, label)
        return predicted[0], predicted[1]

    def predict_one(self, score: float) -> tuple[float, float]:
        """Fit twice."""
        behind = int(np.searchsorted(self._scores, score, "right"))
        before = int(np.searchsorted(self._scores, score))
        return self._fit(behind, 0.0), self._fit(before, 1.0)

    def learn_one(self, score: float, label: int) -> None:
        """Insert an observation, and drop what leaves the window."""
        at = int(np.searchsorted(self._scores, score, "left" if label else "right"))
        self._scores = np.insert(self._scores, at, score)
        self._labels = np.insert(self._labels, at, label)
        if self._window:
            self._arrived.append((score, label))
            self._drop(*self._arrived.popleft())

    def unlearn(self, scores: Floats, labels: Labels) -> None:
        """Delete what was inserted."""
        for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
            self._drop(score, label)

    def _fit(self, at: int, label: float) -> float:
        return float(isotonic_regression(np.insert(self._labels, at, label)).x[at])

    def _drop(self, score: float, label: int) -> None:
        at = int(np.searchsorted(self._scores, score, "left" if label else "right"))
        at -= 0 if label else 1
        self._scores = np.delete(self._scores, at)
        self._labels = np.delete(self._labels, at)


class BruteByScore:
    """Two isotonic fits a query over the distinct scores, each with its counts: best with ties."""

    def __init__(self, window: int) -> None:
        """Make an empty one, which keeps everything."""
        if window:
            msg = "it has no window"
            raise ValueError(msg)
        self._scores: Floats = np.empty(0)
        self._n: Floats = np.empty(0)
        self._k: Floats = np.empty(0)

    def fill(self, scores: Floats, labels: Labels) -> None:
        """Count the first observations by score."""
        self._scores, which = np.unique(scores, return_inverse=True)
        self._n = np.bincount(which).astype(np.float64)
        self._k = np.bincount(which, labels).astype(np.float64)

    def prequential(self, scores: Floats, labels: Labels) -> tuple[Floats, Floats]:
        """Fit twice, then count."""
        predicted = np.empty((2, len(scores)))
        for i, (score, label) in enumerate(zip(scores.tolist(), labels.tolist(), strict=True)):
            at = self._place(score)
            predicted[:, i] = self._fit(at, 0), self._fit(at, 1)
            self._count(at, label)
        return predicted[0], predicted[1]

    def unlearn(self, scores: Floats, labels: Labels) -> None:
        """Take back what was counted."""
        places, kept = np.searchsorted(self._scores, scores), len(self._scores)
        self._n -= np.bincount(places, minlength=kept)
        self._k -= np.bincount(places, labels, kept)
        some = self._n > 0
        self._scores, self._n, self._k = self._scores[some], self._n[some], self._k[some]

    def _place(self, score: float) -> int:
        at = int(np.searchsorted(self._scores, score))
        if at == len(self._scores) or self._scores[at] != score:
            self._scores = np.insert(self._scores, at, score)
            self._n, self._k = np.insert(self._n, at, 0.0), np.insert(self._k, at, 0.0)
        return at

    def _count(self, at: int, label: int, count: int = 1) -> None:
        self._n[at] += count
        self._k[at] += label * count

    def _fit(self, at: int, label: int) -> float:
        self._count(at, label)
        fitted = float(isotonic_regression(self._k / self._n, weights=self._n).x[at])
        self._count(at, label, -1)
        return fitted


class Package:
    """The package venn-abers by its own inner functions, which spare it the class around them.

    Its fit (`calc_p0p1`) holds for any number of queries, but every learned label makes another
    necessary. It sorts by itself, and is no faster on what is sorted.
    """

    def __init__(self, window: int) -> None:
        """Make an empty one; a window of 0 keeps everything."""
        self._rows, self._labels = np.empty((0, 2)), np.empty(0)
        self._window = window

    def fill(self, scores: Floats, labels: Labels) -> None:
        """Keep the first observations."""
        self._rows = np.column_stack([1 - scores, scores])
        self._labels = labels.astype(np.float64)

    def prequential(self, scores: Floats, labels: Labels) -> tuple[Floats, Floats]:
        """Fit, look the query up, then append."""
        predicted = np.empty((2, len(scores)))
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # 0 / 0 in its fit
            for i, row in enumerate(np.column_stack([1 - scores, scores])):
                fitted = calc_p0p1(self._rows, self._labels)
                predicted[:, i] = calc_probs(*fitted, row[np.newaxis])[1][0]
                self._rows = np.vstack([self._rows, row])[-self._window :]
                self._labels = np.append(self._labels, labels[i])[-self._window :]
        return predicted[0], predicted[1]

    def unlearn(self, scores: Floats, labels: Labels) -> None:  # noqa: ARG002 - they are the last
        """Cut off what was appended."""
        self._rows = self._rows[: -len(scores)]
        self._labels = self._labels[: -len(scores)]


class Compiled(rivals.Rival):
    """A container of rivals.cpp as a contender."""

    def prequential(self, scores: Floats, labels: Labels) -> tuple[Floats, Floats]:
        """Predict each observation, then learn it, in one call."""
        steps = np.tile(np.array([PREDICT, LEARN], np.uint8), len(scores))
        p0, p1 = self.run(steps, np.repeat(scores, 2), np.repeat(labels, 2))
        return p0[::2], p1[::2]

    def unlearn(self, scores: Floats, labels: Labels) -> None:
        """Remove what was learned."""
        self.run(np.full(len(scores), REMOVE, np.uint8), scores, labels)


NATIVE, REFERENCE, BRUTE = "abers native", "abers reference", "smart brute"
BY_SCORE = "smart brute by score"
PAVA, PACKAGE = "batch PAVA in C++", "venn-abers"

MAKERS: Mapping[str, Callable[[int], Contender]] = {
    NATIVE: Abers,
    PAVA: lambda window: Compiled(rivals.PAVA, window),
    BRUTE: SmartBrute,
    REFERENCE: lambda window: Abers(window, cast("Any", _reference.CalibrationSet)),
    PACKAGE: Package,
}


def contenders() -> dict[str, Callable[[int], Contender]]:
    """List those that can take part here, each made from the size of its window (0: none)."""
    missing = () if rivals.library() else (PAVA,)
    return {name: make for name, make in MAKERS.items() if name not in missing}
