"""What a soak found: the checks, and the table in the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.connectors.kafka.chaos.judge import CheckResult
    from tests.connectors.kafka.soak.campaign import Phase
    from tests.connectors.kafka.soak.memory import Slope

__all__ = ["Report"]

_PAGE = Path(__file__).parents[4] / "docs" / "evidence" / "faults.md"
_BEGIN, _END = "<!-- make soak writes this table -->\n", "<!-- end of the soak -->\n"
_HEAD = (
    "| fault | seconds | alerts | age of the oldest snapshot, s | recovered after, s |",
    "|---|--:|---|--:|--:|",
)


class Report(NamedTuple):
    """The findings of a soak.

    Attributes
    ----------
    phases
        The phases in order.
    slopes
        Growth of the memory of each worker.
    overdue
        Most seconds for which a snapshot was overdue in a quiet time.
    checked
        What the check of all records found.
    """

    phases: Sequence[Phase]
    slopes: Sequence[Slope]
    overdue: float
    checked: CheckResult

    def wrong(self, most_growth: float, most_overdue: float, most_recovery: float) -> list[str]:
        """Return what is out of bounds, a sentence each.

        Parameters
        ----------
        most_growth
            Largest growth of memory, in MiB an hour, that may not be ruled out.
        most_overdue
            Most seconds for which a snapshot may be overdue in a quiet time.
        most_recovery
            Most seconds from the end of a fault until all is well.
        """
        found = [sentence for one in self.phases for sentence in _wrong_alerts(one)]
        found += [
            f"memory may grow by {one.value + one.error:.1f} MiB an hour"
            for one in self.slopes
            if one.value + one.error > most_growth
        ]
        if self.overdue > most_overdue:
            found.append(f"a snapshot is {self.overdue:.0f} s overdue in a quiet time")
        return found + [
            f"{one.fault.name}: {one.recovered - one.end:.0f} s until all is well"
            for one in self.phases
            if one.fault is not None and one.recovered - one.end > most_recovery
        ]

    def table(self) -> str:
        """Return the table and the sentences below it, in Markdown."""
        return "\n".join([*_HEAD, *self._rows(), "", *self._sentences(), ""])

    def _rows(self) -> Iterator[str]:
        quiet = [one for one in self.phases if one.fault is None]
        seconds = sum(one.end - one.begin for one in quiet)
        alerts = frozenset().union(*(one.alerts for one in quiet))
        oldest = max(one.oldest for one in quiet)
        yield f"| none: the quiet times | {seconds:.0f} | {_list(alerts)} | {oldest:.0f} | |"
        for one in self.phases:
            if one.fault is not None:
                yield (
                    f"| {one.fault.name} | {one.end - one.begin:.0f} | {_list(one.alerts)} | "
                    f"{one.oldest:.0f} | {one.recovered - one.end:.0f} |"
                )

    def _sentences(self) -> Iterator[str]:
        one = self.checked
        yield (
            f"Of {one.records:,} records {one.lost} were lost and {one.duplicates} doubled, with "
            f"{one.predictions:,} predictions; the state was "
            f"{'equal' if one.states_equal else 'not equal'}, and restored "
            f"{one.restored_from_snapshots} times from the bucket."
        )
        yield f"In quiet times no snapshot was overdue for more than {self.overdue:.0f} s."
        for number, slope in enumerate(self.slopes):
            yield (
                f"Memory of process {number}: {slope.begin:.0f} MiB, and "
                f"{slope.value:+.1f} ± {slope.error:.1f} MiB an hour "
                f"(95%, over {slope.seconds / 60:.0f} minutes)."
            )

    def write(self) -> None:
        """Write the table into the page."""
        before, _, rest = _PAGE.read_text("utf-8").partition(_BEGIN)
        _, _, after = rest.partition(_END)
        _PAGE.write_text(before + _BEGIN + self.table() + _END + after, "utf-8")


def _wrong_alerts(phase: Phase) -> list[str]:
    """Return what is wrong with the alerts of a phase, a sentence each."""
    fault = phase.fault
    if fault is None:
        return [f"{one} in a quiet time" for one in sorted(phase.alerts)]
    found = [] if fault.alert in phase.alerts else [f"{fault.name}: no {fault.alert}"]
    more = phase.alerts - fault.also - {fault.alert}
    return [*found, *(f"{fault.name}: {one}, too" for one in sorted(more))]


def _list(alerts: frozenset[str]) -> str:
    return ", ".join(sorted(alerts))
