"""Tokens from an issuer, by the client credentials of OAuth 2.0 (RFC 6749, section 4.4)."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.parse import quote_plus, urlencode, urlsplit

import msgspec

import abers
from abers.exceptions import BrokerError, ConfigError
from abers_connectors.http_client import Reply, ask, trusting
from abers_connectors.quotation import quoted
from abers_connectors.secret import Secret
from abers_connectors.tokens.provider import Token, is_bearer_token

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ClientCredentials"]

_TIMEOUT = 5.0  # seconds; a client of Kafka sends no heartbeats meanwhile
_MAX_ANSWER = 1 << 16  # bytes
_MAX_SHOWN = 200  # characters of an issuer's reason
_LIFETIME = 300.0  # seconds, if the issuer does not say
_OK, _SERVER_ERROR = 200, 500
_TEMPORARY = {408, 425, 429}  # besides the errors of a server


class _Granted(msgspec.Struct):
    """The answer with a token."""

    access_token: str
    expires_in: float = _LIFETIME


class _Refused(msgspec.Struct):
    """The answer without one."""

    error: str = ""
    error_description: str = ""


_granted = msgspec.json.Decoder(_Granted, strict=False).decode  # some write "3600"
_refused = msgspec.json.Decoder(_Refused).decode


@dataclass(frozen=True)
class ClientCredentials:
    """Fetches tokens for a client; `secret` is read anew each time.

    `section` is that of the configuration that has the keys, which errors name.
    """

    url: str
    client: str
    secret: Callable[[], Secret]
    section: str
    scope: str | None = None
    cafile: str | None = None

    @property
    def issuer(self) -> str:
        """Host of the issuer."""
        return urlsplit(self.url).hostname or ""

    def __call__(self) -> Token:
        """Fetch a token; raise a BrokerError if the issuer is away, a ConfigError if it refuses."""
        secret, asked = self.secret(), time.time()
        try:
            answer = self._ask(secret)
        except (OSError, HTTPException) as error:
            raise self._away(type(error).__name__) from None
        if answer.status != _OK:
            raise self._refusal(answer, secret)
        return self._token(answer.body, asked)

    def _ask(self, secret: Secret) -> Reply:
        login = f"{quote_plus(self.client)}:{quote_plus(secret.reveal())}"
        form = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {base64.b64encode(login.encode()).decode()}",
            "User-Agent": f"abers/{abers.__version__}",
        }
        body, tls = urlencode(form).encode(), trusting(self.cafile)
        return ask(self.url, headers, body, seconds=_TIMEOUT, most=_MAX_ANSWER, tls=tls)

    def _token(self, body: bytes, asked: float) -> Token:
        try:
            found = _granted(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            found = _Granted("")
        if not is_bearer_token(found.access_token) or not found.expires_in > 0:
            msg = (
                f"{self.section}.token_endpoint_url: {self.issuer} answers without a token; write "
                "the address of the token endpoint"
            )
            raise ConfigError([msg])
        value = Secret(found.access_token, f"the issuer {self.issuer}")
        return Token(value, asked + found.expires_in)

    def _refusal(self, answer: Reply, secret: Secret) -> BrokerError | ConfigError:
        """Return the error for an answer without a token."""
        code = answer.status
        if code >= _SERVER_ERROR or code in _TEMPORARY:
            return self._away(f"it answers {code}")
        try:
            refused = _refused(answer.body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            refused = _Refused()
        said = ": ".join(filter(None, (refused.error, refused.error_description)))
        said = quoted(said, _MAX_SHOWN, secret)
        why = f"{code}, {said}" if said else f"{code}"
        msg = (
            f"{self.section}.client_id: the issuer {self.issuer} refuses a token to client "
            f"{self.client!r} ({why}); its secret is in {secret.source}"
        )
        return ConfigError([msg])

    def _away(self, why: str) -> BrokerError:
        where = f"{self.section}.token_endpoint_url"
        return BrokerError(f"{where}: no token from the issuer {self.issuer}: {why}")
