"""Tokens of a real issuer, `abers_connectors.tokens`."""

from __future__ import annotations

import base64
import itertools
import json
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import pytest
import trustme
from tests.connectors.issuer import CLIENT, CLIENT_SECRET, Answer, Issuer, issuing
from tests.connectors.schemas.registries import misbehaving

from abers.exceptions import BrokerError, ConfigError
from abers_connectors import tokens
from abers_connectors.secret import Secret
from abers_connectors.tokens import ClientCredentials, Token, TokenProvider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def running() -> Iterator[Issuer]:
    """Run an issuer."""
    with issuing() as one:
        yield one


@pytest.fixture
def issuer(running: Issuer, monkeypatch: pytest.MonkeyPatch) -> Issuer:
    """Return an issuer whose answer a test may replace."""
    monkeypatch.setattr(running, "answer", None)
    running.requests.clear()
    return running


def credentials(
    issuer: Issuer, secret: str = CLIENT_SECRET, scope: str | None = None
) -> ClientCredentials:
    """Return the credentials of a client."""
    value = Secret(secret, "the test")
    return ClientCredentials(
        issuer.token_endpoint_url, CLIENT, lambda: value, "kafka.security", scope
    )


def test_a_token_is_fetched(issuer: Issuer) -> None:
    """The request has the grant, the scope and the secret; the token lives as the issuer says."""
    before = time.time()
    token = credentials(issuer, scope="a b")()
    assert token.value == issuer.issued[-1]
    assert before + 3600 <= token.expires <= time.time() + 3600
    (request,) = issuer.requests
    assert (request.client, request.secret) == (CLIENT, CLIENT_SECRET)
    assert request.form == {"grant_type": ["client_credentials"], "scope": ["a b"]}


def test_a_secret_is_read_anew(issuer: Issuer) -> None:
    """A rotated secret counts for the next token."""
    secrets = iter(["old", CLIENT_SECRET])
    fetch = ClientCredentials(
        issuer.token_endpoint_url, CLIENT, lambda: Secret(next(secrets), "x"), "kafka.security"
    )
    with pytest.raises(ConfigError):
        fetch()
    assert fetch().value == issuer.issued[-1]


@pytest.mark.parametrize(
    ("body", "lifetime"),
    [
        ({"access_token": "a.b.c", "expires_in": "60"}, 60),
        ({"access_token": "a.b.c"}, 300),
        ({"access_token": "a.b.c", "expires_in": 60, "token_type": "bearer", "x": []}, 60),
    ],
)
def test_answers_of_other_issuers(issuer: Issuer, body: dict[str, object], lifetime: float) -> None:
    """The lifetime may be a string, or missing; other fields are ignored."""
    issuer.answer = Answer(200, json.dumps(body).encode())
    token = credentials(issuer)()
    assert token.value == "a.b.c"
    assert token.expires == pytest.approx(time.time() + lifetime, abs=5)


def test_a_wrong_secret_is_refused(issuer: Issuer) -> None:
    """The message has the issuer's answer, and where the secret is, but not the secret."""
    with pytest.raises(ConfigError) as error:
        credentials(issuer, "open-barley")()
    (problem,) = error.value.problems
    assert problem == (
        "kafka.security.client_id: the issuer 127.0.0.1 refuses a token to client 'abers' (401, "
        "invalid_client: unknown client or secret); its secret is in the test"
    )


BASIC = base64.b64encode(f"{CLIENT}:{quote_plus(CLIENT_SECRET)}".encode()).decode()
ENCODED = [
    CLIENT_SECRET,
    quote(CLIENT_SECRET),
    quote_plus(CLIENT_SECRET),
    f"Basic {BASIC}",
    quote_plus(BASIC),
    base64.urlsafe_b64encode(f"secret={CLIENT_SECRET}".encode()).decode(),
]


@pytest.mark.parametrize("encoded", ENCODED)
@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_refusals_show_no_secret(issuer: Issuer, status: int, encoded: str) -> None:
    """An issuer that repeats the secret, in whatever encoding, is not quoted."""
    said = {"error": "bad", "error_description": f"{encoded} is wrong {'x' * 1000}"}
    issuer.answer = Answer(status, json.dumps(said).encode())
    with pytest.raises(ConfigError, match=rf"\({status}, its answer repeats a secret,") as error:
        credentials(issuer)()
    assert encoded not in str(error.value)


def test_a_refusal_of_many_words(issuer: Issuer) -> None:
    """Of a long reason the beginning is shown."""
    said = {"error": "bad", "error_description": "x" * 1000}
    issuer.answer = Answer(400, json.dumps(said).encode())
    with pytest.raises(ConfigError, match=r"\(400, bad: x+\)") as error:
        credentials(issuer)()
    assert len(str(error.value)) < 400


def test_a_refusal_without_a_reason(issuer: Issuer) -> None:
    """The status is the reason."""
    issuer.answer = Answer(404, b"<html>not found</html>")
    with pytest.raises(ConfigError, match=r"client 'abers' \(404\);"):
        credentials(issuer)()


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_failure_of_the_issuer_may_pass(issuer: Issuer, status: int) -> None:
    """Errors of a server, and too many requests, are worth another attempt."""
    issuer.answer = Answer(status, b"")
    with pytest.raises(BrokerError, match=rf"from the issuer 127\.0\.0\.1: it answers {status}$"):
        credentials(issuer)()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"access_token": 5}',
        b'{"access_token": "two words", "expires_in": 5}',
        b'{"access_token": "a\\u0001auth=b", "expires_in": 5}',
        b'{"access_token": "abc", "expires_in": 0}',
        b'{"access_token": "' + b"a" * 100_000 + b'"}',
    ],
)
def test_answers_without_a_token(issuer: Issuer, body: bytes) -> None:
    """Any other answer is refused, also one of a size that no token has."""
    issuer.answer = Answer(200, body)
    with pytest.raises(ConfigError, match=r"\.token_endpoint_url: 127\.0\.0\.1 answers without a"):
        credentials(issuer)()


BROKEN = {
    "truncated": (b'{"error": "in', b""),
    "hangs": (b'{"error": "in', b" "),
    "chunked and truncated": (b"5\r\nab", b""),
    "no UTF-8": (b'{"error": "\xff\xff"}', b""),
}


def broken(status: str, how: str) -> tuple[bytes, bytes]:
    """Return an answer whose body is broken, and what follows it again and again."""
    body, drip = BROKEN[how]
    length = "Transfer-Encoding: chunked" if body.startswith(b"5") else "Content-Length: 99"
    return f"HTTP/1.1 {status}\r\n{length}\r\n\r\n".encode() + body, drip


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("503 Away", r"it answers 503$"),
        ("400 Bad Request", r"refuses a token to client 'abers' \(400"),
        ("200 OK", r"no token from the issuer|answers without a token"),
    ],
)
def test_a_valid_token_outlives_broken_answers(
    status: str, how: str, error: str, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token serves as long as it is valid, however the answer to its renewal breaks off."""
    if how == "hangs":  # the others end at once
        monkeypatch.setattr(tokens, "_TIMEOUT", 2.0)
    monkeypatch.setattr(issuer, "lifetime", 100.0)
    clock = itertools.count(time.time(), 90.0).__next__
    answer, drip = broken(status, how)
    with misbehaving(answer, drip=drip) as (url, _):
        sound = credentials(issuer)
        bad = replace(sound, url=url)
        fetches = iter([sound, bad])

        def fetch() -> Token:
            return next(fetches)()

        provider = TokenProvider(fetch, clock)
        assert provider.token() == provider.token()
        with pytest.raises((BrokerError, ConfigError), match=error):
            bad()


def test_a_redirection_is_not_followed(issuer: Issuer) -> None:
    """The secret goes to the configured address only."""
    issuer.answer = Answer(302, b"", issuer.token_endpoint_url)
    with pytest.raises(ConfigError, match=r"\(302\)"):
        credentials(issuer)()
    assert len(issuer.requests) == 1


def test_an_issuer_that_is_away() -> None:
    """A refused connection may be accepted later."""
    with issuing() as gone:
        fetch = credentials(gone)
    with pytest.raises(BrokerError, match=r"127\.0\.0\.1: ConnectionRefusedError$"):
        fetch()


def test_an_issuer_that_is_silent(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request gives up after a few seconds."""
    monkeypatch.setattr(tokens, "_TIMEOUT", 0.2)
    issuer.answering.clear()
    with pytest.raises(BrokerError, match=r"127\.0\.0\.1: TimeoutError$"):
        credentials(issuer)()
    issuer.answering.set()


def test_an_answer_that_is_not_http() -> None:
    """A peer that does not speak HTTP counts as an issuer that is away."""
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as pool:
        port = server.getsockname()[1]
        value = Secret("x", "the test")
        fetch = ClientCredentials(f"http://127.0.0.1:{port}/", CLIENT, lambda: value, "x")
        found = pool.submit(fetch)
        client, _ = server.accept()
        with client:
            client.recv(1 << 16)
            client.sendall(b"nonsense\n")
        with pytest.raises(BrokerError, match=r"127\.0\.0\.1: BadStatusLine$"):
            found.result()


def test_an_issuer_with_a_certificate_of_its_own_authority(tmp_path: Path) -> None:
    """The authorities of the brokers' certificates count for the issuer, too."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with issuing(context) as issuer:
        fetch = credentials(issuer)
        with pytest.raises(BrokerError, match="SSLCertVerificationError"):
            fetch()
        assert replace(fetch, cafile=str(tmp_path / "ca.pem"))().value == issuer.issued[-1]
