"""Applications for tests: their topics, a configuration, and services that do what there is."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Self

from kafka import TopicPartition
from tests.connectors.kafka.brokers import Broker, unique
from tests.connectors.kafka.streams import written

from abers_connectors.config import load
from abers_connectors.kafka.client import Log
from abers_connectors.kafka.restoring import Restorer
from abers_connectors.kafka.serving import home_of, snapshots_of
from abers_connectors.kafka.transport import Partition
from abers_connectors.kafka.watchdog import Watchdog

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from kafka.admin import KafkaAdminClient
    from tests.connectors.kafka.streams import Record

    from abers_connectors.config import Config
    from abers_connectors.kafka.shard import Shard

__all__ = ["PARTITIONS", "Served"]

PARTITIONS = 2
_TIMEOUT = 120


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
                    f'kafka.bootstrap = "{self.broker.bootstrap}"',
                    f'kafka.app = "{self.app}"',
                    "kafka.max_records = 37",
                    "kafka.leave_on_stop = true",
                    "http.enabled = false",
                    'state.path = "state"',
                    *lines,
                    more,
                ]
            )
        )

    def config(self) -> Config:
        """Read it; the state is in this folder."""
        return load(
            self.folder / "abers.toml",
            flags={"state": {"path": str(self.folder / "state")}},
            environ={},
        )

    def produce(self, seen: list[Record], told: list[Record]) -> None:
        """Write observations and labels."""
        self.broker.produce(self.topics["observations"], written(seen))
        self.broker.produce(self.topics["labels"], written(told))

    def run(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a service, with more words on its command line."""
        return self._start("run", "abers.toml", *words)

    def serve(self, *words: str) -> None:
        """Let a service do all that there is, and stop it.

        Before it has joined its group it has done nothing, even where nothing was left to do; told
        to stop then, it ends as it was interrupted.
        """
        with self.broker.admin() as admin, self.log() as log:
            before = self._members(admin)
            self._serve(words, lambda: log.drained() and self._members(admin) - before)

    def _serve(self, words: Sequence[str], done: Callable[[], object]) -> None:
        with self.run(*words) as process:
            deadline = time.monotonic() + _TIMEOUT
            while not done():
                assert process.poll() is None, process.communicate()[1].decode()
                assert time.monotonic() < deadline
            process.send_signal(signal.SIGTERM)
            err = process.communicate(timeout=_TIMEOUT)[1]
            assert process.returncode == 0, err.decode()

    def _members(self, admin: KafkaAdminClient) -> set[str]:
        """Give the ids of those in its group, which are other ones for each process."""
        group = admin.describe_groups([self.app])[self.app]
        return {one["member_id"] for one in group["members"]}

    def refused(self, *words: str) -> tuple[int, str]:
        """Let a service start that ends by itself; its code, and what it says."""
        process = self.run(*words)
        err = process.communicate(timeout=_TIMEOUT)[1].decode()
        return process.returncode, err

    def cut(self, name: str, before: dict[int, int]) -> None:
        """Delete the records of a topic before some offsets, by partition."""
        with self.broker.admin() as admin:
            admin.delete_records(
                {TopicPartition(self.topics[name], n): offset for n, offset in before.items()}
            )

    def log(self) -> _Looking:
        """Look at it from outside, in a `with` block."""
        return _Looking(self)


class _Looking:
    """Looks at an application."""

    def __init__(self, served: Served) -> None:
        self.config = served.config()
        self.home = home_of(self.config)
        self._watchdog = Watchdog(_TIMEOUT, print)
        self.log = Log(served.app, settings=served.broker.client, watchdog=self._watchdog)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.log.close()
        self._watchdog.close()

    def drained(self) -> bool:
        """Tell whether all that is in the inputs is committed."""
        parts = [one for n in range(PARTITIONS) for one in self.home.partitions(n)]
        return all(self.log.committed(one) == self.log.bounds(one).end for one in parts)

    def ends(self, topic: str) -> dict[int, int]:
        """Give the ends of the partitions of a topic."""
        return {n: self.log.bounds(Partition(topic, n)).end for n in range(PARTITIONS)}

    def starts(self, topic: str) -> dict[int, int]:
        """Give the first offsets of the partitions of a topic."""
        return {n: self.log.bounds(Partition(topic, n)).start for n in range(PARTITIONS)}

    def shards(self) -> list[Shard]:
        """Restore all shards, as a service does."""

        def begin(number: int) -> Shard:
            raise AssertionError(number)

        snapshots = snapshots_of(self.config)
        restorer = Restorer(self.home, self.log, snapshots, begin, lambda _: False, say=print)
        return [restorer.restore(n, None, lambda: None).shard for n in range(PARTITIONS)]
