"""Settings of a client: brokers, TLS and SASL.

Secrets come from the environment, and nothing that shows the settings of a client shows them.
Mistakes in the settings are reported before a broker is asked.
"""

from __future__ import annotations

import logging
import os
import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from abers.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from abers_connectors.config.sections import KafkaSection, SecuritySection

__all__ = ["KEY_PASSWORD", "PASSWORD", "client_settings"]

PASSWORD, KEY_PASSWORD = "ABERS_KAFKA_PASSWORD", "ABERS_KAFKA_KEY_PASSWORD"
# At level DEBUG these log all bytes that are sent, passwords too.
_WIRE_LOGGERS = ("kafka.net.connection", "kafka.protocol.parser")


def _above_debug(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG


class _Secret(str):
    """A string that is never shown; the client logs its settings."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<secret>"

    __str__ = __repr__


class _PatientSocket(ssl.SSLSocket):
    """A socket that returns the end of a connection separately from the data before it.

    kafka-python reads until nothing is left, and at the end of a connection it drops what it has
    just read: the brokers' response that they reject a password, after which they disconnect.
    """

    _returned = False

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Return data; raise once before the end of the connection if data came before it."""
        data = super().recv(buflen, flags)
        returned, self._returned = self._returned, bool(data)
        if returned and not data:
            raise ssl.SSLWantReadError
        return data


def client_settings(kafka: KafkaSection, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the keyword arguments that all of kafka-python's clients get.

    The environment has the user's password in ``ABERS_KAFKA_PASSWORD``, and that of an encrypted
    key in ``ABERS_KAFKA_KEY_PASSWORD``. A ConfigError is raised if a password is missing, or a
    certificate or key cannot be used.
    """
    security = kafka.security
    settings: dict[str, Any] = {
        "bootstrap_servers": [*kafka.bootstrap_servers],
        "client_id": f"{kafka.application_id}-{kafka.group_instance_id}",
        "security_protocol": security.protocol,
        # As Kafka's own clients. By default (30 s) no record would be written for so long to a
        # broker that is back after a while, and leads again.
        "reconnect_backoff_max_ms": 1000,
    }
    if security.encrypted:
        settings["ssl_context"] = _tls_context(security, environ)
    if security.by_password:
        if PASSWORD not in environ:
            msg = (
                f"kafka.security.username: set its password in the environment variable {PASSWORD}"
            )
            raise ConfigError([msg])
        for name in _WIRE_LOGGERS:
            logging.getLogger(name).addFilter(_above_debug)
        settings["sasl_mechanism"] = security.mechanism
        settings["sasl_plain_username"] = security.username
        settings["sasl_plain_password"] = _Secret(environ[PASSWORD])
    return settings


def _tls_context(security: SecuritySection, environ: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies the brokers
    context.sslsocket_class = _PatientSocket
    context.check_hostname = security.check_hostname
    if security.cafile is None:
        context.load_default_certs()
    else:
        with _file("cafile", security.cafile):
            context.load_verify_locations(security.cafile)
    if security.certfile is not None:
        _load_certificate(context, security.certfile, security.keyfile, environ)
    return context


def _load_certificate(
    context: ssl.SSLContext, certfile: str, keyfile: str | None, environ: Mapping[str, str]
) -> None:
    """Load the client certificate; OpenSSL would ask the terminal for a missing password."""
    asked = []

    def password() -> str:
        asked.append(KEY_PASSWORD)
        return environ.get(KEY_PASSWORD, "")

    for key, path in (("certfile", certfile), ("keyfile", keyfile)):
        if path is not None:
            with _file(key, path), open(path, "rb"):  # noqa: PTH123 - OpenSSL does not name the file
                pass
    with _file("keyfile" if keyfile else "certfile", keyfile or certfile, asked):
        context.load_cert_chain(certfile, keyfile, password)


@contextmanager
def _file(key: str, path: str, asked: list[str] | None = None) -> Iterator[None]:
    try:
        yield
    except ssl.SSLError as error:
        why = f"cannot be used ({error.reason or 'not in PEM format'})"
        if asked:
            why = f"is encrypted, and the password in {asked[0]} does not decrypt it"
        msg = f"kafka.security.{key}: {path} {why}"
        raise ConfigError([msg]) from None
    except OSError as error:
        msg = f"kafka.security.{key}: {path} cannot be read ({error.strerror})"
        raise ConfigError([msg]) from None
