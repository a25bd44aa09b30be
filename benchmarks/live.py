"""What a live page costs the stream that it shows.

Governing rule: the readers are a process of their own, which takes all that it is sent, as browsers
would; and the stream without readers is watched all the same, since a page may be opened later.
"""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from time import perf_counter, process_time
from typing import TYPE_CHECKING, NamedTuple

from abers.stream import Events, Label, Observation, Processor, Settings
from benchmarks.page import Key, Section
from benchmarks.timing import Spread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.live import Feed, Watching
    from benchmarks.plan import Plan

READERS = 10
LOST = "live"
_BATCH = 1_000  # observations, each with its label
_TURNS = 40  # as long as a turn elsewhere: the page is made once a second
_READ = """
import selectors, socket, sys
port, count = map(int, sys.argv[1:])
chosen = selectors.DefaultSelector()
for _ in range(count):
    one = socket.create_connection(("127.0.0.1", port))
    one.sendall(b"GET /live/events HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
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
        from abers_connectors.config import Http  # noqa: PLC0415 - extras
        from abers_connectors.http import serving  # noqa: PLC0415
        from abers_connectors.live import Feed, Numbers, Watching  # noqa: PLC0415
    except ImportError:
        return Section(title, "Not measured: starlette or uvicorn is not installed.", {})
    watching = Watching()
    feed = Feed("a stream", watching, lambda: Numbers(events=0, dead={}, waiting=(0, 0)))
    stream = _Stream(watching, feed)
    costs: list[float] = []
    with ExitStack() as stack:
        url = stack.enter_context(serving(Http(port=0), None, feed))
        stream.turn(plan.turn * _TURNS)  # warm
        for _ in range(plan.rounds):
            alone = stream.turn(plan.turn * _TURNS)
            with _reading(url, feed):
                shown = stream.turn(plan.turn * _TURNS)
            more = shown.seconds - alone.seconds * shown.events / alone.events
            costs.append(100 * more / max(shown.frames, 1))
    lost = Spread.of(costs)
    body = (
        f"A stream of one model, raw scores judged beside calibrated ones, in batches of {_BATCH:,}"
        f" observations with labels, while nobody looks and while {READERS} readers take every"
        " page, in turns. All that a page costs the process, in the thread that works and in the"
        f" one that serves, is {lost} % of a second of a core; there is one page a second, so by"
        " that much the stream is slower.\n"
    )
    values: dict[Key, Spread] = {(LOST, "readers", READERS): lost}
    return Section(title, body, values)


class _Turn(NamedTuple):
    seconds: float  # of the processor, of all threads
    events: int
    frames: int


class _Stream:
    """A processor that is fed, and watched."""

    def __init__(self, watching: Watching, feed: Feed) -> None:
        self._processor = Processor(Settings(scores="probability"), outcomes=False)
        self._watching, self._feed = watching, feed
        self._draw, self._count = random.Random(5), 0  # noqa: S311 - no secret
        watching.hold({0: self._processor})

    def turn(self, least: float) -> _Turn:
        """Take batches for so many seconds."""
        ended, taken, seen, last = perf_counter() + least, 0, 0, self._feed.frame
        began = process_time()
        while perf_counter() < ended:
            events = self._batch()
            self._watching.take(self._processor, self._processor.take(events))
            self._feed.tick()
            taken += len(events)
            seen += self._feed.frame is not last
            last = self._feed.frame
        return _Turn(process_time() - began, taken, seen)

    def _batch(self) -> Events:
        events: list[Observation | Label] = []
        for number in range(self._count, self._count + _BATCH):
            score = self._draw.random()
            events.append(Observation(f"{number}", number, score=score))
            events.append(Label(f"{number}", number, value=int(self._draw.random() < score**2)))
        self._count += _BATCH
        return Events.of(events)


@contextmanager
def _reading(url: str, feed: Feed) -> Iterator[None]:
    """Have readers in a `with` block."""
    port = url.rpartition(":")[2]
    command = [sys.executable, "-c", _READ, port, str(READERS)]
    with subprocess.Popen(command) as process:  # noqa: S603 - of ours
        try:
            while feed.listeners < READERS:
                pass
            yield
        finally:
            process.terminate()
    while feed.listeners:
        pass
