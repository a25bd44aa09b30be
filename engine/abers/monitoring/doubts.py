"""Doubts about the columns of a stream: labels and scores that are probably not what they seem."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers.monitoring.scores import PrequentialScores

__all__ = ["label_doubts", "score_doubts"]

_LEAST = 20  # labels: with fewer, one class may well be missing
_Z = 5.0  # standard errors of a correlation, which chance does not reach


def label_doubts(scores: PrequentialScores) -> Iterator[str]:
    """Yield a sentence if all labels are the same.

    Examples
    --------
    >>> from abers.monitoring import PrequentialScores
    >>> scores = PrequentialScores()
    >>> scores.update_many([0.25] * 30, [0] * 30)
    >>> [*label_doubts(scores)]
    ['None of the 30 labels is 1: see that the right column is read, and which value means 1.']
    """
    ones = sum(round(one.share * one.labels) for one in scores.bins() if one.labels)
    if scores.count < _LEAST or 0 < ones < scores.count:
        return
    what = "All" if ones else "None of the"
    is_one = "are 1" if ones else "is 1"
    remedy = "see that the right column is read, and which value means 1."
    yield f"{what} {scores.count:,} labels {is_one}: {remedy}"


def score_doubts(scores: PrequentialScores) -> Iterator[str]:
    """Yield a sentence if scores are only 0 and 1, or if they fall where they should rise.

    Examples
    --------
    >>> from abers.monitoring import PrequentialScores
    >>> scores = PrequentialScores()
    >>> scores.update_many([0.25, 0.75] * 50, [1, 0] * 50)
    >>> [*score_doubts(scores)]
    ['Label 1 is rarer where scores are higher. Are these of label 0? Then give 1 - p.']
    """
    if scores.count < _LEAST:
        return
    there = [one for one in scores.bins() if one.labels]
    if all(one.forecast in {0.0, 1.0} for one in there):
        yield "All scores are 0 or 1. Are these decisions? Then give the probabilities instead."
    if _z(np.array(there)) < -_Z:
        yield "Label 1 is rarer where scores are higher. Are these of label 0? Then give 1 - p."


def _z(bins: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    """Return the correlation of forecasts and labels, in standard errors; by mean in each bin."""
    forecasts, shares, counts = bins.T
    n = counts.sum()
    mean, share = counts @ forecasts / n, counts @ shares / n
    covariance = counts @ ((forecasts - mean) * (shares - share)) / n
    spread = counts @ (forecasts - mean) ** 2 / n * share * (1.0 - share)
    return float(covariance / math.sqrt(spread / n)) if spread > 0.0 else 0.0
