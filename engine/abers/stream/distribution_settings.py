"""Checks of the settings of a regression: levels, thresholds, and the ends of all labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import ParameterError
from abers.stream.setting_values import ascend
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["require_distribution", "require_support"]


def require_distribution(scores: str, quantiles: Sequence[float], grid: Sequence[float]) -> None:
    """Check the kind of scores, the levels of quantiles, and the thresholds."""
    if scores == "probability":
        msg = "scores of a regression task are no probabilities; set scores to any"
        raise ParameterError(msg)
    if not quantiles or not ascend(quantiles, 0.0, 1.0):
        msg = f"quantiles={shown(quantiles)} are not ascending levels between 0 and 1"
        raise ParameterError(msg)
    if not ascend(grid):
        msg = f"grid={shown(grid)} are not ascending finite numbers"
        raise ParameterError(msg)


def require_support(support: Sequence[float], grid: Sequence[float], *, used: bool) -> None:
    """Check that the support is used, finite, and spans the grid."""
    if not used:
        msg = f"support={shown(support)} is for distributions; set distributions = 'scored'"
        raise ParameterError(msg)
    if len(support) != 2 or not ascend(support):  # noqa: PLR2004 - a pair
        msg = f"support={shown(support)} must be a pair of finite ends in order"
        raise ParameterError(msg)
    low, high = support
    if any(not low <= one <= high for one in grid):
        msg = f"support={shown(support)} does not span the grid; widen it"
        raise ParameterError(msg)
