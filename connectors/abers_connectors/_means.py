"""Mean scores in words.

Governing rule: monitors name scores for machines, here they are named for people; a mean that
leaves something out says how much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers_connectors.summary import Means

__all__ = ["called", "number", "worded"]

_CALLED = {
    "log_loss": "log loss",
    "brier": "Brier score",
    "ece": "ECE, 10 bins",
    "accuracy": "accuracy",
    "crps": "CRPS",
    "pinball": "pinball loss",
}
_OF_INTERVALS = {"coverage": "coverage of the {} % interval", "width": "width of the {} % interval"}


def called(names: Iterable[str], *, widths: bool = True) -> dict[str, str]:
    """Give those of the names that are told, in their order, and what they are called.

    Parameters
    ----------
    names
        Of mean scores.
    widths
        Whether the widths of intervals are told.

    Returns
    -------
    dict
        From names to words.

    Examples
    --------
    >>> called(["brier", "brier_infinite", "coverage_90"])
    {'brier': 'Brier score', 'coverage_90': 'coverage of the 90 % interval'}
    """
    told = {}
    for name in names:
        kind, _, level = name.partition("_")
        if name in _CALLED:
            told[name] = _CALLED[name]
        elif kind == "coverage" or (kind == "width" and widths):
            told[name] = _OF_INTERVALS[kind].format(level)
    return told


def worded(means: Means | None, name: str, labels: int) -> str:
    """Write the mean of this name in one view.

    Parameters
    ----------
    means
        Of the view; None if it is not judged.
    name
        Of a score, which may be none of this view.
    labels
        How many predictions were judged.

    Returns
    -------
    str
        The text of a cell.

    Examples
    --------
    >>> worded({"pinball": 0.25, "pinball_infinite": 3}, "pinball", 50)
    '0.2500 (but 3 of 50)'
    """
    if means is None:
        return "-"
    if name not in means:
        return ""
    mean, infinite = means[name], means.get(f"{name}_infinite")
    if not infinite:
        return number(mean)
    if mean is None:
        return f"inf ({infinite:,.0f} of {labels:,})"
    return f"{number(mean)} (but {infinite:,.0f} of {labels:,})"


def number(value: float | None) -> str:
    """Write a mean, which may be none."""
    return "-" if value is None else f"{value:.4f}"
