"""The page of a service, `abers_connectors.live.service`, over a real socket."""

from __future__ import annotations

from itertools import count

from tests.connectors.kafka.reads import Read
from tests.connectors.kafka.works import Served
from tests.connectors.live.conftest import Listening, asked

from abers_connectors.config import Http
from abers_connectors.http import serving
from abers_connectors.kafka.status import Status
from abers_connectors.live.service import ServicePage

NOW = 1_700_000_100.0


def test_what_was_committed() -> None:
    """A page tells what a service committed, how far it is behind, and what waits."""
    status = Status(60.0, wall=lambda: NOW)
    seconds = count()
    page = ServicePage("fraud-service", status, clock=lambda: next(seconds))
    shard = Served(2)
    status.assign([("in", 2)])
    with serving(Http(port=0), status, page.feed) as url, Listening(url) as client:
        assert client.page()["title"] == "fraud-service"
        page.look([])
        assert client.page()["phase"] == "waiting"
        status.restore(shard)
        status.joined = True
        observations = [
            Read(b'{"id": "%d", "time": %d, "score": 0.5}' % (number, NOW * 1000 - 120_000))
            for number in range(3)
        ]
        label = Read(b'{"id": "1", "time": %d, "label": 1}' % (NOW * 1000 - 115_000))
        work = shard.take(*observations, Read(b"{"), label, inputs=b"\0\0\0\0\1")
        status.commit(shard, work)
        status.lag({("in", 2): 17})
        page.take(shard, work)  # type: ignore[arg-type] # of no broker
        page.look([shard])  # type: ignore[list-item] # of no broker
        told = client.page()
        assert told["phase"] == "live"
        tiles = {one["name"]: (one["value"], one["unit"], one["note"]) for one in told["tiles"]}
        assert tiles["Events"][0] == "5"
        assert tiles["Label delay"][:2] == ("5.0", "s")
        assert tiles["Pending"][0] == "2"
        assert tiles["Lag"][:2] == ("17", "records")
        assert tiles["Lag"][2].endswith("old")
        assert tiles["Dead letters"][::2] == ("1", "1 bad-json")
        assert "over 1 labels" in told["blocks"][0]["sentence"]
        assert asked(url, "/livez").code == 200
