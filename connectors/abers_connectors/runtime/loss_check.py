"""Check of what a service loses, over the last records, events and predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.stream import accounts
from abers_connectors.replay.losses import LOSSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers_connectors.runtime.task import StreamTask

__all__ = ["LossCheck"]


class LossCheck:
    """Compares the accounts of all tasks with those of earlier calls.

    Each kind of loss is checked anew when enough has come since its last check, so a sentence goes
    when its cause does.

    Examples
    --------
    >>> from abers.stream import Observation, Processor
    >>> from abers_connectors.runtime.checkpoint import Checkpoint
    >>> from abers_connectors.runtime.task import StreamTask
    >>> task = StreamTask(Processor(), Checkpoint("app", 0, 0, 0, (0, 0)))
    >>> losses = LossCheck()
    >>> losses.check([task])
    []
    >>> twice = [Observation(f"a{n // 2}", n, score=0.5) for n in range(1000)]
    >>> _ = task.processor.process_many(twice)
    >>> losses.check([task])[0][:42]
    '500 of 1,000 observations had an id that w'
    """

    def __init__(self) -> None:
        self._partitions: frozenset[int] | None = None
        self._before: dict[str, dict[str, int]] = {}  # by kind
        self._found: dict[str, str] = {}  # by kind
        self._logged: set[str] = set()

    @property
    def sentences(self) -> Sequence[str]:
        """The sentences that hold."""
        return [*self._found.values()]

    def check(self, tasks: Sequence[StreamTask]) -> list[str]:
        """Check what came since the last calls; return the sentences of kinds that are new.

        The tasks are all of the process.
        """
        now = accounts.total(task.accounts for task in tasks)
        partitions = frozenset(task.checkpoint.partition for task in tasks)
        if partitions != self._partitions:
            self._partitions, self._before = partitions, {one.name: now for one in LOSSES}
            return []
        new = []
        for one in LOSSES:
            before = self._before[one.name]
            since = {name: number - before.get(name, 0) for name, number in now.items()}
            if not one.tells(since):
                continue
            self._before[one.name] = now
            settings = tasks[0].processor.settings
            delays = [delay for task in tasks for delay in task.processor.late_delays]
            sentence = one.text(since, settings, delays, "toml")
            self._found.pop(one.name, None)
            if sentence is None:
                continue
            self._found[one.name] = sentence
            if one.name not in self._logged:
                self._logged.add(one.name)
                new.append(sentence)
        return new
