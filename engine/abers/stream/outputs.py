"""Outputs of a batch.

Each kind of output is a sequence of its own, in the order of the events that cause it. Outputs of
one event are in causal order.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.stream.arrow_tables import ArrowOutputs, alarm_table, dead_letter_table, rows_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Integers
    from abers.monitoring import ScoredRows
    from abers.stream.events import Alarm, DeadLetter, Output
    from abers.stream.rows import Rows

__all__ = ["Outputs", "SettledBatch", "in_causal_order"]


class SettledBatch(NamedTuple):
    """Predictions with labels of a batch: a row each, in the order of the labels.

    Attributes
    ----------
    keys
        Number of the calibrator: its index in `Processor.keys`.
    times
        Event times of the observations, in milliseconds.
    delays
        How much later than its observation the label is, in milliseconds of event time; a time
        further ahead than the clock of its model counts as the clock.
    scored
        Predictions as they were issued, and their labels: what monitors read.

    Examples
    --------
    >>> from abers.stream import Events, Label, Observation, Processor
    >>> events = Events.of([Observation("a", 1, score=0.5), Label("a", 2, value=1)])
    >>> batch = Processor().process_batch(events).settled_batch
    >>> forecasts = batch.scored.forecasts["calibrated"]
    >>> forecasts.squares.tolist(), batch.scored.widths.tolist()
    ([0.25], [1.0])
    """

    keys: Integers
    times: Integers
    delays: Integers
    scored: ScoredRows

    def take(self, rows: Any) -> SettledBatch:  # noqa: ANN401 - a slice, or numbers
        """Return some of the rows."""
        return SettledBatch(
            self.keys[rows], self.times[rows], self.delays[rows], self.scored.take(rows)
        )


class Outputs(NamedTuple):
    """Predictions, outcomes, dead letters and alarms.

    Attributes
    ----------
    predictions, outcomes
        By columns, of the types of the task; outcomes are None if they are switched off.
    dead_letters
        Dead letters, each with the row of the event that causes it.
    predicted, settled
        Rows of the events that cause the predictions, and the outcomes.
    settled_batch
        Labelled predictions; None if there are neither monitors nor outcomes.
    alarms
        Alarms, one an incident, each with the row of the event that causes it.
    retired
        Names of the models that were retired before the batch.
    """

    predictions: Rows[Any]
    outcomes: Rows[Any] | None
    dead_letters: Sequence[tuple[int, DeadLetter]]
    predicted: Integers
    settled: Integers
    settled_batch: SettledBatch | None = None
    alarms: Sequence[tuple[int, Alarm]] = ()
    retired: Sequence[str] = ()

    def to_arrow(self) -> ArrowOutputs:
        """Return the outputs as Arrow tables, with schemas that do not depend on the batch.

        Returns
        -------
        ArrowOutputs
            Tables of predictions, outcomes, dead letters and alarms. The first three have the
            schemas of the Parquet files that `abers replay` writes.

        Raises
        ------
        MissingExtraError
            If pyarrow is not installed.

        Examples
        --------
        >>> from abers.stream import Events, Observation, Processor
        >>> events = Events.of([Observation("a", 1, score=0.5)])
        >>> tables = Processor().process_batch(events).to_arrow()
        >>> tables.predictions.select(["id", "time", "p"]).to_pylist()
        [{'id': 'a', 'time': 1, 'p': 0.5}]
        """
        return ArrowOutputs(
            rows_table(self.predictions),
            None if self.outcomes is None else rows_table(self.outcomes),
            dead_letter_table([letter for _, letter in self.dead_letters]),
            alarm_table([alarm for _, alarm in self.alarms]),
        )

    def in_order(self) -> list[Output]:
        """Return all outputs but the alarms as objects, in the order of the events.

        Of one event these are in causal order: outcomes of assumed labels, unmatched labels that
        timed out, its prediction, the outcome if its label came before it, and dead letters of a
        learner that failed.
        """
        ranked: list[tuple[int, int, Output]] = [
            (row, _rank(one), one) for row, one in self.dead_letters
        ]
        rows = self.predicted.tolist()
        ranked += [(row, 2, one) for row, one in zip(rows, self.predictions, strict=True)]
        rows = self.settled.tolist() if self.outcomes is not None else []
        for row, one in zip(rows, self.outcomes or (), strict=True):
            ranked.append((row, 0 if getattr(one, "assumed", False) else 3, one))
        return [output for _, _, output in sorted(ranked, key=itemgetter(0, 1))]


def in_causal_order(dead: Sequence[tuple[int, DeadLetter]]) -> list[tuple[int, DeadLetter]]:
    """Return dead letters in the order of the events that cause them."""
    return sorted(dead, key=lambda one: (one[0], _rank(one[1])))


def _rank(letter: DeadLetter) -> int:
    """Return the rank of a dead letter among the outputs of one event."""
    return 1 if letter.row is None else 4
