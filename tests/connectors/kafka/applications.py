"""Applications for tests: their topics, a configuration, and services that process the topics."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Self

from kafka import TopicPartition as KafkaTopicPartition
from tests.connectors.kafka.brokers import PATIENCE, Broker, unique
from tests.connectors.kafka.streams import written

from abers_connectors.config.model import load
from abers_connectors.kafka.assembly import snapshot_store
from abers_connectors.kafka.client import PartitionReader
from abers_connectors.process import Watchdog
from abers_connectors.runtime.application import Application
from abers_connectors.runtime.restore import Restorer
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from kafka.admin import KafkaAdminClient
    from tests.connectors.kafka.streams import Record

    from abers_connectors.config.model import Config
    from abers_connectors.runtime.task import StreamTask

__all__ = ["PARTITIONS", "Served"]

PARTITIONS = 2


class Served:
    """An application with snapshots, in a folder of its own."""

    def __init__(
        self, broker: Broker, folder: Path, start: Callable[..., subprocess.Popen[bytes]]
    ) -> None:
        """Make its topics."""
        self.broker, self.folder, self._start = broker, folder, start
        self.app = unique("app")
        self.topics = broker.create_all(PARTITIONS)
        self.configure()

    def configure(self, more: str = "", **state: object) -> None:
        """Write the configuration, with more keys of [kafka], and keys of [state]."""
        lines = [f'kafka.{name} = "{topic}"' for name, topic in self.topics.items()]
        lines += [f"state.{name} = {value}" for name, value in state.items()]
        (self.folder / "abers.toml").write_text(
            "\n".join(
                [
                    f'kafka.bootstrap_servers = "{self.broker.bootstrap}"',
                    f'kafka.application_id = "{self.app}"',
                    "kafka.max_records = 37",
                    "kafka.leave_group_on_close = true",
                    "http.enabled = false",
                    'state.path = "state"',
                    *lines,
                    more,
                ]
            )
        )

    def config(self) -> Config:
        """Read the configuration; the state is in this folder."""
        return load(
            self.folder / "abers.toml",
            flags={"state": {"path": str(self.folder / "state")}},
            environ={},
        )

    def produce(self, observations: list[Record], labels: list[Record]) -> None:
        """Write observations and labels."""
        self.broker.produce(self.topics["observations"], written(observations))
        self.broker.produce(self.topics["labels"], written(labels))

    def run(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a service, with more words on its command line."""
        return self._start("run", "abers.toml", *words)

    def serve(self, *words: str) -> None:
        """Let a service process all records, and stop it.

        A service that is stopped before it has joined its group ends as interrupted, so wait for
        that even if no record is left.
        """
        with self.broker.admin() as admin, self.log() as log:
            before = self.members(admin)
            self._serve(words, lambda: log.drained() and self.members(admin) - before)
        self.broker.await_transactions(*self.topics.values())

    def _serve(self, words: Sequence[str], done: Callable[[], object]) -> None:
        with self.run(*words) as process:
            deadline = time.monotonic() + PATIENCE
            while not done():
                assert process.poll() is None, process.communicate()[1].decode()
                assert time.monotonic() < deadline
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            err = process.communicate(timeout=PATIENCE)[1]
            assert process.returncode == 0, err.decode()

    def members(self, admin: KafkaAdminClient) -> set[str]:
        """Return the ids of the group's members, which differ for each process."""
        group = admin.describe_groups([self.app])[self.app]
        return {one["member_id"] for one in group["members"]}

    def refused(self, *words: str) -> tuple[int, str]:
        """Start a service that must end by itself; return its code and its output."""
        process = self.run(*words)
        err = process.communicate(timeout=PATIENCE)[1].decode()
        return process.returncode, err

    def cut(self, name: str, before: dict[int, int]) -> None:
        """Delete the records of a topic before some offsets, by partition."""
        with self.broker.admin() as admin:
            admin.delete_records(
                {KafkaTopicPartition(self.topics[name], n): offset for n, offset in before.items()}
            )

    def log(self) -> _Looking:
        """Open a reader outside the group in a `with` block."""
        return _Looking(self)


class _Looking:
    """A member-free view of an application's topics and state."""

    def __init__(self, served: Served) -> None:
        self.config = served.config()
        self.application = Application.of(self.config)
        self._watchdog = Watchdog(PATIENCE)
        self.log = PartitionReader(
            served.app, settings=served.broker.client, watchdog=self._watchdog
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.log.close()
        self._watchdog.close()

    def drained(self) -> bool:
        """Return whether all records of the inputs are committed."""
        parts = [one for n in range(PARTITIONS) for one in self.application.input_partitions(n)]
        return all(self.log.committed(one) == self.log.offset_range(one).end for one in parts)

    def ends(self, topic: str) -> dict[int, int]:
        """Return the ends of the partitions of a topic."""
        return {n: self.log.offset_range(TopicPartition(topic, n)).end for n in range(PARTITIONS)}

    def starts(self, topic: str) -> dict[int, int]:
        """Return the first offsets of the partitions of a topic."""
        return {n: self.log.offset_range(TopicPartition(topic, n)).start for n in range(PARTITIONS)}

    def tasks(self) -> list[StreamTask]:
        """Restore all tasks, as a service does."""

        def begin(number: int) -> StreamTask:
            raise AssertionError(number)

        snapshots = snapshot_store(self.config, self.application)
        restorer = Restorer(
            self.application, self.log, snapshots, begin, lambda _: False, warn=print
        )
        return [restorer.restore(n, None, lambda: None).task for n in range(PARTITIONS)]
