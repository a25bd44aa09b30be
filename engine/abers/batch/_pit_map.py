"""Maps of probabilities that are made from PIT values, which are what they remember.

A PIT value is the CDF of the base distribution at the label. The map is a function of the values
kept alone, in sorted order, so it does not depend on their order of arrival.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections import deque
from typing import TYPE_CHECKING, overload

import numpy as np
from sortedcontainers import SortedList

from abers import validation
from abers.arrays import packed, parsed
from abers.exceptions import ScoreError
from abers.forgetting import Forgetting
from abers.regression.distribution import PredictiveDistribution
from abers.saveable import Saveable
from abers.serialization import pack, require, unpack
from abers.validation import numbers, shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Floats
    from abers.regression.base_distribution import Many

__all__ = ["PITMap"]

_WINDOW = struct.Struct("<Q")


class PITMap(Saveable):
    """A monotone map of [0, 1] to itself that makes the CDFs of a base model calibrated."""

    def __init__(self, window: int | None = None) -> None:
        self._begin(Forgetting(window).window, [])

    def _begin(self, window: int | None, values: list[float]) -> None:
        self._window = window
        self._sorted = SortedList(values)
        self._arrived = deque([] if window is None else values)

    @property
    def window(self) -> int | None:
        """Number of PIT values kept at most, None without a window."""
        return self._window

    def __len__(self) -> int:
        """Count the PIT values kept."""
        return len(self._sorted)

    def __repr__(self) -> str:
        """Name the window and the number of values."""
        option = "" if self._window is None else f"window={self._window}"
        return f"<{type(self).__name__}({option}) of {len(self)} PIT values>"

    @abstractmethod
    def _map(self, u: Floats) -> Floats:
        """Map checked probabilities."""

    def learn_one(self, u: float) -> None:
        """Learn one PIT value: the base CDF at the label, as it was predicted.

        Parameters
        ----------
        u
            The value, in [0, 1]; of a step CDF the randomised one, `PredictiveDistribution.pit`.

        Raises
        ------
        ScoreError
            If it is not a number in [0, 1]; nothing is learned then.
        """
        values = _checked(np.array([validation.score(u)]))
        with self._lock:
            self._keep(values.tolist())

    def learn_many(self, us: ArrayLike) -> None:
        """Learn an array of PIT values, or nothing if one is bad.

        Parameters
        ----------
        us
            Array of shape (n,), as in `learn_one`.

        Raises
        ------
        ScoreError
            If a row cannot be used; the message names the first one.
        """
        values = _checked(validation.scores(us), "row {}: ")
        with self._lock:
            self._keep(values.tolist())

    @overload
    def calibrated(self, u: float) -> float: ...
    @overload
    def calibrated(self, u: Many) -> Floats: ...
    def calibrated(self, u: float | Many) -> float | Floats:
        """Map probabilities of the base model.

        Parameters
        ----------
        u
            A probability, or an array of them of any shape.

        Returns
        -------
        float or numpy.ndarray
            The calibrated probabilities, of the shape of `u`.

        Raises
        ------
        ScoreError
            If one is not in [0, 1].
        """
        values = _checked(numbers(u, "u"))
        with self._lock:
            mapped = self._map(values)
        return mapped if mapped.ndim else float(mapped)

    def _mapped_steps(self, base: PredictiveDistribution) -> PredictiveDistribution:
        """Map the merged CDF of a step distribution."""
        return PredictiveDistribution(
            base.thresholds, self.calibrated(base.values), support=base.support
        )

    def _keep(self, values: list[float]) -> None:
        self._sorted.update(values)
        if self._window is not None:
            self._arrived.extend(values)
            while len(self._arrived) > self._window:
                self._sorted.remove(self._arrived.popleft())

    def _values(self) -> Floats:
        """List what is kept, in order."""
        return np.array(self._sorted, np.float64)

    def _save(self) -> bytes:
        return pack(self._pieces())

    def _load(self, payload: memoryview) -> None:
        self._fill(unpack(payload))

    def _pieces(self) -> list[bytes]:
        held = self._sorted if self._window is None else self._arrived
        column = b"".join(packed(np.array(held, np.float64)))
        return [_WINDOW.pack(self._window or 0), column]

    def _fill(self, pieces: list[bytes]) -> None:
        header, columns = pieces
        (window,) = _WINDOW.unpack(header)
        ((letter, column),) = parsed(columns, 0)
        values = _checked(validation.scores(column), "row {}: ")
        orderly = len(values) <= window if window else bool((values[:-1] <= values[1:]).all())
        require(letter == "d" and orderly, "values")
        self._begin(Forgetting(window or None).window, values.tolist())


def _checked(values: Floats, where: str = "") -> Floats:
    bad = np.flatnonzero(~((values >= 0.0) & (values <= 1.0)))
    if bad.size:
        value = f"{where.format(bad[0])}PIT value {shown(float(values.flat[bad[0]]))}"
        msg = f"{value} is not in [0, 1]; give the base CDF at the label"
        raise ScoreError(msg)
    return values
