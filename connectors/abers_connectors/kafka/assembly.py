"""Assembly of a service from its configuration.

Everything that is opened here is closed here. A process that ends stays a member of its group
unless the configuration says otherwise, so that a restart moves no partition.
"""

from __future__ import annotations

import logging
import math
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, ParamSpec

from abers.exceptions import BrokerError
from abers.stream import make_task
from abers_connectors.dashboard.server import ServicePage
from abers_connectors.extras import extra
from abers_connectors.kafka.connection import client_settings, session_timeout
from abers_connectors.kafka.topic_checks import create_topics_if, require_durable
from abers_connectors.kafka.topic_watch import ChangelogTrimmer, RoutedTrimmer, TopicWatch
from abers_connectors.process import Watchdog
from abers_connectors.runtime.application import kafka_section
from abers_connectors.runtime.batches import BatchLimits
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.id_routes import IdRouting, LabelKeys, LabelRecovery, LabelSnapshots
from abers_connectors.runtime.label_routes import RoutingLimits
from abers_connectors.runtime.maintenance import Maintenance
from abers_connectors.runtime.model_routes import ModelRouting
from abers_connectors.runtime.partition_count import (
    partition_count,
    partition_counts,
    require_same_partitions,
    skip_gap,
)
from abers_connectors.runtime.restore import InitialState, Restorer
from abers_connectors.runtime.router import Router, RouterStart
from abers_connectors.runtime.serializer import ALERTS, Serializer
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.runtime.status import ROUTER, TASKS, Stage, Status
from abers_connectors.runtime.take_over import TakeOver, require_publishing
from abers_connectors.runtime.transport import open_transport
from abers_connectors.runtime.worker import Worker
from abers_connectors.schemas.outputs import registered_encoder
from abers_connectors.sinks.webhook import Webhook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import AlertsSection, KafkaSection
    from abers_connectors.process import Supervisor
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.model_routes import Routing
    from abers_connectors.runtime.restore import RestoredTask
    from abers_connectors.runtime.task import BatchResult, StreamTask
    from abers_connectors.runtime.transport import Consumer, Producer, Reader, Transport
    from abers_connectors.schemas.outputs import Encoder

__all__ = ["close_or_leave", "open_worker", "snapshot_store"]

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

    `largest` is the number of bytes of the largest record, `snapshots` stores those of an index of
    ids, and `closed` returns the function that closes a consumer. `require_generation` is that of
    `open_worker`.
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
    """Return the routing of records: by their models, or by an index of ids."""
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


_MAX_BYTES = 1_000_000  # of a record; clients and brokers reject larger records by default


P = ParamSpec("P")


class TaskParts(NamedTuple):
    """The parts that are open before the tasks."""

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
    this one replaces. `require_generation` is that of `open_worker`, and `alongside`, the other
    stage, that of `Worker`. `closed` returns the function that closes a consumer.
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
    """Watch the topics until the stack closes; errors then say what happened to a topic."""
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
    """Return a function that calls the given functions in turn."""

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
    export = extra("abers_connectors.telemetry", *given)
    traced = extra("abers_connectors.telemetry", *given)
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
    """Yield the trimmer of the routed topic, if there is one."""
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


@contextmanager
def open_worker(  # noqa: PLR0913 - all that the command says
    config: Config,
    application: Application,
    initial_state: str | None,
    supervisor: Supervisor,
    *,
    create_topics: bool = False,
    take_over: str | None = None,
    stage: Stage | None = None,
    require_generation: Callable[[], object] = lambda: None,
) -> Iterator[Worker | Router]:
    """Open a worker in a `with` block; see `cli.service.run_service`, which runs it.

    If the application routes its inputs, the process runs both stages, or only the given `stage`.
    `require_generation` is called when an assignment has changed, and raises if another generation
    is in use.
    """
    kafka, stages = kafka_section(config), _stages(application, stage)
    stall_timeout = kafka.stall_timeout / 1000
    with ExitStack() as stack:
        watchdog = stack.enter_context(closing(Watchdog(stall_timeout)))

        def moved(doing: str) -> None:
            supervisor.alive()
            watchdog.progressed(doing)

        status = Status(
            stall_timeout,
            moved,
            max_models=config.http.max_models,
            application=kafka.application_id,
            process=kafka.group_instance_id,
            stages=stages,
        )
        status.routes = bool(application.sources)
        page = _served_page(config, status, stack)
        transport = open_transport(kafka, watchdog)
        reader = stack.enter_context(closing(transport.reader(kafka.application_id)))
        snapshots = snapshot_store(config, application)
        # Tasks read all routed records; the router decides where to start.
        start = "earliest" if application.sources else kafka.starting_offset
        initial = InitialState(application, reader, start, _initial_store(initial_state, kafka))
        if create_topics:
            for topic in create_topics_if(config, partial(initial.check, snapshots)):
                _log.info("created topic %s", topic)
        partitions = partition_count(reader, application)
        status.input_partitions = partitions
        largest = require_durable(config)
        status.session_timeout = session_timeout(kafka, kafka.application_id)
        closed = partial(close_or_leave, leave=kafka.leave_group_on_close)
        alongside: Callable[[], float] = lambda: math.inf  # noqa: E731 - without a router
        if ROUTER in stages:
            partition_counts(reader, application.sources)
            router = open_router(
                config,
                application,
                transport,
                status,
                stack,
                largest=largest,
                snapshots=_store(config, application.router_group),
                closed=closed,
                require_generation=require_generation,
            )
            alongside = router.alongside
            if TASKS not in stages:
                watch = watched_topics(config, application, watchdog, partitions, stack)
                router.housekeeping = _router_housekeeping(watch, status, supervisor)
                yield router
                return
        initial.save(snapshots, partitions)
        parts = TaskParts(config, application, transport, reader, snapshots, status, supervisor)
        yield open_tasks(
            parts,
            stack,
            page=page,
            create=initial.create,
            take_over=take_over,
            require_generation=require_generation,
            alongside=alongside,
            watchdog=watchdog,
            closed=closed,
        )


def _served_page(config: Config, status: Status, stack: ExitStack) -> ServicePage:
    """Return the live page; serve it, with health and metrics, if the configuration says so."""
    from abers_connectors.dashboard.server import serving  # noqa: PLC0415 - an extra

    page = ServicePage(status.application, status, config.input.timezone or "UTC")
    if config.http.enabled:
        url = stack.enter_context(serving(config.http, status, page.feed))
        _log.info("health, metrics and the live page at %s/", url)
    return page


def _stages(application: Application, stage: Stage | None) -> Sequence[Stage]:
    """Return the stages that run in the process."""
    if not application.sources:
        return [TASKS]
    return [ROUTER, TASKS] if stage is None else [stage]


def _router_housekeeping(
    watch: TopicWatch, status: Status, supervisor: Supervisor
) -> Callable[[], None]:
    """Return the function that a router without tasks calls after each turn."""
    waiting = [supervisor]

    def keep() -> None:
        watch.require()
        if waiting and status.view().ready:
            waiting.pop().ready()

    return keep


def close_or_leave(consumer: Consumer, *, leave: bool) -> Callable[..., None]:
    """Return an exit callback that closes a consumer, or leaves the group if `leave` is set.

    It does not leave after a BrokerError: another process may have taken over the member, or this
    process will be restarted.
    """

    def end(_: object, error: BaseException | None, __: object) -> None:
        if leave and not isinstance(error, BrokerError):
            consumer.leave()
        else:
            consumer.close()

    return end


def snapshot_store(config: Config, application: Application) -> SnapshotStore | None:
    """Open the store of snapshots of a configuration; None if it names none."""
    return _store(config, application.state_id)


def _store(config: Config, name: str) -> SnapshotStore | None:
    """Open the store of snapshots of a name, in the place that the configuration names."""
    kafka = config.kafka
    if config.state.path is None or kafka is None:
        return None
    # Half of the time after which /livez fails: a storage that hangs is skipped before that.
    timeout = kafka.stall_timeout / 2000
    return SnapshotStore(config.state.path, name, config.state.retain, timeout)


def _initial_store(url: str | None, kafka: KafkaSection) -> SnapshotStore | None:
    """Open the initial state that a replay saved; its application may have another id."""
    if url is None:
        return None
    app = kafka.application_id
    store = SnapshotStore(url, app)
    with suppress(OSError):  # what cannot be read is reported where it is needed
        store = store.of_only_application()
    if store.app != app:
        _log.info("application %s starts with the state of application %s", app, store.app)
    return store
