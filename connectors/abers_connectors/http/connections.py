"""Connections that cannot block a server.

A bounded number of connections is open, and a new connection is always accepted: that which has
been idle longest is closed for it. A connection is also closed if it sends its request too slowly,
takes its response too slowly, or stays without a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["HEAD", "PARSED", "STREAM", "WatchedConnection", "protocol"]

STREAM = "/live/events"
"""The path of the only response that has no end."""

HEAD = 8 << 10
"""Bytes of the head of a request."""
_MAX_CONNECTIONS = 256  # open at once: far more than the slots of all pages together
_PIECE = 1 << 10  # bytes passed to the parser at once, which checks the length between them
PARSED = HEAD - _PIECE
"""Bytes after which the parser gives up a head without an end; a piece more may end it."""

_CHECKS = 3  # of the same unfinished response, after which its connection is closed


class WatchedConnection:
    """A connection that is closed unless its client makes progress; with a protocol of uvicorn."""

    patience: float  # seconds
    all_open: set[Any]  # of the same server
    loop: asyncio.AbstractEventLoop
    transport: Any
    cycle: Any

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as asyncio has it
        """Watch a new connection, and close the one that is idle longest if there are too many."""
        super().connection_made(transport)  # type: ignore[misc]
        self._stalled: asyncio.TimerHandle | None = None
        self.since = self.loop.time()
        self._next = self.loop.call_later(self.patience, self._check, None, 1)
        self.all_open.add(self)
        if len(self.all_open) > _MAX_CONNECTIONS:
            idle = (one for one in self.all_open if one.idle)
            oldest = min(idle, key=lambda one: one.since)
            self.all_open.discard(oldest)
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Watch it no longer."""
        super().connection_lost(exc)  # type: ignore[misc]
        self.all_open.discard(self)
        self._next.cancel()
        self._moves()

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request."""
        if self.idle:
            super().send_400_response(msg)  # type: ignore[misc]
        else:  # its response is under way: two would be an error, and a line of the log
            self.cycle.disconnected = True
            self.transport.abort()

    def on_response_complete(self) -> None:
        """Begin to count the time without a request."""
        self.since = self.loop.time()
        super().on_response_complete()  # type: ignore[misc]

    def pause_writing(self) -> None:
        """Close the connection unless its client reads on in time."""
        super().pause_writing()  # type: ignore[misc]
        self._stalled = self.loop.call_later(self.patience, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that its client reads on."""
        super().resume_writing()  # type: ignore[misc]
        self._moves()

    def _moves(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _check(self, last: object, checks: int) -> None:
        """Close the connection of a client without progress since the last check."""
        cycle, same = self.cycle, self.cycle is last
        endless = not self.idle and cycle.scope["path"] == STREAM
        late = same and checks >= _CHECKS and not endless
        if self.transport.is_closing() or (same and self.idle) or late:
            self.transport.abort()
            return
        checks = checks + 1 if same else 1
        self._next = self.loop.call_later(self.patience, self._check, cycle, checks)


class _Connection(WatchedConnection, H11Protocol):
    def data_received(self, data: bytes) -> None:
        for at in range(0, len(data), _PIECE):
            if self.transport.is_closing():
                return
            super().data_received(data[at : at + _PIECE])
            if len(self.conn.trailing_data[0]) > HEAD:  # requests with responses that nobody reads
                self.transport.abort()


def protocol(patience: float) -> type[H11Protocol]:
    """Return the class of one server's connections, as uvicorn takes one.

    A client has `patience` seconds to send a request, and to take a part of the response.
    """
    return type("Connection", (_Connection,), {"patience": patience, "all_open": set()})
