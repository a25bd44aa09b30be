"""Bands of the reliability diagrams of a model, which are slow to draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.monitoring import consistency_bands

if TYPE_CHECKING:
    from abers.monitoring import Bands, Diagram

__all__ = ["BandCache"]


class BandCache:
    """Returns the bands of a diagram, recomputed when the labels have grown by an eighth."""

    def __init__(self) -> None:
        self._bands: dict[str, tuple[int, Bands]] = {}

    def __call__(self, view: str, diagram: Diagram) -> Bands:
        """Return the bands of a view."""
        count = int(diagram.count.sum())
        known = self._bands.get(view)
        if known is None or not known[0] <= count < known[0] * 9 / 8:
            known = self._bands[view] = count, consistency_bands(view, diagram)
        return known[1]
