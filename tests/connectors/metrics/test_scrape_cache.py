"""One text for many scrapes, `abers_connectors.metrics.exposition`."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from abers_connectors.http.middleware import SharedWork
from abers_connectors.metrics.exposition import ScrapeCache

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

OPEN = "application/openmetrics-text; version=1.0.0"


class Counted(Collector):
    """Takes a second of a clock to collect, once it may, and counts its calls."""

    def __init__(self) -> None:
        """Begin at 0, and let everybody collect."""
        self.asked, self.now, self.cost = 0, 0.0, 0.1
        self.free = Event()
        self.free.set()

    def describe(self) -> list[Metric]:
        """Name nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Return the number of calls."""
        assert self.free.wait(60)
        self.asked += 1
        self.now += self.cost
        yield CounterMetricFamily("asked", "How often.", self.asked)


@contextmanager
def scraped() -> Iterator[tuple[Counted, ScrapeCache]]:
    """Return scrapes of metrics on a clock that stands still."""
    counted, registry = Counted(), CollectorRegistry(auto_describe=False)
    work = SharedWork[bytes]("t")
    registry.register(counted)
    try:
        yield counted, ScrapeCache(registry, work, clock=lambda: counted.now)
    finally:
        work.close()


def test_many_at_once() -> None:
    """Scrapes while a text is made share it, and the event loop continues meanwhile."""

    async def asking() -> set[tuple[bytes, str]]:
        counted.free.clear()
        texts = [asyncio.ensure_future(scrapes.text("")) for _ in range(24)]
        for _ in range(10):
            await asyncio.sleep(0)
        assert not any(one.done() for one in texts)
        counted.free.set()
        return {*await asyncio.gather(*texts)}

    with scraped() as (counted, scrapes):
        ((text, kind),) = asyncio.run(asking())
    assert counted.asked == 1
    assert b"asked_total 1.0" in text
    assert kind.startswith("text/plain")


def test_a_share_of_the_time() -> None:
    """A text that took a tenth of a second is used for a second, and then made anew."""

    async def asking() -> list[int]:
        found = []
        for counted.now in (0.0, 0.5, 1.0, 1.2, 2.0, 2.4):
            await scrapes.text("")
            found.append(counted.asked)
        return found

    with scraped() as (counted, scrapes):
        assert asyncio.run(asking()) == [1, 1, 1, 2, 2, 3]


def test_however_long_it_takes() -> None:
    """No text is older than ten seconds, so a scrape every 15 seconds brings news."""

    async def asking() -> list[int]:
        found = []
        for counted.now in (0.0, 14.9, 15.1):
            await scrapes.text("")
            found.append(counted.asked)
        return found

    with scraped() as (counted, scrapes):
        counted.cost = 5.0
        assert asyncio.run(asking()) == [1, 1, 2]


def test_both_formats() -> None:
    """Each format has a text of its own."""

    async def asking() -> list[bytes]:
        return [(await scrapes.text(accept))[0] for accept in ("", OPEN, "", OPEN)]

    with scraped() as (_, scrapes):
        plain, strict, *again = asyncio.run(asking())
    assert again == [plain, strict]
    assert (plain.endswith(b"# EOF\n"), strict.endswith(b"# EOF\n")) == (False, True)
