"""`abers run` over Kafka.

Once the configuration is read, every message is a log line. A signal ends the service after the
current batch.
"""

from __future__ import annotations

import logging
import signal
import sys
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from abers.exceptions import ConfigError
from abers_connectors.errors import allow_time, logged
from abers_connectors.extras import extra
from abers_connectors.kafka.assembly import open_worker
from abers_connectors.kafka.generations import generation_in_use, require_generation
from abers_connectors.logs import for_people, logging_to
from abers_connectors.preflight import require_ready
from abers_connectors.process import Supervisor, return_freed_memory
from abers_connectors.runtime.application import kafka_section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import KafkaSection
    from abers_connectors.runtime.router import Router
    from abers_connectors.runtime.status import Stage
    from abers_connectors.runtime.worker import Worker

__all__ = ["run_service"]

_log = logging.getLogger(__name__)

_SECONDS = 25.0  # to end the current batch; a supervisor kills after 30


def run_service(  # noqa: PLR0913 - the flags of the command
    config: Config,
    name: str,
    *,
    create_topics: bool = False,
    initial_state: str | None = None,
    take_over: str | None = None,
    stage: Stage | None = None,
) -> None:
    """Serve a configuration with a section [kafka], by its file name, until SIGTERM or SIGINT.

    If the log is JSON, an error that ends the service is its last line. Missing topics are created
    only if nothing else prevents a start. The initial state is the URL of snapshots of a replay,
    from which an application without state starts. `take_over` is the id of an application that
    this application is to replace. The stage is the only one to run.

    Raises
    ------
    ConfigError
        If the configuration or a topic is unusable.
    StateError
        If state and offsets disagree, or records are lost.
    BrokerError
        If the connection to the broker, or the membership in the group, is lost.
    DeadLettersError
        If there are too many dead letters.
    """
    return_freed_memory()
    kafka = kafka_section(config)
    with (
        logging_to(sys.stderr, app=kafka.application_id),
        nullcontext() if for_people(sys.stderr) else logged(_log),
        _stoppable() as stop,
    ):
        if problems := [*_flag_problems(kafka, stage, initial_state, take_over)]:
            raise ConfigError(problems)
        require_ready(config, name)
        extra("kafka", "a section [kafka]", "kafka")
        supervisor = Supervisor()
        in_use = generation_in_use(config)
        with open_worker(
            in_use.config,
            in_use.application,
            initial_state,
            supervisor,
            create_topics=create_topics,
            take_over=take_over,
            stage=stage,
            require_generation=partial(require_generation, config, in_use.number),
        ) as worker:
            stop.started(worker)
            worker.run()
            supervisor.stopping()
        _log.info("stopped: everything read is committed")


class _StopSignal:
    """Stop the service after its current batch, or exit if it has not started.

    A client may catch the exit and go on, so the service also stops as soon as it starts.
    """

    worker: Worker | Router | None = None
    asked = False

    def __call__(self, *_: object) -> None:
        self.asked = True
        if self.worker is None:
            raise SystemExit(0)
        self.worker.stop()

    def started(self, worker: Worker | Router) -> None:
        self.worker = worker
        if self.asked:
            worker.stop()


def _flag_problems(
    kafka: KafkaSection, stage: Stage | None, initial_state: str | None, take_over: str | None
) -> Iterator[str]:
    """Yield why flags do not fit the configuration."""
    if take_over == kafka.application_id:
        why = f"{take_over} cannot take over from itself"
        yield f"--take-over: {why}; give this one another kafka.application_id"
    if stage is not None and kafka.route_by is None:
        yield f"--stage {stage}: needs kafka.route_by, which is not set"
    if kafka.route_by is None:
        return
    if initial_state is not None:
        yield (
            "--initial-state: a saved state is by the partitions of the inputs, and kafka.route_by "
            "has others; leave one of them out"
        )
    if take_over is not None:
        yield (
            "--take-over: it stops at offsets of the inputs, and with kafka.route_by tasks read "
            "another topic; leave one of them out"
        )


@contextmanager
def _stoppable() -> Iterator[_StopSignal]:
    stop = _StopSignal()
    allow_time(_SECONDS, _log.critical)
    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
