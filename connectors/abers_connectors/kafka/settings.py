"""Settings of a client: brokers, TLS and SASL.

Secrets come from the environment or from files, and nothing that shows the settings of a client
shows them. Mistakes in the settings are reported before a broker is asked.
"""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING, Any

from abers_connectors.certificate import load_certificate, pem_file
from abers_connectors.kafka.login import login_settings
from abers_connectors.regular_files import open_regular
from abers_connectors.secret import read_secret

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.config.sections import KafkaSection, SecuritySection
    from abers_connectors.secret import Secret

__all__ = ["KEY_PASSWORD", "client_settings", "key_password"]

KEY_PASSWORD, _KEY_PASSWORD_FILE = "ABERS_KAFKA_KEY_PASSWORD", "kafka.security.key_password_file"


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

    A ConfigError is raised if a secret is missing or refused, or a certificate or key cannot be
    used, and a BrokerError if the issuer of tokens is away.
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
    if security.mechanism is not None:
        settings |= login_settings(security, environ)
    return settings


def key_password(security: SecuritySection, environ: Mapping[str, str]) -> Secret | None:
    """Return the password of the private key, or None."""
    return read_secret(KEY_PASSWORD, _KEY_PASSWORD_FILE, security.key_password_file, environ)


def _tls_context(security: SecuritySection, environ: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies the brokers
    context.sslsocket_class = _PatientSocket
    context.check_hostname = security.check_hostname
    if security.cafile is None:
        context.load_default_certs()
    else:
        with pem_file("kafka.security.cafile", security.cafile), open_regular(security.cafile):
            context.load_verify_locations(security.cafile)
    if security.certfile is not None:
        files = security.certfile, security.keyfile
        remedy = f"set its password in {KEY_PASSWORD}, or name a file in {_KEY_PASSWORD_FILE}"
        secret = key_password(security, environ)
        load_certificate(context, "kafka.security", files, remedy, secret)
    return context
