"""The transactional producer of librdkafka.

kafka-python connects first, with the same transactional id. It ends the last transaction in every
partition that has missed the end (see `kafka.transaction_repair`), for which librdkafka has no
call. Then librdkafka takes the id. That is repeated after a failed transaction, unless the brokers
refuse a record, and before the first transaction after a connection was lost.

If a transaction can be aborted, it is aborted before the error is raised. A commit with an unclear
outcome is repeated until the coordinator answers, or the watchdog ends the process. The watchdog
also ends the process if the offsets are not accepted before the brokers abort the transaction:
librdkafka (2.16) never answers if the coordinator changes while that request waits.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, Unpack

from confluent_kafka import KafkaException, Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from abers_connectors.kafka.client import TransactionalProducer
from abers_connectors.librdkafka.connection import (
    REFUSED,
    ConnectionWatch,
    error_of,
    translated_error,
    translated_errors,
)
from abers_connectors.process import Limit
from abers_connectors.runtime.transport import (
    LARGEST,
    NO_NOTES,
    RefusedRecordError,
    TransactionError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from abers_connectors.process import Watchdog
    from abers_connectors.runtime.transport import Headers, ProducerOptions, TopicPartition

__all__ = ["LibrdkafkaProducer"]

_NO_LEADER = -1
_TIMEOUT = 5.0  # seconds of a request


class Leaders:
    """Knows which partitions had no leader at the last request."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._admin = AdminClient({**settings, "log_level": 0})  # the producer logs the same
        self._thread: Thread | None = None
        self._missing = frozenset[tuple[str, int]]()

    def missing(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions that had no leader, and ask anew for the next call."""
        found = [one for one in partitions if one in self._missing]
        if self._thread is None or not self._thread.is_alive():
            topics = {one.topic for one in partitions}
            self._thread = Thread(target=self._ask, args=(topics,), name="leaders", daemon=True)
            self._thread.start()
        return found

    def close(self) -> None:
        """Wait for the end of a request."""
        if self._thread is not None:
            self._thread.join()

    def _ask(self, topics: Collection[str]) -> None:
        missing = set[tuple[str, int]]()
        with suppress(KafkaException):  # no broker answers, which the calls of the service report
            for topic in topics:
                found = self._admin.list_topics(topic, _TIMEOUT).topics[topic].partitions
                missing |= {(topic, n) for n, one in found.items() if one.leader == _NO_LEADER}
            self._missing = frozenset(missing)


_REQUEST_TIMEOUT = 10  # seconds after which a broker that does not answer counts as gone


class LibrdkafkaProducer:
    """A `runtime.transport.Producer`; see `runtime.transport.Transport.producer`.

    `settings` are librdkafka's, and `repair_settings` kafka-python's.
    """

    def __init__(
        self,
        transactional_id: str,
        *,
        settings: Mapping[str, Any],
        repair_settings: Mapping[str, Any],
        watchdog: Watchdog,
        **options: Unpack[ProducerOptions],
    ) -> None:
        timeout = options["timeout"]
        self._watchdog, self._limit = watchdog, Limit(timeout, "kafka.transaction_timeout")
        self._repair = partial(
            TransactionalProducer,
            transactional_id,
            settings=repair_settings,
            watchdog=watchdog,
            **options,
        )
        self._settings = {
            **settings,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": int(1000 * timeout),
            "socket.timeout.ms": int(1000 * min(timeout, _REQUEST_TIMEOUT)),
            "compression.type": options["compression"],
            "partitioner": "murmur2_random",
            "message.max.bytes": options.get("largest", LARGEST),
            "batch.size": 1 << 19,
            "linger.ms": 1000,  # a commit sends what is buffered
            "queue.buffering.max.messages": 0,  # the limits of a batch apply
            "statistics.interval.ms": 1000,
        }
        self._leaders = Leaders(settings)
        self._producer, self._watch = self._connect()

    def _connect(self) -> tuple[Producer, ConnectionWatch]:
        """Repair the last transaction, and open a client."""
        self._repair().close()
        watch = ConnectionWatch()
        with translated_errors("connecting"):
            producer = Producer({**self._settings, "stats_cb": watch.take}, logger=watch)
            self._repeated("connect", producer.init_transactions)
        return producer, watch

    def begin(self) -> None:
        """Begin a transaction."""
        self._producer.poll(0)  # statistics and log
        if self._watch.lost:
            # A broker may have failed after it decided the last commit, and before all partitions
            # had it.
            self._replace()
        with self._watchdog.call("begin"), translated_errors("beginning a transaction"):
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
        topic, number = to
        given: Any = [*headers] if headers else None
        try:
            self._producer.produce(
                topic, value, key, number, timestamp=_to_client(timestamp), headers=given
            )
        except KafkaException:  # a context manager for every record would be slow
            with self._aborting(f"writing to {to}"):
                raise

    def send_tracked(self, to: TopicPartition, value: bytes) -> Callable[[], int]:
        """Send a value in the open transaction; the result returns its offset after the commit."""
        offsets: list[int | None] = []

        def delivered(_: object, sent: Any) -> None:  # noqa: ANN401 - the client's
            offsets.append(sent.offset())

        with self._aborting(f"writing to {to}"):
            self._producer.produce(to.topic, value, None, to.partition, on_delivery=delivered)
        return lambda: offsets[0]  # type: ignore[return-value] # the commit has succeeded

    def commit(
        self,
        offsets: Mapping[TopicPartition, int],
        group_metadata: object,
        notes: Mapping[TopicPartition, str] = NO_NOTES,
    ) -> None:
        """Commit the transaction together with input offsets, some of them with a text."""
        client = [
            ClientPartition(*one, offset, notes.get(one, "")) for one, offset in offsets.items()
        ]
        with self._aborting("committing"):
            send_offsets = self._producer.send_offsets_to_transaction
            send = partial(send_offsets, client, group_metadata)
            self._repeated("send offsets", send, self._limit)
            self._repeated("commit", self._producer.commit_transaction)

    def abort(self) -> None:
        """Abort the open transaction."""
        with translated_errors("aborting"):
            try:
                self._repeated("abort", self._producer.abort_transaction)
            except KafkaException as error:
                if error_of(error).name() != "INVALID_TXN_STATE":
                    raise
                # The coordinator does not know the first partition yet: librdkafka requested the
                # end before that (github.com/confluentinc/librdkafka/issues/4849), and cannot be
                # used any more. A new client aborts what is open.
                self._replace()

    def leaderless(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions without a leader, and request metadata for the next call."""
        self._producer.poll(0)  # so that statistics and log do not pile up in an idle client
        return self._leaders.missing(partitions)

    def close(self) -> None:
        """Close the client; the broker aborts an open transaction."""
        self._close_client()
        with self._watchdog.call("close"):
            self._leaders.close()

    def _replace(self) -> None:
        """Replace the client."""
        self._close_client()
        self._producer, self._watch = self._connect()

    def _close_client(self) -> None:
        # Nothing is left to lose, and a client may have been closed before.
        with self._watchdog.call("close"), suppress(KafkaException, RuntimeError):
            self._producer.purge()
            self._producer.close()

    def _repeated(self, name: str, call: Callable[[], object], limit: Limit | None = None) -> None:
        """Repeat a call while the client asks for it; the watchdog ends that."""
        with self._watchdog.call(name, limit):
            while True:
                try:
                    call()
                except KafkaException as error:
                    if not error_of(error).retriable():
                        raise
                else:
                    return

    @contextmanager
    def _aborting(self, doing: str) -> Iterator[None]:
        """Abort the transaction and replace the client if the block fails and that is possible."""
        try:
            yield
        except KafkaException as error:
            cause = error_of(error)
            if cause.fatal() or not cause.txn_requires_abort():
                raise translated_error(cause, doing) from error
            self.abort()
            if cause.name() in REFUSED:
                raise RefusedRecordError(doing, cause.str()) from error
            self._replace()
            msg = f"{doing}: {cause.str()}; the transaction was aborted"
            raise TransactionError(msg) from error


def _to_client(timestamp: int | None) -> int:
    """Return a timestamp for the client, to which 0 means now: so 0 becomes 1."""
    return 0 if timestamp is None else max(timestamp, 1)
