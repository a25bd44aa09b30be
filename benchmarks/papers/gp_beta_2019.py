"""Song, Diethe, Kull & Flach (2019), distribution calibration: table 1 and the figures.

Base model and calibrators learn the same training set, as in the paper, and once
more on two parts of it; a cell is one base model on one data set and one split.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge, LinearRegression

from abers.batch import GPBeta, QuantileCalibration
from abers.regression.scores import LEVELS, log_score_normal, pinball
from benchmarks.papers import gp_beta_2019_page
from benchmarks.papers.dropout import Network
from benchmarks.papers.paper import Paper
from benchmarks.papers.runner import Spec, Task
from benchmarks.papers.scorers import quiet
from benchmarks.papers.splits import split
from benchmarks.papers.tabular import matrix

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Normals = tuple[Floats, Floats]  # means and standard deviations

__all__ = ["PAPER"]

_YEAR, _TRAIN, _CALIBRATING = 2019, 0.75, 1 / 3
SETS = {
    "Diabetes": "diabetes_sklearn",
    "Boston": "boston",
    "Airfoil": "airfoil",
    "Forest": "forest_fires",
    "Strength": "concrete",
    "Energy": "appliances_energy",
}
_SMALL = "Boston", "Diabetes", "Forest", "Strength", "Airfoil"
_BASES = "OLS", "BR", "NN", "GP"
_DROPPED = {"Forest": ("month", "day"), "Energy": ("date",)}
_GP_ROWS = 1_000  # of training and test together
_RESTARTS = 8  # with one start Diabetes and Forest end in a poor maximum
_GRID, _REACH = 1_024, 16.0  # points, and standard deviations beyond the extreme means
_NOTHING = np.finfo(np.float64).eps  # density where a step map has none, as in the authors' code
_MIDDLES = (np.arange(100) + 0.5) / 100  # levels of quantiles that have the mean


def _base(spec: Spec, x: Floats, y: Floats) -> Any:  # noqa: ANN401 - a function of features
    """Fit a base model; it gives means and standard deviations."""
    name = spec["base"]
    if name == "NN":
        return Network.fitted(x, y, spec["split"]).predict
    if name == "GP":
        kernel = float(np.std(y)) * RBF() + WhiteKernel()
        options = {"n_restarts_optimizer": spec["restarts"], "random_state": spec["split"]}
        process = quiet(GaussianProcessRegressor(kernel, alpha=1e-2, **options), x, y)
        return lambda asked: process.predict(asked, return_std=True)
    model = (BayesianRidge() if name == "BR" else LinearRegression()).fit(x, y)
    std = model.alpha_**-0.5 if name == "BR" else float(np.std(y - model.predict(x)))
    return lambda asked: (model.predict(asked), np.full(len(asked), std))


def losses(folder: Path, spec: Spec) -> dict[str, Any]:
    """Measure Base, ISO and GPB with each number of inducing points."""
    x, y = matrix(folder, SETS[spec["data"]], _DROPPED.get(spec["data"], ()))
    y = np.log1p(y) if spec["data"] == "Forest" else y
    train, test = split(len(y), _TRAIN, _YEAR, spec["split"])
    if spec["base"] == "GP":
        cut = round(_GP_ROWS * _TRAIN)
        train, test = train[:cut], test[: _GP_ROWS - cut]
    cut = round(len(train) * (1 - _CALIBRATING))
    fit, learned = (train[:cut], train[cut:]) if spec["honest"] else (train, train)
    base = _base(spec, x[fit], y[fit])
    bag: Normals = base(x[learned])
    asked: Normals = base(x[test])
    found = {"Base": _normal(asked, y[test]), "ISO": _isotonic(bag, y[learned], asked, y[test])}
    for inducing in spec["inducing"]:
        calibrator = GPBeta(inducing=inducing, steps=spec["steps"])
        calibrator.learn_many(bag[0], bag[1], y[learned])
        found[f"G{inducing}"] = _gp_beta(calibrator, asked, y[test])
    return found


def _scored(nll: Floats, mean: Floats, quantiles: Floats, y: Floats) -> dict[str, Any]:
    """Mean NLL and MSE, pinball loss summed over the test rows, and shares below quantiles."""
    return {
        "NLL": float(nll.mean()),
        "MSE": float(((mean - y) ** 2).mean()),
        "PBL": float(pinball(quantiles, y).sum()),
        "below": (y[:, np.newaxis] <= quantiles).mean(axis=0).tolist(),
    }


def _normal(asked: Normals, y: Floats) -> dict[str, Any]:
    mean, std = asked
    quantiles = mean[:, np.newaxis] + std[:, np.newaxis] * stats.norm.ppf(LEVELS)
    return _scored(log_score_normal(mean, std, y), mean, quantiles, y)


def _isotonic(bag: Normals, learned: Floats, asked: Normals, y: Floats) -> dict[str, Any]:
    calibrator = QuantileCalibration()
    calibrator.learn_many(stats.norm.cdf(learned, *bag))
    # One map for all inputs: each calibrated distribution is that of N(0, 1), moved and stretched.
    standard = calibrator.distribution(stats.norm())
    mean = asked[0] + asked[1] * standard.mean
    # A base CDF of 1 in training leaves mass at infinity; as for the mean, it is put at an end.
    levels = np.clip(standard.quantile(LEVELS), *standard.support)
    quantiles = asked[0][:, np.newaxis] + asked[1][:, np.newaxis] * levels
    widest = _REACH * float(np.max(bag[1]))
    grid = np.linspace(float(np.min(bag[0])) - widest, float(np.max(bag[0])) + widest, _GRID)
    place = np.clip(np.searchsorted(grid, y), 1, _GRID - 1)
    # As in the authors' code the density is that of the map made linear between its steps.
    steps = np.unique(stats.norm.cdf(learned, *bag))
    ends = stats.norm.cdf(grid[[place - 1, place]], *asked)
    low, high = np.interp(ends, steps, calibrator.calibrated(steps))
    density = (high - low) / (grid[1] - grid[0])
    return _scored(-np.log(np.maximum(density, _NOTHING)), mean, quantiles, y)


def _gp_beta(calibrator: GPBeta, asked: Normals, y: Floats) -> dict[str, Any]:
    nll = calibrator.log_score_many(*asked, y)
    mean = calibrator.quantiles_many(*asked, _MIDDLES).mean(axis=1)
    return _scored(nll, mean, calibrator.quantiles_many(*asked, LEVELS), y)


def _crossed(spec: Spec) -> tuple[Any, GPBeta]:
    """Calibrate OLS on two lines that cross, half of the rows on each."""
    rng = np.random.default_rng([_YEAR, spec["seed"]])
    n: int = spec["n"]
    x, upper = rng.uniform(-1.0, 1.0, n), rng.integers(2, size=n) == 1
    y = np.where(upper, 1.0 + 2.0 * x, 0.5 - x) + 0.15 * rng.normal(size=n)
    base = _base({"base": "OLS"}, x[:, np.newaxis], y)
    calibrator = GPBeta(inducing=32, steps=spec["steps"])
    mean, std = base(x[:, np.newaxis])
    calibrator.learn_many(mean, std, y)
    return base, calibrator


def mixture(_: Path, spec: Spec) -> dict[str, Any]:
    """Return densities where the lines are apart (figure 1)."""
    base, calibrator = _crossed(spec)
    mean, std = (float(value[0]) for value in base(np.array([[spec["at"]]])))
    line = np.linspace(-2.0, 4.0, 121)
    calibrated = calibrator.distribution(mean, std).density(line)
    densities = {"OLS": stats.norm.pdf(line, mean, std), "GP-Beta": calibrated}
    return {"line": line.tolist()} | {name: each.tolist() for name, each in densities.items()}


def maps(_: Path, spec: Spec) -> dict[str, Any]:
    """Return a, b and c by what OLS predicts, and the whole map at some inputs (figure 2)."""
    base, calibrator = _crossed(spec)
    mean, std = base(np.linspace(-1.0, 1.0, 101)[:, np.newaxis])
    middles = np.median(calibrator.maps_many(mean, std), axis=1).tolist()
    u = np.linspace(0.0, 1.0, 101)
    found = {}
    for at in spec["at"]:
        one = [float(value[0]) for value in base(np.array([[at]]))]
        found[str(at)] = calibrator.distribution(*one).cdf(stats.norm.ppf(u, *one)).tolist()
    parameters = dict(zip("abc", middles, strict=True))
    return {"mean": mean.tolist(), "parameters": parameters, "u": u.tolist(), "maps": found}


def tasks(*, quick: bool) -> list[Task]:
    """List the tasks in rounds of a split each, small sets first and the honest ones last."""
    two = {"n": 1_000, "seed": 0, "steps": 300 if quick else 1_000, "at": 0.8}
    three = two | {"at": [-0.8, -0.2, 0.8]}
    found = [Task("gp_beta_2019/figure/1", mixture, two)]
    found += [Task("gp_beta_2019/figure/2", maps, three)]
    if quick:
        return [*found, _task("OLS", "Boston", 0, honest=False, inducing=[8], steps=500)]
    for number in range(gp_beta_2019_page.SPLITS):
        found += [_task(b, d, number, honest=False) for d in (*_SMALL, "Energy") for b in _BASES]
        found += [_task(b, d, number, honest=True) for d in _SMALL for b in ("OLS", "BR", "NN")]
    return found


def _task(  # noqa: PLR0913 - a cell and how much of it
    base: str,
    data: str,
    number: int,
    *,
    honest: bool,
    inducing: list[int] | None = None,
    steps: int = 1_000,
) -> Task:
    spec: Spec = {"data": data, "base": base, "split": number, "honest": honest, "steps": steps}
    spec |= {"inducing": inducing or [8, 16, 32, 64]}
    spec |= {"restarts": _RESTARTS} if base == "GP" else {}
    kind = "honest" if honest else "same"
    return Task(f"gp_beta_2019/{base}/{data}/{kind}-{number}", losses, spec)


PAPER = Paper("gp_beta_2019", SETS, tasks, gp_beta_2019_page.page)
