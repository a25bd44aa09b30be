"""E-processes against predictions with labels that come late, in any order.

An observation waits until it and all before it have a label or expired. Then the tests take its
factor, or it is counted as skipped. So tests see observations in their order, whenever labels come.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from abers.arrays import raw
from abers.backends import core
from abers.monitoring.loss_difference import LossDifference
from abers.saveable import CopiedWhole
from abers.serialization import column, count, require

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from abers.arrays import Bytes, Floats, Integers
    from abers.monitoring.answers import Sums
    from abers.monitoring.evidence import Evidence, Incident
    from abers.monitoring.shift import Shift
    from abers.monitoring.tested_view import TestedView
    from abers.monitoring.verdict_sequence import VerdictSequence

__all__ = ["EXPIRES", "LEARNS", "PREDICTS", "EProcess", "EProcessSteps", "OpenedIncident"]

PREDICTS, LEARNS, EXPIRES = 0, 1, 2  # kinds of steps


class EProcessSteps(NamedTuple):
    """Steps of observations, a row each, in order.

    Attributes
    ----------
    kinds
        0: the observation is predicted. 1: its label comes. 2: it expires without a label.
    numbers
        Numbers of the observations, ascending among those that are predicted.
    times
        Event times of the observations.
    values
        Array of shape (n, width): the forecasts where an observation is predicted, the outcomes
        where a label comes.
    """

    kinds: Bytes
    numbers: Integers
    times: Integers
    values: Floats

    def part(self, rows: Any) -> EProcessSteps:  # noqa: ANN401 - a slice, or an array
        """Return some of the steps."""
        return EProcessSteps(*(column[rows] for column in self))


class OpenedIncident(NamedTuple):
    """An incident that opened.

    Attributes
    ----------
    step
        Index of the last step that it needed.
    view, test
        Name of the view, and of the test.
    incident
        The incident as it opened.
    shift
        Labels observed and expected, of an alarm.
    """

    step: int
    view: str
    test: str
    incident: Incident
    shift: Shift | None


class EProcess(CopiedWhole, ABC):
    """Tests of the predictions of one calibrator, by betting on observations.

    Parameters
    ----------
    views
        What is tested, and the tests.
    width
        Number of floats of an observation that waits. The last is its label: NaN until that comes.
    grace_period
        Number of labels that must have come before the first bet: earlier predictions are left out.
    """

    subjects: ClassVar[Mapping[str, str]] = {"raw": "raw is", "calibrated": "calibrated is"}
    """How a sentence about a view begins."""
    came: str = "came"
    """What a label did that a promise counts."""
    faults: ClassVar[Mapping[int, str]] = {
        1: "too high",
        -1: "too low",
        0: "miscalibrated, though about right on average",
    }
    """How forecasts are wrong, by the direction of a shift."""
    _of_core: ClassVar[frozenset[str]] = frozenset({"_buffer"})
    """Attributes that the core keeps, which only `_core_state` can save."""

    def __init__(self, views: Sequence[TestedView], width: int, grace_period: int) -> None:
        self.views, self._width = (*views,), width
        both = [view.name for view in views] == ["raw", "calibrated"]
        self.losses = LossDifference() if both else None
        self.grace_period = grace_period
        self._begin()

    def _begin(self) -> None:
        """Set the attributes that the core keeps, as they are before the first observation."""
        self._buffer = core.ReorderBuffer(self._width, self.grace_period)

    @property
    def skipped(self) -> int:
        """Number of observations that expired."""
        return int(self._buffer.skipped)

    @property
    def verdicts(self) -> list[VerdictSequence]:
        """Verdicts on the forecasts of each view."""
        return [one for view in self.views for one in view.verdicts]

    @property
    def waiting(self) -> Integers:
        """Numbers of the observations that wait for their label or an earlier label, ascending."""
        return self._columns()[0]

    @property
    def labels_waiting(self) -> int:
        """Number of labels that came, and wait for those of earlier observations."""
        return int((self._columns()[2] == 0).sum())

    @abstractmethod
    def run(self, steps: EProcessSteps, most: int | None = None) -> list[OpenedIncident]:
        """Run any sequence of steps.

        Parameters
        ----------
        steps
            Steps in order. A label or an end of an observation that does not wait is ignored.
        most
            An observation expires when one with a number higher by so much is predicted; None keeps
            all.

        Returns
        -------
        list of OpenedIncident
            Incidents that opened, by test.

        Raises
        ------
        InputError
            If a row cannot be used; nothing is done then.
        """

    @staticmethod
    def run_many(
        processes: Sequence[Any], ends: Integers, steps: EProcessSteps, most: int | None = None
    ) -> list[tuple[int, OpenedIncident]]:
        """Run the steps of several e-processes of one kind and the same options.

        Parameters
        ----------
        processes
            The e-processes.
        ends
            Where the steps of each end.
        steps, most
            As of `run`, those of one e-process behind those of the other.

        Returns
        -------
        list
            Incidents that opened, each behind the number of its e-process.

        Raises
        ------
        InputError
            If a row cannot be used.
        """
        found, begin = list[tuple[int, OpenedIncident]](), 0
        for number, (process, end) in enumerate(zip(processes, ends.tolist(), strict=True)):
            for one in process.run(steps.part(slice(begin, end)), most):
                found.append((number, one._replace(step=begin + one.step)))
            begin = end
        return found

    @abstractmethod
    def answer_sums(self, *, over_time: bool = True) -> Sums:
        """Return the sums behind the answers about the predictions, with points over time or not.

        They are a copy, which later predictions do not change.
        """

    @property
    def _warm_up(self) -> int:
        """Number of predictions of the warm-up that are known."""
        return 0

    def _incidents(self, at: int = 0) -> dict[str, int]:
        """Return at what event time the fault of each view with an open incident began.

        Open is that of some verdicts of the view.
        """
        return {
            view.name: one.began
            for view in self.views
            for one in view.verdicts[at : at + 1]
            if one.began is not None
        }

    @abstractmethod
    def _dump(self) -> list[bytes]:
        """Return the state of the betting strategies."""

    @abstractmethod
    def _restore(self, strategies: Sequence[bytes]) -> None:
        """Restore the betting strategies from what `_dump` returned."""

    def evidence(self) -> tuple[Evidence, ...]:
        """Return the evidence of each test, by view."""
        return tuple(one for view in self.views for one in view.evidence(self.skipped))

    def state(self) -> tuple[Any, ...] | None:
        """Return the state: what `load` takes; None before the first observation."""
        buffer = self._buffer
        if not (buffer.came or buffer.skipped or buffer.size() or self._warm_up):
            return None
        views = [view.state() for view in self.views]
        losses = None if self.losses is None else self.losses.state()
        return (*self._core_state(), views, losses)

    def load(self, state: Sequence[Any] | None) -> None:
        """Restore a state, before the first observation.

        Raises
        ------
        ValueError
            If it cannot be one; the e-process is unusable then.
        """
        if state is None:
            return
        *core_state, views, losses = state
        self._load_core(*core_state)
        require((losses is None) == (self.losses is None), "losses")
        if self.losses is not None:
            self.losses.load(losses)
        for view, one in zip(self.views, views, strict=True):
            view.load(one)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle and copy all attributes; the core's own by their state."""
        kept = {name: one for name, one in vars(self).items() if name not in self._of_core}
        strategies, waiting, counts = self._core_state()
        return {**kept, "core": (strategies, [*map(bytes, waiting)], counts)}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Restore all attributes."""
        core_state = saved.pop("core")
        vars(self).update(saved)
        self._begin()
        self._load_core(*core_state)

    def _core_state(self) -> tuple[list[bytes], list[memoryview], tuple[int, int, int]]:
        """Return the betting strategies, the columns of what waits, and counts."""
        buffer = self._buffer
        waiting = [raw(column) for column in self._columns()]
        return self._dump(), waiting, (buffer.came, buffer.skipped, buffer.gap)

    def _load_core(
        self, strategies: Sequence[bytes], waiting: Sequence[Any], counts: Sequence[Any]
    ) -> None:
        """Restore what `_core_state` returned; a ValueError if it cannot be one."""
        came, skipped, gap = counts
        self._restore(strategies)
        self._load_buffer(*waiting)
        self._buffer.came = count(came, "labels that came")
        self._buffer.skipped = count(skipped, "observations without a label")
        self._buffer.gap = count(gap, "observations without a label", skipped)

    def _load_buffer(self, *saved: Any) -> None:  # noqa: ANN401 - columns, as they were saved
        """Restore the buffer: its first row waits for a label, and no row with a label waits."""
        numbers = column(saved[0], "<i8", "numbers of observations")
        n = len(numbers)
        times, waits = column(saved[1], "<i8", "times", n), column(saved[2], "u1", "waits", n)
        rows = column(saved[3], "<f8", "what waits", n * self._width).reshape(n, self._width)
        if not n:
            return
        require((numbers[:-1] < numbers[1:]).all() and (numbers[:1] >= 0).all(), "numbers")
        require((waits <= 1).all() and waits[:1].all(), "waits")
        require((np.isnan(rows[:, -1]) | (waits == 0)).all(), "labels of what waits")
        require(self._sound(rows, ~np.isnan(rows[:, -1])), "what waits")
        self._buffer.load(numbers, times, waits, rows)

    @abstractmethod
    def _sound(self, rows: Floats, labelled: NDArray[np.bool_]) -> bool:
        """Return whether all rows are valid; some have their label."""

    def _columns(self) -> tuple[Integers, Integers, Bytes, Floats]:
        n = self._buffer.size()
        numbers, times = np.empty(n, np.int64), np.empty(n, np.int64)
        waits, rows = np.empty(n, np.uint8), np.empty((n, self._width))
        self._buffer.columns(numbers, times, waits, rows)
        return numbers, times, waits, rows
