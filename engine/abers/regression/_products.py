"""Products of small matrices.

Governing rule: a product is made in blocks that BLAS multiplies in one thread. Where other work has
the cores, threads that wait for each other take a hundred times as long as the product itself; and
so the last bits do not depend on how many there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from abers._arrays import Floats

__all__ = ["product"]

_MOST = 1 << 18  # multiplications; with more OpenBLAS begins to use threads


def product(left: Floats, right: Floats) -> Floats:
    """Multiply a matrix of shape (m, k) and one or several of shape (..., k, n)."""
    blocks = -(-left.size * right.shape[-1] // _MOST)
    if blocks <= 1:
        return left @ right
    parts = [part @ right for part in np.array_split(left, min(blocks, len(left)))]
    return np.concatenate(parts, axis=-2)
