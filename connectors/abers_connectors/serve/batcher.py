"""Requests that wait together: those of one turn of the event loop, and those of one write."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from abers.stream import Event
    from abers.stream.durable.answers import EventAnswer

    _Waiting = list[tuple[list[Event], asyncio.Future[list[EventAnswer]]]]

__all__ = ["Batcher", "BusyError"]


class BusyError(Exception):
    """So many events wait that no more are taken."""


class Batcher:
    """Gathers events for a durable processor, in the event loop.

    Parameters
    ----------
    answer
        Answers events, when they are on disk.
    most
        Number of events that may wait.
    """

    def __init__(
        self, answer: Callable[[list[Event]], Future[list[EventAnswer]]], most: int
    ) -> None:
        self._answer, self._most = answer, most
        self._waiting: _Waiting = []
        self._size, self._busy = 0, False

    @property
    def idle(self) -> bool:
        """Whether nothing waits."""
        return not self._size

    async def answers(self, events: list[Event]) -> list[EventAnswer]:
        """Return the answers to events; a BusyError is raised if too many wait."""
        if not events:
            return []
        if self._size and self._size + len(events) > self._most:
            raise BusyError
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[EventAnswer]] = loop.create_future()
        self._waiting.append((events, future))
        self._size += len(events)
        if not self._busy:
            self._busy = True
            loop.call_soon(self._begin, loop)  # when other requests of this turn are read, too
        return await future

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        group, self._waiting = self._waiting, []
        events = [event for part, _ in group for event in part]
        try:
            done = self._answer(events)
        except Exception as error:  # noqa: BLE001 - each request gets it
            self._end(group, len(events), loop, error)
            return
        done.add_done_callback(
            lambda one: loop.call_soon_threadsafe(self._end, group, len(events), loop, one)
        )

    def _end(
        self,
        group: _Waiting,
        size: int,
        loop: asyncio.AbstractEventLoop,
        done: Future[list[EventAnswer]] | Exception,
    ) -> None:
        self._size -= size
        error = done if isinstance(done, Exception) else done.exception()
        answers = iter(done.result() if not (error or isinstance(done, Exception)) else ())
        for events, future in group:
            if future.done():  # its client has gone
                [*islice(answers, len(events))]
            elif error is None:
                future.set_result([*islice(answers, len(events))])
            else:
                future.set_exception(error)
        self._busy = bool(self._waiting)
        if self._busy:
            self._begin(loop)
