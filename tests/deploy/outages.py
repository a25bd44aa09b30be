"""Processes that end and start, and what Prometheus scrapes of them meanwhile."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["JOB", "STEP", "Process", "Span", "back_off", "scraped"]

JOB = "default/abers"
STEP = 15  # seconds between two scrapes
PARTITIONS = 8
SESSION, RESTORE = (
    10,
    5,
)  # seconds: until others get the partitions of a dead process, and serve them


class Span(NamedTuple):
    """Seconds from the beginning of a story, the end left out."""

    begin: float
    end: float

    def __contains__(self, at: object) -> bool:
        """Return whether a time is in the span."""
        return isinstance(at, int | float) and self.begin <= at < self.end


class Process(NamedTuple):
    """A process of an application.

    Attributes
    ----------
    lives
        When it answers.
    targets
        When Prometheus has a target for it, each at an address of its own.
    stuck
        When it reads nothing although there are records.
    """

    application: str
    name: str
    lives: Sequence[Span]
    targets: Sequence[Span]
    stuck: Span = Span(0, 0)

    def life(self, at: float) -> Span | None:
        """Return the life at a time."""
        return next((one for one in self.lives if at in one), None)

    def is_member(self, at: float) -> bool:
        """Return whether its group counts on it: it lives, or its session has not ended."""
        return any(one.begin <= at < one.end + SESSION for one in self.lives)


def back_off(begin: float, end: float, life: float) -> Iterator[Span]:
    """Yield the short lives of a process that Kubernetes restarts, ever later, from a first end."""
    wait = 10.0
    while begin + wait < end:
        begin += wait
        yield Span(begin, begin + life)
        begin, wait = begin + life, min(2 * wait, 300.0)


def scraped(processes: Sequence[Process], until: float) -> Iterator[dict[str, str]]:
    """Yield the series of a story as promtool takes them."""
    times = [float(at) for at in range(0, int(until) + 1, STEP)]
    for process in processes:
        for number, target in enumerate(process.targets):
            instance = {"instance": f"{process.application}-{process.name}-{number}:8090"}
            rows = [_samples(process, processes, at) if at in target else None for at in times]
            up = [None if row is None else float(bool(row)) for row in rows]
            yield _series("up", instance, up)
            labels = instance | {"application": process.application, "process": process.name}
            for name in sorted({name for row in rows if row for name in row}):
                yield _series(name, labels, [row.get(name) if row else None for row in rows])


def _samples(process: Process, processes: Sequence[Process], at: float) -> dict[str, float]:
    """Return what a process answers at a time; nothing if it does not live."""
    life = process.life(at)
    if life is None:
        return {}
    mine = [one for one in processes if one.application == process.application]
    members = [one.name for one in mine if one.is_member(at)]
    place = members.index(process.name)
    share = PARTITIONS // len(members) + (place < PARTITIONS % len(members))
    age, stuck = at - life.begin, at in process.stuck
    worked = min(at, process.stuck.begin) - life.begin if stuck else age
    return {
        "abers_build_info": 1.0,
        "process_start_time_seconds": life.begin,
        "abers_input_partitions": PARTITIONS,
        "abers_assigned_partitions": share,
        "abers_restored_partitions": share if age >= RESTORE else 0,
        "abers_transactions_committed_total": 10.0 * max(worked - RESTORE, 0.0),
        "abers_consumer_lag_records": 500.0 if stuck else 3.0,
    }


def _series(name: str, labels: dict[str, str], values: Iterable[float | None]) -> dict[str, Any]:
    written = ", ".join(f'{key}="{value}"' for key, value in ({"job": JOB} | labels).items())
    return {"series": f"{name}{{{written}}}", "values": " ".join(_notation([*values]))}


def _notation(values: Sequence[float | None]) -> Iterator[str]:
    """Yield each value; a series that ends is marked as stale at the next scrape."""
    for before, now in pairwise([None, *values]):
        yield ("_" if before is None else "stale") if now is None else repr(now)
