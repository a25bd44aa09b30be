"""Mean scores in words.

Governing rule: monitors name scores for machines, here they are named for people; where a mean
leaves something out, it is said how much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers_connectors.summary import Means

__all__ = ["called", "left_out", "number", "worded"]

_LARGE = 100.0
_PLAIN = 0.001, 1e9  # outside, four places are too few, or the others too many
_CALLED = {
    "log_loss": "log loss",
    "brier": "Brier score",
    "ece": "ECE, 10 bins",
    "accuracy": "accuracy",
    "crps": "CRPS",
    "pinball": "pinball loss",
}
_OF_INTERVALS = {"coverage": "coverage of the {} % interval", "width": "width of the {} % interval"}
_BRIEFLY = {"coverage": "in {} %"}


def called(names: Iterable[str], *, briefly: bool = False) -> dict[str, str]:
    """Give those of the names that are told, in their order, and what they are called.

    Parameters
    ----------
    names
        Of mean scores.
    briefly
        Whether there is little room: the widths of intervals are not told then, nor a pinball
        loss beside a CRPS.

    Returns
    -------
    dict
        From names to words.

    Examples
    --------
    >>> called(["brier", "brier_infinite", "coverage_90"])
    {'brier': 'Brier score', 'coverage_90': 'coverage of the 90 % interval'}
    """
    told, of_intervals = {}, _BRIEFLY if briefly else _OF_INTERVALS
    for name in names:
        kind, _, level = name.partition("_")
        if briefly and name == "pinball" and "crps" in told:
            continue
        if name in _CALLED:
            told[name] = _CALLED[name]
        elif kind in of_intervals:
            told[name] = of_intervals[kind].format(level)
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
    >>> worded({"log_loss": None, "log_loss_infinite": 3}, "log_loss", 50)
    'inf (3 of 50)'
    """
    if means is None:
        return "-"
    if name not in means:
        return ""
    if infinite := name == "log_loss" and means["log_loss_infinite"]:
        return f"inf ({infinite:,.0f} of {labels:,})"
    return number(means[name])


def left_out(means: Means, labels: int) -> list[str]:
    """Say which means leave out predictions, since their loss is infinite.

    Parameters
    ----------
    means
        Of the calibrated view.
    labels
        How many predictions were judged.

    Returns
    -------
    list of str
        A sentence each.

    Examples
    --------
    >>> print(*left_out({"crps": 0.25, "crps_infinite": 3}, 50))
    The CRPS leaves out 3 of 50 predictions whose loss is infinite, as while few labels are held.
    """
    return [
        f"The {_CALLED[name]} leaves out {infinite:,.0f} of {labels:,} predictions whose loss is "
        "infinite, as while few labels are held."
        for name in ("crps", "pinball")
        if (infinite := means.get(f"{name}_infinite"))
    ]


def number(value: float | None) -> str:
    """Write a mean, which may be none; a large one with fewer places.

    Examples
    --------
    >>> number(0.25), number(1250.0), number(2.5e-10), number(None)
    ('0.2500', '1,250.00', '2.500e-10', '-')
    """
    if value is None:
        return "-"
    if value and not _PLAIN[0] <= abs(value) < _PLAIN[1]:
        return f"{value:.3e}"
    return f"{value:.4f}" if abs(value) < _LARGE else f"{value:,.2f}"
