"""Outputs of several processors as those of one, in the order of the events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from abers.stream import Outputs
from abers.stream.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Integers
    from abers.stream import DeadLetter

__all__ = ["ShardOutputs", "merged_outputs"]


class ShardOutputs(NamedTuple):
    """Outputs of some events of a batch, and the rows of these events in it."""

    rows: Integers
    outputs: Outputs


def merged_outputs(parts: Sequence[ShardOutputs]) -> Outputs:
    """Return the outputs of a batch that was processed in parts, without settled batches.

    No event is in two parts, so outputs with the same row are of one part, and keep their order.
    """
    predicted, predictions = _merged(
        [(one.rows[one.outputs.predicted], one.outputs.predictions) for one in parts]
    )
    outcomes: Rows[Any] | None = None
    settled = np.concatenate([one.rows[one.outputs.settled] for one in parts])
    known = [
        (one.rows[one.outputs.settled], one.outputs.outcomes)
        for one in parts
        if one.outputs.outcomes is not None
    ]
    if known:
        settled, outcomes = _merged(known)
    dead = [
        (int(one.rows[row]), _moved(letter, one.rows))
        for one in parts
        for row, letter in one.outputs.dead_letters
    ]
    alarms = [(int(one.rows[row]), alarm) for one in parts for row, alarm in one.outputs.alarms]
    return Outputs(
        predictions,
        outcomes,
        sorted(dead, key=_row),
        predicted,
        settled,
        alarms=sorted(alarms, key=_row),
        retired=[name for one in parts for name in one.outputs.retired],
    )


def _merged(parts: Sequence[tuple[Integers, Rows[Any]]]) -> tuple[Integers, Rows[Any]]:
    rows = np.concatenate([rows for rows, _ in parts])
    order = np.argsort(rows, kind="stable")
    return rows[order], Rows.joined([outputs for _, outputs in parts]).take(order)


def _moved(letter: DeadLetter, rows: Integers) -> DeadLetter:
    """Return a dead letter with the row of its event in the whole batch."""
    if letter.row is None:
        return letter
    return msgspec.structs.replace(letter, row=int(rows[letter.row]))


def _row(one: tuple[int, object]) -> int:
    return one[0]
