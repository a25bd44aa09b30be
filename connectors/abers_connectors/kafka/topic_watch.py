"""Watch over the topics of a running service, in a thread of its own.

What a service requires of its topics at the start holds until its end. Somebody may add partitions,
delete a topic, or change the settings of the changelog while it runs. Then the service ends, and
its error names the topic, the cause and the remedy. The clients' own errors say little, or never
come.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from abers.exceptions import AbersError, BrokerError, ConfigError, StateError
from abers_connectors.kafka.connection import connection_errors, new_admin
from abers_connectors.kafka.settings import client_settings
from abers_connectors.kafka.topic_checks import (
    MAX_BATCH_BYTES,
    changelog_findings,
    existence_findings,
    permission_findings,
    routed_findings,
    times_findings,
)
from abers_connectors.kafka.topics import NEEDED, NO_TOPIC, NOT_AUTHORIZED, describe_topics
from abers_connectors.runtime.application import kafka_section
from abers_connectors.runtime.partition_count import require_partitions
from abers_connectors.runtime.transport import RefusedRecordError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from abers_connectors.config.model import Config
    from abers_connectors.kafka.topics import Topic
    from abers_connectors.runtime.application import Application

__all__ = ["TopicWatch"]

_log = logging.getLogger(__name__)

_INTERVAL = 2.0  # seconds between two questions
_STUCK = 10.0  # seconds after which a process that must end is ended
_MISSING = 10.0  # seconds after which a topic is gone: a broker that starts may not know it yet
_PATIENCE = 3.0  # seconds for an answer that explains an error
_CONNECT_TIMEOUT = 5_000  # ms
_WITH_STATE = ("observations", "labels", "routed", "changelog")
_GONE = (NO_TOPIC, NOT_AUTHORIZED)
_LOST = "records that it lost meanwhile need `abers state rebuild CONFIG --from-inputs`"


class TopicWatch:
    """Asks the brokers about all topics of an application, again and again.

    The inputs and the changelog have that many `partitions`.
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
        self._closed = False
        self._asked, self._answered = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._watch, name="topics", daemon=True)
        self._thread.start()

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
            for _ in range(2):  # the answer to a question from before may be under way
                self._answered.clear()
                self._asked.set()
                self._answered.wait(_PATIENCE)
            self.require()
            lines = [*self._causes(error)]
            if lines and isinstance(error, RefusedRecordError):
                msg = f"{'; '.join(lines)}. Nothing was committed; ending, to be restarted"
                raise BrokerError(msg) from error
            if lines:
                raise ConfigError(lines) from error
            raise

    def close(self) -> None:
        """Stop asking."""
        self._closed = True
        self._asked.set()
        self._thread.join(_PATIENCE)

    def _watch(self) -> None:
        while not self._closed:
            try:
                self._ask()
            except AbersError:  # no answer: the service's own calls report that
                self._pause()
            except Exception:  # noqa: BLE001 - such as of a file that is being replaced
                _log.warning("the topics cannot be watched now; trying again", exc_info=True)
                self._pause()

    def _pause(self) -> None:
        self._asked.wait(_INTERVAL)
        self._asked.clear()

    def _ask(self) -> None:
        """Ask until there is no answer; each time by a client that is connected."""
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
        """Require that all topics are there, all their partitions too, and the changelog lasts."""
        now = time.monotonic()
        gone = [role for role, one in self._now.items() if one.error in _GONE]
        self._gone = {role: self._gone.get(role, now) for role in gone}
        if lines := [*self._missing(now - _MISSING)]:
            raise ConfigError(lines)
        of_tasks = {*self._application.inputs, self._application.changelog}
        counts = {one.name: one.partitions for one in self._stateful() if one.name in of_tasks}
        require_partitions(self._application, counts, self._partitions)
        if found := [
            *changelog_findings(self._now, self._config),
            *routed_findings(self._now, self._config),
        ]:
            raise ConfigError([f"{one}; {_LOST}" for one in found])

    def _missing(self, by: float) -> Iterator[str]:
        """Yield a sentence for each topic that has been gone since a moment, or longer."""
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
        """Find why a client was refused what it asked for, by the topics as they are now."""
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
