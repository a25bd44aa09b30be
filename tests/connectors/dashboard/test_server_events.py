"""Server-sent events over a real socket, `abers_connectors.dashboard.live_routes`."""

from __future__ import annotations

import http.client
import json
import re
import socket
from contextlib import ExitStack, closing
from itertools import pairwise
from typing import Any
from urllib.parse import quote

from tests.connectors.dashboard.pages import Listening, Worked, asked, tiles

from abers_connectors.config.sections import HttpSection
from abers_connectors.dashboard.server import serving


def after_a_second(client: Listening, worked: Worked) -> Any:  # noqa: ANN401 - JSON
    """Process something new, let a second pass, and return the new page."""
    worked.tick()
    return client.page()


def test_before_the_first_number(url: str) -> None:
    """An early reader gets a page without numbers that says why."""
    with Listening(url) as client:
        assert client.answer.getheader("content-type") == "text/event-stream; charset=utf-8"
        assert client.answer.getheader("cache-control") == "no-store"
        assert client.event() == {"retry": "2000"}
        page = client.page()
    assert (page["title"], page["phase"]) == ("a stream", "waiting")
    assert page["status"].startswith("connected; the stream is starting")
    assert (page["order"], page["parts"]) == ([], {})


def test_a_page_a_second(url: str, worked: Worked) -> None:
    """Each second has one page with the numbers of that moment."""
    with Listening(url) as client:
        client.page()
        worked.learn((0.25, 0), (0.75, 1))
        first = after_a_second(client, worked)
        worked.learn((0.5, 1))
        worked.feed.tick()  # within the same second: nothing is made
        second = after_a_second(client, worked)
    assert (tiles(first)["observations"], tiles(first)["labels"]) == ("2", "2")
    assert (tiles(second)["observations"], tiles(second)["labels; 2.0 records a second"]) == (
        "3",
        "3",
    )
    assert second["order"] == ["answers", "methods", "scores"]
    assert second["model"] == json.dumps(["", ""], separators=(",", ":"))


def test_only_changes(url: str, worked: Worked) -> None:
    """An event has the parts that changed since the last one, and names all blocks."""
    worked.learn((0.25, 0), (0.75, 1), (0.5, 1), model="fraud")
    worked.learn((0.5, 1), model="spam")
    with Listening(url) as client:
        client.page()
        whole = after_a_second(client, worked)
        worked.learn((0.5, 1), model="spam")
        later = after_a_second(client, worked)
    assert {*whole["changed"]} == {":chips", ":hints", ":strip", ":models", *whole["order"]}
    assert {*later["changed"]} == {":strip", ":models"}
    assert later["order"] == whole["order"]
    assert later["parts"]["answers"] == whole["parts"]["answers"]


def test_one_of_several_models(url: str, worked: Worked) -> None:
    """A reader of a model gets its numbers, and the names of all."""
    worked.learn((0.25, 0), (0.75, 1), (0.5, 1), model="fraud")
    worked.learn((0.5, 1), model="spam")
    with Listening(url, f"/live/events?model={quote(json.dumps(['spam', '']))}") as client:
        client.page()
        page = after_a_second(client, worked)
    assert page["model"] == '["spam",""]'
    assert re.findall(r">(\w+)</a>", page["parts"][":models"]) == ["fraud", "spam"]
    assert "1 of 200 labels" in page["parts"]["answers"]


def test_nothing_new_is_not_sent(url: str, worked: Worked) -> None:
    """A stream that stands still sends no pages."""
    worked.learn((0.25, 0))
    with Listening(url) as client:
        client.page()
        after_a_second(client, worked)
        for _ in range(20):  # until its rate over the last seconds is 0
            worked.tick()
        worked.learn((0.25, 1))
        worked.tick()
        pages: list[Any] = []
        while not pages or tiles(pages[-1])["observations"] != "2":
            pages.append(client.page())
    texts = [json.dumps(one | {"age": 0, "changed": []}) for one in pages]
    assert all(a != b for a, b in pairwise(texts))


def test_the_end_of_a_stream(url: str, worked: Worked) -> None:
    """A reader after the end sees the final numbers of every model."""
    worked.learn((0.25, 0), (0.75, 1), model="fraud")
    worked.learn((0.5, 1), model="spam")
    worked.feed.end()
    for name, labels in (("fraud", 2), ("spam", 1)):
        with Listening(url, f"/live/events?model={quote(json.dumps([name, '']))}") as client:
            page = client.page()
        assert page["phase"] == "ended"
        assert f"{labels} of 200 labels" in page["parts"]["answers"]


def test_a_client_that_reads_nothing() -> None:
    """A reader that reads nothing delays no frame and no other reader, and is disconnected."""
    worked = Worked(title="long " * 50_000)
    with serving(HttpSection(port=0), None, worked.feed, patience=3.0) as url:
        host, port = url.removeprefix("http://").split(":")
        idle = socket.create_connection((host, int(port)), timeout=240)
        idle.sendall(b"GET /live/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with idle, Listening(url) as client:
            client.page()
            while worked.feed.listeners < 2:
                worked.tick()
            while worked.feed.listeners == 2:
                worked.learn((0.25, 0))
                worked.tick()
                client.page()
            worked.learn((0.25, 0))
            worked.tick()
            assert tiles(client.page())["observations"] == f"{worked.counts().observations:,}"


def test_the_server_ends(worked: Worked) -> None:
    """The streams of all readers end with the server, so that it does not wait."""
    with ExitStack() as stack:
        server = ExitStack()
        url = server.enter_context(serving(HttpSection(port=0), None, worked.feed))
        client = stack.enter_context(Listening(url))
        client.page()
        server.close()
        assert client.event() == {}


def test_too_many_listen(url: str) -> None:
    """Too many readers get status 503, and the page itself is still served."""
    with ExitStack() as stack:
        crowd = [stack.enter_context(Listening(url)) for _ in range(32)]
        for one in crowd:
            one.page()
        answer = asked(url, "/live/events")
        assert (answer.code, answer.headers["retry-after"]) == (503, "10")
        assert asked(url, "/").code == 200


def test_the_head_of_a_stream(url: str, worked: Worked) -> None:
    """A HEAD request does not count as a reader."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=240)
    with closing(connection):
        for _ in range(2):  # the first answer has ended
            connection.request("HEAD", "/live/events")
            assert connection.getresponse().read() == b""
    assert worked.feed.listeners == 0


def test_a_model_that_is_no_name(url: str) -> None:
    """A malformed model in the address is refused."""
    assert asked(url, "/live/events?model=x").code == 400
