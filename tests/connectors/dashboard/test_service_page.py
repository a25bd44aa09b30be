"""The page of a service, `abers_connectors.dashboard.stream_pages`, over a real socket."""

from __future__ import annotations

from itertools import count

from tests.connectors.dashboard.pages import Listening, asked
from tests.connectors.kafka.reads import Read
from tests.connectors.kafka.works import Served

from abers_connectors.config.sections import HttpSection
from abers_connectors.dashboard.server import serving
from abers_connectors.dashboard.stream_pages import ServicePage
from abers_connectors.runtime.status import Status

NOW = 1_700_000_100.0
SINCE = "2023-11-14 22:15:00 UTC"


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
        status.joined = True
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
        tiles = {one["name"]: (one["value"], one["unit"], one["note"]) for one in document["tiles"]}
        assert tiles["Events"][0] == "5"
        assert tiles["Label delay"][:2] == ("5.0", "s")
        assert tiles["Pending"][0] == "2"
        assert tiles["Lag"][:2] == ("17", "records")
        assert tiles["Lag"][2].endswith("old")
        assert tiles["Dead letters"][::2] == ("1", f"since {SINCE}, 1 bad-json")
        assert tiles["Events"][2] == f"since {SINCE}"
        assert "over 1 labels" in document["cards"][2]["description"]
        assert asked(url, "/livez").code == 200
