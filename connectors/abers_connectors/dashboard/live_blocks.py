"""Blocks of the models that readers watch, made anew when enough labels came.

They take some 15 milliseconds with their HTML, and nobody reads numbers that change each second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from abers.pages.model_document import model_blocks

if TYPE_CHECKING:
    from abers.pages.blocks import Block
    from abers.pages.model_findings import Silence
    from abers_connectors.dashboard.models import Key
    from abers_connectors.dashboard.observer import ObservedModel, Observer

__all__ = ["LiveBlocks"]

_KEPT = 40  # models: a few more than readers at once
_MORE = 100  # blocks are made again after one label more in so many,
_SECONDS = 10.0  # or after any more label and so long
_WHERE = "the predictions that the stream wrote"


class _MadeBlocks(NamedTuple):
    at: float  # by the clock of the page
    labels: int  # number of predictions scored
    active: tuple[bool, ...]  # whether each test is
    silence: Silence | None
    blocks: tuple[Block, ...]

    def holds(self, now: float, labels: int, active: tuple[bool, ...], silence: object) -> bool:
        """Return whether the blocks may be shown."""
        few = self.labels < labels <= self.labels + self.labels / _MORE
        fresh = labels == self.labels or (few and now < self.at + _SECONDS)
        return fresh and (self.active, self.silence) == (active, silence)


class LiveBlocks:
    """Blocks of models, with times in a zone; they are read and made in the thread that works."""

    def __init__(self, observer: Observer, zone: str) -> None:
        self._observer, self._zone = observer, zone
        self._made: dict[Key, _MadeBlocks] = {}

    def __call__(
        self, key: Key, now: float = 0.0, silence: Silence | None = None
    ) -> tuple[Block, ...] | None:
        """Return the blocks of a model at a time of a clock; None for an unknown model."""
        monitor = self._observer.total(key)
        if monitor is None:
            return None
        active = tuple(one.active for one in monitor.tests)
        made = self._made.pop(key, None)
        if made is None or not made.holds(now, monitor.count, active, silence):
            blocks = self._blocks(self._observer.observed(key), silence)
            made = _MadeBlocks(now, monitor.count, active, silence, blocks)
        while len(self._made) >= _KEPT:
            del self._made[next(iter(self._made))]
        self._made[key] = made
        return made.blocks

    def _blocks(self, model: ObservedModel, silence: Silence | None) -> tuple[Block, ...]:
        details = model.details()._replace(where=_WHERE, silence=silence)
        return model_blocks(model.monitor, details, zone=self._zone)
