"""Take-over from another application, the predecessor, which reads the same inputs.

The successor learns from the same records, but not beyond the offsets that the group of its
predecessor has committed, and publishes nothing. Each record of its changelog says so. Once the
predecessor has stopped for good, its offsets are final. The successor brings each task to exactly
these offsets of both inputs, and publishes from there. So exactly one application publishes what
follows from a record.
"""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

from abers.exceptions import StateError
from abers_connectors.runtime.status import TASKS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.batches import BatchBuffer
    from abers_connectors.runtime.status import Status
    from abers_connectors.runtime.task import StreamTask
    from abers_connectors.runtime.transport import TopicPartition

__all__ = ["Predecessor", "PredecessorView", "TakeOver", "require_publishing"]

_log = logging.getLogger(__name__)

_RECENT = 10.0  # seconds for which a task counts as being at offsets that it was at


class PredecessorView(NamedTuple):
    """What is known of a predecessor."""

    offsets: Mapping[TopicPartition, int]  # that its group has committed
    running: bool  # its group has members
    final: bool = False  # it was taken over by this application: it commits nothing any more
    taken_by: str | None = None  # the application that has taken it over


class Predecessor(Protocol):
    """The application that is taken over."""

    @property
    def id(self) -> str:
        """Its application id."""

    def view(self, *, fresh: bool = False) -> PredecessorView:
        """Return what is known of it; with `fresh`, wait for new answers of the brokers."""

    def take_over(self, *, ready: bool) -> None:
        """Set whether to make its offsets final, once its group has no members.

        Returns at once; a later view shows the result.
        """


class TakeOver:
    """The decisions of a take-over, for the tasks of one process; the clock is monotonic."""

    def __init__(
        self,
        application: Application,
        predecessor: Predecessor,
        status: Status,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._application, self._predecessor, self._status = application, predecessor, status
        self._clock = clock
        self._reached: dict[int, float] = {}  # when a task was at the offsets of the predecessor
        self._said = ""

    def create(self, create: Callable[[int], StreamTask], partition: int) -> StreamTask:
        """Create a task that follows the predecessor."""
        task = create(partition)
        task.follow(self._predecessor.id)
        return task

    def require(self, task: StreamTask) -> None:
        """Raise a StateError if a restored task cannot take over from the predecessor."""
        seen, follows = self._predecessor.view(), task.checkpoint.follows
        if not follows:
            self._require_taken_over()
        elif follows != self._predecessor.id:
            msg = (
                f"the state of {self._application.id} follows {follows}, and --take-over names "
                f"{self._predecessor.id}; start it with --take-over {follows}"
            )
            raise StateError(msg)
        else:
            self._require_same_inputs(seen)
            self._require_behind(task)

    def follow(
        self,
        tasks: Mapping[int, StreamTask],
        buffer: BatchBuffer,
        publish: Callable[[StreamTask], None],
    ) -> None:
        """Let tasks follow the predecessor, and publish from its final offsets on.

        `publish` commits the position of a task, and lets it go on from there.
        """
        seen, now = self._predecessor.view(), self._clock()
        following = {n: task for n, task in tasks.items() if task.checkpoint.follows}
        for number, task in following.items():
            self._require_free(seen)
            if buffer.drained(number):
                self._reached[number] = now
            caps = self._offsets(seen, task)
            buffer.cap(number, caps)
            if seen.final and buffer.drained(number):
                self._publish(task, caps, publish)
        if tasks and self._status.seats[TASKS].joined:  # all are restored
            self._report(seen, [n for n, task in tasks.items() if task.checkpoint.follows])

    def _offsets(self, seen: PredecessorView, task: StreamTask) -> list[int]:
        """Return the offsets of the predecessor; where it has none, those of the task."""
        inputs = self._application.input_partitions(task.checkpoint.partition)
        pairs = zip(inputs, task.checkpoint.next_offsets, strict=False)
        return [seen.offsets.get(one, offset) for one, offset in pairs]

    def _publish(
        self, task: StreamTask, offsets: list[int], publish: Callable[[StreamTask], None]
    ) -> None:
        """Publish from now on; markers of transactions may follow the last record."""
        self._require_behind(task)
        first, second = [*offsets, *task.checkpoint.next_offsets[len(offsets) :]]
        task.seek((first, second))
        task.follow("")
        publish(task)

    def _report(self, seen: PredecessorView, following: Sequence[int]) -> None:
        """Log how far the take-over is, and make it final once all tasks are ready."""
        old, recent = self._predecessor.id, self._clock() - _RECENT
        ready = sum(self._reached.get(number, -math.inf) > recent for number in following)
        behind = len(following) - ready
        self._predecessor.take_over(ready=not behind)
        counts = {"ready": ready, "behind": behind}
        if not following:
            sentence = f"took over from {old}: publishes all its partitions"
        elif seen.final:
            sentence = f"takes over from {old}, which has stopped for good"
        elif not behind:
            sentence = f"ready to take over: at the offsets of {old}; stop {old}"
        elif seen.running:
            sentence = f"learns behind {old}, and publishes nothing yet"
        else:
            sentence = (
                f"{old} has no running process, and is taken over once its offsets are reached; "
                "start it again for predictions meanwhile"
            )
        if sentence != self._said:
            _log.info(sentence)
        self._said = sentence
        self._status.update_take_over(sentence if following else None, counts)

    # What is required

    def _require_taken_over(self) -> None:
        """Raise a StateError if a task that publishes has not taken over from the predecessor.

        The brokers forget the offsets of a group that has no members.
        """
        seen = self._predecessor.view()
        if not seen.final and seen.offsets:
            seen = self._predecessor.view(fresh=True)
        if seen.offsets and seen.taken_by != self._application.id:
            msg = (
                f"{self._application.id} publishes already, and has not taken over from "
                f"{self._predecessor.id}; leave out --take-over, or take another "
                "kafka.application_id and changelog"
            )
            raise StateError(msg)

    def _require_free(self, seen: PredecessorView) -> None:
        if seen.taken_by not in {None, self._application.id}:
            msg = (
                f"{self._predecessor.id} was taken over by {seen.taken_by} meanwhile; take over "
                f"from {seen.taken_by} with another kafka.application_id"
            )
            raise StateError(msg)

    def _require_same_inputs(self, seen: PredecessorView) -> None:
        """Raise a StateError if the predecessor is unknown, or has other inputs."""
        old, inputs = self._predecessor.id, self._application.inputs
        if not seen.offsets:
            msg = (
                f"--take-over: group {old} has no committed offsets; name the kafka.application_id "
                "of an application that runs, or has run within a week"
            )
            raise StateError(msg)
        topics = {one.topic for one in seen.offsets}
        if missing := [topic for topic in inputs if topic not in topics]:
            msg = (
                f"--take-over: {old} reads {', '.join(sorted(topics))}, and not "
                f"{', '.join(missing)}; take over from an application with the same inputs"
            )
            raise StateError(msg)
        self._require_free(seen)

    def _require_behind(self, task: StreamTask) -> None:
        """Raise a StateError if a task is beyond the predecessor, which may be moving."""
        if self._beyond(task, self._predecessor.view()) and (
            found := self._beyond(task, self._predecessor.view(fresh=True))
        ):
            old = self._predecessor.id
            msg = (
                f"{found}: records between would have no prediction. Start {self._application.id} "
                f"at or before the offsets of {old}: by kafka.starting_offset, by an older "
                f"--initial-state, or once {old} has come further"
            )
            raise StateError(msg)

    def _beyond(self, task: StreamTask, seen: PredecessorView) -> str:
        """Name the inputs in which a task is beyond the predecessor."""
        inputs = self._application.input_partitions(task.checkpoint.partition)
        pairs = zip(inputs, task.checkpoint.next_offsets, strict=False)
        return "; ".join(
            f"{one}: {self._application.id} is at @{offset}, and {self._predecessor.id} has "
            f"committed @{seen.offsets[one]}"
            for one, offset in pairs
            if offset > seen.offsets.get(one, offset)
        )


def require_publishing(application: Application, task: StreamTask) -> None:
    """Raise a StateError if a task still follows another application."""
    if follows := task.checkpoint.follows:
        msg = (
            f"{application.id} has not yet taken over from {follows}: what it learned was "
            f"published by {follows}; start it with --take-over {follows}"
        )
        raise StateError(msg)
