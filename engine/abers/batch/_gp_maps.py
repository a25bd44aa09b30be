"""A GP-Beta model: its fit to labels, and its beta maps for any predicted normal distribution.

The fit is by stochastic gradients of the evidence bound. It starts from the same place whatever
came before, and is a function of the rows in sorted order and of the seed. The three latent values
of a prediction are normal given the fit; its maps are made of a fixed set of draws of them, the
same for all predictions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.batch._gp_bound import LabelBatch, Noise, bound
from abers.batch._gp_kernel import Normals, diagonal, product
from abers.batch._gp_model import LATENT, Parameters, lower, projected, size
from abers.batch._normal import Normal

if TYPE_CHECKING:
    from abers.arrays import Floats

__all__ = ["Maps"]

_BATCH, _SAMPLES = 128, 16  # rows and draws a step
_RATE, _DECAYS, _TINY = 0.02, (0.9, 0.999), 1e-8  # of Adam
_FIRST_FACTOR = 0.1  # standard deviation of v at the start
_DRAWS = 64
_FARTHEST = 1e6  # scales from the middle; no kernel reaches so far
_EDGE = 2.0**-53  # how near to 0 and to 1 a PIT value counts in the fit
_LOG_EDGE = float(np.log(_EDGE))


class Maps(NamedTuple):
    """A fit. Means are taken less the middle, means and standard deviations over the scale."""

    middle: float
    scale: float
    inducing: int  # number of inducing points
    flat: Floats  # the parameters

    @classmethod
    def fitted(cls, rows: Floats, inducing: int, steps: int, seed: int) -> Maps:
        """Fit to an array of shape (3, n), of means, standard deviations and labels."""
        mean, std, y = rows[:, np.lexsort(rows[::-1])]
        middle = float(np.median(mean))
        scale = float(1.5 * np.median(np.abs(mean - middle)) + np.median(std))
        maps = cls(middle, scale, inducing, np.empty(0))
        base = Normal(mean, std)
        below, above = (np.clip(side(y), _LOG_EDGE, -_EDGE) for side in (base.logcdf, base.logsf))
        batch = LabelBatch(maps._scaled(mean, std), below, above, len(y))
        return maps._replace(flat=_fitted(batch, inducing, steps, seed))

    def at(self, mean: Floats, std: Floats, seed: int) -> Floats:
        """Draw ln a, ln b and c for n predicted distributions, antithetically: (3, draws, n)."""
        parameters = Parameters.over(self.flat, self.inducing)
        middle, spread = self.latent(mean, std)
        half = np.random.default_rng(seed).standard_normal((LATENT, _DRAWS // 2))
        white = middle[..., np.newaxis] + spread @ np.concatenate((half, -half), axis=1)
        link = lower(parameters.mixing) / np.exp(parameters.log_gamma)[:, np.newaxis]
        drawn = np.tensordot(link, white, axes=(1, 1)).transpose(0, 2, 1)
        return np.asarray(drawn + parameters.delta[:, np.newaxis, np.newaxis])

    def latent(self, mean: Floats, std: Floats) -> tuple[Floats, Floats]:
        """Return means, (n, 3), and Cholesky factors, (n, 3, 3), before the functions are mixed."""
        parameters = Parameters.over(self.flat, self.inducing)
        there = projected(parameters, self._scaled(mean, std))
        factor = lower(parameters.factor).reshape(LATENT, self.inducing, -1)
        shared = product(there.weight.T, factor).transpose(1, 0, 2)  # (n, 3, 3 m)
        own = there.rest[:, np.newaxis, np.newaxis] * np.eye(LATENT)
        covariance = shared @ shared.transpose(0, 2, 1) + own
        return (parameters.centre @ there.weight).T, np.linalg.cholesky(covariance)

    def _scaled(self, mean: Floats, std: Floats) -> Normals:
        with np.errstate(over="ignore"):  # what no double holds is farthest
            far, wide = (mean - self.middle) / self.scale, std / self.scale
        return Normals(
            np.clip(far, -_FARTHEST, _FARTHEST), np.clip(wide, 1.0 / _FARTHEST, _FARTHEST)
        )


def _fitted(rows: LabelBatch, inducing: int, steps: int, seed: int) -> Floats:
    """Fit all parameters, in one array; there are at least as many rows as inducing points."""
    rng = np.random.default_rng(seed)
    flat = _start(rows.predicted, inducing)
    parameters, adam = Parameters.over(flat, inducing), _Adam(flat, steps)
    for _ in range(steps):
        batch = _taken(rows, rng)
        noise = Noise(
            rng.standard_normal((LATENT * inducing, _SAMPLES)),
            rng.standard_normal((LATENT, _SAMPLES, len(batch.below))),
        )
        parts = bound(parameters, batch, noise)[1]
        adam.step(np.concatenate([part.ravel() for part in parts]))
    return flat


class _Adam:
    """Adam (Kingma & Ba 2015, Algorithm 1) on an array, with a rate that falls as a cosine does."""

    def __init__(self, flat: Floats, steps: int) -> None:
        self._flat, self._steps, self._made = flat, steps, 0
        self._first, self._second = np.zeros((2, len(flat)))

    def step(self, gradient: Floats) -> None:
        rate = _RATE * (1.0 + math.cos(math.pi * self._made / self._steps)) / 2.0
        self._made += 1
        self._first += (1.0 - _DECAYS[0]) * (gradient - self._first)
        self._second += (1.0 - _DECAYS[1]) * (gradient**2 - self._second)
        first = self._first / (1.0 - _DECAYS[0] ** self._made)
        second = self._second / (1.0 - _DECAYS[1] ** self._made)
        self._flat -= rate * first / (np.sqrt(second) + _TINY)


def _taken(rows: LabelBatch, rng: np.random.Generator) -> LabelBatch:
    """Take some rows."""
    n = min(_BATCH, rows.total)
    taken = rng.choice(rows.total, n, replace=False, shuffle=False)
    predicted = Normals(rows.predicted.mean[taken], rows.predicted.spread[taken])
    return LabelBatch(predicted, rows.below[taken], rows.above[taken], rows.total)


def _start(predicted: Normals, inducing: int) -> Floats:
    """Start at the identity, with inducing points evenly among the rows in order of the mean."""
    flat = np.zeros(size(inducing))
    start = Parameters.over(flat, inducing)
    diagonal(start.factor)[:] = np.log(_FIRST_FACTOR)
    n = len(predicted.mean)
    ranks = (2 * np.arange(inducing) + 1) * n // (2 * inducing)
    at = np.argsort(predicted.mean, kind="stable")[ranks]
    start.mean[:] = predicted.mean[at]
    start.log_spread[:] = np.log(predicted.spread[at])
    return flat
