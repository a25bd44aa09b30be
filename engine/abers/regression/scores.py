"""Scores of regression forecasts for the labels that came.

A score is a plain function of arrays, a number an observation, smaller is better; means are left to
the caller, so that nothing infinite is hidden in one. What is not a forecast (a negative spread,
ends in the wrong order, a density below 0) is an error.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from abers.exceptions import ParameterError
from abers.regression.uniformity import Uniformity, pit_histogram, pit_uniformity
from abers.validation import finite, level_list, numbers, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from abers.arrays import Floats

__all__ = [
    "LEVELS",
    "Distribution",
    "Uniformity",
    "covered",
    "crps",
    "crps_normal",
    "crps_sample",
    "interval_score",
    "log_score",
    "log_score_normal",
    "pinball",
    "pit_histogram",
    "pit_uniformity",
    "squared_error",
]

LEVELS = tuple(twentieth / 20 for twentieth in range(1, 20))
"""The levels 0.05, 0.10, …, 0.95, over which the pinball loss is usually averaged."""

_erf = np.frompyfunc(math.erf, 1, 1)


class Distribution(Protocol):
    """A predictive distribution that scores itself, such as `PredictiveDistribution`."""

    def crps(self, y: float, /) -> float:
        """Return the continuous ranked probability score for a label."""
        ...


def crps(distributions: Sequence[Distribution], y: ArrayLike) -> Floats:
    """Continuous ranked probability score of each distribution for its label.

    Parameters
    ----------
    distributions
        n distributions; the masses at infinity are put at the ends of their support.
    y
        Array of shape (n,).

    Returns
    -------
    numpy.ndarray
        The scores, of shape (n,), in the unit of the label.

    Raises
    ------
    ParameterError
        If a label is not finite, or the lengths differ.

    Examples
    --------
    >>> from abers.regression import PredictiveDistribution
    >>> crps([PredictiveDistribution([1.0, 2.0], [0.0, 0.5, 1.0])], [1.5]).tolist()
    [0.25]
    """
    labels = finite(y, "y")
    if labels.shape != (len(distributions),):
        msg = f"y has shape {labels.shape}, not ({len(distributions)},); give one for each"
        raise ParameterError(msg)
    pairs = zip(distributions, labels.tolist(), strict=True)
    return np.array([distribution.crps(label) for distribution, label in pairs], np.float64)


def crps_sample(samples: ArrayLike, y: ArrayLike) -> Floats:
    """Continuous ranked probability score of the empirical CDFs of samples.

    Parameters
    ----------
    samples
        Array of shape (..., m): m equally weighted values a forecast.
    y
        Array of shape (...).

    Returns
    -------
    numpy.ndarray
        The scores, of the shape of `y`.

    Raises
    ------
    ParameterError
        If a sample or a label is not finite.

    Examples
    --------
    >>> crps_sample([[1.0, 2.0]], [1.5]).tolist()
    [0.25]
    """
    points, labels = np.sort(finite(samples, "samples"), axis=-1), finite(y, "y")
    m = points.shape[-1]
    after = np.arange(1, m + 1) / m
    gaps = points - labels[..., np.newaxis]
    return np.asarray(2.0 / m * (((gaps > 0.0) - after + 0.5 / m) * gaps).sum(axis=-1))


def crps_normal(mean: ArrayLike, std: ArrayLike, y: ArrayLike) -> Floats:
    """Continuous ranked probability score of normal distributions, in closed form.

    Parameters
    ----------
    mean, std, y
        Arrays of one shape; standard deviations are positive.

    Returns
    -------
    numpy.ndarray
        The scores, of that shape, in the unit of the label.

    Raises
    ------
    ParameterError
        If a value is not finite, or a standard deviation is not positive.

    References
    ----------
    Gneiting, Raftery, Westveld & Goldman (2005), Calibrated probabilistic forecasting using
    ensemble model output statistics and minimum CRPS estimation, equation (5).

    Examples
    --------
    >>> crps_normal(0.0, 1.0, 0.0).round(4)
    np.float64(0.2337)
    """
    z, spread = _standardised(mean, std, y)
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    balance = np.asarray(_erf(z / math.sqrt(2.0)), np.float64)  # 2 Phi(z) - 1
    return np.asarray(spread * (z * balance + 2.0 * density - 1.0 / math.sqrt(math.pi)))


def log_score(density: ArrayLike) -> Floats:
    """Negative log likelihood, in nats, from the predictive densities at the labels.

    Parameters
    ----------
    density
        Array of any shape, of numbers that are not negative.

    Returns
    -------
    numpy.ndarray
        The scores; infinite where the density is 0.

    Raises
    ------
    ParameterError
        If a density is negative or not finite.

    Examples
    --------
    >>> log_score([1.0, 0.0]).tolist()
    [-0.0, inf]
    """
    densities = finite(density, "density")
    bad = densities[densities < 0.0]
    if bad.size:
        msg = f"density={shown(float(bad[0]))} is negative; give densities, not their logs"
        raise ParameterError(msg)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(densities))


def log_score_normal(mean: ArrayLike, std: ArrayLike, y: ArrayLike) -> Floats:
    """Negative log likelihood, in nats, of labels under normal distributions.

    Parameters
    ----------
    mean, std, y
        As in `crps_normal`.

    Returns
    -------
    numpy.ndarray
        The scores, of the shape of these arrays.

    Raises
    ------
    ParameterError
        As in `crps_normal`.

    Examples
    --------
    >>> log_score_normal(0.0, 1.0, 0.0).round(4)
    np.float64(0.9189)
    """
    z, spread = _standardised(mean, std, y)
    return np.asarray(0.5 * z**2 + np.log(spread) + 0.5 * math.log(2.0 * math.pi))


def squared_error(prediction: ArrayLike, y: ArrayLike) -> Floats:
    """Squared distance of a point forecast and the label.

    Parameters
    ----------
    prediction, y
        Arrays of one shape.

    Returns
    -------
    numpy.ndarray
        The scores; their mean is the MSE.

    Raises
    ------
    ParameterError
        If a forecast or a label is not finite.

    Examples
    --------
    >>> squared_error([1.0, 2.0], [1.0, 4.0]).mean()
    np.float64(2.0)
    """
    return np.asarray((finite(prediction, "prediction") - finite(y, "y")) ** 2)


def pinball(quantiles: ArrayLike, y: ArrayLike, levels: ArrayLike = LEVELS) -> Floats:
    """Pinball loss of quantile forecasts, averaged over the levels.

    Parameters
    ----------
    quantiles
        Array of shape (n, k): the quantiles at k levels; an infinite quantile costs an infinite
        loss.
    y
        Array of shape (n,).
    levels
        Array of shape (k,) in (0, 1); by default 0.05, 0.10, …, 0.95.

    Returns
    -------
    numpy.ndarray
        The losses, of shape (n,).

    Raises
    ------
    ParameterError
        If a label is not finite, a level is not inside (0, 1), or the shapes do not fit.

    Examples
    --------
    >>> pinball([[1.0, 3.0]], [2.0], levels=[0.25, 0.75]).tolist()
    [0.25]
    """
    q, labels = numbers(quantiles, "quantiles"), finite(y, "y")
    at = level_list(levels)
    if q.shape != (len(labels), len(at)):
        msg = f"quantiles has shape {q.shape}, not ({len(labels)}, {len(at)}); give one a level"
        raise ParameterError(msg)
    gaps = labels[:, np.newaxis] - q
    return np.asarray(np.maximum(at * gaps, (at - 1.0) * gaps).mean(axis=1))


def interval_score(low: ArrayLike, high: ArrayLike, y: ArrayLike, level: float) -> Floats:
    """Interval score: the width, and what the label lies outside, times 2 / (1 - level).

    Parameters
    ----------
    low, high, y
        Arrays of one shape.
    level
        Share of labels that the interval promises to cover, in (0, 1).

    Returns
    -------
    numpy.ndarray
        The scores, of that shape.

    Raises
    ------
    ParameterError
        If ends are in the wrong order, a label is not finite, or the level is not in (0, 1).

    References
    ----------
    Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation,
    equation (43).

    Examples
    --------
    >>> interval_score([1.0, 1.0], [3.0, 3.0], [2.0, 4.0], level=0.5).tolist()
    [2.0, 6.0]
    """
    tail, labels = 1.0 - float(level_list([level])[0]), finite(y, "y")
    lows, highs = _ends(low, high)
    outside = np.maximum(lows - labels, 0.0) + np.maximum(labels - highs, 0.0)
    return np.asarray(highs - lows + 2.0 / tail * outside)


def covered(low: ArrayLike, high: ArrayLike, y: ArrayLike) -> NDArray[np.bool_]:
    """Return which labels lie in their intervals, ends included.

    Parameters
    ----------
    low, high, y
        Arrays of one shape.

    Returns
    -------
    numpy.ndarray
        Truth values; their mean is the coverage.

    Raises
    ------
    ParameterError
        If ends are in the wrong order, or a label is not finite.

    Examples
    --------
    >>> covered([0.0, 0.0], [1.0, 1.0], [0.5, 2.0]).mean()
    np.float64(0.5)
    """
    labels = finite(y, "y")
    lows, highs = _ends(low, high)
    return np.asarray((lows <= labels) & (labels <= highs))


def _standardised(mean: ArrayLike, std: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Return how many standard deviations the labels lie above the means, and the deviations."""
    spread = finite(std, "std")
    bad = spread[spread <= 0.0]
    if bad.size:
        msg = f"std={shown(float(bad[0]))} is not positive; a normal forecast needs a spread"
        raise ParameterError(msg)
    return (finite(y, "y") - finite(mean, "mean")) / spread, spread


def _ends(low: ArrayLike, high: ArrayLike) -> tuple[Floats, Floats]:
    lows, highs = numbers(low, "low"), numbers(high, "high")
    if not (lows <= highs).all():
        msg = "an interval ends before it begins; exchange its ends"
        raise ParameterError(msg)
    return lows, highs
