"""Topics of a running service: watched, and trimmed, in threads of their own.

`ChangelogTrimmer` deletes the changelog records that no restore needs. It deletes only if all
machines share the snapshots, so that no process restores from older snapshots, and only before the
oldest intact snapshot. A failure costs nothing but disk space.

`RoutedTrimmer` deletes the records of the routed topic that tasks have read. A task is restored
from its snapshot and its changelog, so it never again reads a record before its committed offset. A
failure costs nothing but disk space.

`TopicWatch` watches the topics, in a thread of its own. A service requires the same of its topics
until its end as at the start. Somebody may add partitions, delete a topic, or change the settings
of the changelog while it runs. Then the service ends, and its error names the topic, the cause and
the remedy. The clients' own errors say little, or never come.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from abers.exceptions import AbersError, BrokerError, ConfigError, StateError
from abers.stream.snapshot import require_whole
from abers_connectors.kafka.connection import (
    client_settings,
    connection_errors,
    new_admin,
    open_admin,
    to_client,
)
from abers_connectors.kafka.topic_checks import (
    MAX_BATCH_BYTES,
    changelog_findings,
    existence_findings,
    permission_findings,
    routed_findings,
    times_findings,
)
from abers_connectors.kafka.topics import NEEDED, NO_TOPIC, NOT_AUTHORIZED, describe_topics
from abers_connectors.runtime.application import kafka_section, snapshot_scope
from abers_connectors.runtime.partition_count import require_copartitioned, require_partitions
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.runtime.transport import RefusedRecordError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from abers_connectors.config.model import Config
    from abers_connectors.kafka.topics import Topic
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.task import StreamTask
    from abers_connectors.runtime.transport import TopicPartition

__all__ = ["BrokerWatch", "ChangelogTrimmer", "RoutedTrimmer", "TopicWatch"]

_log = logging.getLogger(__name__)


class ChangelogTrimmer:
    """Deletes changelog records that none of the shared snapshots of an application needs."""

    def __init__(
        self, application: Application, snapshots: SnapshotStore, settings: Mapping[str, Any]
    ) -> None:
        self._application, self._snapshots, self._settings = application, snapshots, settings

    def trim(self, number: int) -> None:
        """Trim the changelog of a task; it may wait for the brokers, but never raises."""
        try:
            offset = self.oldest(number)
            if offset:
                partition = to_client(self._application.changelog_partition(number))
                with open_admin(self._settings) as admin:
                    admin.delete_records({partition: offset})
        except (AbersError, OSError) as error:
            _log.warning(
                "changelog not trimmed: %s",
                error,
                extra={"topic": self._application.changelog, "partition": number},
            )

    def oldest(self, number: int) -> int:
        """Return the offset at which the oldest intact snapshot continues; 0 without a snapshot."""
        for name, blob in self._snapshots.newest(number, failed=_fail, oldest=True):
            offset = SnapshotStore.offset(name)
            scope = snapshot_scope(self._application.state_id, number, offset)
            try:
                require_whole(blob, self._application.key, scope)
            except StateError:
                continue
            return offset
        return 0


def _fail(sentence: str) -> None:
    """Stop the trimming if the snapshots cannot be listed."""
    raise OSError(sentence)


_TRIM_INTERVAL = 60.0  # seconds between two deletions


class RoutedTrimmer:
    """Deletes the routed records that the tasks of this process have committed, in a thread.

    It is called after each batch, when all that the tasks have read is committed.
    """

    def __init__(
        self,
        application: Application,
        settings: Mapping[str, Any],
        *,
        interval: float = _TRIM_INTERVAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._application, self._settings = application, settings
        self._interval, self._clock, self._last = interval, clock, clock()
        self._trimmed: dict[TopicPartition, int] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="routed-trim")
        self._running: Future[None] | None = None

    def __call__(self, tasks: Sequence[StreamTask]) -> None:
        """Delete records if that is due; never waits, and never raises."""
        busy = self._running is not None and not self._running.done()
        if busy or self._clock() - self._last < self._interval:
            return
        self._last = self._clock()
        offsets = {
            one: offset
            for task in tasks
            for one, offset in zip(
                self._application.input_partitions(task.checkpoint.partition),
                task.checkpoint.next_offsets,
                strict=False,  # the second offset means nothing
            )
            if offset > self._trimmed.get(one, 0)
        }
        if offsets:
            self._running = self._thread.submit(self._delete, offsets)

    def close(self) -> None:
        """Stop deleting."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _delete(self, offsets: Mapping[TopicPartition, int]) -> None:
        try:
            with open_admin(self._settings) as admin:
                admin.delete_records({to_client(one): offset for one, offset in offsets.items()})
        except (AbersError, OSError) as error:
            _log.warning("routed records are not deleted: %s", error)
        else:
            self._trimmed |= offsets


_INTERVAL = 2.0  # seconds between two questions
_STUCK = 10.0  # seconds after which a process that must end is ended
_MISSING = 10.0  # seconds after which a topic is gone: a broker that starts may not know it yet
_PATIENCE = 3.0  # seconds for an answer that explains an error
_CONNECT_TIMEOUT = 5_000  # ms
_WITH_STATE = ("observations", "labels", "routed", "changelog")
_GONE = (NO_TOPIC, NOT_AUTHORIZED)
_LOST = "records that it lost meanwhile need `abers state rebuild CONFIG --from-inputs`"


class BrokerWatch(ABC):
    """Asks the brokers again and again, in a thread of its own.

    The thread starts at once, so subclasses first set the attributes that it needs. It waits
    `interval` seconds between two questions, and others wait `patience` seconds for its answer.
    """

    def __init__(self, name: str, interval: float, patience: float) -> None:
        self._interval, self._patience = interval, patience
        self._closed = False
        self._asked, self._answered = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._watch, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop asking."""
        self._closed = True
        self._asked.set()
        self._thread.join(self._patience)

    def _ask_now(self) -> None:
        """Wait for the answer to a question from now on."""
        for _ in range(2):  # the answer to a question from before may be under way
            self._answered.clear()
            self._asked.set()
            self._answered.wait(self._patience)

    def _watch(self) -> None:
        while not self._closed:
            try:
                self._ask()
            except Exception as error:  # noqa: BLE001 - such as of a file that is being replaced
                self._fail(error)
                self._pause()

    def _pause(self) -> None:
        self._asked.wait(self._interval)
        self._asked.clear()

    @abstractmethod
    def _ask(self) -> None:
        """Connect a client, and ask until that fails or the watch is closed."""

    @abstractmethod
    def _fail(self, error: Exception) -> None:
        """Handle an error of `_ask`."""


class TopicWatch(BrokerWatch):
    """Asks the brokers about all topics of an application, again and again.

    The inputs of the tasks and the changelog have `partitions` partitions each.
    """

    def __init__(
        self,
        config: Config,
        application: Application,
        partitions: int,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._config, self._kafka, self._end = config, kafka_section(config), end
        self._application, self._partitions = application, partitions
        self._settings = client_settings(self._kafka)
        self._first: Mapping[str, Topic] = {}  # by role
        self._now: Mapping[str, Topic] = {}
        self._gone: dict[str, float] = {}  # roles of topics that are not there, and since when
        self._error: AbersError | None = None
        self._found_at: float | None = None  # when the error was found
        super().__init__("topics", _INTERVAL, _PATIENCE)

    def require(self) -> None:
        """Raise a StateError or a ConfigError if the service must not go on; never waits."""
        if self._error is not None:
            raise self._error

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Replace an error by one that says what was done to a topic, if that is its cause."""
        try:
            yield
        except (BrokerError, ConfigError, StateError) as error:
            self._ask_now()
            self.require()
            lines = [*self._causes(error)]
            if lines and isinstance(error, RefusedRecordError):
                msg = f"{'; '.join(lines)}. Nothing was committed; ending, to be restarted"
                raise BrokerError(msg) from error
            if lines:
                raise ConfigError(lines) from error
            raise

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, AbersError):  # the service's own calls report those
            _log.warning("the topics cannot be watched now; trying again", exc_info=error)

    def _ask(self) -> None:
        with connection_errors(self._settings):
            admin = new_admin(self._settings, bootstrap_timeout_ms=_CONNECT_TIMEOUT)
        with admin:
            while not self._closed:
                self._asked.clear()
                with connection_errors(self._settings):
                    self._now = describe_topics(admin, self._kafka, NEEDED)
                if not self._first and all(one.error == 0 for one in self._now.values()):
                    self._first = self._now  # a broker may hear late of a new topic
                self._error = self._problem() if self._first else None
                self._answered.set()
                self._end_if_stuck()
                self._asked.wait(_INTERVAL)

    def _end_if_stuck(self) -> None:
        """End the process if it must end and does not: a client waits for a topic that is gone."""
        if self._error is None:
            self._found_at = None
            return
        self._found_at = self._found_at or time.monotonic()
        if time.monotonic() - self._found_at > _STUCK:
            _log.critical("%s", self._error)
            self._end(os.EX_CONFIG)

    def _problem(self) -> AbersError | None:
        """Return why the service must end, or None."""
        try:
            self._require_topics()
            self._require_identity()
        except (ConfigError, StateError) as error:
            return error
        return None

    def _require_topics(self) -> None:
        """Require that all topics and partitions exist, and that the changelog is kept."""
        now = time.monotonic()
        gone = [role for role, one in self._now.items() if one.error in _GONE]
        self._gone = {role: self._gone.get(role, now) for role in gone}
        if lines := [*self._missing(now - _MISSING)]:
            raise ConfigError(lines)
        of_tasks = {*self._application.inputs, self._application.changelog}
        counts = {one.name: one.partitions for one in self._stateful() if one.name in of_tasks}
        require_partitions(self._application, counts, self._partitions)
        counts = {one.name: one.partitions for one in self._stateful()}
        require_copartitioned(self._application, counts, self._first["observations"].partitions)
        if found := [
            *changelog_findings(self._now, self._config),
            *routed_findings(self._now, self._config),
        ]:
            raise ConfigError([f"{one}; {_LOST}" for one in found])

    def _missing(self, by: float) -> Iterator[str]:
        """Yield a sentence for each topic that is missing, and was at the moment `by`."""
        topics = {role: self._now[role] for role, since in self._gone.items() if since <= by}
        for one in existence_findings(topics, self._config):
            yield f"{one}; it was there when the service started"

    def _require_identity(self) -> None:
        """Require that no topic was made anew while the state depends on its offsets."""
        ids = {one.name: one.id for one in self._first.values()}
        for one in self._stateful():
            if one.id and ids[one.name] and one.id != ids[one.name]:
                msg = (
                    f"{one.where}: topic {one.name} was deleted and made anew while the service "
                    f"ran (its id was {ids[one.name]}, and is {one.id}), so offsets mean other "
                    "records. Start a new application (kafka.application_id) on it"
                )
                raise StateError(msg)

    def _stateful(self) -> list[Topic]:
        application = self._application
        used = {*application.inputs, *application.sources, application.changelog}
        topics = (self._now[role] for role in _WITH_STATE if role in self._now)
        return [one for one in topics if one.name in used and one.error == 0]

    def _causes(self, error: AbersError) -> Iterator[str]:
        """Find why the brokers refused a request, from the topics as they are now."""
        yield from self._missing(math.inf)
        if isinstance(error, RefusedRecordError):
            yield from self._refusing()
        elif isinstance(error, ConfigError):
            found = permission_findings(self._now, self._config)
            yield from (str(one) for one in found if one.fatal)

    def _refusing(self) -> Iterator[str]:
        """Find settings by which the brokers may refuse a record of an output."""
        yield from map(str, times_findings(self._now, self._config))
        outputs = [one for role, one in self._now.items() if NEEDED[role] == ("WRITE",)]
        for one in outputs:
            size = int(one.settings.get("max.message.bytes", MAX_BATCH_BYTES))
            policy = one.settings.get("cleanup.policy", "delete")
            if size < MAX_BATCH_BYTES:
                yield _refusal(one, f"max.message.bytes={size}", f"{MAX_BATCH_BYTES} or more")
            if "compact" in policy:
                yield _refusal(one, f"cleanup.policy={policy}, which needs keys", "delete")


def _refusal(topic: Topic, setting: str, wanted: str) -> str:
    """Return a sentence about a setting, and what to set instead."""
    return (
        f"{topic.where}: topic {topic.name} has {setting}, and the brokers refuse a record; set it "
        f"to {wanted}"
    )
