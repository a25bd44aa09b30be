"""The clock of a model in a stream: the specification of `_core/clocks.hpp`.

A wrong time must not expire pending observations, so a single event moves the clock of its model
by at most `jump`. An event further ahead is used, but its time is only a candidate: the clock
moves to the earliest of `QUORUM` candidates of different ids that arrived within `RECENT` events of
the model. After that, for `RECENT` events, a single event may move the clock by `APART` times the
distance of the nearest two of the three, because events may be rare. The first `QUORUM` ids of a
model start its clock. Before that the clock is unknown; then it is the median of their times, so
one wrong time among them does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeAlias

__all__ = ["APART", "FOREVER", "NO_CLOCK", "QUORUM", "RECENT", "Candidate", "Clock", "Row", "Tick"]

QUORUM = 3
"""Number of ids that must agree when a clock starts, or moves far."""
RECENT = 100
"""Number of events of a model within which its candidates must agree."""
APART = 3
"""Factor of the distance of agreeing ids by which a single event may then be ahead."""
FOREVER = 1 << 53
"""A `jump` from which no time is too far ahead: the first time then starts the clock."""
NO_CLOCK = -(1 << 61)
"""The clock of a step while it is unknown."""

Candidate: TypeAlias = "tuple[str, int, int]"
"""A time that the clock may move to: id and time of the event, and its number in the model."""
Row: TypeAlias = "tuple[int, bool, int, int, int, list[Candidate]]"
"""Time, whether it is known, events, step and event of the last agreement, and candidates."""


class Tick(Enum):
    """What an event does to the clock of its model."""

    STAYS = auto()
    MOVES = auto()
    AHEAD = auto()  # the event is a candidate, or its id has one
    AGREED = auto()  # the event is the last of a quorum: the clock moves far
    BEGUN = auto()  # the clock is known from here on


@dataclass
class Clock:
    """The clock of a model; its fields are the columns of its row.

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

    time: int = NO_CLOCK
    known: bool = False
    events: int = 0
    step: int = 0
    agreed: int = 0
    candidates: list[Candidate] = field(default_factory=list)

    def row(self) -> Row:
        """Return the state as arguments of the class."""
        candidates = [*self.candidates]
        return self.time, self.known, self.events, self.step, self.agreed, candidates

    def tick(self, id_: str, time: int, jump: int) -> Tick:
        """Add the time of an event, and return what it does to the clock."""
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
        """Return whether a single event may move the clock from a time to a later one."""
        recent = self.agreed > self.events - RECENT
        return later <= time + max(jump, self.step if recent else 0)

    def _agree(self) -> list[int]:
        """Set the step that a single event may make from now on; return the candidates' times."""
        times = sorted(time for _, time, _ in self.candidates)
        nearest = min(times[1] - times[0], times[2] - times[1])
        self.step, self.agreed = APART * nearest, self.events
        return times

    def _prune(self, jump: int) -> None:
        """Keep the candidates that are recent and far ahead."""
        self.candidates = [
            one
            for one in self.candidates
            if not self._near(self.time, one[1], jump) and one[2] > self.events - RECENT
        ]

    def _begin(self, id_: str, time: int, jump: int) -> Tick:
        """Start the clock: of two ids that disagree the earlier counts, of three the median."""
        if jump >= FOREVER:
            self.time, self.known = time, True
            return Tick.BEGUN
        index = next((n for n, one in enumerate(self.candidates) if one[0] == id_), None)
        if index is None:
            self.candidates.append((id_, time, self.events))
        elif (before := self.candidates[index])[1] < time and self._near(before[1], time, jump):
            self.candidates[index] = (id_, time, before[2])
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
        """Add a candidate, and move the clock far if enough ids agree."""
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
        """Return the ids that agreed, after `AGREED`, and keep candidates that are still ahead."""
        agreed = [id_ for id_, _, _ in self.candidates]
        self._prune(jump)
        return agreed
