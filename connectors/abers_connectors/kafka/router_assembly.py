"""Assembly of a router from its configuration."""

from __future__ import annotations

import logging
from contextlib import closing
from typing import TYPE_CHECKING

from abers_connectors.kafka.session import session_timeout
from abers_connectors.runtime.application import kafka_section
from abers_connectors.runtime.batch_buffer import BatchLimits
from abers_connectors.runtime.model_routes import ModelRouting
from abers_connectors.runtime.router import Router
from abers_connectors.runtime.router_start import RouterStart

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import KafkaSection
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.status import Status
    from abers_connectors.runtime.transport import Consumer, Transport

__all__ = ["open_router"]

_log = logging.getLogger(__name__)


def open_router(  # noqa: PLR0913 - the parts of a service
    config: Config,
    application: Application,
    transport: Transport,
    status: Status,
    stack: ExitStack,
    *,
    largest: int,
    closed: Callable[[Consumer], Callable[..., None]],
    require_generation: Callable[[], object],
) -> Router:
    """Open a router; the stack closes it.

    `largest` is the number of bytes of the largest record, and `closed` returns what closes a
    consumer; `require_generation` is that of `assembly.open_worker`.
    """
    kafka = kafka_section(config)
    group = application.router_group
    identity = f"{kafka.application_id}-{kafka.group_instance_id}-router"
    reader = stack.enter_context(closing(transport.reader(group)))
    # Before the producer, which fences: the brokers may refuse a second member of this name.
    consumer = transport.consumer(
        application.sources,
        group,
        identity,
        session_timeout=session_timeout(kafka, group),
        grows=True,
    )
    stack.push(closed(consumer))
    producer = transport.producer(
        identity,
        topics=application.inputs,
        group=group,
        timeout=kafka.transaction_timeout / 1000,
        compression=kafka.compression,
        largest=largest,
    )
    stack.callback(producer.close)
    (routed,) = application.inputs
    return Router(
        application,
        consumer=consumer,
        producer=producer,
        reader=reader,
        start=RouterStart(
            application,
            reader,
            producer,
            start=kafka.starting_offset,
            policy=kafka.on_offset_out_of_range,
            warn=_log.warning,
            require_generation=require_generation,
        ),
        routing=ModelRouting(config, reader.partition_count(routed)),
        limits=batch_limits(kafka),
        stall_timeout=kafka.stall_timeout / 1000,
        status=status,
        largest=largest,
        patience=status.session_timeout + kafka.max_task_idle / 1000,
    )


def batch_limits(kafka: KafkaSection) -> BatchLimits:
    """Return when a batch closes."""
    return BatchLimits(
        kafka.max_records,
        kafka.max_bytes,
        kafka.commit_interval / 1000,
        kafka.max_task_idle / 1000,
    )
