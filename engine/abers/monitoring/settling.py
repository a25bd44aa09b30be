"""What all bets on observations have in common: they are settled in the order of the observations.

Governing rule: an observation waits until it and all before it have a label or expired; then what
it told goes to the tests, and what expired is counted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.monitoring._in_order import InOrder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from abers.monitoring.evidence import Betting, Episode, Evidence

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Mask = NDArray[np.bool_]

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

    Attributes
    ----------
    skipped
        Observations that expired.
    """

    def __init__(self, tests: Sequence[Betting], width: int, least: int) -> None:
        self._tests, self._least = tests, least
        self._came = 0  # labels
        self._waiting = InOrder(width)
        self.skipped = 0

    @property
    def waiting(self) -> Integers:
        """Numbers of the observations that are not done with, or wait for such, ascending."""
        return self._waiting.numbers

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
        self._check(steps)
        came = self._came + np.cumsum(steps.kinds == LEARNS)
        self._came += int((steps.kinds == LEARNS).sum())
        predicts = (steps.kinds == PREDICTS) & (came >= self._least)
        new = np.full((int(predicts.sum()), self._waiting.rows.shape[1]), np.nan)
        self._waiting.push(steps.numbers[predicts], steps.times[predicts], new)
        places = self._waiting.places(steps.numbers)
        ends = np.flatnonzero((places >= 0) & (steps.kinds != PREDICTS))
        ends = self._first(places, ends)
        learns = np.zeros(len(predicts), bool)
        learns[ends] = steps.kinds[ends] == LEARNS
        self._bet(steps, places, predicts, learns)
        self._waiting.finish(places[ends])
        return [
            Opened(int(ends[places[ends] <= place][-1]), test, episode)
            for place, test, episode in self._settle()
        ]

    def _first(self, places: Integers, ends: Integers) -> Integers:
        """Leave out the ends of what had an end before, in the same batch."""
        by_place = np.empty(len(self._waiting.numbers), np.int64)
        by_place[places[ends[::-1]]] = ends[::-1]  # the one that is written last stays
        first: Integers = ends[by_place[places[ends]] == ends]
        return first

    def _settle(self) -> Iterator[tuple[int, str, Episode]]:
        """Give the tests what waits no longer; place, test and episode of what that opens."""
        times, rows = self._waiting.release()
        told = np.flatnonzero(~np.isnan(rows[:, -1]))
        self.skipped += len(rows) - len(told)
        dates = times[told].tolist()
        for test, factors in zip(self._tests, self._factors(rows[told]), strict=True):
            for place, episode in test.update(factors, dates):
                yield int(told[place]), test.name, episode

    def _check(self, steps: Steps) -> None:  # noqa: B027 - most can be told anything
        """Refuse what cannot be used."""

    @abstractmethod
    def _bet(self, steps: Steps, places: Integers, predicts: Mask, learns: Mask) -> None:
        """Write what is predicted and learned to the rows that wait, at these places."""

    @abstractmethod
    def _factors(self, rows: Floats) -> Sequence[Sequence[float]]:
        """Give the factors for each test, of the rows of observations that have their labels."""

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
        if not (self._came or self.skipped or len(self.waiting)):
            return None
        tests = [test.state() for test in self._tests]
        return (self._dump(), self._waiting.state(), (self._came, self.skipped), tests)

    def load(self, state: Sequence[Any] | None) -> None:
        """Remember what gave this `state`, when nothing is remembered yet."""
        if state is None:
            return
        bettors, waiting, (self._came, self.skipped), tests = state
        self._restore(bettors)
        self._waiting.load(waiting)
        for test, one in zip(self._tests, tests, strict=True):
            test.load(one)
