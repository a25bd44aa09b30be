"""The answer of a calibrator of several classes.

Governing rule: each class has a probability and an interval of its own; only the
probabilities are made to sum to one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from abers.calibration._classes import Label

__all__ = ["MultiInterval"]


class MultiInterval(NamedTuple):
    """Calibrated probabilities of several classes, each with an interval.

    Attributes
    ----------
    p
        Probability of each class; they sum to one.
    low, high
        Ends of the interval of each class, before the probabilities were made to sum
        to one: so `p` may lie outside.

    Examples
    --------
    >>> MultiInterval({"a": 2 / 3, "b": 1 / 3}, {"a": 0.5, "b": 0.0}, {"a": 1.0, "b": 0.5})
    MultiInterval('a': 0.6667 [0.5, 1], 'b': 0.3333 [0, 0.5])
    """

    p: dict[Label, float]
    low: dict[Label, float]
    high: dict[Label, float]

    def __repr__(self) -> str:
        """List the classes: probability and interval, in four digits."""
        told = (
            f"{c!r}: {p:.4g} [{self.low[c]:.4g}, {self.high[c]:.4g}]" for c, p in self.p.items()
        )
        return f"{type(self).__name__}({', '.join(told)})"
