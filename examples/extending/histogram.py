"""Histogram binning: the share of label 1 in each of ten equal bins of the score."""

from __future__ import annotations

from typing import Any

import numpy as np

from abers.arrays import Floats
from abers.base import Calibrator, Capabilities
from abers.serialization import require

__all__ = ["HistogramBinning"]

BINS = 10


class HistogramBinning(Calibrator[float, int, float, Floats]):
    """The share of label 1 in the bin of a score, with one label of each kind added.

    References
    ----------
    Zadrozny & Elkan (2001), Obtaining calibrated probability estimates from decision trees and
    naive Bayesian classifiers.

    Examples
    --------
    >>> calibrator = HistogramBinning()
    >>> calibrator.learn_many([0.91, 0.94, 0.98], [1, 1, 0])
    >>> calibrator.predict_one(0.95), calibrator.predict_one(0.1)
    (0.6, 0.5)
    """

    capabilities = Capabilities(
        task="binary", answer="probability", weights=False, removal="none", forgetting=()
    )

    def __init__(self) -> None:
        super().__init__()
        self._counts = np.zeros((BINS, 2), np.int64)

    def __len__(self) -> int:
        """Count the observations kept."""
        return int(self._counts.sum())

    def _predict(self, score: float, weight: int, time: float, number: int) -> float:
        negatives, positives = self._counts[_bin(score)].tolist()
        return float((positives + 1) / (negatives + positives + 2))

    def _learn(self, score: float, label: Any, weight: int, time: float, number: int) -> bool:
        self._counts[_bin(score), int(label)] += 1
        return True

    def _save(self) -> bytes:
        return self._counts.astype("<i8").tobytes()

    def _load(self, payload: memoryview) -> None:
        counts = np.frombuffer(payload, "<i8").astype(np.int64)
        require(counts.size == 2 * BINS and bool((counts >= 0).all()), "counts")
        super().__init__()
        self._counts = counts.reshape(BINS, 2)


def _bin(score: float) -> int:
    return int(min(max(score, 0.0) * BINS, BINS - 1))
