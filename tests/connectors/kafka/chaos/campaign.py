"""Campaigns of faults while records flow, and the check of the result."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

from tests.connectors.kafka.brokers import PATIENCE
from tests.connectors.kafka.chaos.faulty import ENDS, PASSES
from tests.connectors.kafka.chaos.judge import committed, judge
from tests.connectors.kafka.chaos.results import Result, record
from tests.connectors.kafka.chaos.tasks import BINARY
from tests.connectors.kafka.chaos.traffic import Traffic
from tests.connectors.kafka.clients import CLIENTS
from typer.testing import CliRunner

from abers.stream import accounts
from abers_connectors.cli.main import app
from abers_connectors.errors import FAILURE, UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.connectors.kafka.chaos.application import Application
    from tests.connectors.kafka.chaos.judge import CheckResult
    from tests.connectors.kafka.chaos.nemesis import Nemesis
    from tests.connectors.kafka.chaos.tasks import Task
    from tests.connectors.kafka.chaos.workers import Supervisor

    from abers_connectors.config.sections import KafkaSection

__all__ = ["SECTIONS", "attacked", "client_of", "drained", "flowing", "stopped", "verified"]

SECTIONS: dict[str, dict[str, Any]] = {
    **BINARY.sections,
    "input": {"max_record_bytes": 2_000},
    "limits": {"label_timeout": "30s", "max_pending": 5_000},
}
"""Sections with which observations time out, are evicted and are too many at times."""


def drained(
    application: Application, within: float = PATIENCE, look: Callable[[], None] = lambda: None
) -> None:
    """Wait until everything is committed; checks that run meanwhile may raise to give up."""
    deadline = time.monotonic() + within
    while True:
        found = committed(application)
        if all(offset == end for offset, end in found.values()):
            return
        look()
        assert time.monotonic() < deadline, found
        time.sleep(0.5)


def flowing(traffic: Traffic, count: int, rate: float, fault: Callable[[], None]) -> None:
    """Cause faults while a number of records is written."""
    failed: list[BaseException] = []

    def play() -> None:
        try:
            traffic.play(count, rate)
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    thread = threading.Thread(target=play)
    thread.start()
    fault()
    thread.join()
    if failed:
        raise failed[0]


def attacked(  # noqa: PLR0913 - an attack's parts
    application: Application,
    supervisor: Supervisor,
    nemesis: Nemesis,
    faults: Sequence[Callable[[], None]],
    *,
    observations: int,
    rate: float,
    seed: int,
    task: Task = BINARY,
) -> CheckResult:
    """Cause faults while records flow, wait until all is read, and check the result.

    Parameters
    ----------
    application, supervisor, nemesis
        The application, the supervisor of its workers, and the source of the faults.
    faults
        The faults, in order.
    observations
        Number of observations, without their labels.
    rate
        Maximum number of records a second.
    seed
        Seed of the records.
    task
        Task of the application.
    """
    began = time.monotonic()
    traffic = Traffic(application, seed, observations, task)
    share = 2 * observations // len(faults)
    for fault in faults:
        flowing(traffic, share, rate, fault)
    traffic.play(3 * observations, rate)  # what is left
    traffic.close()
    drained(application, look=supervisor.require_all)
    stopped = {name: supervisor.retire(name) for name in [*supervisor.workers]}
    found = judge(application, traffic.ids, traffic.poison, task)
    exits = [code for one in supervisor.retired for code in one.exits]
    passed, ended = (
        sum(one.said().count(what) for one in supervisor.retired) for what in (PASSES, ENDS)
    )
    nemesis.done["transient errors"] += passed + ended
    counted = ", ".join(f"{count} {what}" for what, count in sorted(nemesis.done.items()))
    print(  # noqa: T201 - the summary is what the suite is for
        f"\nchaos: {counted}"
        f"; exits { ({code: exits.count(code) for code in sorted({*exits})}) }"
        f"\nchaos: {traffic.count:,} records written ({len(traffic.poison):,} no events), "
        f"{found.records:,} applied once, {found.predictions:,} predictions, "
        f"{found.dead_letters:,} dead letters, lost {found.lost}, "
        f"duplicates {found.duplicates}, state equal {found.states_equal} "
        f"({found.restored_from_snapshots} times from snapshots), "
        f"{time.monotonic() - began:.0f} s"
    )
    config = application.config()
    assert config.kafka is not None
    killed = exits.count(-9) + nemesis.done["nodes killed"] + nemesis.done["broker restarts"]
    record(
        Result(
            f"{config.settings().task}: {counted}",
            client_of(config.kafka),
            killed,
            found.lost,
            found.duplicates,
            found.states_equal,
            exits.count(UNAVAILABLE),
        )
    )
    assert found.records == traffic.count
    _accounted(application, found.accounts)
    assert {*exits} <= {0, FAILURE, UNAVAILABLE, -9}
    assert exits.count(FAILURE) <= ended
    assert max(stopped.values()) < 10
    return found


def _accounted(application: Application, of: dict[str, int]) -> None:
    """Assert that `abers state verify` says the same, and that there was something to lose."""
    assert verified(application) == of
    kinds = ("duplicate_observations", "duplicate_labels", "late_labels", "undecodable")
    assert min(of[name] for name in kinds) > 0, of
    print(f"chaos: {', '.join(one.sentence(of) for one in accounts.ACCOUNTS)}")  # noqa: T201


def verified(application: Application) -> dict[str, int]:
    """Return the accounts that `abers state verify` finds."""
    found = json.loads(stopped("state", "verify", str(application.written()), "--json"))
    total: dict[str, int] = found["total"]
    return total


def stopped(*words: str) -> str:
    """Run a command once the sessions of the workers have ended, and return what it says."""
    deadline = time.monotonic() + PATIENCE
    while True:
        ran = CliRunner().invoke(app, words)
        if "the group of" not in ran.stderr:
            break
        assert time.monotonic() < deadline, ran.stderr
        time.sleep(0.5)
    assert ran.exit_code == 0, ran.stderr
    return ran.stdout


def client_of(kafka: KafkaSection) -> str:
    """Return the name of a client, as `CLIENTS` has it."""
    keys: dict[str, str] = {"client": kafka.client}
    if kafka.group_protocol != "classic":
        keys["group_protocol"] = kafka.group_protocol
    return next(name for name, its in CLIENTS.items() if its == keys)
