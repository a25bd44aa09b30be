"""Transactional producer.

A transaction that failed is aborted before the error is raised, and the client is replaced. A
fenced producer does not abort. Nothing is written before the last transaction has ended in every
partition that it wrote to (see `transaction_repair`).
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from kafka import OffsetAndMetadata, errors

from abers_connectors.kafka import workarounds
from abers_connectors.kafka.client_errors import FENCED, REFUSED, translated_errors
from abers_connectors.kafka.connection import headers_to_client, new_producer, to_client
from abers_connectors.kafka.transaction_repair import (
    last_transaction_committed,
    repeat_transaction_end,
)
from abers_connectors.runtime.transport import (
    LARGEST,
    NO_NOTES,
    RefusedRecordError,
    TopicPartition,
    TransactionError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from abers_connectors.runtime.transport import Headers
    from abers_connectors.runtime.watchdog import Watchdog

__all__ = ["TransactionalProducer"]

_NO_LEADER = -1
_CLOSE_TIMEOUT = 5  # seconds for pending requests when a producer is closed
_REQUEST_TIMEOUT = 10  # seconds after which a broker that does not answer counts as gone


class TransactionalProducer:
    """A `runtime.transport.Producer`; see `runtime.transport.Transport.producer`."""

    def __init__(  # noqa: PLR0913 - the identity of a producer
        self,
        transactional_id: str,
        *,
        topics: Sequence[str],
        group: str,
        timeout: float,
        compression: str,
        largest: int = LARGEST,
        settings: Mapping[str, Any],
        watchdog: Watchdog,
    ) -> None:
        self._watchdog, self._settings = watchdog, settings
        self._transactional_id, self._topics, self._group = transactional_id, topics, group
        self._open = partial(
            new_producer,
            settings,
            compression,
            transactional_id=transactional_id,
            transaction_timeout_ms=int(1000 * timeout),
            batch_size=1 << 19,
            linger_ms=1000,  # a commit sends what is buffered
            retry_backoff_ms=5,  # a transaction is refused until the end of the last
            request_timeout_ms=1000 * _REQUEST_TIMEOUT,
            max_request_size=largest,
        )
        self._producer = self._connect()

    def _connect(self) -> Any:  # noqa: ANN401 - has no types
        """Open a client; the broker aborts an open transaction of the same transactional id."""
        with self._watchdog.call("connect"), translated_errors("connecting"):
            committed = last_transaction_committed(
                self._transactional_id, self._topics, self._settings, self._watchdog.seconds
            )
            producer = self._open()
            workarounds.patch_producer(producer)
            producer.init_transactions()
            if committed is not None:
                repeat_transaction_end(producer, self._topics, self._group, committed=committed)
            self._connections = workarounds.connections(producer)
            self._epoch = workarounds.producer_epoch(producer)
        return producer

    def begin(self) -> None:
        """Begin a transaction."""
        with self._watchdog.call("begin"), translated_errors("beginning a transaction"):
            if not self._connections <= workarounds.connections(self._producer):
                # A broker may have failed after it decided the last commit, and before all
                # partitions had it.
                repeat_transaction_end(self._producer, self._topics, self._group, committed=True)
            self._connections = workarounds.connections(self._producer)
            self._producer.begin_transaction()

    def send(
        self,
        to: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        timestamp: int | None = None,
    ) -> None:
        """Send a record in the open transaction."""
        self._send(to, key, value, headers_to_client(headers), timestamp)

    def send_tracked(self, to: TopicPartition, value: bytes) -> Callable[[], int]:
        """Send a value in the open transaction; the result returns its offset after the commit."""
        future = self._send(to, None, value, [], None)
        return lambda: cast("int", future.get(timeout=0).offset)

    def _send(
        self,
        to: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes]],
        timestamp: int | None,
    ) -> Any:  # noqa: ANN401 - has no types
        if key is None and value is None:  # which this client refuses to write
            key = b""
        try:
            return self._producer.send(to.topic, value, key, headers, to.partition, timestamp)
        except errors.KafkaError:  # a context manager for every record would be slow
            with self._aborting(f"writing to {to}"):
                raise

    def commit(
        self,
        offsets: Mapping[TopicPartition, int],
        group_metadata: object,
        notes: Mapping[TopicPartition, str] = NO_NOTES,
    ) -> None:
        """Commit the transaction together with input offsets, some of them with a text."""
        client = {
            to_client(one): OffsetAndMetadata(offset, notes.get(one, ""))
            for one, offset in offsets.items()
        }
        with self._aborting("committing"):
            with self._watchdog.call("send offsets"):
                self._producer.send_offsets_to_transaction(client, group_metadata)
            with self._watchdog.call("commit"):
                self._producer.commit_transaction()
            if self._epoch_changed():
                msg = "the brokers had ended the transaction, as after kafka.transaction_timeout"
                raise errors.KafkaError(msg)

    def abort(self) -> None:
        """Abort the open transaction."""
        with self._watchdog.call("abort"), translated_errors("aborting"):
            self._producer.abort_transaction()

    def leaderless(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions without a leader, and request metadata for the next call."""
        cluster = workarounds.cluster_metadata(self._producer)
        for topic in {one.topic for one in partitions}:
            cluster.add_topic(topic)
        cluster.request_update()
        return [
            one for one in partitions if cluster.leader_for_partition(to_client(one)) == _NO_LEADER
        ]

    def close(self) -> None:
        """Close the client; the broker aborts an open transaction."""
        with self._watchdog.call("close"), suppress(errors.KafkaError):  # nothing is left to lose
            self._producer.close(timeout=_CLOSE_TIMEOUT)

    def _epoch_changed(self) -> bool:
        """Return whether the client silently began a new epoch, as kafka-python 3.0.12 may.

        It does so if a broker rejects a record, such as of a transaction that has timed out. That
        aborts the open transaction, and yet the client says that a commit has succeeded.
        """
        return bool(workarounds.producer_epoch(self._producer) != self._epoch)

    @contextmanager
    def _aborting(self, doing: str) -> Iterator[None]:
        """Abort the transaction and replace the client if the block fails, unless it is fenced."""
        try:
            yield
        except FENCED:
            with translated_errors(doing):
                raise
        except errors.KafkaError as error:
            # kafka-python 3.0.12 would commit the offsets of the aborted transaction with its next
            # one, so this client is replaced.
            if not self._epoch_changed():
                self.abort()
            if isinstance(error, REFUSED):
                raise RefusedRecordError(doing, error) from error
            self.close()
            self._producer = self._connect()
            msg = f"{doing}: {error or type(error).__name__}; the transaction was aborted"
            raise TransactionError(msg) from error
