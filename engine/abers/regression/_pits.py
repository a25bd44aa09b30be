"""Maps of probabilities that are made from PIT values, which are what they remember.

Governing rule: a PIT value is what the base distribution said of the label, its CDF there; the map
is a function of the values held alone, in sorted order, whatever the order they came in.
"""

from __future__ import annotations

import struct
import threading
from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Self, overload

import numpy as np
from sortedcontainers import SortedList

from abers._arrays import packed, parsed
from abers._sealed import REMEDY, seal, unseal
from abers._shown import shown
from abers.calibration import _checks
from abers.calibration._forgetting import Forgetting
from abers.calibration._packing import pack, unpack
from abers.exceptions import InputError, ScoreError, StateError
from abers.regression._asked import numbers
from abers.regression.distribution import PredictiveDistribution

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers._arrays import Floats
    from abers.regression.distribution import Many

__all__ = ["PITMap"]

_WINDOW = struct.Struct("<Q")


class PITMap(ABC):
    """A monotone map of [0, 1] to itself that makes the CDFs of a base model calibrated."""

    _magic: bytes

    def __init__(self, window: int | None = None) -> None:
        self._begin(Forgetting(window).window, [])

    def _begin(self, window: int | None, values: list[float]) -> None:
        self._lock = threading.Lock()
        self._window = window
        self._sorted = SortedList(values)
        self._arrived = deque([] if window is None else values)

    @property
    def window(self) -> int | None:
        """Number of PIT values kept at most, None without a window."""
        return self._window

    def __len__(self) -> int:
        """Count the PIT values held."""
        return len(self._sorted)

    def __bool__(self) -> bool:
        """Be true even when nothing is held, so that `calibrator or default` keeps it."""
        return True

    def __repr__(self) -> str:
        """Name the window and the number of values."""
        option = "" if self._window is None else f"window={self._window}"
        return f"<{type(self).__name__}({option}) of {len(self)} PIT values>"

    # What maps differ in

    @abstractmethod
    def _map(self, u: Floats) -> Floats:
        """Map checked probabilities."""

    # The calls

    def learn_one(self, u: float) -> None:
        """Learn one PIT value: the base CDF at the label, as it was predicted.

        Parameters
        ----------
        u
            The value, in [0, 1]; of a step CDF the randomised one, `PredictiveDistribution.pit`.

        Raises
        ------
        ScoreError
            If it is no number in [0, 1]; nothing is learned then.
        """
        value = _inside(_checks.score(u))
        with self._lock:
            self._keep([value])

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
        values = _all_inside(_checks.scores(us), "row {}: ")
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
        values = _all_inside(numbers(u, "u"), "")
        with self._lock:
            mapped = self._map(values)
        return mapped if mapped.ndim else float(mapped)

    def _mapped_steps(self, base: PredictiveDistribution) -> PredictiveDistribution:
        """Map the merged CDF of a step distribution."""
        values = np.append(base.mass_below, base.cdf(base.thresholds))
        return PredictiveDistribution(
            base.thresholds, self.calibrated(values), support=base.support
        )

    def _keep(self, values: list[float]) -> None:
        self._sorted.update(values)
        if self._window is not None:
            self._arrived.extend(values)
            while len(self._arrived) > self._window:
                self._sorted.remove(self._arrived.popleft())

    def _values(self) -> Floats:
        """List what is held, in order."""
        return np.array(self._sorted, np.float64)

    # Saving

    def to_bytes(self) -> bytes:
        """Save the map: versioned, with a checksum.

        Returns
        -------
        bytes
            What `from_bytes` takes.
        """
        with self._lock:
            return seal(self._magic, pack(self._saved()))

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """Restore a map that goes on bit for bit as the saved one would have.

        Parameters
        ----------
        blob
            What `to_bytes` gave.

        Returns
        -------
        PITMap
            The map, of this class.

        Raises
        ------
        StateError
            If the bytes are damaged, of another kind or of an unknown version.
        """
        pieces = unpack(unseal(cls._magic, bytes(blob), f"a saved {cls.__name__}"))
        restored = cls.__new__(cls)
        try:
            restored._restore(pieces)  # noqa: SLF001 - of the same class
        except (InputError, ValueError, KeyError, struct.error) as error:
            msg = f"saved calibrator is inconsistent ({error}); {REMEDY}"
            raise StateError(msg) from None
        return restored

    def _saved(self) -> list[bytes]:
        held = self._sorted if self._window is None else self._arrived
        column = b"".join(packed(np.array(held, np.float64)))
        return [_WINDOW.pack(self._window or 0), column]

    def _restore(self, pieces: list[bytes]) -> None:
        header, columns = pieces
        (window,) = _WINDOW.unpack(header)
        ((letter, column),) = parsed(columns, 0)
        values = _all_inside(_checks.scores(column), "row {}: ")
        orderly = len(values) <= window if window else bool((values[:-1] <= values[1:]).all())
        if letter != "d" or not orderly:
            msg = "values"
            raise ValueError(msg)
        self._begin(Forgetting(window or None).window, values.tolist())

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        """Pickle and copy by way of the saved form."""
        return type(self).from_bytes, (self.to_bytes(),)


def _inside(u: float) -> float:
    if not 0.0 <= u <= 1.0:
        msg = f"PIT value {shown(u)} is not in [0, 1]; give the base CDF at the label"
        raise ScoreError(msg)
    return u


def _all_inside(values: Floats, place: str) -> Floats:
    bad = np.flatnonzero(~((values >= 0.0) & (values <= 1.0)))
    if bad.size:
        try:
            _inside(float(values.flat[bad[0]]))
        except ScoreError as error:
            msg = f"{place.format(bad[0])}{error}"
            raise ScoreError(msg) from None
    return values
