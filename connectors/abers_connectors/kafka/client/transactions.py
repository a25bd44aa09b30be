"""The writer of transactions.

Governing rule: a transaction that failed is aborted before anybody is told, and
then the client is replaced; who was fenced aborts nothing, for nothing is its own.
Nothing is written before the last transaction has ended wherever it wrote (`ending`).
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from kafka import KafkaProducer, OffsetAndMetadata
from kafka import errors as told

from abers_connectors.kafka.client._common import FENCED, to_client, translated
from abers_connectors.kafka.client.ending import end_again, last_committed
from abers_connectors.kafka.client.mending import mended
from abers_connectors.kafka.home import named
from abers_connectors.kafka.transport import Partition, TransactionError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from abers_connectors.kafka.watchdog import Watchdog

__all__ = ["Transactions"]

_NO_LEADER = -1
_FAREWELL = 5  # seconds for what is under way when a producer is closed
_ANSWER = 10  # seconds after which a broker is taken for gone that does not answer


class Transactions:
    """A `transport.Producer`.

    Parameters
    ----------
    identity
        Its transactional id: whoever comes with the same one fences the one before.
    topics, group
        What it writes: records, and the offsets of a group.
    timeout
        Seconds after which the broker aborts a transaction that is left open.
    compression
        Of the records; "none" for none.
    settings, watchdog
        As of `Group`.
    """

    def __init__(  # noqa: PLR0913 - what a writer is
        self,
        identity: str,
        *,
        topics: Sequence[str],
        group: str,
        timeout: float,
        compression: str,
        settings: Mapping[str, Any],
        watchdog: Watchdog,
    ) -> None:
        self._watchdog, self._client = watchdog, settings
        self._identity, self._topics, self._group = identity, topics, group
        self._settings = {
            "transactional_id": identity,
            "transaction_timeout_ms": int(1000 * timeout),
            "compression_type": None if compression == "none" else compression,
            "allow_auto_create_topics": False,
            "batch_size": 1 << 19,
            "linger_ms": 1000,  # a commit sends what is there
            # A transaction that begins before the last is through is told to retry.
            "retry_backoff_ms": 5,
            "request_timeout_ms": 1000 * _ANSWER,
            "metrics_enabled": False,
            **settings,
        }
        self._producer = self._connected()

    def _connected(self) -> Any:  # noqa: ANN401 - has no types
        """Make a client; the broker aborts what one of the same identity left open."""
        with self._watchdog.call("connect"), translated("connecting"):
            committed = last_committed(
                self._identity, self._topics, self._client, self._watchdog.seconds
            )
            producer = mended(KafkaProducer(**self._settings))
            producer.init_transactions()
            if committed is not None:
                end_again(producer, self._topics, self._group, committed=committed)
            self._connections, self._epoch = _connections(producer), _epoch(producer)
        return producer

    def begin(self) -> None:
        """Begin a transaction."""
        with self._watchdog.call("begin"), translated("beginning a transaction"):
            if not self._connections <= _connections(self._producer):
                # A broker may have gone after the last commit was decided, and before it was told.
                end_again(self._producer, self._topics, self._group, committed=True)
            self._connections = _connections(self._producer)
            self._producer.begin_transaction()

    def send(
        self,
        to: Partition,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes]] = (),
        timestamp: int | None = None,
    ) -> Callable[[], int]:
        """Send a record in the open transaction; after its commit the call tells its offset."""
        try:
            future = self._producer.send(to.topic, value, key, list(headers), to.number, timestamp)
        except told.KafkaError:  # a context for each of so many records would take its time
            with self._aborting(f"writing to {named(to)}"):
                raise
        return lambda: cast("int", future.get(timeout=0).offset)

    def commit(self, offsets: Mapping[Partition, int], proof: object) -> None:
        """Commit it with input offsets; a TransactionError if nothing of it happened."""
        next_ones = {to_client(one): OffsetAndMetadata(offset) for one, offset in offsets.items()}
        with self._aborting("committing"):
            with self._watchdog.call("send offsets"):
                self._producer.send_offsets_to_transaction(next_ones, proof)
            with self._watchdog.call("commit"):
                self._producer.commit_transaction()
            if self._began_anew():
                msg = "the brokers had ended the transaction, as after kafka.transaction_timeout"
                raise told.KafkaError(msg)

    def leaderless(self, partitions: Collection[Partition]) -> list[Partition]:
        """Name those of which the brokers said lately that they have no leader; at once.

        The brokers are asked in the background, and what they say is known the next time.
        """
        cluster = self._producer._metadata  # noqa: SLF001 - there is no other way
        for topic in {one.topic for one in partitions}:
            cluster.add_topic(topic)
        cluster.request_update()
        return [
            one for one in partitions if cluster.leader_for_partition(to_client(one)) == _NO_LEADER
        ]

    def close(self) -> None:
        """Close; an open transaction is aborted."""
        with self._watchdog.call("close"), suppress(told.KafkaError):  # nothing more is to be lost
            self._producer.close(timeout=_FAREWELL)

    def _began_anew(self) -> bool:
        """Say whether the client has begun a new epoch by itself, as kafka-python 3.0.12 may.

        It does so where a broker refuses a record, such as of a transaction that has timed out. The
        open transaction is aborted by that, and yet the client says that a commit has succeeded.
        """
        return bool(_epoch(self._producer) != self._epoch)

    @contextmanager
    def _aborting(self, doing: str) -> Iterator[None]:
        try:
            yield
        except FENCED:
            with translated(doing):
                raise
        except told.KafkaError as error:
            # The client would commit the offsets of what is aborted with its next transaction
            # (kafka-python 3.0.12), so it has none.
            if not self._began_anew():
                with self._watchdog.call("abort"), translated("aborting"):
                    self._producer.abort_transaction()
            self.close()
            self._producer = self._connected()
            msg = f"{doing}: {error or type(error).__name__}; the transaction was aborted"
            raise TransactionError(msg) from error


def _connections(producer: Any) -> frozenset[Any]:  # noqa: ANN401 - has no types
    """Give what the client is connected by now; a connection that was lost is not used again."""
    found = producer._sender._client._manager._conns  # noqa: SLF001 - there is no other way
    return frozenset(found.copy().values())


def _epoch(producer: Any) -> Any:  # noqa: ANN401 - has no types
    """Give the id and the epoch with which the client writes."""
    return producer._transaction_manager.producer_id_and_epoch  # noqa: SLF001 - as above
