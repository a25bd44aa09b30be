"""Settings of librdkafka's clients: brokers, TLS, SASL and the log.

They follow from those of kafka-python's clients, which were checked before a broker is asked. Both
use the same tokens.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from abers_connectors.kafka.settings import key_password

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from abers_connectors.config.sections import KafkaSection, SecuritySection
    from abers_connectors.kafka.token_adapter import TokenAdapter

__all__ = ["client_settings"]


def client_settings(
    kafka: KafkaSection, checked: Mapping[str, Any], environ: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """Return the settings that all of librdkafka's clients get; `checked` are kafka-python's.

    They hold passwords: they go nowhere but to the client, which shows none of them.
    """
    security = kafka.security
    settings: dict[str, Any] = {
        "bootstrap.servers": ",".join(kafka.bootstrap_servers),
        "client.id": checked["client_id"],
        "security.protocol": security.protocol,
        "reconnect.backoff.max.ms": checked["reconnect_backoff_max_ms"],
    }
    if security.encrypted:
        settings |= _tls(security, environ)
    if security.mechanism is not None:
        settings["sasl.mechanism"] = checked["sasl_mechanism"]
    if security.by_password:
        settings["sasl.username"] = security.username
        settings["sasl.password"] = checked["sasl_plain_password"].reveal()
    if security.by_token:
        settings["oauth_cb"] = _token_callback(checked["sasl_oauth_token_provider"])
    return settings


def _token_callback(tokens: TokenAdapter) -> Callable[[str], tuple[Any, ...]]:
    """Return a function that the client calls for a token, in a thread of its own."""

    def token(_: str) -> tuple[Any, ...]:
        found = tokens.provider.token()
        return found.value.reveal(), found.expires, "", tokens.extensions()

    return token


def _tls(security: SecuritySection, environ: Mapping[str, str]) -> dict[str, Any]:
    secret = key_password(security, environ) if security.certfile else None
    given = {
        "ssl.ca.location": security.cafile,  # of the system by default
        "ssl.certificate.location": security.certfile,
        "ssl.key.location": security.keyfile or security.certfile,
        "ssl.key.password": None if secret is None else secret.reveal(),
        "ssl.endpoint.identification.algorithm": "https" if security.check_hostname else "none",
    }
    return {name: value for name, value in given.items() if value is not None}
