"""Workers in the process of the test, turned by hand, so that what comes between is known."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from abers_connectors.kafka.client import Group, Log, Transactions
from abers_connectors.kafka.decoding import Decoder
from abers_connectors.kafka.gathering import Limits
from abers_connectors.kafka.restoring import Restorer
from abers_connectors.kafka.service import Service
from abers_connectors.kafka.serving import home_of
from abers_connectors.kafka.starting import Beginning
from abers_connectors.kafka.status import Status
from abers_connectors.kafka.watchdog import Watchdog
from abers_connectors.kafka.wording import Wording
from abers_connectors.running import Tolerance

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.kafka.chaos.application import Application

    from abers_connectors.kafka.restoring import Restored
    from abers_connectors.kafka.shard import Shard

__all__ = ["PATIENT", "Member"]

PATIENT = {"watchdog": "120s", "transaction_timeout": "60s"}
"""Of what is not to end by itself or lose its transaction, however slow the machine is."""


class Member(ExitStack):
    """A worker of an application, without snapshots.

    Parameters
    ----------
    application
        Whose.
    instance
        Which seat it takes.
    kafka
        More of its section [kafka].

    Attributes
    ----------
    log, group, producer, service
        Its parts.
    before_restore
        Called when a shard is to be restored, with what a restore calls now and then.
    """

    def __init__(self, application: Application, instance: str, **kafka: Any) -> None:  # noqa: ANN401
        """Connect."""
        super().__init__()
        config = application.config(instance, **{**PATIENT, **kafka})
        home, section = home_of(config), config.kafka
        assert section is not None
        watchdog = Watchdog(section.watchdog / 1000, print)
        self.callback(watchdog.close)
        common: dict[str, Any] = {"settings": application.broker.client, "watchdog": watchdog}
        self.log = log = Log(section.app, **common)
        self.callback(log.close)
        name = f"{section.app}-{instance}"
        self.producer = Transactions(
            name,
            topics=sorted({*application.topics.values()} - {*home.inputs}),
            group=section.app,
            timeout=section.transaction_timeout / 1000,
            compression="lz4",
            **common,
        )
        self.callback(self.producer.close)
        self.group = Group(home.inputs, section.app, name, session=120, **common)
        self.callback(self.group.close)
        begin = Beginning(home, log, section.start).shard
        self._inputs = [one for n in range(application.partitions) for one in home.partitions(n)]
        self._restorer = Restorer(home, log, None, begin, lambda _: False, say=print)
        self.before_restore: Callable[[Callable[[], None]], None] = lambda _: None
        topics = application.topics
        self.service = Service(
            home,
            consumer=self.group,
            producer=self.producer,
            reader=log,
            restore=self._restore,
            decoder=Decoder(config, partitions=application.partitions),
            wording=Wording(max_bytes=1_000_000),
            topics={key: topics[key] for key in ("predictions", "outcomes", "dead_letters")},
            limits=Limits(section.max_records, section.max_bytes, 0.01, 0.05),
            tolerance=Tolerance(),
            seat=60.0,
            status=Status(60.0),
        )

    def turn_until(self, done: Callable[[], bool], within: float = 180) -> None:
        """Take turns until something is so."""
        deadline = time.monotonic() + within
        while not done():
            assert time.monotonic() < deadline
            self.service.turn()

    def owns(self) -> bool:
        """Tell whether anything is assigned to it, by all that it has heard."""
        return bool(self.group.membership().assigned)

    def at_end(self) -> bool:
        """Tell whether all that is in the inputs is committed."""
        return all(self.log.committed(one) == self.log.bounds(one).end for one in self._inputs)

    def _restore(self, number: int, kept: Shard | None, tick: Callable[[], None]) -> Restored:
        self.before_restore(tick)
        return self._restorer.restore(number, kept, tick)
