"""Repair of a transaction with an end that some partitions have missed.

Before a transactional id writes again, the coordinator's decision about its last transaction is
repeated in all its partitions.

Kafka (4.3.1, tested) skips a partition that has no leader when the coordinator ends a transaction
there, for example while a killed broker restarts: it treats the partition as deleted. The records
there stay open, and share the end of the producer's next transaction: records of an aborted
transaction would be committed with it, as duplicates. An empty transaction with the same end closes
them before that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka import TopicPartition, errors
from kafka.admin import TransactionState

from abers.exceptions import StateError
from abers_connectors.kafka.client_errors import retried
from abers_connectors.kafka.connection import new_admin
from abers_connectors.kafka.workarounds import add_partitions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["last_transaction_committed", "repeat_transaction_end"]

_COMMITTED = (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
_UNKNOWN = (TransactionState.EMPTY, TransactionState.DEAD)


def last_transaction_committed(
    transactional_id: str, topics: Sequence[str], settings: Mapping[str, Any], seconds: float
) -> bool | None:
    """Return whether the last transaction of a transactional id was or will be committed.

    The result is None without a transaction, or if its end has been repeated already. When this
    returns, each partition of the topics has a leader. Raises a StateError if a partition missed
    the end, and the brokers no longer know what it was.
    """
    with new_admin(settings) as admin:
        admin.wait_for_topics([*topics], int(1000 * seconds))
        try:
            found = retried(lambda: _described(transactional_id, settings), seconds)
        except errors.TransactionalIdNotFoundError:
            return None
        if found.state not in _UNKNOWN:
            return found.state in _COMMITTED
        _require_closed(admin, topics, transactional_id, found.producer_id, seconds)
        return None


def _described(transactional_id: str, settings: Mapping[str, Any]) -> Any:  # noqa: ANN401 - has no types
    """Describe a transaction by a client of its own: a client never forgets a coordinator."""
    with new_admin(settings) as admin:
        return admin.describe_transactions([transactional_id])[transactional_id]


def _require_closed(
    admin: Any,  # noqa: ANN401 - has no types
    topics: Sequence[str],
    transactional_id: str,
    producer: int,
    seconds: float,
) -> None:
    """Raise a StateError if a process died while it repeated the end."""
    partitions = [
        TopicPartition(one["name"], each["partition_index"])
        for one in admin.describe_topics([*topics])
        for each in one["partitions"]
    ]
    try:
        states = retried(lambda: admin.describe_producers(partitions), seconds)
    except errors.AuthorizationError:  # it needs the permission READ, which outputs do not need
        return
    hanging = [
        f"{one.topic}[{one.partition}]@{each.current_transaction_start_offset}"
        for one, state in states.items()
        for each in state.active_producers
        if each.producer_id == producer and each.current_transaction_start_offset >= 0
    ]
    if hanging:
        msg = (
            f"a transaction of {transactional_id} is open at {', '.join(hanging)}, and the "
            "brokers no longer know whether it was committed; check what it wrote, and end it with "
            "kafka-transactions.sh"
        )
        raise StateError(msg)


def repeat_transaction_end(
    producer: Any,  # noqa: ANN401 - has no types
    topics: Sequence[str],
    group: str,
    *,
    committed: bool,
) -> None:
    """End an empty transaction in all partitions of topics, and for the offsets of a group.

    It ends like the last transaction of the client, which must be between two transactions.
    """
    producer.begin_transaction()
    add_partitions(producer, topics)
    producer.send_offsets_to_transaction({}, group)
    if committed:
        producer.commit_transaction()
    else:
        producer.abort_transaction()
