"""Assembly of a router from its configuration."""

from __future__ import annotations

import logging
from contextlib import closing
from typing import TYPE_CHECKING

from abers_connectors.kafka.session import session_timeout
from abers_connectors.runtime.application import kafka_section
from abers_connectors.runtime.batch_buffer import BatchLimits
from abers_connectors.runtime.id_routes import IdRouting
from abers_connectors.runtime.label_keys import LabelKeys
from abers_connectors.runtime.label_recovery import LabelRecovery, LabelSnapshots
from abers_connectors.runtime.label_routes import RoutingLimits
from abers_connectors.runtime.model_routes import ModelRouting
from abers_connectors.runtime.router import Router
from abers_connectors.runtime.router_start import RouterStart

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import KafkaSection
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.model_routes import Routing
    from abers_connectors.runtime.snapshots import SnapshotStore
    from abers_connectors.runtime.status import Status
    from abers_connectors.runtime.transport import Consumer, Reader, Transport

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
    snapshots: SnapshotStore | None,
    closed: Callable[[Consumer], Callable[..., None]],
    require_generation: Callable[[], object],
) -> Router:
    """Open a router; the stack closes it.

    `largest` is the number of bytes of the largest record, `snapshots` are those of an index of
    ids, and `closed` returns what closes a consumer. `require_generation` is that of
    `assembly.open_worker`.
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
        grows=not application.finds_models,
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
        routing=_routing(config, application, reader, snapshots, status=status, stack=stack),
        limits=batch_limits(kafka),
        stall_timeout=kafka.stall_timeout / 1000,
        status=status,
        largest=largest,
        patience=status.session_timeout + kafka.max_task_idle / 1000,
    )


def _routing(  # noqa: PLR0913 - the parts of a service
    config: Config,
    application: Application,
    reader: Reader,
    snapshots: SnapshotStore | None,
    *,
    status: Status,
    stack: ExitStack,
) -> Routing:
    """Return what finds the partitions of records: by their models, or by an index of ids."""
    (routed,) = application.inputs
    partitions = reader.partition_count(routed)
    if not application.finds_models:
        return ModelRouting(config, partitions)
    limits = RoutingLimits.of(application.settings, partitions)
    keys, saves = LabelKeys(config), None
    if snapshots is not None:
        saves = LabelSnapshots(application, snapshots, config.state.snapshot_every)
        stack.callback(saves.close)
    return IdRouting(
        application,
        partitions,
        keys=keys,
        recovery=LabelRecovery(
            application, reader, snapshots, limits=limits, keys=keys, tick=status.progressed
        ),
        snapshots=saves,
        hint=status.hint,
    )


def batch_limits(kafka: KafkaSection) -> BatchLimits:
    """Return when a batch closes."""
    return BatchLimits(
        kafka.max_records,
        kafka.max_bytes,
        kafka.commit_interval / 1000,
        kafka.max_task_idle / 1000,
    )
