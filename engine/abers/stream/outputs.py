"""What a batch puts out.

Governing rule: each kind of output stands by itself, in the order of the events
that brought it about; those of one event come as a person would tell them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from abers.stream.columns import Rows
    from abers.stream.events import Alarm, DeadLetter, Output

__all__ = ["Judged", "Outputs"]


class Judged(NamedTuple):
    """Predictions whose labels came, as they were issued: a row each, in the order of the labels.

    Attributes
    ----------
    keys
        Number of the calibrator: which of `Processor.keys`.
    delays
        How much later than its observation the label is, in milliseconds of event time; a time
        further ahead than the clock of its model counts as the clock.
    rows, values
        Prediction and label: what `Task.monitor` and `Task.facts` take.
    """

    keys: NDArray[np.int64]
    delays: NDArray[np.int64]
    rows: NDArray[np.float64]
    values: NDArray[np.float64]


class Outputs(NamedTuple):
    """Predictions, outcomes, dead letters and alarms.

    Attributes
    ----------
    predictions, outcomes
        By columns, of the types that the task puts out; None if nobody wants outcomes.
    letters
        Dead letters, each with the row of the event that brought it about.
    predicted, settled
        Rows of the events that brought about the predictions, and the outcomes.
    judged
        What can be counted of the labels; None if there are neither monitors nor outcomes.
    alarms
        Each with the row of the event that brought it about, one an episode.
    retired
        Names of the models that were retired before the batch.
    """

    predictions: Rows[Any]
    outcomes: Rows[Any] | None
    letters: Sequence[tuple[int, DeadLetter]]
    predicted: NDArray[np.int64]
    settled: NDArray[np.int64]
    judged: Judged | None = None
    alarms: Sequence[tuple[int, Alarm]] = ()
    retired: Sequence[str] = ()

    def dead_letters(self) -> list[DeadLetter]:
        """Give the dead letters in the order of the events."""
        return [letter for _, _, letter in sorted(self._ranked(), key=_place)]

    def in_order(self) -> list[Output]:
        """Give all of them but the alarms as objects, in the order of the events.

        Of one event: labels that waited in vain, its prediction, the outcome if its label was
        there before it, and what a learner could not learn.
        """
        ranked: list[tuple[int, int, Output]] = [*self._ranked()]
        rows = self.predicted.tolist()
        ranked += [(row, 1, one) for row, one in zip(rows, self.predictions, strict=True)]
        rows = self.settled.tolist() if self.outcomes is not None else []
        ranked += [(row, 2, one) for row, one in zip(rows, self.outcomes or (), strict=True)]
        return [output for _, _, output in sorted(ranked, key=_place)]

    def _ranked(self) -> list[tuple[int, int, DeadLetter]]:
        """Give each dead letter with its row, and its rank among what that brought about."""
        return [(row, 0 if one.row is None else 3, one) for row, one in self.letters]


def _place(ranked: tuple[int, int, object]) -> tuple[int, int]:
    return ranked[:2]
