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
    from collections.abc import Iterator

AUDIENCE, CLIENT, CLIENT_SECRET = "brokers", "abers", "open sesame/3+€"
_KEY_ID = "test"


class Answer(NamedTuple):
    """A response instead of a token."""

    status: int
    body: bytes


class Request(NamedTuple):
    """A request of a token."""

    client: str
    secret: str
    form: dict[str, list[str]]


class Issuer:
    """An issuer that signs tokens of `lifetime` seconds for the one client that it knows.

    `answer` is sent instead of any token, and `silent` requests are never answered. `issued` has
    the tokens, and `requests` what asked for them.
    """

    def __init__(self) -> None:
        self.lifetime = 3600.0
        self.answer: Answer | None = None
        self.silent = threading.Event()
        self.issued: list[str] = []
        self.requests: list[Request] = []
        self.key, self._strange = (
            RSAKey.generate_key(2048, {"kid": _KEY_ID, "use": "sig", "alg": "RS256"})
            for _ in range(2)
        )
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Address of the issuer, which is also its name."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def token_endpoint_url(self) -> str:
        """Address that answers with tokens."""
        return f"{self.url}/token"

    def token(self, lifetime: float | None = None, *, forged: bool = False) -> str:
        """Sign a token; a forged one is signed by a key that the brokers do not know."""
        now = time.time()
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": CLIENT,
            "iat": now,
            "exp": now + (self.lifetime if lifetime is None else lifetime),
        }
        header = {"alg": "RS256", "kid": _KEY_ID, "typ": "JWT"}
        return jwt.encode(header, claims, self._strange if forged else self.key)

    def close(self) -> None:
        """Stop answering; the port is free then."""
        self._server.shutdown()
        self._server.server_close()

    def keys(self) -> dict[str, Any]:
        """Return the public keys."""
        return {"keys": [self.key.as_dict(private=False)]}

    def respond(self, request: Request) -> Answer:
        """Return the response to a request of a token."""
        self.requests.append(request)
        if self.answer is not None:
            return self.answer
        if (request.client, request.secret) != (CLIENT, CLIENT_SECRET):
            error = {"error": "invalid_client", "error_description": "unknown client or secret"}
            return Answer(401, json.dumps(error).encode())
        self.issued.append(self.token())
        found = {"access_token": self.issued[-1], "token_type": "Bearer"}
        return Answer(200, json.dumps(found | {"expires_in": self.lifetime}).encode())


def _handler(issuer: Issuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def do_GET(self) -> None:
            self._send(Answer(200, json.dumps(issuer.keys()).encode()))

        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            _, _, encoded = self.headers.get("Authorization", "").partition("Basic ")
            client, _, secret = base64.b64decode(encoded).decode().partition(":")
            request = Request(unquote_plus(client), unquote_plus(secret), parse_qs(form))
            self._send(issuer.respond(request))

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

    return Handler


@contextmanager
def issuing() -> Iterator[Issuer]:
    """Run an issuer in a `with` block."""
    issuer = Issuer()
    try:
        yield issuer
    finally:
        issuer.close()
