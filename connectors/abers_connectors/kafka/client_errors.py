"""Errors of kafka-python, and what its clients lack: tokens, and leaving a group.

Every error of the client is raised as one of ours: a ConfigError if a permission is missing, and
otherwise a BrokerError, after which the process should end.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from kafka import errors
from kafka.admin import MemberToRemove
from kafka.errors import KafkaConnectionError
from kafka.net.sasl.oauth import AbstractTokenProvider

from abers.exceptions import BrokerError, ConfigError
from abers_connectors.kafka.connection import new_admin
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from abers_connectors.process import Watchdog
    from abers_connectors.tokens import TokenProvider

__all__ = [
    "FENCED",
    "REFUSED",
    "TokenAdapter",
    "fenced_consumer",
    "fenced_producer",
    "remove_member",
    "retried",
    "translated_errors",
]

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


def fenced_consumer(doing: str, name: str) -> str:
    """Return the message that a consumer was fenced, by the name of the error."""
    return (
        f"{doing}: another process took the place of this one, or it joined its group again when "
        f"the coordinator had failed ({name}); start again, and if that repeats look for a second "
        "process with the same kafka.group_instance_id"
    )


@contextmanager
def translated_errors(doing: str) -> Iterator[None]:
    """Translate the errors of the client; `doing` names its action, such as "reading"."""
    try:
        yield
    except errors.OffsetOutOfRangeError as error:
        names = ", ".join(TopicPartition(*one).at(at) for one, at in dict(error.args[0]).items())
        msg = f"{names}: the topic has no such offset; records were deleted before they were read"
        raise BrokerError(msg) from error
    except _FENCED_PRODUCER as error:
        raise BrokerError(fenced_producer(doing, type(error).__name__)) from error
    except errors.FencedInstanceIdError as error:
        raise BrokerError(fenced_consumer(doing, type(error).__name__)) from error
    except errors.AuthorizationError as error:
        why = f"a permission is missing ({type(error).__name__})"
        raise ConfigError([f"{doing}: {why}; `abers check --connect` says which"]) from error
    except errors.KafkaError as error:
        msg = f"{doing}: {error or type(error).__name__}"
        raise BrokerError(msg) from error


def retried(ask: Callable[[], T], seconds: float) -> T:
    """Retry while the brokers create topics, as they create their own at the first request.

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


def remove_member(
    group: str, instance: str, *, settings: Mapping[str, Any], watchdog: Watchdog
) -> None:
    """Remove a member, so that its partitions are assigned to others at once."""
    with watchdog.call("leave"), translated_errors("leaving the group"):
        member = MemberToRemove(group_instance_id=instance)
        with new_admin(settings) as admin:
            admin.remove_group_members(group, [member])


class TokenAdapter(AbstractTokenProvider):  # type: ignore[misc] # has no types
    """The tokens of a provider; without a token the client treats the connection as lost."""

    def __init__(self, provider: TokenProvider, extensions: Mapping[str, str]) -> None:
        super().__init__()
        self.provider, self._extensions = provider, dict(extensions)

    def token(self) -> str:
        """Return a valid token."""
        try:
            return self.provider.token().value.reveal()
        except (BrokerError, ConfigError) as error:
            raise KafkaConnectionError(str(error)) from error

    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions."""
        return self._extensions
