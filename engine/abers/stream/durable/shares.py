"""Groups of events: several requests become one batch, and its outputs are shared out again."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from abers.stream.columns import Events
from abers.stream.outputs import Outputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Integers
    from abers.stream.events import DeadLetter, Event

__all__ = ["shares", "together"]


def together(parts: Sequence[Events | list[Event]]) -> Events | list[Event]:
    """Return the events of all parts, in their order: a list if all are lists."""
    if len(parts) == 1:
        return parts[0]
    lists = [one for one in parts if isinstance(one, list)]
    if len(lists) == len(parts):
        return [event for part in lists for event in part]
    return Events.joined([one if isinstance(one, Events) else Events.of(one) for one in parts])


def shares(outputs: Outputs, sizes: Sequence[int]) -> list[Outputs]:
    """Return the outputs of each part of a batch, without alarms and `settled_batch`.

    Parameters
    ----------
    outputs
        Those of the batch.
    sizes
        Number of events of each part.

    Examples
    --------
    >>> from abers.stream import Observation, Processor
    >>> batch = Events.of([Observation(name, 1, score=0.5) for name in "abc"])
    >>> first, second = shares(Processor().process_batch(batch), [1, 2])
    >>> second.predictions.columns["id"].tolist(), second.predicted.tolist()
    (['b', 'c'], [0, 1])
    """
    outputs = outputs._replace(settled_batch=None, alarms=())
    if len(sizes) == 1:
        return [outputs]
    bounds = np.cumsum([0, *sizes])
    predicted, settled = (np.searchsorted(rows, bounds) for rows in outputs[3:5])
    made: list[Outputs] = []
    for part, (start, end) in enumerate(pairwise(bounds.tolist())):
        rows, labels = _slice(predicted, part), _slice(settled, part)
        made.append(
            Outputs(
                outputs.predictions[rows],
                None if outputs.outcomes is None else outputs.outcomes[labels],
                [_moved(one, start) for one in outputs.dead_letters if start <= one[0] < end],
                outputs.predicted[rows] - start,
                outputs.settled[labels] - start,
                retired=() if part else outputs.retired,
            )
        )
    return made


def _slice(bounds: Integers, part: int) -> slice:
    return slice(int(bounds[part]), int(bounds[part + 1]))


def _moved(one: tuple[int, DeadLetter], start: int) -> tuple[int, Any]:
    """Return a dead letter with its row in its part."""
    row, letter = one
    if letter.row is not None:
        letter = msgspec.structs.replace(letter, row=letter.row - start)
    return row - start, letter
