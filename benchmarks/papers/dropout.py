"""A network of two hidden layers, with the spread of its passes with dropout, in numpy.

Units are left out at prediction as they were in training, so a fit is a function of
its rows and seed, and a prediction of the fit, of the seed and of the rows it is asked for at once.

Gal & Ghahramani (2016), Dropout as a Bayesian approximation, as Song et al. (2019) set it in their
code; the defaults of Adadelta (Zeiler 2012) and of the first weights are those of Keras then.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Numbers = NDArray[Any]  # of single precision in a fit, as in Keras

__all__ = ["Network", "begun", "kept", "loss"]

_HIDDEN, _PENALTY = (128, 128), 1e-4  # units of the layers, and weight of the squared weights
_PASSES = 128
_PATIENCE = 256  # epochs without a smaller loss
_MOST = 20_000_000  # rows seen in a fit, one as often as there are epochs
_DECAY, _TINY = 0.95, 1e-7  # of Adadelta


class Network(NamedTuple):
    """A fitted network: weights and offsets of each layer by turns."""

    weights: list[Numbers]
    seed: int

    @classmethod
    def fitted(cls, x: Floats, y: Floats, seed: int, *, most: int = _MOST) -> Network:
        """Fit to features of shape (n, p) and targets of shape (n,), seeing `most` rows or less."""
        rng = np.random.default_rng(seed)
        rows, targets = x.astype(np.float32), y.astype(np.float32)
        weights = [part.astype(np.float32) for part in begun(rows.shape[1], rng)]
        adadelta = _Adadelta(weights)
        least, waited = np.inf, 0
        for _ in range(most // len(y)):
            total = 0.0
            for batch in np.array_split(rng.permutation(len(y)), 2):
                value, slopes = loss(weights, rows[batch], targets[batch], kept(len(batch), rng))
                adadelta.step(slopes)
                total += value * len(batch)
            least, waited = (total, 0) if total < least else (least, waited + 1)
            if waited == _PATIENCE:
                break
        return cls(weights, seed)

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """Return means and standard deviations; the noise grows with the number of rows asked for.

        It is 1 / tau, tau = (1 - rate) length^2 / (2 n penalty), in the paper's code with the n of
        the rows that are predicted, where theory has those that were learned.
        """
        rng, rows = np.random.default_rng([self.seed, _PASSES]), x.astype(np.float32)
        passes = [_layers(self.weights, rows, kept(len(x), rng))[-1] for _ in range(_PASSES)]
        answers = np.array(passes, np.float64)[..., 0]
        noise = 4.0 * len(x) * _PENALTY  # with a rate of 1/2 and a length of 1
        return answers.mean(axis=0), np.sqrt(answers.var(axis=0) + noise)


def begun(features: int, rng: np.random.Generator) -> list[Floats]:
    """Draw first weights (Glorot & Bengio 2010); offsets begin at 0."""
    parts = []
    for before, after in pairwise((features, *_HIDDEN, 1)):
        most = (6.0 / (before + after)) ** 0.5
        parts += [rng.uniform(-most, most, (before, after)), np.zeros(after)]
    return parts


def kept(n: int, rng: np.random.Generator) -> list[Numbers]:
    """Draw which units stay, and count twice, in each row and hidden layer."""
    return [rng.integers(2, size=(n, units), dtype=np.bool_) * np.float32(2) for units in _HIDDEN]


def loss(
    weights: list[Numbers], x: Numbers, y: Numbers, masks: list[Numbers]
) -> tuple[float, list[Numbers]]:
    """Return the mean square error with its penalty, and its gradient by each part of `weights`."""
    *layers, answers = _layers(weights, x, masks)
    error = answers[:, 0] - y
    slopes = [2.0 * _PENALTY * part if part.ndim > 1 else 0.0 * part for part in weights]
    back = (error * (2.0 / len(y)))[:, np.newaxis]
    for k in range(len(layers))[::-1]:
        slopes[2 * k] += layers[k].T @ back
        slopes[2 * k + 1] += back.sum(axis=0)
        if k:
            back = back @ weights[2 * k].T * (layers[k] > 0.0) * masks[k - 1]
    penalty = _PENALTY * sum(float((part**2).sum()) for part in weights[::2])
    return float((error**2).mean()) + penalty, slopes


def _layers(weights: list[Numbers], x: Numbers, masks: list[Numbers]) -> list[Numbers]:
    """Return what enters each layer, and what the last one answers."""
    layers = [x]
    for k, mask in enumerate(masks):
        layers.append(np.maximum(layers[-1] @ weights[2 * k] + weights[2 * k + 1], 0.0) * mask)
    return [*layers, layers[-1] @ weights[-2] + weights[-1]]


class _Adadelta:
    """Adadelta with a rate of 1, which changes `weights` in place."""

    def __init__(self, weights: list[Numbers]) -> None:
        self._weights = weights
        self._slopes = [np.zeros_like(part) for part in weights]  # mean squares
        self._steps = [np.zeros_like(part) for part in weights]

    def step(self, slopes: list[Numbers]) -> None:
        for k, slope in enumerate(slopes):
            self._slopes[k] += (1.0 - _DECAY) * (slope**2 - self._slopes[k])
            step = np.sqrt((self._steps[k] + _TINY) / (self._slopes[k] + _TINY)) * slope
            self._steps[k] += (1.0 - _DECAY) * (step**2 - self._steps[k])
            self._weights[k] -= step
