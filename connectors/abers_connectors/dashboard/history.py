"""History of a model, which its monitor does not keep: scores over time and the last predictions.

It is bounded however long the stream is, and depends on nothing but the stream.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from abers.monitoring import ALARM_TEST, WindowedMonitor, consistency_bands, strongest
from abers.stream import make_task
from abers_connectors.dashboard.expert_trail import ExpertTrail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.monitoring import Bands, Diagram, Evidence, TaskMonitor
    from abers.stream import Alarm, Settings, SettledBatch

    Floats = NDArray[np.float64]

__all__ = ["EvidenceTrail", "ModelHistory"]

_POINTS = 256  # of the evidence over time
_MAX_POINTS = 200  # predictions and alarms: as many as a reader can tell apart in a figure


class ModelHistory:
    """Scores in windows over time, trails of evidence and of experts, and the last predictions.

    Of a regression, it has the raw scores and quantiles, at their levels, of the last predictions
    whose labels came, and these labels.
    """

    def __init__(self, settings: Settings, most: int = 256) -> None:
        task = make_task(settings)
        self.windowed = WindowedMonitor(lambda: _small(task.monitor()), most)
        self.trail = EvidenceTrail()
        self.experts = ExpertTrail()
        self.levels = settings.quantiles
        self.scores: Floats = np.empty(0)
        self.quantiles: Floats = np.empty((0, len(self.levels)))
        self.labels: Floats = np.empty(0)
        self._bands: dict[str, tuple[int, Bands]] = {}

    @property
    def first(self) -> int:
        """Number of the first label that is kept."""
        return self.windowed.count - len(self.labels) + 1

    def take(
        self, settled: SettledBatch, monitors: Sequence[TaskMonitor], alarms: Sequence[Alarm]
    ) -> None:
        """Add settled predictions, and their monitors and the alarms after them."""
        scored = settled.scored
        self.windowed.update(scored)
        tests = strongest([one.tests for one in monitors])
        self.trail.note(self.windowed.count, tests, alarms)
        self.experts.note(self.windowed.count, monitors)
        if scored.scores is not None and scored.quantiles is not None:
            self.scores = _last(self.scores, scored.scores)
            self.quantiles = _last(self.quantiles, scored.quantiles)
            self.labels = _last(self.labels, scored.labels)

    def bands(self, view: str, diagram: Diagram) -> Bands:
        """Return the bands of a diagram, recomputed when the labels have grown by an eighth."""
        count = int(diagram.count.sum())
        known = self._bands.get(view)
        if known is None or not known[0] <= count < known[0] * 9 / 8:
            known = self._bands[view] = count, consistency_bands(view, diagram)
        return known[1]


class EvidenceTrail:
    """Evidence of a change at some moments, in the view of the most, and the last alarms.

    A point is the number of labels so far and the natural logarithm of the evidence; an alarm has
    the number of labels before it. Of too many points, the larger of every two neighbours stays.
    """

    def __init__(self) -> None:
        self.points: list[tuple[int, float]] = []
        self.alarms: deque[tuple[int, Alarm]] = deque(maxlen=_MAX_POINTS)

    def note(self, labels: int, tests: Sequence[Evidence], alarms: Sequence[Alarm]) -> None:
        """Add the evidence after so many labels."""
        self.alarms += [(labels, one) for one in alarms]
        heights = [one.log_wealth for one in tests if one.name == ALARM_TEST]
        heights += [one.log_wealth for one in alarms]
        if not heights:
            return
        self.points.append((labels, max(heights)))
        if len(self.points) > _POINTS:
            pairs = zip(self.points[::2], self.points[1::2], strict=False)
            last = self.points[-1:] if len(self.points) % 2 else []
            self.points = [(b[0], max(a[1], b[1])) for a, b in pairs] + last


def _small(monitor: TaskMonitor) -> TaskMonitor:
    monitor.shrink()
    return monitor


def _last(before: Floats, more: Floats) -> Floats:
    return np.concatenate([before, more[-_MAX_POINTS:]])[-_MAX_POINTS:]
