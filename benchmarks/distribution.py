"""Distribution calibration: cost of a fit and a prediction of GP-Beta, and their gain.

The number of steps of a fit does not depend on the number of labels, so it is timed on a thousand.
The gain is measured on new labels, against the base model and the true distributions.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.batch import BetaCDF, GPBeta
from abers.batch._gp_model import Normal
from abers.regression.scores import log_score_normal
from benchmarks.page import Key, Section, size, table
from benchmarks.streams import SEED
from benchmarks.timing import Spread, in_turns, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from benchmarks.plan import Plan

    Floats = NDArray[np.float64]

FIT, SCORES = "a fit, {} inducing points", "log scores of 5\u202f000 predictions"
CDF, QUANTILES = "CDFs of 5\u202f000 predictions", "five quantiles of 5\u202f000 predictions"
LABELS, NEW = 1_000, 5_000
POINTS = (8, 16, 32, 64)
_DEFAULT, _STEPS = 32, 1_000
_SHAPE = 1.5  # of gamma noise
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


class Rows(NamedTuple):
    """Predicted means and standard deviations, labels, and log scores that know everything."""

    mean: Floats
    std: Floats
    y: Floats
    best: Floats


def scattering(n: int, seed: int) -> Rows:
    """Make normal labels that scatter more on the right, predicted with one spread for all."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=n)
    mean, true = 3.0 * x, 0.2 + 1.5 * x
    y = mean + true * rng.normal(size=n)
    return Rows(mean, np.full(n, 1.05), y, log_score_normal(mean, true, y))


def skewed(n: int, seed: int) -> Rows:
    """Make labels with gamma noise, predicted as normal with one spread for all."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=n)
    mean, width = 3.0 * x, 0.5 + x
    noise = rng.gamma(_SHAPE, size=n)
    log_density = (_SHAPE - 1.0) * np.log(noise) - noise + 0.5 * np.log(4.0 / np.pi)
    y = mean + width * (noise - _SHAPE)
    return Rows(mean, np.full(n, 1.25), y, np.log(width) - log_density)


def right(n: int, seed: int) -> Rows:
    """Make normal labels as they are predicted."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=n)
    mean, std = 3.0 * x, 0.3 + x * rng.uniform(0.5, 1.5, size=n)
    y = mean + std * rng.normal(size=n)
    return Rows(mean, std, y, log_score_normal(mean, std, y))


_KINDS: dict[str, Callable[[int, int], Rows]] = {
    "normal, more on the right": scattering,
    "gamma": skewed,
    "as predicted": right,
}


def _fitted(rows: Rows, steps: int, inducing: int = _DEFAULT) -> GPBeta:
    calibrator = GPBeta(inducing=inducing, steps=steps, seed=SEED)
    calibrator.learn_many(*rows[:3])
    return calibrator


def _times(plan: Plan, steps: int) -> dict[str, Spread]:
    rows, (mean, std, y, _) = scattering(LABELS, SEED), scattering(NEW, SEED + 1)
    calibrator = _fitted(rows, steps)
    return in_turns(
        plan.passes,
        {
            **{FIT.format(m): partial(seconds, partial(_fitted, rows, steps, m)) for m in POINTS},
            SCORES: lambda: seconds(lambda: calibrator.log_score_many(mean, std, y)),
            CDF: lambda: seconds(lambda: calibrator.cdf_many(mean, std, y)),
            QUANTILES: lambda: seconds(lambda: calibrator.quantiles_many(mean, std, _LEVELS)),
        },
    )


def _gains(make: Callable[[int, int], Rows], steps: int) -> list[str]:
    """Score the base, one map for all, a map for each, and what knows everything; nats a label."""
    rows, (mean, std, y, best) = make(LABELS, SEED), make(NEW, SEED + 1)
    one = BetaCDF()
    one.learn_many(np.exp(Normal(rows.mean, rows.std).logcdf(rows.y)))
    mapped = one.distribution(Normal(mean, std)).log_score(y)
    each = _fitted(rows, steps).log_score_many(mean, std, y)
    base = log_score_normal(mean, std, y)
    return [f"{found.mean():.3f}" for found in (base, mapped, each, best)]


def distribution(plan: Plan) -> Section:
    """Measure fits, predictions and gains."""
    steps = min(_STEPS, plan.probes)
    found = _times(plan, steps)
    values: dict[Key, Spread] = {("gp-beta", name, LABELS): each for name, each in found.items()}
    body = (
        f"`GPBeta`, fitted to {size(LABELS)} labels in {size(steps)} steps.\n\n"
        + table(["", "s"], [[name, spread] for name, spread in found.items()])
        + f"Mean log scores of {size(NEW)} new labels in nats (smaller is better): of a normal base"
        " model, of it through one beta map for all inputs, through a map for each by `GPBeta` with"
        f" {_DEFAULT} inducing points, and of the true distributions.\n\n"
        + table(
            ["noise", "base", "`BetaCDF`", "`GPBeta`", "truth"],
            [[name, *_gains(make, steps)] for name, make in _KINDS.items()],
        )
    )
    return Section("Distribution calibration", body, values)
