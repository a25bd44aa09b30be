"""A live page over HTTP, of a stream that the test advances."""

from __future__ import annotations

import http.client
import json
import re
from html import unescape
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pytest

from abers.stream import Events, Label, Observation, Processor, Settings
from abers_connectors.config.sections import HttpSection
from abers_connectors.dashboard.feed import Feed, StreamCounts
from abers_connectors.dashboard.observer import Observer
from abers_connectors.dashboard.server import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from abers.stream import Event


class Worked:
    """A processor whose outputs are observed, on a clock that the test sets."""

    def __init__(self, settings: Settings | None = None, *, title: str = "a stream") -> None:
        self.processor = Processor(settings or Settings(scores="probability"))
        self.observer = Observer()
        self.observer.hold({0: self.processor})
        self.now = 0.0
        self.feed = Feed(title, self.observer, self.counts, clock=lambda: self.now, cpu=lambda: 0.0)

    def counts(self) -> StreamCounts:
        """Return the counts of events."""
        counters = self.processor.counters
        return StreamCounts(
            observations=counters["observations"],
            labels=counters["labels_in"],
            dead={},
            waiting=self.processor.waiting,
        )

    def take(self, *events: Event) -> None:
        """Process events as one batch."""
        self.observer.take(self.processor, self.processor.process_batch(Events.of([*events])))

    def learn(self, *pairs: tuple[Any, Any], model: str = "", batch: int = 1) -> None:
        """Process observations with their labels, a minute apart, in batches."""
        first = self.processor.counters["observations"]
        events: list[Event] = []
        for number, (score, label) in enumerate(pairs, first):
            time, name = 60_000 * number, f"{model}{number}"
            events.append(Observation(name, time, model=model, score=score))
            events.append(Label(name, time + 5_000, model=model, value=label))
        for start in range(0, len(events), 2 * batch):
            self.take(*events[start : start + 2 * batch])

    def tick(self) -> None:
        """Advance the clock by a second."""
        self.now += 1.0
        self.feed.tick()


class Listening:
    """A client that reads server-sent events, in a `with` block, and keeps parts as a page does."""

    def __init__(self, url: str, path: str = "/live/events", **headers: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=240)
        self._connection.request("GET", path, headers=headers)
        self.answer = self._connection.getresponse()
        self._parts: dict[str, str] = {}

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(
        self,
        error: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self._connection.close()
        self.answer.close()

    def event(self) -> dict[str, str]:
        """Wait for the next event and return its fields; none at the end."""
        fields: dict[str, str] = {}
        while line := self.answer.readline().decode().rstrip("\r\n") or (fields and "end"):
            if line == "end":
                return fields
            name, _, value = line.partition(": ")
            fields[name] = value
        return fields

    def page(self) -> Any:  # noqa: ANN401 - JSON
        """Wait for the next page."""
        while True:
            found = self.event()
            if found.get("event") == "page":
                page = json.loads(found["data"])
                self._parts |= page["parts"]
                shown = [one for one in self._parts if one[0] == ":" or one in page["order"]]
                return page | {
                    "changed": [*page["parts"]],
                    "parts": {one: self._parts[one] for one in shown},
                }
            if not found:
                message = "the server ended"
                raise EOFError(message)


def tiles(page: Any) -> dict[str, str]:  # noqa: ANN401 - JSON
    """Return the numbers in the strip of a page, by what they are."""
    found = re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", page["parts"][":strip"])
    plain = [[unescape(one).replace("\N{NO-BREAK SPACE}", " ") for one in pair] for pair in found]
    return dict(plain)


class Answer(NamedTuple):
    """Status code, headers and text of a response."""

    code: int
    headers: dict[str, str]
    text: str


def asked(url: str, path: str, **headers: str) -> Answer:
    """Request a page."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=240)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    found = {name.lower(): value for name, value in answer.getheaders()}
    text = answer.read().decode()
    connection.close()
    return Answer(answer.status, found, text)


@pytest.fixture
def worked() -> Worked:
    """Return a stream without events."""
    return Worked()


@pytest.fixture
def url(worked: Worked) -> Iterator[str]:
    """Serve its page."""
    with serving(HttpSection(port=0), None, worked.feed) as where:
        yield where
