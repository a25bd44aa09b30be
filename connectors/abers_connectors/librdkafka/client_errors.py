"""Errors of librdkafka, and the errors of abers that replace them.

A missing permission is a ConfigError. Everything else is a BrokerError, after which the process
should end: a new process may recover where the client cannot.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from abers.exceptions import BrokerError, ConfigError
from abers_connectors.kafka.client_errors import fenced_producer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["REFUSED", "TRANSIENT", "error_of", "translated_error", "translated_errors"]

# Another process has this process's transactional id. Or the coordinator failed while it ended a
# transaction: a client repeats that request, and brokers that raised the epoch refuse it.
_FENCED_PRODUCER = {"_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"}
_FORBIDDEN = {
    "CLUSTER_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "TOPIC_AUTHORIZATION_FAILED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
}

# Of a fatal error of a consumer the text alone says which it is.
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
    """Translate an error of the client; `doing` is the phrase for its action, "reading"."""
    if error.name() in _FENCED_PRODUCER:
        return BrokerError(fenced_producer(doing, error.name()))
    # The error of a consumer that was fenced says so only in its text.
    fenced = error.name() == "_FATAL" and "fenced" in error.str()
    if fenced or error.name() == "FENCED_INSTANCE_ID":
        msg = (
            f"{doing}: another process took the place of this one ({error.name()}); "
            "no two processes may have the same kafka.group_instance_id"
        )
        return BrokerError(msg)
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
