"""From a configuration to a service that runs.

Governing rule: everything that is opened here is closed here, and the seat in
the group is kept unless the configuration gives it up, so that a restart moves
nothing.
"""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec

from abers.exceptions import BrokerError, ConfigError, StateError
from abers_connectors.kafka.client_settings import client_settings
from abers_connectors.kafka.decoding import Decoder
from abers_connectors.kafka.gathering import Limits
from abers_connectors.kafka.home import Home
from abers_connectors.kafka.keeping import Keeping
from abers_connectors.kafka.leaders import Leaders
from abers_connectors.kafka.losing import Losses
from abers_connectors.kafka.restoring import Restorer
from abers_connectors.kafka.service import Service
from abers_connectors.kafka.snapshots import Snapshots
from abers_connectors.kafka.starting import Beginning
from abers_connectors.kafka.status import Status
from abers_connectors.kafka.topic_creation import create_if
from abers_connectors.kafka.topics import require_keeping, section
from abers_connectors.kafka.trimming import Trimming
from abers_connectors.kafka.watchdog import Watchdog
from abers_connectors.kafka.wording import ALERTS, Wording
from abers_connectors.live.service import ServicePage
from abers_connectors.running import Tolerance
from abers_connectors.state_key import state_key
from abers_connectors.webhook import Webhook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from abers_connectors.config import Alerts, Config, Kafka
    from abers_connectors.kafka.client import Group, Log
    from abers_connectors.kafka.shard import Shard, Work
    from abers_connectors.notify import Supervisor

__all__ = ["home_of", "opened", "parting", "partitions_of", "snapshots_of"]

_MOST_BYTES = 1_000_000  # of a record that is written; clients and brokers refuse more by default

_log = logging.getLogger(__name__)

P = ParamSpec("P")


def home_of(config: Config) -> Home:
    """Give what the shards of a configuration have in common."""
    kafka = section(config)
    inputs = [kafka.observations]
    if config.second_input and kafka.labels is not None:
        inputs.append(kafka.labels)
    return Home(
        kafka.app,
        inputs,
        kafka.changelog,
        config.settings(),
        kafka.outcomes is not None,
        state_key(),
    )


class _Seconds(NamedTuple):
    """The durations of a configuration."""

    session: float
    transaction: float
    watchdog: float

    @classmethod
    def of(cls, kafka: Kafka) -> _Seconds:
        return cls(
            kafka.session_timeout / 1000, kafka.transaction_timeout / 1000, kafka.watchdog / 1000
        )


@contextmanager
def opened(
    config: Config,
    home: Home,
    seed: str | None,
    supervisor: Supervisor,
    *,
    create_topics: bool = False,
) -> Iterator[Service]:
    """Open a service in a `with` block; as `command.serve`, which runs it."""
    from abers_connectors.http import serving  # noqa: PLC0415 - an extra
    from abers_connectors.kafka.client import Group, Log, Transactions  # noqa: PLC0415 - an extra

    kafka = section(config)
    seconds, settings = _Seconds.of(kafka), client_settings(kafka)
    status = Status(seconds.watchdog, supervisor.alive, session=seconds.session)
    page = ServicePage(kafka.app, status)
    with ExitStack() as stack:
        if config.http.enabled:
            url = stack.enter_context(serving(config.http, status, page.feed))
            _log.info("health, metrics and the live page at %s/", url)
        watchdog = Watchdog(seconds.watchdog, _log.critical)
        stack.callback(watchdog.close)
        common: dict[str, Any] = {"settings": settings, "watchdog": watchdog}
        log = Log(kafka.app, **common)
        stack.callback(log.close)
        snapshots = snapshots_of(config)
        sown = None if seed is None else Snapshots(seed, kafka.app)
        beginning = Beginning(home, log, kafka.start, sown)
        if create_topics:
            for topic in create_if(config, lambda count: beginning.check(snapshots, count)):
                _log.info("topic %s is created", topic)
        partitions, topics = partitions_of(log, home), _topics(kafka)
        outputs = _counted(log, topics.values())
        require_keeping(config)
        beginning.keep(snapshots, partitions)
        producer = Transactions(
            f"{kafka.app}-{kafka.instance}",
            topics=sorted({*topics.values(), home.changelog}),
            group=kafka.app,
            timeout=seconds.transaction,
            compression=kafka.compression,
            **common,
        )
        stack.callback(producer.close)
        group = Group(
            home.inputs,
            kafka.app,
            f"{kafka.app}-{kafka.instance}",
            session=seconds.session,
            **common,
        )
        stack.push(parting(group, leave=kafka.leave_on_stop))
        keeping = Keeping(
            home,
            snapshots,
            every=config.state.every,
            consumer=group,
            status=status,
            supervisor=supervisor,
            trim=_trimming(config, home, snapshots, settings),
        )
        stack.callback(keeping.close)
        restorer = Restorer(
            home,
            log,
            snapshots,
            beginning.shard,
            Losses(home, log, kafka.lost_history, _log.warning).pass_over,
            say=_log.warning,
        )
        service = Service(
            home,
            consumer=group,
            producer=producer,
            reader=log,
            restore=restorer.restore,
            decoder=Decoder(config, partitions=partitions, now=lambda: time.time_ns() // 1_000_000),
            wording=Wording(max_bytes=_MOST_BYTES, publish_from=kafka.publish_from),
            topics=topics,
            limits=Limits(
                kafka.max_records, kafka.max_bytes, kafka.linger / 1000, kafka.max_idle / 1000
            ),
            tolerance=Tolerance(
                config.output.on_bad_record == "stop", config.output.max_dead_per_1000
            ),
            seat=seconds.watchdog,
            status=status,
            onlooker=_each(_telling(config.alerts, status, stack), page.take),
            housekeeping=_each(keeping, Leaders(home, outputs, producer, status), page.look),
        )
        yield service


def parting(group: Group, *, leave: bool) -> Callable[..., None]:
    """Give what closes a member when a `with` block ends, and gives its seat up if that is wanted.

    Not after a BrokerError: the seat may be that of the process which took our place, and
    otherwise the process is started again.
    """

    def part(_: object, error: BaseException | None, __: object) -> None:
        if leave and not isinstance(error, BrokerError):
            group.leave()
        else:
            group.close()

    return part


def _each(*calls: Callable[P, object]) -> Callable[P, None]:
    """Call some one after the other."""

    def called(*args: P.args, **kwargs: P.kwargs) -> None:
        for call in calls:
            call(*args, **kwargs)

    return called


def _telling(alerts: Alerts, status: Status, stack: ExitStack) -> Callable[[Shard, Work], object]:
    """Tell the web hook, if there is one, of alarms once they are committed."""
    if alerts.webhook is None:
        return lambda *_: None
    webhook = Webhook(alerts.webhook, status.posted)
    stack.callback(webhook.close)

    def tell(_: Shard, work: Work) -> None:
        for one in work.outgoing:
            if one.sink == ALERTS:
                webhook.tell(one.value)

    return tell


def partitions_of(log: Log, home: Home) -> int:
    """Count the partitions; all inputs and the changelog have as many."""
    counts = _counted(log, [*home.inputs, home.changelog])
    if len({*counts.values()}) > 1:
        found = ", ".join(f"{topic} has {count}" for topic, count in counts.items())
        msg = (
            f"the inputs and the changelog must have as many partitions: {found}. A topic whose "
            "partitions were added to needs a new application: a label would no longer meet its "
            "observation"
        )
        raise StateError(msg)
    return next(iter(counts.values()))


def _counted(log: Log, topics: Iterable[str]) -> dict[str, int]:
    """Count the partitions of topics, all of which must be there."""
    counts = {topic: log.partitions(topic) for topic in topics}
    if missing := [topic for topic, count in counts.items() if not count]:
        lines = [f"topic {topic} is not there" for topic in missing]
        raise ConfigError([*lines, "make it, or let `abers run --create-topics` make what it can"])
    return counts


def snapshots_of(config: Config) -> Snapshots | None:
    """Open the place of the snapshots of a configuration; None if it names none."""
    kafka = config.kafka
    if config.state.path is None or kafka is None:
        return None
    # Half of what /livez waits for: a store that is silent is passed over before that fails.
    patience = kafka.watchdog / 2000
    return Snapshots(config.state.path, kafka.app, config.state.keep, patience)


def _trimming(
    config: Config, home: Home, snapshots: Snapshots | None, settings: dict[str, Any]
) -> Callable[[int], None]:
    """Shorten the changelog only where the configuration says that it may be."""
    if snapshots is None or not config.state.shared:
        return lambda _: None
    return Trimming(home, snapshots, settings).trim


def _topics(kafka: Kafka) -> dict[str, str]:
    named_ones = {
        "predictions": kafka.predictions,
        "outcomes": kafka.outcomes,
        "dead_letters": kafka.dead_letters,
        ALERTS: kafka.alerts,
    }
    return {sink: topic for sink, topic in named_ones.items() if topic is not None}
