"""The fit of GP-Beta: stochastic gradients of the evidence bound, by Adam.

Governing rule: a fit starts from the same place whatever came before, and is a function of the rows
in sorted order and of the seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.regression._gp_kernel import Normals, diagonal
from abers.regression._gp_model import LATENT, Batch, Noise, Parameters, bound, sizes

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
    parameters = Parameters.over(flat, inducing)
    first, second = np.zeros((2, len(flat)))
    n = min(_BATCH, rows.total)
    for step in range(1, steps + 1):
        taken = rng.choice(rows.total, n, replace=False, shuffle=False)
        noise = Noise(
            rng.standard_normal((LATENT * inducing, _SAMPLES)),
            rng.standard_normal((LATENT, _SAMPLES, n)),
        )
        places = Normals(rows.places.mean[taken], rows.places.spread[taken])
        batch = Batch(places, rows.below[taken], rows.above[taken], rows.total)
        parts = bound(parameters, batch, noise)[1]
        gradient = np.concatenate([part.ravel() for part in parts])
        first += (1.0 - _DECAYS[0]) * (gradient - first)
        second += (1.0 - _DECAYS[1]) * (gradient**2 - second)
        rate = _RATE * (1.0 + np.cos(np.pi * (step - 1) / steps)) / 2.0
        unbiased = second / (1.0 - _DECAYS[1] ** step)
        flat -= rate / (1.0 - _DECAYS[0] ** step) * first / (np.sqrt(unbiased) + _TINY)
    return flat


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
