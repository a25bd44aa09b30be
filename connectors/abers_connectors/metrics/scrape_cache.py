"""Cache of the metrics as text, for all scrapers that come at about the same time.

However many scrape, and however often, the text is made in a thread of its own and for a bounded
share of the time; scrapes in between get the last text.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client.exposition import choose_encoder

from abers_connectors.metrics.exposition import OPEN, exposition

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry

    from abers_connectors.http.shared_work import SharedWork

__all__ = ["ScrapeCache"]

_SHARE = 0.1  # maximum share of the time for making the metrics
_OLDEST = 10.0  # seconds that a text is used at most: less than between two scrapes of Prometheus


class _CachedText(NamedTuple):
    text: bytes
    until: float


class ScrapeCache:
    """Metrics as text, which the thread of `work` makes."""

    def __init__(
        self,
        registry: CollectorRegistry,
        work: SharedWork[bytes],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry, self._work, self._clock = registry, work, clock
        self._cached: dict[bool, _CachedText] = {}

    async def text(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics, and their media type, by the header `Accept` of a request."""
        kind = choose_encoder(accept)[1]
        strict = kind.startswith(OPEN)
        known = self._cached.get(strict)
        if known is not None and self._clock() < known.until:
            return known.text, kind
        return await self._work.get(strict, partial(self._make, strict=strict)), kind

    def _make(self, *, strict: bool) -> bytes:
        began = self._clock()
        text, _ = exposition(self._registry, OPEN if strict else "")
        now = self._clock()
        self._cached[strict] = _CachedText(text, now + min((now - began) / _SHARE, _OLDEST))
        return text
