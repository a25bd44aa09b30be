"""The command `abers run` over Kafka.

Governing rule: from the moment in which the configuration is known to be that of a service, all
that is said stands in its log; a signal finishes the batch at hand.
"""

from __future__ import annotations

import logging
import signal
import sys
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from abers_connectors.checking import refuse_hindered
from abers_connectors.exits import logged
from abers_connectors.extras import extra
from abers_connectors.kafka.serving import home_of, opened
from abers_connectors.kafka.topics import section
from abers_connectors.logs import for_people, logging_to
from abers_connectors.notify import Supervisor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.config import Config
    from abers_connectors.kafka.service import Service

__all__ = ["serve"]

_log = logging.getLogger(__name__)


def serve(
    config: Config, name: str, *, create_topics: bool = False, seed: str | None = None
) -> None:
    """Serve until told to stop by SIGTERM or SIGINT.

    Where the log is JSON, an error that ends it is the last line of the log.

    Parameters
    ----------
    config
        With a section [kafka].
    name
        Of its file, for messages.
    create_topics
        Whether to create the topics that are missing, once nothing else hinders the service.
    seed
        Snapshots that a replay left, which an application without state starts from.

    Raises
    ------
    ConfigError
        If the configuration, or a topic, is not as it must be.
    StateError
        If state and offsets do not fit together, or records are lost.
    BrokerError
        If the broker, or the place in its group, is lost.
    DeadLettersError
        If there are too many.
    """
    kafka = section(config)
    with (
        logging_to(sys.stderr, app=kafka.app),
        nullcontext() if for_people(sys.stderr) else logged(_log),
        _stoppable() as stop,
    ):
        refuse_hindered(config, name)
        extra("kafka", "a section [kafka]", "kafka")
        supervisor = Supervisor()
        with opened(
            config, home_of(config), seed, supervisor, create_topics=create_topics
        ) as service:
            stop.service = service
            service.run()
            supervisor.stopping()
        _log.info("stopped: what was read is committed")


class _Stop:
    """Lets a signal finish the batch at hand; before there is a service nothing is at hand."""

    service: Service | None = None

    def __call__(self, *_: object) -> None:
        if self.service is None:
            raise SystemExit(0)
        self.service.stop()


@contextmanager
def _stoppable() -> Iterator[_Stop]:
    stop = _Stop()
    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
