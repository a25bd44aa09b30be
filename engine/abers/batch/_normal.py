"""The normal distribution, exact in both tails; scipy is imported only when one is made."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.exceptions import MissingExtraError

if TYPE_CHECKING:
    from abers.arrays import Floats

__all__ = ["Normal", "special"]

_LOG_ROOT = math.log(2.0 * math.pi) / 2.0


def special() -> Any:
    """Return scipy's special functions."""
    try:
        from scipy import special as functions  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        msg = "the normal distribution needs scipy; run: pip install 'abers[regression]'"
        raise MissingExtraError(msg) from error
    return functions


class Normal:
    """Normal distributions: means and standard deviations are numbers, or arrays of one shape.

    The methods are those of a frozen distribution of `scipy.stats`, and broadcast as numpy does.
    """

    __slots__ = ("mean", "std")

    def __init__(self, mean: Floats | float, std: Floats | float) -> None:
        self.mean, self.std = mean, std

    def logcdf(self, t: Floats) -> Floats:
        """Return the logarithm of the CDF."""
        return np.asarray(special().log_ndtr(self._z(t)))

    def logsf(self, t: Floats) -> Floats:
        """Return the logarithm of 1 - the CDF."""
        return np.asarray(special().log_ndtr(-self._z(t)))

    def ppf(self, q: Floats) -> Floats:
        """Return the quantiles at levels."""
        return np.asarray(self.mean + self.std * special().ndtri(q))

    def isf(self, q: Floats) -> Floats:
        """Return the quantiles at 1 - levels."""
        return np.asarray(self.mean - self.std * special().ndtri(q))

    def logpdf(self, t: Floats) -> Floats:
        """Return the logarithm of the density."""
        with np.errstate(over="ignore"):
            return np.asarray(-(self._z(t) ** 2) / 2.0 - np.log(self.std) - _LOG_ROOT)

    def _z(self, t: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray((t - self.mean) / self.std)
