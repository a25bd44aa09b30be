"""Calibrators on data streams: what they change, and what forgetting does.

Governing rule: every forecast is made before its label, and before the labels of the `delay`
observations before it; all calibrators of a stream see the same scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from river import datasets
from scipy.special import expit
from scipy.stats import norm
from sklearn.linear_model import SGDClassifier

from abers import VennAbers
from abers.calibration import (
    BetaCalibration,
    CrossVennAbers,
    Isotonic,
    Platt,
    cross_log_merge,
    log_merge,
)
from abers.learners.gaussian import BayesianLinear
from abers.monitoring import PrequentialScores, corp
from abers.regression import IVAPR, BetaCDF, GPBeta, QuantileCalibration
from abers.regression.scores import LEVELS, pinball
from benchmarks.papers import streams_page
from benchmarks.papers.paper import Paper
from benchmarks.papers.runner import Task
from benchmarks.papers.tabular import labelled, matrix

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.papers.runner import Spec

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["PAPER"]

SETS = {
    "Elec2": "elec2",
    "Bike sharing": "bike_sharing_hour",
    "Insects": "insects_gradual_balanced",
    "Phishing": "phishing_websites46",
    "Banana": "banana",
    "MNIST": "mnist",
}
RECENT = 1_000  # labels: windows and half-lives
DELAYS = 0, 1_000
_FOLDS = 5
_PIXEL = 255.0
_NOT_KNOWN = ("instant", "dteday", "casual", "registered")  # numbers of rows, parts of the label
_MEDIAN = 142.0  # bicycles an hour


# Two classes


def labels_of(folder: Path, data: str) -> tuple[Floats, Integers]:
    """Read the features of a stream in their order, and which labels are 1."""
    if data == "Bike sharing":
        x, bikes = matrix(folder, SETS[data], _NOT_KNOWN)
        return x, (bikes > _MEDIAN).astype(np.int64)
    x, y = labelled(folder, SETS[data])
    if data == "MNIST":
        y = y % 2
    if data == "Insects":
        y = (y == np.max(y)).astype(np.int64)
    return x, y


def standardised(x: Floats) -> Floats:
    """Put each row on the scale of the rows up to it."""
    count = np.arange(1, len(x) + 1)[:, np.newaxis]
    mean = x.cumsum(axis=0) / count
    spread = np.sqrt(np.maximum((x**2).cumsum(axis=0) / count - mean**2, 0.0))
    return (x - mean) / np.where(spread > 1e-9 * np.abs(mean), spread, 1.0)


def scored(x: Floats, y: Integers, delay: int, learns: NDArray[np.bool_]) -> Floats:
    """Score each observation, as log odds, by an online logistic regression of earlier labels."""
    model = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.01, random_state=0)
    scores = np.zeros(len(y))
    for i in range(len(y)):
        if hasattr(model, "coef_"):
            scores[i] = x[i] @ model.coef_[0] + model.intercept_[0]
        j = i - delay
        if j >= 0 and learns[j]:
            model.partial_fit(x[j : j + 1], y[j : j + 1], classes=[0, 1])
    return scores


def classified(folder: Path, spec: Spec) -> dict[str, Any]:
    """Judge all calibrators on a stream of two classes."""
    x, y = labels_of(folder, spec["data"])
    x = x / _PIXEL if spec["data"] == "MNIST" else standardised(x)
    if spec["rows"] is not None:
        x, y = x[: spec["rows"]], y[: spec["rows"]]
    delay, everything = spec["delay"], np.ones(len(y), bool)
    scores = scored(x, y, delay, everything)
    fold = np.arange(len(y)) % _FOLDS
    others = [scored(x, y, delay, fold != k) for k in range(_FOLDS)]
    found = forecasts(scores, np.column_stack(others), y, delay)
    return {name: judged(p, y) for name, p in found.items()}


def forecasts(scores: Floats, others: Floats, y: Integers, delay: int) -> dict[str, Floats]:
    """Forecast by each calibrator; `others` are the scores of models that left out a fold each."""
    n = len(y)
    raw = expit(scores)
    times = np.arange(n, dtype=np.float64)
    cross = CrossVennAbers(folds=_FOLDS)
    return {
        "raw": raw,
        "Platt": Platt().prequential(scores, y, delay=delay),
        "isotonic": Isotonic().prequential(scores, y, delay=delay),
        "beta": BetaCalibration().prequential(raw, y, delay=delay),
        "IVAP": log_merge(*VennAbers().prequential(scores, y, delay=delay)),
        "IVAP, window": log_merge(*VennAbers(window=RECENT).prequential(scores, y, delay=delay)),
        "IVAP, half-life": log_merge(
            *VennAbers(half_life=float(RECENT)).prequential(scores, y, delay=delay, times=times)
        ),
        "CVAP": cross_log_merge(
            *cross.prequential(others, y, delay=delay, folds=np.arange(n) % _FOLDS)
        ),
    }


def judged(p: Floats, y: Integers) -> dict[str, float | None]:
    """Score forecasts; None stands for an infinite log loss."""
    scores = PrequentialScores()
    scores.update_many(p, y)
    parts = corp(p, y).decomposition()
    return {
        "log": None if scores.infinite else scores.log_loss,
        "infinite": scores.infinite,
        "Brier": scores.brier,
        "MCB": parts.miscalibration,
        "DSC": parts.discrimination,
        "ECE": scores.ece,
    }


# Numbers

PERCENT = np.arange(1, 100) / 100
_FIRST, _GROWN = 100, 1.05  # labels of the first fit; more of them for another one
_BLOCK = 100  # labels between fits of GP-Beta


class Numbers(NamedTuple):
    """A stream of numbers: its features and labels, and between what they must lie."""

    x: Floats
    y: Floats
    support: tuple[float, float]


def numbers(folder: Path, data: str) -> Numbers:
    """Read a stream of numbers."""
    if data == "Bike sharing":
        return Numbers(*matrix(folder, SETS[data], _NOT_KNOWN), (0.0, 1_000.0))
    kinds: dict[str, tuple[Any, float]] = {
        "Trump approval": (datasets.TrumpApproval, 100.0),
        "Chick weights": (datasets.ChickWeights, 400.0),
    }
    kind, high = kinds[data]
    rows = [([float(value) for value in x.values()], float(y)) for x, y in kind()]
    return Numbers(np.array([x for x, _ in rows]), np.array([y for _, y in rows]), (0.0, high))


def fitted(x: Floats, y: Floats, delay: int) -> tuple[Floats, Floats, int]:
    """Predict normal distributions by a linear model of earlier labels; the first row of them."""
    first = _FIRST + delay
    mean, std = np.empty(len(y)), np.empty(len(y))
    row = first
    while row < len(y):
        known = row - delay
        until = min(max(int(known * _GROWN), known + 1) + delay, len(y))
        model = BayesianLinear().fit(x[:known], y[:known])
        mean[row:until], std[row:until] = model.predict(x[row:until])
        row = until
    return mean[first:], std[first:], first


def regressed(folder: Path, spec: Spec) -> dict[str, Any]:
    """Judge all calibrators on a stream of numbers."""
    stream, delay = numbers(folder, spec["data"]), spec["delay"]
    mean, std, first = fitted(stream.x, stream.y, delay)
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
    n = len(y)
    rows = np.arange(n)
    order = np.argsort(np.concatenate((2 * rows, 2 * (rows + delay) + 1)), kind="stable")
    steps = np.repeat(np.array([0, 1], np.uint8), n)[order]
    columns = [np.concatenate((column, column))[order] for column in (mean, y, times)]
    when = columns[2] if held.half_life is not None else None
    said = held.run(steps, columns[0], columns[1], levels=PERCENT, times=when)
    merged: Floats = said.merged[steps == 0]
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
        told = max(part.stop - delay, 0)
        held.learn_many(mean[known:told], std[known:told], y[known:told])
        known = max(known, told)
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


# Tasks

_QUICK = 4_000  # rows


def tasks(*, quick: bool) -> list[Task]:
    """List the tasks."""
    if quick:
        return [_task(classified, "Elec2", 0, _QUICK), _task(regressed, "Chick weights", 0)]
    found = [_task(classified, data, delay) for data in SETS for delay in DELAYS]
    found += [_task(regressed, "Bike sharing", delay) for delay in DELAYS]
    return found + [_task(regressed, data, 0) for data in ("Trump approval", "Chick weights")]


def _task(
    work: Callable[[Path, Spec], Any], data: str, delay: int, rows: int | None = None
) -> Task:
    kind = "numbers" if work is regressed else "classes"
    return Task(
        f"streams/{kind}/{data}/{delay}", work, {"data": data, "delay": delay, "rows": rows}
    )


PAPER = Paper("streams", SETS, tasks, streams_page.page)
