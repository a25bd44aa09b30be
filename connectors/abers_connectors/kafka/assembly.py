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
from typing import TYPE_CHECKING, ParamSpec

from abers.exceptions import BrokerError
from abers.stream import make_task
from abers_connectors.dashboard.stream_pages import ServicePage
from abers_connectors.extras import extra
from abers_connectors.kafka.changelog_trim import ChangelogTrimmer
from abers_connectors.kafka.routed_trim import RoutedTrimmer
from abers_connectors.kafka.router_assembly import batch_limits, open_router
from abers_connectors.kafka.session import session_timeout
from abers_connectors.kafka.settings import client_settings
from abers_connectors.kafka.topic_checks import require_durable
from abers_connectors.kafka.topic_creation import create_topics_if
from abers_connectors.kafka.topic_watch import TopicWatch
from abers_connectors.runtime.application import kafka_section
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.initial_state import InitialState
from abers_connectors.runtime.maintenance import Maintenance
from abers_connectors.runtime.offset_gap import skip_gap
from abers_connectors.runtime.partition_count import (
    partition_count,
    partition_counts,
    require_same_partitions,
)
from abers_connectors.runtime.restore import Restorer
from abers_connectors.runtime.serializer import ALERTS, Serializer
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.runtime.status import ROUTER, TASKS, Stage, Status
from abers_connectors.runtime.transport import open_transport
from abers_connectors.runtime.watchdog import Watchdog
from abers_connectors.runtime.worker import Worker
from abers_connectors.schemas.output_encoder import registered_encoder
from abers_connectors.sinks.webhook import Webhook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import AlertsSection, KafkaSection
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.router import Router
    from abers_connectors.runtime.task import BatchResult, StreamTask
    from abers_connectors.runtime.transport import Consumer, Producer
    from abers_connectors.schemas.output_encoder import Encoder
    from abers_connectors.systemd import Supervisor

__all__ = ["close_or_leave", "open_worker", "snapshot_store"]

_MAX_BYTES = 1_000_000  # of a record; clients and brokers reject larger records by default

_log = logging.getLogger(__name__)

P = ParamSpec("P")


@contextmanager
def open_worker(  # noqa: PLR0913 - all that the command says
    config: Config,
    application: Application,
    initial_state: str | None,
    supervisor: Supervisor,
    *,
    create_topics: bool = False,
    stage: Stage | None = None,
) -> Iterator[Worker | Router]:
    """Open a worker in a `with` block; see `run_command.run_service`, which runs it.

    If the application routes its inputs, the worker does both stages, or the one that is given.
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
        # Routed records are all for the tasks: where to start is a matter of the router.
        start = "earliest" if application.sources else kafka.starting_offset
        initial = InitialState(application, reader, start, _initial_store(initial_state, kafka))
        if create_topics:
            for topic in create_topics_if(config, partial(initial.check, snapshots)):
                _log.info("topic %s is created", topic)
        partitions, topics = partition_count(reader, application), _output_topics(kafka)
        status.input_partitions = partitions
        largest = require_durable(config)
        status.session_timeout = session_timeout(kafka, kafka.application_id)
        closed = partial(close_or_leave, leave=kafka.leave_group_on_close)
        alongside: Callable[[], float] = lambda: math.inf  # noqa: E731 - without a router
        if ROUTER in stages:
            partition_counts(reader, application.sources)
            router = open_router(
                config, application, transport, status, stack, largest=largest, closed=closed
            )
            alongside = router.alongside
            if TASKS not in stages:
                watch = stack.enter_context(closing(TopicWatch(config, application, partitions)))
                stack.enter_context(watch.explaining())
                stack.callback(watchdog.rest)
                router.housekeeping = _router_housekeeping(watch, status, supervisor)
                yield router
                return
        encoders = _encoders(config, topics)
        outputs = partition_counts(reader, topics.values())
        initial.save(snapshots, partitions)
        identity = f"{kafka.application_id}-{kafka.group_instance_id}"
        # Before the producer, which fences: the brokers may refuse a second member of this name.
        consumer = transport.consumer(
            application.inputs,
            kafka.application_id,
            identity,
            session_timeout=status.session_timeout,
        )
        stack.push(closed(consumer))
        producer = transport.producer(
            identity,
            topics=sorted({*topics.values(), application.changelog}),
            group=kafka.application_id,
            timeout=kafka.transaction_timeout / 1000,
            compression=kafka.compression,
        )
        stack.callback(producer.close)
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
        restorer = Restorer(
            application,
            reader,
            snapshots,
            initial.create,
            partial(skip_gap, application, reader, kafka.on_offset_out_of_range, _log.warning),
            warn=_log.warning,
        )
        watch = stack.enter_context(closing(TopicWatch(config, application, partitions)))
        stack.enter_context(watch.explaining())
        stack.callback(watchdog.rest)
        yield Worker(
            application,
            consumer=consumer,
            producer=_traced(producer, config, status, topics, stack),
            reader=reader,
            restore=restorer.restore,
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
            stall_timeout=stall_timeout,
            status=status,
            require_topics=partial(require_same_partitions, reader, application, partitions),
            on_commit=_each(_alert(config.alerts, status, stack), page.take),
            housekeeping=_each(
                lambda _: watch.require(),
                maintenance,
                page.refresh,
                *_routed_trim(config, application, stack),
            ),
            alongside=alongside,
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
    """Return the stages that the process does."""
    if not application.sources:
        return [TASKS]
    return [ROUTER, TASKS] if stage is None else [stage]


def _router_housekeeping(
    watch: TopicWatch, status: Status, supervisor: Supervisor
) -> Callable[[], None]:
    """Return what a router without tasks does after each turn."""
    waiting = [supervisor]

    def keep() -> None:
        watch.require()
        if waiting and status.view().ready:
            waiting.pop().ready()

    return keep


def close_or_leave(consumer: Consumer, *, leave: bool) -> Callable[..., None]:
    """Return the end of a `with` block that closes a consumer, or leaves the group if asked to.

    It does not leave after a BrokerError: the member may be that of the process that took over, or
    the process will be restarted.
    """

    def end(_: object, error: BaseException | None, __: object) -> None:
        if leave and not isinstance(error, BrokerError):
            consumer.leave()
        else:
            consumer.close()

    return end


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


def snapshot_store(config: Config, application: Application) -> SnapshotStore | None:
    """Open the store of snapshots of a configuration; None if it names none."""
    kafka = config.kafka
    if config.state.path is None or kafka is None:
        return None
    # Half of the time after which /livez fails: a storage that hangs is skipped before that.
    timeout = kafka.stall_timeout / 2000
    return SnapshotStore(config.state.path, application.state_id, config.state.retain, timeout)


def _initial_store(url: str | None, kafka: KafkaSection) -> SnapshotStore | None:
    """Open the initial state that a replay saved; its application may have another id."""
    if url is None:
        return None
    app = kafka.application_id
    store = SnapshotStore(url, app)
    with suppress(OSError):  # what cannot be read is reported where it is needed
        store = store.of_only_application()
    if store.app != app:
        _log.info("the initial state is of application %s, and begins that of %s", store.app, app)
    return store


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
