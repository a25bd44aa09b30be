"""What the three have in common, their errors above all.

Governing rule: every error of kafka-python leaves as one of ours: a ConfigError where a
permission is missing, a BrokerError where the process had better end.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from kafka import TopicPartition
from kafka import errors as told

from abers.exceptions import BrokerError
from abers_connectors.kafka.telling import fenced, forbidden, lost
from abers_connectors.kafka.transport import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["FENCED", "FETCH_WAIT", "patiently", "to_client", "translated"]

T = TypeVar("T")

FETCH_WAIT = 100  # ms that a broker holds a fetch: what is resumed waits no longer than this

# After these another owner, or another one of us, has what was ours.
FENCED = (
    told.ProducerFencedError,
    told.InvalidProducerEpochError,
    told.FencedInstanceIdError,
    told.TransactionCoordinatorFencedError,
)


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Say what was being done where the client fails at it."""
    try:
        yield
    except told.OffsetOutOfRangeError as error:
        raise lost({Partition(*one): at for one, at in dict(error.args[0]).items()}) from error
    except FENCED as error:
        raise fenced(doing, type(error).__name__) from error
    except told.AuthorizationError as error:
        raise forbidden(doing, type(error).__name__) from error
    except told.KafkaError as error:
        msg = f"{doing}: {error or type(error).__name__}"
        raise BrokerError(msg) from error


def to_client(partition: Partition) -> TopicPartition:
    """Give a partition as the client names it."""
    return TopicPartition(*partition)


def patiently(ask: Callable[[], T], seconds: float) -> T:
    """Ask again while the brokers make their own topics, which the first question has them do."""
    until = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except told.RetriableError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
