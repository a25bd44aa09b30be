"""Connections that try to block the server, `abers_connectors.http.connections`, over sockets."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING

import pytest
import uvicorn
from tests.connectors.dashboard.test_server import ANY, WHOLE, asked, connected
from tests.connectors.kafka.reads import Read
from tests.connectors.kafka.works import Served

from abers_connectors.dashboard.server import serving
from abers_connectors.http.connections import protocol
from abers_connectors.http.fast_connections import fast_protocol
from abers_connectors.runtime.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Receive, Scope, Send

SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
HEALTH = ("/livez", "/readyz")
PIECES = 1_000  # of 64 KiB


def status_of(models: int) -> Status:
    """Return the status of a service with that many models, which is ready."""
    status, task = Status(3600.0), Served()
    records = [
        Read(b'{"id": "%d", "time": 1, "model": "m%d", %s}' % (number, number, rest))
        for number in range(models)
        for rest in (b'"score": 0.5', b'"label": 1')
    ]
    status.batch_committed(task, task.take(*records))
    status.seats["tasks"].joined = True
    return status


@pytest.fixture(scope="module")
def many() -> Status:
    """Return a status whose metrics are larger than the buffers of a socket."""
    return status_of(300)


BOTH = pytest.mark.parametrize("fast", [False, True], ids=["h11", "httptools"])


@pytest.fixture(params=[False, True], ids=["h11", "httptools"])
def url(many: Status, request: pytest.FixtureRequest) -> Iterator[str]:
    """Serve it, with each parser."""
    with serving(ANY, many, fast=request.param) as where:
        yield where


def healthy(url: str) -> bool:
    """Return whether a supervisor leaves the process alone."""
    return [asked(url, path).code for path in HEALTH] == [200, 200]


def slow(url: str, sent: bytes) -> socket.socket:
    """Send something, and read nothing of a long response, with a small buffer."""
    host, port = url.removeprefix("http://").split(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.settimeout(240)
    client.connect((host, int(port)))
    client.sendall(sent)
    return client


def rest(client: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    found = b""
    with suppress(ConnectionError):
        while part := client.recv(1 << 16):
            found += part
    return found


# Health


@pytest.mark.parametrize("sent", [b"", WHOLE[:9]])
@pytest.mark.parametrize("count", [64, 300])
def test_health_beside_silent_connections(url: str, count: int, sent: bytes) -> None:
    """However many connections are silent, or amid a request, health responds at once."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(connected(url)).sendall(sent)
        assert healthy(url)


def test_health_beside_scrapers(url: str) -> None:
    """While 24 clients scrape without a pause, each is served, and so is health."""
    with ThreadPoolExecutor(24) as pool:
        scrapes = [pool.submit(asked, url, "/metrics") for _ in range(96)]
        assert all(healthy(url) for _ in range(10))
        assert {one.result().code for one in scrapes} == {200}


def test_health_beside_those_who_do_not_read(many: Status) -> None:
    """A client that reads nothing has a slot of the metrics, not of health, and not long."""
    with serving(ANY, many, patience=3.0) as url, ExitStack() as stack:
        for _ in range(64):
            stack.enter_context(slow(url, SCRAPE))
        assert healthy(url)
        while asked(url, "/metrics").code != 200:
            assert healthy(url)


def test_the_oldest_makes_room(url: str) -> None:
    """Of too many connections the longest idle is closed, and none that is served."""
    with ExitStack() as stack:
        busy = stack.enter_context(slow(url, SCRAPE))
        assert busy.recv(15) == b"HTTP/1.1 200 OK"
        first, *_ = [stack.enter_context(connected(url)) for _ in range(300)]
        assert rest(first) == b""
        assert rest(busy).endswith(b"\n")


# Clients that take their time


@BOTH
def test_a_request_that_trickles(many: Status, *, fast: bool) -> None:
    """A request that arrives byte by byte is closed when its time is over."""
    with serving(ANY, many, patience=0.3, fast=fast) as url, connected(url) as client:
        client.sendall(WHOLE[:-2] + b"X: ")
        client.settimeout(0.02)
        with suppress(ConnectionError):
            while True:
                try:
                    assert client.recv(1) == b""
                    break
                except TimeoutError:
                    client.sendall(b"x")


async def long(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond with more than any buffer holds."""
    del receive
    await send({"type": "http.response.start", "status": 200})
    for _ in range(PIECES):
        await send({"type": "http.response.body", "body": bytes(1 << 16), "more_body": True})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


@contextmanager
def answering(patience: float, *, fast: bool) -> Iterator[str]:
    """Serve the long response."""
    listener = socket.create_server(("127.0.0.1", 0))
    kind = fast_protocol(patience) if fast else protocol(patience)
    settings = uvicorn.Config(long, http=kind, lifespan="off", log_config=None)
    server = uvicorn.Server(settings)
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
        listener.close()


@BOTH
@pytest.mark.parametrize(
    ("path", "patience", "whole"), [("/metrics", 0.5, False), ("/live/events", 2.0, True)]
)
def test_a_reader_that_is_too_slow(path: str, patience: float, *, whole: bool, fast: bool) -> None:
    """A steady but slow reader gets a part of a response, unless the response has no end."""
    pause = Event()
    with answering(patience, fast=fast) as url, connected(url) as client:
        client.sendall(WHOLE.replace(b"/livez", path.encode()))
        found, end = 0, perf_counter() + 6 * patience
        with suppress(ConnectionError):
            while part := client.recv(1 << 16):
                found += len(part)
                if perf_counter() < end:
                    pause.wait(0.02)  # a reader that is slow, and not stuck
        assert (found > PIECES << 16) is whole


@BOTH
def test_a_reader_of_small_answers(many: Status, *, fast: bool) -> None:
    """A client that sends requests and reads nothing is disconnected."""
    with (
        serving(ANY, many, patience=0.2, fast=fast) as url,
        slow(url, b"") as client,
        suppress(ConnectionError),
    ):
        while True:
            client.sendall(WHOLE)


# What a request is


@pytest.mark.parametrize(("size", "code"), [(7_000, 200), (8_193, 400), (100_000, 400)])
def test_the_longest_head(url: str, size: int, code: int) -> None:
    """A head of more than 8 KiB is refused, also if all of it arrives at once."""
    head = WHOLE[:-2] + b"X: "
    with connected(url) as client:
        client.sendall(head + b"x" * (size - len(head) - 4) + b"\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 %d " % code)


def test_the_longest_head_behind_another(url: str) -> None:
    """The same holds for a request that is sent before the response to another."""
    with connected(url) as client, suppress(ConnectionError):
        client.sendall(WHOLE + WHOLE[:-2] + b"X: " + b"x" * 50_000 + b"\r\n\r\n")
        assert rest(client).count(b"HTTP/1.1 200 ") <= 1


def test_too_many_fields(url: str) -> None:
    """A head of very many fields is refused, and its connection closed."""
    with connected(url) as client:
        client.sendall(WHOLE[:-2] + b"X: y\r\n" * 64 + b"\r\n")
        assert rest(client).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("field", [b"Content-Length: 100000000", b"Transfer-Encoding: chunked"])
def test_a_request_with_a_body(url: str, field: bytes) -> None:
    """The server does not wait for a body: it refuses the request and closes its connection."""
    with connected(url) as client:
        client.sendall(WHOLE[:-2] + field + b"\r\n\r\n")
        assert rest(client).startswith(b"HTTP/1.1 413 ")


def test_a_body_that_is_none(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """A request that breaks off into nonsense is not logged by the service."""
    with connected(url) as client:
        client.sendall(WHOLE[:-2] + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
        rest(client)
    assert healthy(url)
    assert [one for one in caplog.records if one.levelname == "ERROR"] == []


def test_requests_behind_each_other(url: str) -> None:
    """Requests that are sent together get their responses in order."""
    last = WHOLE[:-2] + b"Connection: close\r\n\r\n"
    with connected(url) as client:
        client.sendall(WHOLE * 3 + last)
        assert rest(client).count(b"HTTP/1.1 200 ") == 4


@pytest.mark.parametrize("path", ["/livez/", "/metrics/", "//evil.example/livez"])
def test_nobody_is_sent_elsewhere(url: str, path: str) -> None:
    """No response leads to the host name that a client sends."""
    answer = asked(url, path, Host="evil.example")
    assert (answer.code, "location" in answer.headers) == (404, False)
