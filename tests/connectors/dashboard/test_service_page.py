"""The page of a service, `abers_connectors.dashboard.server`, over a real socket."""

from __future__ import annotations

from itertools import count

from tests.connectors.dashboard.pages import Listening, asked, tiles
from tests.connectors.kafka.reads import Read
from tests.connectors.kafka.works import Served

from abers_connectors.config.sections import HttpSection
from abers_connectors.dashboard.server import ServicePage, serving
from abers_connectors.runtime.status import Status

NOW = 1_700_000_100.0
SINCE = "14 Nov 2023, 22:15"


def test_what_was_committed() -> None:
    """A page shows the commits of a service, its lag, and the pending events."""
    status = Status(60.0, wall=lambda: NOW)
    seconds = count()
    page = ServicePage("fraud-service", status, clock=lambda: next(seconds))
    task = Served(2)
    status.assign([("in", 2)])
    with serving(HttpSection(port=0), status, page.feed) as url, Listening(url) as client:
        assert client.page()["title"] == "fraud-service"
        page.refresh([])
        assert client.page()["phase"] == "waiting"
        status.restored(task)
        status.seats["tasks"].joined = True
        observations = [
            Read(b'{"id": "%d", "time": %d, "score": 0.5}' % (number, NOW * 1000 - 120_000))
            for number in range(3)
        ]
        label = Read(b'{"id": "1", "time": %d, "label": 1}' % (NOW * 1000 - 115_000))
        work = task.take(*observations, Read(b"{"), label, inputs=b"\0\0\0\0\1")
        status.batch_committed(task, work)
        status.update_lags({("in", 2): 17})
        page.take(task, work)
        page.refresh([task])
        document = client.page()
        assert document["phase"] == "live"
        found = tiles(document)
        assert found[f"observations since {SINCE}"] == "4"
        assert [one for name, one in found.items() if name.startswith(f"labels since {SINCE}")] == [
            "1"
        ]
        assert found["median label delay"] == "5.0 s"
        assert found["wait for a label"] == "2"
        assert found["records still to read; the newest is 115 s old"] == "17"
        assert found["unreadable records: 1 bad-json"] == "1"
        assert "1 of 200 labels" in document["parts"]["answers"]
        assert asked(url, "/livez").code == 200


def test_the_largest_models() -> None:
    """A page of several models names those with the largest shares, with the memory of each."""
    status = Status(60.0, wall=lambda: NOW)
    seconds = count()
    page = ServicePage("fraud-service", status, clock=lambda: next(seconds))
    task = Served(2)
    status.assign([("in", 2)])
    status.restored(task)
    lines = [
        b'{"id": "%d", "time": %d, "score": 0.5, "model": "%s"}'
        % (number, NOW * 1000, b"cards" if number else b"<loans>")
        for number in range(4)
    ]
    work = task.take(*map(Read, lines), inputs=bytes(4))
    with serving(HttpSection(port=0), status, page.feed) as url, Listening(url) as client:
        page.refresh([])
        assert client.page()["phase"] == "waiting"
        status.batch_committed(task, work)
        status.update_evidence([task])
        page.take(task, work)
        page.refresh([task])
        pages = iter(client.page, None)  # a slow reader may first get the page before
        table = next(filter(None, (one["parts"][":models"] for one in pages)))
    assert ">cards</th><td>75.0 %</td>" in table
    assert ">&lt;loans&gt;</th><td>25.0 %</td>" in table
    assert "MiB</td>" in table
