"""Requests to servers that answer badly, `abers_connectors.http_client`, over real sockets."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from contextlib import closing
from http.client import HTTPException
from typing import TYPE_CHECKING

import pytest
import trustme
from tests.connectors.hooks import SECRET, Posted, listening
from tests.connectors.schemas.registries import misbehaving

from abers_connectors.http_client import Reply, ask

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 1.0
MOST = 1000
HEAD = b"HTTP/1.1 200 OK\r\n"
REFUSED = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 99\r\n\r\n"


@pytest.fixture(scope="module")
def tls() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the contexts of a server and of its clients."""
    authority, server = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    mine = ssl.create_default_context()
    authority.configure_trust(mine)
    return server, mine


def test_a_request_with_a_body() -> None:
    """A request that has a body is a POST."""
    with listening() as listener:
        given = {"Content-Type": "application/json"}
        assert ask(listener.url, given, b"{}", seconds=60, most=MOST) == Reply(204, b"")
        assert listener.heard.get_nowait() == Posted(SECRET, "application/json", b"{}")


def test_an_answer(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    """A request has path and headers; of the answer comes what is asked for."""
    answer = HEAD + b"Content-Length: 2000\r\n\r\n" + b"a" * 2000
    for server in (None, tls[0]):
        with misbehaving(answer, tls=server) as (url, asked):
            found = ask(f"{url}/path?q=1", {"X-Own": "x"}, seconds=60, most=MOST, tls=tls[1])
            assert found == (200, b"a" * MOST)
        assert asked[0].startswith(b"GET /path?q=1 HTTP/1.1\r\n")
        assert b"\r\nX-Own: x\r\n" in asked[0]


TRICKLING = {
    "nothing": (b"", b""),
    "a status": (b"HTTP/1.1 2", b"0"),
    "a header": (HEAD + b"X-Long: ", b"x"),
    "headers": (HEAD, b"X-More: x\r\n"),
    "to go on": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body": (HEAD + b"Content-Length: 999\r\n\r\n", b"x"),
    "a body without length": (HEAD + b"\r\n", b"x"),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "the length of a chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x"),
}


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("name", TRICKLING)
def test_one_deadline(
    name: str,
    secure: bool,  # noqa: FBT001
    tls: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    """A server that sends a byte now and then, wherever, is not waited for beyond the deadline."""
    begins, drip = TRICKLING[name]
    with misbehaving(begins, drip=drip or b"", tls=tls[0] if secure else None) as (url, _):
        began = time.monotonic()
        with pytest.raises((OSError, HTTPException)):
            ask(url, {}, seconds=SECONDS, most=MOST, tls=tls[1])
        assert time.monotonic() - began < 3 * SECONDS


def test_a_handshake_without_end() -> None:
    """A handshake of TLS that comes byte after byte ends at the deadline."""
    with misbehaving(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", drip=b"\x03") as (url, _):
        began = time.monotonic()
        with pytest.raises(OSError, match="timed out"):
            ask(url.replace("http:", "https:"), {}, seconds=SECONDS, most=MOST)
        assert time.monotonic() - began < 3 * SECONDS


def test_a_server_that_does_not_read() -> None:
    """A request of which nobody reads the body ends at the deadline."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            ask(url, {}, bytes(64 << 20), seconds=SECONDS, most=MOST)
        assert time.monotonic() - began < 3 * SECONDS


@pytest.mark.parametrize(
    "flood",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000,
        HEAD + b"X-Long: " + b"x" * 70_000,
        HEAD + b"".join(b"X-%d: x\r\n" % number for number in range(200)),
        HEAD + b"".join(b"X-%d: %s\r\n" % (number, b"x" * 2000) for number in range(90)),
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1;xxxxxxxxxxxxxxxx\r\nx\r\n" * 9000,
    ],
)
def test_a_flood(flood: bytes) -> None:
    """Headers without end, and what is sent next to the body, are not read to their end."""
    with misbehaving(flood) as (url, _), pytest.raises((HTTPException, ConnectionError)):
        ask(url, {}, seconds=60, most=9000)


@pytest.mark.parametrize("body", [b"", b'{"error', b"5\r\nabc", pytest.param(b"hangs", id="hangs")])
def test_a_refusal_whose_body_does_not_come(body: bytes) -> None:
    """The status of an error counts, also if its body is truncated or hangs."""
    chunked = b"HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n"
    begins = chunked if body.startswith(b"5") else REFUSED
    drip = b" " if body == b"hangs" else b""
    with misbehaving(begins + body, drip=drip) as (url, _):
        found = ask(url, {}, seconds=SECONDS, most=MOST)
    assert found.status == 400
    assert found.body in {b"", b'{"error'}


def test_a_redirection_is_not_followed() -> None:
    """The answer is the redirection, and what it leads to is not asked."""
    with listening([302]) as listener:
        found = ask(listener.url, {"Authorization": "x"}, b"x", seconds=60, most=0)
        assert found == Reply(302, b"")
        assert listener.heard.qsize() == 1


def test_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of a proxy count if they may; a tunnel that trickles ends at the deadline."""
    with misbehaving(HEAD + b"Content-Length: 2\r\n\r\nok") as (url, asked):
        monkeypatch.setenv("http_proxy", url)
        assert ask("http://elsewhere.example/x", {}, seconds=60, most=9) == (200, b"ok")
        assert asked[0].startswith(b"GET http://elsewhere.example/x HTTP/1.1\r\n")
        with pytest.raises(socket.gaierror):
            ask("http://elsewhere.invalid/x", {}, seconds=60, most=9, direct=True)
        assert len(asked) == 1
    with misbehaving(HEAD, drip=b"X-More: x\r\n") as (url, asked):
        monkeypatch.setenv("https_proxy", url)
        with pytest.raises((OSError, HTTPException)):
            ask("https://elsewhere.example/x", {}, seconds=SECONDS, most=9)
        assert asked[0].startswith(b"CONNECT elsewhere.example:443 HTTP/1.")


def test_an_address_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several addresses of a host the next is asked if one does not accept."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with closing(socket.create_server(("127.0.0.2", port))) as server:
        addresses = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{n}", port)) for n in (1, 2)
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(HEAD + b"\r\nok")

        thread = threading.Thread(target=answer)
        thread.start()
        assert ask(f"http://two.example:{port}", {}, seconds=60, most=9) == (200, b"ok")
        thread.join()


def test_a_file_is_no_address(tmp_path: Path) -> None:
    """Only HTTP is spoken: the address of a file is refused."""
    (tmp_path / "secret").write_text("x")
    with pytest.raises(OSError, match="unknown url type"):
        ask((tmp_path / "secret").as_uri(), {}, seconds=60, most=9)
