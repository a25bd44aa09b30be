"""Campaigns against an application with routers, which is rescaled while records flow."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from functools import partial
from http import HTTPStatus
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tests.connectors.kafka.brokers import PATIENCE
from tests.connectors.kafka.chaos import late_trim
from tests.connectors.kafka.chaos.campaign import (
    SECTIONS,
    client_of,
    flowing,
    stopped,
    verified,
)
from tests.connectors.kafka.chaos.elastic_application import ElasticApplication
from tests.connectors.kafka.chaos.nemesis import Nemesis
from tests.connectors.kafka.chaos.results import Result, record
from tests.connectors.kafka.chaos.routed_judge import Backlog, RoutedResult, judge_routed
from tests.connectors.kafka.chaos.routed_tap import RoutedTap
from tests.connectors.kafka.chaos.traffic import Traffic, with_any_keys
from tests.connectors.kafka.chaos.workers import Supervisor
from tests.connectors.kafka.clients import CLIENTS

from abers.stream import accounts
from abers_connectors.errors import UNAVAILABLE
from abers_connectors.kafka.topic_checks import create_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.connectors.kafka.brokers import Broker
    from tests.connectors.kafka.chaos.workers import Worker

__all__ = ["ELASTIC", "ElasticForm", "attacked_elastic"]

ROUTER, TASKS = "router", "tasks"  # stages; names of processes begin with them
_KILLED = Path(__file__).parents[1] / "killed_rescale.py"
_STOP = 30  # seconds, after which supervisors kill
_Fault: TypeAlias = str  # what, and of whom


class ElasticForm(NamedTuple):
    """The length of a campaign."""

    inputs: tuple[int, int]  # partitions, and those to which they grow
    tasks: Sequence[int]  # partitions of each generation
    routers: int
    workers: int
    observations: int
    rate: float
    faults: Sequence[Sequence[_Fault]]  # of each generation
    options: Sequence[str] = ()  # of the broker
    kafka: Mapping[str, object] = MappingProxyType({})  # more of that section


ELASTIC = {
    "elastic-short": ElasticForm(
        (2, 3),
        (4, 6, 3),
        1,
        2,
        4_000,
        1_500,
        [["kill router", "grow", "kill tasks"], ["kill router"], ["pause tasks"]],
        kafka={"leave_group_on_close": True},  # otherwise each rescale waits for the sessions
    ),
    "elastic": ElasticForm(
        (4, 7),
        (16, 32, 8),
        2,
        3,
        40_000,
        800,
        [
            ["kill router", "kill tasks", "kill node", "grow", "pause router", "kill tasks"],
            [
                "kill router",
                "pause tasks",
                "pause node",
                "kill tasks",
                "kill node",
                "kill router",
                "kill tasks",
            ],
            [
                "kill tasks",
                "pause router",
                "kill router",
                "pause node",
                "kill router",
                "pause tasks",
                "kill node",
                "kill tasks",
            ],
        ],
        ("--nodes", "3", "--properties", "broker.session.timeout.ms=6000"),
        {"transaction_timeout": "20s", "stall_timeout": "30s", "replication_factor": 3},
    ),
}


def attacked_elastic(
    form: ElasticForm, client: str, broker: Broker, storage: Path, seed: int
) -> None:
    """Attack an application, wait until all is read, and check the result."""
    folder = storage.with_name("elastic")
    folder.mkdir()
    kafka = {
        "route_by": "model",
        "partitions": form.tasks[0],
        "max_records": 200,
        **CLIENTS[client],
        **form.kafka,
    }
    limits = SECTIONS["limits"] | {"max_pending": 300}
    sections = SECTIONS | {"kafka": kafka, "limits": limits}
    application = ElasticApplication(broker, folder, form.inputs[0], **sections)
    create_topics(application.config())
    supervisor = Supervisor(application)
    try:
        _Campaign(form, application, supervisor, storage, seed).run()
    finally:
        supervisor.close()


class _Campaign:
    """A campaign of a form."""

    def __init__(
        self,
        form: ElasticForm,
        application: ElasticApplication,
        supervisor: Supervisor,
        storage: Path,
        seed: int,
    ) -> None:
        self._form, self._application, self._supervisor = form, application, supervisor
        self._nemesis = Nemesis(application, supervisor, storage, seed)
        self._random = Random(seed)  # noqa: S311 - not for secrets
        self._traffic = Traffic(application, seed, form.observations)
        self._traffic.left = with_any_keys(self._traffic.left, seed)
        self._backlogs: list[Backlog] = []
        self._stops: list[float] = []  # seconds that each process took

    def run(self) -> None:
        """Do all of it."""
        began, form = time.monotonic(), self._form
        tap = RoutedTap(self._application)
        share = 2 * form.observations // (sum(map(len, form.faults)) + len(form.tasks))
        for number, faults in enumerate(form.faults):
            if number:
                self._flow(share, partial(self._rescale, form.tasks[number]))
                generation = self._application.generation().number
                self._backlogs.append(Backlog(generation, self._application.ends()))
            self._start()
            for fault in faults:
                self._flow(share, partial(self._at_work, self._fault(fault)))
        self._traffic.play(3 * form.observations, form.rate)  # what is left
        self._traffic.close()
        self._until(lambda: not self._application.unrouted())
        self._stop()
        traffic = self._traffic
        found = judge_routed(
            self._application, tap.close(), traffic.ids, traffic.poison, self._backlogs
        )
        self._report(found, time.monotonic() - began)

    def _flow(self, share: int, fault: Callable[[], None]) -> None:
        flowing(self._traffic, share, self._form.rate, fault)

    # Faults

    def _fault(self, name: _Fault) -> Callable[[], None]:
        what, _, whom = name.partition(" ")
        if whom == "node":
            return {"kill": self._nemesis.fail_over, "pause": self._nemesis.hang}[what]
        if name == "grow":
            return partial(self._application.grow, self._form.inputs[1])
        return partial({"kill": self._nemesis.kill, "pause": self._nemesis.pause}[what], whom)

    def _start(self) -> None:
        counts = {ROUTER: self._form.routers, TASKS: self._form.workers}
        for stage, count in counts.items():
            for number in range(count):
                self._supervisor.add(
                    f"{stage}-{number}", module=late_trim.__name__, words=["--stage", stage]
                )

    def _at_work(self, fault: Callable[[], None]) -> None:
        """Cause a fault when all processes are ready."""
        for name in [*self._supervisor.workers]:
            self._until(partial(_is_ready, self._supervisor.workers[name]))
        fault()

    def _stop(self) -> None:
        """Stop the routers, and then the tasks once they have taken all that was routed."""
        self._retire(ROUTER)
        self._until(lambda: not self._application.untaken())
        self._retire(TASKS)

    def _retire(self, stage: str) -> None:
        for name in [one for one in self._supervisor.workers if one.startswith(stage)]:
            self._stops.append(self._supervisor.retire(name))

    def _until(self, done: Callable[[], bool]) -> None:
        """Wait for a condition, while no process has ended finally."""
        deadline = time.monotonic() + PATIENCE
        while not done():
            self._supervisor.require_all()
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def _rescale(self, partitions: int) -> None:
        """Stop all processes, and change the number of partitions; the first attempt is killed."""
        self._stop()
        config, count = str(self._application.written()), str(partitions)
        step = self._random.randint(3, 2 + 2 * partitions)  # all are before the offsets
        self._until(partial(_killed_at, str(step), config, count))
        stopped("state", "rescale", config, "--partitions", count)
        self._nemesis.done["rescales killed and repeated"] += 1

    # The result

    def _report(self, found: RoutedResult, seconds: float) -> None:
        """Print and record what was found, and check what the processes say of it."""
        supervisor, done, traffic = self._supervisor, self._nemesis.done, self._traffic
        exits = [code for one in supervisor.retired for code in one.exits]
        counted = ", ".join(f"{count} {what}" for what, count in sorted(done.items()))
        print(  # noqa: T201 - the summary is what the suite is for
            f"\nchaos: {counted}"
            f"; exits { ({code: exits.count(code) for code in sorted({*exits})}) }"
            f"\nchaos: {traffic.count:,} records written ({len(traffic.poison):,} no events), "
            f"{found.records:,} routed and applied once (by generation {found.routed}), "
            f"{found.predictions:,} predictions, {found.dead_letters:,} dead letters, lost 0, "
            f"duplicates 0, state equal True, {seconds:.0f} s"
            f"\nchaos: late by {found.latest:,} ms at most, "
            f"and in a backlog by {found.latest_in_backlog:,}"
            f"\nchaos: {', '.join(one.sentence(found.accounts) for one in accounts.ACCOUNTS)}"
        )
        kafka = self._application.config().kafka
        assert kafka is not None
        killed = (
            exits.count(-signal.SIGKILL)
            + done["nodes killed"]
            + done["rescales killed and repeated"]
        )
        record(
            Result(
                f"any keys, {found.routed}: {counted}",
                client_of(kafka),
                killed,
                0,
                0,
                states_equal=True,
                unavailable=exits.count(UNAVAILABLE),
            )
        )
        assert found.records == traffic.count
        assert len(found.routed) == len(self._form.tasks)
        total = verified(self._application)
        assert {name: total[name] for name in found.accounts} == found.accounts
        # One that ends by itself while it is stopped takes no signals any more.
        assert {*exits} <= {0, UNAVAILABLE, -signal.SIGKILL, -signal.SIGTERM}
        assert max(self._stops) < _STOP
        if self._form.routers == 1:
            assert found.latest_in_backlog == 0


def _is_ready(worker: Worker) -> bool:
    return worker.readyz() == HTTPStatus.OK


def _killed_at(step: str, config: str, partitions: str) -> bool:
    """Kill `abers state rescale` at a step; return False if groups still have members."""
    words = [sys.executable, str(_KILLED), step, config, partitions]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    if "the group of" in ran.stderr:
        return False
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    return True
