"""Assembly of the stage that predicts and learns from its configuration."""

from __future__ import annotations

import logging
import time
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, ParamSpec

from abers.stream import make_task
from abers_connectors.extras import extra
from abers_connectors.kafka.changelog_trim import ChangelogTrimmer
from abers_connectors.kafka.routed_trim import RoutedTrimmer
from abers_connectors.kafka.router_assembly import batch_limits
from abers_connectors.kafka.settings import client_settings
from abers_connectors.kafka.topic_watch import TopicWatch
from abers_connectors.runtime.application import kafka_section
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.maintenance import Maintenance
from abers_connectors.runtime.offset_gap import skip_gap
from abers_connectors.runtime.partition_count import (
    partition_count,
    partition_counts,
    require_same_partitions,
)
from abers_connectors.runtime.restore import Restorer
from abers_connectors.runtime.serializer import ALERTS, Serializer
from abers_connectors.runtime.take_over import TakeOver, require_publishing
from abers_connectors.runtime.worker import Worker
from abers_connectors.schemas.output_encoder import registered_encoder
from abers_connectors.sinks.webhook import Webhook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import ExitStack

    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import AlertsSection, KafkaSection
    from abers_connectors.dashboard.stream_pages import ServicePage
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.restore import RestoredTask
    from abers_connectors.runtime.snapshots import SnapshotStore
    from abers_connectors.runtime.status import Status
    from abers_connectors.runtime.task import BatchResult, StreamTask
    from abers_connectors.runtime.transport import Consumer, Producer, Reader, Transport
    from abers_connectors.runtime.watchdog import Watchdog
    from abers_connectors.schemas.output_encoder import Encoder
    from abers_connectors.systemd import Supervisor

__all__ = ["TaskParts", "open_tasks", "watched_topics"]

_MAX_BYTES = 1_000_000  # of a record; clients and brokers reject larger records by default

_log = logging.getLogger(__name__)

P = ParamSpec("P")


class TaskParts(NamedTuple):
    """What is open before the tasks are."""

    config: Config
    application: Application
    transport: Transport
    reader: Reader
    snapshots: SnapshotStore | None
    status: Status
    supervisor: Supervisor


def open_tasks(  # noqa: PLR0913 - the parts of a service
    parts: TaskParts,
    stack: ExitStack,
    *,
    page: ServicePage,
    create: Callable[[int], StreamTask],
    take_over: str | None,
    require_generation: Callable[[], object],
    alongside: Callable[[], float],
    watchdog: Watchdog,
    closed: Callable[[Consumer], Callable[..., None]],
) -> Worker:
    """Open the worker of the tasks; the stack closes it.

    `create` creates the task of a partition without state, and `take_over` is the application that
    this one replaces. `require_generation` is as of `open_worker`, and `alongside`, the other
    stage, as of `Worker`. `closed` returns what closes a consumer.
    """
    from abers_connectors.kafka.predecessor import require_not_taken_over  # noqa: PLC0415 - an extra

    config, application, _, reader, snapshots, status, supervisor = parts
    kafka = kafka_section(config)
    partitions, topics = partition_count(reader, application), _output_topics(kafka)
    encoders = _encoders(config, topics)
    outputs = partition_counts(reader, topics.values())
    consumer, producer = _clients(parts, topics, stack, closed)
    maintenance = Maintenance(
        application,
        snapshots,
        every=config.state.snapshot_every,
        consumer=consumer,
        producer=producer,
        outputs=outputs,
        status=status,
        supervisor=supervisor,
        trim=_trim(config, application, snapshots),
    )
    stack.callback(maintenance.close)
    successor = _successor(application, take_over, kafka, status, stack)
    require: Callable[[StreamTask], None] = partial(require_publishing, application)
    if successor is not None:
        create, require = partial(successor.create, create), successor.require
    restorer = Restorer(
        application,
        reader,
        snapshots,
        create,
        partial(skip_gap, application, reader, kafka.on_offset_out_of_range, _log.warning),
        warn=_log.warning,
    )
    watch = watched_topics(config, application, watchdog, partitions, stack)
    return Worker(
        application,
        consumer=consumer,
        producer=_traced(producer, config, status, topics, stack),
        reader=reader,
        restore=_requiring(require, restorer.restore),
        deserializer=Deserializer(
            config,
            partitions=partitions,
            now=lambda: time.time_ns() // 1_000_000,
            routed=bool(application.sources),
        ),
        serializer=Serializer(
            max_bytes=_MAX_BYTES, publish_from=kafka.publish_from, encoders=encoders
        ),
        topics=topics,
        limits=batch_limits(kafka),
        stop_on_dead_letter=config.output.on_bad_record == "stop",
        stall_timeout=kafka.stall_timeout / 1000,
        status=status,
        require_topics=_each(
            require_generation,
            partial(require_same_partitions, reader, application, partitions),
            partial(require_not_taken_over, kafka.application_id, client_settings(kafka)),
        ),
        on_commit=_each(_alert(config.alerts, status, stack), page.take),
        housekeeping=_each(
            lambda _: watch.require(),
            maintenance,
            page.refresh,
            *_routed_trim(config, application, stack),
        ),
        take_over=successor,
        alongside=alongside,
    )


def _clients(
    parts: TaskParts,
    topics: Mapping[str, str],
    stack: ExitStack,
    closed: Callable[[Consumer], Callable[..., None]],
) -> tuple[Consumer, Producer]:
    """Open the consumer, and then the producer, which fences.

    The brokers may refuse a second member of this name.
    """
    application, kafka = parts.application, kafka_section(parts.config)
    identity = f"{kafka.application_id}-{kafka.group_instance_id}"
    consumer = parts.transport.consumer(
        application.inputs,
        kafka.application_id,
        identity,
        session_timeout=parts.status.session_timeout,
    )
    stack.push(closed(consumer))
    producer = parts.transport.producer(
        identity,
        topics=sorted({*topics.values(), application.changelog}),
        group=kafka.application_id,
        timeout=kafka.transaction_timeout / 1000,
        compression=kafka.compression,
    )
    stack.callback(producer.close)
    return consumer, producer


def watched_topics(
    config: Config,
    application: Application,
    watchdog: Watchdog,
    partitions: int,
    stack: ExitStack,
) -> TopicWatch:
    """Watch the topics until the stack closes; errors say then what was done to a topic."""
    watch = stack.enter_context(closing(TopicWatch(config, application, partitions)))
    stack.enter_context(watch.explaining())
    stack.callback(watchdog.rest)
    return watch


def _successor(
    application: Application,
    take_over: str | None,
    kafka: KafkaSection,
    status: Status,
    stack: ExitStack,
) -> TakeOver | None:
    """Watch the application that is taken over, if there is one."""
    from abers_connectors.kafka.predecessor import WatchedGroup  # noqa: PLC0415 - an extra

    if take_over is None:
        return None
    group = WatchedGroup(application, take_over, kafka.predictions, client_settings(kafka))
    return TakeOver(application, stack.enter_context(closing(group)), status)


def _requiring(
    require: Callable[[StreamTask], None],
    restore: Callable[[int, StreamTask | None, Callable[[], None]], RestoredTask],
) -> Callable[[int, StreamTask | None, Callable[[], None]], RestoredTask]:
    """Return a function that restores a task, and raises if it is not as required."""

    def restored(partition: int, kept: StreamTask | None, tick: Callable[[], None]) -> RestoredTask:
        found = restore(partition, kept, tick)
        require(found.task)
        return found

    return restored


def _each(*calls: Callable[P, object]) -> Callable[P, None]:
    """Return a function that calls some others, one after the other."""

    def called(*args: P.args, **kwargs: P.kwargs) -> None:
        for call in calls:
            call(*args, **kwargs)

    return called


def _alert(
    alerts: AlertsSection, status: Status, stack: ExitStack
) -> Callable[[StreamTask, BatchResult], object]:
    """Return a function that sends committed alarms to the webhook, if there is one."""
    if alerts.webhook is None:
        return lambda *_: None
    webhook = Webhook(alerts.webhook, status.webhook_called)
    stack.callback(webhook.close)

    def send(_: StreamTask, result: BatchResult) -> None:
        for value in result.output_records[ALERTS].values:
            webhook.post(value)

    return send


def _traced(
    producer: Producer,
    config: Config,
    status: Status,
    topics: Mapping[str, str],
    stack: ExitStack,
) -> Producer:
    """Export metrics and traces, if the configuration says where; return a producer that traces.

    A dead letter keeps the trace of its record, so that it can be sent again as it was.
    """
    endpoint = config.telemetry.endpoint
    if endpoint is None:
        return producer
    given = ("telemetry.endpoint", "otel")
    export = extra("abers_connectors.telemetry.export", *given)
    traced = extra("abers_connectors.telemetry.traced_producer", *given)
    tracer = stack.enter_context(export.exporting(endpoint, kafka_section(config), status))
    outputs = {topic for sink, topic in topics.items() if sink != "dead_letters"}
    found: Producer = traced.TracedProducer(producer, tracer, outputs)
    return found


def _trim(
    config: Config, application: Application, snapshots: SnapshotStore | None
) -> Callable[[int], None]:
    """Return a function that trims the changelog, if the configuration allows it."""
    if snapshots is None or not config.state.shared:
        return lambda _: None
    settings = client_settings(kafka_section(config))
    return ChangelogTrimmer(application, snapshots, settings).trim


def _routed_trim(
    config: Config, application: Application, stack: ExitStack
) -> Iterator[RoutedTrimmer]:
    """Yield what trims the routed topic, if there is one."""
    if application.sources:
        yield stack.enter_context(
            closing(RoutedTrimmer(application, client_settings(kafka_section(config))))
        )


def _encoders(config: Config, topics: Mapping[str, str]) -> dict[str, Encoder]:
    """Return the encoders of outputs by sink; their schemas are registered."""
    task = make_task(config.settings())
    kinds = {"predictions": task.prediction, "outcomes": task.outcome}
    return {
        sink: registered_encoder(config, topics[sink], kind)
        for sink, kind in kinds.items()
        if sink in topics
    }


def _output_topics(kafka: KafkaSection) -> dict[str, str]:
    topics = {
        "predictions": kafka.predictions,
        "outcomes": kafka.outcomes,
        "dead_letters": kafka.dead_letters,
        ALERTS: kafka.alerts,
    }
    return {sink: topic for sink, topic in topics.items() if topic is not None}
