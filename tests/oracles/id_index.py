"""The index of ids as plain Python: a list of arrivals, and a list of labels that wait.

Time is cut into parts, 32 of them are the span. An observation arrives in the part of the latest
observation time, a label in that of the latest label time. A label finds an observation that
arrived at most 32 parts before it, or after it. Arrivals are forgotten 64 parts later, or, with
more than `most` of them, the oldest first: all of a part together, or a 32nd of `most`. A label
expires when an arrival 32 parts before it or later may be forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["AMBIGUOUS", "UNKNOWN", "WAITS", "NaiveIndex"]

UNKNOWN, AMBIGUOUS, WAITS = -1, -2, -3
_SPAN = 32


class Arrival(NamedTuple):
    """An observation: its id, the models of the id, and when it came."""

    id: str
    models: frozenset[int]
    part: int
    turn: int  # of those that are forgotten together


class Wait(NamedTuple):
    """A label that waits."""

    offset: int
    id: str
    part: int


class NaiveIndex:
    """The rules of `core.IdIndex` with clocks that any event may move."""

    def __init__(self, span: int, most: int) -> None:
        self.unit, self.most = max(1, -(-span // _SPAN)), most
        self.clocks: list[int | None] = [None, None]  # of observations, of labels
        self.arrivals: list[Arrival] = []
        self.forgotten: int | None = None
        self.waits: list[Wait] = []
        self.turn = self.of_turn = 0

    def observe(self, id_: str, model: int, time: int) -> list[tuple[int, int]]:
        """Return offset and result of the labels that go out."""
        part = self._part(0, time)
        self._forget(part - 2 * _SPAN - 1)
        before = [one for one in self.arrivals if one.id == id_]
        self._arrive(id_, frozenset({model}).union(*(one.models for one in before)), part)
        out = [
            (one.offset, self._result(id_))
            for one in self.waits
            if one.id == id_ and one.part <= part + _SPAN
        ]
        gone = {offset for offset, _ in out}
        late = [one for one in self.waits if one.offset not in gone and self._expired(one.part)]
        out += [
            (one.offset, UNKNOWN) for one in sorted(late, key=lambda one: (one.part, one.offset))
        ]
        self.waits = [one for one in self.waits if one.offset not in {offset for offset, _ in out}]
        return out

    def label(self, id_: str, time: int, offset: int) -> int:
        """Return the result of a label."""
        part = self._part(1, time)
        if any(one.id == id_ and part <= one.part + _SPAN for one in self.arrivals):
            return self._result(id_)
        if self._expired(part):
            return UNKNOWN
        self.waits.append(Wait(offset, id_, part))
        return WAITS

    def _part(self, clock: int, time: int) -> int:
        now = self.clocks[clock]
        self.clocks[clock] = now = time if now is None else max(now, time)
        return now // self.unit

    def _result(self, id_: str) -> int:
        models = next(one.models for one in reversed(self.arrivals) if one.id == id_)
        return AMBIGUOUS if len(models) > 1 else min(models)

    def _expired(self, part: int) -> bool:
        return self.forgotten is not None and part <= self.forgotten + _SPAN

    def _forget(self, part: int) -> None:
        self.arrivals = [one for one in self.arrivals if one.part > part]
        self.forgotten = part if self.forgotten is None else max(part, self.forgotten)

    def _arrive(self, id_: str, models: frozenset[int], part: int) -> None:
        newest = self.arrivals[-1] if self.arrivals else None
        full = self.of_turn >= max(1, self.most // _SPAN)
        if newest is None or newest.part != part or full:
            self.turn, self.of_turn = self.turn + 1, 0
        for row, one in enumerate(self.arrivals):
            if one.id == id_ and one.turn == self.turn:
                self.arrivals[row] = one._replace(models=models)
                return
        self.arrivals.append(Arrival(id_, models, part, self.turn))
        self.of_turn += 1
        while len(self.arrivals) > self.most:
            oldest = self.arrivals[0]
            self.arrivals = [one for one in self.arrivals if one.turn != oldest.turn]
            known = oldest.part if self.forgotten is None else self.forgotten
            self.forgotten = max(known, oldest.part)
