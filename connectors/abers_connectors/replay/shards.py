"""Shards of a stream: each worker has the events of some models.

A model is a stream of its own, so it does not matter which worker has it. A new model goes to the
worker with the fewest events. A worker that ends early is replaced, and its shard is done again
from the beginning of the stream.
"""

from __future__ import annotations

import secrets
from collections import Counter, deque
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.exceptions import RecordError, WorkerError
from abers.stream import Processor
from abers.stream.option import Ref, said
from abers.stream.settings import setting_options
from abers.validation import shown
from abers_connectors.replay.merged_outputs import ShardOutputs, merged_outputs
from abers_connectors.replay.run import WorkerNumbers
from abers_connectors.replay.worker_process import (
    FinalState,
    Processed,
    WorkerEndError,
    WorkerProcess,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from concurrent.futures import Future

    from abers.arrays import Integers
    from abers.stream import Events, Outputs, Settings
    from abers_connectors.replay.worker_process import ProcessorOptions

__all__ = ["Shards"]

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
