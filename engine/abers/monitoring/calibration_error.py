"""Confidence sequence for the calibration error: how far forecasts are off, at all times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import ParameterError
from abers.monitoring.answers.calibration_error import CalibrationError, calibration_error
from abers.monitoring.findings import FIRST_BIN
from abers.monitoring.forecast_groups import ForecastGroups

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

__all__ = ["CalibrationError", "CalibrationErrorSequence"]


class CalibrationErrorSequence:
    """Ranges of the calibration error in ten bins, of forecasts with labels in their order.

    Parameters
    ----------
    alpha
        Bound on the probability that any range ever misses the error, between 0 and 1.

    Attributes
    ----------
    groups
        Sums of the labelled forecasts; see `ForecastGroups`.

    Raises
    ------
    ParameterError
        If `alpha` is out of its range.

    Notes
    -----
    Let π be the probability that a label is 1, given all forecasts up to its own and the labels of
    all forecasts before it. In each bin [k/10, (k + 1)/10), the last with 1, G is the sum of π less
    forecasts. The calibration error after T labels is the sum of abs(G) over bins, divided by T.
    Forecasts and probabilities may drift.

    **Guarantee.** The probability that any `error()` ever has a range without the calibration error
    of its labels is at most `alpha`, however often you read it, if a forecast is made before its
    label is known and labels come in the order of the forecasts. Forecasts without a label are left
    out, which is valid only if the lack of a label does not depend on its value. Errors that cancel
    inside a bin do not count: the error in bins is a lower bound of that without bins.

    Let D be the ones of a bin less its forecasts, V the sum of (label - forecast)**2, and L(S, V)
    the mean of the two mixtures of `ConfidenceSequence`, at S and at -S. A label moves the sums of
    one bin. So the product of L(D - G, V) over bins is at most a martingale that begins with 1, and
    by Ville's inequality it ever reaches 1/alpha with probability at most alpha. The range has all
    sums of abs(G) for which the product is below and true probabilities are from 0 to 1, or a few
    more. A union over bins is about twice as wide. The mixture is tuned
    for a bin with a V of about 90, before any data.

    References
    ----------
    Howard, Ramdas, McAuliffe & Sekhon (2021), Time-uniform, nonparametric, nonasymptotic
    confidence sequences: proposition 9, for one bin.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> p = rng.beta(2, 5, 20_000)
    >>> sequence, labels = CalibrationErrorSequence(), rng.random(20_000) < p
    >>> sequence.update(p, labels)
    >>> sequence.error().sentence
    'The calibration error is at most 2.3 points.'
    """

    def __init__(self, alpha: float = 0.05) -> None:
        if not 0.0 < alpha < 1.0:
            msg = f"alpha {alpha!r} is not a probability between 0 and 1"
            raise ParameterError(msg)
        self.alpha = alpha
        self.groups = ForecastGroups(1.0)

    def update(self, forecasts: ArrayLike, labels: ArrayLike) -> None:
        """Add labelled forecasts, in the order of the forecasts.

        Parameters
        ----------
        forecasts
            Array of shape (n,): probabilities of label 1.
        labels
            Array of shape (n,): 0 or 1.

        Raises
        ------
        ScoreError, LabelError, ParameterError
            As `corp`; nothing is added then.
        """
        self.groups.update(forecasts, labels)

    def error(self) -> CalibrationError:
        """Return the calibration error of the labels so far, with its range."""
        return calibration_error(self.groups.groups()[FIRST_BIN:], self.alpha)

    @classmethod
    def total(cls, many: Iterable[CalibrationErrorSequence]) -> CalibrationErrorSequence:
        """Add up sequences of different forecasts, which have the alpha of the first.

        The guarantee holds for the total if labels of different sequences do not depend on each
        other, given what was known when they were predicted.
        """
        parts = [*many]
        whole = cls(parts[0].alpha)
        whole.groups = ForecastGroups.total(one.groups for one in parts)
        return whole
