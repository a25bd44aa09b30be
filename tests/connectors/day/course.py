"""What happens in a day, in order, and the alerts that each of it must raise, or may."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tests.connectors.day.application import PROCESSES
from tests.connectors.kafka.brokers import PATIENCE
from tests.connectors.kafka.chaos import late_trim
from tests.connectors.kafka.chaos.campaign import stopped, verified

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.connectors.day.application import DayApplication
    from tests.connectors.day.history import Firing, History
    from tests.connectors.day.records import DayRecords
    from tests.connectors.day.schemas import Schemas
    from tests.connectors.day.visitor import Server
    from tests.connectors.kafka.chaos.workers import Supervisor, Worker
    from tests.connectors.kafka.soak.bucket import Proxy

__all__ = [
    "Cluster",
    "Incident",
    "Phase",
    "Thread",
    "incidents",
    "lived_through",
    "of_phase",
    "wrong_alerts",
]

# Its threshold is in seconds that pass, so it may be true at any time on a busy machine.
_OF_THE_MACHINE = "AbersSlowCommits"
_MOVED = frozenset({"AbersNoCommits", "AbersSnapshotsLate"})
_STOPPED = _MOVED | {"AbersDown", "AbersPartitionsUnserved", "AbersNotServing"}
_ALL_STOPPED = _STOPPED | {"AbersGone", "AbersNothingAssigned"}


class Incident(NamedTuple):
    """What happens.

    Parameters
    ----------
    name
        In words.
    minutes
        How long it lasts at least, in rounds of scrapes.
    alert
        The alert that it must raise, if any.
    also
        Further alerts that are true as well where it takes long.
    begin, end
        Begin it, and end it.
    tail
        Rounds after its end in which an alert may still begin for it.
    errors
        Whether clients of the brokers may say that something is wrong.
    """

    name: str
    minutes: int
    alert: str | None
    also: frozenset[str]
    begin: Callable[[], object]
    end: Callable[[], object]
    tail: int = 5
    errors: bool = False


class Phase(NamedTuple):
    """An incident, the rounds in which it began and ended, and the times of both since 1970."""

    incident: Incident
    begin: int
    end: int
    times: tuple[float, float]


class Thread:
    """A function in a thread of its own, whose error comes at `join`."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.result: object = None
        self._work = work
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start it."""
        self._thread.start()

    def join(self) -> None:
        """Wait for its end."""
        self._thread.join()
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:  # noqa: BLE001 - raised by `join`
            self._failed = error


class Cluster:
    """The processes of the application.

    Attributes
    ----------
    before
        The accounts of the state when the tasks were rescaled, and the ends of the outputs.
    """

    def __init__(self, application: DayApplication, supervisor: Supervisor) -> None:
        self.application, self.supervisor = application, supervisor
        self.before: tuple[dict[str, int], dict[tuple[str, int], int]] = ({}, {})

    def start(self) -> None:
        """Start all processes, and wait until they serve."""
        for name, stage in PROCESSES.items():
            self.supervisor.add(name, module=late_trim.__name__, words=["--stage", stage])
        for name in PROCESSES:
            self.supervisor.workers[name].ready()

    def replace(self) -> None:
        """Stop each process in order, and start the next version of it, one after another."""
        for name in PROCESSES:
            worker = self.supervisor.workers[name]
            _end(worker)
            worker.start()
            worker.wanted = True
            worker.ready()

    def stop(self) -> None:
        """Stop the router, and the tasks once they have taken all that was routed."""
        self._retire("router")
        self.until(lambda: not self.application.untaken())
        self._retire("tasks")

    def rescale(self, partitions: int) -> None:
        """Stop all processes, change the number of partitions, and start them."""
        self.stop()
        application = self.application
        config = str(application.written())
        self.before = verified(application), application.output_ends()
        stopped("state", "rescale", config, "--partitions", str(partitions))
        application.counts[application.generation().number] = partitions
        self.start()

    def until(self, done: Callable[[], object]) -> None:
        """Wait for a condition, while no process has ended finally."""
        deadline = time.monotonic() + PATIENCE
        while not done():
            self.supervisor.require_all()
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def _retire(self, stage: str) -> None:
        for name, its in PROCESSES.items():
            if its == stage:
                self.supervisor.retire(name)


def _end(worker: Worker) -> None:
    """Stop a process in order, which nobody starts again."""
    worker.wanted = False
    worker.process.terminate()
    assert worker.ended() == 0, worker.said()[-2_000:]


def incidents(  # noqa: PLR0913, PLR0917 - the parts of a day
    cluster: Cluster,
    hostile: Thread,
    records: DayRecords,
    schemas: Schemas,
    server: Server,
    proxy: Proxy,
    partitions: int,
    *,
    whole: Callable[[], object] | None,
) -> Iterator[Incident]:
    """Yield what happens, in order.

    Parameters
    ----------
    cluster, hostile, records, schemas, server, proxy
        Processes, the flood of the hostile producer, the records and their schemas, the server of
        HTTP, and the proxy before the bucket.
    partitions
        Number of partitions to which the tasks are rescaled.
    whole
        Lets another application take over from one, in a whole day, where a broker dies, too.
    """
    nothing = frozenset[str]()

    def drift(*, drifting: bool) -> None:
        records.drifting = drifting

    yield Incident("all processes are replaced in turn", 1, None, _STOPPED, cluster.replace, _pass)
    if whole is not None:
        yield Incident("an application takes over from another", 1, None, nothing, whole, _pass)
        broker = cluster.application.broker
        kill, start = partial(broker.kill, 2), partial(broker.start, 2)
        name = "a broker dies, and comes back"
        yield Incident(name, 20, None, _ALL_STOPPED, kill, start, tail=30, errors=True)
    rescale = partial(cluster.rescale, partitions)
    name = f"the tasks are rescaled to {partitions} partitions"
    yield Incident(name, 1, None, _ALL_STOPPED, rescale, _pass)
    yield Incident(
        "a hostile producer",
        20,
        "AbersDeadLetters",
        frozenset({"AbersSnapshotsLate"}),
        hostile.start,
        hostile.join,
        tail=20,
    )
    yield Incident("the schema has one more field", 5, None, nothing, schemas.evolve, _pass)
    gone = frozenset({"AbersDown", "AbersGone"})
    yield Incident("the server of HTTP is replaced", 1, None, gone, server.restart, _pass)
    yield Incident(
        "the scores of a model drift",
        40,
        "AbersPredictionsChanged",
        frozenset({"AbersServedOff", "AbersMiscalibrated"}),
        partial(drift, drifting=True),
        partial(drift, drifting=False),
        tail=30,
    )
    yield Incident(
        "the bucket fails",
        90,
        "AbersSnapshotsFail",
        frozenset({"AbersSnapshotsLate"}),
        partial(proxy.inject, "refuse"),
        partial(proxy.inject, None),
    )


def _pass() -> None:
    """Do nothing: what happens ends by itself."""


def lived_through(incident: Incident, history: History, quiet: int) -> Phase:
    """Let something happen for its time, and then nothing for some rounds."""
    began, since = history.rounds, time.time()
    incident.begin()
    history.await_rounds(incident.minutes)
    incident.end()
    phase = Phase(incident, began, history.rounds, (since, time.time()))
    print(f"day: {incident.name}: rounds {began} to {phase.end}", flush=True)  # noqa: T201
    history.await_rounds(quiet + incident.tail)
    return phase


def wrong_alerts(phases: list[Phase], fired: list[Firing]) -> list[str]:
    """Return what is wrong with the alerts, a sentence each.

    An alert belongs to an incident if it begins while that lasts, or in its tail.
    """
    found = [
        f"{phase.incident.name}: no {phase.incident.alert}"
        for phase in phases
        if phase.incident.alert not in {None, *(one.alert for one in of_phase(phase, fired))}
    ]
    for one in fired:
        near = [each for each in phases if one in of_phase(each, [one])]
        if one.alert != _OF_THE_MACHINE and not any(
            one.alert in each.incident.also | {each.incident.alert} for each in near
        ):
            found.append(f"{one}: nothing explains it")
    return found


def of_phase(phase: Phase, fired: list[Firing]) -> list[Firing]:
    """Return the alerts that began in an incident, or in its tail."""
    last = phase.end + phase.incident.tail
    return [one for one in fired if phase.begin <= one.begin <= last]
