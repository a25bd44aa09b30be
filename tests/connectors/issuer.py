"""A real issuer of tokens for the tests, over HTTP on this machine."""

from __future__ import annotations

import base64
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, unquote_plus

from joserfc import jwt
from joserfc.jwk import RSAKey

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

AUDIENCE, CLIENT, CLIENT_SECRET = "brokers", "abers", "open sesame/3+€"
EXPIRED = "expired"
"""Scope of which only tokens are issued that have expired."""
_KEY_ID = "test"


class Answer(NamedTuple):
    """A response to a request of a token."""

    status: int
    body: bytes
    location: str = ""


class Request(NamedTuple):
    """A request of a token."""

    client: str
    secret: str
    form: dict[str, list[str]]


class Issuer:
    """An issuer that signs tokens of `lifetime` seconds for the one client that it knows.

    `answer` is sent instead of any token, if there is one. `issued` has the tokens, and `requests`
    what asked for them. Nothing is answered while `answering` is cleared.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.lifetime = 3600.0
        self.answer: Answer | None = None
        self.answering = threading.Event()
        self.answering.set()
        self.issued: list[str] = []
        self.requests: list[Request] = []
        self._key, self._strange = (
            RSAKey.generate_key(2048, {"kid": _KEY_ID, "use": "sig", "alg": "RS256"})
            for _ in range(2)
        )
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def url(self) -> str:
        """Address of the issuer, which is also its name."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    @property
    def token_endpoint_url(self) -> str:
        """Address that answers with tokens."""
        return f"{self.url}/token"

    @property
    def keys_url(self) -> str:
        """Address of the public keys."""
        return f"{self.url}/keys"

    def token(self, lifetime: float = 3600.0, *, forged: bool = False) -> str:
        """Sign a token; a forged one is signed by a key that the brokers do not know."""
        now = time.time()
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": CLIENT,
            "iat": now + min(0.0, 2 * lifetime),
            "exp": now + lifetime,
        }
        header = {"alg": "RS256", "kid": _KEY_ID, "typ": "JWT"}
        return jwt.encode(header, claims, self._strange if forged else self._key)

    def close(self) -> None:
        """Stop answering; nobody listens at the port then."""
        self.answering.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def keys(self) -> Answer:
        """Return the public keys."""
        return Answer(200, json.dumps({"keys": [self._key.as_dict(private=False)]}).encode())

    def respond(self, request: Request) -> Answer:
        """Return the response to a request of a token."""
        self.requests.append(request)
        self.answering.wait()
        if self.answer is not None:
            return self.answer
        if (request.client, request.secret) != (CLIENT, CLIENT_SECRET):
            error = {"error": "invalid_client", "error_description": "unknown client or secret"}
            return Answer(401, json.dumps(error).encode())
        expired = request.form.get("scope") == [EXPIRED]
        self.issued.append(self.token(-60 if expired else self.lifetime))
        found: dict[str, Any] = {"access_token": self.issued[-1], "token_type": "Bearer"}
        return Answer(200, json.dumps(found | {"expires_in": self.lifetime}).encode())


def _handler(issuer: Issuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def do_GET(self) -> None:
            """Send the public keys."""
            self._send(issuer.keys())

        def do_POST(self) -> None:
            """Send a token."""
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            encoded = self.headers["Authorization"].removeprefix("Basic ")
            client, _, secret = base64.b64decode(encoded).decode().partition(":")
            request = Request(unquote_plus(client), unquote_plus(secret), parse_qs(form))
            self._send(issuer.respond(request))

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer.body)))
            if answer.location:
                self.send_header("Location", answer.location)
            self.end_headers()
            self.wfile.write(answer.body)

    return Handler


@contextmanager
def issuing(tls: ssl.SSLContext | None = None) -> Iterator[Issuer]:
    """Run an issuer in a `with` block, over TLS if it has a certificate."""
    issuer = Issuer(tls)
    try:
        yield issuer
    finally:
        issuer.close()
