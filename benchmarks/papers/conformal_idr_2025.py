"""Allen, Gavrilopoulos, Henzi, Kleger & Ziegel (2025): what the band of `IVAPR` covers.

Their conformal isotonic distributional regression is that band. Labels are drawn as in their
simulations, and with noise that grows with the score; the score is the covariate.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.regression import IVAPR
from benchmarks.papers import conformal_idr_2025_page
from benchmarks.papers.paper import Paper
from benchmarks.papers.runner import Spec, Task

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["PAPER"]

_YEAR, _LEVEL, _END = 2025, 0.9, 10.0
_THIRDS, _QUERIES = 3, 10  # queries of a data set in each third of the scores
_SETS = {100: 400, 1_000: 160}
_DESIGNS = "noise", "isotonic", "antitonic", "less isotonic"


def _labels(rng: np.random.Generator, design: str, score: Floats) -> Floats:
    """Draw labels of scores, as the design has them."""
    if design == "noise":
        return score + rng.normal(size=len(score)) * (0.5 + score / 5.0)
    if design == "less isotonic":
        return 2.0 * score + 5.0 * np.sin(score) + rng.normal(size=len(score)) * 0.2 * score
    at = score if design == "isotonic" else _END - score
    return rng.gamma(np.sqrt(at), np.clip(at, 1.0, 6.0))


def simulated(_: Path, spec: Spec) -> dict[str, Any]:
    """Measure intervals of data sets at queries that are spread evenly over thirds of the score."""
    rng, n, design = np.random.default_rng([_YEAR, spec["seed"]]), spec["n"], spec["design"]
    measured = [_measured(rng, design, n) for _ in range(spec["sets"])]
    found: dict[str, Any] = {}
    for name in measured[0]["covered"]:
        covered = np.array([one["covered"][name] for one in measured])  # sets, thirds
        found[f"{name} covered"] = [_mean(each) for each in (*covered.T, covered.mean(axis=1))]
    widths = np.concatenate([one["widths"] for one in measured])  # queries, methods
    finite = np.isfinite(widths).all(axis=1)
    found["widths"] = widths[finite].mean(axis=0).tolist()
    found["limited"] = float(finite.mean())
    found["thickness"] = _mean(np.array([one["thickness"] for one in measured]))
    return found


def _measured(rng: np.random.Generator, design: str, n: int) -> dict[str, Any]:
    """Measure one data set: coverage by third, widths of each query, and mean thickness."""
    score = rng.uniform(0.0, _END, n)
    label = _labels(rng, design, score)
    third = np.repeat(np.arange(_THIRDS), _QUERIES)
    asked = (third + rng.random(len(third))) * _END / _THIRDS
    truth = _labels(rng, design, asked)
    calibrator = IVAPR()
    calibrator.learn_many(score, label)
    bands = calibrator.predict_many(asked)
    ends = {
        "band": np.array([one.interval(_LEVEL, band=True) for one in bands]),
        "merged": np.array([one.interval(_LEVEL) for one in bands]),
    }
    if design == "noise":  # there the score is a prediction of the label
        ends["split"] = asked[:, np.newaxis] + _radius(score, label) * np.array([-1.0, 1.0])
    return {
        "covered": {
            name: ((each[:, 0] <= truth) & (truth <= each[:, 1])).reshape(_THIRDS, -1).mean(axis=1)
            for name, each in ends.items()
        },
        "widths": np.column_stack([each[:, 1] - each[:, 0] for each in ends.values()]),
        "thickness": float(np.mean([one.thickness for one in bands])),
    }


def _radius(score: Floats, label: Floats) -> float:
    """Return the radius of split conformal intervals: an order statistic of the errors."""
    errors = np.sort(np.abs(label - score))
    return float(errors[math.ceil(_LEVEL * (len(errors) + 1)) - 1])


def _mean(values: Floats) -> list[float]:
    """Return a mean over data sets, and its standard error."""
    return [float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))]


def tasks(*, quick: bool) -> list[Task]:
    """List the tasks, one for each design and number of labels."""
    cells = [(design, n) for n in _SETS for design in _DESIGNS]
    if quick:
        cells = [cell for cell in cells if cell[1] == min(_SETS)][:2]
    return [_task(design, n, 20 if quick else _SETS[n]) for design, n in cells]


def _task(design: str, n: int, sets: int) -> Task:
    spec = {"design": design, "n": n, "sets": sets, "seed": n + _DESIGNS.index(design)}
    return Task(f"conformal_idr_2025/{design}/{n}", simulated, spec)


PAPER = Paper("conformal_idr_2025", {}, tasks, conformal_idr_2025_page.page)
