"""The live page: whether predictions still mean what they say, as a stream goes on."""

from __future__ import annotations

from abers_connectors.live.feed import Feed
from abers_connectors.live.frames import Numbers
from abers_connectors.report.watching import Watching

__all__ = ["Feed", "Numbers", "Watching"]
