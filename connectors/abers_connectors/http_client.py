"""HTTP requests with one deadline, a bounded answer and no redirection.

A peer may answer slowly, byte after byte, or without end, at any point: nothing that it sends makes
a request take longer, or its answer larger. What a request carries, such as a login, goes to the
configured address only.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import URLError
from urllib.request import (
    AbstractHTTPHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

from abers_connectors.regular_files import open_regular

if TYPE_CHECKING:
    from collections.abc import Mapping

    from _typeshed import WriteableBuffer

__all__ = ["Reply", "ask", "trusting"]

_MAX_HEAD = 1 << 16  # bytes of status, headers and the lengths of chunks
_PIECE = 1 << 14  # bytes sent at once: TLS sends no more of them in one call
_ERROR = 400
_LEAST = 1e-3  # seconds; 0 would mean not to wait at all


class Reply(NamedTuple):
    """The status of an answer, and the beginning of its body."""

    status: int
    body: bytes


def ask(  # noqa: PLR0913 - a request and its limits
    url: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
    *,
    seconds: float,
    most: int,
    tls: ssl.SSLContext | None = None,
    direct: bool = False,
) -> Reply:
    """Send a request and return the answer, also one with the status of an error.

    A request with a body is a POST.

    Everything together ends within so many seconds once the name of the host is known: connections,
    TLS, the request, headers and body. Of the body no more than `most` bytes are read. An answer
    that is an error has an empty body if its body does not come. Raises an OSError or an
    HTTPException without an answer. The variables of a proxy count, such as `https_proxy`, unless
    the request is `direct`.
    """
    opener = OpenerDirector()  # with no other handlers: no redirections, files or cookies
    handler = _RequestHandler(time.monotonic() + seconds, most + _MAX_HEAD, tls)
    for one in (handler, UnknownHandler(), *([] if direct else [ProxyHandler()])):
        opener.add_handler(one)
    try:
        response = opener.open(Request(url, body, dict(headers)), timeout=seconds)  # noqa: S310
    except URLError as error:
        raise (error.reason if isinstance(error.reason, OSError) else error) from None
    with response:
        try:
            return Reply(response.status, response.read(most))
        except (OSError, HTTPException):
            if response.status < _ERROR:
                raise
            return Reply(response.status, b"")


def trusting(cafile: str | None) -> ssl.SSLContext:
    """Return a context that trusts the authorities of the system, and those of a file if given."""
    context = ssl.create_default_context()
    if cafile is not None:
        with open_regular(cafile):  # the library would wait in a pipe
            context.load_verify_locations(cafile)
    return context


class _RequestHandler(AbstractHTTPHandler):
    """Opens URLs by connections with a deadline and a largest answer."""

    http_request = https_request = AbstractHTTPHandler.do_request_

    def __init__(self, until: float, most: int, tls: ssl.SSLContext | None) -> None:
        super().__init__()
        self._plain = partial(_RequestConnection, until=until, most=most)
        self._secure = partial(_SecureRequestConnection, until=until, most=most)
        self._tls = tls

    def http_open(self, req: Request) -> HTTPResponse:
        """Open an URL."""
        return self.do_open(self._plain, req)

    def https_open(self, req: Request) -> HTTPResponse:
        """Open an URL over TLS."""
        return self.do_open(partial(self._secure, context=self._tls or trusting(None)), req)


class _RequestConnection(HTTPConnection):
    """A connection with one deadline, by the monotonic clock, for everything that it does."""

    def __init__(self, *args: Any, until: float, most: int, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self._until = until
        self._create_connection = self._connected
        self.response_class = partial(_response, until=until, most=most)  # type: ignore[assignment]

    def send(self, data: Any) -> None:  # noqa: ANN401 - bytes, as nothing else is sent here
        """Send bytes by the deadline."""
        if self.sock is None:
            self.connect()
        for start in range(0, len(data), _PIECE):
            self.sock.settimeout(_left(self._until))
            super().send(data[start : start + _PIECE])

    def _connected(self, address: tuple[str, int], *_timeout_and_source: object) -> socket.socket:
        """Connect to the first address of a host that answers; each may take its share."""
        failure: OSError | None = None
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
        for number, (family, kind, protocol, _, where) in enumerate(found):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(_left(self._until) / (len(found) - number))
                sock.connect(where)
                sock.settimeout(_left(self._until))  # that of a handshake, as a whole
            except OSError as error:
                failure = error
                sock.close()
            else:
                return sock
        raise failure or OSError


class _SecureRequestConnection(_RequestConnection, HTTPSConnection):
    """A connection of this kind over TLS."""


def _response(sock: socket.socket, *args: Any, until: float, most: int, **kw: Any) -> HTTPResponse:  # noqa: ANN401
    return HTTPResponse(_Received(sock, until, most), *args, **kw)  # type: ignore[arg-type]


class _Received(io.RawIOBase):
    """What a socket receives by a deadline, and up to a number of bytes."""

    def __init__(self, sock: socket.socket, until: float, most: int) -> None:
        self._sock, self._until, self._left = sock, until, most
        self._raw = sock.makefile("rb", buffering=0)  # keeps the socket open until it is closed

    def makefile(self, *_: object) -> io.BufferedReader:
        """Return the file that HTTPResponse reads."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        """Read some bytes."""
        self._sock.settimeout(_left(self._until))
        size = self._raw.readinto(buffer)
        self._left -= size or 0
        if self._left < 0:
            msg = "the answer is too large"
            raise HTTPException(msg)
        return size

    def close(self) -> None:
        """Close the socket."""
        self._raw.close()
        super().close()


def _left(until: float) -> float:
    """Return the seconds that are left; raise a TimeoutError if the time is over."""
    left = until - time.monotonic()
    if left < _LEAST:
        raise TimeoutError
    return left
