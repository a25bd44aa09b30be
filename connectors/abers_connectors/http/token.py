"""Tokens of the live page, and of requests.

A token must work both in a header and in an address; any other is refused before anything is
served. No error shows any part of it.
"""

from __future__ import annotations

import os
from ipaddress import ip_address
from typing import TYPE_CHECKING

from abers.exceptions import ConfigError
from abers_connectors.secret import Secret, read_secret
from abers_connectors.tokens.provider import is_bearer_token

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TOKEN", "is_local", "token_of"]

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
