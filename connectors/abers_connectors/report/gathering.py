"""What a report needs of a stream beyond its sums, gathered as it passes.

Governing rule: what is gathered is bounded however long the stream is, depends on nothing but the
stream, and changes nothing of it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from abers.monitoring import BinaryMonitor, Stretches
from abers.stream import task_of
from abers_connectors.models import CHANGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.monitoring import Bands, Diagram, Evidence
    from abers.stream import Alarm, Judged, Settings
    from abers.stream.tasks import Monitor

    Floats = NDArray[np.float64]

__all__ = ["LEVEL", "Gathered"]

LEVEL = 0.9
"""Of the bands around a reliability diagram."""

_PARTS = 64  # points of a band: as many as can be told apart
_POINTS = 256  # of the evidence over time
_LAST = 200  # outcomes: as many as can be told apart in a figure


class Gathered:
    """Scores over time, and the last outcomes.

    Parameters
    ----------
    settings
        Those of the processor.
    most
        How many stretches are judged apart.

    Attributes
    ----------
    stretches
        Monitors of consecutive stretches.
    rows, labels
        The last predictions whose labels came, and these labels.
    trail
        The evidence of a change over time.
    """

    def __init__(self, settings: Settings, most: int = 256) -> None:
        task = task_of(settings)
        self.stretches = Stretches(lambda: _brief(task.monitor()), most)
        self.trail = Trail()
        self._bands: dict[str, tuple[int, Bands]] = {}
        self.rows: Floats = np.empty((0, 0))
        self.labels: Floats = np.empty(0)

    def take(self, made: Judged, tests: Sequence[Evidence], alarms: Sequence[Alarm]) -> None:
        """Take what a batch brought about, and what the tests have come to after it."""
        self.stretches.update(made.rows, made.values)
        self.trail.note(self.stretches.count, tests, alarms)
        if len(made.values):
            before = self.rows if len(self.rows) else made.rows[:0]
            self.rows = np.concatenate([before, made.rows[-_LAST:]])[-_LAST:]
            self.labels = np.concatenate([self.labels, made.values[-_LAST:]])[-_LAST:]

    def bands(self, view: str, diagram: Diagram) -> Bands:
        """Give the bands of a diagram, made anew when there are an eighth more labels."""
        count = int(diagram.count.sum())
        known = self._bands.get(view)
        if known is None or not known[0] <= count < known[0] * 9 / 8:
            known = self._bands[view] = count, diagram.coarser(_PARTS).bands(LEVEL)
        return known[1]


class Trail:
    """The evidence of a change at some moments, the largest where there are too many, and alarms.

    Attributes
    ----------
    points
        Labels so far, and natural logarithm of the evidence.
    alarms
        Labels so far, and the alarm; the last ones.
    """

    def __init__(self) -> None:
        self.points: list[tuple[int, float]] = []
        self.alarms: deque[tuple[int, Alarm]] = deque(maxlen=_LAST)

    def note(self, labels: int, tests: Sequence[Evidence], alarms: Sequence[Alarm]) -> None:
        """Note what the tests have come to."""
        self.alarms += [(labels, one) for one in alarms]
        heights = [one.log_wealth for one in tests if one.name == CHANGE]
        heights += [one.log_wealth for one in alarms]
        if not heights:
            return
        self.points.append((labels, max(heights)))
        if len(self.points) > _POINTS:
            pairs = zip(self.points[::2], self.points[1::2], strict=False)
            last = self.points[-1:] if len(self.points) % 2 else []
            self.points = [(b[0], max(a[1], b[1])) for a, b in pairs] + last


def _brief(monitor: Monitor) -> Monitor:
    """Let a monitor of a stretch be small: nobody asks for the diagram of one."""
    if isinstance(monitor, BinaryMonitor):
        for view in (monitor.raw, monitor.calibrated):
            if view is not None:
                view.reliability = None
    return monitor
