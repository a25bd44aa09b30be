"""A bearer token that is renewed before it expires."""

from __future__ import annotations

import logging
import re
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from abers.exceptions import BrokerError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers_connectors.secret import Secret

__all__ = ["Token", "TokenProvider", "is_bearer_token"]

_log = logging.getLogger(__name__)

_RENEWAL = 0.8  # share of the lifetime after which a token is renewed, as librdkafka does
_BEARER = re.compile(r"[A-Za-z0-9._~+/-]+=*", re.ASCII)  # b64token of RFC 6750


def is_bearer_token(text: str) -> bool:
    """Return whether a text can be sent as a token.

    >>> is_bearer_token("c2VjcmV0+/=="), is_bearer_token("two words")
    (True, False)
    """
    return _BEARER.fullmatch(text) is not None


class Token(NamedTuple):
    """A token, and when it expires in seconds since 1970."""

    value: Secret
    expires: float


class TokenProvider:
    """Returns a valid token to any thread.

    `fetch` returns a new token, or raises a BrokerError if that may succeed later, and a
    ConfigError otherwise. If it fails, the old token is returned while it is valid, and the next
    attempt comes after 80 % of the time that is left.
    """

    def __init__(self, fetch: Callable[[], Token], clock: Callable[[], float] = time.time) -> None:
        self._fetch, self._clock = fetch, clock
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._renewal = 0.0

    def token(self) -> Token:
        """Return the token, a new one once 80 % of its lifetime have passed."""
        with self._lock:
            now = self._clock()
            if self._token is None or now >= self._renewal:
                self._token = self._renewed(now)
                self._renewal = now + _RENEWAL * (self._token.expires - now)
            return self._token

    def _renewed(self, now: float) -> Token:
        try:
            return self._fetch()
        except (BrokerError, ConfigError) as error:
            if self._token is None or now >= self._token.expires:
                raise
            left = self._token.expires - now
            _log.warning("%s; the token before is valid for %d s more", error, left)
            return self._token
