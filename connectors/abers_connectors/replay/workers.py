"""A run with its models shared out among several processes.

This process reads the source and writes the outputs, in the order of one process; workers do all
that lies between. So the outputs are the same, to the bit, for any number of workers. A model is a
stream of its own, so it does not matter which worker has it: a new model goes to the worker with
the fewest events. Parent and worker exchange pickles over a pipe that no other process has. A
worker ends when its parent closes the pipe, or is gone; one that ends early is replaced, and its
shard is done again from the beginning of the stream.
"""

from __future__ import annotations

import pickle
import secrets
import signal
from bisect import bisect_right
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import accumulate
from multiprocessing import get_all_start_methods, get_context
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import msgspec
import numpy as np

from abers.exceptions import RecordError, WorkerError
from abers.stream import Events, Outputs, Processor
from abers.stream.option import Ref, said
from abers.stream.outputs import Rows
from abers.stream.settings import setting_options
from abers.validation import shown
from abers_connectors.replay.run import (
    BaseRun,
    DeadLetterLimit,
    WorkerNumbers,
    bad_record,
    dead_record,
    named_records,
    read_batches,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerContext, SpawnContext

    from abers.arrays import Integers
    from abers.stream import DeadLetter, Settings
    from abers.stream.option import Front
    from abers.stream.outputs import DeadLetterRecord
    from abers_connectors.sinks.base import Sink
    from abers_connectors.sources.base import Batch, Origin, Source

__all__ = ["ParallelRun", "ShardOutputs", "merged_outputs"]


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


_PROTOCOL = 5  # its pickles hold arrays as they are
_PATIENCE = 5.0  # seconds for a worker to end


class WorkerEndError(Exception):
    """A worker ended before it answered; the message says how."""


class ProcessorOptions(TypedDict):
    """What a processor has besides its settings."""

    outcomes: bool
    front: Front  # where its user writes options


class Processed(NamedTuple):
    """What a worker made of a batch."""

    outputs: Outputs  # without the settled batch
    keys: int  # models and segments that the worker has


class FinalState(NamedTuple):
    """The state of a worker at the end."""

    snapshot: bytes
    seconds: float  # of processor time


class WorkerProcess:
    """A process that is started at once, and the thread that talks to it.

    Parameters
    ----------
    settings, options
        Those of the processor.
    key
        Seals the final state; see `Processor.snapshot`.
    """

    def __init__(self, settings: Settings, key: bytes, options: ProcessorOptions) -> None:
        context = _context()
        self._connection, own = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(own, settings, key, options), daemon=True
        )
        self._process.start()
        own.close()
        self._thread = ThreadPoolExecutor(1, "worker")

    @property
    def pid(self) -> int | None:
        """Number of the process."""
        return self._process.pid

    def process(self, events: Events) -> Future[bytes]:
        """Let the worker process a batch; `answer` reads the result."""
        return self._thread.submit(self._ask, pickle.dumps(events, _PROTOCOL))

    def finish(self) -> Future[bytes]:
        """Let the worker return its `FinalState`."""
        return self._thread.submit(self._ask, pickle.dumps(None, _PROTOCOL))

    def answer(self, future: Future[bytes]) -> Any:  # noqa: ANN401 - as the request has it
        """Wait for an answer.

        Raises
        ------
        WorkerEndError
            If the process ended, or ran out of memory.
        Exception
            What else the worker raised.
        """
        try:
            found = pickle.loads(future.result())  # noqa: S301 - of our own process
        except (EOFError, OSError):
            raise WorkerEndError(self._end()) from None
        if isinstance(found, MemoryError):
            msg = "ran out of memory"
            raise WorkerEndError(msg) from None
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.join()
        self._thread.shutdown(cancel_futures=True)
        self._connection.close()

    def _ask(self, request: bytes) -> bytes:
        self._connection.send_bytes(request)
        return self._connection.recv_bytes()

    def _end(self) -> str:
        self._process.join(_PATIENCE)
        code = self._process.exitcode
        if code is None or code >= 0:
            return f"ended with code {code}"
        found = signal.Signals(-code)
        # The kernel ends the process that takes most memory in this way.
        why = ", perhaps for lack of memory" if found == signal.SIGKILL else ""
        return f"was ended by {found.name}{why}"


def _context() -> ForkServerContext | SpawnContext:
    """Return what starts workers; a fork would copy several threads, and only one goes on."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    # A server that has imported this module forks the workers: each import would take longer.
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def _serve(
    connection: Connection, settings: Settings, key: bytes, options: ProcessorOptions
) -> None:
    """Answer requests until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, which ends this
    processor = Processor(settings, **options)
    with suppress(EOFError, OSError):
        while True:
            request = pickle.loads(connection.recv_bytes())  # noqa: S301 - of our parent
            try:
                answer = pickle.dumps(_answer(processor, request, key), _PROTOCOL)
            except Exception as error:  # noqa: BLE001 - the parent raises it
                answer = _encoded(error)
            connection.send_bytes(answer)


def _answer(processor: Processor, events: Events | None, key: bytes) -> Processed | FinalState:
    if events is None:
        # No event follows, and the ids are most of the state of a long stream.
        pieces = processor.snapshot_pieces(key=key, finished_ids=False)
        return FinalState(b"".join(pieces), process_time())
    outputs = processor.process_batch(events)._replace(settled_batch=None)
    return Processed(outputs, len(processor.keys))


def _encoded(error: Exception) -> bytes:
    """Return an error as the parent can read it."""
    try:
        found = pickle.dumps(error, _PROTOCOL)
        pickle.loads(found)  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - anything an error's class does
        return pickle.dumps(RuntimeError(repr(error)), _PROTOCOL)
    return found


_SEVERAL = 2
_ENDS = 3  # of the workers of one shard, before the run fails


class _Sent(NamedTuple):
    """A batch that the workers have, with rows and answer of each shard that has any of it."""

    rows: dict[int, Integers]
    answers: dict[int, Future[bytes]]


class Shards:
    """Workers that process batches of one stream; `close` ends them.

    Parameters
    ----------
    settings, options
        Those of the processors.
    count
        Number of workers.
    again
        Returns the same batches from the beginning.
    say
        Takes a sentence about a worker that ended.
    """

    def __init__(
        self,
        settings: Settings,
        count: int,
        again: Callable[[], Generator[Events]],
        say: Callable[[str], object],
        options: ProcessorOptions,
    ) -> None:
        self._settings, self._options, self._again, self._say = settings, options, again, say
        self._count = count
        self._key = secrets.token_bytes(32)
        self._workers = [self._worker() for _ in range(count)]
        self._ends, self._keys = [0] * count, [0] * count
        self._shard_of: dict[str, int] = {}
        self._sizes: list[list[int]] = []  # events of each shard, for each batch
        self._sent: deque[_Sent] = deque()
        self._done = 0  # batches with outputs that were taken
        self._finals: dict[int, Future[bytes]] = {}  # final states that were requested

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.close()

    def submit(self, events: Events) -> None:
        """Send a batch to the workers."""
        rows = self._rows(events)
        self._sizes.append([_size(rows.get(shard)) for shard in range(self._count)])
        answers = {n: self._workers[n].process(events.take(own)) for n, own in rows.items()}
        self._sent.append(_Sent(rows, answers))

    def outputs(self) -> Outputs:
        """Wait for the outputs of the oldest batch.

        Raises
        ------
        WorkerError
            If a worker ends again and again.
        RecordError
            If there are more models than `max_models`, or the stream differs when it is read again.
        """
        parts = []
        for shard, rows in self._sent[0].rows.items():
            found: Processed = self._answer(shard, self._oldest)
            self._keys[shard] = found.keys
            parts.append(ShardOutputs(rows, found.outputs))
        self._require_room()
        self._sent.popleft()
        self._done += 1
        return merged_outputs(parts)

    def finish(self) -> tuple[list[Processor], list[WorkerNumbers]]:
        """Return the processors at the end, and what each worker did."""
        models = Counter(self._shard_of.values())
        processors, numbers = [], []
        for shard in range(self._count):
            # The next worker makes its snapshot meanwhile; so two are in memory, and never more.
            if shard + 1 < self._count:
                self._finals[shard + 1] = self._workers[shard + 1].finish()
            restored, seconds = self._restored(shard)
            processors.append(restored)
            restarts = self._ends[shard]
            events = sum(sizes[shard] for sizes in self._sizes)
            numbers.append(WorkerNumbers(models[shard], events, seconds, restarts))
        return processors, numbers

    def _restored(self, shard: int) -> tuple[Processor, float]:
        """Return the processor of a worker at the end, and the seconds that the worker took."""
        last: FinalState = self._answer(shard, self._last)
        given = self._options
        found = Processor.restore(last.snapshot, self._settings, key=self._key, **given)
        return found, last.seconds

    def _worker(self) -> WorkerProcess:
        return WorkerProcess(self._settings, self._key, self._options)

    def _rows(self, events: Events) -> dict[int, Integers]:
        """Return the rows of each shard that has any, and give new models to shards."""
        names = events.models.tolist()
        if new := {*names} - self._shard_of.keys():
            counts = Counter(name for name in names if name in new)
            load = [sum(sizes) for sizes in zip(*self._sizes, strict=True)] or [0] * self._count
            for name, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])):
                shard = self._shard_of[name] = load.index(min(load))
                load[shard] += count
        shards = np.fromiter(map(self._shard_of.__getitem__, names), np.int64, len(names))
        return {int(n): np.flatnonzero(shards == n) for n in np.unique(shards)}

    def _require_room(self) -> None:
        most, found = self._settings.max_models, sum(self._keys)
        if found > most:
            limit = said((Ref(setting_options()["max_models"], most),), self._options["front"])
            msg = (
                f"there are {found:,} models and segments, more than {limit} allows; raise it, or "
                "run without --workers, where those beyond it are dead letters"
            )
            raise RecordError(msg)

    # Workers that end

    def _oldest(self, shard: int) -> Future[bytes]:
        return self._sent[0].answers[shard]

    def _last(self, shard: int) -> Future[bytes]:
        return self._finals.pop(shard, None) or self._workers[shard].finish()

    def _answer(self, shard: int, ask: Callable[[int], Future[bytes]]) -> Any:  # noqa: ANN401
        """Return the answer of a worker, and do its shard again if it ends before."""
        while True:
            try:
                return self._workers[shard].answer(ask(shard))
            except WorkerEndError as error:
                self._replace(shard, str(error))

    def _replace(self, shard: int, end: str) -> None:
        """Start another worker, and let it process what the old worker had of all batches."""
        while True:
            self._ends[shard] += 1
            models = [name for name, n in self._shard_of.items() if n == shard]
            ended = (
                f"worker {shard + 1} of {self._count} (process {self._workers[shard].pid}, "
                f"{_named(models)}) {end}"
            )
            if self._ends[shard] == _ENDS:
                msg = f"{ended}, as did two before it; give it more memory, or run fewer workers"
                raise WorkerError(msg)
            self._say(f"{ended[0].upper()}{ended[1:]}; its shard is done again.")
            self._workers[shard].close()
            self._workers[shard] = self._worker()
            try:
                self._redo(shard)
            except WorkerEndError as error:
                end = str(error)
            else:
                return

    def _redo(self, shard: int) -> None:
        """Let a new worker process the shard of all batches that were sent, in their order."""
        with closing(self._again()) as batches:
            for number, wanted in enumerate(self._sizes):
                events = next(batches, None)
                rows = None if events is None else self._rows(events).get(shard)
                if events is None or _size(rows) != wanted[shard]:
                    msg = (
                        "the input is not what it was when the replay began; replay it again, and "
                        "leave it unchanged meanwhile"
                    )
                    raise RecordError(msg)
                if rows is None:
                    continue
                answer = self._workers[shard].process(events.take(rows))
                if number < self._done:
                    self._workers[shard].answer(answer)  # its outputs were taken
                else:
                    self._sent[number - self._done].answers[shard] = answer


def _size(rows: Integers | None) -> int:
    return 0 if rows is None else len(rows)


def _named(models: Sequence[str]) -> str:
    """Return the first model of a shard, and the number of the others."""
    first = shown(models[0]) if models else "no model"
    return first if len(models) < _SEVERAL else f"{first} and {len(models) - 1:,} more models"


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
        self._require_some()
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
        self._count(found.batches)


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
