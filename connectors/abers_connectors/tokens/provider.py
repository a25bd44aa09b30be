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
_PAUSE = 1.0  # seconds between two attempts at least
_EXPIRED = (
    "a new token had expired when it arrived; check the clocks of this machine and the issuer"
)
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
    ConfigError otherwise. Any other error is reported by its type alone: its message may have a
    secret. If `fetch` fails, the old token is returned while it is valid, and the next attempt
    comes after 80 % of the time that is left. After that the error is raised, and there is an
    attempt a second: clients that connect again and again ask much more often.
    """

    def __init__(self, fetch: Callable[[], Token], clock: Callable[[], float] = time.time) -> None:
        self._fetch, self._clock = fetch, clock
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._error: BrokerError | ConfigError | None = None
        self._renewal = 0.0  # time of the next attempt

    def token(self) -> Token:
        """Return the token, a new token once 80 % of its lifetime have passed."""
        with self._lock:
            now = self._clock()
            if now >= self._renewal:
                self._renew(now)
            if self._token is None or now >= self._token.expires:
                raise self._error or BrokerError(_EXPIRED)
            return self._token

    def _renew(self, now: float) -> None:
        self._error = None
        try:
            found = self._fetch()
            if found.expires <= now:
                raise BrokerError(_EXPIRED)  # noqa: TRY301 - as those of the source
            self._token = found
        except (BrokerError, ConfigError) as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - anything a library raises
            self._error = BrokerError(f"no token can be had: {type(error).__name__}")
        left = 0.0 if self._token is None else self._token.expires - now
        self._renewal = now + max(_RENEWAL * left, _PAUSE)
        if self._error is not None and left > 0:
            _log.warning("%s; the token before is valid for %d s more", self._error, left)
