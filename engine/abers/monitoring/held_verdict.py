"""Held verdict: one that forecasts are outside the tolerance, which is shown while it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

from abers.monitoring.findings import FIRST_BIN, GroupFinding, leans
from abers.monitoring.forecast_groups import BINS
from abers.monitoring.verdict import Verdict
from abers.serialization import count, number, require, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.forecast_groups import ForecastGroups
    from abers.monitoring.level_sums import LevelSums
    from abers.monitoring.verdict import Words

__all__ = ["HeldVerdict", "saved_time"]

# Four times as many labels show a gap of half the size: if the gap were still there, they would
# have shown it.
_OUTGROWN = 4
_LARGEST_TIME = (1 << 63) - 1


class HeldVerdict(NamedTuple):
    """A verdict that forecasts are outside the tolerance.

    Attributes
    ----------
    verdict
        The verdict.
    finding
        What its groups showed.
    """

    verdict: Verdict
    finding: GroupFinding

    def agrees(self, finding: GroupFinding) -> bool:
        """Return whether later groups show the same, or a part of it."""
        return finding.agrees(self.verdict.status)

    def gives_way(self, finding: GroupFinding) -> bool:
        """Return whether later groups, which are outside, say as much or something else."""
        return finding.rank >= self.finding.rank or not self.agrees(finding)

    def is_outgrown(self, block: ForecastGroups | LevelSums) -> bool:
        """Return whether the labels of a later block would show it, and do not lean to it."""
        fewest = _OUTGROWN * self.verdict.counted
        if block.labels < fewest:  # as most often; a group has no more labels than its block
            return False
        one = block.groups()[self.finding.group]
        return one.labels >= fewest and not leans(one, self.finding.side)

    def confirmed(self, time: int) -> Self:
        """Return it with the event time at which it was found last."""
        return self._replace(verdict=self.verdict._replace(confirmed=time))

    def state(self) -> tuple[Any, ...]:
        """Return the state: what `restore` takes."""
        values = [value for name, value in self.verdict._asdict().items() if name != "words"]
        return self.finding.group, *values

    @classmethod
    def restore(cls, state: Sequence[Any], words: Words) -> Self:
        """Return the verdict with this state; a ValueError if it cannot be one."""
        group, status, view, *others = state
        verdict = Verdict(status, view, words, *others)
        for text in (verdict.view, verdict.where):
            require(type(text) is str, "text of a verdict")
        for one in (verdict.since, verdict.start, verdict.until, verdict.confirmed):
            saved_time(one)
        labels = count(verdict.labels, "labels")
        counted = count(verdict.counted, "labels of a range", labels)
        count(verdict.observed, "labels of a range", counted)
        for value in (verdict.came, verdict.expected, verdict.margin, verdict.tolerance):
            number(value, "numbers of a verdict", 0.0)
        if verdict.established is not None:
            number(verdict.established, "tolerance", 1.0)
        group = whole(group, "group", 0, FIRST_BIN + BINS - 1)
        finding = GroupFinding(status, group, inside=False)
        require(finding.is_possible, "status")
        return cls(verdict, finding)


def saved_time(value: Any) -> int:  # noqa: ANN401 - as it was saved
    """Return an event time that was saved; a ValueError if it cannot be one."""
    return whole(value, "times", -_LARGEST_TIME - 1, _LARGEST_TIME)
