"""The state of a processor, which processor, journal and snapshot share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from abers.exceptions import ParameterError, StateError
from abers.stream.calibration_step import CalibrationStep
from abers.stream.join import Join
from abers.stream.single_event import SingleEvents
from abers.stream.tasks import make_task
from abers.validation import shown

if TYPE_CHECKING:
    from abers.learners import Learner
    from abers.stream.joined_batch import JoinedBatch
    from abers.stream.option import Front
    from abers.stream.outputs import Outputs
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import PredictionRows

__all__ = ["ProcessorState"]


class ProcessorState:
    """All that a processor remembers; see `Processor` for its parameters.

    Attributes
    ----------
    task
        The task that the settings name.
    join
        Joins observations and labels.
    calibration
        Calibrators, monitors, and the predictions that wait.
    single
        Takes single events.
    broken
        Whether a journal entry could not be applied half-way, so that nothing can go on.
    """

    def __init__(
        self,
        settings: Settings,
        learner: Learner | None = None,
        *,
        outcomes: bool = True,
        front: Front = "python",
    ) -> None:
        self.settings, self.outcomes = settings, outcomes
        self.task = make_task(settings)
        self.join = Join(settings, self.task, learner, front)
        self.calibration = CalibrationStep(self.task, settings)
        self.single = SingleEvents(
            self.join,
            self.calibration,
            self.task,
            settings,
            outcomes=outcomes,
            calibrate=self.calibrate,
        )
        self.broken = False

    def sound(self) -> Self:
        """Return the state with all events taken, or raise a StateError if it is broken."""
        self.single.flush()
        if self.broken:
            msg = (
                "the processor could not apply a journal entry, and its state is broken; throw it "
                "away, and restore one from a snapshot"
            )
            raise StateError(msg)
        return self

    def reset_model(self, model: str) -> None:
        """Forget all that was learned of a model; a ParameterError if it is unknown."""
        of = [number for number, key in enumerate(self.join.names.keys) if key[0] == model]
        if not of:
            msg = f"model {shown(model)} is not known; no observation was of it"
            raise ParameterError(msg)
        for number in of:
            self.calibration.reset(number)
        self.join.reset_model(model)

    def watched(self) -> CalibrationStep:
        """Return calibrators and monitors, which have taken all events."""
        self.single.flush()
        return self.calibration

    def calibrate(self, joined: JoinedBatch) -> tuple[Outputs, PredictionRows]:
        """Run the calibration step of a batch; return the outputs, and predictions as rows."""
        names = self.join.names
        self.calibration.reserve(len(names.pairs), self.join.store.capacity())
        return self.calibration.run(joined, names.pairs, outcomes=self.outcomes)
