"""HTTP server of health, metrics and the live page, in a thread of its own.

No client can block the service or make it grow: connections, the size of a request and the time for
it are bounded, and a supervisor gets its response even if other clients misbehave.

Live pages of a service and of a replay. Both show what passes and change none of it. They are
updated in the thread that works, and never wait.
"""

from __future__ import annotations

import errno
import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Self

from abers.exceptions import AbersError, ConfigError
from abers.stream.option import Ref, said
from abers_connectors.config.layers import option
from abers_connectors.config.sections import HttpSection
from abers_connectors.dashboard.feed import Feed, StreamCounts
from abers_connectors.dashboard.observer import Observer
from abers_connectors.errors import show
from abers_connectors.extras import extra
from abers_connectors.http.credentials import require_certificate, token_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from starlette.routing import Route
    from starlette.types import ASGIApp

    from abers.stream import Outputs, Processor
    from abers.stream.option import Front
    from abers_connectors.replay.options import Period
    from abers_connectors.runtime.status import Status
    from abers_connectors.runtime.task import BatchResult, StreamTask

__all__ = ["ReplayPage", "ServicePage", "listening", "pages", "require_libraries", "serving"]

_PATIENCE = 10.0  # seconds for a request to arrive
_WAITING = 128  # connections that wait to be taken: fewer than are open at once
_END = 5.0  # seconds for the thread to end


@contextmanager
def serving(
    http: HttpSection,
    status: Status | None,
    feed: Feed | None = None,
    *,
    patience: float = _PATIENCE,
    fast: bool = False,
) -> Iterator[str]:
    """Serve health and metrics, and the live page, in a `with` block; yield the address.

    The status is None for a replay, and the feed is None for no page. A client has `patience`
    seconds for its request, and for taking the response. A fast server uses the libraries of the
    extra serve if they are installed. An AbersError is raised if the port is in
    use; a ConfigError, if the host is unknown, the port may not be used, the certificate cannot be
    used, or the token cannot be sent; a MissingExtraError, if a library is not installed.
    """
    require_libraries()
    with ExitStack() as stack:
        app = pages(http, status, feed, stack)
        yield stack.enter_context(listening(http, app, patience=patience, fast=fast))


def require_libraries() -> None:
    """Raise a MissingExtraError if a library of the server is not installed."""
    for module in ("starlette", "uvicorn", "prometheus_client"):
        extra(module, "the HTTP server", "http")


@contextmanager
def listening(
    http: HttpSection,
    app: ASGIApp,
    *,
    patience: float = _PATIENCE,
    fast: bool = False,
    front: Front = "toml",
) -> Iterator[str]:
    """Serve an application in a `with` block, and yield the address; see `serving`.

    Errors name options as a user of the front end writes them.
    """
    require_certificate(http)
    with _bound(http, front) as listener:
        server = _server(http, app, patience, fast=fast and _has_fast())
        thread = threading.Thread(
            target=server.run, kwargs={"sockets": [listener]}, name="http", daemon=True
        )
        thread.start()
        try:
            yield _url(http, listener)
        finally:
            server.should_exit = True
            thread.join(_END)


def pages(
    http: HttpSection,
    status: Status | None,
    feed: Feed | None,
    stack: ExitStack,
    more: Sequence[Route] = (),
) -> ASGIApp:
    """Return the application of health, metrics, the live page, and more routes.

    Its resources are closed with the stack.
    """
    from starlette.applications import Starlette  # noqa: PLC0415 - an extra

    from abers_connectors.http.middleware import RequestLimits  # noqa: PLC0415 - likewise
    from abers_connectors.metrics.exposition import health_routes  # noqa: PLC0415 - it needs the extra

    routes, names = [*more], {http.host, *http.hosts}
    if feed is not None:
        from abers_connectors.dashboard.live_routes import live_routes  # noqa: PLC0415 - likewise

        stack.callback(feed.close)
        routes += live_routes(feed, stack.callback, names, token_of(file=http.token_file))
    if status is not None:
        routes += health_routes(status, stack.callback, names if http.check_host else None)
    app = Starlette(routes=routes)
    # A redirection would lead to the host name that the client has sent.
    app.router.redirect_slashes = False
    return RequestLimits(app)


def _has_fast() -> bool:
    return all(map(find_spec, ("httptools", "uvloop")))


def _server(http: HttpSection, app: ASGIApp, patience: float, *, fast: bool) -> Any:  # noqa: ANN401 - a uvicorn.Server
    """Return a uvicorn server of the app."""
    import uvicorn  # noqa: PLC0415 - an extra

    from abers_connectors.http.connections import PARSED  # noqa: PLC0415 - likewise

    settings = uvicorn.Config(
        app,
        http=_protocol(patience, fast=fast),
        ws="none",
        lifespan="off",
        loop="uvloop" if fast else "asyncio",
        log_config=None,
        log_level="error",  # mistakes of clients are not logged
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_WAITING,
        h11_max_incomplete_event_size=PARSED,
        timeout_keep_alive=int(_PATIENCE),
        timeout_graceful_shutdown=1,
        ssl_certfile=http.certfile,
        ssl_keyfile=http.keyfile,
    )
    return uvicorn.Server(settings)


def _protocol(patience: float, *, fast: bool) -> Any:  # noqa: ANN401 - a class of uvicorn's
    if fast:
        from abers_connectors.http.fast_connections import fast_protocol  # noqa: PLC0415

        return fast_protocol(patience)
    from abers_connectors.http.connections import protocol  # noqa: PLC0415 - an extra

    return protocol(patience)


def _bound(http: HttpSection, front: Front) -> socket.socket:
    """Return a socket that listens at the configured address."""
    host, port = (Ref(option(f"http.{name}"), getattr(http, name)) for name in ("host", "port"))
    where = said((host, ", ", port), front)
    try:
        found = socket.getaddrinfo(http.host, http.port, type=socket.SOCK_STREAM)
    except OSError:
        msg = (
            f"{said((host,), front)}: this must be an address of this machine; write its IP address"
        )
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


def _url(http: HttpSection, listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    scheme = "http" if http.certfile is None else "https"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


_INTERRUPT_CHECK = 1.0  # seconds between two checks whether the command was interrupted


class ServicePage:
    """Live page of a service: what it has committed, and its status.

    It is updated after each commit and after each turn of the loop. Its feed has the frames for the
    server. Dates are in the zone.
    """

    def __init__(
        self,
        app: str,
        status: Status,
        zone: str = "UTC",
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._status, self._observer = status, Observer(index=status.models)
        self.feed = Feed(app, self._observer, self._counts, zone=zone, clock=clock)

    def take(self, task: StreamTask, result: BatchResult) -> None:
        """Add what was committed."""
        if result.outputs is not None:
            self._observer.take(task.processor, result.outputs)

    def refresh(self, tasks: Sequence[StreamTask]) -> None:
        """Make a frame of the tasks, if one is due."""
        self._observer.hold({one.checkpoint.partition: one.processor for one in tasks})
        self.feed.tick()

    def _counts(self) -> StreamCounts:
        """Return the counts of the stream over all partitions."""
        view = self._status.view()
        gauges = view.gauges.values()
        clocks = [one.clock for one in gauges if one.clock is not None]
        return StreamCounts(
            observations=view.counts.records["observations"],
            labels=view.counts.records["labels"],
            dead=dict(view.counts.dead),
            waiting=(sum(one.pending for one in gauges), sum(one.early for one in gauges)),
            lag=sum(view.lags.values()) + sum(view.router_lags.values()),
            behind=max(view.now - max(clocks), 0.0) / 1000 if clocks else None,
            hints=tuple(view.hints),
            largest=tuple(view.largest if len(view.largest) > 1 else ()),
            ready=view.ready,
            since=view.started,
        )


class ReplayPage:
    """Live page of a replay, served in a `with` block on a free port of this machine.

    The title is the stream; of a path the page shows the name of the file. Dates are in the zone,
    and a reference period is drawn. A replay without a pace is only processed in smaller batches,
    so that there is something to see.
    """

    def __init__(self, title: str, zone: str = "UTC", reference: Period | None = None) -> None:
        self._observer = Observer(reference)
        self._feed = Feed(Path(title).name, self._observer, self._counts, zone=zone)
        self._processors: Sequence[Processor] = ()
        self._dead: Mapping[str, int] = {}
        self._fraction: Callable[[], float | None] = lambda: None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Serve the page, and print its address."""
        self.url = self._stack.enter_context(serving(HttpSection(port=0), None, self._feed))
        show(f"The live page is at {self.url}/", err=True)
        return self

    def __exit__(self, *error: object) -> None:
        """Stop serving."""
        self._stack.close()

    def watch(
        self,
        processors: Sequence[Processor],
        dead: Mapping[str, int],
        fraction: Callable[[], float | None],
    ) -> None:
        """Show these processors from now on.

        The replay keeps counting its dead letters by reason. `fraction` returns the share of the
        stream that was read, if known.
        """
        self._processors, self._dead, self._fraction = processors, dead, fraction
        self._observer.hold(dict(enumerate(processors)))

    def take(self, processor: Processor, outputs: Outputs) -> None:
        """Add the outputs of one of the processors."""
        self._observer.take(processor, outputs)
        self.refresh()

    def refresh(self) -> None:
        """Make a frame, if one is due."""
        self._feed.tick()

    def stay(self) -> None:
        """Show the result until the command is interrupted."""
        show(f"It stays at {self.url}/ until Ctrl-C.", err=True)
        try:
            self._feed.end()
            # An interrupt just before a wait does not end it.
            while not Event().wait(_INTERRUPT_CHECK):
                pass
        except KeyboardInterrupt:
            return

    def _counts(self) -> StreamCounts:
        counters = [one.counters for one in self._processors]
        return StreamCounts(
            observations=sum(one["observations"] for one in counters),
            labels=sum(one["labels_in"] for one in counters),
            dead=dict(self._dead),
            waiting=self._observer.waiting(),
            read=self._fraction(),
        )
