"""What passes through some processors, gathered by model and segment.

Governing rule: all of it happens in the thread that works, so nothing is read while it changes;
and what is kept is bounded, however long the stream is and however many models it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec
import numpy as np

from abers.stream import Judged
from abers.stream.grouping import by_key
from abers_connectors.report.finding import found, judged
from abers_connectors.report.gathering import CHANGE, Gathered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers.stream import Outputs, Processor
    from abers.stream.tasks import Monitor
    from abers_connectors.report.findings import Findings

__all__ = ["Key", "Numbers", "Seen", "Watching"]

Key: TypeAlias = tuple[str, str]
"""Model and segment."""

_STRETCHES = 64  # of a model: points enough for a screen
_MOST = 100  # models whose scores over time are kept
_DELAYS = 1_000  # labels whose delays are kept, of all models


class Seen(msgspec.Struct, frozen=True):
    """A model and segment, with what a list of them says.

    Parameters
    ----------
    key
        Which.
    labels
        How many of its predictions were judged.
    rings
        Whether an alarm is open.
    """

    key: Key
    labels: int
    rings: bool


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the records, as a loop knows it.

    Parameters
    ----------
    events
        How many records were applied, or refused.
    dead
        Dead letters by reason.
    waiting
        How many observations wait for labels, and labels for observations.
    read
        Which share of the stream was read, if it has an end.
    lag
        How many records are still to be read, if that is known.
    behind
        How old the newest event is, in seconds, if time goes on.
    hints
        Sentences for whoever looks after it.
    ready
        Whether everything is served.
    """

    events: int
    dead: Mapping[str, int]
    waiting: tuple[int, int]
    read: float | None = None
    lag: int | None = None
    behind: float | None = None
    hints: tuple[str, ...] = ()
    ready: bool = True


class _Part(NamedTuple):
    """A key in one of the processors."""

    processor: Processor
    number: int

    @property
    def monitor(self) -> Monitor:
        return self.processor.monitors[self.number]


class Watching:
    """Gathers what is judged; the scores of all time are those of the processors' own monitors."""

    def __init__(self) -> None:
        self._processors: dict[int, Processor] = {}
        self._gathered: dict[Key, Gathered] = {}
        self._delays = np.empty(0)

    def hold(self, processors: Mapping[int, Processor]) -> None:
        """Know which processors there are, by the numbers of their parts of the stream."""
        self._processors = dict(processors)

    def take(self, processor: Processor, outputs: Outputs) -> None:
        """Gather what a processor put out, once it is sure."""
        if (made := outputs.judged) is None or not len(made.keys):
            return
        delays = np.maximum(made.delays[-_DELAYS:], 0) / 1000
        self._delays = np.concatenate([self._delays, delays])[-_DELAYS:]
        keys, alarms = processor.keys, [alarm for _, alarm in outputs.alarms]
        for number, rows in by_key(made.keys):
            key = keys[number]
            if (gathered := self._of(key, processor)) is not None:
                part = Judged(*(column[rows] for column in made))
                mine = [one for one in alarms if (one.model, one.segment) == key]
                gathered.take(part, processor.monitors[number].tests, mine)

    def _of(self, key: Key, processor: Processor) -> Gathered | None:
        """Find where a key is gathered; None of one too many."""
        if key not in self._gathered and len(self._gathered) < _MOST:
            self._gathered[key] = Gathered(processor.settings, _STRETCHES)
        return self._gathered.get(key)

    def delay(self) -> float | None:
        """Give the median delay of the last labels, in seconds of event time."""
        return float(np.median(self._delays)) if len(self._delays) else None

    def waiting(self) -> tuple[int, int]:
        """Count the observations that wait for labels, and labels for observations."""
        pairs = [processor.waiting for processor in self._processors.values()]
        return sum(seen for seen, _ in pairs), sum(told for _, told in pairs)

    def seen(self) -> list[Seen]:
        """List what was judged, the model with most labels first."""
        found_ones = (
            Seen(key, sum(judged(part.monitor) for part in parts), _rings(parts))
            for key, parts in self._parts().items()
        )
        return sorted(found_ones, key=lambda one: (-one.labels, one.key))

    def findings(self, key: Key) -> Findings | None:
        """Put together what is known of a model and segment; None if nothing is."""
        parts = self._parts().get(key)
        if not parts:
            return None
        monitors = [part.monitor for part in parts]
        settings = parts[0].processor.settings
        gathered = self._gathered.get(key) or Gathered(settings)
        return found(type(monitors[0]).total(monitors), gathered, settings)

    def _parts(self) -> dict[Key, list[_Part]]:
        parts: dict[Key, list[_Part]] = {}
        for processor in self._processors.values():
            for number, key in enumerate(processor.keys[: len(processor.monitors)]):
                parts.setdefault(key, []).append(_Part(processor, number))
        return parts


def _rings(parts: Sequence[_Part]) -> bool:
    tests = (one for part in parts for one in part.monitor.tests)
    return any(one.ringing for one in tests if one.name == CHANGE)
