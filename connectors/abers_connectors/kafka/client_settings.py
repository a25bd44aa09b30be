"""How a client reaches the brokers, and what is said when it does not.

Governing rule: a secret comes from the environment, and nothing that shows the
settings of a client shows it. What is wrong with the settings is told before a
broker is asked, and what a broker refuses is told by the key that it refuses.
"""

from __future__ import annotations

import logging
import os
import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from abers.exceptions import BrokerError, ConfigError
from abers_connectors.extras import extra

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from abers_connectors.config import Kafka, Security

__all__ = ["KEY_PASSWORD", "PASSWORD", "client_settings", "reaching"]

PASSWORD, KEY_PASSWORD = "ABERS_KAFKA_PASSWORD", "ABERS_KAFKA_KEY_PASSWORD"
# At the level DEBUG these write all bytes into the log that are sent, so a password too.
_WIRE = ("kafka.net.connection", "kafka.protocol.parser")
_REFUSED = "ECONNREFUSED"  # nobody listens there


def _unwired(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG


class _Secret(str):
    """A text that is used and never shown; the client writes its settings into its log."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<secret>"

    __str__ = __repr__


class _Patient(ssl.SSLSocket):
    """Tells the end of a connection by itself.

    kafka-python reads until nothing is left, and where it meets the end it throws away what it has
    read just before: the brokers' word that they refuse a password, after which they hang up.
    """

    _given = False

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Give what has come; if that was given already, wait for the end to be asked for again."""
        data = super().recv(buflen, flags)
        given, self._given = self._given, bool(data)
        if given and not data:
            raise ssl.SSLWantReadError
        return data


def client_settings(kafka: Kafka, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Give what every client of the brokers is made with.

    Parameters
    ----------
    kafka
        The section of the configuration.
    environ
        Where the passwords are: that of a user in ``ABERS_KAFKA_PASSWORD``, that of an encrypted
        key in ``ABERS_KAFKA_KEY_PASSWORD``.

    Returns
    -------
    dict
        Keyword arguments of kafka-python's consumer, producer and admin client.

    Raises
    ------
    ConfigError
        If a password is missing, or a certificate or key cannot be used.

    Examples
    --------
    >>> from abers_connectors.config import Kafka, Security
    >>> security = Security(protocol="SASL_PLAINTEXT", mechanism="PLAIN", username="abers")
    >>> kafka = Kafka(
    ...     bootstrap="localhost:9092", observations="in", predictions="out", security=security
    ... )
    >>> client_settings(kafka, {"ABERS_KAFKA_PASSWORD": "x"})["sasl_plain_password"]
    <secret>
    """
    security = kafka.security
    settings: dict[str, Any] = {
        "bootstrap_servers": [*kafka.bootstrap],
        "client_id": f"{kafka.app}-{kafka.instance}",
        "security_protocol": security.protocol,
        # As Kafka's own clients. By default (30 s) nobody would write for so long to a broker that
        # is back after a while, and leads again.
        "reconnect_backoff_max_ms": 1000,
    }
    if security.encrypted:
        settings["ssl_context"] = _context(security, environ)
    if security.by_password:
        if PASSWORD not in environ:
            msg = f"kafka.security.username: set the environment's {PASSWORD} to its password"
            raise ConfigError([msg])
        for name in _WIRE:
            logging.getLogger(name).addFilter(_unwired)
        settings["sasl_mechanism"] = security.mechanism
        settings["sasl_plain_username"] = security.username
        settings["sasl_plain_password"] = _Secret(environ[PASSWORD])
    return settings


def _context(security: Security, environ: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which verifies the brokers
    context.sslsocket_class = _Patient
    context.check_hostname = security.check_hostname
    if security.cafile is None:
        context.load_default_certs()
    else:
        with _file("cafile", security.cafile):
            context.load_verify_locations(security.cafile)
    if security.certfile is not None:
        _identify(context, security.certfile, security.keyfile, environ)
    return context


def _identify(
    context: ssl.SSLContext, certfile: str, keyfile: str | None, environ: Mapping[str, str]
) -> None:
    """Load our own certificate; OpenSSL would ask the terminal for a password that it lacks."""
    asked = []

    def password() -> str:
        asked.append(KEY_PASSWORD)
        return environ.get(KEY_PASSWORD, "")

    for key, path in (("certfile", certfile), ("keyfile", keyfile)):
        if path is not None:
            with _file(key, path), open(path, "rb"):  # noqa: PTH123 - OpenSSL does not say which
                pass
    with _file("keyfile" if keyfile else "certfile", keyfile or certfile, asked):
        context.load_cert_chain(certfile, keyfile, password)


@contextmanager
def _file(key: str, path: str, asked: list[str] | None = None) -> Iterator[None]:
    try:
        yield
    except ssl.SSLError as error:
        why = f"is not usable as such ({error.reason or 'not in PEM format'})"
        if asked:
            why = f"is encrypted, and {asked[0]} of the environment does not open it"
        msg = f"kafka.security.{key}: {path} {why}"
        raise ConfigError([msg]) from None
    except OSError as error:
        msg = f"kafka.security.{key}: {path} cannot be read ({error.strerror})"
        raise ConfigError([msg]) from None


class _Cause(logging.Handler):
    """Remembers the error that the client put in its log: it raises a mere time-out."""

    def __init__(self, raised: type[Exception], vague: type[Exception]) -> None:
        super().__init__(logging.WARNING)
        self._raised, self._vague = raised, vague
        self.error: Exception | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Look at what the line is about; that a connection broke tells less than what broke it."""
        for one in record.args if isinstance(record.args, tuple) else ():
            known = self.error is not None and not isinstance(self.error, self._vague)
            if isinstance(one, Exception) and not isinstance(one, self._raised) and not known:
                self.error = one


@contextmanager
def reaching(settings: Mapping[str, Any]) -> Iterator[None]:
    """Turn what a client raises that does not reach a broker into a sentence.

    Parameters
    ----------
    settings
        Those of the client, from `client_settings`.

    Raises
    ------
    BrokerError
        If no broker answers.
    ConfigError
        If the brokers refuse the user.
    MissingExtraError
        If kafka-python is not installed.
    """
    errors = extra("kafka.errors", "a section [kafka]", "kafka")
    log, cause = (
        logging.getLogger("kafka"),
        _Cause(errors.KafkaTimeoutError, errors.KafkaConnectionError),
    )
    log.addHandler(cause)
    try:
        yield
    except errors.KafkaError as error:
        known = cause.error if isinstance(error, errors.KafkaTimeoutError) else None
        raise _told(known or error, settings) from None
    finally:
        log.removeHandler(cause)


def _told(error: Exception, settings: Mapping[str, Any]) -> ConfigError | BrokerError:
    from kafka import errors  # noqa: PLC0415

    if isinstance(error, errors.SaslAuthenticationFailedError):
        user = f"{settings['sasl_plain_username']!r} ({settings['sasl_mechanism']})"
        msg = (
            f"kafka.security.username: the brokers refuse user {user}, or the password in "
            f"the environment's {PASSWORD}"
        )
        return ConfigError([msg])
    if isinstance(error, errors.UnsupportedSaslMechanismError):
        mechanism = settings["sasl_mechanism"]
        return ConfigError([f"kafka.security.mechanism: the brokers do not offer {mechanism}"])
    places, words = ", ".join(settings["bootstrap_servers"]), _words(error)
    # A broker that expects another protocol only hangs up.
    refused = f", and that they accept {PASSWORD}" if "sasl_mechanism" in settings else ""
    hint = f"; see that kafka.security is what the brokers ask for{refused}"
    hint = "" if _REFUSED in words else hint
    return BrokerError(f"no answer from a broker at {places}: {words}{hint}")


def _words(error: Exception) -> str:
    """Give the words of an error of the client, without the number that stands before them."""
    return " ".join(map(str, error.args)) or type(error).__name__
