"""What passes through some processors, gathered by model and segment.

Governing rule: all of it happens in the thread that works, so nothing is read while it changes;
and what is kept is bounded, however long the stream is and however many models it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.stream import Judged
from abers.stream.grouping import by_key
from abers_connectors.models import parts, seen
from abers_connectors.report.finding import found
from abers_connectors.report.gathering import Gathered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers.stream import Outputs, Processor
    from abers_connectors.models import Key, Part, Seen
    from abers_connectors.report.findings import Findings

__all__ = ["Watching"]

_STRETCHES = 64  # of a model: points enough for a screen
_MOST = 100  # models whose scores over time are kept
_DELAYS = 1_000  # labels whose delays are kept, of all models


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
        self._let_go(processor, outputs.retired)
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

    def _let_go(self, processor: Processor, retired: Sequence[str]) -> None:
        """Make room for others where models were retired that no processor has."""
        if retired:
            having = [processor, *self._processors.values()]
            gone = {*retired} - {model for one in having for model, _ in one.keys}
            kept = {key: one for key, one in self._gathered.items() if key[0] not in gone}
            self._gathered = kept

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
        return seen(self._parts())

    def findings(self, key: Key) -> Findings | None:
        """Put together what is known of a model and segment; None if nothing is."""
        many = self._parts().get(key)
        return None if many is None else self._found(key, many)

    def kept(self) -> dict[Key, Findings]:
        """Put together what is known of each that is gathered, the one with most labels first.

        While there is room there are others too, of which nothing was judged since.
        """
        known = self._parts()
        keys = [one.key for one in seen(known)]
        others = [key for key in keys if key not in self._gathered]
        chosen = {*self._gathered, *others[: _MOST - len(self._gathered)]}
        return {key: self._found(key, known[key]) for key in keys if key in chosen}

    def _found(self, key: Key, many: Sequence[Part]) -> Findings:
        monitors = [one.monitor for one in many]
        settings = many[0].processor.settings
        gathered = self._gathered.get(key) or Gathered(settings)
        return found(type(monitors[0]).total(monitors), gathered, settings)

    def _parts(self) -> dict[Key, list[Part]]:
        return parts(self._processors.values())
