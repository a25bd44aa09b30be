"""Scores of probabilities in two views, raw and calibrated, and the width of the intervals.

A prediction is scored once, as it was issued, when its label comes. Raw scores are scored only
where they are declared to be probabilities.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from abers.backends import core
from abers.monitoring.base import TaskMonitor
from abers.monitoring.measures import Measure, Number
from abers.monitoring.reliability_figure import reliability_figure
from abers.monitoring.scores import ViewScores
from abers.serialization import number, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.base import BandMaker, Figure
    from abers.monitoring.scored_rows import ScoredRows

__all__ = ["ProbabilityMonitor"]

_MEAN_WIDTH = Measure(
    "mean_width",
    "mean interval width",
    "difference of probabilities",
    "Mean width of the intervals.",
    "mean width",
    "interval width",
    gauge="",
)
_ROUNDED = 1.0 + 1e-9  # sums of many widths of at most 1 may be a little more


S = TypeVar("S", bound=ViewScores)


class ProbabilityMonitor(TaskMonitor, Generic[S]):
    """Scores of the raw and of the calibrated forecasts, and the width of the intervals."""

    measures: ClassVar[tuple[Measure, ...]] = (*TaskMonitor.measures, _MEAN_WIDTH)
    kind: ClassVar[Any]
    """Scores of one view, such as `PrequentialScores`."""
    title: ClassVar[str]
    """Heading of the reliability diagrams."""
    right: ClassVar[str]
    """What the probabilities in them are of, in words."""

    def __init__(self, *, raw: bool) -> None:
        super().__init__()
        self.raw: S | None = self.kind() if raw else None
        self.calibrated: S = self.kind()
        self.width_sum = 0.0

    @property
    def count(self) -> int:
        """Number of predictions scored."""
        return int(self.calibrated.count)

    @property
    def mean_width(self) -> float:
        """Mean width of the intervals; NaN before the first label."""
        return self.width_sum / self.count if self.count else float("nan")

    @property
    def has_raw_view(self) -> bool:
        """Whether the raw scores have numbers too."""
        return self.raw is not None

    def scores(self) -> dict[str, S]:
        """Return the scores of each view by name."""
        raw = {} if self.raw is None else {"raw": self.raw}
        return raw | {"calibrated": self.calibrated}

    def _add(self, scored: ScoredRows) -> None:
        for view, scores in self.scores().items():
            scores.update_many(*scored.forecasts[view])
        if scored.widths is not None:
            self.width_sum = core.added(self.width_sum, scored.widths)

    def _numbers(self) -> list[Number]:
        numbers = [one for view, part in self.scores().items() for one in part.summary(view)]
        return [*numbers, Number(_MEAN_WIDTH, self.mean_width)]

    def _figures(self, bands: BandMaker) -> list[Figure]:
        """Return the figure of the reliability diagrams."""
        kept = {view: one.reliability for view, one in self.scores().items()}
        return [reliability_figure(kept, bands, self.title, self.right)]

    def totals(self) -> tuple[Any, ...]:
        """Return the state without the reliability diagrams."""
        return (self.width_sum, self.calibrated.totals(), self.raw and self.raw.totals())

    def state(self) -> tuple[Any, ...]:
        """Return the state; see `Monitor.state`."""
        return (self.width_sum, self.calibrated.state(), self.raw and self.raw.state())

    @classmethod
    def restore(cls, state: Sequence[Any]) -> Self:
        """Return the monitor with this state; see `Monitor.restore`."""
        width, calibrated, raw = state
        monitor = cls(raw=raw is not None)
        monitor.calibrated = cls.kind.restore(calibrated)
        most = monitor.count * _ROUNDED
        monitor.width_sum = number(width, "widths", -most, most)
        if raw is not None:
            restored = monitor.raw = cls.kind.restore(raw)
            require(restored.count == monitor.count, "counts of views")
        return monitor

    @classmethod
    def _total(cls, many: Sequence[Self]) -> Self:
        whole = cls(raw=False)
        whole.calibrated = cls.kind.total(one.calibrated for one in many)
        raw = [one.raw for one in many if one.raw is not None]
        whole.raw = cls.kind.total(raw) if raw else None
        whole.width_sum = math.fsum(one.width_sum for one in many)
        return whole
