"""The certificate and the tokens of an HTTP server.

Tokens of the live page, and of requests. A token must work both in a header and in an address; any
other is refused before anything is served. No error shows any part of it.
"""

from __future__ import annotations

import hmac
import os
import ssl
from ipaddress import ip_address
from typing import TYPE_CHECKING

from abers.exceptions import ConfigError
from abers_connectors.certificate import load_certificate
from abers_connectors.secret import Secret, read_secret
from abers_connectors.tokens import is_bearer_token

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from abers_connectors.config.sections import HttpSection

__all__ = ["TOKEN", "ServeTokens", "is_local", "require_certificate", "token_of"]

_REMEDY = "write it without a password, such as by `openssl pkey`, where only the server reads it"


def require_certificate(http: HttpSection) -> None:
    """Raise a ConfigError if a certificate is configured that cannot be used with its key."""
    if http.certfile is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load_certificate(context, "http", (http.certfile, http.keyfile), _REMEDY)


TOKEN = "ABERS_HTTP_TOKEN"  # noqa: S105 - the name of the variable
"""Environment variable of the token."""

_KEY = "http.token_file"
_MAX_TOKEN_CHARACTERS = 1_024  # the head of a request holds more


def token_of(
    environ: Mapping[str, str] = os.environ,
    file: str | None = None,
    *,
    variable: str = TOKEN,
    guards: str = "the live page",
) -> Secret | None:
    """Return the token that guards something, from the environment or a file, or None.

    Raises
    ------
    ConfigError
        If it cannot be used.

    Examples
    --------
    >>> token_of({}), token_of({"ABERS_HTTP_TOKEN": "c2VjcmV0+/=="})
    (None, <secret>)
    """
    token = read_secret(variable, _KEY, file, environ)
    if token is None or (is_bearer_token(token) and len(token) <= _MAX_TOKEN_CHARACTERS):
        return token
    name = variable if file is None else f"{_KEY}: {file}"
    problem = (
        f"cannot be sent in a header and in an address; use 1 to {_MAX_TOKEN_CHARACTERS:,} of the "
        "characters A-Z, a-z, 0-9 and -._~+/ with = only at the end, such as from "
        "`openssl rand -hex 32`"
    )
    if not token:
        problem = f"is empty; give it a value, or unset it to serve {guards} to everybody"
    raise ConfigError([f"{name}: {problem}"])


def is_local(host: str) -> bool:
    """Return whether only this machine reaches an address, so that no token is needed.

    >>> is_local("127.0.0.1"), is_local("LocalHost"), is_local("0.0.0.0")
    (True, True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


PREDICT, LABEL = "ABERS_PREDICT_TOKEN", "ABERS_LABEL_TOKEN"


class ServeTokens:
    """What each kind of request must bring in its header `Authorization: Bearer …`.

    A server that others can reach needs all three.

    Raises
    ------
    ConfigError
        If it lacks one, or one cannot be used.
    """

    def __init__(self, http: HttpSection, environ: Mapping[str, str] = os.environ) -> None:
        self._of = {
            "predict": token_of(environ, variable=PREDICT, guards="predictions"),
            "label": token_of(environ, variable=LABEL, guards="labels"),
            "read": token_of(environ, http.token_file),
        }
        names = dict(zip(self._of, (PREDICT, LABEL, TOKEN), strict=True))
        lacking = [names[kind] for kind, token in self._of.items() if token is None]
        if lacking and not is_local(http.host):
            msg = (
                f"http.host = {http.host}: others can reach this server, and the environment lacks "
                f"{', '.join(lacking)}; set what is missing, such as from `openssl rand -hex 32`"
            )
            raise ConfigError([msg])

    def variable(self, kind: str) -> str | None:
        """Return the variable with the token of a kind of request; None if it needs none."""
        return None if self._of[kind] is None else {"predict": PREDICT, "label": LABEL}[kind]

    @property
    def read(self) -> Secret | None:
        """The token for reading, if there is one."""
        return self._of["read"]

    def allows(self, kind: str, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Return whether a request may pass."""
        token = self._of[kind]
        if token is None:
            return True
        given = next((value for name, value in headers if name == b"authorization"), b"")
        scheme, _, bearer = given.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(
            bearer.strip(), token.reveal().encode()
        )
