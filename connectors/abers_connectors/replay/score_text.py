"""Mean scores as text, with names for people, and what a mean leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring import measure
from abers.pages.methods import methods_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from abers_connectors.replay.summary import Means

__all__ = ["left_out", "number", "score_cell", "score_labels", "trusted"]

_LARGE = 100.0
_PLAIN = 0.001, 1e9  # outside, four decimals are too few or too many


def score_labels(names: Iterable[str], *, briefly: bool = False) -> dict[str, str]:
    """Return the text of each score that is shown, in the same order.

    Briefly, interval widths are left out, and a pinball loss next to a CRPS.

    Examples
    --------
    >>> score_labels(["brier", "brier_infinite", "coverage_90"])
    {'brier': 'Brier score', 'coverage_90': 'coverage of the 90 % interval'}
    """
    found = {}
    for name in names:
        one = measure(name)
        if one is None or (briefly and name == "pinball" and "crps" in found):
            continue
        words = one.label if not briefly or one.brief is None else one.brief
        if words:
            found[name] = words
    return found


def score_cell(means: Means | None, name: str, labels: int) -> str:
    """Return the text of a cell: a mean score of one view, over a number of labels.

    It is a dash if the view is not scored, and empty if the view does not have this score.

    Examples
    --------
    >>> score_cell({"log_loss": None, "log_loss_infinite": 3}, "log_loss", 50)
    'inf (3 of 50)'
    """
    if means is None:
        return "-"
    if name not in means:
        return ""
    infinite, one = means.get(f"{name}_infinite"), measure(name)
    if infinite and one is not None and not one.finite:
        return f"inf ({infinite:,.0f} of {labels:,})"
    return number(means[name])


def left_out(means: Means, labels: int) -> list[str]:
    """Return a sentence for each calibrated mean that leaves out predictions of infinite loss.

    Examples
    --------
    >>> print(*left_out({"crps": 0.25, "crps_infinite": 3}, 50))
    3 of 50 predictions had an infinite CRPS; they are not in its mean.
    """
    known = ((measure(name), means.get(f"{name}_infinite")) for name in means)
    return [
        f"{infinite:,.0f} of {labels:,} predictions had an infinite {one.label}; they are not in "
        "its mean."
        for one, infinite in known
        if one is not None and one.finite and infinite
    ]


def trusted(experts: Mapping[str, Mapping[str, float | None]]) -> str:
    """Return which method has most weight; empty without any weight.

    Examples
    --------
    >>> trusted({"raw": {"weight": 0.2, "loss": 70.0}, "jumper": {"weight": 0.8, "loss": 60.0}})
    'mostly the method “switching” (80 %)'
    """
    weights = {name: one["weight"] for name, one in experts.items() if one["weight"]}
    if not weights:
        return ""
    most = max(weights, key=lambda name: weights[name] or 0.0)
    method = methods_of(experts)[most].name
    return f"mostly the method “{method}” ({weights[most]:.0%})".replace("%)", " %)")


def number(value: float | None) -> str:
    """Return the text of a count, or of a mean, with fewer decimals if large; a dash if None.

    Examples
    --------
    >>> number(0.25), number(1250.0), number(2.5e-10), number(1250), number(None)
    ('0.2500', '1,250.00', '2.500e-10', '1,250', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    if value and not _PLAIN[0] <= abs(value) < _PLAIN[1]:
        return f"{value:.3e}"
    return f"{value:.4f}" if abs(value) < _LARGE else f"{value:,.2f}"
