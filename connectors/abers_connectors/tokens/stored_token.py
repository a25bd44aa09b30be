"""Tokens that others renew: in a file, or in the environment."""

from __future__ import annotations

import base64
import time
from typing import TYPE_CHECKING

import msgspec

from abers.exceptions import BrokerError, ConfigError
from abers_connectors.tokens.provider import Token, is_bearer_token

if TYPE_CHECKING:
    from abers_connectors.secret import Secret

__all__ = ["stored_token"]

_LIFETIME = 300.0  # seconds until a token that does not say when it expires is read again


class _Claims(msgspec.Struct):
    """The claims of a JSON web token, as far as they are used."""

    exp: float | None = None


def stored_token(value: Secret) -> Token:
    """Return a token that was read; raise a BrokerError if it has expired.

    A JSON web token says when it expires. The brokers check its signature.
    """
    if not is_bearer_token(value.reveal()):
        msg = f"{value.source} has no token: use A-Z, a-z, 0-9 and -._~+/, with = only at the end"
        raise ConfigError([msg])
    now, expires = time.time(), _expiry(value.reveal())
    if expires is not None and expires <= now:
        ago = int(now - expires)
        msg = f"the token in {value.source} expired {ago:,} s ago; write a new token"
        raise BrokerError(msg)
    return Token(value, now + _LIFETIME if expires is None else expires)


def _expiry(token: str) -> float | None:
    """Return when a JSON web token expires; None if it does not say so."""
    _, _, rest = token.partition(".")
    claims = rest.partition(".")[0]
    try:
        decoded = base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))
        return msgspec.json.decode(decoded, type=_Claims).exp
    except ValueError:  # another kind of token
        return None
