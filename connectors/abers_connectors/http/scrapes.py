"""One text of the metrics for all who ask at about the same time.

Governing rule: however many scrape, and however often, the metrics are made in a thread of their
own and for a bounded share of the time; whoever comes in between gets those that are there.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client.exposition import choose_encoder

from abers_connectors.http.exposition import OPEN, exposition

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry

    from abers_connectors.http.once import Once

__all__ = ["Scrapes"]

_SHARE = 0.1  # of the time: what making the metrics may take
_OLDEST = 10.0  # seconds that a text is used at most: less than between two scrapes of Prometheus


class _Made(NamedTuple):
    text: bytes
    until: float


class Scrapes:
    """Gives the metrics as text.

    Parameters
    ----------
    registry
        Of the metrics.
    once
        Where they are made.
    clock
        Monotonic, in seconds.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        once: Once[bytes],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry, self._once, self._clock = registry, once, clock
        self._made: dict[bool, _Made] = {}

    async def text(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics, and their media type.

        Parameters
        ----------
        accept
            The header of the request that names the formats its client prefers.
        """
        kind = choose_encoder(accept)[1]
        strict = kind.startswith(OPEN)
        known = self._made.get(strict)
        if known is not None and self._clock() < known.until:
            return known.text, kind
        return await self._once.get(strict, partial(self._make, strict=strict)), kind

    def _make(self, *, strict: bool) -> bytes:
        began = self._clock()
        text, _ = exposition(self._registry, OPEN if strict else "")
        now = self._clock()
        self._made[strict] = _Made(text, now + min((now - began) / _SHARE, _OLDEST))
        return text
