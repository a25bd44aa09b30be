"""Work that is done once for all who ask for it meanwhile, outside the event loop.

Governing rule: one thread, so work never runs beside itself; and the event loop, which answers the
health checks, never waits for it.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["Once"]

T = TypeVar("T")


class Once(Generic[T]):
    """Does work in a thread of its own.

    Parameters
    ----------
    name
        Of the thread.
    """

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._under_way: dict[Hashable, asyncio.Future[T]] = {}

    async def get(self, key: Hashable, work: Callable[[], T]) -> T:
        """Return what the work returns; whoever asks for the same key meanwhile shares it."""
        future = self._under_way.get(key)
        if future is None:
            future = asyncio.get_running_loop().run_in_executor(self._thread, work)
            self._under_way[key] = future
            future.add_done_callback(lambda _: self._under_way.pop(key))
        return await asyncio.shield(future)

    def close(self) -> None:
        """Take no more work, and forget what has not begun."""
        self._thread.shutdown(wait=False, cancel_futures=True)
