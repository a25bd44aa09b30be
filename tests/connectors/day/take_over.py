"""A second application, without routers, and another that takes over from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.connectors.kafka.chaos.campaign import SECTIONS, drained, flowing
from tests.connectors.kafka.chaos.succession import Succession, require_one_publisher

if TYPE_CHECKING:
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

__all__ = ["taken_over"]

_OTHERS = {"calibrator": {"window": 90}}  # a setting that cannot change under a state
_COUNT, _RATE = 4_000, 400


def taken_over(broker: Broker, folder: Path) -> dict[str, int]:
    """Let it be taken over under load, and return what each of both has published, once."""
    folder.mkdir()
    sections = SECTIONS | {"kafka": {"client": "librdkafka", "replication_factor": 3}}
    with Succession(broker, folder, sections, _OTHERS, _COUNT) as both:
        both.traffic.play(_COUNT // 2)
        both.start("a")

        def take_over() -> None:
            both.stop_old()
            both.until_said("took over")

        flowing(both.traffic, _COUNT // 2, _RATE, lambda: both.until_said("ready to take over"))
        flowing(both.traffic, _COUNT // 2, _RATE, take_over)
        both.traffic.play(3 * _COUNT)
        drained(both.new, look=both.news.require_all)
        both.stop_new()
        counts = require_one_publisher(both.old, both.new, both.traffic.ids)
    assert min(counts.values()) > 0
    return counts
