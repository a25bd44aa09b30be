"""The second pass over a batch: every calibrator runs its steps, and the outputs are worded.

Governing rule: a prediction is stored with its score when it is made, and what
a label settles is read from there; nothing is computed twice.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from abers.reference import LEARN, PREDICT
from abers.stream.tasks import Settled, Steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from abers.stream.events import Label, Observation, Outcome, Prediction
    from abers.stream.tasks import Calibrator, Monitor, Task
    from abers.stream.waiting import Waiting

    Integers = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["LEARN", "PREDICT", "Answering", "Step"]

Step: TypeAlias = "tuple[int, int, int, Any, int, Observation | Label]"
"""PREDICT or LEARN, slot, key, score or value, event time of the observation, event."""


class Answering:
    """The calibrators and monitors, one of each for every key.

    Parameters
    ----------
    task
        What makes and words predictions.
    pending
        Where they wait for their labels.
    monitors
        Whether they are judged.

    Attributes
    ----------
    keys
        Number of each pair of model and segment.
    """

    def __init__(self, task: Task, pending: Waiting, *, monitors: bool) -> None:
        self._task, self._pending = task, pending
        self.keys: dict[tuple[str, str], int] = {}
        self.calibrators: list[Calibrator] = []
        self.monitors: list[Monitor] | None = [] if monitors else None

    def key(self, pair: tuple[str, str]) -> int:
        """Find the number of a pair, which gets a calibrator if it is new."""
        key = self.keys.get(pair)
        if key is None:
            key = self.keys[pair] = len(self.keys)
            self.calibrators.append(self._task.calibrator())
            if self.monitors is not None:
                self.monitors.append(self._task.monitor())
        return key

    def run(self, steps: list[Step], *, outcomes: bool) -> list[Prediction | Outcome | None]:
        """Run steps; what each puts out, None for an outcome that is not wanted."""
        if not steps:
            return []
        kinds, slots, keys, given, times, events = zip(*steps, strict=True)
        kind = np.array(kinds, np.uint8)
        slot, key = np.array(slots), np.array(keys)
        predicts, learns = kind == PREDICT, kind == LEARN
        values = np.zeros(len(steps))
        values[learns] = list(compress(given, learns))
        scores = list(compress(given, predicts))

        width = self._task.score_width
        self._pending.fit()
        rows = self._pending.rows
        rows[slot[predicts], :width] = np.array(scores, float).reshape(-1, width)
        batch = Steps(kind, rows[slot, :width], values, np.array(times))
        answers, held = self._run(batch, key)
        rows[slot[predicts], width:] = answers[predicts]

        predictions = self._task.predictions(
            list(compress(events, predicts)), rows[slot[predicts]], held[predicts]
        )
        if not learns.any():
            return list(predictions)
        settled = rows[slot[learns]]
        self._judge(settled, values[learns], key[learns])
        if not outcomes:
            return _interleaved(kinds, predictions, None)
        pairs = list(self.keys)
        segments = [pairs[k][1] for k in compress(keys, learns)]
        worded = self._task.outcomes(
            Settled(
                list(compress(events, learns)),
                segments,
                list(compress(times, learns)),
                settled,
                values[learns],
            )
        )
        return _interleaved(kinds, predictions, worded)

    def _run(self, batch: Steps, key: Integers) -> tuple[Floats, Integers]:
        if _uniform(key):
            return self.calibrators[int(key[0])].run(batch)
        answers = np.empty((len(key), self._task.answer_width))
        held = np.empty(len(key), np.int64)
        for number, rows in _by_key(key):
            part = Steps(*(column[rows] for column in batch))
            answers[rows], held[rows] = self.calibrators[number].run(part)
        return answers, held

    def _judge(self, settled: Floats, values: Floats, key: Integers) -> None:
        if self.monitors is None:
            return
        for number, rows in [(int(key[0]), slice(None))] if _uniform(key) else _by_key(key):
            self.monitors[number].update(settled[rows], values[rows])


def _uniform(key: Integers) -> bool:
    return bool((key == key[0]).all())


def _by_key(key: Integers) -> Iterator[tuple[int, Any]]:
    """Give the rows of each key, in their order."""
    order = np.argsort(key, kind="stable")
    numbers, starts = np.unique(key[order], return_index=True)
    yield from zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)


def _interleaved(
    kinds: Sequence[int], predictions: list[Prediction], outcomes: list[Outcome] | None
) -> list[Prediction | Outcome | None]:
    made = iter(predictions)
    if outcomes is None:
        return [next(made) if kind == PREDICT else None for kind in kinds]
    settled = iter(outcomes)
    return [next(made) if kind == PREDICT else next(settled) for kind in kinds]
