"""A run with its models shared out among several processes.

This process reads the source and writes the outputs, in the order of one process; workers do all
that lies between. So the outputs are the same, to the bit, for any number of workers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from abers.stream import Events
from abers_connectors.replay.run import (
    BaseRun,
    DeadLetterLimit,
    bad_record,
    dead_record,
    named_records,
    read_batches,
)
from abers_connectors.replay.shards import Shards

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence

    from abers.stream import Outputs, Processor, Settings
    from abers.stream.dead_letter_record import DeadLetterRecord
    from abers.stream.option import Front
    from abers_connectors.replay.worker_process import ProcessorOptions
    from abers_connectors.sinks.base import Sink
    from abers_connectors.sources.base import Batch, Origin, Source

__all__ = ["ParallelRun"]

_AT_ONCE = 131_072  # events: a model costs less where a batch has many events of it
_AHEAD = 2  # rounds that workers have besides that with outputs that are written


class ParallelRun(BaseRun):
    """A run of several workers.

    Parameters
    ----------
    source
        Can be read again.
    settings, outcomes
        Those of the processors.
    workers
        Number of workers.
    say
        Takes a sentence about a worker that ended.
    front
        Where its user writes options.

    Attributes
    ----------
    at_once
        Events that are processed together, at least.
    """

    def __init__(  # noqa: PLR0913 - the parts of a run
        self,
        source: Source,
        settings: Settings,
        sinks: Mapping[str, Sink],
        workers: int,
        *,
        outcomes: bool,
        live: Collection[str] = (),
        limit: DeadLetterLimit = DeadLetterLimit(),  # noqa: B008 - immutable
        say: Callable[[str], object] = lambda _: None,
        front: Front = "toml",
    ) -> None:
        super().__init__(source, sinks, live, limit)
        self.at_once = _AT_ONCE
        self._processors: Sequence[Processor] = ()
        given: ProcessorOptions = {"outcomes": outcomes, "front": front}
        self._shards = Shards(settings, workers, self._again, say, given)

    @property
    def processors(self) -> Sequence[Processor]:
        """The processors at the end; none before."""
        return self._processors

    def run(self) -> Iterator[int]:
        """Process the whole source; see `BaseRun.run`.

        Raises
        ------
        WorkerError
            If the workers of a shard end again and again.
        """
        waiting = deque[_Round]()
        for found in _rounds(self._source, self.at_once):
            if len(found.events):
                self._shards.submit(found.events)
            waiting.append(found)
            if len(waiting) > _AHEAD:
                self._write_round(waiting.popleft())
                yield self.records
        while waiting:
            self._write_round(waiting.popleft())
            yield self.records
        self._processors, self.workers = self._shards.finish()
        self._end_waits()

    def __exit__(self, error: type[BaseException] | None, *rest: object) -> None:
        """End the workers, and close or discard the sinks."""
        self._shards.close()
        super().__exit__(error, *rest)

    def _again(self) -> Generator[Events]:
        for found in _rounds(self._source, self.at_once):
            if len(found.events):
                yield found.events

    def _write_round(self, found: _Round) -> None:
        """Write the outputs of a round, and its bad records among them."""
        with named_records(found.origin, len(found.events)):
            outputs = self._shards.outputs() if len(found.events) else None
        if outputs is not None:
            self._write("predictions", outputs.predictions)
            self._write("outcomes", outputs.outcomes or ())
        self._write_dead(found.dead_letters(outputs))
        self._commit_live()
        if outputs is not None:
            self._report_alarms(outputs)
        self.records += sum(batch.records for batch in found.batches)
        self.unlabelled += sum(batch.unlabelled for batch in found.batches)
        self._limit.require(self.dead, self.records)


class _Round(NamedTuple):
    """Consecutive batches that are processed together."""

    batches: Sequence[Batch]
    events: Events
    firsts: Sequence[int]  # row of the first event of each batch

    @classmethod
    def of(cls, batches: Sequence[Batch]) -> _Round:
        firsts = [0, *accumulate(len(batch.events) for batch in batches)][:-1]
        return cls(batches, Events.joined([batch.events for batch in batches]), firsts)

    def origin(self, row: int) -> Origin:
        """Return the origin of an event."""
        number = bisect_right(self.firsts, row) - 1
        return self.batches[number].origin(row - self.firsts[number])

    def dead_letters(self, outputs: Outputs | None) -> list[DeadLetterRecord]:
        """Return all dead letters in the order of the records: a bad one stands before a row."""
        found = [
            (first + bad.row, 0, bad_record(bad, bad.origin))
            for first, batch in zip(self.firsts, self.batches, strict=True)
            for bad in batch.bad
        ]
        if outputs is not None:
            found += [(row, 1, dead_record(one, self.origin)) for row, one in outputs.dead_letters]
        return [one for *_, one in sorted(found, key=lambda one: one[:2])]


def _rounds(source: Source, at_once: int) -> Iterator[_Round]:
    """Yield the batches of a source, several together."""
    batches: list[Batch] = []
    events = 0
    for batch in read_batches(source):
        batches.append(batch)
        events += len(batch.events)
        if events >= at_once:
            yield _Round.of(batches)
            batches, events = [], 0
    if batches:
        yield _Round.of(batches)
