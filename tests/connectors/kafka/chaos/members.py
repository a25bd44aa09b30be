"""Workers in the process of the test, which calls each of their turns."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tests.connectors.kafka.brokers import PATIENCE

from abers_connectors.process import Watchdog
from abers_connectors.runtime.application import Application as ServiceApplication
from abers_connectors.runtime.batches import BatchLimits
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.restore import InitialState, Restorer
from abers_connectors.runtime.serializer import Serializer
from abers_connectors.runtime.status import Status
from abers_connectors.runtime.transport import open_transport
from abers_connectors.runtime.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.connectors.kafka.chaos.application import Application

    from abers_connectors.runtime.restore import RestoredTask
    from abers_connectors.runtime.task import StreamTask
    from abers_connectors.runtime.transport import TopicPartition

__all__ = ["PATIENT", "Member"]

PATIENT = {"stall_timeout": "120s", "transaction_timeout": "60s", "session_timeout": "60s"}
"""Of what is not to end by itself, or lose transaction or seat, however slow the machine is."""


class Member(ExitStack):
    """A worker of an application, without snapshots.

    Parameters
    ----------
    application
        The application.
    instance
        Its group instance id.
    kafka
        Further keys of its section [kafka].

    Attributes
    ----------
    log, group, producer, service
        Its parts.
    before_restore
        Called before a task is restored, with the function that a restore calls now and then.
    """

    def __init__(self, application: Application, instance: str, **kafka: Any) -> None:  # noqa: ANN401
        """Connect."""
        super().__init__()
        config = application.config(instance, **{**PATIENT, **kafka})
        home, section = ServiceApplication.of(config), config.kafka
        assert section is not None
        watchdog = Watchdog(section.stall_timeout / 1000)
        self.callback(watchdog.close)
        transport = open_transport(section, watchdog)
        self.log = log = transport.reader(section.application_id)
        self.callback(log.close)
        name = f"{section.application_id}-{instance}"
        self.producer: Any = transport.producer(
            name,
            topics=sorted({*application.topics.values()} - {*home.inputs}),
            group=section.application_id,
            timeout=section.transaction_timeout / 1000,
            compression="lz4",
        )
        self.callback(self.producer.close)
        self.group = transport.consumer(
            home.inputs, section.application_id, name, session_timeout=120
        )
        self.callback(self.group.close)
        begin = InitialState(home, log, section.starting_offset).create
        self._inputs = [
            one for n in range(application.partitions) for one in home.input_partitions(n)
        ]
        self._restorer = Restorer(home, log, None, begin, lambda _: False, warn=print)
        self.before_restore: Callable[[Callable[[], None]], None] = lambda _: None
        topics = application.topics
        self.service = Worker(
            home,
            consumer=self.group,
            producer=self.producer,
            reader=log,
            restore=self._restore,
            deserializer=Deserializer(config, partitions=application.partitions),
            serializer=Serializer(max_bytes=1_000_000),
            topics={key: topics[key] for key in ("predictions", "outcomes", "dead_letters")},
            limits=BatchLimits(section.max_records, section.max_bytes, 0.01, 0.05),
            stop_on_dead_letter=False,
            stall_timeout=60.0,
            status=Status(60.0),
        )

    def turn_until(self, done: Callable[[], bool], within: float = PATIENCE) -> None:
        """Take turns until something is so."""
        deadline = time.monotonic() + within
        while not done():
            assert time.monotonic() < deadline
            self.service.turn()

    def owns(self) -> bool:
        """Return whether any partition is assigned, as of the last poll."""
        return bool(self.group.membership().assigned)

    def at_end(self, inputs: Iterable[TopicPartition] = ()) -> bool:
        """Return whether all records of some inputs, or of all, are committed."""
        return all(
            self.log.committed(one) == self.log.offset_range(one).end
            for one in inputs or self._inputs
        )

    def _restore(
        self, number: int, kept: StreamTask | None, tick: Callable[[], None]
    ) -> RestoredTask:
        self.before_restore(tick)
        return self._restorer.restore(number, kept, tick)
