"""A joined batch: steps of calibrators, observations that expire, and dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Bytes, Floats, Integers
    from abers.stream.column_types import Column
    from abers.stream.decided import Decided
    from abers.stream.events import DeadLetter

__all__ = ["ExpiredObservations", "JoinedBatch", "JoinedSteps", "Retired"]


class JoinedSteps(NamedTuple):
    """Steps of calibrators, a row each."""

    learns: Bytes  # 0 predicts, 1 learns
    rows: Integers  # row of the valid event that causes the step
    slots: Integers  # where the prediction is stored
    keys: Integers  # number of the calibrator
    times: Integers  # event time of the observation
    label_times: Integers  # event time of the label that is learned
    clocks: Integers  # clock of the model; `NO_CLOCK` where it is not known yet
    values: Floats  # value of the label that is learned
    assumed: Column  # id of the observation if its label is assumed, else None

    def take(self, rows: Any) -> JoinedSteps:  # noqa: ANN401 - anything indexes an array
        """Return some of the steps."""
        return JoinedSteps(*(column[rows] for column in self))

    def merged(self, later: JoinedSteps) -> JoinedSteps:
        """Return these steps and others in the order of the events, these first of one event."""
        columns = [np.concatenate(pair) for pair in zip(self, later, strict=True)]
        return JoinedSteps(*columns).take(np.argsort(columns[1], kind="stable"))


class ExpiredObservations(NamedTuple):
    """Observations that no longer wait for a label, a row each."""

    rows: Integers  # row of the valid event at which it expires
    slots: Integers  # where the prediction was stored
    keys: Integers  # number of the calibrator
    last: Integers  # 1 if after the steps of the event, as its bytes took the room; else 0


class JoinedBatch(NamedTuple):
    """The steps that the valid events of a batch cause, and its dead letters by row."""

    decided: Decided
    steps: JoinedSteps
    dead_letters: list[tuple[int, DeadLetter]]
    expired: ExpiredObservations
    late: JoinedSteps  # labels that came after others were assumed; these are not learned


class Retired(NamedTuple):
    """Retired models, in the order of the numbers that they had."""

    numbers: Sequence[int]
    names: Sequence[str]
    dead_letters: Sequence[tuple[int, DeadLetter]]  # labels that waited for observations; in row 0
