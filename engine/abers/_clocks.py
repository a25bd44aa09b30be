"""The clocks of the models of a stream in plain Python: the specification of `_core/clocks.hpp`.

A wrong time must not expire what waits, so one event alone moves the clock of its model by at most
`jump`. An event further ahead is used, but its time is a candidate: the clock moves to the earliest
of `QUORUM` candidates of different ids that came within `RECENT` events of the model. Where events
are rare one alone moves the clock, for as many events, by `APART` times what the nearest two of the
three are apart. The first `QUORUM` ids of a model begin its clock: the clock is not known before,
and then it is the median of their times, so that one wrong time among them does no harm.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["APART", "FOREVER", "NO_CLOCK", "QUORUM", "RECENT", "Candidate", "Clock", "Row", "Tick"]

QUORUM = 3
"""How many ids must agree where a clock begins, or moves far."""
RECENT = 100
"""Within how many events of their model."""
APART = 3
"""How many times as far as those that agreed are apart one event may be ahead."""
FOREVER = 1 << 53
"""A `jump` from which on no time is too far ahead: the first time is then believed."""
NO_CLOCK = -(1 << 61)
"""The clock of a step where it is not known yet."""

Candidate: TypeAlias = "tuple[str, int, int]"
"""A time that the clock may move to: id and time of the event, and its number in the model."""
Row: TypeAlias = "tuple[int, bool, int, int, int, list[Candidate]]"
"""Time, whether known, events so far, step and number of the event of the last that agreed."""


class Tick(Enum):
    """What an event does to the clock of its model."""

    STAYS = auto()
    MOVES = auto()
    AHEAD = auto()  # the event is a candidate, or of an id that is one
    AGREED = auto()  # the event is the last of a quorum: the clock moves far
    BEGUN = auto()  # the clock is known from now on


class Clock:
    """The clock of a model.

    Examples
    --------
    >>> clock = Clock()
    >>> for id_, time in [("a", 0), ("b", 1), ("c", 2), ("wrong", 1000), ("d", 3)]:
    ...     print(clock.tick(id_, time, jump=10).name, clock.time)
    STAYS 0
    STAYS 1
    BEGUN 2
    AHEAD 2
    MOVES 3
    """

    def __init__(  # noqa: PLR0913, PLR0917 - a column each
        self,
        time: int = NO_CLOCK,
        known: bool = False,  # noqa: FBT001, FBT002
        events: int = 0,
        step: int = 0,
        agreed: int = 0,
        candidates: Sequence[Candidate] = (),
    ) -> None:
        self.time, self.known, self.events = time, known, events
        self.step, self.agreed, self.candidates = step, agreed, [*candidates]

    def row(self) -> Row:
        """Return what the clock was made of."""
        candidates = [*self.candidates]
        return self.time, self.known, self.events, self.step, self.agreed, candidates

    def tick(self, id_: str, time: int, jump: int) -> Tick:
        """Take the time of an event."""
        self.events += 1
        if not self.known:
            return self._begin(id_, time, jump)
        if not self._near(self.time, time, jump):
            return self._propose(id_, time, jump)
        if time <= self.time:
            return Tick.STAYS
        self.time = time
        return Tick.MOVES

    def _near(self, time: int, later: int, jump: int) -> bool:
        """Say whether one event alone moves the clock from a time to a later one."""
        recent = self.agreed > self.events - RECENT
        return later <= time + max(jump, self.step if recent else 0)

    def _agree(self) -> list[int]:
        """Let one event alone move the clock as far as those that agree are apart; their times."""
        times = sorted(time for _, time, _ in self.candidates)
        nearest = min(times[1] - times[0], times[2] - times[1])
        self.step, self.agreed = APART * nearest, self.events
        return times

    def _prune(self, jump: int) -> None:
        """Keep the candidates that are recent, and far ahead."""
        self.candidates = [
            one
            for one in self.candidates
            if not self._near(self.time, one[1], jump) and one[2] > self.events - RECENT
        ]

    def _begin(self, id_: str, time: int, jump: int) -> Tick:
        """Wait for enough ids: of two that disagree the earlier one counts, of three the median."""
        if jump >= FOREVER:
            self.time, self.known = time, True
            return Tick.BEGUN
        place = next((n for n, one in enumerate(self.candidates) if one[0] == id_), None)
        if place is None:
            self.candidates.append((id_, time, self.events))
        elif (before := self.candidates[place])[1] < time and self._near(before[1], time, jump):
            self.candidates[place] = (id_, time, before[2])
        if len(self.candidates) < QUORUM:
            times = [at for _, at, _ in self.candidates]
            near = self._near(min(times), max(times), jump)
            self.time = max(times) if near else min(times)
            return Tick.STAYS
        _, median, last = self._agree()
        self.time = last if self._near(median, last, jump) else median
        self.known = True
        self._prune(jump)
        return Tick.BEGUN

    def _propose(self, id_: str, time: int, jump: int) -> Tick:
        """Move the clock far if enough ids agree that it is later."""
        self._prune(jump)
        if any(id_ == known for known, _, _ in self.candidates):
            return Tick.AHEAD
        self.candidates.append((id_, time, self.events))
        if len(self.candidates) < QUORUM:
            return Tick.AHEAD
        self.time, *others = self._agree()
        for later in others:
            if self._near(self.time, later, jump):
                self.time = later
        return Tick.AGREED

    def settle(self, jump: int) -> list[str]:
        """Return the ids that agreed, after `AGREED`, and keep what is still ahead."""
        agreed = [id_ for id_, _, _ in self.candidates]
        self._prune(jump)
        return agreed
