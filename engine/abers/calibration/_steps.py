"""Columns of steps: predict, learn, remove.

Governing rule: a batch is a row a step, checked before any of them is taken, so
what was taken of a batch that had to be refused half-way can be taken back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.exceptions import ParameterError
from abers.reference import LEARN, ONE, PREDICT, REMOVE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.calibration._typing import Bytes, Floats, Integers


class Steps(NamedTuple):
    """Checked columns, as `CalibrationSet.run` takes them."""

    kinds: Bytes
    scores: Floats
    labels: Bytes
    units: Integers | None
    when: Floats | None

    def weight(self) -> float:
        """Add all weights up, in units; what is removed too."""
        return float(len(self.kinds) * ONE if self.units is None else self.units.sum(dtype=float))

    def undoing(self, done: int) -> Steps:
        """Give what takes the first `done` steps back, where nothing is forgotten."""
        back = np.flatnonzero(self.kinds[:done] != PREDICT)[::-1]
        inverse = np.where(self.kinds[back] == LEARN, REMOVE, LEARN).astype(np.uint8)
        units = None if self.units is None else self.units[back]
        return Steps(inverse, self.scores[back], self.labels[back], units, None)

    def not_held(self, at: int) -> str:
        """Say of a step that it cannot be removed."""
        units = ONE if self.units is None else int(self.units[at])
        return not_held(float(self.scores[at]), int(self.labels[at]), units)


def not_held(score: float, label: int, units: int) -> str:
    """Say of an observation that it cannot be removed."""
    return (
        f"no weight {units / ONE:g} of score {score!r} with label {label} is held; "
        "remove only what was learned, with the weight it had"
    )


def interleaved(n: int, delay: int) -> tuple[NDArray[np.int64], Bytes]:
    """Rows and kinds of a stream of `n` in which each label comes `delay` predictions late."""
    if isinstance(delay, bool) or not isinstance(delay, int | np.integer) or delay < 0:
        msg = f"delay={delay!r} is not a whole number of observations"
        raise ParameterError(msg)
    ahead = min(int(delay), n)
    row = np.empty(2 * n, np.int64)
    kinds = np.empty(2 * n, np.uint8)
    both = slice(ahead, 2 * n - ahead)
    row[:ahead], kinds[:ahead] = np.arange(ahead), PREDICT
    row[both][0::2], kinds[both][0::2] = np.arange(ahead, n), PREDICT
    row[both][1::2], kinds[both][1::2] = np.arange(n - ahead), LEARN
    row[2 * n - ahead :], kinds[2 * n - ahead :] = np.arange(n - ahead, n), LEARN
    return row, kinds
