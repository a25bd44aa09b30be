"""Random splits of rows, the same for every system.

The paper's year and the number of a split decide it, and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

__all__ = ["split"]


def split(n: int, train: float, year: int, number: int) -> tuple[Rows, Rows]:
    """Permute n rows and part them; the first `train`, a share or a number of rows, train."""
    order = np.random.default_rng([year, number]).permutation(n)
    cut = round(n * train) if train < 1 else int(train)
    return order[:cut], order[cut:]
