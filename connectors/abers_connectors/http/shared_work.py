"""Work that is done once for all concurrent requests, in a thread of its own.

There is one thread, so two pieces of work never run at once, and the event loop, which answers
health checks, never waits for it.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["SharedWork"]

T = TypeVar("T")


class SharedWork(Generic[T]):
    """A named thread for work; many requests await the same result."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._under_way: dict[Hashable, asyncio.Future[T]] = {}

    async def get(self, key: Hashable, work: Callable[[], T]) -> T:
        """Return the result of the work; concurrent calls with the same key share it."""
        future = self._under_way.get(key)
        if future is None:
            future = asyncio.get_running_loop().run_in_executor(self._thread, work)
            self._under_way[key] = future
            future.add_done_callback(lambda _: self._under_way.pop(key))
        return await asyncio.shield(future)

    def close(self) -> None:
        """Accept no more work, and drop what has not begun."""
        self._thread.shutdown(wait=False, cancel_futures=True)
