"""Errors of librdkafka, and the errors of abers that replace them.

A missing permission is a ConfigError. Everything else is a BrokerError, after which the process
should end: what the client cannot mend by itself, a new process can.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from abers.exceptions import BrokerError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["TRANSIENT", "error_of", "translated_error", "translated_errors"]

# Another process has this process's name in the group, or its transactional id.
_FENCED = {
    KafkaError._FENCED,  # noqa: SLF001 - the client's names of its own errors begin so
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
}
_FORBIDDEN = {
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}

TRANSIENT = {
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._MAX_POLL_EXCEEDED,  # noqa: SLF001 - followed by the loss of the assignment
    KafkaError._RESOLVE,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}
"""Errors of a consumer that it mends by itself."""


def error_of(raised: KafkaException) -> KafkaError:
    """Return the error in an exception of the client."""
    error: KafkaError = raised.args[0]
    return error


def translated_error(error: KafkaError, doing: str) -> BrokerError | ConfigError:
    """Translate an error of the client; `doing` is the phrase for its action, "reading"."""
    # A consumer that was fenced tells so only in the text of its error.
    if error.code() in _FENCED or (error.code() == KafkaError._FATAL and "fenced" in error.str()):  # noqa: SLF001
        msg = (
            f"{doing}: another process took the place of this one ({error.name()}); "
            "no two processes may have the same kafka.group_instance_id"
        )
        return BrokerError(msg)
    if error.code() in _FORBIDDEN:
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
