"""Cost of a live page for the stream that it shows.

The readers are a process of their own, which reads all data as browsers do. The stream without
readers is observed too, since a page may be opened later.
"""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from time import perf_counter, process_time
from typing import TYPE_CHECKING, NamedTuple

from abers.stream import Events, Label, Observation, Processor, Settings
from benchmarks.page import Key, Section, table
from benchmarks.timing import Spread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.dashboard.feed import Feed
    from abers_connectors.dashboard.observer import Observer
    from benchmarks.plan import Plan

READERS = 10
LOST, LEFT = "live", "live rate"
ONE, DIFFERENT = "of one model", "of different models"
CROWDS = ((ONE, 1), (ONE, READERS), (ONE, 32), (DIFFERENT, 32))
"""Kinds and numbers of readers."""

_BATCH = 1_000  # observations, each with its label
_MODELS = 32
_TURNS = 40  # as long as a turn elsewhere: the page is made once a second
_READ = """
import selectors, socket, sys
port, count, models = map(int, sys.argv[1:])
chosen = selectors.DefaultSelector()
for number in range(count):
    one = socket.create_connection(("127.0.0.1", port))
    path = b"/live/events?model=%%5B%%22m%d%%22,%%22%%22%%5D" % (number % models)
    one.sendall(b"GET " + path + b" HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
    chosen.register(one, selectors.EVENT_READ)
while True:
    for key, _ in chosen.select():
        if not key.fileobj.recv(1 << 16):
            sys.exit()
"""


def live(plan: Plan) -> Section:
    """Measure the rate of a stream with readers and without, in turns."""
    title = "The live page"
    try:
        from abers_connectors.config.sections import HttpSection  # noqa: PLC0415 - extras
        from abers_connectors.dashboard.feed import Feed, StreamCounts  # noqa: PLC0415
        from abers_connectors.dashboard.observer import Observer  # noqa: PLC0415
        from abers_connectors.dashboard.server import serving  # noqa: PLC0415
    except ImportError:
        return Section(title, "Not measured: starlette or uvicorn is not installed.", {})
    observer = Observer()
    feed = Feed(
        "a stream",
        observer,
        lambda: StreamCounts(observations=0, labels=0, dead={}, waiting=(0, 0)),
    )
    stream = _Stream(observer, feed)
    found: dict[Key, list[float]] = {}
    length = plan.turn * _TURNS
    with ExitStack() as stack:
        url = stack.enter_context(serving(HttpSection(port=0), None, feed))
        stream.turn(length)  # warm
        for _ in range(plan.rounds):
            alone = stream.turn(length)
            for whom, count in CROWDS:
                with _reading(url, feed, count, _MODELS if whom == DIFFERENT else 1):
                    shown = stream.turn(length)
                more = shown.cpu - alone.cpu * shown.events / alone.events
                found.setdefault((LOST, whom, count), []).append(100 * more / shown.seconds)
                found.setdefault((LEFT, whom, count), []).append(shown.rate / alone.rate)
    values = {key: Spread.of(some) for key, some in found.items()}
    rows = [
        [f"{count} {whom}", values[LEFT, whom, count], values[LOST, whom, count]]
        for whom, count in CROWDS
    ]
    body = (
        f"A stream of {_MODELS} models, raw and calibrated scores monitored, in batches of"
        f" {_BATCH:,} observations with labels, without readers and while readers take every"
        " page, in turns: the rate of the stream as a share of that without readers, and what the"
        " readers cost the process in all of its threads.\n\n"
        + table(["readers", "share of the rate", "% of a core"], rows)
    )
    return Section(title, body, values)


class _Turn(NamedTuple):
    seconds: float
    cpu: float  # seconds of the processor, of all threads
    events: int

    @property
    def rate(self) -> float:
        return self.events / self.seconds


class _Stream:
    """A processor that is fed, and observed."""

    def __init__(self, observer: Observer, feed: Feed) -> None:
        self._processor = Processor(Settings(scores="probability"), outcomes=False)
        self._observer, self._feed = observer, feed
        self._draw, self._count = random.Random(5), 0  # noqa: S311 - no secret
        observer.hold({0: self._processor})

    def turn(self, least: float) -> _Turn:
        """Take batches for so many seconds."""
        taken, began, used = 0, perf_counter(), process_time()
        while perf_counter() < began + least:
            events = self._batch()
            self._observer.take(self._processor, self._processor.process_batch(events))
            self._feed.tick()
            taken += len(events)
        return _Turn(perf_counter() - began, process_time() - used, taken)

    def _batch(self) -> Events:
        events: list[Observation | Label] = []
        for number in range(self._count, self._count + _BATCH):
            score, name = self._draw.random(), f"m{number % _MODELS}"
            value = int(self._draw.random() < score**2)
            events.append(Observation(f"{number}", number, name, score=score))
            events.append(Label(f"{number}", number, name, value=value))
        self._count += _BATCH
        return Events.of(events)


@contextmanager
def _reading(url: str, feed: Feed, count: int, models: int) -> Iterator[None]:
    """Have so many readers of so many models in a `with` block."""
    port = url.rpartition(":")[2]
    command = [sys.executable, "-c", _READ, port, str(count), str(models)]
    with subprocess.Popen(command) as process:  # noqa: S603 - of ours
        try:
            while feed.listeners < count:
                pass
            yield
        finally:
            process.terminate()
    while feed.listeners:
        pass
