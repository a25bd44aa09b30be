"""Connections that try to hold the server up, `abers_connectors.http.connections`, over sockets."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING

import pytest
import uvicorn
from tests.connectors.http.test_serving import ANY, WHOLE, asked, connected
from tests.connectors.kafka.reads import Read
from tests.connectors.kafka.works import Served

from abers_connectors.http import serving
from abers_connectors.http.connections import protocol
from abers_connectors.kafka.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Receive, Scope, Send

SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
HEALTH = ("/livez", "/readyz")
PIECES = 1_000  # of 64 KiB


def status_of(models: int) -> Status:
    """Give the status of a service that knows so many models, and is ready."""
    status, shard = Status(60.0), Served()
    records = [
        Read(b'{"id": "%d", "time": 1, "model": "m%d", %s}' % (number, number, rest))
        for number in range(models)
        for rest in (b'"score": 0.5', b'"label": 1')
    ]
    status.commit(shard, shard.take(*records))
    status.joined = True
    return status


@pytest.fixture(scope="module")
def many() -> Status:
    """Give a status whose metrics are larger than the buffers of a socket."""
    return status_of(300)


@pytest.fixture
def url(many: Status) -> Iterator[str]:
    """Serve it."""
    with serving(ANY, many) as where:
        yield where


def healthy(url: str) -> bool:
    """Whether a supervisor leaves the process alone."""
    return [asked(url, path).code for path in HEALTH] == [200, 200]


def slow(url: str, sent: bytes) -> socket.socket:
    """Send something, and read nothing of a long answer, for which there is little room."""
    host, port = url.removeprefix("http://").split(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.settimeout(20)
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
    """However many connections are silent, or amid a request, health is answered at once."""
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
    """Who takes no answer has a slot of the metrics, not of health, and not for ever."""
    with serving(ANY, many, patience=0.5) as url, ExitStack() as stack:
        for _ in range(64):
            stack.enter_context(slow(url, SCRAPE))
        assert healthy(url)
        while asked(url, "/metrics").code != 200:
            assert healthy(url)


def test_the_oldest_makes_room(url: str) -> None:
    """Of too many connections that which is idle longest is closed, and none that is served."""
    with ExitStack() as stack:
        busy = stack.enter_context(slow(url, SCRAPE))
        assert busy.recv(15) == b"HTTP/1.1 200 OK"
        first, *_ = [stack.enter_context(connected(url)) for _ in range(300)]
        assert rest(first) == b""
        assert rest(busy).endswith(b"\n")


# Clients that take their time


def test_a_request_that_trickles(many: Status) -> None:
    """A request that comes a byte at a time is given up when its time is over."""
    with serving(ANY, many, patience=0.3) as url, connected(url) as client:
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
    """Answer with more than any buffer holds."""
    del receive
    await send({"type": "http.response.start", "status": 200})
    for _ in range(PIECES):
        await send({"type": "http.response.body", "body": bytes(1 << 16), "more_body": True})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


@contextmanager
def answering(patience: float) -> Iterator[str]:
    """Serve the long answer."""
    listener = socket.create_server(("127.0.0.1", 0))
    settings = uvicorn.Config(long, http=protocol(patience), lifespan="off", log_config=None)
    server = uvicorn.Server(settings)
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
        listener.close()


@pytest.mark.parametrize(("path", "whole"), [("/metrics", False), ("/live/events", True)])
def test_a_reader_that_is_too_slow(path: str, *, whole: bool) -> None:
    """Who takes an answer steadily, but for long, gets a part of it, unless it has no end."""
    patience, pause = 0.5, Event()
    with answering(patience) as url, connected(url) as client:
        client.sendall(WHOLE.replace(b"/livez", path.encode()))
        found, end = 0, perf_counter() + 6 * patience
        with suppress(ConnectionError):
            while part := client.recv(1 << 16):
                found += len(part)
                if perf_counter() < end:
                    pause.wait(0.005)  # a reader that is slow, and not stuck
        assert (found > PIECES << 16) is whole


def test_a_reader_of_small_answers(many: Status) -> None:
    """Who asks again and again, and reads nothing, is let go."""
    with (
        serving(ANY, many, patience=0.2) as url,
        slow(url, b"") as client,
        suppress(ConnectionError),
    ):
        while True:
            client.sendall(WHOLE)


# What a request is


@pytest.mark.parametrize(("size", "code"), [(7_000, 200), (8_193, 400), (100_000, 400)])
def test_the_longest_head(url: str, size: int, code: int) -> None:
    """A head of more than 8 KiB is refused, also if all of it comes at once."""
    head = WHOLE[:-2] + b"X: "
    with connected(url) as client:
        client.sendall(head + b"x" * (size - len(head) - 4) + b"\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 %d " % code)


def test_the_longest_head_behind_another(url: str) -> None:
    """The same holds for a request that is sent before the answer to another."""
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
    """A body is not waited for: the request is refused, and its connection closed."""
    with connected(url) as client:
        client.sendall(WHOLE[:-2] + field + b"\r\n\r\n")
        assert rest(client).startswith(b"HTTP/1.1 413 ")


def test_a_body_that_is_none(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """A request that breaks off into nonsense is nothing that the log of the service is about."""
    with connected(url) as client:
        client.sendall(WHOLE[:-2] + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
        rest(client)
    assert healthy(url)
    assert [one for one in caplog.records if one.levelname == "ERROR"] == []


def test_requests_behind_each_other(url: str) -> None:
    """Requests that are sent together are answered one after the other."""
    last = WHOLE[:-2] + b"Connection: close\r\n\r\n"
    with connected(url) as client:
        client.sendall(WHOLE * 3 + last)
        assert rest(client).count(b"HTTP/1.1 200 ") == 4


@pytest.mark.parametrize("path", ["/livez/", "/metrics/", "//evil.example/livez"])
def test_nobody_is_sent_elsewhere(url: str, path: str) -> None:
    """No answer leads to the name that a client says is ours."""
    answer = asked(url, path, Host="evil.example")
    assert (answer.code, "location" in answer.headers) == (404, False)
