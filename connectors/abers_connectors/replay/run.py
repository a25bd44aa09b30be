"""A run: batches from a source through processors into sinks, at a pace.

The pace of a replay: the speed at which the events happened, or a multiple of it. At speed 10, an
event that happened 50 seconds after the first is due 5 seconds after it. The pace keeps the order
of the events. Nothing else in a replay depends on the clock.

A state is saved only after the outputs are durable, together with their positions and that of the
source. So a run that starts from a state neither repeats nor omits an output, wherever the last run
stopped.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import ExitStack, contextmanager
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

from abers.exceptions import AbersError, DeadLettersError, ParameterError, RecordError
from abers.stream import make_task
from abers.stream.outputs import TIMED_OUT, DeadLetterRecord
from abers_connectors.sinks.alarm_record import AlarmRecord
from abers_connectors.sources.base import Origin
from abers_connectors.sources.delayed_labels import DelayedLabels
from abers_connectors.sources.merge import MergedSource

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from abers.stream import Alarm, DeadLetter, Events, Outputs, Processor, Settings
    from abers_connectors.replay.state_file import StateFile
    from abers_connectors.sinks.base import Sink
    from abers_connectors.sources.base import BadRecord, Batch, Position, Source

__all__ = [
    "BaseRun",
    "DeadLetterLimit",
    "Pace",
    "Run",
    "WorkerNumbers",
    "at_once",
    "bad_record",
    "dead_record",
    "named_records",
    "parse_speed",
    "read_batches",
    "row_types",
]

_GROUPING_WINDOW = 0.02  # seconds; events that are due within them are yielded together
_MIN_SLEEP = 1e-6  # seconds; some clocks do not resolve shorter times
_MAX_SLEEP = 3600.0  # seconds; the system refuses very long sleeps
_WORK_INTERVAL = 0.25  # seconds of a sleep between two calls of other work
_DAY = 24 * 3600 * 1000  # milliseconds, as event times
_YEAR = 366 * _DAY
_CONFIRMATIONS = 3  # events in a row that are far ahead before their times are believed


def parse_speed(text: str) -> float | None:
    """Return the number of a speed such as "1x", "10x" or "0.5x", or None for "max".

    Raises a ParameterError for any other text.

    Examples
    --------
    >>> parse_speed("10x"), parse_speed("max")
    (10.0, None)
    """
    if text == "max":
        return None
    try:
        number = float(text.removesuffix("x"))
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        msg = f"--speed {text!r} is not a speed; write 1x, 10x, 0.5x or max"
        raise ParameterError(msg)
    return number


class Pace:
    """Yields events at a multiple of the speed at which they happened.

    Wrong event times do not stall a replay. An event that is more than a day ahead of all earlier
    events is due at once, unless the two events before it were far ahead too. A gap of more than a
    year is skipped.
    """

    def __init__(
        self,
        speed: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._milliseconds_per_second = 1000 * speed  # of event time, by the clock
        self._clock, self._sleep = clock, sleep
        self._work: Callable[[], None] = lambda: None
        self._max_sleep = _MAX_SLEEP
        self._started = False
        self._start_clock = 0.0
        self._start_time = 0  # event time that was due at `_start_clock`
        self._latest = 0  # event time
        self._far_ahead = 0  # events in a row that are more than a day ahead

    def meanwhile(self, work: Callable[[], None]) -> None:
        """Call a function several times a second while nothing is due."""
        self._work, self._max_sleep = work, _WORK_INTERVAL

    def __call__(self, events: Events) -> Iterator[Events]:
        """Yield consecutive events in groups, each when its first event is due."""
        for rows in self.due(events.times.tolist()):
            yield events[rows]

    def due(self, times: Sequence[int]) -> Iterator[slice]:
        """Yield the rows of consecutive event times in groups, each when its first time is due."""
        start = 0
        while start < len(times):
            self._wait_for(times[start])
            due = self._due_time() + _GROUPING_WINDOW * self._milliseconds_per_second
            end = start + 1
            while end < len(times) and times[end] <= due:
                end += 1
            yield slice(start, end)
            start = end

    def _due_time(self) -> float:
        """Return the event time that is due now."""
        elapsed = self._clock() - self._start_clock
        return self._start_time + elapsed * self._milliseconds_per_second

    def _wait_for(self, event_time: int) -> None:
        """Sleep until an event time is due; ignore times far ahead until several confirm them."""
        if not self._started:
            self._started = True
            self._restart(event_time)
        ahead = event_time - self._latest
        self._far_ahead = self._far_ahead + 1 if ahead > _DAY else 0
        if 0 < self._far_ahead < _CONFIRMATIONS:
            return
        if ahead > _YEAR:
            self._restart(event_time)
            return
        self._latest = max(event_time, self._latest)
        self._sleep_until(event_time)

    def _restart(self, event_time: int) -> None:
        """Make an event time due now."""
        self._start_clock = self._clock()
        self._start_time = self._latest = event_time

    def _sleep_until(self, event_time: int) -> None:
        rate = self._milliseconds_per_second
        while (seconds := (event_time - self._due_time()) / rate) > _MIN_SLEEP:
            self._work()
            self._sleep(min(seconds, self._max_sleep))


def row_types(settings: Settings) -> dict[str, type[msgspec.Struct]]:
    """Return the type of the rows of each output, by its name."""
    task = make_task(settings)
    return {
        "predictions": task.prediction,
        "outcomes": task.outcome,
        "dead_letters": DeadLetterRecord,
    }


class UnreadableRecordError(RecordError):
    """A bad record that stops a run."""

    def __init__(self, where: str, detail: str) -> None:
        super().__init__(where, detail)  # as they are, so that a pickle can make it again
        self.where, self.detail = where, detail

    def __str__(self) -> str:
        """Return where the record is, what is wrong with it, and how to fix it."""
        return f"{self.where}: {self.detail}"


_OBSERVED = 500  # events between calls of observers, for which the evidence of a test is known
_MIN_RECORDS = 1000  # before the share of dead letters counts


class DeadLetterLimit(NamedTuple):
    """How many dead letters end a run."""

    stop: bool = False  # whether the first stops the run
    ratio: float = 1.0  # largest ratio of dead letters to records

    def require(self, dead: Counter[str], records: int) -> None:
        """Raise a DeadLettersError if too many of the records are dead letters."""
        if records >= _MIN_RECORDS and dead.total() / records > self.ratio:
            allowed = f"more than output.max_dead_letter_ratio = {self.ratio:g} allows"
            raise _dead_letters_error(dead, records, allowed)

    def require_some(self, dead: Counter[str], records: int, predictions: int) -> None:
        """Raise a DeadLettersError at the end if there are dead letters, and no prediction."""
        if dead and not predictions and self.ratio < 1:
            raise _dead_letters_error(dead, records, "and nothing was predicted")


def _dead_letters_error(dead: Counter[str], records: int, why: str) -> DeadLettersError:
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in dead.most_common())
    return DeadLettersError(
        f"{dead.total():,} of {records:,} records are dead letters ({reasons}), {why}; look at the "
        "dead letters, and fix the input or its mapping"
    )


def at_once(events: Events) -> Iterator[Events]:
    """Yield all events at once, without a pace."""
    yield events


class WorkerNumbers(msgspec.Struct, frozen=True):
    """What a worker did, which had some of the models."""

    models: int
    events: int
    processor_seconds: float
    restarts: int


class BaseRun(ABC):
    """A run; a context manager that closes the sinks, or discards them after an error.

    The sinks have the names of `row_types`; predictions are required. Live sinks, such as standard
    output, are committed after every batch. `on_alarm` is called with each alarm as JSON once its
    outputs are committed.

    Attributes
    ----------
    records
        Number of records read.
    unlabelled
        Number of those without a label so far.
    dead
        Numbers of dead letters by reason.
    alarms
        All alarms.
    workers
        What each worker did, at the end of a run of several.
    """

    def __init__(
        self,
        source: Source,
        sinks: Mapping[str, Sink],
        live: Collection[str],
        limit: DeadLetterLimit,
    ) -> None:
        self.records = self.unlabelled = 0
        self.dead: Counter[str] = Counter()
        self.alarms: list[AlarmRecord] = []
        self.workers: Sequence[WorkerNumbers] = ()
        self.on_alarm: Callable[[bytes], object] = lambda _: None
        self._source, self._sinks, self._limit = source, sinks, limit
        self._live = [sinks[name] for name in live]

    @property
    @abstractmethod
    def processors(self) -> Sequence[Processor]:
        """The processors of all models; the last state is there at the end of the run."""

    @abstractmethod
    def run(self) -> Iterator[int]:
        """Process the whole source; yield the number of records so far after each batch.

        Raises
        ------
        RecordError
            At a bad record, if the first stops the run, or if the source cannot go on.
        DeadLettersError
            If there are too many, or at the end no prediction.
        """

    def __enter__(self) -> Self:
        """Return the run."""
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Close the sinks, or discard what was not committed."""
        left = dict(self._sinks)
        try:
            for name, sink in self._sinks.items():
                # After too many dead letters their file is kept, so that they can be looked at.
                if error is None or (error is DeadLettersError and name == "dead_letters"):
                    sink.close()
                    del left[name]
        finally:
            with ExitStack() as stack:
                for sink in left.values():
                    stack.callback(sink.discard)

    @property
    def labelled(self) -> bool:
        """Whether observations have their labels, so that no record is a label."""
        return isinstance(self._source, DelayedLabels)

    @property
    def labels_wait(self) -> bool:
        """Whether labels wait for the records that a later run reads."""
        source = self._source
        return isinstance(source, DelayedLabels | MergedSource) and source.waits

    @property
    def events(self) -> int:
        """Number of events processed since the beginning of the state."""
        counts = [one.counters for one in self.processors]
        return sum(one["observations"] + one["labels_in"] for one in counts)

    def _commit_live(self) -> None:
        for sink in self._live:
            sink.commit()

    def _write(self, name: str, rows: Sequence[msgspec.Struct]) -> None:
        if rows and name in self._sinks:
            self._sinks[name].write(rows)

    def _write_dead(self, found: Sequence[DeadLetterRecord]) -> None:
        """Write dead letters, a row once: where rows have their labels, a label alone is left out.

        Its observation is a dead letter already, or it has expired, which is counted.
        """
        records = [one for one in found if not (self.labelled and one.where == TIMED_OUT)]
        if records and self._limit.stop:
            raise UnreadableRecordError(records[0].where, records[0].detail)
        self.dead.update(one.reason for one in records)
        self._write("dead_letters", records)

    def _count(self, batches: Iterable[Batch]) -> None:
        """Count the records of batches; raise a DeadLettersError after too many dead letters."""
        for one in batches:
            self.records += one.records
            self.unlabelled += one.unlabelled
        self._limit.require(self.dead, self.records)

    def _require_some(self) -> None:
        """Raise a DeadLettersError at the end if there are dead letters, and no prediction."""
        predictions = sum(one.counters["predictions"] for one in self.processors)
        self._limit.require_some(self.dead, self.records, predictions)

    def _end_waits(self) -> None:
        """At the end of all there is, let no observation wait for a label, but for assumed ones.

        The answers about later rows wait for it. Alarms come by model, for any number of workers.
        """
        found = [
            alarm
            for one in self.processors
            if one.settings.unlabelled is None
            for _, alarm in one.process_batch(one.waits()).alarms
        ]
        self._report(sorted(found, key=attrgetter("model")))

    def _report_alarms(self, outputs: Outputs) -> None:
        self._report(alarm for _, alarm in outputs.alarms)

    def _report(self, alarms: Iterable[Alarm]) -> None:
        for alarm in alarms:
            self.alarms.append(AlarmRecord.of(alarm))
            self.on_alarm(msgspec.json.encode(self.alarms[-1]))


class Run(BaseRun):
    """A run of one processor, in this process.

    If the processor was restored, the run continues from its position, at which the sinks were
    opened. The pace divides consecutive events into those that are processed together. Observers
    are called with the outputs of the processor once they are written to the sinks.
    """

    def __init__(  # noqa: PLR0913 - the parts of a run
        self,
        source: Source,
        processor: Processor,
        sinks: Mapping[str, Sink],
        *,
        live: Collection[str] = (),
        limit: DeadLetterLimit = DeadLetterLimit(),  # noqa: B008 - immutable
        state: StateFile | None = None,
        every: int = 100_000,
        pace: Callable[[Events], Iterable[Events]] = at_once,
    ) -> None:
        super().__init__(source, sinks, live, limit)
        self.processor = processor
        self.observers: list[Callable[[Outputs], object]] = []
        self._state, self._every, self._pace = state, every, pace
        self._read: Position | None = (processor.position or {}).get("source")

    @property
    def processors(self) -> Sequence[Processor]:
        """The processor."""
        return [self.processor]

    def run(self) -> Iterator[int]:
        """Process the whole source; see `BaseRun.run`."""
        saved = 0
        for batch in read_batches(self._source, self._read):
            self._process_batch(batch)
            self._read = batch.position
            self._count([batch])
            if self._state is not None and self.records - saved >= self._every:
                self._save()
                saved = self.records
            yield self.records
        self._require_some()
        if self._state is None:
            self._end_waits()
        self._save()

    def _process_batch(self, batch: Batch) -> None:
        """Process the events and the bad records of a batch in their order."""
        done = 0
        for bad in batch.bad:
            self._process(batch, done, bad.row)
            self._write_dead([bad_record(bad, bad.origin)])
            done = bad.row
        self._process(batch, done, len(batch.events))
        self._commit_live()

    def _process(self, batch: Batch, start: int, stop: int) -> None:
        """Process the events of consecutive rows."""
        if start == stop:
            return
        for events in self._parts(batch.events[start:stop]):
            origin = partial(_origin, batch, start)
            with named_records(origin, len(events)):
                outputs = self.processor.process_batch(events)
            self._write("predictions", outputs.predictions)
            self._write("outcomes", outputs.outcomes or ())
            self._write_dead([dead_record(one, origin) for _, one in outputs.dead_letters])
            self._commit_live()
            for observer in self.observers:
                observer(outputs)
            self._report_alarms(outputs)
            start += len(events)

    def _parts(self, events: Events) -> Iterator[Events]:
        """Divide events by the pace, and into smaller parts if there are observers."""
        most = _OBSERVED if self.observers else len(events)
        for paced in self._pace(events):
            for first in range(0, len(paced), most):
                yield paced[first : first + most]

    def _save(self) -> None:
        """Make the outputs durable, then save the state with their positions."""
        if self._state is None:
            return
        written = {name: sink.commit() for name, sink in self._sinks.items()}
        self._state.save(self.processor, {"source": self._read, "sinks": written})


def read_batches(source: Source, position: Position | None = None) -> Iterator[Batch]:
    """Yield the batches of a source; an unexpected error says after how many records it came."""
    batches, records = source.batches(position), 0
    while True:
        try:
            batch = next(batches, None)
        except AbersError:
            raise
        except Exception as error:
            error.add_note(f"abers failed on {source.name}, {records:,} records after it began")
            raise
        if batch is None:
            return
        records += batch.records
        yield batch


@contextmanager
def named_records(origin: Callable[[int], Origin], count: int) -> Iterator[None]:
    """Add to an unexpected error in the block which records were processed."""
    try:
        yield
    except AbersError:
        raise
    except Exception as error:
        error.add_note(f"abers failed between {origin(0).where} and {origin(count - 1).where}")
        raise


def _origin(batch: Batch, first: int, row: int) -> Origin:
    return batch.origin(first + row)


def dead_record(dead: DeadLetter, origin: Callable[[int], Origin]) -> DeadLetterRecord:
    """Return a dead letter of a processor with the origin of its record, found by its row."""
    if dead.row is not None:
        return bad_record(dead, origin(dead.row))
    return bad_record(dead, Origin(TIMED_OUT, msgspec.json.encode(dead.event).decode()))


def bad_record(of: BadRecord | DeadLetter, origin: Origin) -> DeadLetterRecord:
    """Return the dead letter of a record that has an origin."""
    return DeadLetterRecord(of.reason, of.detail, origin.where, raw=origin.raw)
