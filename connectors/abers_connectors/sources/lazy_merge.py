"""Many inputs merged by event time; few are open at once.

The least event time of each input is known before it is opened. An input is opened when the merge
reaches that time, and closed at its end, so memory depends on how many overlap in time.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from abers.exceptions import RecordError
from abers_connectors.sources.merge import AFTER_ALL, MergeInput, merged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers_connectors.sources.base import Batch, Source

__all__ = ["MAX_OPEN", "TimedSource", "lazily_merged"]

MAX_OPEN = 256
"""Inputs open at once, each with a page of every column and a batch of events."""


class TimedSource(NamedTuple):
    """A source, and a time that none of its events is before."""

    first: int
    source: Source


def lazily_merged(inputs: Sequence[TimedSource], name: str, remedy: str) -> Iterator[Batch]:
    """Yield the merged batches of inputs, with the position of none.

    Raises
    ------
    RecordError
        If too many inputs overlap in time. The message ends with the remedy.
    """
    waiting = deque(sorted(inputs, key=lambda one: one.first))
    active: list[MergeInput] = []
    while waiting or active:
        horizon = _load(active)
        while waiting and waiting[0].first <= horizon:
            if len(active) == MAX_OPEN:
                msg = f"{name}: more than {MAX_OPEN} files overlap in time, at "
                msg += f"{waiting[0].source.name}; {remedy}"
                raise RecordError(msg)
            active.append(MergeInput(waiting.popleft().source))
            active[-1].load()
            horizon = min((one.clock for one in active if one.goes_on), default=AFTER_ALL)
        taken = [one.take(horizon) for one in active]
        if any(one.size or one.bad for one in taken):
            yield merged(taken, {})
        active = [one for one in active if one.goes_on or one.holds]


def _load(active: Sequence[MergeInput]) -> int:
    """Read on in the input that is furthest behind; return the time before which all is read."""
    going = [one for one in active if one.goes_on]
    if going:
        min(going, key=lambda one: one.clock).load()
    return min((one.clock for one in going if one.goes_on), default=AFTER_ALL)
