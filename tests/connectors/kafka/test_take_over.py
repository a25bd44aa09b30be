"""Take-over: an application learns behind another, and publishes from where that has stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.connectors.kafka.chaos.campaign import SECTIONS, drained, flowing
from tests.connectors.kafka.chaos.succession import Succession, require_one_publisher
from tests.connectors.kafka.clients import CLIENTS, on_each_client

from abers_connectors.exit_codes import CONFIG

if TYPE_CHECKING:
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

OTHERS = {"calibrator": {"window": 90}}
"""Settings of the successor that its predecessor has otherwise."""


@on_each_client
def test_one_of_both_publishes(client: str, broker: Broker, tmp_path: Path) -> None:
    """Under load, each output comes once and to the byte from one of two applications.

    A process of the successor is killed before, during and after the take-over, and goes on without
    the option. The predecessor refuses to start again.
    """
    sections = SECTIONS | {"kafka": CLIENTS[client]}
    with Succession(broker, tmp_path, sections, OTHERS, 6_000) as both:
        both.traffic.play(2_000)
        both.start()

        def learn() -> None:
            both.kill(both.news)
            both.until_said("ready to take over")

        def take_over() -> None:
            both.stop_old()
            both.kill(both.news)
            both.until_said("took over")
            both.kill(both.news)

        flowing(both.traffic, 4_000, 800, learn)
        flowing(both.traffic, 3_000, 800, take_over)
        for one in both.news.workers.values():
            one.words = ()
            one.kill()
        both.traffic.play(20_000)
        drained(both.new, look=both.news.require_all)
        refused = both.olds.add("a")
        assert refused.ended() == CONFIG
        assert f"was taken over by {both.new.name}" in refused.said()
        both.stop_new()
        counts = require_one_publisher(both.old, both.new, both.traffic.ids)
    assert min(counts.values()) > 0


@pytest.mark.long
@pytest.mark.parametrize("client", CLIENTS)
def test_one_of_both_publishes_for_long(client: str, broker: Broker, tmp_path: Path) -> None:
    """Processes of both applications are killed 20 times while the successor takes over."""
    sections = SECTIONS | {"kafka": CLIENTS[client]}
    with Succession(broker, tmp_path, sections, OTHERS, 40_000) as both:
        both.traffic.play(5_000)
        both.start("abc")

        def learn() -> None:
            both.kill_now_and_then(8, both.olds, both.news)
            both.until_said("ready to take over")

        def take_over() -> None:
            both.stop_old()
            both.kill_now_and_then(8, both.news)
            both.until_said("took over")
            both.kill_now_and_then(4, both.news)

        flowing(both.traffic, 30_000, 1_000, learn)
        flowing(both.traffic, 30_000, 1_000, take_over)
        both.traffic.play(100_000)
        drained(both.new, look=both.news.require_all)
        both.stop_new()
        counts = require_one_publisher(both.old, both.new, both.traffic.ids)
    print(f"take-over, {client}: {both.kills} kills, {dict(counts)}")  # noqa: T201 - the result
    assert both.kills == 20
    assert min(counts.values()) > 0
