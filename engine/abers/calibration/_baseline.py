"""The calls that all baselines have in common, which are those of `VennAbers`.

Governing rule: a baseline is a store of labelled observations and a map from score to
probability; the map changes after so many labels as the last change said, and at the end
of `learn_many`, and at no other time. What it says is one float.
"""

from __future__ import annotations

import struct
import sys
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self, cast

import numpy as np

from abers._sealed import REMEDY, seal, unseal
from abers.calibration import _checks
from abers.calibration._packing import pack, unpack
from abers.calibration._steps import Steps, interleaved
from abers.calibration._store import Store
from abers.exceptions import InputError, ParameterError, ScoreError, StateError
from abers.reference import LEARN, PREDICT

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.calibration._typing import Floats, Integers

__all__ = ["Baseline"]


class Baseline(ABC):
    """A map from score to probability, made from labelled observations."""

    _magic: bytes
    _lowest, _highest = -sys.float_info.max, sys.float_info.max

    def __init__(
        self,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._set(Store(window, max_age, half_life))

    def _set(self, store: Store) -> None:
        self._store = store
        self._due = 1  # labels to the next change of the map

    @property
    def window(self) -> int | None:
        """Number of observations kept at most, None without a window."""
        return self._store.window

    @property
    def max_age(self) -> float | None:
        """Greatest age of an observation, None without one."""
        return self._store.max_age

    @property
    def half_life(self) -> float | None:
        """Time in which a weight halves, None if weights stay."""
        return self._store.half_life

    @property
    def late(self) -> int:
        """Number of labels that came too old to be learned."""
        return self._store.late

    def __len__(self) -> int:
        """Count the observations held."""
        return len(self._store)

    def __bool__(self) -> bool:
        """Be true even when nothing is held, so that `calibrator or default` keeps it."""
        return True

    def __repr__(self) -> str:
        """Name the rule of forgetting and the number of observations."""
        return repr(self._store).replace("VennAbers", type(self).__name__, 1)

    # What baselines differ in

    @abstractmethod
    def _map(self, scores: Floats) -> Floats:
        """Map checked scores to probabilities."""

    def _change(self) -> int:
        """Change the map by what is held; return the number of labels to the next change."""
        return 1

    # The calls

    def predict_one(self, score: float, time: float | None = None, weight: float = 1.0) -> float:
        """Predict the probability of label 1 for one score.

        Parameters
        ----------
        score
            The model's score.
        time, weight
            As `VennAbers` takes them; they are checked and change nothing.

        Returns
        -------
        float
            The probability.

        Raises
        ------
        ScoreError, TimeError, WeightError
            If an argument cannot be used.
        """
        column = self._scores([_checks.score(score)], "")
        if time is not None or type(weight) is not float or weight != 1.0:
            self._store.predict_one(0.0, time, weight)
        with self._lock:
            return float(self._map(column)[0])

    def learn_one(
        self, score: float, label: int, *, weight: float = 1.0, time: float | None = None
    ) -> None:
        """Learn one labelled observation.

        Parameters
        ----------
        score, label, weight, time
            As `VennAbers.learn_one` takes them.

        Raises
        ------
        ScoreError, LabelError, WeightError, TimeError
            If an argument cannot be used; nothing is learned then.
        """
        column = self._scores([_checks.score(score)], "")
        with self._lock:
            self._store.learn_one(float(column[0]), label, weight=weight, time=time)
            self._count(1)

    def predict_many(
        self,
        scores: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Floats:
        """Predict for an array of scores; as `predict_one` for each.

        Parameters
        ----------
        scores, weights, times
            Arrays of shape (n,), as in `predict_one`.

        Returns
        -------
        numpy.ndarray
            The probabilities, of shape (n,).

        Raises
        ------
        InputError
            If a row cannot be used; the message names the first one.
        """
        column = self._scores(scores)
        n = len(column)
        self._store.checked(np.full(n, PREDICT), column, np.zeros(n), weights, times)
        with self._lock:
            return self._map(column)

    def learn_many(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> None:
        """Learn arrays of observations, or nothing if a row is bad; then fit to all that is held.

        Parameters
        ----------
        scores, labels, weights, times
            Arrays of shape (n,), as in `learn_one`; also of none, to fit now.

        Raises
        ------
        InputError
            If a row cannot be used; the message names the first one.
        """
        column = self._scores(scores)
        with self._lock:
            self._store.learn_many(column, labels, weights=weights, times=times)
            self._due = self._change()

    def prequential(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        delay: int = 0,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Floats:
        """Predict, then learn, through a whole stream in one call.

        Parameters
        ----------
        scores, labels, delay, weights, times
            As `VennAbers.prequential` takes them.

        Returns
        -------
        numpy.ndarray
            Array of shape (n,): the prediction of each observation.

        Raises
        ------
        InputError
            If a row cannot be used; nothing is learned then.
        """
        column = self._scores(scores)
        n = len(column)
        checked = self._store.checked(np.full(n, LEARN), column, labels, weights, times)
        row, kinds = interleaved(n, delay)
        columns = (None if each is None else each[row] for each in checked[1:])
        steps = Steps(kinds, *columns)  # type: ignore[arg-type]
        p = self._run(steps, row, np.empty(2 * n, np.int64))
        asked: Floats = p[kinds == PREDICT]
        return asked

    def run(  # noqa: PLR0913 - a column each
        self,
        steps: ArrayLike,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        times: ArrayLike | None = None,
        held: Integers | None = None,
    ) -> Floats:
        """Run predictions (0) and labels (1) in any order.

        Parameters
        ----------
        steps, scores, labels, weights, times, held
            As `VennAbers.run` takes them; there is no step 2.

        Returns
        -------
        numpy.ndarray
            Array of shape (n,), NaN where nothing was predicted.

        Raises
        ------
        InputError
            If a row cannot be used; the message names the first one, and the
            calibrator is as it was.
        """
        column = self._scores(scores)
        checked = self._store.checked(steps, column, labels, weights, times)
        if held is None:
            held = np.empty(len(column), np.int64)
        if held.dtype != np.int64 or held.shape != column.shape:
            msg = f"held is {held.dtype} of shape {held.shape}, not int64 of shape {column.shape}"
            raise ParameterError(msg)
        return self._run(checked, np.arange(len(column)), held)

    def _run(self, steps: Steps, names: Integers, held: Integers) -> Floats:
        """Run checked steps; `names` are the rows that messages name."""
        with self._lock:
            saved = self._saved() if self._store.may_overflow(steps) else None
            try:
                return self._take(steps, names, held)
            except InputError:
                if saved is not None:
                    self._restore(saved)
                raise

    def _take(self, steps: Steps, names: Integers, held: Integers) -> Floats:
        """Take checked steps: predictions and labels up to each change of the map in turn."""
        p = np.full(len(steps.kinds), np.nan)
        learned = np.flatnonzero(steps.kinds == LEARN)
        done, at = 0, 0
        while at < len(p):
            rows = learned[done : done + self._due]
            end = int(rows[-1]) + 1 if len(rows) == self._due else len(p)
            here = slice(at, end)
            asked = at + np.flatnonzero(steps.kinds[here] == PREDICT)
            p[asked] = self._map(steps.scores[asked])
            sizes = np.concatenate(([len(self)], self._store.take(steps, rows, names[rows])))
            held[here] = sizes[np.cumsum(steps.kinds[here] == LEARN)]
            self._count(len(rows))
            done, at = done + len(rows), end
        return p

    def _count(self, labels: int) -> None:
        self._due -= labels
        if not self._due:
            self._due = self._change()

    def _scores(self, given: ArrayLike, place: str = "row {}: ") -> Floats:
        column = _checks.scores(given)
        bad = np.flatnonzero(~((self._lowest <= column) & (column <= self._highest)))
        if bad.size:
            msg = (
                f"{place.format(bad[0])}score {column[bad[0]].item()!r} is not a probability in "
                "[0, 1]; use Platt or Isotonic for other scores"
            )
            raise ScoreError(msg)
        return column

    # Saving

    def to_bytes(self) -> bytes:
        """Save the calibrator: versioned, with a checksum.

        Returns
        -------
        bytes
            What `from_bytes` takes.
        """
        with self._lock:
            return seal(self._magic, pack(self._saved()))

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """Restore a calibrator that goes on bit for bit as the saved one would have.

        Parameters
        ----------
        blob
            What `to_bytes` gave.

        Returns
        -------
        Baseline
            The calibrator, of this class.

        Raises
        ------
        StateError
            If the bytes are damaged, of another kind or of an unknown version.
        """
        pieces = unpack(unseal(cls._magic, bytes(blob), f"a saved {cls.__name__}"))
        restored = cls.__new__(cls)
        restored._lock = threading.Lock()  # noqa: SLF001 - of the same class
        try:
            restored._restore(pieces)  # noqa: SLF001
        except (InputError, ValueError, struct.error) as error:
            msg = f"saved calibrator is inconsistent ({error}); {REMEDY}"
            raise StateError(msg) from None
        return restored

    def _saved(self) -> list[bytes]:
        return [self._store.to_bytes()]

    def _restore(self, pieces: list[bytes]) -> None:
        (store,) = pieces
        self._set(cast("Store", Store.from_bytes(store)))
        scores = self._store.groups().scores
        if len(scores) and not self._lowest <= scores[0] <= scores[-1] <= self._highest:
            msg = "scores"
            raise ValueError(msg)

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        """Pickle and copy by way of the saved form."""
        return type(self).from_bytes, (self.to_bytes(),)
