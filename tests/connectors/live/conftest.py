"""A page that is served, of a stream that the test moves on."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pytest

from abers.stream import Events, Label, Observation, Processor, Settings
from abers_connectors.config import Http
from abers_connectors.http import serving
from abers_connectors.live import Feed, Numbers, Watching

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from abers.stream import Event


class Worked:
    """A processor whose outputs are watched, on a clock that the test sets."""

    def __init__(self, settings: Settings | None = None, *, title: str = "a stream") -> None:
        self.processor = Processor(settings or Settings(scores="probability"))
        self.watching = Watching()
        self.watching.hold({0: self.processor})
        self.now = 0.0
        self.feed = Feed(
            title, self.watching, self.numbers, clock=lambda: self.now, cpu=lambda: 0.0
        )

    def numbers(self) -> Numbers:
        """Tell what became of the events."""
        counters = self.processor.counters
        return Numbers(
            events=counters["observations"] + counters["labels_in"],
            dead={},
            waiting=self.processor.waiting,
        )

    def take(self, *events: Event) -> None:
        """Take events together."""
        self.watching.take(self.processor, self.processor.take(Events.of([*events])))

    def learn(self, *pairs: tuple[Any, Any], model: str = "", batch: int = 1) -> None:
        """Take observations, each with its label, a minute apart, so many together."""
        first = self.processor.counters["observations"]
        events: list[Event] = []
        for number, (score, label) in enumerate(pairs, first):
            time, name = 60_000 * number, f"{model}{number}"
            events.append(Observation(name, time, model=model, score=score))
            events.append(Label(name, time + 5_000, model=model, value=label))
        for start in range(0, len(events), 2 * batch):
            self.take(*events[start : start + 2 * batch])

    def tick(self) -> None:
        """Let a second pass."""
        self.now += 1.0
        self.feed.tick()


class Listening:
    """A client that reads server-sent events, in a `with` block."""

    def __init__(self, url: str, path: str = "/live/events", **headers: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
        self._connection.request("GET", path, headers=headers)
        self.answer = self._connection.getresponse()

    def __enter__(self) -> Self:
        """Listen."""
        return self

    def __exit__(
        self,
        error: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Go."""
        self._connection.close()
        self.answer.close()

    def event(self) -> dict[str, str]:
        """Wait for the next event, and give its fields; none at the end."""
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
                return json.loads(found["data"])
            if not found:
                message = "the server ended"
                raise EOFError(message)


class Answer(NamedTuple):
    """What came back."""

    code: int
    headers: dict[str, str]
    text: str


def asked(url: str, path: str, **headers: str) -> Answer:
    """Ask for a page."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    found = {name.lower(): value for name, value in answer.getheaders()}
    text = answer.read().decode()
    connection.close()
    return Answer(answer.status, found, text)


@pytest.fixture
def worked() -> Worked:
    """Give a stream of which nothing has come."""
    return Worked()


@pytest.fixture
def url(worked: Worked) -> Iterator[str]:
    """Serve its page."""
    with serving(Http(port=0), None, worked.feed) as where:
        yield where
