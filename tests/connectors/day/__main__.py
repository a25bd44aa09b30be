"""Live through a day in production, in minutes, and print what was found.

python -m tests.connectors.day FOLDER [--short|--long] [SEED]
"""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.connectors.day.application import (
    PROCESSES,
    DayApplication,
    sections,
)
from tests.connectors.day.books import Books, require_books
from tests.connectors.day.course import Cluster, Incident, Thread, incidents, lived_through
from tests.connectors.day.crowd import crowded
from tests.connectors.day.history import MINUTE, History, firing
from tests.connectors.day.hostile import Hostile
from tests.connectors.day.newcomer import Newcomer, replayed_csv
from tests.connectors.day.records import DayRecords
from tests.connectors.day.report import Report, error_lines
from tests.connectors.day.schemas import Schemas
from tests.connectors.day.take_over import taken_over
from tests.connectors.day.visitor import Server, Visitor
from tests.connectors.kafka.brokers import SCRIPT, Broker
from tests.connectors.kafka.chaos.campaign import verified
from tests.connectors.kafka.chaos.routed_judge import judge_routed
from tests.connectors.kafka.chaos.routed_tap import RoutedTap
from tests.connectors.kafka.chaos.traffic import Traffic
from tests.connectors.kafka.chaos.workers import Supervisor
from tests.connectors.kafka.soak.bucket import Bucket, free_port
from tests.connectors.kafka.soak.campaign import playing
from tests.connectors.serve.chaos.judge import followed

from abers.stream import accounts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.connectors.day.course import Phase
    from tests.connectors.kafka.chaos.routed_judge import Place, RoutedResult


class _Form(NamedTuple):
    """The length of a day.

    Attributes
    ----------
    step
        Seconds between two rounds of scrapes, each of which stands for a minute.
    warm_up, quiet
        Rounds before the first incident, and after each of them.
    rate
        Observations a second.
    tasks
        Partitions of the tasks, and those to which they are rescaled.
    whole
        Whether a broker dies, too, and an application takes over from another.
    """

    step: float
    warm_up: int
    quiet: int
    rate: float
    tasks: tuple[int, int]
    whole: bool


FORMS = {
    "--short": _Form(0.5, 30, 10, 40, (4, 6), whole=False),
    "--long": _Form(0.7, 120, 120, 60, (8, 12), whole=True),
}
_INPUTS = 3  # partitions of the inputs
_NAMES = 100_000  # models that the hostile producer makes up
_THREE = ("--nodes", "3", "--properties", "broker.session.timeout.ms=6000")


def main(folder: str, form: str = "--short", seed: str = "7") -> None:
    """Live through a day in one of the forms, and print what was found."""
    logging.disable(logging.CRITICAL)  # of clients, whose broker is gone now and then
    place = Path(folder).resolve()
    place.mkdir(exist_ok=True, parents=True)
    with ExitStack() as stack:
        report = _Day(FORMS[form], place, int(seed), stack).lived()
    print(report.table())  # noqa: T201 - the summary is what the day is for
    wrong = report.wrong()
    assert not wrong, "\n".join(wrong)
    if form == "--long":
        report.write()


@contextmanager
def _registry() -> Iterator[str]:
    """Run a schema registry in a `with` block, and return its URL."""
    script = SCRIPT.with_name("schema-registry")
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready, _, url = process.stdout.readline().strip().partition(" ")
        assert ready == "ready", "scripts/schema-registry has said why"
        try:
            yield url
        finally:
            process.terminate()


class _Day:
    """All that takes part in a day."""

    def __init__(self, form: _Form, folder: Path, seed: int, stack: ExitStack) -> None:
        self._form, self._folder, self._began = form, folder, time.monotonic()
        self._bucket = Bucket(folder)
        stack.callback(self._bucket.close)
        url = stack.enter_context(_registry())
        self._broker = Broker.started("--dir", folder / "broker", *_THREE)
        stack.callback(self._broker.stop)
        ports = {name: free_port() for name in PROCESSES}
        given = sections(self._bucket.url, url, MINUTE * form.step, partitions=form.tasks[0])
        self._application = DayApplication(self._broker, folder, ports, _INPUTS, **given)
        self._schemas = Schemas(url, self._application.topics)
        self._supervisor = Supervisor(self._application)
        stack.callback(self._supervisor.close)
        self._cluster = Cluster(self._application, self._supervisor)
        self._server = Server(folder, free_port())
        stack.callback(lambda: self._server.running.process.kill())  # noqa: PLW0108 - the last one
        self._traffic = Traffic(self._application, seed, 0)
        self._hostile = Hostile(self._application, self._schemas, seed, _NAMES)
        self._crowd: dict[Place, str] = {}
        self._taken_over: dict[str, int] = {}
        self._visitor = Visitor(self._server, seed)
        self._tap = RoutedTap(self._application)
        self._cluster.start()
        self._records = DayRecords(
            self._schemas, seed, form.rate, MINUTE * form.step, time.time_ns() // 1_000_000
        )
        self._history = History(ports | {"serve": self._server.port}, form.step)

    def lived(self) -> Report:
        """Live through the day, and return what was found."""
        form, history = self._form, self._history
        newcomer = Thread(lambda: replayed_csv(self._folder / "newcomer"))
        with playing(self._traffic, self._records), self._visitor.visiting():
            history.await_rounds(form.warm_up)
            newcomer.start()
            phases = [lived_through(one, history, form.quiet) for one in self._incidents()]
        self._traffic.close()
        self._cluster.until(lambda: not self._application.unrouted())
        self._cluster.until(lambda: not self._application.untaken())
        newcomer.join()
        history.close()
        assert isinstance(newcomer.result, Newcomer)
        fired = firing(history.samples, history.rounds, self._folder / "prometheus")
        return Report(
            phases,
            fired,
            self._checked(),
            Counter(self._poison().values()),
            self._visitor.statuses(),
            len(self._visitor.unplanned()),
            newcomer.result,
            self._memory(),
            self._disk(),
            self._most_snapshots(),
            self._errors(phases),
            self._taken_over,
            time.monotonic() - self._began,
        )

    def _incidents(self) -> Iterator[Incident]:
        return incidents(
            self._cluster,
            Thread(self._hostile.flood),
            self._records,
            self._schemas,
            self._server,
            self._bucket.proxy,
            self._form.tasks[1],
            whole=self._take_over if self._form.whole else None,
        )

    def _take_over(self) -> None:
        self._taken_over = taken_over(self._broker, self._folder / "other")

    # The checks

    def _checked(self) -> RoutedResult:
        """Assert that everything happened once, and that the accounts close."""
        application, cluster = self._application, self._cluster
        books, by_model = Books(application.scrape()), application.labels_by_model()
        cluster.stop()
        self._server.stop()
        tapped = self._tap.close()
        after = verified(application)
        self._bucket.download(application.snapshots())
        read = self._schemas.read
        bad = self._poison()
        crowd = crowded(application, tapped, bad, application.config().settings().max_models, read)
        self._crowd = dict.fromkeys(crowd, "too-many-models")
        ids = self._traffic.ids | self._hostile.ids | self._hostile.strangers
        found = judge_routed(application, tapped, ids, self._poison(), read=read)
        wrong = {name: (count, after[name]) for name, count in found.accounts.items()}
        assert not {name: pair for name, pair in wrong.items() if pair[0] != pair[1]}
        require_books(application, books, *cluster.before, after, tapped[2], by_model)
        self._require_served()
        return found

    def _poison(self) -> dict[Place, str]:
        """Return the places of all records that must become dead letters, with the reasons."""
        return self._traffic.poison | self._hostile.poison | self._crowd

    def _require_served(self) -> None:
        """Assert that the server has all that it answered, once."""
        ledger = self._visitor.ledger
        of = followed(self._server.state, self._server.config).accounts
        assert accounts.unbalanced(of) == []
        assert (of["predictions"], of["learned"]) == (len(ledger.predicted), len(ledger.labelled))

    def _memory(self) -> dict[str, float]:
        """Return the most MiB that each process took."""
        return {name: most / 2**20 for name, most in self._history.most.items()}

    def _disk(self) -> dict[str, float]:
        """Return the MiB of the bucket, the brokers, and the state of the server."""
        places = {
            "the bucket": self._application.snapshots(),
            "three brokers": self._folder / "broker",
            "the server": self._server.state,
        }
        return {name: _size(place) / 2**20 for name, place in places.items()}

    def _most_snapshots(self) -> int:
        """Return the most snapshots that a partition has."""
        files = self._application.snapshots().rglob("*.abers")
        return max(Counter(one.parent for one in files).values())

    def _errors(self, phases: list[Phase]) -> list[str]:
        """Return the lines of the logs that say that something is wrong."""
        workers = [*self._supervisor.retired, *self._supervisor.workers.values()]
        served = [one for one in self._server.said if "error" in one.lower()]
        return error_lines({one.log: one.said() for one in workers}.values(), phases) + served


def _size(place: Path) -> int:
    """Return the bytes that the files of a folder take: indexes of brokers are mostly holes."""
    return sum(512 * one.stat().st_blocks for one in place.rglob("*") if one.is_file())


if __name__ == "__main__":
    main(*sys.argv[1:])
