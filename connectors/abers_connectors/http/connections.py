"""Connections that cannot hold a server up.

Governing rule: a bounded number of connections is open, and a new one is always taken: the one that
has been idle longest makes room. A connection is closed that sends its request too slowly, that
takes its answer too slowly, or that stays without a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["PARSED", "STREAM", "protocol"]

STREAM = "/live/events"
"""The one answer that has no end."""

_HEAD = 8 << 10  # bytes of the head of a request
_MOST = 256  # open at once: far more than the slots of all pages together
_PIECE = 1 << 10  # bytes given to the parser at once, which looks at the length between them
PARSED = _HEAD - _PIECE
"""Bytes after which the parser gives up a head without an end; a piece more may end it."""

_LOOKS = 3  # without an end of the same answer, after which it is given up


class _Room:
    """The connections that are open."""

    def __init__(self) -> None:
        self._open: set[_Connection] = set()

    def enter(self, one: _Connection) -> None:
        self._open.add(one)
        if len(self._open) > _MOST:
            idle = (one for one in self._open if one.idle)
            victim = min(idle, key=lambda one: one.since)
            self.leave(victim)
            victim.transport.abort()

    def leave(self, one: _Connection) -> None:
        self._open.discard(one)


class _Connection(H11Protocol):
    patience: float
    room: _Room

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as asyncio has it
        super().connection_made(transport)
        self._stalled: asyncio.TimerHandle | None = None
        self.since = self.loop.time()
        self._next = self.loop.call_later(self.patience, self._look, None, 1)
        self.room.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.room.leave(self)
        self._next.cancel()
        self._moves()

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        for at in range(0, len(data), _PIECE):
            if self.transport.is_closing():
                return
            super().data_received(data[at : at + _PIECE])
            if len(self.conn.trailing_data[0]) > _HEAD:  # requests that nobody waits for
                self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        if self.idle:
            super().send_400_response(msg)
        else:  # its answer is under way: two would be an error, and a line of the log
            self.cycle.disconnected = True
            self.transport.abort()

    def on_response_complete(self) -> None:
        self.since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(self.patience, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._moves()

    def _moves(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _look(self, last: object, looks: int) -> None:
        """Let go of a client that has made no progress since the last look."""
        cycle, same = self.cycle, self.cycle is last
        endless = not self.idle and self.scope["path"] == STREAM
        late = same and looks >= _LOOKS and not endless
        if self.transport.is_closing() or (same and self.idle) or late:
            self.transport.abort()
            return
        looks = looks + 1 if same else 1
        self._next = self.loop.call_later(self.patience, self._look, cycle, looks)


def protocol(patience: float) -> type[H11Protocol]:
    """Make the class of the connections of one server.

    Parameters
    ----------
    patience
        Seconds that a client has for sending a request, and for taking a part of the answer.

    Returns
    -------
    type
        As uvicorn takes one.
    """
    return type("Connection", (_Connection,), {"patience": patience, "room": _Room()})
