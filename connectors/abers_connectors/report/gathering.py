"""What a report needs of a stream beyond its sums, gathered as it passes.

Governing rule: what is gathered is bounded however long the stream is, depends on nothing but the
stream, and changes nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.monitoring import Stretches
from abers.stream import task_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.stream import Settings

    Floats = NDArray[np.float64]

__all__ = ["Gathered"]

_LAST = 200  # outcomes: as many as can be told apart in a figure


class Gathered:
    """Scores over time, and the last outcomes; what `Processor.watch` takes.

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
    """

    def __init__(self, settings: Settings, most: int = 256) -> None:
        self.stretches = Stretches(task_of(settings).monitor, most)
        self.rows: Floats = np.empty((0, 0))
        self.labels: Floats = np.empty(0)

    def __call__(self, rows: Floats, labels: Floats) -> None:
        """Take predictions and their labels, in the order in which these came."""
        self.stretches.update(rows, labels)
        if not len(labels):
            return
        before = self.rows if len(self.rows) else rows[:0]
        self.rows = np.concatenate([before, rows[-_LAST:]])[-_LAST:]
        self.labels = np.concatenate([self.labels, labels[-_LAST:]])[-_LAST:]
