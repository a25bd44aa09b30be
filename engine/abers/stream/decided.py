"""What a batch decides before anything changes.

Limits, clocks and learners are asked once, when a batch comes. What they say is all that the state
needs to change, now or when a journal is applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from abers.arrays import Bytes, Floats, Integers
    from abers.stream.columns import Events
    from abers.stream.events import DeadLetter
    from abers.stream.tasks.base import PredictionRows

__all__ = ["ENDS", "Decided"]

ENDS = 2
"""The kind of an event that says that no label will come."""


class Decided(NamedTuple):
    """A batch after all decisions about it; columns have a row for each valid event."""

    labels: NDArray[np.bool_]  # which events of the batch are labels
    events: Events  # the valid ones
    rows: Integers  # in the batch
    kinds: Bytes  # 0 for an observation, 1 for a label, `ENDS` where no label will come
    models: NDArray[np.uint32]  # numbers, after what is retired is gone
    keys: NDArray[np.uint32]  # of the pairs of model and segment; 0 for labels
    times: Integers
    scores: Floats  # of shape (n, width of a score); 0 for labels
    values: Floats  # labels as numbers of `Task.value`; of observations the bytes of the features
    new_models: Sequence[str]
    new_keys: Sequence[tuple[str, str]]
    rejected: Sequence[tuple[int, str]]  # row and reason of each other event
    dead_letters: Sequence[DeadLetter] = ()  # of these; a journal does not keep them
    retired: Sequence[int] = ()  # numbers of the models that are forgotten before the batch
    issued: PredictionRows | None = None  # predictions that were made; None: they are to be made
