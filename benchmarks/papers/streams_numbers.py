"""Calibrators on streams of numbers: predictive distributions, and how they are recalibrated.

As in `streams_classes`; what is calibrated are the normal predictions of one base.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from abers.arrays import LEARN, PREDICT
from abers.batch import BetaCDF, GPBeta, QuantileCalibration
from abers.learners.gaussian import BayesianLinear
from abers.regression import IVAPR
from abers.regression.scores import LEVELS, pinball
from benchmarks.papers.streams_data import RECENT, numbers
from benchmarks.papers.streams_steps import equal, steps

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.papers.runner import Spec
    from benchmarks.papers.streams_steps import Steps

    Floats = NDArray[np.float64]

__all__ = ["regressed"]

PERCENT = np.arange(1, 100) / 100
_FIRST, _GROWN = 100, 1.05  # labels of the first fit; more of them for another one
_BLOCK = 100  # labels between fits of GP-Beta


def fitted(x: Floats, y: Floats, order: Steps) -> tuple[Floats, Floats, int]:
    """Predict normal distributions by a linear model of earlier labels; the first row of them.

    It is fitted anew when a label more is known, and 5 % more.
    """
    mean, std = np.full((2, len(y)), np.nan)
    known, came, wanted = np.zeros(len(y), np.bool_), 0, _FIRST
    fits: list[tuple[int, BayesianLinear]] = []
    for kind, row in zip(order.kinds.tolist(), order.rows.tolist(), strict=True):
        if kind == LEARN:
            known[row], came = True, came + 1
        elif came >= wanted:
            fits.append((row, BayesianLinear().fit(x[known], y[known])))
            wanted = max(int(came * _GROWN), came + 1)
    ends = [*(row for row, _ in fits[1:]), len(y)]
    for (row, model), until in zip(fits, ends, strict=True):
        mean[row:until], std[row:until] = model.predict(x[row:until])
    first = fits[0][0]
    return mean[first:], std[first:], first


def regressed(folder: Path, spec: Spec) -> dict[str, Any]:
    """Score all calibrators on a stream of numbers."""
    stream, delay = numbers(folder, spec["data"]), spec["delay"]
    mean, std, first = fitted(stream.x, stream.y, steps(equal(delay), stream.y))
    y = stream.y[first:]
    base = norm(mean[:, np.newaxis], std[:, np.newaxis])
    pit = norm.cdf(y, mean, std)
    times = np.arange(len(y), dtype=np.float64)

    def ivapr(**forgetting: Any) -> Floats:  # noqa: ANN401 - its options
        return conformed(IVAPR(support=stream.support, **forgetting), mean, y, times, delay)

    found = {
        "the learner": base.ppf(PERCENT),
        "quantile calibration": mapped(QuantileCalibration(RECENT), mean, std, pit, delay),
        "beta CDF": mapped(BetaCDF(RECENT), mean, std, pit, delay),
        "GP-Beta": blocks(mean, std, y, delay),
        "IVAPR": ivapr(),
        "IVAPR, window": ivapr(window=RECENT),
        "IVAPR, half-life": ivapr(half_life=float(RECENT)),
    }
    return {name: measured(np.clip(each, *stream.support), y) for name, each in found.items()}


def conformed(held: IVAPR, mean: Floats, y: Floats, times: Floats, delay: int) -> Floats:
    """Predict the quantiles of each row, the label of the row `delay` before it being known."""
    order = steps(equal(delay), y)
    row = order.rows
    when = times[row] if held.half_life is not None else None
    said = held.run(order.kinds, mean[row], y[row], levels=PERCENT, times=when)
    merged: Floats = said.merged[order.kinds == PREDICT]
    return merged


def mapped(
    held: QuantileCalibration | BetaCDF, mean: Floats, std: Floats, pit: Floats, delay: int
) -> Floats:
    """Predict the quantiles of each row by one map of the CDF for all."""
    found = np.empty((len(pit), len(PERCENT)))
    for i in range(len(pit)):
        if len(held):
            found[i] = held.distribution(norm(mean[i], std[i])).quantile(PERCENT)
        else:
            found[i] = norm.ppf(PERCENT, mean[i], std[i])
        if i >= delay:
            held.learn_one(float(pit[i - delay]))
    return found


def blocks(mean: Floats, std: Floats, y: Floats, delay: int) -> Floats:
    """Predict the quantiles of each row by GP-Beta, fitted to the last labels after each block."""
    held = GPBeta(RECENT, inducing=16, steps=300, refit=0.1, seed=0)
    found, known = np.empty((len(y), len(PERCENT))), 0
    for start in range(0, len(y), _BLOCK):
        part = slice(start, min(start + _BLOCK, len(y)))
        found[part] = held.quantiles_many(mean[part], std[part], PERCENT)
        learned = max(part.stop - delay, 0)
        held.learn_many(mean[known:learned], std[known:learned], y[known:learned])
        known = max(known, learned)
    return found


def measured(quantiles: Floats, y: Floats) -> dict[str, float]:
    """Score quantiles: twice the mean pinball loss of 99 of them is the CRPS, nearly."""
    shown = quantiles[:, np.searchsorted(PERCENT, np.array(LEVELS) - 1e-9)]
    inside = {
        f"{share} %": (quantiles[:, 49 - share // 2] <= y) & (y <= quantiles[:, 49 + share // 2])
        for share in (50, 80, 90)
    }
    return {
        "CRPS": 2.0 * float(pinball(quantiles, y, PERCENT).mean()),
        "pinball": float(pinball(shown, y).mean()),
        **{name: float(each.mean()) for name, each in inside.items()},
    }
