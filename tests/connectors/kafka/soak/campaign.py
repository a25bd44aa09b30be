"""The course of a soak: faults in turn with quiet between them, and what is seen meanwhile."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tests.connectors.kafka.brokers import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.connectors.kafka.chaos.traffic import Sent, Traffic
    from tests.connectors.kafka.soak.bucket import Bucket
    from tests.connectors.kafka.soak.faults import Fault
    from tests.connectors.kafka.soak.prometheus import Prometheus

__all__ = ["Course", "Phase", "playing"]

_CHUNK = 0.25  # seconds of records that are written together
_MOMENT = 1.0  # seconds between two looks at the bucket
_PAST = 5.0  # seconds without an alert after which all is well


class Due(Protocol):
    """Records that are due at their times, such as `Records`."""

    def due(self, now: int) -> list[Sent]:
        """Return the records up to a time that were not returned yet."""
        ...

    def rest(self, now: int) -> list[Sent]:
        """Return the labels that are still to come."""
        ...


class Phase(NamedTuple):
    """A fault, or a quiet time.

    Attributes
    ----------
    fault
        The fault; None in a quiet time.
    begin, end, recovered
        Its times in seconds since 1970; a quiet time has nothing to recover from.
    oldest
        The largest age of the newest snapshot of a partition, in seconds.
    alerts
        The alerts that fired.
    """

    fault: Fault | None
    begin: float
    end: float
    recovered: float
    oldest: float
    alerts: frozenset[str]

    def __str__(self) -> str:
        """Return a line."""
        name = "quiet" if self.fault is None else self.fault.name
        return (
            f"{name}: {self.end - self.begin:.0f} s, recovered {self.recovered - self.end:.0f} s "
            f"later, oldest snapshot {self.oldest:.0f} s, alerts {', '.join(sorted(self.alerts))}"
        )


@contextmanager
def playing(traffic: Traffic, records: Due) -> Iterator[None]:
    """Write records when they are due, in a thread, until the end of a `with` block."""
    ended = threading.Event()

    def play() -> None:
        while not ended.wait(_CHUNK):
            traffic.write(records.due(time.time_ns() // 1_000_000))
        traffic.write(records.rest(time.time_ns() // 1_000_000))

    with ThreadPoolExecutor(1) as pool:
        played = pool.submit(play)
        try:
            yield
        finally:
            ended.set()
            played.result()


class Course:
    """Lets time pass, with a fault or in quiet, and watches snapshots and alerts.

    Parameters
    ----------
    bucket
        The bucket of the snapshots.
    prometheus
        The Prometheus that evaluates the rules.
    every
        Number of records after which a snapshot is due.

    Attributes
    ----------
    phases
        The past, in order.
    """

    def __init__(self, bucket: Bucket, prometheus: Prometheus, every: int) -> None:
        """Begin."""
        self._bucket, self._prometheus, self._every = bucket, prometheus, every
        self._oldest = 0.0
        self.phases: list[Phase] = []

    def quiet(self, seconds: float) -> None:
        """Let time pass in quiet."""
        began = time.time()
        self._pass(seconds)
        self._add(None, began, time.time())

    def fault(self, fault: Fault, seconds: float) -> None:
        """Cause a fault for some time, and wait until all is well again."""
        began = time.time()
        fault.begin()
        self._pass(seconds)
        fault.end()
        ended = time.time()
        while not self._well(ended) and time.time() < ended + PATIENCE:
            pass
        self._add(fault, began, ended)

    def _add(self, fault: Fault | None, began: float, ended: float) -> None:
        now = time.time()
        alerts = self._prometheus.firing(began, now)
        phase = Phase(fault, began, ended, now, self._oldest, alerts)
        print(f"soak: {phase}", flush=True)  # noqa: T201 - an hour is long
        self.phases.append(phase)
        self._oldest = 0.0

    def _pass(self, seconds: float) -> None:
        until = time.time() + seconds
        while time.time() < until:
            self._age()

    def _well(self, since: float) -> bool:
        """Return whether no alert fires, and each partition has a snapshot since a time.

        No other snapshot is due: a process that waits for the broker begins none.
        """
        age, now = self._age(), time.time()
        if age >= now - since or self._prometheus.firing(now - _PAST, now):
            return False
        behind = self._prometheus.series("abers_records_to_replay", now - _PAST, now)
        return bool(behind) and all(samples[-1][1] <= self._every for _, samples in behind)

    def _age(self) -> float:
        """Return the age of the oldest of the newest snapshots after a moment, and remember it."""
        time.sleep(_MOMENT)
        age = max(self._bucket.ages(time.time()).values(), default=0.0)
        self._oldest = max(self._oldest, age)
        return age
