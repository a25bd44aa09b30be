"""Faults, drawn from a seed."""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from contextlib import contextmanager, suppress
from random import Random
from typing import TYPE_CHECKING

from kafka import KafkaProducer
from tests.connectors.kafka.brokers import PATIENCE, Broker
from tests.connectors.kafka.chaos.application import SESSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.connectors.kafka.chaos.application import Application
    from tests.connectors.kafka.chaos.workers import Supervisor, Worker

__all__ = ["Nemesis", "foreign_transaction", "spoil"]


@contextmanager
def foreign_transaction(application: Application) -> Iterator[None]:
    """Leave a transaction of another producer open on the changelog, and abort it at the end."""
    producer = KafkaProducer(
        **application.broker.client,
        transactional_id=f"{application.name}-foreign",
        transaction_timeout_ms=1000 * PATIENCE,
    )
    producer.init_transactions()
    producer.begin_transaction()
    for number in range(application.partitions):
        producer.send(application.topics["changelog"], b"foreign", partition=number)
    producer.flush()
    try:
        yield
    finally:
        producer.abort_transaction()
        producer.close()


def spoil(folder: Path) -> int:
    """Damage the newest snapshot of each task, and count them."""
    shards: dict[Path, list[Path]] = {}
    for one in folder.glob("*/*/*.abers"):
        shards.setdefault(one.parent, []).append(one)
    for found in shards.values():
        newest = max(found)
        blob = bytearray(newest.read_bytes())
        blob[len(blob) // 2] ^= 0xFF
        newest.write_bytes(blob)
    return len(shards)


class Nemesis:
    """Causes faults, and counts them.

    Parameters
    ----------
    application
        The application.
    supervisor
        Supervisor of its workers.
    storage
        Folder of its broker.
    seed
        Seed of the draws.
    """

    def __init__(
        self,
        application: Application,
        supervisor: Supervisor,
        storage: Path,
        seed: int,
    ) -> None:
        """Start with no faults."""
        self._application, self._supervisor = application, supervisor
        self._storage = storage
        self._random = Random(seed)  # noqa: S311 - not for secrets
        self.done: Counter[str] = Counter()

    def worker(self, named: str = "") -> Worker:
        """Draw a worker, of those whose names begin so."""
        workers = self._supervisor.workers.items()
        return self._random.choice([one for name, one in workers if name.startswith(named)])

    def kill(self, named: str = "") -> None:
        """Kill a worker, as a power failure does."""
        self.worker(named).kill()
        self.done["kills"] += 1
        self._wait(0.5, 3)

    def pause(self, named: str = "") -> None:
        """Stop a worker until its partitions are another's, and resume it."""
        worker = self.worker(named)
        worker.send(signal.SIGSTOP)
        self._wait(SESSION * 1.5, SESSION * 2)
        worker.send(signal.SIGCONT)
        self.done["pauses past the session"] += 1
        self._wait(0.5, 2)

    def stutter(self) -> None:
        """Stop a worker many times for a moment."""
        worker = self.worker()
        for _ in range(20):
            worker.send(signal.SIGSTOP)
            self._wait(0, 0.1)
            worker.send(signal.SIGCONT)
            self._wait(0, 0.1)
        self.done["short pauses"] += 20

    def grow_and_shrink(self) -> None:
        """Add a worker with a folder of its own, and remove it again."""
        self._supervisor.add("extra", leave_group_on_close=True)
        deadline = time.monotonic() + PATIENCE
        while not self._application.seated("extra"):
            assert time.monotonic() < deadline
            self._wait(0.1, 0.2)
        self._wait(0.5, 2)
        self._supervisor.retire("extra")
        self.done["workers added and stopped"] += 1
        self._wait(0.5, 1)

    def restart_broker(self) -> None:
        """Kill the broker, and start it again on its folder and port."""
        broker = self._application.broker
        assert broker.process is not None
        broker.process.kill()
        broker.process.wait()
        self._wait(0.5, 2)
        self._application.broker = Broker.started("--dir", self._storage)
        self.done["broker restarts"] += 1
        self._wait(2, 3)

    def fail_over(self) -> None:
        """Kill one of three nodes, and start it again; the next may die once it has all copies."""
        broker, node = self._application.broker, self._random.randint(1, 3)
        broker.kill(node)
        self._wait(1, 8)
        broker.start(node)
        deadline = time.monotonic() + PATIENCE
        while not broker.whole():
            assert time.monotonic() < deadline
            self._wait(0.1, 0.2)
        self.done["nodes killed"] += 1

    def hang(self) -> None:
        """Stop one of three nodes from answering for a while; its connections stay open."""
        broker, node = self._application.broker, self._random.randint(1, 3)
        broker.pause(node)
        self._wait(1, 8)
        broker.resume(node)
        self.done["nodes paused"] += 1
        self._wait(0.5, 2)

    def foreign(self) -> None:
        """Kill a worker, and have a foreign transaction open on the changelog as it restores."""
        with foreign_transaction(self._application):
            self.kill()
            self._wait(3, 5)
        self.done["foreign transactions"] += 1

    def corrupt(self) -> None:
        """Damage the newest snapshots of all workers, once there is one, and kill a worker."""
        deadline = time.monotonic() + PATIENCE
        while not any(self._application.folder.glob("snapshots-*/*/*/*.abers")):
            assert time.monotonic() < deadline
            self._supervisor.require_all()
            self._wait(0.1, 0.2)
        for folder in self._application.folder.glob("snapshots-*"):
            self.done["snapshots damaged"] += spoil(folder)
        self.kill()

    def without_folder(self) -> None:
        """Put a file in the place of a folder of snapshots for a while."""
        folder = self._application.snapshots(self.worker().instance)
        aside = folder.with_name(f"aside-{folder.name}")
        with suppress(FileNotFoundError):
            folder.rename(aside)
        folder.touch()
        self._wait(2, 4)
        folder.unlink()
        with suppress(FileNotFoundError):
            aside.rename(folder)
        self.done["folders unwritable"] += 1

    def full_disk(self) -> None:
        """Lay a disk of 4 kB over a folder of snapshots for a while, where that is allowed."""
        folder = self._application.snapshots(self.worker().instance)
        folder.mkdir(exist_ok=True)
        mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(folder)]
        if subprocess.run(mount, check=False, capture_output=True).returncode:
            return
        self._wait(3, 4)
        subprocess.run(["umount", "-l", folder], check=True)  # noqa: S607
        self.done["disks full"] += 1

    def short(self) -> list[Callable[[], None]]:
        """Return five kills and most other faults, in an order in which each meets work to do."""
        return [
            self.kill,
            self.grow_and_shrink,
            self.kill,
            self.pause,
            self.kill,
            self.corrupt,
            self.restart_broker,
            self.foreign,
        ]

    def failovers(self) -> list[Callable[[], None]]:
        """Return nine kills of nodes, with some of workers and a pause between them."""
        third = [self.fail_over, self.fail_over, self.fail_over]
        return [*third, self.kill, *third, self.pause, *third, self.kill]

    def brief(self) -> list[Callable[[], None]]:
        """Return three kills, after which the restored snapshot is not always the newest."""
        return [self.kill, self.foreign, self.corrupt]

    def long(self) -> list[Callable[[], None]]:
        """Return twenty kills and more, and all others several times, in a drawn order."""
        times = {
            self.kill: 16,
            self.pause: 3,
            self.stutter: 3,
            self.grow_and_shrink: 3,
            self.restart_broker: 2,
            self.foreign: 3,
            self.corrupt: 3,
            self.without_folder: 2,
            self.full_disk: 2,
        }
        faults = [fault for fault, many in times.items() for _ in range(many)]
        self._random.shuffle(faults)
        return faults

    def _wait(self, least: float, most: float) -> None:
        time.sleep(self._random.uniform(least, most))
