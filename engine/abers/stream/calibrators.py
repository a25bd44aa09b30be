"""The calibrators of a stream by key: each by itself, or all of them in native calls."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from abers.backends import core
from abers.calibration.protected import MethodNames, is_protected
from abers.calibration.sets import TOO_HEAVY
from abers.exceptions import WeightError
from abers.stream.pending_store import NO_CLOCK
from abers.stream.tasks.base import PredictionRows
from abers.stream.tasks.regression import TrackedCalibrator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from abers._core import Model
    from abers.arrays import Integers
    from abers.calibration.protected import Protected
    from abers.mathematics import Forgetting
    from abers.monitoring import Mixture
    from abers.regression import CoverageTracker
    from abers.serialization import Piece
    from abers.stream.tasks.base import CalibrationSteps, RowCalibrator, Task

__all__ = [
    "KeyedCalibrators",
    "NativeCalibrators",
    "SeparateCalibrators",
    "by_key",
    "calibrators_of",
    "grouped",
]


def grouped(keys: NDArray[np.int64]) -> tuple[list[int], NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys of a batch, the rows in the order of these, and where those of each begin.

    The rows of a key keep their order. The last offset is the number of rows.

    Examples
    --------
    >>> present, order, offsets = grouped(np.array([1, 0, 1]))
    >>> present, order.tolist(), offsets.tolist()
    ([0, 1], [1, 0, 2], [0, 1, 3])
    """
    n = len(keys)
    if n and (keys == keys[0]).all():  # sorting them takes longer than all the rest
        return [int(keys[0])], np.arange(n), np.array([0, n])
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if n else np.empty(0, int)
    return ordered[starts].tolist(), order, np.append(starts, n)


def by_key(keys: NDArray[np.int64]) -> Iterator[tuple[int, Any]]:
    """Yield each key of a batch with its rows, in their order; they index an array.

    Examples
    --------
    >>> [(key, rows.tolist()) for key, rows in by_key(np.array([1, 0, 1]))]
    [(0, [1]), (1, [0, 2])]
    """
    present, order, offsets = grouped(keys)
    if len(present) == 1:
        yield present[0], slice(None)
        return
    yield from zip(present, np.split(order, offsets[1:-1]), strict=False)


_PART = 1 << 20  # bytes of saved calibrators at once

C = TypeVar("C")


class KeyedCalibrators(ABC, Generic[C]):
    """A calibrator for every key: its steps as rows in, rows of predictions out."""

    def __init__(self) -> None:
        self._each: list[C] = []

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._each)

    @abstractmethod
    def _empty(self) -> C:
        """Return a calibrator without labels."""

    @abstractmethod
    def size(self, key: int) -> int:
        """Return the number of labels that the calibrator of a key holds."""

    def last(self, key: int) -> int:
        """Return the largest number of an observation that a key knows; -1 if it knows none."""
        del key
        return -1

    def add(self, count: int) -> None:
        """Add so many keys, with empty calibrators."""
        self._each += [self._empty() for _ in range(count)]

    def reset(self, key: int) -> None:
        """Put an empty calibrator in the place of that of a key."""
        self._each[key] = self._empty()

    def keep(self, keys: Iterable[int]) -> None:
        """Keep only these keys, in their order."""
        self._each = [self._each[key] for key in keys]

    @abstractmethod
    def mixture(self, key: int) -> Mixture | None:
        """Return the mixture of methods that makes the predictions of a key, or None."""

    @property
    def tracked(self) -> Sequence[TrackedCalibrator]:
        """The calibrators with intervals that a tracker moves."""
        return ()

    def tracker(self, key: int) -> CoverageTracker | None:
        """Return the tracker that moves the intervals of a key, or None."""
        del key
        return None

    @abstractmethod
    def run(self, keys: Integers, steps: CalibrationSteps) -> PredictionRows:
        """Run steps, each of the key in its row; rows of steps that learn have no meaning.

        The steps of a key are in order. Keys run one after the other; where a step is refused with
        a WeightError, its key is as before, and the later keys do not run.
        """

    @abstractmethod
    def step(  # noqa: PLR0913, PLR0917 - a key, and the fields of a step
        self,
        key: int,
        kind: int,
        score: Sequence[float],
        value: float,
        time: int,
        number: int | None,
        clock: int = NO_CLOCK,
    ) -> tuple[Sequence[float], int]:
        """Run one step as `run` does; return the row of a prediction, and its number of labels."""

    @abstractmethod
    def save(self) -> Iterator[Piece]:
        """Yield the state of each, in canonical form."""

    @abstractmethod
    def load(self, states: Sequence[Piece]) -> None:
        """Add a key for each state that was saved; a ValueError if one cannot be a state."""


class SeparateCalibrators(KeyedCalibrators["RowCalibrator"]):
    """Calibrators of any kind, which run key by key."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self._task = task

    def _empty(self) -> RowCalibrator:
        return self._task.calibrator()

    def size(self, key: int) -> int:
        """Return the number of labels that the calibrator of a key holds."""
        return len(self._each[key])

    def mixture(self, key: int) -> Mixture | None:
        """Return the mixture of a key, if there is one."""
        return self._each[key].mixture

    @property
    def tracked(self) -> Sequence[TrackedCalibrator]:
        """The calibrators that have a tracker."""
        return [one for one in self._each if isinstance(one, TrackedCalibrator)]

    def tracker(self, key: int) -> CoverageTracker | None:
        """Return the tracker of a key, if there is one."""
        return self._each[key].tracker

    def run(self, keys: Integers, steps: CalibrationSteps) -> PredictionRows:
        """Run the steps of one key after the other."""
        rows = np.empty((len(keys), self._task.prediction_width))
        n_labels = np.empty(len(keys), np.int64)
        bands = np.empty(len(keys), object) if self._task.distributions else None
        for key, mine in by_key(keys):
            predicted = self._each[key].run(steps.take(mine))
            rows[mine], n_labels[mine] = predicted.rows, predicted.n_labels
            if bands is not None:
                bands[mine] = predicted.bands
        return PredictionRows(rows, n_labels, bands)

    def step(  # noqa: PLR0913, PLR0917 - as of the base class
        self,
        key: int,
        kind: int,
        score: Sequence[float],
        value: float,
        time: int,
        number: int | None,
        clock: int = NO_CLOCK,
    ) -> tuple[Sequence[float], int]:
        """Run one step."""
        del clock
        one = self._each[key]
        n_labels = len(one)
        return one.step(kind, score, value, time, number), n_labels

    def save(self) -> Iterator[Piece]:
        """Yield the state of each."""
        return (one.to_bytes() for one in self._each)

    def load(self, states: Sequence[Piece]) -> None:
        """Add a key for each state."""
        self._each += map(self._task.calibrator, map(bytes, states))


class NativeCalibrators(KeyedCalibrators["Model"]):
    """Models of the core; one call runs those of a batch without the interpreter lock.

    Parameters
    ----------
    empty
        What all models begin as.
    rule
        How they forget.
    by_age
        Whether they are taught labels by the age of observations.
    """

    def __init__(self, empty: Model, rule: Forgetting, *, by_age: bool) -> None:
        super().__init__()
        self._blank, self._rule, self._by_age = empty, rule, by_age
        self._aging = self._rule.by_time
        self._lock = Lock()  # other threads read mixtures while a call runs

    def _empty(self) -> Model:
        return self._blank.fresh()

    def size(self, key: int) -> int:
        """Return the number of labels that the model of a key holds."""
        return self._each[key].size

    def last(self, key: int) -> int:
        """Return the largest number of an observation that the model of a key knows."""
        return self._each[key].last

    def mixture(self, key: int) -> Mixture | None:
        """Return the mixture of a key, if there is one."""
        model = self._each[key]
        return _NativeMixture(model, self._lock) if is_protected(model) else None

    def run(self, keys: Integers, steps: CalibrationSteps) -> PredictionRows:
        """Run the steps of all keys in one call."""
        present, order, offsets = grouped(keys)
        times = self._rule.times(steps.times, len(keys), required=False) if self._aging else None
        found = np.empty((len(keys), self._blank.forecast_width))
        n_labels = np.empty(len(keys), np.int64)
        by_age = (steps.times, steps.clocks) if self._by_age else (None, None)
        scores = np.ascontiguousarray(steps.scores)
        columns = (steps.kinds, scores, steps.values, times, steps.numbers)
        models = [self._each[key] for key in present]
        with self._lock:
            refused = core.run_models(models, order, offsets, *columns, *by_age, found, n_labels)
        if refused is not None:
            msg = f"row {refused[1]}: {self._rule.too_heavy(TOO_HEAVY)}"
            raise WeightError(msg)
        return PredictionRows(found, n_labels)

    def step(  # noqa: PLR0913, PLR0917 - as of the base class
        self,
        key: int,
        kind: int,
        score: Sequence[float],
        value: float,
        time: int,
        number: int | None,
        clock: int = NO_CLOCK,
    ) -> tuple[Sequence[float], int]:
        """Run one step."""
        when = self._rule.time(time) if self._aging else math.nan
        of = -1 if number is None else number
        with self._lock:
            found = self._each[key].step(kind, score, value, when, of, time, clock)
        if found is None:
            raise WeightError(self._rule.too_heavy(TOO_HEAVY))
        return found

    def save(self) -> Iterator[Piece]:
        """Yield the state of each; one call saves many."""
        at = 0
        while at < len(self._each):
            part = core.save_models(self._each, at, _PART)
            at += len(part)
            yield from (memoryview(one) for one in part)

    def load(self, states: Sequence[Piece]) -> None:
        """Add a key for each state."""
        blobs = [np.frombuffer(one, np.uint8) for one in states]
        self._each += core.load_models(self._blank, blobs)


class _NativeMixture(MethodNames):
    """The mixture of a model, as monitors read it."""

    def __init__(self, model: Protected, lock: Lock) -> None:
        self._model, self._lock, self._raw_weight = model, lock, model.raw_weight


def calibrators_of(task: Task) -> KeyedCalibrators[Any]:
    """Return the calibrators of a task, of no key yet."""
    begin = task.native()
    if begin is None:
        return SeparateCalibrators(task)
    return NativeCalibrators(*begin, by_age=task.learn_after is not None)
