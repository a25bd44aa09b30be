"""What all bets on observations have in common: they are settled in the order of the observations.

Governing rule: an observation waits until it and all before it have a label or expired; then what
it told goes to the tests, and what expired is counted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers._arrays import raw
from abers._backend import core
from abers._saved import column, count, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.monitoring.evidence import Betting, Episode, Evidence

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["EXPIRES", "LEARNS", "PREDICTS", "Opened", "Settling", "Steps"]

PREDICTS, LEARNS, EXPIRES = 0, 1, 2  # kinds of steps


class Steps(NamedTuple):
    """What happens to observations, a row a step, in order.

    Attributes
    ----------
    kinds
        0: it is predicted. 1: its label comes. 2: its label will not come.
    numbers
        Of the observations, ascending among those that are predicted.
    times
        Event times of the observations.
    values
        Array of shape (n, width): what the bets are told where an observation is predicted, and
        where a label comes.
    """

    kinds: NDArray[np.uint8]
    numbers: Integers
    times: Integers
    values: Floats


class Opened(NamedTuple):
    """An episode that opened.

    Attributes
    ----------
    step
        The last step that it needed.
    test
        Name of the test.
    episode
        The episode as it opened.
    """

    step: int
    test: str
    episode: Episode


class Settling(ABC):
    """Bets on observations.

    Parameters
    ----------
    tests
        What takes the factors.
    least
        How many labels must have come before the first bet: what was predicted earlier is left out.
    width
        Of what is remembered of an observation that waits. The last column is of its label: NaN
        until that comes.
    """

    def __init__(self, tests: Sequence[Betting], width: int, least: int) -> None:
        self._tests, self._width = tests, width
        self._waiting = core.InOrder(width, least)

    @property
    def skipped(self) -> int:
        """Observations that expired."""
        return int(self._waiting.skipped)

    @property
    def first(self) -> int:
        """Number of the first observation that waits; the largest there is if none does."""
        return int(self._waiting.first())

    @property
    def waiting(self) -> Integers:
        """Numbers of the observations that are not done with, or wait for such, ascending."""
        return self._columns()[0]

    def run(self, steps: Steps) -> list[Opened]:
        """Run any sequence of steps; the primitive that all calls use.

        Parameters
        ----------
        steps
            They. A label, or an end, of what does not wait is ignored; what waits was predicted
            in an earlier step.

        Returns
        -------
        list of Opened
            The episodes that opened, in the order of the observations.

        Raises
        ------
        InputError
            If a row cannot be used; nothing is done then.
        """
        count = self._move(steps)
        if not count:
            return []
        times, at = np.empty(count, np.int64), np.empty(count, np.int64)
        told = np.empty((count, self._told))
        self._waiting.settled(times, at, told)
        dates = times.tolist()
        return [
            Opened(int(at[place]), test.name, episode)
            for test, factors in zip(self._tests, self._factors(told), strict=True)
            for place, episode in test.update(factors, dates)
        ]

    @property
    def _told(self) -> int:
        """How many numbers come out of an observation that has its label."""
        return self._width

    def _move(self, steps: Steps) -> int:
        """Move what waits by these steps; how many came out."""
        return int(self._waiting.run(*steps))

    @abstractmethod
    def _factors(self, rows: Floats) -> Sequence[Sequence[float]]:
        """Give the factors for each test, of what came out of observations with labels."""

    @abstractmethod
    def _dump(self) -> list[bytes]:
        """Give what bets are made of."""

    @abstractmethod
    def _restore(self, bettors: Sequence[bytes]) -> None:
        """Make bets of what `_dump` gave."""

    def evidence(self) -> tuple[Evidence, ...]:
        """Give what the tests have come to."""
        return tuple(test.evidence(self.skipped) for test in self._tests)

    def state(self) -> tuple[Any, ...] | None:
        """Give what is remembered: what `load` takes; None before the first observation."""
        queue = self._waiting
        if not (queue.came or queue.skipped or queue.size()):
            return None
        tests = [test.state() for test in self._tests]
        waiting = [raw(column) for column in self._columns()]
        return (self._dump(), waiting, (queue.came, queue.skipped), tests)

    def load(self, state: Sequence[Any] | None) -> None:
        """Remember what gave this `state`, when nothing is remembered yet.

        Raises
        ------
        ValueError
            If nothing did; what is remembered then means nothing.
        """
        if state is None:
            return
        bettors, (numbers, times, waits, rows), (came, skipped), tests = state
        self._restore(bettors)
        self._load_waiting(numbers, times, waits, rows)
        self._waiting.came = count(came, "labels that came")
        self._waiting.skipped = count(skipped, "observations without a label")
        for test, one in zip(self._tests, tests, strict=True):
            test.load(one)

    def _load_waiting(self, *saved: Any) -> None:  # noqa: ANN401 - columns, as they were saved
        """Put in what waits: only what has no label yet is first, or is without one."""
        numbers = column(saved[0], "<i8", "numbers of observations")
        n = len(numbers)
        times, waits = column(saved[1], "<i8", "times", n), column(saved[2], "u1", "waits", n)
        rows = column(saved[3], "<f8", "what waits", n * self._width).reshape(n, self._width)
        require((numbers[:-1] < numbers[1:]).all() and (numbers[:1] >= 0).all(), "numbers")
        require((waits <= 1).all() and waits[:1].all(), "waits")
        require((np.isnan(rows[:, -1]) | (waits == 0)).all(), "labels of what waits")
        require(self._sound(rows, ~np.isnan(rows[:, -1])), "what waits")
        self._waiting.load(numbers, times, waits, rows)

    @abstractmethod
    def _sound(self, rows: Floats, labelled: NDArray[np.bool_]) -> bool:
        """Tell whether all rows may wait, of which some have their label."""

    def _columns(self) -> tuple[Integers, Integers, NDArray[np.uint8], Floats]:
        n = self._waiting.size()
        numbers, times = np.empty(n, np.int64), np.empty(n, np.int64)
        waits, rows = np.empty(n, np.uint8), np.empty((n, self._width))
        self._waiting.columns(numbers, times, waits, rows)
        return numbers, times, waits, rows
