"""Steps of the calibration sets of a mixture, which weighs their predictions.

A mixture of experts runs a batch in columns: first each calibration set, then the mixture. It asks
the sets for a forecast before a label of an observation that was not predicted, and not at all
where an observation expires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.arrays import EXPIRE, LEARN, PREDICT
from abers.forgetting import Forgetting

if TYPE_CHECKING:
    from abers._core import Aggregation, ClassAggregation
    from abers.arrays import Floats, Integers
    from abers.steps import Steps

__all__ = ["HALF_LIVES", "SetSteps", "rules", "set_steps"]

HALF_LIVES = (300, 3000)
"""Half-lives of experts, in predictions."""


class SetSteps(NamedTuple):
    """Steps of calibration sets, a row each, made of those of a mixture."""

    own: Steps  # without numbers and expiries
    rows: Integers  # of the mixture's steps
    last: Integers  # for each step of the mixture the last own one up to there; -1 for none
    moments: Floats  # numbers of predictions before that of the observation

    def times(self, expert: int) -> Floats | None:
        """Return the times by which an expert forgets: event times of the first, else moments."""
        return self.moments if expert else self.own.times

    def sizes(self, before: int, after: Integers) -> Integers:
        """Return numbers kept after each step of the mixture, from those of its first set."""
        return np.concatenate(([before], after))[self.last + 1]


def rules(own: Forgetting) -> list[Forgetting]:
    """List how the Venn-Abers experts forget: the first by the rule of the user, if there is one.

    So no expert keeps more labels than the rule keeps, or than a half-life lasts.
    """
    return [own, *(Forgetting(half_life=float(one)) for one in HALF_LIVES)]


def set_steps(mixture: Aggregation | ClassAggregation, steps: Steps, numbers: Integers) -> SetSteps:
    """Return the steps of the calibration sets; the mixture has not run them yet."""
    n = len(steps.kinds)
    moments, known = np.empty(n), np.empty(n, np.uint8)
    mixture.moments(steps.kinds, numbers, moments, known)
    both = (steps.kinds == LEARN) & (known == 0)  # predict, then learn
    copies = np.where(steps.kinds == EXPIRE, 0, 1 + both)
    rows, last = np.repeat(np.arange(n), copies), np.cumsum(copies) - 1
    own = steps.take(rows)._replace(numbers=None)
    own.kinds[last[both] - 1] = PREDICT
    return SetSteps(own, rows, last, moments[rows])
