"""The fit of GP-Beta: stochastic gradients of the evidence bound, by Adam.

Governing rule: a fit starts from the same place whatever came before, and is a function of the rows
in sorted order and of the seed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from abers.regression._gp_bound import Batch, Noise, bound
from abers.regression._gp_kernel import Normals, diagonal
from abers.regression._gp_model import LATENT, Parameters, sizes

if TYPE_CHECKING:
    from abers._arrays import Floats

__all__ = ["fitted", "size"]

_BATCH, _SAMPLES = 128, 16  # rows and draws a step
_RATE, _DECAYS, _TINY = 0.02, (0.9, 0.999), 1e-8  # of Adam
_FIRST_FACTOR = 0.1  # standard deviation of v at the start


def size(inducing: int) -> int:
    """Count the parameters."""
    return sum(int(np.prod(shape)) for shape in sizes(inducing))


def fitted(rows: Batch, inducing: int, steps: int, seed: int) -> Floats:
    """Fit all parameters, in one array.

    Parameters
    ----------
    rows
        Labels with their predicted distributions, at least as many as there are inducing points.
    inducing
        How many inducing points.
    steps
        Steps of Adam, whose rate falls to 0 as a cosine does.
    seed
        Of all random numbers.
    """
    rng = np.random.default_rng(seed)
    flat = _start(rows.places, inducing)
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


def _taken(rows: Batch, rng: np.random.Generator) -> Batch:
    """Take some rows."""
    n = min(_BATCH, rows.total)
    taken = rng.choice(rows.total, n, replace=False, shuffle=False)
    places = Normals(rows.places.mean[taken], rows.places.spread[taken])
    return Batch(places, rows.below[taken], rows.above[taken], rows.total)


def _start(places: Normals, inducing: int) -> Floats:
    """Start at the identity, with inducing points evenly among the rows in order of the mean."""
    flat = np.zeros(size(inducing))
    start = Parameters.over(flat, inducing)
    diagonal(start.factor)[:] = np.log(_FIRST_FACTOR)
    n = len(places.mean)
    at = np.argsort(places.mean, kind="stable")[(2 * np.arange(inducing) + 1) * n // (2 * inducing)]
    start.mean[:] = places.mean[at]
    start.log_spread[:] = np.log(places.spread[at])
    return flat
