"""Tracker of coverage as a monitor reads it: what it covered, and its bound."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Tracker"]


class Tracker(Protocol):
    """Tracker that moves intervals, such as `abers.regression.CoverageTracker`."""

    @property
    def level(self) -> float:
        """Share of labels that intervals are to cover."""
        ...

    @property
    def slack(self) -> float:
        """How far hits or misses may be off before the whole support, or nothing, is served."""
        ...

    @property
    def waited(self) -> int:
        """Largest number of observations that ever awaited their labels together."""
        ...

    @property
    def labels(self) -> int:
        """Number of labels of awaited observations."""
        ...

    @property
    def covered(self) -> int:
        """Number of these labels that their served intervals cover."""
        ...
