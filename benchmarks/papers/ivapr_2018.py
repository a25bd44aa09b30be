"""Petej (2018), Inductive Venn-Abers prediction for regression: table 1 and figures 1 to 3.

What the paper leaves open is measured both ways: CRPS in units of the label and on
the scale of ranks, calibration on the training set's own predictions and on a separate part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from abers.regression import IVAPR
from benchmarks.papers import ivapr_2018_page
from benchmarks.papers.paper import Paper
from benchmarks.papers.runner import Spec, Task
from benchmarks.papers.splits import split
from benchmarks.papers.tabular import matrix

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["PAPER"]

_YEAR, _SPLITS, _BLOCK = 2018, 20, 2
_TRAIN = 0.7
_HALF = 1e-9
SETS = {
    "Machine": "machine_cpu_erp",
    "Concrete": "concrete",
    "Forest": "forest_fires",
    "Facebook": "facebook_metrics_full",
    "Energy": "energy_efficiency_heating",
}
_DROPPED = {"Machine": ("VendorName",)}
_SUMMANDS = "comment", "like", "share"  # of the target of Facebook
_LEVELS = [level / 10 for level in range(1, 10)]


def _regressor(name: str) -> Any:  # noqa: ANN401 - scikit-learn has no types
    """Make a regressor that tunes itself by threefold cross-validation."""
    if name == "Linear":
        return LinearRegression()
    if name == "Poly":
        return make_pipeline(StandardScaler(), PolynomialFeatures(2), LinearRegression())
    if name == "Tree":
        grid = {"max_depth": [4, 8, None], "min_samples_leaf": [1, 5]}
        return GridSearchCV(DecisionTreeRegressor(random_state=0), grid, cv=3)
    if name == "RF":
        forest = RandomForestRegressor(n_estimators=50, random_state=0)
        return GridSearchCV(forest, {"max_features": [1 / 3, 1.0]}, cv=3)
    grid = {"svr__C": [1, 10, 100, 1000]}
    return GridSearchCV(make_pipeline(StandardScaler(), SVR()), grid, cv=3)


def scores(folder: Path, spec: Spec) -> dict[str, Any]:
    """Measure A and IVAPR, calibrated on the training set and on a part of its own."""
    x, y = matrix(folder, SETS[spec["data"]], _DROPPED.get(spec["data"], ()))
    found: dict[str, list[float]] = {}
    for number in spec["splits"]:
        train, test = split(len(y), _TRAIN, _YEAR, number)
        model = _regressor(spec["regressor"]).fit(x[train], y[train])
        point, fitted = model.predict(x[test]), model.predict(x[train])
        cut = round(len(train) * 2 / 3)
        other = _regressor(spec["regressor"]).fit(x[train[:cut]], y[train[:cut]])
        held = train[cut:]
        measured = {
            "A": _point(point, y[test], y[train]),
            "IVAPR": _calibrated((fitted, y[train]), (point, y[test])),
            "honest": _calibrated(
                (other.predict(x[held]), y[held]), (other.predict(x[test]), y[test])
            ),
        }
        for system, (rank, unit) in measured.items():
            found.setdefault(f"{system} rank", []).append(rank)
            found.setdefault(f"{system} unit", []).append(unit)
    return found


def _point(point: Floats, y: Floats, thresholds: Floats) -> tuple[float, float]:
    """Score a step at the prediction, on the scale of ranks and in units of the label."""
    forecast = point[:, np.newaxis] < thresholds
    return float((forecast != (y[:, np.newaxis] < thresholds)).mean()), float(
        np.abs(point - y).mean()
    )


def _calibrated(bag: tuple[Floats, Floats], asked: tuple[Floats, Floats]) -> tuple[float, float]:
    """Score IVAPR; its support is the range of the labels it learned."""
    calibrator = IVAPR()
    calibrator.learn_many(*bag)
    below = np.nextafter(bag[1], -np.inf)  # the event is "label < threshold", as in Algorithm 2
    rank, unit = [], []
    for predicted, label in zip(calibrator.predict_many(asked[0]), asked[1].tolist(), strict=True):
        rank.append(float(((predicted.cdf(below) - (label < bag[1])) ** 2).mean()))
        unit.append(predicted.crps(label))
    return float(np.mean(rank)), float(np.mean(unit))


def coverage(folder: Path, spec: Spec) -> dict[str, Any]:
    """Measure what central intervals hold over splits 2 : 1, for both calibrations (figure 2)."""
    x, y = matrix(folder, SETS[spec["data"]], tuple(spec["without"]))
    found: dict[str, list[list[float]]] = {"training set": [], "separate part": []}
    for number in spec["splits"]:
        train, test = split(len(y), 2 / 3, _YEAR, 100 + number)
        cut = round(len(train) * 2 / 3)
        for name, fit, bag in (
            ("training set", train, train),
            ("separate part", train[:cut], train[cut:]),
        ):
            model = LinearRegression().fit(x[fit], y[fit])
            calibrator = IVAPR()
            calibrator.learn_many(model.predict(x[bag]), y[bag])
            ends = [(1 - level) / 2 for level in _LEVELS]
            low = calibrator.quantiles_many(model.predict(x[test]), ends).merged
            high = calibrator.quantiles_many(
                model.predict(x[test]), [1 - end for end in ends]
            ).merged
            label = y[test][:, np.newaxis]
            found[name].append(((low <= label) & (label <= high)).mean(axis=0).tolist())
    return found


def noiseless(_: Path, spec: Spec) -> dict[str, Any]:
    """Predict where labels equal scores, 1 to 100 (figure 1)."""
    calibrator = IVAPR()
    line = np.arange(1.0, 101.0)
    calibrator.learn_many(line, line)
    return {str(score): calibrator.predict_one(score).cdf(line).tolist() for score in spec["at"]}


def medians(_: Path, spec: Spec) -> dict[str, Any]:
    """Predict medians of labels with normal noise in their scores (figure 3)."""
    rng = np.random.default_rng([_YEAR, spec["seed"]])
    y = rng.permutation(np.arange(1.0, 501.0))
    score = y + rng.normal(size=500)
    calibrator = IVAPR()
    calibrator.learn_many(score[:300], y[:300])
    ends = [0.5 - _HALF, 0.5 + _HALF]  # of where the CDF is 1/2
    found = calibrator.quantiles_many(score[300:], ends).merged.mean(axis=1)
    return {"truth": y[300:].tolist(), "median": found.tolist()}


def tasks(*, quick: bool) -> list[Task]:
    """List the tasks, first one block of each."""
    found = [
        Task("ivapr_2018/figure/1", noiseless, {"at": [10.0, 30.0, 60.0]}),
        Task("ivapr_2018/figure/3", medians, {"seed": 0}),
    ]
    if quick:
        cells = [(0, "Linear", data) for data in ("Concrete", "Energy")]
        return [*found, *(_block(*cell) for cell in cells)]
    found += [_coverage(data) for data in ("Facebook", "Energy")]
    for b in range(_SPLITS // _BLOCK):
        names = "Linear", "Poly", "Tree", "SVR", "RF"
        found += [_block(b, name, data) for name in names for data in SETS]
    return found


def _block(number: int, regressor: str, data: str) -> Task:
    splits = [*range(number * _BLOCK, (number + 1) * _BLOCK)]
    spec = {"data": data, "regressor": regressor, "splits": splits}
    return Task(f"ivapr_2018/table/{regressor}/{data}/{number}", scores, spec)


def _coverage(data: str) -> Task:
    without = _SUMMANDS if data == "Facebook" else ()
    spec = {"data": data, "splits": [*range(100)], "without": [*without]}
    return Task(f"ivapr_2018/figure/2-{data}", coverage, spec)


PAPER = Paper("ivapr_2018", SETS, tasks, ivapr_2018_page.page)
