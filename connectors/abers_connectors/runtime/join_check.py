"""Check that labels meet their observations.

An early label meets its observation soon, so the number of waiting labels stays constant. If it
grows with the labels that arrive, labels and observations lie in different partitions, and no
error would ever show it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers_connectors.runtime.task import StreamTask

__all__ = ["JoinCheck"]

_MIN_LABELS = 1_000
_MAX_UNMATCHED = 0.2


class _LabelCounts(NamedTuple):
    """Sums over all tasks: labels, labels without an observation, and the event time."""

    partitions: frozenset[int]
    labels: int
    unmatched: int
    clock: int


class JoinCheck:
    """Compares the labels of all tasks between two calls.

    Examples
    --------
    >>> from abers.stream import Label, Processor
    >>> from abers_connectors.runtime.checkpoint import Checkpoint
    >>> from abers_connectors.runtime.task import StreamTask
    >>> task = StreamTask(Processor(), Checkpoint("app", 0, 0, 0, (0, 0)))
    >>> join_check = JoinCheck()
    >>> join_check.check([task], 0.0)
    >>> _ = task.processor.process_many([Label(f"a{n}", n, value=1) for n in range(1000)])
    >>> join_check.check([task], 0.0)[:42]
    '1,000 of the last 1,000 labels have met no'
    """

    def __init__(self) -> None:
        self._before: _LabelCounts | None = None
        self._warned = False

    def check(self, tasks: Iterable[StreamTask], delay: float) -> str | None:
        """Return a warning, once, if over a fifth of at least 1,000 labels met no observation.

        The tasks are all of the process. The delay is the median one of labels, in seconds of event
        time; labels that arrived within less are not counted.
        """
        now, before = _counts(tasks), self._before
        if before is None or before.partitions != now.partitions or now.labels < before.labels:
            self._before = now
            return None
        labels, unmatched = now.labels - before.labels, now.unmatched - before.unmatched
        if labels < _MIN_LABELS or now.clock - before.clock < delay * 1000:
            return None
        self._before = now
        if self._warned or unmatched <= _MAX_UNMATCHED * labels:
            return None
        self._warned = True
        return (
            f"{unmatched:,} of the last {labels:,} labels have met no observation. Unless those "
            "are of observations from before the start, labels lie in other partitions than their "
            "observations: by another key, or by another partitioner (librdkafka's default is "
            "CRC32, Java's is murmur2); `abers check --connect` compares them"
        )


def _counts(tasks: Iterable[StreamTask]) -> _LabelCounts:
    labels = unmatched = clock = 0
    partitions = set()
    for task in tasks:
        counters = task.processor.counters
        labels += counters["labels_in"]
        unmatched += counters["unknown_labels"] + task.processor.waiting[1]
        clock = max(clock, task.processor.clock or 0)
        partitions.add(task.checkpoint.partition)
    return _LabelCounts(frozenset(partitions), labels, unmatched, clock)
