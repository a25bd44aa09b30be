"""Snapshots in the background: a copy of the process makes them while the loop continues.

`start` blocks the caller only for the time of a fork. Whatever fails afterwards is not an exception
but the result of that snapshot, and the service continues with its changelog. Only one snapshot is
made at a time, since each takes memory.

The copy has the state as it was at the fork. It computes the bytes and sends them through a pipe,
piece by piece, to a thread of the parent, which saves them; neither ever holds all of them (see
`abers.stream.process_copy`).
"""

from __future__ import annotations

from queue import SimpleQueue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from abers.stream.process_copy import ProcessCopy, ProcessCopyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from abers.serialization import Piece

__all__ = ["BackgroundSnapshotter", "SnapshotResult"]

_STALL_TIMEOUT, _TIMEOUT = 300.0, 3600.0  # seconds


class SnapshotResult(NamedTuple):
    """Result of a snapshot."""

    partition: int
    offset: int  # at which the changelog continues
    size: int  # bytes
    seconds: float  # that it took
    error: str | None  # why it was not saved, as a sentence


class BackgroundSnapshotter:
    """Makes and saves snapshots in the background, one at a time.

    `save` is called in a thread with partition, offset and the pieces of a snapshot; if the pieces
    raise, it must raise too, and save nothing. `then` is called in that thread with the partition
    after a snapshot is saved. A snapshot is abandoned after `stall_timeout` seconds without a byte,
    and in any case after `timeout` seconds.

    Examples
    --------
    >>> from abers.stream import Processor
    >>> kept = {}
    >>> def save(partition, offset, pieces):
    ...     kept[offset] = b"".join(pieces)
    >>> saver = BackgroundSnapshotter(save)
    >>> processor = Processor()
    >>> saver.start(0, 17, processor.snapshot_pieces)
    True
    >>> saver.close()
    >>> [(one.partition, one.offset, one.error) for one in saver.finished()]
    [(0, 17, None)]
    >>> kept[17] == processor.snapshot()
    True
    """

    def __init__(
        self,
        save: Callable[[int, int, Iterator[bytes]], object],
        then: Callable[[int], object] = lambda _: None,
        *,
        stall_timeout: float = _STALL_TIMEOUT,
        timeout: float = _TIMEOUT,
    ) -> None:
        self._save, self._then = save, then
        self._stall_timeout, self._timeout = stall_timeout, timeout
        self._thread: Thread | None = None
        self._done: SimpleQueue[SnapshotResult] = SimpleQueue()

    def start(self, partition: int, offset: int, make: Callable[[], Iterable[Piece]]) -> bool:
        """Start a snapshot of the current state; return False if another snapshot is running.

        `make` returns the bytes in pieces, and is called in a copy of this process. The changelog
        of the partition continues at `offset`.
        """
        if self.busy():
            return False
        started, copy = monotonic(), None
        try:
            copy = ProcessCopy(make, self._stall_timeout)
            job, name = (copy, partition, offset, started), f"snapshot-{partition}"
            thread = Thread(target=self._save_pieces, args=job, name=name, daemon=True)
            thread.start()
        except (OSError, RuntimeError) as error:
            if copy is not None:
                copy.close()
            failure = f"no {'copy of the process' if copy is None else 'thread'}: {error}"
            self._done.put(SnapshotResult(partition, offset, 0, 0.0, failure))
        else:
            self._thread = thread
        return True

    def busy(self) -> bool:
        """Return whether a snapshot is running."""
        return self._thread is not None and self._thread.is_alive()

    def finished(self) -> list[SnapshotResult]:
        """Return the results since the last call; never waits."""
        return [self._done.get_nowait() for _ in range(self._done.qsize())]

    def close(self, timeout: float | None = None) -> None:
        """Wait at most so many seconds for a running snapshot, and abandon it otherwise."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _save_pieces(self, copy: ProcessCopy, partition: int, offset: int, started: float) -> None:
        """Save the bytes that a copy makes; the body of the thread."""
        size = 0

        def pieces() -> Iterator[bytes]:
            nonlocal size
            for piece in copy.pieces():
                if monotonic() - started > self._timeout:
                    msg = f"it was not done after {self._timeout:g} s"
                    raise ProcessCopyError(msg)
                size += len(piece)
                yield piece

        error = None
        try:
            self._save(partition, offset, pieces())
        except ProcessCopyError as failure:
            error = str(failure)
        except Exception as failure:  # noqa: BLE001 - anything a disk or a storage raises
            error = f"{type(failure).__name__}: {failure}"
        finally:
            copy.close()
        self._done.put(SnapshotResult(partition, offset, size, monotonic() - started, error))
        if error is None:
            self._then(partition)
