"""The end of a transaction, where the brokers have lost it.

Governing rule: what the coordinator has decided of the last transaction of an
identity is told to all its partitions once more, before the identity writes anew.

Kafka (4.3.1, tried) passes over a partition that has no leader at the moment in which the
coordinator would end a transaction there, such as while a broker that was killed starts again:
it takes the partition for deleted. What was written there stays open, and shares the fate of the
next transaction of its producer: records of an aborted one would be committed with it, and be
there twice. A transaction that writes nothing, and has the same end, closes them before that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka import KafkaAdminClient, TopicPartition
from kafka import errors as told
from kafka.admin import TransactionState

from abers.exceptions import StateError
from abers_connectors.kafka.client._common import patiently

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["end_again", "last_committed"]

_COMMITTED = (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
_UNKNOWN = (TransactionState.EMPTY, TransactionState.DEAD)


def last_committed(
    identity: str, topics: Sequence[str], settings: Mapping[str, Any], seconds: float
) -> bool | None:
    """Say how the last transaction of an identity ended, or will end when it comes back.

    Parameters
    ----------
    identity
        The transactional id.
    topics
        Where it writes; each partition has a leader when this returns.
    settings
        Of the client.
    seconds
        For which a leader is waited for.

    Returns
    -------
    bool or None
        Whether it was committed; None if there is none, or it has been ended again already.

    Raises
    ------
    StateError
        If the end of one was lost, and what it was is forgotten.
    """
    with KafkaAdminClient(**settings) as admin:
        admin.wait_for_topics([*topics], int(1000 * seconds))
        try:
            found = patiently(lambda: admin.describe_transactions([identity]), seconds)[identity]
        except told.TransactionalIdNotFoundError:
            return None
        if found.state not in _UNKNOWN:
            return found.state in _COMMITTED
        _require_closed(admin, topics, identity, found.producer_id)
        return None


def _require_closed(
    admin: Any,  # noqa: ANN401 - has no types
    topics: Sequence[str],
    identity: str,
    producer: int,
) -> None:
    """Refuse to go on where a process died between its beginning and ending again."""
    partitions = [
        TopicPartition(one["name"], each["partition_index"])
        for one in admin.describe_topics([*topics])
        for each in one["partitions"]
    ]
    try:
        states = admin.describe_producers(partitions)
    except told.AuthorizationError:  # it takes the right to read, which we need of no output
        return
    hanging = [
        f"{one.topic}[{one.partition}]@{each.current_transaction_start_offset}"
        for one, state in states.items()
        for each in state.active_producers
        if each.producer_id == producer and each.current_transaction_start_offset >= 0
    ]
    if hanging:
        msg = (
            f"a transaction of {identity} is open at {', '.join(hanging)}, and the brokers have "
            "forgotten whether it was committed; see what it wrote, and end it with "
            "kafka-transactions.sh"
        )
        raise StateError(msg)


def end_again(
    producer: Any,  # noqa: ANN401 - has no types
    topics: Sequence[str],
    group: str,
    *,
    committed: bool,
) -> None:
    """End a transaction that writes nothing, in all partitions and for the offsets of a group.

    Parameters
    ----------
    producer
        A client that is between two transactions.
    topics, group
        Where it writes.
    committed
        How the last transaction ended.
    """
    producer.begin_transaction()
    _add(producer, topics)
    producer.send_offsets_to_transaction({}, group)
    if committed:
        producer.commit_transaction()
    else:
        producer.abort_transaction()


def _add(producer: Any, topics: Sequence[str]) -> None:  # noqa: ANN401 - has no types
    """Have the partitions in the transaction without a record; the client has no call for that."""
    manager = producer._transaction_manager  # noqa: SLF001 - there is no other way
    for topic in topics:
        for number in producer.partitions_for(topic):
            manager.maybe_add_partition_to_transaction(TopicPartition(topic, number))
    with manager._lock:  # noqa: SLF001
        request = manager._add_partitions_to_transaction_handler()  # noqa: SLF001
        manager._enqueue_request(request)  # noqa: SLF001
    producer._sender.wakeup()  # noqa: SLF001
    request.result.wait()
