"""What else turns scores into probabilities on a stream of two classes.

All see the same scores, and learn from each label when it comes. Every forecast is clipped to
between 1e-6 and 1 less that, as those of protected calibrators are.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from abers import VennAbers
from abers.arrays import PREDICT
from abers.calibration import BetaCalibration, Isotonic, Platt, log_merge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.papers.streams_steps import Steps

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = [
    "HALF_LIFE",
    "REFITTED",
    "WINDOWS",
    "OnlinePlatt",
    "Rival",
    "clipped",
    "drawn",
    "ran",
    "rivals",
    "window_name",
]

WINDOWS = 100, 300, 1_000, 3_000
"""Labels that an IVAP keeps."""
HALF_LIFE = 3_000.0
"""Half-life of the shrunk IVAP, in predictions."""
REFITTED = 1_000
"""Labels of a refit."""

_CLIP = 1e-6
_SHRINK = 30.0  # labels that the raw probability counts as
_NARROWEST = 1e-9
_AFTER = 0.25  # the share of them after which it is made
_FAR = 8.0  # log odds that a stacker sees


def clipped(p: Floats) -> Floats:
    """Keep probabilities away from 0 and 1."""
    return np.clip(p, _CLIP, 1.0 - _CLIP)


def drawn(p0: Floats, p1: Floats, raw: Floats) -> Floats:
    """Merge intervals for the log loss, and draw them to raw where they are wide."""
    evidence = 1.0 / np.maximum(p1 - p0, _NARROWEST) - 1.0
    found: Floats = (evidence * log_merge(p0, p1) + _SHRINK * raw) / (evidence + _SHRINK)
    return found


def window_name(labels: int) -> str:
    """Name the IVAP that keeps so many labels."""
    return f"IVAP, {labels:,}"


def rivals(scores: Floats, y: Integers, order: Steps) -> dict[str, Floats]:
    """Forecast from scores in log odds by each rival."""
    raw = clipped(expit(scores))
    row = order.rows
    at = order.kinds == PREDICT

    def fitted(kind: Platt | Isotonic | BetaCalibration, of: Floats) -> Floats:
        p: Floats = kind.run(order.kinds, of[row], y[row])[at]
        return p

    def ivap(window: int | None = None) -> Floats:
        found = VennAbers(window=window).run(order.kinds, scores[row], y[row])
        return log_merge(found.p0[at], found.p1[at])

    times = row.astype(np.float64)
    recent = VennAbers(half_life=HALF_LIFE).run(order.kinds, scores[row], y[row], times=times)
    odds = logit(raw)
    line = OnlinePlatt(odds)
    found = {"raw": raw, "IVAP": ivap()}
    found |= {window_name(labels): ivap(labels) for labels in WINDOWS}
    found |= {
        "IVAP, shrunk": drawn(recent.p0[at], recent.p1[at], raw),
        "OPS": ran(line, y, order),
        "TOPS": ran(Tracking(OnlinePlatt(odds)), y, order),
        "temperature": ran(OnlinePlatt(odds, level=False), y, order),
        "jumper": ran(Jumper(raw), y, order),
        "Platt, 1,000": fitted(Platt(window=REFITTED, refit=_AFTER), scores),
        "isotonic, 1,000": fitted(Isotonic(window=REFITTED), scores),
        "beta, 1,000": fitted(BetaCalibration(window=REFITTED, refit=_AFTER), raw),
    }
    found = {name: clipped(p) for name, p in found.items()}
    parts = np.column_stack([logit(found[name]) for name in ("raw", "IVAP", "OPS")])
    return found | {"stacker": clipped(ran(Stacker(parts), y, order))}


class Rival(Protocol):
    """A calibrator of a stream that knows its scores by their rows."""

    def forecast(self, row: int) -> Any:  # noqa: ANN401 - a number, or some
        """Return the probability of label 1, or what else it forecasts."""

    def learn(self, row: int, label: Any) -> None:  # noqa: ANN401 - of any kind
        """Learn a label."""


def ran(rival: Rival, y: NDArray[Any], order: Steps) -> Floats:
    """Forecast each row of a stream."""
    found, labels = [None] * len(y), y.tolist()
    for kind, row in zip(order.kinds.tolist(), order.rows.tolist(), strict=True):
        if kind == PREDICT:
            found[row] = rival.forecast(row)
        else:
            rival.learn(row, labels[row])
    return np.array(found, np.float64)


class OnlinePlatt:
    """Online Platt scaling by the online Newton step, or its slope alone: temperature scaling.

    Gupta & Ramdas (2023), Online Platt scaling with calibeating: gamma = .1, rho = 100, and a line
    of norm 100 at most. It begins at raw.
    """

    _rate, _first, _most = 10.0, 0.01, 100.0  # 1 / gamma, 1 / rho

    def __init__(self, odds: Floats, *, level: bool = True) -> None:
        """Begin from the log odds of all rows."""
        self._odds = odds.tolist()
        self._one = 1.0 if level else 0.0
        self._slope, self._level = 1.0, 0.0
        self._p00, self._p01, self._p11 = self._first, 0.0, self._first  # inverse of the curvature

    def forecast(self, row: int) -> float:
        """Return the probability of label 1."""
        return _logistic(self._slope * self._odds[row] + self._level * self._one)

    def learn(self, row: int, label: int) -> None:
        """Take a step along the gradient, then keep the norm."""
        error = self.forecast(row) - label
        g0, g1 = error * self._odds[row], error * self._one
        a, b = self._p00 * g0 + self._p01 * g1, self._p01 * g0 + self._p11 * g1
        whole = 1.0 + g0 * a + g1 * b
        self._p00 -= a * a / whole
        self._p01 -= a * b / whole
        self._p11 -= b * b / whole
        slope = self._slope - self._rate * (self._p00 * g0 + self._p01 * g1)
        level = self._level - self._rate * (self._p01 * g0 + self._p11 * g1)
        shorter = min(1.0, self._most / math.hypot(slope, level)) if slope or level else 1.0
        self._slope, self._level = slope * shorter, level * shorter


class Tracking:
    """The share of label 1 among earlier labels with a near forecast by online Platt scaling.

    Gupta & Ramdas (2023), "tracking": ten equal bins, in each its middle counts as one label.
    """

    _bins = 10

    def __init__(self, line: OnlinePlatt) -> None:
        """Begin without labels."""
        self._line = line
        self._bin: dict[int, int] = {}  # of the rows that wait
        self._labels = [1.0] * self._bins
        self._ones = [(k + 0.5) / self._bins for k in range(self._bins)]

    def forecast(self, row: int) -> float:
        """Return the probability of label 1."""
        k = min(int(self._line.forecast(row) * self._bins), self._bins - 1)
        self._bin[row] = k
        return self._ones[k] / self._labels[k]

    def learn(self, row: int, label: int) -> None:
        """Count the label in the bin of its forecast."""
        k = self._bin.pop(row)
        self._labels[k] += 1.0
        self._ones[k] += label
        self._line.learn(row, label)


class Jumper:
    """The composite jumper: log odds to a + b times log odds, and nature jumps among nine of these.

    Vovk, Petej & Gammerman (2021), Protected probabilistic classification, without a passive part.
    """

    _jumps = np.array([[1e-2], [1e-3], [1e-4]])

    def __init__(self, raw: Floats) -> None:
        """Begin from the raw probabilities of all rows."""
        odds = logit(raw)[:, np.newaxis, np.newaxis]
        maps = np.array([[1.0], [0.5], [2.0]]) * odds + np.array([[0.0, -1.0, 1.0]])
        self._maps = expit(maps.reshape(len(raw), 1, -1))
        self._weights = np.full((3, 9), 1.0 / 27.0)

    def forecast(self, row: int) -> float:
        """Return the probability of label 1."""
        return float((self._weights * self._maps[row]).sum())

    def learn(self, row: int, label: int) -> None:
        """Weigh the maps by their probability of the label, then let nature jump."""
        maps = self._maps[row]
        weights = self._weights * (maps if label else 1.0 - maps)
        total = weights.sum(axis=1, keepdims=True)
        weights += self._jumps * (total / 9.0 - weights)
        self._weights = np.maximum(weights / total.sum(), 1e-90)


class Stacker:
    """Logistic regression on log odds of other forecasts, fitted anew to the latest labels."""

    _latest, _every = 3_000, 250  # labels

    def __init__(self, parts: Floats) -> None:
        """Begin with the mean of the log odds."""
        self._parts = np.clip(parts, -_FAR, _FAR)
        self._line, self._level = np.full(parts.shape[1], 1.0 / parts.shape[1]), 0.0
        self._came: deque[tuple[int, int]] = deque(maxlen=self._latest)
        self._labels = 0

    def forecast(self, row: int) -> float:
        """Return the probability of label 1."""
        return _logistic(float(self._parts[row] @ self._line) + self._level)

    def learn(self, row: int, label: int) -> None:
        """Keep the label, and fit now and then."""
        self._came.append((row, label))
        self._labels += 1
        if self._labels % self._every == 0:
            rows, labels = zip(*self._came, strict=True)
            if len({*labels}) > 1:
                model = LogisticRegression(solver="newton-cholesky").fit(
                    self._parts[[*rows]], labels
                )
                self._line, self._level = model.coef_[0], float(model.intercept_[0])


def _logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-min(max(x, -700.0), 700.0)))
