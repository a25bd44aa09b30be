"""Known rates at which labels of each class come.

If the label of an observation comes with a probability r_y that depends on its class y alone, the
labels that came are not as all observations are: those of class y stand for 1 / r_y observations
each. So they are learned with that weight, and a query gets the weight of the class that it is
given; then labels and query are exchangeable by weight (Tibshirani et al. 2019).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers import validation
from abers.exceptions import ParameterError
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats

__all__ = ["ALL", "LEAST", "LabelRates", "among_labelled", "checked_rates"]

LabelRates = tuple[float, float]
"""Shares of the labels of class 0, and of class 1, that come."""

ALL: LabelRates = (1.0, 1.0)
"""The rates where every label comes."""

LEAST = 1e-6
"""The least rate: a label stands for at most so many observations that sums of weights have room.
"""


def checked_rates(rates: Sequence[float]) -> LabelRates:
    """Check rates of labels.

    Parameters
    ----------
    rates
        Share of the labels of class 0 that come, and that of class 1.

    Returns
    -------
    tuple of float
        Both, each from `LEAST` to 1.

    Raises
    ------
    ParameterError
        If they are not two numbers, or out of range.

    Examples
    --------
    >>> checked_rates([0.5, 1])
    (0.5, 1.0)
    """
    try:
        zero, one = (float(validation.score(rate)) for rate in rates)
    except (TypeError, ValueError) as error:
        raise ParameterError(_refused(rates)) from error
    if not all(LEAST <= rate <= 1.0 for rate in (zero, one)):
        raise ParameterError(_refused(rates))
    return zero, one


def among_labelled(probabilities: Floats, rates: LabelRates) -> Floats:
    """Return probabilities of label 1 among observations with labels.

    Parameters
    ----------
    probabilities
        Probabilities among all observations, an array of any shape.
    rates
        The rates of labels.

    Returns
    -------
    numpy.ndarray
        Probabilities with the odds times r_1 / r_0, of the same shape.

    Examples
    --------
    >>> import numpy as np
    >>> among_labelled(np.array([0.0, 0.5, 1.0]), (0.5, 1.0)).round(3).tolist()
    [0.0, 0.667, 1.0]
    """
    if rates[0] == rates[1]:
        return probabilities
    ones = probabilities * rates[1]
    labelled: Floats = ones / (ones + (1.0 - probabilities) * rates[0])
    return labelled


def _refused(rates: object) -> str:
    return (
        f"label_rates={shown(rates)} is not two shares from {LEAST:g} to 1; give the share of "
        "the labels of class 0 that come, then that of class 1"
    )
