"""Clients of kafka-python, and the errors of connecting to the brokers.

kafka-python is an extra, so it is imported when a client is opened.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from abers.exceptions import BrokerError, ConfigError
from abers_connectors.extras import extra
from abers_connectors.kafka.login import rejected

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from abers_connectors.runtime.transport import Headers, TopicPartition

__all__ = [
    "NULL",
    "TIMEOUT",
    "connection_errors",
    "headers_to_client",
    "new_admin",
    "new_consumer",
    "new_producer",
    "open_admin",
    "to_client",
]


class _Null(bytes):
    """The type of `NULL`."""


NULL = _Null()
"""What a producer gets for the value of a header that is null; it takes only bytes."""

TIMEOUT = 10.0  # seconds of a request of the admin client
_CONNECT_TIMEOUT = 30_000  # ms until a consumer or a producer finds a broker that answers
_ATTEMPT = 4_000  # ms of them for one broker
_REFUSED = "ECONNREFUSED"  # no process listens there
# A consumer commits nothing and starts nowhere by itself.
_CONSUMER = {
    "isolation_level": "read_committed",
    "enable_auto_commit": False,
    "auto_offset_reset": "none",
    "allow_auto_create_topics": False,
    "fetch_max_wait_ms": 100,  # the longest wait for a resumed partition
    "request_timeout_ms": 10_000,  # after which a broker that does not answer counts as gone
    "metrics_enabled": False,
}


def _client(module: str = "kafka") -> Any:  # noqa: ANN401 - the client has no types
    return extra(module, "a section [kafka]", "kafka")


def _workarounds() -> Any:  # noqa: ANN401 - it imports the client
    return import_module("abers_connectors.kafka.workarounds")


def to_client(partition: TopicPartition) -> Any:  # noqa: ANN401 - the client has no types
    """Return the client's own object for a partition."""
    return _client().TopicPartition(*partition)


def headers_to_client(headers: Headers) -> list[tuple[str, bytes]]:
    """Return headers for a producer."""
    return [(name, NULL if value is None else value) for name, value in headers]


def _opened(name: str, settings: Mapping[str, Any]) -> Any:  # noqa: ANN401 - the client has no types
    """Open a client.

    It gives all of its time to one of the brokers, drawn at random, and that may hang.
    """
    limit = settings.get("bootstrap_timeout_ms", _CONNECT_TIMEOUT)
    until = time.monotonic() + limit / 1000
    attempt = {**settings, "bootstrap_timeout_ms": min(_ATTEMPT, limit)}
    while True:
        try:
            return getattr(_client(), name)(**attempt)
        except _client("kafka.errors").KafkaTimeoutError:
            if time.monotonic() >= until:
                raise


def new_consumer(settings: Mapping[str, Any], **options: Any) -> Any:  # noqa: ANN401 - no types
    """Open a consumer of committed records, which commits and seeks only by explicit calls."""
    consumer = _opened("KafkaConsumer", {**_CONSUMER, **settings, **options})
    workarounds = _workarounds()
    workarounds.release_resumed(consumer)
    workarounds.accept_all_headers(consumer)
    return consumer


def new_producer(settings: Mapping[str, Any], compression: str, **options: Any) -> Any:  # noqa: ANN401 - no types
    """Open a producer; its compression may be "none"."""
    own = {
        "compression_type": None if compression == "none" else compression,
        "allow_auto_create_topics": False,
        "metrics_enabled": False,
    }
    producer = _opened("KafkaProducer", {**own, **settings, **options})
    _workarounds().allow_null_headers(producer)
    return producer


def new_admin(settings: Mapping[str, Any], **options: Any) -> Any:  # noqa: ANN401 - no types
    """Open an admin client."""
    own = {"request_timeout_ms": int(1000 * TIMEOUT)}
    return _opened("KafkaAdminClient", {**own, **settings, **options})


@contextmanager
def open_admin(settings: Mapping[str, Any]) -> Iterator[Any]:
    """Open an admin client in a `with` block, and translate its errors."""
    limit = int(1000 * TIMEOUT)
    with connection_errors(settings), new_admin(settings, bootstrap_timeout_ms=limit) as admin:
        yield admin


class _CauseHandler(logging.Handler):
    """Keeps the error that the client logs before it raises only a timeout."""

    def __init__(self, raised: type[Exception], vague: type[Exception]) -> None:
        super().__init__(logging.WARNING)
        self._raised, self._vague = raised, vague
        self.error: Exception | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep an error among the arguments; a lost connection says less than its cause."""
        for one in record.args if isinstance(record.args, tuple) else ():
            known = self.error is not None and not isinstance(self.error, self._vague)
            if isinstance(one, Exception) and not isinstance(one, self._raised) and not known:
                self.error = one


@contextmanager
def connection_errors(settings: Mapping[str, Any]) -> Iterator[None]:
    """Raise a BrokerError if no broker answers, and a ConfigError if the brokers reject the user.

    A MissingExtraError is raised if kafka-python is not installed.
    """
    errors = _client("kafka.errors")
    log = logging.getLogger("kafka")
    cause = _CauseHandler(errors.KafkaTimeoutError, errors.KafkaConnectionError)
    log.addHandler(cause)
    try:
        yield
    except errors.KafkaError as error:
        known = cause.error if isinstance(error, errors.KafkaTimeoutError) else None
        raise _translated(known or error, settings) from None
    finally:
        log.removeHandler(cause)


def _translated(error: Exception, settings: Mapping[str, Any]) -> ConfigError | BrokerError:
    """Translate an error of the client into one that names the setting to check."""
    errors = _client("kafka.errors")
    if isinstance(error, errors.SaslAuthenticationFailedError):
        return ConfigError([rejected(settings, " ".join(map(str, error.args)))])
    if isinstance(error, errors.UnsupportedSaslMechanismError):
        mechanism = settings["sasl_mechanism"]
        return ConfigError([f"kafka.security.mechanism: the brokers do not offer {mechanism}"])
    servers = ", ".join(settings["bootstrap_servers"])
    why = " ".join(map(str, error.args)) or type(error).__name__  # without the error's number
    # A broker that expects another protocol only disconnects.
    password = settings.get("sasl_plain_password")
    accepted = f", and that they accept the password in {password.source}" if password else ""
    hint = f"; check that kafka.security is what the brokers expect{accepted}"
    hint = "" if _REFUSED in why else hint
    return BrokerError(f"no answer from a broker at {servers}: {why}{hint}")
