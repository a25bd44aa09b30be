"""Login to a schema registry, and the authorities that its certificate is checked with.

A user has a password, and a token needs no user. Both come from the environment or a file, and no
message shows them.
"""

from __future__ import annotations

import base64
import ssl
from contextlib import nullcontext
from typing import TYPE_CHECKING

from abers.exceptions import ConfigError
from abers_connectors.regular_files import open_regular
from abers_connectors.secret import read_secret
from abers_connectors.tokens.stored_token import stored_token

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.config.sections import SchemaRegistrySection

__all__ = [
    "REGISTRY_PASSWORD",
    "REGISTRY_TOKEN",
    "login_advice",
    "login_header",
    "secrets_of",
    "tls_context",
]

REGISTRY_PASSWORD = "ABERS_SCHEMA_REGISTRY_PASSWORD"  # noqa: S105 - the name of the variable
"""Environment variable of the password of `schema_registry.username`."""
REGISTRY_TOKEN = "ABERS_SCHEMA_REGISTRY_TOKEN"  # noqa: S105 - the name of the variable
"""Environment variable of a bearer token."""

_PASSWORD_FILE, _TOKEN_FILE = "schema_registry.password_file", "schema_registry.token_file"


def login_header(section: SchemaRegistrySection, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the header of the login; empty without one.

    A file is read by each call, so a token that others renew needs no restart. A ConfigError is
    raised if a secret is missing or cannot be used, and a BrokerError if the token has expired.
    """
    token = read_secret(REGISTRY_TOKEN, _TOKEN_FILE, section.token_file, environ)
    if section.username is None:
        if token is None:
            return {}
        return {"Authorization": f"Bearer {stored_token(token).value.reveal()}"}
    if token is not None:
        msg = f"schema_registry.username: {token.source} has a token, too; remove one of the two"
        raise ConfigError([msg])
    password = read_secret(REGISTRY_PASSWORD, _PASSWORD_FILE, section.password_file, environ)
    if password is None:
        msg = (
            f"schema_registry.username: set the user's password in {REGISTRY_PASSWORD}, or name a "
            f"file that has it in {_PASSWORD_FILE}"
        )
        raise ConfigError([msg])
    login = f"{section.username}:{password.reveal()}".encode()
    return {"Authorization": f"Basic {base64.b64encode(login).decode()}"}


def secrets_of(header: Mapping[str, str]) -> list[str]:
    """Return the password or the token in the header of a login.

    >>> secrets_of({"Authorization": "Bearer abc"}), secrets_of({"Authorization": "Basic dTpwOnc="})
    (['abc'], ['p:w'])
    """
    found = []
    for value in header.values():
        kind, _, secret = value.partition(" ")
        password = base64.b64decode(secret).decode().partition(":")[2] if kind == "Basic" else ""
        found.append(password or secret)
    return found


def login_advice(section: SchemaRegistrySection) -> str:
    """Return what to check after a registry has refused the login."""
    rights = "who may read, and for outputs write"
    if section.username is not None:
        where = f"{REGISTRY_PASSWORD} or {_PASSWORD_FILE}"
        return f"name a user {rights}, and check the password in {where}"
    where = f"{REGISTRY_TOKEN} or {_TOKEN_FILE}"
    return f"name a user {rights}, or check the token in {where}"


def tls_context(cafile: str | None) -> ssl.SSLContext:
    """Return a context that trusts the authorities of a file, by default those of the system."""
    try:
        with nullcontext() if cafile is None else open_regular(cafile):
            return ssl.create_default_context(cafile=cafile)
    except ssl.SSLError as error:
        why = f"cannot be used ({error.reason or 'not in PEM format'})"
    except OSError as error:
        why = f"cannot be read ({error.strerror})"
    raise ConfigError([f"schema_registry.cafile: {cafile} {why}"])
