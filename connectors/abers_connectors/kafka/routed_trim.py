"""Deletion of the records of the routed topic that tasks have taken.

A task is restored from its snapshot and its changelog, so it never reads a record again that is
before its committed offset. A failure costs nothing but disk space.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from abers.exceptions import AbersError
from abers_connectors.kafka.connection import open_admin, to_client

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.task import StreamTask
    from abers_connectors.runtime.transport import TopicPartition

__all__ = ["RoutedTrimmer"]

_log = logging.getLogger(__name__)

_INTERVAL = 60.0  # seconds between two deletions


class RoutedTrimmer:
    """Deletes now and then, in a thread, what the tasks of this process have committed.

    It is called after each batch, when all that tasks have taken is committed.
    """

    def __init__(
        self,
        application: Application,
        settings: Mapping[str, Any],
        *,
        interval: float = _INTERVAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._application, self._settings = application, settings
        self._interval, self._clock, self._last = interval, clock, clock()
        self._trimmed: dict[TopicPartition, int] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="routed-trim")
        self._running: Future[None] | None = None

    def __call__(self, tasks: Sequence[StreamTask]) -> None:
        """Delete records if that is due; never waits, and never raises."""
        busy = self._running is not None and not self._running.done()
        if busy or self._clock() - self._last < self._interval:
            return
        self._last = self._clock()
        offsets = {
            one: offset
            for task in tasks
            for one, offset in zip(
                self._application.input_partitions(task.checkpoint.partition),
                task.checkpoint.next_offsets,
                strict=False,  # the second offset means nothing
            )
            if offset > self._trimmed.get(one, 0)
        }
        if offsets:
            self._running = self._thread.submit(self._delete, offsets)

    def close(self) -> None:
        """Delete no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _delete(self, offsets: Mapping[TopicPartition, int]) -> None:
        try:
            with open_admin(self._settings) as admin:
                admin.delete_records({to_client(one): offset for one, offset in offsets.items()})
        except (AbersError, OSError) as error:
            _log.warning("routed records are not deleted: %s", error)
        else:
            self._trimmed |= offsets
