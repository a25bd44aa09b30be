"""The kernel of normal distributions in GP-Beta with its gradients, and products of matrices.

Two normal distributions are as alike as draws from them are under a Gaussian kernel of some length,
on average; lengths and spreads are positive and enter by their logarithms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from abers.arrays import Floats

__all__ = ["JITTER", "Kernel", "Normals", "cholesky_back", "diagonal", "product", "variance"]

JITTER = 1e-6  # variance of its own that each value of a latent function has
_BLOCK_MULTIPLICATIONS = 1 << 18  # with more OpenBLAS begins to use threads


class Normals(NamedTuple):
    """Normal distributions: arrays of shape (n,) of means and of standard deviations."""

    mean: Floats
    spread: Floats


class Kernel:
    """The kernel of all pairs of some distributions with others.

    With z the difference of a draw of each it is the mean of exp(-z^2 / (2 length^2)) (Song et al.
    2019, equation 9). `values` has the shape (len(left), len(right)).
    """

    def __init__(self, left: Normals, right: Normals, length: float) -> None:
        self._right, self._length = right, length
        self._total = left.spread[:, np.newaxis] ** 2 + right.spread**2 + length**2
        self._gap = left.mean[:, np.newaxis] - right.mean
        self._square = self._gap**2 / self._total
        self.values: Floats = length / np.sqrt(self._total) * np.exp(-self._square / 2.0)

    def back(self, by_values: Floats) -> tuple[Floats, Floats, float]:
        """Return the gradients by means and log spreads of the right side, and by log length."""
        share = by_values * self.values
        slope = share / self._total
        by_total = slope * (self._square - 1.0) / 2.0
        by_mean = (slope * self._gap).sum(axis=0)
        by_spread = 2.0 * self._right.spread**2 * by_total.sum(axis=0)
        return by_mean, by_spread, float(share.sum() + 2.0 * self._length**2 * by_total.sum())


def variance(predicted: Normals, length: float) -> tuple[Floats, Floats]:
    """Return the kernel of each with itself, and its derivative by the log length."""
    total = 2.0 * predicted.spread**2 + length**2
    own = length / np.sqrt(total)
    return own, own * (1.0 - length**2 / total)


def cholesky_back(by_factor: Floats, factor: Floats, inverse: Floats) -> Floats:
    """Return a gradient by a lower Cholesky factor as one by the symmetric matrix.

    Murray (2016), Differentiation of the Cholesky decomposition.
    """
    middle = np.tril(product(factor.T, by_factor))
    diagonal(middle)[:] /= 2.0
    whole = product(product(inverse.T, middle), inverse)
    return np.asarray((whole + whole.T) / 2.0)


def diagonal(matrix: Floats) -> Floats:
    """Return a view of the diagonal of a matrix, to be written to."""
    return matrix.reshape(-1)[:: len(matrix) + 1]


def product(left: Floats, right: Floats) -> Floats:
    """Multiply a matrix of shape (m, k) and one or several of shape (..., k, n).

    In blocks that BLAS multiplies in one thread. Where other work has the cores, threads that wait
    for each other take a hundred times as long as the product itself; and so the last bits do not
    depend on how many there are.
    """
    blocks = -(-left.size * right.shape[-1] // _BLOCK_MULTIPLICATIONS)
    if blocks <= 1:
        return left @ right
    parts = [part @ right for part in np.array_split(left, min(blocks, len(left)))]
    return np.concatenate(parts, axis=-2)
