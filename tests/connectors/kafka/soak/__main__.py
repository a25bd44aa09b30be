"""Run the service for long, on a broker and a bucket of one's own, with a fault now and then.

python -m tests.connectors.kafka.soak {short|long} FOLDER [SEED]
"""

from __future__ import annotations

import logging
import sys
import time
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.connectors.kafka.brokers import Broker
from tests.connectors.kafka.chaos.application import Application
from tests.connectors.kafka.chaos.campaign import drained
from tests.connectors.kafka.chaos.judge import judge
from tests.connectors.kafka.chaos.tasks import BINARY
from tests.connectors.kafka.chaos.traffic import LIMIT, Traffic
from tests.connectors.kafka.chaos.workers import Supervisor
from tests.connectors.kafka.clients import CLIENTS
from tests.connectors.kafka.soak.bucket import Bucket, free_port
from tests.connectors.kafka.soak.campaign import Course, playing
from tests.connectors.kafka.soak.faults import faults
from tests.connectors.kafka.soak.memory import slope
from tests.connectors.kafka.soak.overdue import longest_overdue
from tests.connectors.kafka.soak.prometheus import Prometheus
from tests.connectors.kafka.soak.records import Records
from tests.connectors.kafka.soak.report import Report

from abers_connectors.errors import UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.connectors.kafka.soak.campaign import Phase
    from tests.connectors.kafka.soak.memory import Slope


class _Form(NamedTuple):
    """The length of a soak.

    Attributes
    ----------
    unit
        Seconds of the unit of time, which stands for the hour of the longest windows of the rules.
    quiet
        Length of each quiet time, in units.
    step
        Seconds between two scrapes.
    settled
        Units after which the memory of a process has settled.
    most_growth
        Largest growth of memory, in MiB an hour.
    """

    unit: float
    quiet: float
    step: float
    settled: float
    most_growth: float


FORMS = {
    "short": _Form(36, 0.5, 1.0, 1.0, 1_000),
    "long": _Form(255, 1.0, 2.0, 4.0, 16),
}
_RATE = 80  # observations a second
_PAST = 16  # units before the soak: then as many models retire as come, and the state has its size
_PARTS = 4  # of a unit of the past that are read at once: models retire only where a batch begins
_WORKERS = ("0", "1")
_SNAPSHOT_EVERY = 300  # records; the emptiest partition has as many in a minute
_MOST_OVERDUE = 20  # seconds of a snapshot in quiet times
_MOST_RECOVERY = 180  # seconds after a fault
_HOUR = 3600


class _Soaked(Application):
    """An application whose workers keep their ports, so that they are scraped after a restart."""

    ports: dict[str, int]

    def configured(self, instance: str = "0", **kafka: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401
        """Return the sections of a worker's configuration."""
        return super().configured(instance, **kafka) | {"http": {"port": self.ports[instance]}}


def _sections(bucket: Bucket, unit: float) -> dict[str, dict[str, Any]]:
    """Return the sections of the configuration: all that is kept has a bound that is reached."""
    return {
        **BINARY.sections,
        "input": {"max_record_bytes": LIMIT},
        # Models retire once there are `max_models`, for which the records of the past suffice.
        "limits": {
            "label_timeout": f"{3 * unit:.0f}s",
            "dedup_ttl": f"{unit:.0f}s",
            "retire_after": f"{3 * unit:.0f}s",  # longer than labels stay away
            "max_models": 40,  # a partition has 24 that are not silent, and 3 more a unit
        },
        "kafka": CLIENTS["librdkafka"],
        "state": {"path": bucket.url, "snapshot_every": _SNAPSHOT_EVERY},
    }


def main(form: str, folder: str, seed: str = "7") -> None:
    """Run a soak in one of the forms, print what was found, and write it into the page."""
    logging.disable(logging.CRITICAL)  # of clients, whose broker is gone now and then
    one, place = FORMS[form], Path(folder).resolve()
    with ExitStack() as stack:
        report = _soaked(one, place, int(seed), stack)
    print(report.table())  # noqa: T201 - the summary is what the soak is for
    if form == "long":
        report.write()
    wrong = report.wrong(one.most_growth, _MOST_OVERDUE, _MOST_RECOVERY)
    assert not wrong, "\n".join(wrong)


def _soaked(form: _Form, folder: Path, seed: int, stack: ExitStack) -> Report:
    """Run a soak, and check that all happened once."""
    bucket, storage = Bucket(folder), folder / "broker"
    stack.callback(bucket.close)
    broker = Broker.started("--dir", storage)
    application = _Soaked(broker, folder, 3, **_sections(bucket, form.unit))
    stack.callback(lambda: application.broker.stop())  # noqa: PLW0108 - the one of then
    application.ports = {name: free_port() for name in _WORKERS}
    supervisor = Supervisor(application)
    stack.callback(supervisor.close)
    for name in _WORKERS:
        supervisor.add(name).ready()
    traffic, now = Traffic(application, seed, 0), time.time_ns() // 1_000_000
    began, part = now - round(_PAST * form.unit * 1000), round(form.unit * 1000 / _PARTS)
    records = Records(seed, _RATE, form.unit, began)
    for until in range(began, now, part):
        traffic.write(records.due(until))
        drained(application, look=supervisor.require_all)
    with playing(traffic, records):
        prometheus = Prometheus(
            folder / "prometheus", application.ports.values(), _HOUR / form.unit, form.step
        )
        stack.callback(prometheus.close)
        course = Course(bucket, prometheus, _SNAPSHOT_EVERY)
        course.quiet(form.unit)
        for fault in faults(application, supervisor, storage, bucket.proxy, records):
            course.fault(fault, fault.units * form.unit)
            course.quiet(form.quiet * form.unit)
    traffic.close()
    drained(application, look=supervisor.require_all)
    slopes = _slopes(prometheus, course.phases, form)
    overdue = _overdue(prometheus, course.phases)
    for name in _WORKERS:
        supervisor.retire(name)
    bucket.download(folder / "snapshots-bucket")
    checked = judge(application, traffic.ids, traffic.poison)
    assert checked.records == traffic.count
    exits = {code for one in supervisor.retired for code in one.exits}
    assert exits <= {0, UNAVAILABLE, -9}, exits
    return Report(course.phases, slopes, overdue, checked)


def _slopes(prometheus: Prometheus, phases: Sequence[Phase], form: _Form) -> list[Slope]:
    """Return the growth of the memory of each worker in quiet times, once it has settled.

    A fault may hold memory for as long as it lasts, such as the parts of a slow upload. A process
    that had the partitions of another keeps the memory that they took.
    """
    still = [*takewhile(lambda one: one.fault is None or not one.fault.moves, phases)]
    begin, end = still[0].begin + form.settled * form.unit, still[-1].end
    memory = prometheus.series("process_resident_memory_bytes", begin, end)
    quiet = [(one.begin, one.end) for one in still if one.fault is None]
    return [
        slope([one for one in samples if any(a <= one[0] <= b for a, b in quiet)])
        for _, samples in sorted(memory, key=lambda one: one[0]["instance"])
    ]


def _overdue(prometheus: Prometheus, phases: Sequence[Phase]) -> float:
    """Return the most seconds for which a snapshot was overdue in a quiet time."""
    quiet = [one for one in phases if one.fault is None]
    behind = (prometheus.series("abers_records_to_replay", one.begin, one.end) for one in quiet)
    return max(
        longest_overdue((samples for _, samples in found), _SNAPSHOT_EVERY) for found in behind
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
