"""Settings of librdkafka's clients: brokers, TLS, SASL and the log.

The files and passwords are checked as for kafka-python, before a broker is asked.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from abers_connectors.kafka.settings import KEY_PASSWORD, PASSWORD
from abers_connectors.kafka.settings import client_settings as kafka_python_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.config.sections import KafkaSection, SecuritySection

__all__ = ["client_settings"]


def client_settings(kafka: KafkaSection, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the settings that all of librdkafka's clients get; see kafka-python's.

    They hold passwords: they go nowhere but to the client, which shows none of them.
    """
    checked = kafka_python_settings(kafka, environ)
    security = kafka.security
    settings: dict[str, Any] = {
        "bootstrap.servers": ",".join(kafka.bootstrap_servers),
        "client.id": checked["client_id"],
        "security.protocol": security.protocol,
        "reconnect.backoff.max.ms": checked["reconnect_backoff_max_ms"],
    }
    if security.encrypted:
        settings |= _tls(security, environ)
    if security.by_password:
        settings["sasl.mechanism"] = security.mechanism
        settings["sasl.username"] = security.username
        settings["sasl.password"] = environ[PASSWORD]
    return settings


def _tls(security: SecuritySection, environ: Mapping[str, str]) -> dict[str, Any]:
    given = {
        "ssl.ca.location": security.cafile,  # of the system by default
        "ssl.certificate.location": security.certfile,
        "ssl.key.location": security.keyfile or security.certfile,
        "ssl.key.password": environ.get(KEY_PASSWORD) if security.certfile else None,
        "ssl.endpoint.identification.algorithm": "https" if security.check_hostname else "none",
    }
    return {name: value for name, value in given.items() if value is not None}
