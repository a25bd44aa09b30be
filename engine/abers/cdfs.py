"""The merged CDF of a band, and where the CDFs of a band reach levels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from abers.arrays import Floats

__all__ = ["merged", "reached"]


def merged(lower: Floats, upper: Floats) -> Floats:
    """Merge a lower CDF L and an upper CDF U to U / (U + 1 - L), minimax for log loss.

    The form below ascends with L and U even after rounding.
    """
    with np.errstate(divide="ignore", over="ignore"):  # U = 0 results in 0
        return np.asarray(1.0 / (1.0 + (1.0 - lower) / upper))


def reached(steps: Floats, levels: Floats) -> Floats:
    """Return where the merged, the upper and the lower CDF reach each level, or infinity.

    `steps` are rows of thresholds, lower and upper CDF.
    """
    thresholds, lower, upper = steps
    places = np.append(thresholds, np.inf)
    cdfs = (merged(lower, upper), upper, lower)
    return np.array([places[np.searchsorted(cdf, levels)] for cdf in cdfs])
