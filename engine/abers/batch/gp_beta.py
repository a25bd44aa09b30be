"""GP-Beta: distribution calibration by beta maps that depend on what was predicted.

A prediction is a function of the last fit, of the predicted mean and standard deviation, and of the
seed: the mean of the maps of a fixed set of draws, never the map of a mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers import validation
from abers.batch._beta_curve import BetaCurve, BetaMixture
from abers.batch._gp_rows import GPRows, checked
from abers.batch._normal import Normal
from abers.batch.continuous import CalibratedDistribution
from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from abers.arrays import Floats

__all__ = ["GPBeta"]

# Predicted at a time: so few that matrix products, too small for threads, do not depend on them.
_ROWS, _VALUES = 64, 4096


class GPBeta(GPRows):
    """Calibrate normal predictive distributions by beta maps, one for each mean and spread.

    The base CDF u goes through logistic(a ln u - b ln(1 - u) + c), where ln a, ln b and c are three
    functions of the predicted mean and standard deviation. They are jointly Gaussian processes: two
    predictions that are alike have maps that are alike. A calibrated CDF is the mean of the maps of
    draws from the processes given the labels, and its density the mean of their slopes.

    Parameters
    ----------
    window
        Keep only the last `window` labels; None keeps all.
    inducing
        Number of inducing points, which represent the processes. There is no fit to fewer labels.
    steps
        Steps of stochastic gradient descent a fit.
    refit
        A fit is made when the labels learned since the last one reach this share of those that
        were kept then.
    seed
        Of the fits, and of the draws of predictions.

    Raises
    ------
    ParameterError
        If an option is invalid, or the window is smaller than `inducing`.
    MissingExtraError
        If scipy is not installed.

    Notes
    -----
    **Guarantee.** None. With many labels it is right if maps of this kind are right.

    **Until the first fit**, of as many labels as there are inducing points, it is the identity.

    **Cost.** A fit takes a time that hardly depends on how many labels are kept: with 32 inducing
    points about 2 ms a step. It is made inside the call to `learn_one` or `learn_many` that makes
    it due; predictions in other threads go on with the last fit meanwhile.

    **The fit** maximises a bound of the evidence by sampling, over a full-covariance normal
    distribution of the processes at the inducing points, whitened by the prior (Hensman et al.
    2015); the kernel's length, the coregionalisation matrix, the inducing points and the link
    w / gamma + delta are fitted with it. It starts at gamma = 1, delta = 0, around the identity.
    PIT values are kept 2**-53 away from 0 and 1 in it.

    **Determinism.** The same labels and seed give the same bits with one build of numpy on one
    machine.

    References
    ----------
    Song, Diethe, Kull & Flach (2019), Distribution calibration for regression, section 4; Hensman,
    Matthews & Ghahramani (2015), Scalable variational Gaussian process classification.

    Examples
    --------
    >>> import numpy as np
    >>> from abers.batch import GPBeta
    >>> rng = np.random.default_rng(0)
    >>> mean, std = np.linspace(0.0, 1.0, 400), np.ones(400)  # as predicted
    >>> y = mean + (0.2 + mean) * rng.normal(size=400)  # the labels scatter less on the left
    >>> calibrator = GPBeta(inducing=8, steps=200)
    >>> calibrator.learn_many(mean, std, y)
    >>> low, high = calibrator.distribution(0.1, 1.0), calibrator.distribution(0.9, 1.0)
    >>> bool(low.interval(0.8)[0] > -0.6), bool(high.interval(0.8)[0] < -0.2)
    (True, True)
    >>> GPBeta().distribution(1.0, 2.0)  # nothing is learned: the normal distribution itself
    <CalibratedDistribution: median 1, 80 % in [-1.563, 3.563]>
    >>> GPBeta().log_score_many([0.0, 0.0], [1.0, 2.0], [0.0, 0.0]).round(4).tolist()
    [0.9189, 1.6121]
    >>> GPBeta().maps_many([0.0], [1.0]).tolist()  # a, b and c of the identity
    [[[1.0]], [[1.0]], [[0.0]]]
    """

    def distribution(self, mean: float, std: float) -> CalibratedDistribution:
        """Calibrate a predicted normal distribution.

        Parameters
        ----------
        mean
            Its mean, any finite number.
        std
            Its standard deviation, positive.

        Returns
        -------
        CalibratedDistribution
            A continuous distribution; later labels do not change it.

        Raises
        ------
        ScoreError
            If one cannot be used.
        """
        base = Normal(validation.score(mean), validation.spread(std))
        maps = self._maps
        curves = maps and maps.at(np.array([base.mean]), np.array([base.std]), self.seed)[..., 0]
        return _mapped(base, curves)

    def cdf_many(self, mean: ArrayLike, std: ArrayLike, t: ArrayLike) -> Floats:
        """Return the calibrated CDFs of n predictions, each at numbers of its own.

        Parameters
        ----------
        mean, std
            Arrays of shape (n,), as in `distribution`.
        t
            Array of shape (n,) or (n, k), of finite numbers; labels for the PIT values.

        Returns
        -------
        numpy.ndarray
            Probabilities, of the shape of `t`.

        Raises
        ------
        ScoreError, ParameterError
            If a row cannot be used (a message about a prediction names it), or the lengths differ.
        """
        return self._each(mean, std, validation.finite(t, "t"), CalibratedDistribution.cdf)

    def log_score_many(self, mean: ArrayLike, std: ArrayLike, y: ArrayLike) -> Floats:
        """Negative log densities of n calibrated predictions at their labels, in nats.

        Parameters
        ----------
        mean, std
            Arrays of shape (n,), as in `distribution`.
        y
            Their labels, array of shape (n,) or (n, k), of finite numbers.

        Returns
        -------
        numpy.ndarray
            The scores, of the shape of `y`; smaller is better.

        Raises
        ------
        ScoreError, ParameterError
            As of `cdf_many`, or if a label is not finite.
        """
        return self._each(mean, std, validation.finite(y, "y"), CalibratedDistribution.log_score)

    def quantiles_many(self, mean: ArrayLike, std: ArrayLike, levels: ArrayLike) -> Floats:
        """Quantiles of n calibrated predictions.

        Parameters
        ----------
        mean, std
            Arrays of shape (n,), as in `distribution`.
        levels
            Array of shape (k,), in (0, 1).

        Returns
        -------
        numpy.ndarray
            The quantiles, of shape (n, k).

        Raises
        ------
        ScoreError, ParameterError
            As of `cdf_many`, or if a level is not inside (0, 1).
        """
        q = np.atleast_1d(validation.levels(levels, "level"))
        arguments = np.broadcast_to(q, (len(np.atleast_1d(mean)), len(q)))
        return self._each(mean, std, arguments, CalibratedDistribution.quantile)

    def maps_many(self, mean: ArrayLike, std: ArrayLike) -> Floats:
        """Return the beta maps of each of n predictions, to be inspected; their mean calibrates it.

        Parameters
        ----------
        mean, std
            Arrays of shape (n,), as in `distribution`.

        Returns
        -------
        numpy.ndarray
            Array of shape (3, s, n): a, b and c of s maps for each; before the first fit of one.

        Raises
        ------
        ScoreError, ParameterError
            As of `cdf_many`.
        """
        (means, stds), maps = checked(mean, std), self._maps
        if maps is None:
            return np.tile(np.array(BetaCurve())[:, np.newaxis, np.newaxis], len(means))
        found = maps.at(means, stds, self.seed)
        return np.concatenate((np.exp(found[:2]), found[2:]))

    def _each(
        self,
        mean: ArrayLike,
        std: ArrayLike,
        arguments: Floats,
        method: Callable[[CalibratedDistribution, Floats], Floats],
    ) -> Floats:
        """Call the distribution of each row with its row of `arguments`, in blocks."""
        means, stds = checked(mean, std)
        if arguments.ndim not in (1, 2) or len(arguments) != len(means):
            msg = f"{len(means)} predictions, arguments of shape {arguments.shape}; give each a row"
            raise ParameterError(msg)
        columns = arguments if arguments.ndim > 1 else arguments[:, np.newaxis]
        found, maps = np.empty(columns.shape), self._maps
        rows = min(_ROWS, max(1, _VALUES // max(1, columns.shape[1])))
        for start in range(0, len(means), rows):
            block = slice(start, start + rows)
            base = Normal(means[block, np.newaxis], stds[block, np.newaxis])
            curves = maps and maps.at(means[block], stds[block], self.seed)
            found[block] = method(_mapped(base, curves), columns[block])
        return found.reshape(arguments.shape)


def _mapped(base: Normal, curves: Floats | None) -> CalibratedDistribution:
    return CalibratedDistribution(base, BetaCurve() if curves is None else BetaMixture(curves))
