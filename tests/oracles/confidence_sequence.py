"""Confidence sequence for the mean of bounded outcomes: a specification of the native core."""

from __future__ import annotations

import math

from tests.oracles.elementary import logarithm
from tests.oracles.incomplete_gamma import LN2, log_front, log_lower_gamma

__all__ = ["ConfidenceSequence"]

_ROOT = 1e-10  # relative precision of a boundary
_SHAPES = 2.0**-300, 2.0**300  # so that nothing overflows


class ConfidenceSequence:
    """Empirical Bernstein confidence sequence; see `abers.monitoring.ConfidenceSequence`."""

    def __init__(self, tightest: float, alpha: float, scale: float) -> None:
        """Choose the mixture before the data."""
        log = -2.0 * logarithm(alpha)
        shape = tightest / (scale * scale) / (log + logarithm(1.0 + log))
        self._scale, self._shape = scale, min(max(shape, _SHAPES[0]), _SHAPES[1])
        self._constant = log_front(self._shape, 0.0) - log_lower_gamma(self._shape, 0.0)

    def log_mixture(self, deviation: float, squares: float) -> float:
        """Return the natural logarithm of the mixture."""
        s, shape = deviation / self._scale, self._shape_of(squares)
        return self._constant - log_front(shape, s) + log_lower_gamma(shape, s)

    def reaches(self, deviation: float, squares: float, alpha: float) -> bool:
        """Return whether a deviation reaches the boundary."""
        return self.reaches_at(deviation, squares, -logarithm(alpha))

    def reaches_at(self, deviation: float, squares: float, threshold: float) -> bool:
        """Return whether it does at the level exp(-threshold)."""
        if deviation <= 0.0 or deviation * deviation < 2.0 * squares * threshold:
            return False
        s, shape = deviation / self._scale, self._shape_of(squares)
        most = self._constant - log_front(shape, s)
        if most < threshold:
            return False
        return most - LN2 >= threshold or most + log_lower_gamma(shape, s) >= threshold

    def boundary(self, squares: float, alpha: float) -> float:
        """Return the deviation at which the mixture reaches 1/alpha."""
        threshold = -logarithm(alpha)

        def excess(deviation: float) -> float:
            return self.log_mixture(deviation, squares) - threshold

        low = math.sqrt(2.0 * squares * threshold)
        high = low + self._scale
        below, above = excess(low), excess(high)
        while above < 0.0:
            low, below, high = high, above, 2.0 * high
            above = excess(high)
        stays = 0
        while high - low > _ROOT * high:
            step = _ROOT / 4.0 * high
            at = (below * high - above * low) / (below - above)
            at = at + step if at < 0.5 * (low + high) else at - step
            at = min(max(at, low + step), high - step)
            if (found := excess(at)) < 0.0:
                low, below = at, found
                above = above / 2.0 if stays == -1 else above
                stays = -1
            else:
                high, above = at, found
                below = below / 2.0 if stays == 1 else below
                stays = 1
        return high

    def _shape_of(self, squares: float) -> float:
        return squares / (self._scale * self._scale) + self._shape
