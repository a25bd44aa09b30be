"""A mean of losses of which some may be infinite.

Governing rule: what is infinite is counted and not added, so that one loss does not hide the
others; and terms are added in their order, so that it does not matter how they were batched.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abers._backend import core
from abers._saved import count, number, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["FiniteMean"]


class FiniteMean:
    """The mean of those terms that are finite.

    Parameters
    ----------
    total
        Their sum.
    count
        How many they are.
    infinite
        How many were not.

    Examples
    --------
    >>> losses = FiniteMean()
    >>> losses.update(np.array([1.0, np.inf, 2.0]))
    >>> losses.mean, losses.infinite
    (1.5, 1)
    """

    def __init__(self, total: float = 0.0, count: int = 0, infinite: int = 0) -> None:
        self.total, self.count, self.infinite = total, count, infinite

    @property
    def mean(self) -> float:
        """The mean; NaN before the first finite term."""
        return self.total / self.count if self.count else math.nan

    def update(self, terms: NDArray[np.float64]) -> None:
        """Add terms in their order."""
        finite = terms[np.isfinite(terms)]
        self.total = core.added(self.total, finite)
        self.count += len(finite)
        self.infinite += len(terms) - len(finite)

    def state(self) -> tuple[float, int, int]:
        """Give the arguments that make another like it."""
        return self.total, self.count, self.infinite

    def load(self, state: Sequence[Any]) -> None:
        """Become the mean that gave this `state`; a ValueError if none did."""
        total, counted, infinite = state
        self.count, self.infinite = count(counted, "counts"), count(infinite, "counts")
        self.total = number(total, "sums", 0.0)
        require(self.count or not self.total, "sums")

    def add(self, other: Self) -> None:
        """Add the terms of another mean."""
        self.total += other.total
        self.count += other.count
        self.infinite += other.infinite
