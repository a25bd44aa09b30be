"""Snapshots in the background: a copy of the process makes them while the loop goes on.

Governing rule: `start` stops the caller for no longer than a fork takes, and nothing that
goes wrong afterwards is an exception: it is told as the outcome of that snapshot, and the
service goes on with the changelog it has. One snapshot is made at a time, for each costs memory.

The copy holds the state as it was at the fork, so it computes the bytes and hands them through
a pipe, piece by piece, to a thread of the parent, which saves them. Neither ever holds all of
them (see `abers_connectors.kafka.copying` for the copy).
"""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from abers_connectors.kafka.copying import Copy, CopyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from abers._sealed import Piece

__all__ = ["Saved", "Saver"]

_SILENT, _LONGEST = 300.0, 3600.0  # seconds


class Saved(NamedTuple):
    """What became of a snapshot.

    Attributes
    ----------
    partition, offset
        Of which shard, and where in its changelog it goes on.
    size
        Bytes that were made.
    seconds
        From the start to the end.
    error
        Why it was not saved, as a sentence; None if it was.
    """

    partition: int
    offset: int
    size: int
    seconds: float
    error: str | None


class Saver:
    """Make and save snapshots in the background, one at a time.

    Parameters
    ----------
    save
        Takes partition, offset and the bytes in pieces, and has them saved when it returns; called
        by a thread. It raises what the pieces raise, and has saved nothing then.
    then
        Called by that thread with the partition, once a snapshot is saved.
    silent
        Seconds without a byte after which a copy is killed.
    longest
        Seconds after which a snapshot is given up that goes on and on.

    Examples
    --------
    >>> from abers.stream import Processor
    >>> kept = {}
    >>> saver = Saver(lambda number, offset, pieces: kept.update({offset: b"".join(pieces)}))
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
        silent: float = _SILENT,
        longest: float = _LONGEST,
    ) -> None:
        self._save, self._then = save, then
        self._silent, self._longest = silent, longest
        self._thread: Thread | None = None
        self._done: SimpleQueue[Saved] = SimpleQueue()

    def start(self, partition: int, offset: int, make: Callable[[], Iterable[Piece]]) -> bool:
        """Start a snapshot of what is there now.

        Parameters
        ----------
        partition, offset
            Of which shard, and where in its changelog it goes on.
        make
            Gives the bytes in pieces; called in a copy of this process.

        Returns
        -------
        bool
            False if the last one, of whichever shard, is not done yet; none is started then.
        """
        if self.busy():
            return False
        started = monotonic()
        try:
            copy = Copy(make, self._silent)
        except OSError as error:
            self._done.put(Saved(partition, offset, 0, 0.0, f"no copy of the process: {error}"))
            return True
        job = (copy, partition, offset, started)
        thread = Thread(target=self._follow, args=job, name=f"snapshot-{partition}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            copy.close()
            self._done.put(Saved(partition, offset, 0, 0.0, f"no thread: {error}"))
            return True
        self._thread = thread
        return True

    def busy(self) -> bool:
        """Tell whether a snapshot is not done yet."""
        return self._thread is not None and self._thread.is_alive()

    def finished(self) -> list[Saved]:
        """Give what became of the snapshots that are done since the last call; never waits."""
        found: list[Saved] = []
        with suppress(Empty):
            while True:
                found.append(self._done.get_nowait())
        return found

    def close(self, timeout: float | None = None) -> None:
        """Wait for what is running, for so many seconds at most; what is left is given up."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _follow(self, copy: Copy, partition: int, offset: int, started: float) -> None:
        """Save what a copy makes; the body of the thread."""
        size = 0

        def passing() -> Iterator[bytes]:
            nonlocal size
            for piece in copy.pieces():
                if monotonic() - started > self._longest:
                    msg = f"it was not done after {self._longest:g} s"
                    raise CopyError(msg)
                size += len(piece)
                yield piece

        error = None
        try:
            self._save(partition, offset, passing())
        except CopyError as failure:
            error = str(failure)
        except Exception as failure:  # noqa: BLE001 - whatever a disk or a store can raise
            error = f"{type(failure).__name__}: {failure}"
        finally:
            copy.close()
        self._done.put(Saved(partition, offset, size, monotonic() - started, error))
        if error is None:
            self._then(partition)
