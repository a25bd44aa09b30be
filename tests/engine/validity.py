"""Whether a probability is perfectly calibrated for the labels, bin by bin.

E[(Y - p) g(p)] is 0 for every bounded g if p is perfectly calibrated. Here g are
indicators of bins of p, over independent draws. The bounds hold for all bins at once with a
probability of 1 - 1e-6; planted faults must break them.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ERROR_RATE = 1e-6
EDGES = np.array([0.0, 1e-9, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0 - 1e-9])
"""Lower ends of the bins of p_Y; 0 and 1 are bins of their own."""


def miscalibrated(p: NDArray[np.float64], labels: NDArray[np.int64]) -> list[int]:
    """Bins in which the mean of Y - p is further from 0 than chance allows."""
    bins = np.digitize(p, EDGES) - 1
    bound = NormalDist().inv_cdf(1.0 - ERROR_RATE / (2 * len(EDGES)))
    found = []
    for one in range(len(EDGES)):
        terms = np.where(bins == one, labels - p, 0.0)
        if abs(terms.sum()) > bound * np.sqrt((terms**2).sum()) + 1e-9:
            found.append(one)
    return found
