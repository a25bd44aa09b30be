"""Mean of losses; some may be infinite.

An infinite loss is counted and not added, so that it does not hide the others. Terms are added in
their order, so that batches make no difference.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abers.backends import core
from abers.serialization import count, number, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats

__all__ = ["FiniteMean"]


class FiniteMean:
    """Mean of finite terms, from their sum and their number, and the number of infinite terms.

    Examples
    --------
    >>> losses = FiniteMean()
    >>> losses.update(np.array([1.0, np.inf, 2.0]))
    >>> losses.mean, losses.infinite
    (1.5, 1)
    """

    def __init__(self) -> None:
        self.total, self.count, self.infinite = 0.0, 0, 0

    @property
    def mean(self) -> float:
        """Mean of the finite terms; NaN before the first."""
        return self.total / self.count if self.count else math.nan

    def update(self, terms: Floats) -> None:
        """Add terms in their order."""
        finite = terms[np.isfinite(terms)]
        self.total = core.added(self.total, finite)
        self.count += len(finite)
        self.infinite += len(terms) - len(finite)

    def state(self) -> tuple[float, int, int]:
        """Return the state: what `load` takes."""
        return self.total, self.count, self.infinite

    def load(self, state: Sequence[Any]) -> None:
        """Restore a state; a ValueError if it cannot be one."""
        total, counted, infinite = state
        self.count, self.infinite = count(counted, "counts"), count(infinite, "counts")
        self.total = number(total, "sums", 0.0)
        require(self.count or not self.total, "sums")

    def add(self, other: Self) -> None:
        """Add the terms of another mean."""
        self.total += other.total
        self.count += other.count
        self.infinite += other.infinite
