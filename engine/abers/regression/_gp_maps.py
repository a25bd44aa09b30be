"""A fitted GP-Beta model: beta maps for any predicted normal distribution.

Governing rule: what is fitted is one array of numbers; the three latent values at a place are
normal given it, and the maps there are made of a fixed set of draws, the same for all places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.regression._gp_bound import Batch
from abers.regression._gp_fit import fitted
from abers.regression._gp_kernel import Normals
from abers.regression._gp_model import LATENT, Parameters, lower, projected
from abers.regression._normal import Normal
from abers.regression._products import product

if TYPE_CHECKING:
    from abers._arrays import Floats

__all__ = ["Maps"]

_DRAWS = 64
_FARTHEST = 1e6  # scales from the middle; no kernel reaches so far
_EDGE = 2.0**-53  # how near to 0 and to 1 a PIT value counts in the fit
_LOG_EDGE = float(np.log(_EDGE))


class Maps(NamedTuple):
    """What a fit gave.

    Attributes
    ----------
    middle, scale
        Means are taken less the middle, means and standard deviations over the scale.
    inducing
        How many inducing points there are.
    flat
        The parameters.
    """

    middle: float
    scale: float
    inducing: int
    flat: Floats

    @classmethod
    def fitted(cls, rows: Floats, inducing: int, steps: int, seed: int) -> Maps:
        """Fit to an array of shape (3, n), of means, standard deviations and labels."""
        mean, std, y = rows[:, np.lexsort(rows[::-1])]
        middle = float(np.median(mean))
        scale = float(1.5 * np.median(np.abs(mean - middle)) + np.median(std))
        maps = cls(middle, scale, inducing, np.empty(0))
        base = Normal(mean, std)
        below, above = (np.clip(side(y), _LOG_EDGE, -_EDGE) for side in (base.logcdf, base.logsf))
        batch = Batch(maps._places(mean, std), below, above, len(y))
        return maps._replace(flat=fitted(batch, inducing, steps, seed))

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
        """Give means, (n, 3), and Cholesky factors, (n, 3, 3), before the functions are mixed."""
        parameters = Parameters.over(self.flat, self.inducing)
        there = projected(parameters, self._places(mean, std))
        factor = lower(parameters.factor).reshape(LATENT, self.inducing, -1)
        shared = product(there.weight.T, factor).transpose(1, 0, 2)  # (n, 3, 3 m)
        own = there.rest[:, np.newaxis, np.newaxis] * np.eye(LATENT)
        covariance = shared @ shared.transpose(0, 2, 1) + own
        return (parameters.centre @ there.weight).T, np.linalg.cholesky(covariance)

    def _places(self, mean: Floats, std: Floats) -> Normals:
        with np.errstate(over="ignore"):  # what no double holds is farthest
            far, wide = (mean - self.middle) / self.scale, std / self.scale
        return Normals(
            np.clip(far, -_FARTHEST, _FARTHEST), np.clip(wide, 1.0 / _FARTHEST, _FARTHEST)
        )
