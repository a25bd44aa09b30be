"""Connections of librdkafka: settings, errors, statistics and log.

Errors of librdkafka are raised as errors of abers. A missing permission, or a group protocol that
the brokers do not support, is a ConfigError. Everything else is a BrokerError, after which the
process should end: a new process may recover where the client cannot.

The settings of its clients follow from those of kafka-python's clients, which are checked before a
broker is asked. Both use the same tokens.
"""

from __future__ import annotations

import logging
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from confluent_kafka import KafkaError, KafkaException

from abers.exceptions import BrokerError, ConfigError
from abers_connectors.kafka.client_errors import fenced_consumer, fenced_producer
from abers_connectors.kafka.connection import key_password

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from abers_connectors.config.sections import KafkaSection, SecuritySection
    from abers_connectors.kafka.client_errors import TokenAdapter

__all__ = [
    "REFUSED",
    "TRANSIENT",
    "ConnectionWatch",
    "Heartbeat",
    "client_settings",
    "error_of",
    "translated_error",
    "translated_errors",
]

# Another process has this process's transactional id. Or the coordinator failed while it ended a
# transaction: a client repeats that request, and brokers that raised the epoch refuse it.
_FENCED_PRODUCER = {"_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"}
_FORBIDDEN = {
    "CLUSTER_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "TOPIC_AUTHORIZATION_FAILED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
}

# Only the text of a fatal error of a consumer says which error it is.
_UNRELEASED = KafkaError(KafkaError.UNRELEASED_INSTANCE_ID).str()
_UNSUPPORTED = (
    KafkaError(KafkaError.UNSUPPORTED_ASSIGNOR).str(),
    KafkaError(KafkaError.UNSUPPORTED_VERSION).str(),
    "Required feature not supported",  # by brokers that do not know the request
)

REFUSED = {
    "INVALID_RECORD",
    "INVALID_TIMESTAMP",
    "MSG_SIZE_TOO_LARGE",
    "RECORD_LIST_TOO_LARGE",
}
"""Names of the errors of a record that the brokers refuse however often it is sent."""

TRANSIENT = {
    "_ALL_BROKERS_DOWN",
    "_MAX_POLL_EXCEEDED",  # the assignment is lost next
    "_RESOLVE",
    "_TIMED_OUT",
    "_TRANSPORT",
    "_UNKNOWN_PARTITION",
    "_UNKNOWN_TOPIC",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "LEADER_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "NOT_LEADER_FOR_PARTITION",
    "UNKNOWN_TOPIC_OR_PART",
}
"""Names of the errors from which a consumer recovers by itself."""


def error_of(raised: KafkaException) -> KafkaError:
    """Return the error in an exception of the client."""
    error: KafkaError = raised.args[0]
    return error


def translated_error(error: KafkaError, doing: str) -> BrokerError | ConfigError:
    """Translate an error of the client; `doing` names its action, such as "reading"."""
    if error.name() in _FENCED_PRODUCER:
        return BrokerError(fenced_producer(doing, error.name()))
    # The error of a consumer that was fenced says so only in its text.
    fenced = error.name() == "_FATAL" and "fenced" in error.str()
    if fenced or error.name() == "FENCED_INSTANCE_ID":
        return BrokerError(fenced_consumer(doing, error.name()))
    if error.name() == "_FATAL" and _UNRELEASED in error.str():
        msg = (
            "joining the group: another process has this kafka.group_instance_id; if it was "
            "killed, its place is free once the session time-out of the group has passed"
        )
        return BrokerError(msg)
    if error.name() == "_FATAL" and any(text in error.str() for text in _UNSUPPORTED):
        why = f'the brokers do not support "consumer" with the assignor range ({error.str()})'
        return ConfigError([f"kafka.group_protocol: {why}"])
    if error.name() in _FORBIDDEN:
        why = f"a permission is missing ({error.name()})"
        return ConfigError([f"{doing}: {why}; `abers check --connect` says which"])
    return BrokerError(f"{doing}: {error.str()} ({error.name()})")


@contextmanager
def translated_errors(doing: str) -> Iterator[None]:
    """Translate the errors of the client."""
    try:
        yield
    except KafkaException as error:
        raise translated_error(error_of(error), doing) from error


def client_settings(
    kafka: KafkaSection, checked: Mapping[str, Any], environ: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """Return the settings that all of librdkafka's clients get; `checked` are kafka-python's.

    They contain passwords, so they go only to the client, which shows none of them.
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
        "ssl.ca.location": security.cafile,  # by default that of the system
        "ssl.certificate.location": security.certfile,
        "ssl.key.location": security.keyfile or security.certfile,
        "ssl.key.password": None if secret is None else secret.reveal(),
        "ssl.endpoint.identification.algorithm": "https" if security.check_hostname else "none",
    }
    return {name: value for name, value in given.items() if value is not None}


_log = logging.getLogger("librdkafka")
_COORDINATOR = "GroupCoordinator"  # the connection of a consumer to the coordinator of its group
_CONNECTED = "in state UP"  # of a connection that was lost


class _Broker(msgspec.Struct):
    """A broker in the statistics."""

    state: str
    disconnects: int
    rxidle: int  # microseconds since it last answered; -1 if it never did


class _Statistics(msgspec.Struct):
    """The part of the statistics that is used."""

    ts: int  # microseconds by the monotonic clock
    brokers: dict[str, _Broker]


_decode = msgspec.json.Decoder(_Statistics).decode


class Heartbeat:
    """When the coordinator of a consumer's group last answered, by the monotonic clock."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def take(self, statistics: str) -> None:
        """Take statistics of the consumer, however late."""
        found = _decode(statistics)
        coordinator = found.brokers.get(_COORDINATOR)
        if coordinator is not None and coordinator.rxidle >= 0:
            # On systems without a monotonic clock librdkafka uses another clock.
            at = min((found.ts - coordinator.rxidle) / 1e6, time.monotonic())
            self.last = max(self.last, at)


class ConnectionWatch:
    """Whether a client has lost a connection, and its log.

    The log reports a lost connection at once, unless it was unused for a minute, or its broker is
    no longer part of the cluster. The statistics report these.
    """

    def __init__(self) -> None:
        self.lost = False
        self._connected = set[str]()

    def log(self, level: int, text: str, *words: object) -> None:
        """Log a line of the client, as a `logging.Logger` does."""
        _log.log(level, text, *words)
        if _CONNECTED in (text % words if words else text):
            self.lost = True

    def take(self, statistics: str) -> None:
        """Take statistics of the client."""
        brokers: Mapping[str, _Broker] = _decode(statistics).brokers
        connected = {name for name, one in brokers.items() if one.state == "UP"}
        if any(one.disconnects for one in brokers.values()) or not self._connected <= connected:
            self.lost = True
        self._connected = connected
