"""Alarms of a server, which go to the webhook once each."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

import msgspec

from abers_connectors.sinks.alarm_record import AlarmRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers.stream import Alarm, Processor

__all__ = ["AlarmWatch"]


class AlarmWatch:
    """Passes on the alarms of a processor that were raised since the last look.

    Parameters
    ----------
    processor
        The processor; alarms that it has already are not passed on.
    post
        Takes an alarm as JSON.
    """

    def __init__(self, processor: Processor, post: Callable[[bytes], object]) -> None:
        self._post = post
        self._last: dict[tuple[str, str], Alarm] = {}
        self._new(processor)

    def look(self, processor: Processor) -> None:
        """Pass on new alarms, while nothing changes the processor."""
        for one in self._new(processor):
            self._post(msgspec.json.encode(AlarmRecord.of(one)))

    def _new(self, processor: Processor) -> list[Alarm]:
        """Return the alarms since the last call, and note the last of each model and segment."""
        found: list[Alarm] = []
        for key, history in zip(processor.keys, processor.histories, strict=False):
            newest = [one for _, one in reversed(history.alarms)]
            last = self._last.get(key)
            found += [*takewhile(lambda one, last=last: one != last, newest)][::-1]  # type: ignore[misc]
            if newest:
                self._last[key] = newest[0]
        return found
