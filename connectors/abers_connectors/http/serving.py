"""A server in a thread of its own, as small as it can be.

Governing rule: nobody who talks to it, or keeps silent, can hold the service up
or make it grow: clients, the size of a request, and the time in which one comes
are bounded.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from abers.exceptions import AbersError, ConfigError
from abers_connectors.extras import extra

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.applications import Starlette

    from abers_connectors.config import Http
    from abers_connectors.kafka.status import Status
    from abers_connectors.live.feed import Feed

__all__ = ["TOKEN", "serving"]

_CLIENTS = 64
_BYTES = 8 << 10  # of the head of a request
_PATIENCE = 10.0  # seconds for a request to come
_WAITING = 16  # connections that wait to be taken
_END = 5.0  # seconds for the thread to end

TOKEN = "ABERS_HTTP_TOKEN"  # noqa: S105 - the name of the variable
"""The variable of the environment that has what the live page asks for."""


@contextmanager
def serving(
    http: Http,
    status: Status | None,
    feed: Feed | None = None,
    *,
    patience: float = _PATIENCE,
) -> Iterator[str]:
    """Serve health and metrics, and the live page, in a `with` block.

    Parameters
    ----------
    http
        The section of the configuration.
    status
        What is told of a service; None of what is none.
    feed
        What the live page shows; without one there is none.
    patience
        Seconds that a client has for its request, and for taking the answer.

    Yields
    ------
    str
        Where: "http://127.0.0.1:8090".

    Raises
    ------
    AbersError
        If the port is in use.
    ConfigError
        If there is no such host, or the port is not ours to use.
    MissingExtraError
        If starlette, uvicorn, prometheus-client or plotly is not installed.
    """
    for module in ("starlette", "uvicorn", "prometheus_client", *(["plotly"] if feed else [])):
        extra(module, "a section [http]", "http")
    from abers_connectors.http.app import app_of  # noqa: PLC0415 - it needs the extra

    pages = []
    if feed is not None:
        from abers_connectors.live.app import routes  # noqa: PLC0415 - likewise

        pages = routes(feed, {http.host, *http.hosts}, os.environ.get(TOKEN) or None)
    listener = _bound(http)
    server = _server(app_of(status, pages), patience)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listener]}, name="http", daemon=True
    )
    thread.start()
    try:
        yield _url(listener)
    finally:
        if feed is not None:
            feed.close()
        server.should_exit = True
        thread.join(_END)
        listener.close()


def _server(app: Starlette, patience: float) -> Any:  # noqa: ANN401 - a uvicorn.Server
    import uvicorn  # noqa: PLC0415 - an extra
    from uvicorn.protocols.http.h11_impl import H11Protocol  # noqa: PLC0415

    class Impatient(H11Protocol):
        """Lets go of a client that has sent no request since the last look, and awaits none.

        And of one that takes nothing of what it is sent.
        """

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stalled = self.loop.call_later(patience, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._stalled.cancel()

        def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as asyncio has it
            super().connection_made(transport)
            self.loop.call_later(patience, self._look, None)

        def _look(self, last: object) -> None:
            cycle = self.cycle
            if cycle is last and (cycle is None or cycle.response_complete):
                self.transport.close()
            elif not self.transport.is_closing():
                self.loop.call_later(patience, self._look, cycle)

    settings = uvicorn.Config(
        app,
        http=Impatient,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        log_level="error",  # clients are not our concern
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_CLIENTS,
        h11_max_incomplete_event_size=_BYTES,
        timeout_keep_alive=int(_PATIENCE),
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(settings)


def _bound(http: Http) -> socket.socket:
    where = f"http.host = {http.host}, http.port = {http.port}"
    try:
        found = socket.getaddrinfo(http.host, http.port, type=socket.SOCK_STREAM)
    except OSError:
        msg = f"http.host: {http.host} is no address of this machine; write an IP address of it"
        raise ConfigError([msg]) from None
    family, kind, number, _, address = found[0]
    listener = socket.socket(family, kind, number)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_WAITING)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            msg = f"{where}: another process listens there; end it, or write another port"
            raise AbersError(msg) from None
        msg = f"{where}: {error.strerror}; write an address of this machine, and a port above 1023"
        raise ConfigError([msg]) from None
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
