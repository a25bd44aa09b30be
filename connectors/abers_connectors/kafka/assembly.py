"""Assembly of a service from its configuration.

Everything that is opened here is closed here. A process that ends stays a member of its group
unless the configuration says otherwise, so that a restart moves no partition.
"""

from __future__ import annotations

import logging
import math
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from abers.exceptions import BrokerError
from abers_connectors.dashboard.stream_pages import ServicePage
from abers_connectors.kafka.router_assembly import open_router
from abers_connectors.kafka.session import session_timeout
from abers_connectors.kafka.task_assembly import TaskParts, open_tasks, watched_topics
from abers_connectors.kafka.topic_checks import require_durable
from abers_connectors.kafka.topic_creation import create_topics_if
from abers_connectors.runtime.application import kafka_section
from abers_connectors.runtime.initial_state import InitialState
from abers_connectors.runtime.partition_count import partition_count, partition_counts
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.runtime.status import ROUTER, TASKS, Stage, Status
from abers_connectors.runtime.transport import open_transport
from abers_connectors.runtime.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import KafkaSection
    from abers_connectors.kafka.topic_watch import TopicWatch
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.router import Router
    from abers_connectors.runtime.transport import Consumer
    from abers_connectors.runtime.worker import Worker
    from abers_connectors.systemd import Supervisor

__all__ = ["close_or_leave", "open_worker", "snapshot_store"]

_log = logging.getLogger(__name__)


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

    If the application routes its inputs, the worker does both stages, or the one that is given.
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
        # Routed records are all for the tasks: where to start is a matter of the router.
        start = "earliest" if application.sources else kafka.starting_offset
        initial = InitialState(application, reader, start, _initial_store(initial_state, kafka))
        if create_topics:
            for topic in create_topics_if(config, partial(initial.check, snapshots)):
                _log.info("topic %s is created", topic)
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
