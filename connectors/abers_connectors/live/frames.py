"""What passes from the thread that works to the one that serves.

Governing rule: a frame stays as it is; what comes later is another frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from abers_connectors.models import Key, Seen
    from abers_connectors.report.findings import Findings

__all__ = ["Frame", "Numbers"]


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the records, as a loop knows it.

    Parameters
    ----------
    events
        How many records were applied, or refused.
    dead
        Dead letters by reason.
    waiting
        How many observations wait for labels, and labels for observations.
    read
        Which share of the stream was read, if it has an end.
    lag
        How many records are still to be read, if that is known.
    behind
        How old the newest event is, in seconds, if time goes on.
    hints
        Sentences for whoever looks after it.
    ready
        Whether everything is served.
    """

    events: int
    dead: Mapping[str, int]
    waiting: tuple[int, int]
    read: float | None = None
    lag: int | None = None
    behind: float | None = None
    hints: tuple[str, ...] = ()
    ready: bool = True


class Frame(NamedTuple):
    """All that the page of one model and segment shows, at one moment.

    Attributes
    ----------
    number
        Counts the frames: two with the same number are the same.
    key
        The model and segment; None on the page of a name that no model has.
    ended
        Whether nothing more will come.
    numbers
        What became of the records.
    rate
        Events a second, over the last seconds; of what has ended, over all of it.
    delay
        Median delay of the last labels, in seconds of event time.
    every
        Seconds between two frames of this model, as long as nobody else begins to watch.
    seen
        All models and segments.
    find
        Returns the findings, None if there are none. May be slow: not for the server's event loop.
    """

    number: int
    key: Key | None
    ended: bool
    numbers: Numbers
    rate: float | None
    delay: float | None
    every: float
    seen: list[Seen]
    find: Callable[[], Findings | None]
