"""Conformal intervals of van der Laan & Alaa: quantile Venn-Abers (2025), self-calibrating (2024).

Simulations with a noise that grows with the score, and two of the data sets of both papers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from abers.batch import ConformalInterval, SelfCalibratingInterval
from abers.regression import IVAPR, PredictionIntervals
from benchmarks.papers import venn_conformal_2025_page
from benchmarks.papers.manifest import read
from benchmarks.papers.paper import Paper
from benchmarks.papers.runner import Spec, Task
from benchmarks.papers.splits import split
from benchmarks.papers.tabular import matrix

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["PAPER"]

_YEAR, _LEVEL, _ALL = 2025, 0.9, "all"
SETS = {"bike": "bike_sharing_hour", "concrete": "concrete"}
_SPLITS = 100
_KAGGLE_DAYS = 19  # of each month, in the set that the papers use
_BIKE = (
    *("season", "yr", "mnth", "hr", "holiday", "weekday", "weathersit", "temp", "atemp", "hum"),
    *("windspeed", "workingday"),
)
_RUNS, _QUICK_RUNS = 1_000, 100
_SHARES = 0.5, 0.3  # of the rows, that train and that calibrate


# Simulations


def simulate(_: Path, spec: Spec) -> dict[str, Any]:
    """Draw bags and a query in each third of the score; keep what is covered, and the widths."""
    n = int(spec["n"])
    rng = np.random.default_rng([_YEAR, n])
    found: dict[str, list[list[Any]]] = {}
    for _run in range(spec["runs"]):
        x, noise = rng.random(n), rng.normal(size=n + 3)
        asked = (np.arange(3) + rng.random(3)) / 3.0
        bag = _drawn(x, noise[:-3])
        truth = _drawn(asked, noise[-3:])
        for name, each in _intervals(bag, truth[:2]).items():
            covered = each.covers(truth[2]).tolist()
            wide = [width if np.isfinite(width) else None for width in (each.high - each.low)]
            found.setdefault(name, []).append([covered, wide])
    return {
        name: {
            "covered": np.mean([run[0] for run in runs], axis=0).tolist(),
            "widths": _median(runs),
        }
        for name, runs in found.items()
    }


def _median(runs: list[list[Any]]) -> float | None:
    widths = [np.inf if width is None else width for run in runs for width in run[1]]
    median = float(np.median(widths))
    return median if np.isfinite(median) else None


def _drawn(x: Floats, noise: Floats) -> tuple[Floats, Floats, Floats]:
    """Return predictions, the standard deviation of their errors, and labels."""
    spread = 0.5 + 2.5 * x
    return 10.0 * x, spread, 10.0 * x + spread * noise


def _intervals(
    bag: tuple[Floats, Floats, Floats], asked: tuple[Floats, ...]
) -> dict[str, PredictionIntervals]:
    """Return intervals of each method, from predictions, difficulties and labels."""
    prediction, difficulty, labels = bag
    conformal, own = ConformalInterval(_LEVEL), SelfCalibratingInterval(_LEVEL)
    conformal.learn_many(np.stack([prediction, difficulty], axis=1), labels)
    own.learn_many(prediction, labels)
    calibrated = own.predict_many(asked[0])
    return {
        "split conformal": _split(np.abs(labels - prediction), asked[0]),
        "`ConformalInterval`": conformal.predict_many(np.stack(asked[:2], axis=1)),
        "`SelfCalibratingInterval`": PredictionIntervals(calibrated.low, calibrated.high),
    }


def _split(errors: Floats, asked: Floats, more: Floats | float = 0.0) -> PredictionIntervals:
    """Return intervals with one margin for all: a quantile of errors and one infinite error."""
    n = len(errors)
    needed = int(np.ceil(_LEVEL * (n + 1) - 1e-9))
    margin = (np.sort(errors)[needed - 1] if needed <= n else np.inf) + more
    return PredictionIntervals(asked - margin, asked + margin)


# Data


def _table(folder: Path, name: str) -> tuple[Floats, Floats]:
    if name != "bike":
        return matrix(folder, SETS[name])
    table = read(folder, SETS[name])
    columns = dict(zip(table.names, table.columns, strict=True))
    kept = np.array([int(day[-2:]) <= _KAGGLE_DAYS for day in columns["dteday"]])
    x = np.array([columns[each] for each in _BIKE], float).T
    return x[kept], np.array(table.target, float)[kept]


def _boosted(
    loss: str = "squared_error", quantile: float | None = None
) -> HistGradientBoostingRegressor:
    """Make a gradient booster near the papers', with early stopping."""
    return HistGradientBoostingRegressor(
        learning_rate=0.1,
        max_depth=5,
        min_samples_leaf=20,
        max_iter=300,
        early_stopping=True,
        validation_fraction=0.2,
        n_iter_no_change=20,
        random_state=0,
        loss=loss,
        quantile=quantile,
    )


def measure(folder: Path, spec: Spec) -> dict[str, Any]:
    """Measure the methods of both papers on random splits."""
    x, y = _table(folder, spec["data"])
    found: dict[str, list[Any]] = {}
    for number in spec["splits"]:
        train, rest = split(len(y), _SHARES[0], _YEAR, number)
        cut = round(len(y) * _SHARES[1])
        parts = [(x[rows], y[rows]) for rows in (train, rest[:cut], rest[cut:])]
        for name, each in (_quantile(*parts) | _self_calibrated(*parts)).items():
            found.setdefault(name, []).append(each)
    return found


Part = tuple["Floats", "Floats"]


def _quantile(train: Part, calibration: Part, test: Part) -> dict[str, list[float]]:
    """Measure the intervals of 2025: coverage, median width and the error given the quantile."""
    middle = _boosted(loss="quantile", quantile=0.5).fit(*train)
    errors = np.abs(train[1] - middle.predict(train[0]))
    size = _boosted(loss="quantile", quantile=_LEVEL).fit(train[0], errors)
    point, difficulty = middle.predict(test[0]), size.predict(test[0])
    known, hard = middle.predict(calibration[0]), size.predict(calibration[0])
    wrong = np.abs(calibration[1] - known)
    conformal, fit = ConformalInterval(_LEVEL), IVAPR()
    conformal.learn_many(np.stack([known, hard], axis=1), calibration[1])
    fit.learn_many(hard, wrong)
    groups = fit.quantiles_many(difficulty, [_LEVEL]).merged[:, 0]
    methods = {
        "Uncalibrated": PredictionIntervals(point - difficulty, point + difficulty),
        "Venn-Abers": conformal.predict_many(np.stack([point, difficulty], axis=1)),
        "Marginal": _split(wrong, point),
        "CQR (symmetric)": _split(wrong - hard, point, difficulty),
    }
    return {name: _scores(each, test[1], groups) for name, each in methods.items()}


def _scores(intervals: PredictionIntervals, labels: Floats, groups: Floats) -> list[float]:
    covered = intervals.covers(labels)
    short = [max(_LEVEL - covered[groups == one].mean(), 0.0) for one in np.unique(groups)]
    widths = intervals.high - intervals.low
    return [float(covered.mean()), float(np.median(widths)), float(np.mean(short))]


def _self_calibrated(train: Part, calibration: Part, test: Part) -> dict[str, list[float]]:
    """Measure the intervals of 2024 on log(1 + label), for both values of their A."""
    logs = [np.log1p(part[1]) for part in (train, calibration, test)]
    model = _boosted().fit(train[0], logs[0])
    own = SelfCalibratingInterval(_LEVEL)
    own.learn_many(model.predict(calibration[0]), logs[1])
    found = own.predict_many(model.predict(test[0]))
    column = test[0][:, -1]
    of_two = np.isin(column, [0.0, 1.0]).all()
    group = column == 1.0 if of_two else column >= np.median(column)
    wrong = np.abs(logs[1] - model.predict(calibration[0]))
    methods = {
        "SC-CP": PredictionIntervals(found.low, found.high),
        "Marginal, logarithms": _split(wrong, model.predict(test[0])),
    }
    rows = {}
    for name, each in methods.items():
        covered, widths = each.covers(logs[2]), each.high - each.low
        shares = [float(covered[group == value].mean()) for value in (False, True)]
        medians = [float(np.median(widths[group == value])) for value in (False, True)]
        rows[name] = [*shares, *medians, float(np.isinf(widths).mean())]
    return rows


def tasks(*, quick: bool) -> list[Task]:
    """List the tasks: simulations, then a split each."""
    runs = _QUICK_RUNS if quick else _RUNS
    name = PAPER.name
    found = [Task(f"{name}/simulation/{n}", simulate, {"n": n, "runs": runs}) for n in (100, 1_000)]
    for data in ["concrete"] if quick else SETS:
        for number in range(1 if quick else _SPLITS):
            spec = {"data": data, "splits": [number]}
            found.append(Task(f"{name}/{data}/split/{number}", measure, spec))
    return found


PAPER = Paper("venn_conformal_2025", SETS, tasks, venn_conformal_2025_page.page)
