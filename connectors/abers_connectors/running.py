"""A run: batches from a source through the processor into sinks, and its state on disk.

Governing rule: what is in the state, what was read and what was written belong
together. A state is saved only after the outputs are durable, and it says how
far they go; so a run that starts from it neither repeats an output nor leaves
one out, wherever the last one was stopped.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

from abers.exceptions import DeadLettersError, RecordError
from abers.stream import DeadLetter, Outcome, Prediction
from abers_connectors.records import DeadRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType

    from abers.stream import Event, Output, Processor
    from abers_connectors.records import Batch, Position, Sink, Source
    from abers_connectors.statefile import StateFile

__all__ = ["OUTPUTS", "Run", "Tolerance", "at_once"]

OUTPUTS: dict[str, type[msgspec.Struct]] = {
    "predictions": Prediction,
    "outcomes": Outcome,
    "dead_letters": DeadRecord,
}
"""What each sink takes."""

_ENOUGH = 1000  # records before the share of dead letters is looked at


class Tolerance(NamedTuple):
    """How many bad records are too many.

    Parameters
    ----------
    stop
        Whether the first one stops the run.
    per_1000
        How many of a thousand records may be dead letters.
    """

    stop: bool = False
    per_1000: int = 1000


def at_once(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """Give all events of a batch as soon as they are read."""
    yield events


class Run:
    """One run; a context manager that closes the sinks, or discards them if something fails.

    Parameters
    ----------
    source
        Where events come from.
    processor
        What takes them. If it was restored, the run goes on from its position.
    sinks
        By the names of `OUTPUTS`, opened at that position; predictions must be there.
    tolerance
        How many bad records are too many.
    state
        Where the state is kept, if anywhere.
    every
        How many records lie between two savings of the state.
    pace
        Divides the events of a batch into those that are processed together.

    Attributes
    ----------
    records, dead
        How many records this run has read, and how many dead letters it has written.
    """

    def __init__(  # noqa: PLR0913 - the parts of a run
        self,
        source: Source[Event],
        processor: Processor,
        sinks: dict[str, Sink],
        *,
        tolerance: Tolerance = Tolerance(),  # noqa: B008 - immutable
        state: StateFile | None = None,
        every: int = 100_000,
        pace: Callable[[Sequence[Event]], Iterable[Sequence[Event]]] = at_once,
    ) -> None:
        self.processor = processor
        self.records = self.dead = 0
        self._source, self._sinks, self._tolerance = source, sinks, tolerance
        self._state, self._every, self._pace = state, every, pace
        self._read: Position | None = (processor.position or {}).get("source")

    def __enter__(self) -> Self:
        """Use the run in a `with` block."""
        return self

    def __exit__(
        self,
        error: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the sinks, or discard what was not committed."""
        with ExitStack() as stack:
            for sink in self._sinks.values():
                stack.callback(sink.close if error is None else sink.discard)

    def run(self) -> Iterator[int]:
        """Take the whole source.

        Yields
        ------
        int
            How many records were read so far, after each batch.

        Raises
        ------
        RecordError
            At a bad record, if the first one stops the run, or if the source cannot go on.
        DeadLettersError
            If there are too many.
        """
        saved = 0
        for batch in self._source.batches(self._read):
            self._take(batch)
            self._read = batch.position
            self.records += batch.records
            self._check_share()
            if self._state is not None and self.records - saved >= self._every:
                self._save()
                saved = self.records
            yield self.records
        self._save()

    def _take(self, batch: Batch[Event]) -> None:
        outputs: list[Output] = []
        done, dead = 0, []
        for events in self._pace(batch.events):
            made = self.processor.process_many(events)
            dead += [(done, one) for one in made if type(one) is DeadLetter]
            outputs += made
            done += len(events)
        self._write("predictions", [one for one in outputs if type(one) is Prediction])
        self._write("outcomes", [one for one in outputs if type(one) is Outcome])
        letters = [(one.row, DeadRecord(one.reason, one.detail, *one.origin)) for one in batch.bad]
        letters += [_recorded(batch, first, letter) for first, letter in dead]
        letters.sort(key=lambda letter: letter[0])
        self._bury([letter for _, letter in letters])

    def _write(self, name: str, rows: Sequence[msgspec.Struct]) -> None:
        if rows and name in self._sinks:
            self._sinks[name].write(rows)

    def _bury(self, letters: Sequence[DeadRecord]) -> None:
        if letters and self._tolerance.stop:
            msg = f"{letters[0].where}: {letters[0].detail}"
            raise RecordError(msg)
        self.dead += len(letters)
        self._write("dead_letters", letters)

    def _check_share(self) -> None:
        most = self._tolerance.per_1000
        if self.records >= _ENOUGH and self.dead * 1000 > most * self.records:
            msg = (
                f"{self.dead:,} of {self.records:,} records are dead letters, more than "
                f"output.max_dead_per_1000 = {most} allows; look at the reasons in the dead "
                "letters, and mend the input or its mapping"
            )
            raise DeadLettersError(msg)

    def _save(self) -> None:
        """Make what was written durable, then the state that says so."""
        if self._state is None:
            return
        written = {name: sink.commit() for name, sink in self._sinks.items()}
        self._state.save(self.processor, {"source": self._read, "sinks": written})


def _recorded(batch: Batch[Event], first: int, letter: DeadLetter) -> tuple[int, DeadRecord]:
    """Give a dead letter of the processor its place among the events, and its text."""
    if letter.row is not None:
        row = first + letter.row
        return row, DeadRecord(letter.reason, letter.detail, *batch.origin(row))
    raw = msgspec.json.encode(letter.event).decode()
    return first, DeadRecord(letter.reason, letter.detail, "a label that waited in vain", raw)
