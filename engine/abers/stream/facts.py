"""What labels say of the predictions that were issued, in numbers that can be added up.

Governing rule: sums of these over any predictions, of any number of workers and any time, are all
that scores, calibration errors and coverages need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Facts", "Forecasts", "of_binary", "of_classes"]


class Forecasts(NamedTuple):
    """Probabilities, and what came of them: a row each.

    Attributes
    ----------
    probabilities
        Of label 1; of several classes that of the one which had the largest.
    true
        Whether that is the label that came, as 0 or 1.
    squares
        Brier scores.
    losses
        Log losses, in nats; infinite where what came had the probability 0.
    """

    probabilities: Floats
    true: Floats
    squares: Floats
    losses: Floats


class Facts(NamedTuple):
    """What labels say of predictions, a row each.

    Attributes
    ----------
    forecasts
        By view, "raw" and "calibrated"; none of a regression.
    widths
        Of Venn-Abers intervals; of several classes that of the label that came.
    pit
        The CDFs just below the label, and at it; None without distributions.
    covered
        Whether the central interval of each level covered the label.
    """

    forecasts: Mapping[str, Forecasts]
    widths: Floats | None = None
    pit: tuple[Floats, Floats] | None = None
    covered: Mapping[float, NDArray[np.bool_]] = {}


def of_binary(probabilities: Floats, labels: Floats) -> Forecasts:
    """Judge probabilities of label 1 by labels 0 and 1.

    Examples
    --------
    >>> facts = of_binary(np.array([0.75, 0.5]), np.array([1.0, 0.0]))
    >>> facts.squares.tolist(), facts.losses.round(4).tolist()
    ([0.0625, 0.25], [0.2877, 0.6931])
    """
    of_label = np.where(labels == 1.0, probabilities, 1.0 - probabilities)
    return Forecasts(probabilities, labels, (probabilities - labels) ** 2, _losses(of_label))


def of_classes(probabilities: Floats, labels: NDArray[np.int64]) -> Forecasts:
    """Judge probabilities of several classes, a row each, by numbers of classes.

    Examples
    --------
    >>> facts = of_classes(np.array([[0.7, 0.2, 0.1], [0.5, 0.4, 0.1]]), np.array([0, 1]))
    >>> facts.probabilities.tolist(), facts.true.tolist(), facts.squares.round(2).tolist()
    ([0.7, 0.5], [1.0, 0.0], [0.14, 0.62])
    """
    rows, hot = np.arange(len(labels)), np.eye(probabilities.shape[1])[labels]
    said = probabilities.argmax(axis=1)
    squares = ((probabilities - hot) ** 2).sum(axis=1)
    true = (said == labels).astype(np.float64)
    return Forecasts(probabilities[rows, said], true, squares, _losses(probabilities[rows, labels]))


def _losses(of_label: Floats) -> Floats:
    with np.errstate(divide="ignore"):  # the loss of what was impossible is infinite
        return 0.0 - np.log(of_label)
