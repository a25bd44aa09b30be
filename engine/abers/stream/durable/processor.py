"""The durable processor: a processor, its journal with group commit, and its snapshots.

While a group is written, which takes as long as the disk takes, requests gather for the next. So a
disk that syncs a thousand times a second serves far more requests.
"""

from __future__ import annotations

import errno
import os
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain, islice, pairwise
from queue import Empty, SimpleQueue
from threading import RLock, Thread
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar

import msgspec
import numpy as np

from abers import validation
from abers.exceptions import DurabilityError, ParameterError
from abers.stream.background_snapshot import BackgroundSnapshotter
from abers.stream.columns import Events, as_events, require_events
from abers.stream.durable.answers import AnswerMemory
from abers.stream.durable.folder import StateFolder
from abers.stream.durable.journal_file import (
    START,
    JournalFile,
    file_head,
    frame,
    require_encodable,
)
from abers.stream.durable.restore import RestoreOptions, restored
from abers.stream.events import Observation
from abers.stream.journal import encoded_extra
from abers.stream.outputs import Outputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from abers.arrays import Integers
    from abers.learners import Learner
    from abers.serialization import Piece
    from abers.stream.background_snapshot import SnapshotResult
    from abers.stream.durable.answers import EventAnswer
    from abers.stream.events import DeadLetter, Event
    from abers.stream.option import Front
    from abers.stream.processor import Processor
    from abers.stream.settings import Settings

__all__ = ["DurableProcessor", "GroupCommit", "Waiting", "shares", "together"]


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


T = TypeVar("T")
R = TypeVar("R")


class Waiting(NamedTuple, Generic[T, R]):
    """A request that waits, with its size and the future of its result."""

    request: T
    size: int
    future: Future[R]


class GroupCommit(Generic[T, R]):
    """Writes requests in groups, in the order in which they came.

    Parameters
    ----------
    write
        Writes a group, and returns a result for each request. If it raises, the group and all later
        requests get that error, and nothing is written any more.
    most
        Size of a group beyond which no request is added.
    at_end
        Called in the thread that writes, before it ends.

    Examples
    --------
    >>> commit = GroupCommit(lambda group: [2 * one for one in group], 10)
    >>> commit.submit(4, 1).result()
    8
    >>> commit.close()
    """

    def __init__(
        self,
        write: Callable[[Sequence[T]], Sequence[R]],
        most: int,
        at_end: Callable[[], object] = lambda: None,
    ) -> None:
        self._write, self._most, self._at_end = write, most, at_end
        self._queue: SimpleQueue[Waiting[T, R] | None] = SimpleQueue()
        self.error: BaseException | None = None
        self._thread = Thread(target=self._run, name="commit", daemon=True)
        self._thread.start()

    def submit(self, request: T, size: int) -> Future[R]:
        """Let a request wait for the next group."""
        future: Future[R] = Future()
        self._queue.put(Waiting(request, size, future))
        return future

    def close(self) -> None:
        """Write what waits, and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        goes_on = True
        while goes_on:
            group, goes_on = self._gathered()
            group = [one for one in group if one.future.set_running_or_notify_cancel()]
            if group:
                self._commit(group)
        self._at_end()

    def _gathered(self) -> tuple[list[Waiting[T, R]], bool]:
        """Return the requests that wait, at least one, and whether more may come."""
        group: list[Waiting[T, R]] = []
        one, size = self._queue.get(), 0
        while one is not None:
            group.append(one)
            size += one.size
            if size >= self._most:
                return group, True
            try:
                one = self._queue.get_nowait()
            except Empty:
                return group, True
        return group, False

    def _commit(self, group: Sequence[Waiting[T, R]]) -> None:
        if self.error is None:
            try:
                results = self._write([one.request for one in group])
            except BaseException as error:  # noqa: BLE001 - each request gets it
                self.error = error
            else:
                for one, result in zip(group, results, strict=True):
                    one.future.set_result(result)
        if self.error is not None:
            for one in group:
                one.future.set_exception(self.error)


_JOURNAL, _SNAPSHOT = "journal", "snapshot"
_JOURNAL_BYTES = 64 << 20  # read and applied in a few seconds
_LENGTH = 8  # bytes
_DISK_FAILURES = {errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # others are mistakes
_AT_END = 10.0  # seconds for a snapshot that is being made when the processor is closed
_MOST_TOGETHER = 10_000  # events of a group: more take hardly less time each


class _WaitingEvents(NamedTuple):
    """Events that wait, and the position behind them."""

    events: Events | list[Event]
    position: Any
    answered: bool = False


class DurableProcessor:
    """A processor that returns outputs when they are on disk, so that they survive a crash.

    The folder has a snapshot, and a journal of all events since. A new processor reads both, and
    goes on where the last one stopped. A folder has one writer at a time, by a lock.

    Parameters
    ----------
    path
        The folder; it is created if it is not there. A backup is a copy of it: the snapshots
        first, then the files of the journal.
    settings, learner, trusted_types
        As of `Processor`.
    key
        Seals the snapshots, see `Processor.snapshot`. The journal is not sealed.
    journal_bytes
        A snapshot is made when the journal has so many bytes, or as many as the last snapshot if
        these are more. A restart reads up to twice as many.
    answers
        Whether predictions are kept for `answer`, as long as their ids are known: while an
        observation waits, and `dedup_ttl` longer. The limit `max_bytes` counts them, too.
    front
        As of `abers.stream.Processor`.

    Raises
    ------
    DurabilityError
        If another process writes there, or the disk fails or is full.
    StateError
        If a file is damaged or missing, of other settings, or of another version; nothing in the
        folder has changed then.
    OSError
        If the folder cannot be read or written.
    ParameterError
        If a parameter has no valid value.

    Notes
    -----
    **Guarantee.** All events with outputs that were returned are in the state of every later
    processor of this folder, to the bit, as long as the disk keeps what it said it had written. Of
    other events that were submitted, the first in order may be there too. An event of a known id is
    a duplicate, so it is safe to send again what was not answered.

    **Failure.** If the disk does not take a group of events, none of them is answered, and every
    later call raises a DurabilityError: nobody knows what is on disk then. A new processor reads
    what is there, so end the process and start it again.

    **Snapshots** are made by a copy of the process, which the operating system makes in a few
    milliseconds, and which shares its memory. Without it, events would wait while the whole state
    is written.

    **Outputs** are without alarms and `settled_batch`; the monitors of `reading` have both. They do
    not depend on what waits together.

    Examples
    --------
    >>> import tempfile
    >>> from abers.stream import DurableProcessor, Label, Observation
    >>> path = tempfile.mkdtemp()
    >>> with DurableProcessor(path) as durable:
    ...     durable.process([Observation("a1", 0, score=0.3)], position=17).predictions[0].p
    0.5
    >>> with DurableProcessor(path) as durable:
    ...     durable.position, durable.process([Label("a1", 5, value=1)]).outcomes[0].p
    (17, 0.5)
    """

    def __init__(  # noqa: PLR0913 - its parameters, and those of a processor
        self,
        path: str | os.PathLike[str],
        settings: Settings | None = None,
        *,
        learner: Learner | None = None,
        key: bytes | None = None,
        trusted_types: Sequence[str] | None = None,
        journal_bytes: int = _JOURNAL_BYTES,
        answers: bool = False,
        front: Front = "python",
    ) -> None:
        self._key = key
        self._journal_bytes = validation.count(journal_bytes, "journal_bytes", 1)
        self._folder = StateFolder(path)
        self._process, self._closed = os.getpid(), False
        self._state_lock = RLock()
        self._position: Any = None
        self._answers = AnswerMemory() if answers else None
        self._journal: JournalFile
        self._last_snapshot: SnapshotResult | None = None
        with ExitStack() as stack:
            self._lock = self._folder.lock()
            stack.callback(os.close, self._lock)
            options = RestoreOptions.of(settings, learner, key, trusted_types, answers=answers)
            options = options._replace(front=front)
            try:
                self._restore(options)
            except OSError as error:
                if error.errno not in _DISK_FAILURES:
                    raise
                raise self._disk_failed(error) from error
            stack.pop_all()
        self._snapshots = BackgroundSnapshotter(self._save, self._note_saved)
        # A copy that makes a snapshot ends with the thread that began it, so that waits for it.
        at_end = partial(self._snapshots.close, _AT_END)
        self._commit = GroupCommit(self._write, _MOST_TOGETHER, at_end)

    # Events

    def process(self, events: Events | Sequence[Event] | object, position: Any = None) -> Outputs:  # noqa: ANN401
        """Process events, and return their outputs when these are on disk.

        Parameters
        ----------
        events
            A list of events, or as of `Processor.process_batch`. Lists of a few are fastest.
        position
            Where reading resumes behind these events, anything that JSON can hold; None leaves it
            as it was.

        Returns
        -------
        Outputs
            By kind, with the rows of these events.

        Raises
        ------
        ParameterError
            If a list has anything but events, or an extra field or the position cannot be encoded;
            nothing is processed then.
        DurabilityError
            If the disk does not take them, now or before, or the processor is closed.
        """
        return self.submit(events, position).result()

    def submit(
        self,
        events: Events | Sequence[Event] | object,
        position: Any = None,  # noqa: ANN401
    ) -> Future[Outputs]:
        """Let events wait for the next write to disk, and return the future of their outputs.

        Events are processed in the order of the calls. A future that is cancelled in time takes its
        events back. See `process` for parameters and errors; the future has a DurabilityError.
        """
        batch = self._batch(events)
        require_encodable(position)
        return self._submitted(_WaitingEvents(batch, position))

    def answer(
        self,
        events: list[Event],
        position: Any = None,  # noqa: ANN401
    ) -> Future[list[EventAnswer]]:
        """Let events wait as `submit` does, and return the future of the answer to each.

        An observation of a known id is answered with its prediction of before, and a label has a
        status; see `abers.stream.durable.answers.EventAnswer`. So all may be sent again. A
        ParameterError is raised without `answers`; all other errors are those of `submit`.
        """
        if self._answers is None:
            msg = "answers are not kept; make the processor with answers=True"
            raise ParameterError(msg)
        batch = self._batch(events)
        require_encodable(position)
        return self._submitted(_WaitingEvents(batch, position, answered=True))

    def _submitted(self, request: _WaitingEvents) -> Future[Any]:
        self._require_open()
        return self._commit.submit(request, len(request.events))

    @property
    def position(self) -> Any:  # noqa: ANN401 - of the caller
        """The last position on disk; None before the first."""
        return self._position

    @contextmanager
    def reading(self) -> Iterator[Processor]:
        """Return the processor for reading, in a `with` block, during which no events are taken.

        It may have events that are not yet on disk.
        """
        self._require_open()
        with self._state_lock:
            yield self._processor

    @property
    def last_snapshot(self) -> SnapshotResult | None:
        """How the last snapshot in the background ended; None if none did."""
        with self._state_lock:  # two threads may ask
            self._last_snapshot = [self._last_snapshot, *self._snapshots.finished()][-1]
            return self._last_snapshot

    def close(self) -> None:
        """Write what waits, and release the folder; closing again does nothing.

        A snapshot that is being made has 10 s to end, and is abandoned otherwise: the journal has
        all that it would have.
        """
        if not self._closed:
            self._closed = True
            self._commit.close()
            self._snapshots.close()
            self._journal.close()
            os.close(self._lock)

    def __enter__(self) -> Self:
        """Return the processor."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the processor."""
        self.close()

    # Requests

    def _require_open(self) -> None:
        """Raise a DurabilityError if the processor is closed, or its disk failed."""
        if self._closed or self._process != os.getpid():
            what = "is closed" if self._closed else "is that of another process"
            msg = f"{self._folder.path}: the processor {what}; make a new one"
            raise DurabilityError(msg)
        if (error := self._commit.error) is not None:
            msg = f"{self._folder.path}: the processor failed ({error}); end the process"
            raise DurabilityError(msg) from error

    def _batch(self, events: Events | Sequence[Event] | object) -> Events | list[Event]:
        """Return events as they are processed; raise an error of theirs before others join them."""
        if not isinstance(events, list):
            batch = as_events(events, self._settings)
        else:
            require_events(events)
            if not any(type(one) is Observation and one.extra for one in events):
                return events
            batch = Events.of(events)
        if batch.extra is not None:
            encoded_extra(batch.extra[~batch.labels].tolist())
        return batch

    def _write(self, group: Sequence[_WaitingEvents]) -> list[Any]:
        """Process a group of requests, and return the result of each when it is on disk."""
        try:
            if self._is_due():
                self._begin_file()
            with self._state_lock:
                events = together([one.events for one in group])
                outputs, entry = self._processor.process_logged(events)
            given = [one.position for one in group if one.position is not None]
            position = given[-1] if given else self._position
            self._journal.append(frame(entry, position))
        except OSError as error:
            raise self._disk_failed(error) from error
        self._number += 1
        self._position = position
        return self._results(group, events, outputs)

    def _disk_failed(self, error: OSError) -> DurabilityError:
        return DurabilityError(
            f"{self._folder.path}: the disk failed ({error.strerror or error}), and what was not "
            "answered may be lost; see that it has room and is sound, and start again"
        )

    def _results(
        self, group: Sequence[_WaitingEvents], events: Events | list[Event], outputs: Outputs
    ) -> list[Any]:
        """Return the outputs of each request, or the answers to its events."""
        sizes = [len(one.events) for one in group]
        results: list[Any] = [None] * len(group)
        if not all(one.answered for one in group):
            results = [*shares(outputs, sizes)]
        if self._answers is not None:
            answers = iter(self._answers.take(events, outputs, self._processor))
            parts = [[*islice(answers, size)] for size in sizes]
            for at, one in enumerate(group):
                results[at] = parts[at] if one.answered else results[at]
        return results

    # Files

    def _restore(self, options: RestoreOptions) -> None:
        """Restore the processor, or begin a folder."""
        folder = self._folder
        folder.remove_parts()
        if folder.is_new(START):
            folder.write(0, _JOURNAL, [file_head(0)])
            folder.write(0, _SNAPSHOT, options.new().snapshot_pieces(key=self._key))
        self._processor, cursor = restored(folder, options, self._answers)
        self._settings = self._processor.settings
        self._number, self._position = cursor.number, cursor.position
        self._journal = self._opened(cursor.file, cursor.offset)
        self._snapshot_bytes = folder.size(folder.numbers(_SNAPSHOT)[-1], _SNAPSHOT)

    def _opened(self, number: int, size: int) -> JournalFile:
        return JournalFile(self._folder.open(number, _JOURNAL, os.O_RDWR), size)

    def _is_due(self) -> bool:
        """Return whether a snapshot is to be made."""
        least = max(self._journal_bytes, self._snapshot_bytes)
        return self._journal.size >= least and not self._snapshots.busy()

    def _begin_file(self) -> None:
        """Begin a file of the journal, and a snapshot of the state before it."""
        number = self._number
        self._folder.write(number, _JOURNAL, [file_head(number)])
        self._journal.close()
        self._journal = self._opened(number, START)
        with self._state_lock:  # the copy has no threads, so nobody may be reading
            pieces = self._processor.snapshot_pieces(self._position, self._key)
            make = partial(self._copied, pieces, self._answers)
            self._snapshots.start(0, number, make)

    def _copied(self, pieces: Iterator[Piece], answers: AnswerMemory | None) -> Iterator[Piece]:
        """Yield the answers and the snapshot, in the copy of this process."""
        os.close(self._lock)  # or the copy would keep it when this process is killed
        state = b"" if answers is None else answers.state(self._key)
        yield len(state).to_bytes(_LENGTH, "little") + state
        yield from pieces

    def _save(self, _: int, number: int, pieces: Iterator[bytes]) -> None:
        answers, pieces = _parted(pieces)
        if answers:
            self._folder.write(number, "answers", [answers])
        self._folder.write(number, _SNAPSHOT, pieces)
        self._snapshot_bytes = self._folder.size(number, _SNAPSHOT)

    def _note_saved(self, _: int) -> None:
        with suppress(OSError):  # the next snapshot tries again
            self._folder.remove_old()


def _parted(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the bytes behind a length, and all that follows."""
    begun = b""
    while len(begun) < _LENGTH or len(begun) < _end(begun):
        begun += next(pieces)
    return begun[_LENGTH : _end(begun)], chain([begun[_end(begun) :]], pieces)


def _end(begun: bytes) -> int:
    return _LENGTH + int.from_bytes(begun[:_LENGTH], "little")
