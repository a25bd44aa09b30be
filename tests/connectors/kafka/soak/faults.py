"""The faults of a soak, each with the alert that it must raise."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tests.connectors.kafka.brokers import Broker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.kafka.chaos.application import Application
    from tests.connectors.kafka.chaos.workers import Supervisor, Worker
    from tests.connectors.kafka.soak.bucket import Kind, Proxy
    from tests.connectors.kafka.soak.records import Records

__all__ = ["Fault", "faults"]


class Fault(NamedTuple):
    """A fault.

    Parameters
    ----------
    name
        What happens.
    units
        How long it lasts, in units of time.
    alert
        The alert that it must raise.
    also
        Further alerts that it may raise, for they are true as well.
    begin, end
        Begin it, and end it.
    moves
        Whether partitions move to another process, or are restored.
    """

    name: str
    units: float
    alert: str
    also: frozenset[str]
    begin: Callable[[], None]
    end: Callable[[], None]
    moves: bool = False


def faults(
    application: Application,
    supervisor: Supervisor,
    storage: Path,
    proxy: Proxy,
    records: Records,
) -> list[Fault]:
    """Return the faults in their order.

    Memory is measured in processes that have their full states for long: first comes the fault
    whose waiting observations are the most that the state ever holds, and last those that move
    partitions. A restored state is compact, and grows until each of its models was replaced.

    Parameters
    ----------
    application, supervisor
        The application, and the supervisor of its workers.
    storage
        Folder of its broker.
    proxy
        Proxy in front of its bucket.
    records
        The records that are written to it.
    """
    worker = supervisor.workers["0"]
    fails, late = "AbersSnapshotsFail", "AbersSnapshotsLate"

    def kill_broker() -> None:
        process = application.broker.process
        assert process is not None
        process.kill()
        process.wait()

    def start_broker() -> None:
        application.broker = Broker.started("--dir", storage)

    def stop_labels(*, stopped: bool) -> None:
        records.labels_stopped = stopped

    moving = frozenset(
        {"AbersNoCommits", "AbersAborts", "AbersSlowCommits", "AbersRebalances", late}
    )

    gone = frozenset({"AbersPartitionsUnserved"})

    def of_bucket(name: str, kind: Kind, units: float, alert: str, *also: str) -> Fault:
        begin, end = partial(proxy.inject, kind), partial(proxy.inject, None)
        return Fault(name, units, alert, frozenset(also), begin, end)

    return [
        Fault(
            "no labels come, and then all at once",
            1.4,
            "AbersNoLabels",
            frozenset(),
            partial(stop_labels, stopped=True),
            partial(stop_labels, stopped=False),
        ),
        of_bucket("the bucket refuses connections", "refuse", 1.4, fails, late),
        of_bucket("the bucket hangs", "hang", 1.75, fails, late),
        of_bucket("the bucket is slow", "slow", 1.4, late),
        Fault(
            "a process is killed, and stays away",
            0.4,
            "AbersDown",
            moving | gone,
            partial(_take_away, worker),
            partial(_bring_back, worker),
            moves=True,
        ),
        Fault(
            "the broker is killed, and stays away",
            0.6,
            "AbersNothingAssigned",
            moving | gone | {"AbersDown", "AbersNotServing", "AbersGone", "AbersRestarts"},
            kill_broker,
            start_broker,
            moves=True,
        ),
    ]


def _take_away(worker: Worker) -> None:
    """Kill a worker, which nobody starts again."""
    worker.wanted = False
    worker.kill()
    worker.ended()


def _bring_back(worker: Worker) -> None:
    """Start a worker again."""
    worker.start()
    worker.wanted = True
