"""Quantile calibration: a base probability is replaced by how often it was not exceeded.

The map is the empirical CDF of the PIT values kept, so a calibrated CDF is a step CDF with a step
at each base quantile of those values: no grid and no interpolation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from abers.batch._pit_map import PITMap
from abers.exceptions import ParameterError
from abers.regression.distribution import PredictiveDistribution

if TYPE_CHECKING:
    from abers.arrays import Floats

__all__ = ["Continuous", "QuantileCalibration"]


class Continuous(Protocol):
    """A continuous distribution, such as a frozen one of `scipy.stats`."""

    def ppf(self, q: Any, /) -> Any:
        """Return the quantiles at an array of levels."""


class QuantileCalibration(PITMap):
    """Map a base CDF to the empirical frequency of labels below it, one map for all inputs.

    It learns the PIT value of each label, the base CDF at it, and maps u to the share of those
    that are at most u.

    Parameters
    ----------
    window
        Keep only the last `window` values; None keeps all.

    Raises
    ------
    ParameterError
        If the window is not a positive whole number.

    Notes
    -----
    **Guarantee.** None at a finite number of labels; with independent PIT values of one
    distribution the map is within sqrt(ln(2 / d) / (2 n)) of the true one everywhere, with
    probability 1 - d (Dvoretzky, Kiefer & Wolfowitz 1956, Massart 1990), so labels fall below a
    calibrated quantile nearly as often as its level says, on average over all inputs.

    With nothing learned, every probability is mapped to 1/2 and the distribution is vacuous.

    **Cost.** Learning and mapping a probability take a search in a sorted list; a distribution of
    a continuous base has a step for each distinct value kept.

    References
    ----------
    Kuleshov, Fenner & Ermon (2018), Accurate uncertainties for deep learning using calibrated
    regression, Algorithm 1.

    Examples
    --------
    >>> from abers.batch import QuantileCalibration
    >>> calibrator = QuantileCalibration()
    >>> calibrator.learn_many([0.4, 0.5, 0.5, 0.7])
    >>> calibrator.calibrated(0.5), calibrator.calibrated([0.1, 0.9]).tolist()
    (0.75, [0.0, 1.0])
    """

    _magic: ClassVar[bytes] = b"abersQC\x01"

    def distribution(self, base: PredictiveDistribution | Continuous) -> PredictiveDistribution:
        """Calibrate a base distribution.

        Parameters
        ----------
        base
            A `PredictiveDistribution`, to map its merged CDF; or a continuous distribution
            with `ppf`, such as a frozen one of `scipy.stats`, with the CDF that made the values.

        Returns
        -------
        PredictiveDistribution
            Its CDF is `calibrated` of the base CDF, everywhere.

        Raises
        ------
        ParameterError
            If the quantiles of the base are not numbers in order.

        Examples
        --------
        >>> from abers.regression import PredictiveDistribution
        >>> calibrator = QuantileCalibration()
        >>> calibrator.learn_many([0.2, 0.4, 0.6, 0.6])
        >>> base = PredictiveDistribution([1.0, 2.0, 3.0], [0.0, 0.3, 0.5, 1.0])
        >>> calibrator.distribution(base).cdf([1.0, 2.0, 3.0]).tolist()
        [0.25, 0.5, 1.0]
        """
        if isinstance(base, PredictiveDistribution):
            return self._mapped_steps(base) if len(self) else _vacuous(base.support)
        return self._steps(base) if len(self) else _vacuous(None)

    def _map(self, u: Floats) -> Floats:
        held = self._sorted
        if not held:
            return np.full(u.shape, 0.5)
        below = np.array([held.bisect_right(value) for value in u.ravel().tolist()], np.float64)
        return below.reshape(u.shape) / len(held)

    def _steps(self, base: Continuous) -> PredictiveDistribution:
        """Step at the base quantiles of the values: the base CDF reaches u from there on."""
        with self._lock:
            values = self._values()
        quantiles = np.where(values > 0.0, np.asarray(base.ppf(values), np.float64), -np.inf)
        if not (quantiles[:-1] <= quantiles[1:]).all() or np.isnan(quantiles).any():
            msg = f"the quantiles of {type(base).__name__} are not numbers in order; fix its ppf"
            raise ParameterError(msg)
        finite = np.unique(quantiles[np.isfinite(quantiles)])
        at_most = np.searchsorted(quantiles, np.append(-np.inf, finite), side="right")
        return PredictiveDistribution(finite, at_most / len(values))


def _vacuous(support: tuple[float, float] | None) -> PredictiveDistribution:
    return PredictiveDistribution([], [0.0], [1.0], support=support)
