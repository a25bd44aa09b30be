"""What a day found: the checks, and the table in the documentation."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime
from itertools import chain
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

from tests.connectors.day.course import of_phase, wrong_alerts

from abers.stream import accounts

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tests.connectors.day.course import Phase
    from tests.connectors.day.history import Firing
    from tests.connectors.day.newcomer import Newcomer
    from tests.connectors.kafka.chaos.routed_judge import RoutedResult

__all__ = ["Report", "error_lines"]

_PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "day.md"
_BEGIN, _END = "<!-- the long form writes this -->\n", "<!-- end of what it writes -->\n"
_HEAD = ("| what happens | minutes of the day | alerts, with their minutes |", "|---|--:|---|")
_SOON = 30  # seconds
_WIDTH = 118  # of a line in the documentation
_MOST_MEMORY, _MOST_SNAPSHOTS = 700.0, 3  # MiB of a process; snapshots of a partition


class Report(NamedTuple):
    """The findings of a day.

    Attributes
    ----------
    phases
        What happened, in order.
    fired
        The alerts that fired.
    found
        What the check of all records found.
    poison
        Number of records of the hostile producer by the reason.
    statuses
        Number of answers of the server by status; None is no answer.
    unplanned
        Answers that failed while no stop was planned.
    newcomer
        What the newcomer saw.
    memory
        The most MiB that each process took.
    disk
        MiB of the bucket, of the brokers, and of the server's state, at the end.
    snapshots
        The most snapshots of a partition.
    errors
        Lines of the logs that no planned fault explains.
    taken_over
        What two applications published, the one of which took over from the other; empty without.
    seconds
        How long it took.
    """

    phases: list[Phase]
    fired: list[Firing]
    found: RoutedResult
    poison: Counter[str]
    statuses: Counter[int | None]
    unplanned: int
    newcomer: Newcomer
    memory: Mapping[str, float]
    disk: Mapping[str, float]
    snapshots: int
    errors: Sequence[str]
    taken_over: Mapping[str, int]
    seconds: float

    def wrong(self) -> list[str]:
        """Return what is out of bounds, a sentence each."""
        found = wrong_alerts(self.phases, self.fired)
        found += [f"a line of a log that nothing explains: {one}" for one in self.errors]
        found += [
            f"{name} took {most:.0f} MiB"
            for name, most in self.memory.items()
            if most > _MOST_MEMORY
        ]
        if self.snapshots > _MOST_SNAPSHOTS:
            found.append(f"{self.snapshots} snapshots of a partition")
        if self.unplanned:
            found.append(f"{self.unplanned} requests failed outside of planned stops")
        codes = [code for code, _ in self.newcomer.attempts]
        if codes != [1, 1, 0]:
            found.append(f"the newcomer saw {self.newcomer.attempts}")
        return found

    def table(self) -> str:
        """Return the table and the sentences below it, in Markdown."""
        sentences = (wrap(one, _WIDTH, subsequent_indent="  ") for one in self._sentences())
        return "\n".join([*_HEAD, *self._rows(), "", *chain.from_iterable(sentences), ""])

    def _rows(self) -> Iterator[str]:
        for one in self.phases:
            times: dict[str, list[str]] = defaultdict(list)
            for each in sorted(of_phase(one, self.fired), key=lambda found: found.begin):
                times[each.alert].append(f"{each.begin}–{each.end}")
            alerts = "; ".join(f"{name} {', '.join(some)}" for name, some in sorted(times.items()))
            yield f"| {one.incident.name} | {one.begin}–{one.end} | {alerts} |"

    def _sentences(self) -> Iterator[str]:
        found, poison = self.found, self.poison
        yield (
            f"- {found.records:,} records in {self.seconds / 60:.0f} minutes: "
            f"{found.predictions:,} predictions, {found.dead_letters:,} dead letters; none was "
            "lost or doubled, and outputs and states were those of the replay."
        )
        yield f"- Accounts: {'; '.join(one.sentence(found.accounts) for one in accounts.ACCOUNTS)}."
        kinds = ", ".join(f"{count:,} {reason}" for reason, count in sorted(poison.items()))
        yield f"- The hostile producer: {kinds}."
        asked = ", ".join(
            f"{count:,} {status or 'without an answer'}"
            for status, count in sorted(self.statuses.items(), key=lambda one: one[0] or 0)
        )
        yield f"- Requests of HTTP by status: {asked}; {self.unplanned} outside of planned stops."
        yield f"- The newcomer: {self.newcomer.rows:,} rows at the third attempt."
        if self.taken_over:
            counts = ", ".join(f"{count:,} {what}" for what, count in self.taken_over.items())
            yield f"- The take-over: {counts}; none was lost or doubled."
        memory = ", ".join(f"{name} {most:.0f}" for name, most in self.memory.items())
        disk = ", ".join(f"{name} {size:.1f}" for name, size in self.disk.items())
        yield f"- The most memory, MiB: {memory}. Storage at the end, MiB: {disk}."

    def write(self) -> None:
        """Write the table into the page."""
        before, _, rest = _PAGE.read_text("utf-8").partition(_BEGIN)
        _, _, after = rest.partition(_END)
        _PAGE.write_text(before + _BEGIN + self.table() + _END + after, "utf-8")


def error_lines(logs: Iterable[str], phases: Sequence[Phase] = ()) -> list[str]:
    """Return the lines of level error or above that no phase explains, and what is no line."""
    found = []
    for line in (one for log in logs for one in log.splitlines()):
        try:
            said = json.loads(line)
            wrong = said["level"] in {"error", "critical"}
        except (ValueError, KeyError, TypeError):
            found.append(line)
            continue
        if wrong and not any(_explains(one, said["time"]) for one in phases):
            found.append(line)
    return found


def _explains(phase: Phase, time: str) -> bool:
    """Return whether a phase, or its end, explains that clients report an error at a time."""
    begin, end = phase.times
    return (
        phase.incident.errors and begin <= datetime.fromisoformat(time).timestamp() <= end + _SOON
    )
