"""Errors of kafka-python, and the errors of abers that replace them.

Every error of the client is raised as one of ours: a ConfigError if a permission is missing, and
otherwise a BrokerError, after which the process should end.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from kafka import errors

from abers.exceptions import BrokerError, ConfigError
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["FENCED", "REFUSED", "fenced_producer", "retried", "translated_errors"]

T = TypeVar("T")

_FENCED_PRODUCER = (
    errors.ProducerFencedError,
    errors.InvalidProducerEpochError,
    errors.TransactionCoordinatorFencedError,
)
REFUSED = (
    errors.InvalidRecordError,
    errors.InvalidTimestampError,
    errors.MessageSizeTooLargeError,
    errors.RecordListTooLargeError,
)
"""Errors of a record that the brokers refuse however often it is sent."""

FENCED = (*_FENCED_PRODUCER, errors.FencedInstanceIdError)
"""Errors after which a producer cannot abort its transaction."""


def fenced_producer(doing: str, name: str) -> str:
    """Return the message that a producer was fenced, by the name of the error."""
    return (
        f"{doing}: another process took the place of this one, or a broker failed while it ended "
        f"a transaction ({name}); start again, and if that repeats look for a second process with "
        "the same kafka.group_instance_id"
    )


@contextmanager
def translated_errors(doing: str) -> Iterator[None]:
    """Translate the errors of the client; `doing` is the phrase for its action, "reading"."""
    try:
        yield
    except errors.OffsetOutOfRangeError as error:
        names = ", ".join(TopicPartition(*one).at(at) for one, at in dict(error.args[0]).items())
        msg = f"{names}: the topic has no such offset; records were deleted before they were read"
        raise BrokerError(msg) from error
    except _FENCED_PRODUCER as error:
        raise BrokerError(fenced_producer(doing, type(error).__name__)) from error
    except errors.FencedInstanceIdError as error:
        msg = (
            f"{doing}: another process took the place of this one ({type(error).__name__}); "
            "no two processes may have the same kafka.group_instance_id"
        )
        raise BrokerError(msg) from error
    except errors.AuthorizationError as error:
        why = f"a permission is missing ({type(error).__name__})"
        raise ConfigError([f"{doing}: {why}; `abers check --connect` says which"]) from error
    except errors.KafkaError as error:
        msg = f"{doing}: {error or type(error).__name__}"
        raise BrokerError(msg) from error


def retried(ask: Callable[[], T], seconds: float) -> T:
    """Retry while the brokers create topics: the first request creates those of the brokers.

    A partition of a new topic has no leader for a moment.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except errors.RetriableError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
