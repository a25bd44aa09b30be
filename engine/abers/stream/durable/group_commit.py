"""Group commit: what waits together is written together, by one thread.

While a group is written, which takes as long as the disk takes, requests gather for the next. So a
disk that syncs a thousand times a second serves far more requests.
"""

from __future__ import annotations

from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["GroupCommit", "Waiting"]

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

    Examples
    --------
    >>> commit = GroupCommit(lambda group: [2 * one for one in group], 10)
    >>> commit.submit(4, 1).result()
    8
    >>> commit.close()
    """

    def __init__(self, write: Callable[[Sequence[T]], Sequence[R]], most: int) -> None:
        self._write, self._most = write, most
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
