"""Bearer tokens of clients: stored, of an issuer, or of Amazon MSK."""

from __future__ import annotations

import base64
import logging
import re
import threading
import time
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote_plus, urlencode, urlsplit

import msgspec

import abers
from abers.exceptions import BrokerError, ConfigError
from abers_connectors.errors import quoted
from abers_connectors.extras import extra
from abers_connectors.http_client import Reply, ask, trusting
from abers_connectors.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ClientCredentials",
    "Token",
    "TokenProvider",
    "is_bearer_token",
    "msk_token",
    "stored_token",
]

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


_STORED_LIFETIME = 300.0  # seconds until a token that does not say when it expires is read again


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
    return Token(value, now + _STORED_LIFETIME if expires is None else expires)


def _expiry(token: str) -> float | None:
    """Return when a JSON web token expires; None if it does not say so."""
    _, _, rest = token.partition(".")
    claims = rest.partition(".")[0]
    try:
        decoded = base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))
        return msgspec.json.decode(decoded, type=_Claims).exp
    except ValueError:  # another kind of token
        return None


_TIMEOUT = 5.0  # seconds; a client of Kafka sends no heartbeats meanwhile
_MAX_ANSWER = 1 << 16  # bytes
_MAX_SHOWN = 200  # characters of an issuer's reason
_ISSUED_LIFETIME = 300.0  # seconds, if the issuer does not say
_OK, _SERVER_ERROR = 200, 500
_TEMPORARY = {408, 425, 429}  # besides the errors of a server


class _Granted(msgspec.Struct):
    """The answer with a token."""

    access_token: str
    expires_in: float = _ISSUED_LIFETIME


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


_NEEDED_FOR = 'kafka.security.mechanism = "AWS_MSK_IAM"'


def msk_token(region: str) -> Token:
    """Sign a token for the clusters of a region; raise a BrokerError without credentials.

    The credentials are those that every program of AWS finds: variables, a profile, or the role of
    the machine or the pod.
    """
    signer = extra("aws_msk_iam_sasl_signer.MSKAuthTokenProvider", _NEEDED_FOR, "msk")
    botocore = extra("botocore.exceptions", _NEEDED_FOR, "msk")
    sign: Callable[[str], tuple[str, int]] = signer.generate_auth_token
    try:
        value, expires = sign(region)
    # Without any credentials the signer meets an AttributeError of None.
    except (botocore.BotoCoreError, botocore.ClientError, AttributeError, ValueError) as error:
        why = "the chain has none" if isinstance(error, AttributeError) else type(error).__name__
        msg = f"kafka.security.mechanism: no AWS credentials to sign a token with: {why}"
        raise BrokerError(msg) from None
    return Token(Secret(value, f"the credentials of AWS for {region}"), expires / 1000)
