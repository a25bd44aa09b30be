"""The kernel of normal distributions in GP-Beta, and how its gradients go back.

Governing rule: two normal distributions are as alike as draws from them are under a Gaussian kernel
of some length, on average; lengths and spreads are positive and enter by their logarithms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.regression._products import product

if TYPE_CHECKING:
    from abers._arrays import Floats

__all__ = ["JITTER", "Kernel", "Normals", "cholesky_back", "diagonal", "variance"]

JITTER = 1e-6  # variance of its own that each value of a latent function has


class Normals(NamedTuple):
    """Normal distributions: arrays of shape (n,) of means and of standard deviations."""

    mean: Floats
    spread: Floats


class Kernel:
    """The kernel of all pairs of some distributions with others.

    With z the difference of a draw of each it is the mean of exp(-z^2 / (2 length^2)) (Song et al.
    2019, equation 9).

    Attributes
    ----------
    values
        Array of shape (len(left), len(right)).
    """

    def __init__(self, left: Normals, right: Normals, length: float) -> None:
        self._right, self._length = right, length
        self._total = left.spread[:, np.newaxis] ** 2 + right.spread**2 + length**2
        self._gap = left.mean[:, np.newaxis] - right.mean
        self._square = self._gap**2 / self._total
        self.values: Floats = length / np.sqrt(self._total) * np.exp(-self._square / 2.0)

    def back(self, by_values: Floats) -> tuple[Floats, Floats, float]:
        """Take a gradient by the values back to the right side and the length.

        Returns
        -------
        tuple
            Gradients by the means and by the log spreads of the right side, and by the log length.
        """
        share = by_values * self.values
        slope = share / self._total
        by_total = slope * (self._square - 1.0) / 2.0
        by_mean = (slope * self._gap).sum(axis=0)
        by_spread = 2.0 * self._right.spread**2 * by_total.sum(axis=0)
        return by_mean, by_spread, float(share.sum() + 2.0 * self._length**2 * by_total.sum())


def variance(places: Normals, length: float) -> tuple[Floats, Floats]:
    """Give the kernel of each with itself, and its derivative by the log length."""
    total = 2.0 * places.spread**2 + length**2
    own = length / np.sqrt(total)
    return own, own * (1.0 - length**2 / total)


def cholesky_back(by_factor: Floats, factor: Floats, inverse: Floats) -> Floats:
    """Take a gradient by a lower Cholesky factor back to the symmetric matrix.

    Murray (2016), Differentiation of the Cholesky decomposition.
    """
    middle = np.tril(product(factor.T, by_factor))
    diagonal(middle)[:] /= 2.0
    whole = product(product(inverse.T, middle), inverse)
    return np.asarray((whole + whole.T) / 2.0)


def diagonal(matrix: Floats) -> Floats:
    """See the diagonal of a matrix, to be written to."""
    return matrix.reshape(-1)[:: len(matrix) + 1]
