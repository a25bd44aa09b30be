"""A row calibrator with a tracker, which moves one interval of each prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from abers.arrays import EXPIRE, PREDICT
from abers.regression import CoverageTracker
from abers.serialization import require
from abers.stream.tasks.base import RowCalibrator

if TYPE_CHECKING:
    from abers.stream.tasks.base import CalibrationSteps, PredictionRows, Task

__all__ = ["TrackedCalibrator"]


class TrackedCalibrator(RowCalibrator):
    """A calibrator of predictions with an interval that a tracker moves.

    The tracker takes the same steps as the calibrator, after it: it reads the ends that the
    calibrator predicts, and the calibrator never reads the tracker.

    Parameters
    ----------
    task
        Makes the calibrator, and runs its steps. The ends are in `ends` of its rows.
    tracker
        An empty tracker.
    state
        State of the calibrator to go on with, if any.

    Raises
    ------
    ValueError
        If the state is of a calibrator with other options.
    """

    ends: ClassVar[slice] = slice(-2, None)  # columns

    def __init__(self, task: Task, tracker: CoverageTracker, state: bytes | None = None) -> None:
        super().__init__(task, state)
        self._tracker = tracker

    def load_tracker(self, state: bytes) -> None:
        """Restore the tracker; a ValueError if the state is of one with other options."""
        tracker = CoverageTracker.from_bytes(state)
        for name in ("level", "support", "slack"):
            same = getattr(tracker, name) == getattr(self._tracker, name)
            require(same, f"{name} of a tracker")
        self._tracker = tracker

    @property
    def tracker(self) -> CoverageTracker:
        """The tracker that moves the intervals."""
        return self._tracker

    def run(self, steps: CalibrationSteps) -> PredictionRows:
        """Predict and learn, in order; rows of steps that learn have no meaning."""
        predicted, tracker = super().run(steps), self._tracker
        ends = predicted.rows[:, self.ends]
        numbers = [] if steps.numbers is None else steps.numbers.tolist()
        columns = zip(steps.kinds.tolist(), steps.values.tolist(), numbers, strict=True)
        for row, (kind, value, number) in enumerate(columns):
            if kind == PREDICT:
                ends[row] = tracker.predict_one(*ends[row].tolist(), number=number)
            elif kind == EXPIRE:
                tracker.expire_one(number)
            else:
                tracker.learn_one(value, number=number)
        return predicted
