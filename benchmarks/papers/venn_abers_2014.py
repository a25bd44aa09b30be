"""Vovk & Petej (2014), Venn-Abers predictors: tables 1 to 3, the theorem, and Proposition 2.

A split is a permutation that its number alone decides, so every method, scorer and
source of scores meets the same ones.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers import VennAbers
from abers.batch import SimplifiedVennAbers, TransductiveVennAbers, cvap
from abers.calibration import (
    DirectIsotonic,
    brier_merge,
    cross_brier_merge,
    cross_log_merge,
    log_merge,
)
from benchmarks.papers import scorers, venn_abers_2014_page, weka
from benchmarks.papers.encoded import SETS, encoded
from benchmarks.papers.paper import Paper
from benchmarks.papers.runner import Spec, Task
from benchmarks.papers.validity import simulate
from benchmarks.papers.venn_abers_2014_page import FULL, SPLITS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from abers.batch import Scorer

    Floats = NDArray[np.float64]
    Labels = NDArray[np.uint8]
    Rows = NDArray[np.int64]
    Pair = tuple[Floats, Floats]  # p0 and p1
    Forecasts = dict[str, "Forecast"]

__all__ = ["PAPER"]

_BLOCK = 20  # splits a task
_SCORERS = "LR", "NB", "SVM", "J", "JB", "NN"
_FOLDS = 5


class Forecast(NamedTuple):
    """Predictions of a method for test objects: probabilities for either loss, mean p1 - p0."""

    log: Floats
    square: Floats
    width: float | None = None


def losses(folder: Path, spec: Spec) -> dict[str, Any]:
    """Measure all methods on a block of splits: mean log loss (None: infinite), RMSE, and widths.

    Reliability is counted in tenths: forecasts (of the log merge), their sum, and labels of 1.
    """
    data = encoded(folder, spec["data"])
    source = weka if spec["source"] == "weka" else scorers
    scorer, labels = source.scorer(data, spec["scorer"]), data.labels
    found: dict[str, dict[str, Any]] = {}
    for number in spec["splits"]:
        order = np.random.default_rng([2014, number]).permutation(len(labels))
        cut = round(len(labels) * 2 / 3)
        train, test = order[:cut], order[cut:]
        forecasts = _transductive if spec["full"] else _forecasts
        for method, said in forecasts(scorer, labels, train, test).items():
            kept = found.setdefault(method, {"log": [], "rmse": [], "width": [], "tenths": 0.0})
            kept["log"].append(_log(said.log, labels[test]))
            kept["rmse"].append(float(np.sqrt(np.mean((said.square - labels[test]) ** 2))))
            if said.width is not None:
                kept["width"].append(said.width)
            kept["tenths"] = kept["tenths"] + _tenths(said.log, labels[test])
    for kept in found.values():
        kept["tenths"] = kept["tenths"].tolist()
    return found


def _tenths(p: Floats, labels: Labels) -> Floats:
    place = np.minimum((10 * p).astype(np.int64), 9)
    return np.array([np.bincount(place, each, 10) for each in (np.ones_like(p), p, labels)])


def _log(p: Floats, labels: Labels) -> float | None:
    with np.errstate(divide="ignore"):
        loss = float(-np.log(np.where(labels == 1, p, 1.0 - p)).mean())
    return loss if np.isfinite(loss) else None


def _transductive(scorer: Scorer, labels: Labels, train: Rows, test: Rows) -> Forecasts:
    return {"VA": _merged(TransductiveVennAbers(scorer, train, labels[train]).predict_many(test))}


def _merged(pair: Pair) -> Forecast:
    return Forecast(log_merge(*pair), brier_merge(*pair), float(np.mean(pair[1] - pair[0])))


def _forecasts(scorer: Scorer, labels: Labels, train: Rows, test: Rows) -> Forecasts:
    """Return the probabilities for either loss, of the paper's methods and of ours."""
    score = scorer(train, labels[train])
    fitted, raw = np.asarray(score(train)), np.asarray(score(test))
    known = dict(zip(train.tolist(), fitted.tolist(), strict=True))
    known.update(zip(test.tolist(), raw.tolist(), strict=True))

    def trained(*_: object) -> Any:  # noqa: ANN401 - a scorer
        return lambda rows: np.array([known[int(row)] for row in rows])

    direct = DirectIsotonic()
    direct.learn_many(fitted, labels[train])
    nearest = direct.predict_many(raw)
    inductive, streaming = _inductive(scorer, labels, train, test)
    return {
        "W": Forecast(raw, raw),
        "SVA": _merged(SimplifiedVennAbers(trained, train, labels[train]).predict_many(test)),
        "DIR": Forecast(nearest, nearest),
        "IVAP": _merged(inductive),
        "stream": _merged(streaming),
        "CVAP": _cross(scorer, labels, train, test),
    }


def _inductive(scorer: Scorer, labels: Labels, train: Rows, test: Rows) -> tuple[Pair, Pair]:
    """Calibrate on a third of the training part; then again, learning each test label in turn."""
    cut = round(len(train) * 2 / 3)
    score = scorer(train[:cut], labels[train[:cut]])
    calibrator = VennAbers()
    calibrator.learn_many(score(train[cut:]), labels[train[cut:]])
    asked = np.asarray(score(test), np.float64)
    return calibrator.predict_many(asked), calibrator.prequential(asked, labels[test])


def _cross(scorer: Scorer, labels: Labels, train: Rows, test: Rows) -> Forecast:
    folds = np.array_split(train, _FOLDS)
    columns = []
    for k, fold in enumerate(folds):
        rest = np.concatenate([other for j, other in enumerate(folds) if j != k])
        score = scorer(rest, labels[rest])
        columns.append((np.asarray(score(fold)), labels[fold], np.asarray(score(test))))
    pair = cvap(*(list(column) for column in zip(*columns, strict=True)))
    return Forecast(cross_log_merge(*pair), cross_brier_merge(*pair))


def tasks(*, quick: bool) -> list[Task]:
    """List the tasks: one of each before the next, but VA with NN, half of all the time, last."""
    found = [_validity(n, 200 if quick else 2_000) for n in (10, 20)]
    if quick:
        cells = [(0, "sklearn", name, data) for name in ("LR", "NB") for data in ("Echo", "Vote")]
        return [*found, *(_block(*cell) for cell in cells), _full(0, "sklearn", "LR", "Labor")]
    sources = "weka", "sklearn"
    for b in range(FULL):
        if b < SPLITS // _BLOCK:
            found += [_block(b, *cell) for cell in product(sources, _SCORERS, SETS)]
        each = _SCORERS[:-1] if b else _SCORERS
        found += [_full(b, "weka", *cell) for cell in product(each, SETS)]
    return found + [_full(b, "weka", "NN", data) for b in range(1, FULL) for data in SETS]


def _block(number: int, source: str, scorer: str, data: str) -> Task:
    splits = [*range(number * _BLOCK, (number + 1) * _BLOCK)]
    spec = {"data": data, "source": source, "scorer": scorer, "splits": splits, "full": False}
    return Task(f"venn_abers_2014/{source}/{scorer}/{data}/{number}", losses, spec)


def _full(number: int, source: str, scorer: str, data: str) -> Task:
    splits = [1_000 + number]
    spec = {"data": data, "source": source, "scorer": scorer, "splits": splits, "full": True}
    return Task(f"venn_abers_2014/{source}/{scorer}/{data}/full-{number}", losses, spec)


def _validity(n: int, runs: int) -> Task:
    return Task(f"venn_abers_2014/validity/{n}", simulate, {"n": n, "runs": runs, "seed": 2014})


PAPER = Paper(
    "venn_abers_2014",
    {name: what.file for name, what in SETS.items()},
    tasks,
    venn_abers_2014_page.page,
)
