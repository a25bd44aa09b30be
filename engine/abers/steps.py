"""Columns of steps: predict, learn, remove, expire.

All steps of a batch are checked before the first one runs. A batch that is refused half-way can be
undone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.arrays import EXPIRE, LEARN, ONE, PREDICT, REMOVE
from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from abers.arrays import Bytes, Floats, Integers

__all__ = ["EXPIRE", "LEARN", "NO_NUMBER", "PREDICT", "REMOVE", "Steps", "interleaved", "one_step"]

NO_NUMBER = -1
"""The number of an observation that has none."""


class Steps(NamedTuple):
    """Checked columns of a batch, one row a step."""

    kinds: Bytes  # 0 predicts, 1 learns, 2 removes, 3 expires
    scores: Floats  # of shape (n,), or (k, n) where an observation has k scores
    labels: NDArray[Any]  # as numbers; those of predictions are ignored
    weights: Integers | None = None  # multiples of 2**-30; None if all weights are 1
    times: Floats | None = None  # event times, or None
    numbers: Integers | None = None  # of observations, -1 for none; None if no row has one
    rows: Integers | None = None  # the caller's, for messages; None if they are 0, 1, ...
    extra: Any = None  # the declared columns of the calibrator, checked

    def take(self, rows: Integers) -> Steps:
        """Return some of the rows, without `extra`."""
        columns = [None if column is None else column[..., rows] for column in self[:6]]
        return Steps._make([*columns, rows if self.rows is None else self.rows[rows], None])

    def row(self, at: int) -> int:
        """Return the caller's number of a row."""
        return at if self.rows is None else int(self.rows[at])

    def total_weight(self) -> float:
        """Return the sum of all weights, those of removals too, in units of 2**-30."""
        if self.weights is None:
            return float(len(self.kinds) * ONE)
        return float(self.weights.sum(dtype=float))

    def inverse(self, done: int) -> Steps:
        """Return the steps that undo the first `done`, if nothing was forgotten meanwhile."""
        back = np.flatnonzero(self.kinds[:done] != PREDICT)[::-1]
        kinds = np.where(self.kinds[back] == LEARN, REMOVE, LEARN).astype(np.uint8)
        return self.take(back)._replace(kinds=kinds, times=None)

    def each(self) -> Iterator[tuple[int, Any, Any, int, float, int]]:
        """Iterate over the rows: kind, score, label, weight, time and number."""
        n = len(self.kinds)
        columns = (
            self.kinds,
            self.scores.T,
            self.labels,
            np.full(n, ONE) if self.weights is None else self.weights,
            np.full(n, np.nan) if self.times is None else self.times,
            np.full(n, NO_NUMBER) if self.numbers is None else self.numbers,
        )
        return zip(*(column.tolist() for column in columns), strict=True)


def interleaved(n: int, delay: int) -> tuple[Integers, Bytes]:
    """Return rows and kinds of a stream in which each label comes `delay` predictions late."""
    if isinstance(delay, bool) or not isinstance(delay, int | np.integer) or delay < 0:
        msg = f"delay={delay!r} is not a whole number of 0 or more"
        raise ParameterError(msg)
    ahead, rows = min(int(delay), n), np.arange(n)
    row, kinds = np.empty(2 * n, np.int64), np.full(2 * n, PREDICT, np.uint8)
    both, last = slice(ahead, 2 * n - ahead), slice(2 * n - ahead, None)
    row[:ahead], row[last] = rows[:ahead], rows[n - ahead :]
    row[both][0::2], row[both][1::2] = rows[ahead:], rows[: n - ahead]
    kinds[both][1::2] = kinds[last] = LEARN
    return row, kinds


def one_step(  # noqa: PLR0913, PLR0917 - the fields of a step
    kind: int, score: Floats, label: int, weight: int, time: float, number: int
) -> Steps:
    """Return a batch of one step of an observation with several scores."""
    return Steps(
        np.array([kind], np.uint8),
        score[:, np.newaxis],
        np.array([label], np.int64),
        np.array([weight], np.int64),
        None if math.isnan(time) else np.array([time]),
        np.array([number], np.int64),
    )
