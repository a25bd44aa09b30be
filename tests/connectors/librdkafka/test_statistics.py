from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING

from abers_connectors.librdkafka.connection import ConnectionWatch, Heartbeat

if TYPE_CHECKING:
    import pytest


def statistics(ts: float = 0.0, **brokers: dict[str, object]) -> str:
    """Return statistics of some brokers at a time in seconds."""
    usual = {"state": "UP", "disconnects": 0, "rxidle": -1}
    found = {name: usual | one for name, one in brokers.items()}
    return json.dumps({"ts": int(1e6 * ts), "name": "more", "brokers": found})


def test_the_heartbeat_is_the_last_answer_of_the_coordinator() -> None:
    """Answers of other brokers do not count, and old statistics change nothing."""
    heartbeat = Heartbeat()
    heartbeat.last = 0.0
    heartbeat.take(statistics(5.0, other={"rxidle": 100}))
    assert heartbeat.last == 0.0
    heartbeat.take(statistics(5.0, GroupCoordinator={"rxidle": 1_500_000}))
    assert heartbeat.last == 3.5
    heartbeat.take(statistics(4.0, GroupCoordinator={"rxidle": 1_500_000}))
    heartbeat.take(statistics(9.0, GroupCoordinator={"rxidle": -1}))
    assert heartbeat.last == 3.5


def test_the_heartbeat_is_never_in_the_future() -> None:
    """A client with another clock counts as one that answers now."""
    heartbeat = Heartbeat()
    heartbeat.take(statistics(1e9, GroupCoordinator={"rxidle": 0}))
    assert heartbeat.last <= time.monotonic()


def test_a_connection_is_lost_by_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A line about an established connection counts, and one about an attempt does not."""
    watch = ConnectionWatch()
    attempt = "FAIL [%s] %s"
    watch.log(logging.ERROR, attempt, "a", "Connect to b failed (after 0ms in state CONNECT)")
    assert not watch.lost
    watch.log(logging.INFO, attempt, "a", "Disconnected (after 9ms in state UP)")
    assert watch.lost
    assert [one.levelname for one in caplog.records if one.levelno > logging.INFO] == ["ERROR"]


def test_a_connection_is_lost_by_the_statistics() -> None:
    """A broker that disconnected, or that is gone, counts."""
    watch = ConnectionWatch()
    watch.take(statistics(a={}, b={"state": "CONNECT"}))
    watch.take(statistics(a={}, b={}))
    assert not watch.lost
    watch.take(statistics(b={}))
    assert watch.lost
    watch = ConnectionWatch()
    watch.take(statistics(a={"disconnects": 1}))
    assert watch.lost
