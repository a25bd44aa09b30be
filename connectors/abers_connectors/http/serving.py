"""A server in a thread of its own, as small as it can be.

Governing rule: nobody who talks to it, or keeps silent, can hold the service up
or make it grow: clients, the size of a request, and the time in which one comes
are bounded; and a supervisor gets its answer whatever the others do.
"""

from __future__ import annotations

import errno
import socket
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from abers.exceptions import AbersError, ConfigError
from abers_connectors.extras import extra
from abers_connectors.http.token import token_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp

    from abers_connectors.config import Http
    from abers_connectors.kafka.status import Status
    from abers_connectors.live.feed import Feed

__all__ = ["serving"]

_PATIENCE = 10.0  # seconds for a request to come
_WAITING = 128  # connections that wait to be taken: fewer than are open at once
_END = 5.0  # seconds for the thread to end


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
        If there is no such host, the port is not ours to use, or the token cannot be used.
    MissingExtraError
        If starlette, uvicorn, prometheus-client or plotly is not installed.
    """
    for module in ("starlette", "uvicorn", "prometheus_client", *(["plotly"] if feed else [])):
        extra(module, "a section [http]", "http")
    with ExitStack() as stack:
        app = _app(http, status, feed, stack)
        listener = stack.enter_context(_bound(http))
        server = _server(app, patience)
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


def _app(http: Http, status: Status | None, feed: Feed | None, stack: ExitStack) -> ASGIApp:
    """Make the application; what it holds is closed with the stack."""
    from starlette.routing import Route  # noqa: PLC0415 - an extra

    from abers_connectors.http import app  # noqa: PLC0415 - it needs the extra

    pages, names = list[Route](), {http.host, *http.hosts}
    if feed is not None:
        from abers_connectors.live.app import routes  # noqa: PLC0415 - likewise

        pages += routes(feed, stack.callback, names, token_of())
    if status is not None:
        pages += app.routes(status, stack.callback, names if http.check_host else None)
    return app.app_of(pages)


def _server(app: ASGIApp, patience: float) -> Any:  # noqa: ANN401 - a uvicorn.Server
    import uvicorn  # noqa: PLC0415 - an extra

    from abers_connectors.http.connections import PARSED, protocol  # noqa: PLC0415 - likewise

    settings = uvicorn.Config(
        app,
        http=protocol(patience),
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        log_level="error",  # clients are not our concern
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_WAITING,
        h11_max_incomplete_event_size=PARSED,
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
