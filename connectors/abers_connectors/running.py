"""A run: batches from a source through the processor into sinks, and its state on disk.

Governing rule: what is in the state, what was read and what was written belong
together. A state is saved only after the outputs are durable, and it says how
far they go; so a run that starts from it neither repeats an output nor leaves
one out, wherever the last one was stopped.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

from abers.exceptions import DeadLettersError, RecordError
from abers.stream import task_of
from abers_connectors.alarms import AlarmRecord
from abers_connectors.records import DeadRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from abers.stream import DeadLetter, Events, Outputs, Processor, Settings
    from abers_connectors.records import Batch, Position, Sink, Source
    from abers_connectors.statefile import StateFile

__all__ = ["Run", "Tolerance", "at_once", "outputs"]


def outputs(settings: Settings) -> dict[str, type[msgspec.Struct]]:
    """Tell what each sink takes, by the task.

    Parameters
    ----------
    settings
        Those of the processor.

    Returns
    -------
    dict
        The type of the rows of each sink.
    """
    task = task_of(settings)
    return {"predictions": task.prediction, "outcomes": task.outcome, "dead_letters": DeadRecord}


_GLANCE = 500  # events between two looks: the evidence of a test is known after them only
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

    def require(self, dead: Counter[str], records: int) -> None:
        """Raise a DeadLettersError if of so many records too many are dead letters."""
        count = dead.total()
        if records >= _ENOUGH and count * 1000 > self.per_1000 * records:
            reasons = ", ".join(f"{number:,} {reason}" for reason, number in dead.most_common())
            msg = (
                f"{count:,} of {records:,} records are dead letters ({reasons}), more than "
                f"output.max_dead_per_1000 = {self.per_1000} allows; look at them, and mend the "
                "input or its mapping"
            )
            raise DeadLettersError(msg)


def at_once(events: Events) -> Iterator[Events]:
    """Give all events as soon as they are read."""
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
        By the names that `outputs` gives, opened at that position; predictions must be there.
    live
        Names of the sinks that somebody reads while the run goes on, such as standard output:
        nothing is held back there.
    tolerance
        How many bad records are too many.
    state
        Where the state is kept, if anywhere.
    every
        How many records lie between two savings of the state.
    pace
        Divides consecutive events into those that are processed together.

    Attributes
    ----------
    records, dead
        How many records this run has read, and how many dead letters it has written, by reason.
    onlookers
        Called with what the processor puts out, once it is handed to the sinks.
    alarms
        Those of this run.
    ring
        Called with each of them as JSON, once its outputs are handed on.
    """

    def __init__(  # noqa: PLR0913 - the parts of a run
        self,
        source: Source,
        processor: Processor,
        sinks: Mapping[str, Sink],
        *,
        live: Collection[str] = (),
        tolerance: Tolerance = Tolerance(),  # noqa: B008 - immutable
        state: StateFile | None = None,
        every: int = 100_000,
        pace: Callable[[Events], Iterable[Events]] = at_once,
    ) -> None:
        self.processor = processor
        self.records = 0
        self.dead: Counter[str] = Counter()
        self.onlookers: list[Callable[[Outputs], object]] = []
        self.alarms: list[AlarmRecord] = []
        self.ring: Callable[[bytes], object] = lambda _: None
        self._source, self._sinks, self._tolerance = source, sinks, tolerance
        self._live = [sinks[name] for name in live]
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
        left = dict(self._sinks)
        try:
            for name, sink in self._sinks.items():
                # Of too many dead letters one wants to see some.
                if error is None or (error is DeadLettersError and name == "dead_letters"):
                    sink.close()
                    del left[name]
        finally:
            with ExitStack() as stack:
                for sink in left.values():
                    stack.callback(sink.discard)

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
            self._tolerance.require(self.dead, self.records)
            if self._state is not None and self.records - saved >= self._every:
                self._save()
                saved = self.records
            yield self.records
        self._save()

    def _take(self, batch: Batch) -> None:
        """Take the events and the bad records of a batch, in the order they stand there."""
        done = 0
        for bad in batch.bad:
            self._process(batch, done, bad.row)
            self._bury([DeadRecord(bad.reason, bad.detail, *bad.origin)])
            done = bad.row
        self._process(batch, done, len(batch.events))
        self._hand_on()

    def _process(self, batch: Batch, start: int, stop: int) -> None:
        """Process the events of some consecutive rows."""
        if start == stop:
            return
        for events in self._parts(batch.events[start:stop]):
            outputs = self.processor.take(events)
            self._write("predictions", outputs.predictions)
            self._write("outcomes", outputs.outcomes or ())
            self._bury([_recorded(batch, start, letter) for letter in outputs.dead_letters()])
            self._hand_on()
            for onlooker in self.onlookers:
                onlooker(outputs)
            self._ring(outputs)
            start += len(events)

    def _parts(self, events: Events) -> Iterator[Events]:
        """Divide events as the pace does, and further where somebody looks on."""
        most = _GLANCE if self.onlookers else len(events)
        for paced in self._pace(events):
            for first in range(0, len(paced), most):
                yield paced[first : first + most]

    def _ring(self, outputs: Outputs) -> None:
        for _, alarm in outputs.alarms:
            self.alarms.append(AlarmRecord.of(alarm))
            self.ring(msgspec.json.encode(self.alarms[-1]))

    def _hand_on(self) -> None:
        for sink in self._live:
            sink.commit()

    def _write(self, name: str, rows: Sequence[msgspec.Struct]) -> None:
        if rows and name in self._sinks:
            self._sinks[name].write(rows)

    def _bury(self, letters: Sequence[DeadRecord]) -> None:
        if letters and self._tolerance.stop:
            msg = f"{letters[0].where}: {letters[0].detail}"
            raise RecordError(msg)
        self.dead.update(letter.reason for letter in letters)
        self._write("dead_letters", letters)

    def _save(self) -> None:
        """Make what was written durable, then the state that says so."""
        if self._state is None:
            return
        written = {name: sink.commit() for name, sink in self._sinks.items()}
        self._state.save(self.processor, {"source": self._read, "sinks": written})


def _recorded(batch: Batch, first: int, letter: DeadLetter) -> DeadRecord:
    """Give a dead letter of the processor its place and its text."""
    if letter.row is not None:
        return DeadRecord(letter.reason, letter.detail, *batch.origin(first + letter.row))
    raw = msgspec.json.encode(letter.event).decode()
    return DeadRecord(letter.reason, letter.detail, "a label that waited in vain", raw)
