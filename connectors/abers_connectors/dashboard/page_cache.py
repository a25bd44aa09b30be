"""Documents of the live page: each is drawn once, however many readers see it."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING

from abers_connectors.dashboard.live_document import (
    LiveDocument,
    live_document,
    waiting_document,
)
from abers_connectors.http.shared_work import SharedWork

if TYPE_CHECKING:
    from abers_connectors.dashboard.feed import Feed, Frame
    from abers_connectors.dashboard.models import Key

__all__ = ["PageCache"]

_KEPT = 40  # pages: a few more than readers at once


class PageCache:
    """Draws pages of frames, each once, and keeps a bounded number of them."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._made: OrderedDict[Key | None, tuple[int, LiveDocument | None]] = OrderedDict()
        self._drawing = SharedWork[LiveDocument]("live-page")

    def __len__(self) -> int:
        """Return the number of pages kept."""
        return len(self._made)

    async def page(self, key: Key | None) -> LiveDocument:
        """Return the document of a model and segment.

        The key None is the model with most labels. All names that no model has share one page.
        """
        frame = self._feed.frame(key)
        if frame is None:
            return waiting_document(self._feed)
        number, page = self._made.get(frame.key, (0, None))
        if page is None or number != frame.number:
            page = await self._drawing.get((frame.number, frame.key), partial(self._draw, frame))
            self._made[frame.key] = frame.number, page
        self._made.move_to_end(frame.key)
        while len(self._made) > _KEPT:
            self._made.popitem(last=False)
        return page

    def close(self) -> None:
        """Draw no more."""
        self._drawing.close()

    def _draw(self, frame: Frame) -> LiveDocument:
        with self._feed.budget.spent(drawing=True):
            return live_document(self._feed.title, self._feed.zone, frame)
