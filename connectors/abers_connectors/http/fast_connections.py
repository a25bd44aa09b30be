"""Connections that parse requests in C, for servers with many: they need the extra serve.

Their limits are those of `abers_connectors.http.connections`.
"""

from __future__ import annotations

from typing import NoReturn

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from abers_connectors.http.connections import HEAD, WatchedConnection

__all__ = ["fast_protocol"]

_REQUEST_LINE = len("GET  HTTP/1.1\r\n\r\n")  # without its path, and the end of a head
_BETWEEN = len(": \r\n")
_PIPELINED = 16  # requests of a client that does not wait for responses


class _FastConnection(WatchedConnection, HttpToolsProtocol):
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._size = _REQUEST_LINE

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count(len(name) + len(value) + _BETWEEN)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        if len(self.pipeline) > _PIPELINED:
            _refuse()

    def _count(self, size: int) -> None:
        """Count bytes of a head, which may have only so many."""
        self._size += size
        if self._size > HEAD:
            _refuse()


def _refuse() -> NoReturn:
    """Let the parser refuse the request."""
    raise ValueError


def fast_protocol(patience: float) -> type[HttpToolsProtocol]:
    """Return the class of one server's connections; see `connections.protocol`."""
    return type("FastConnection", (_FastConnection,), {"patience": patience, "all_open": set()})
