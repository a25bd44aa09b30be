"""Whether all that a service reads and writes has a leader."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, cast

from tests.connectors.kafka.works import Served

from abers.stream import Settings
from abers_connectors.kafka.home import Home
from abers_connectors.kafka.leaders import Leaders
from abers_connectors.kafka.status import Status
from abers_connectors.kafka.transport import Partition

if TYPE_CHECKING:
    from collections.abc import Collection

    import pytest

    from abers_connectors.kafka.shard import Shard
    from abers_connectors.kafka.transport import Producer

HOME = Home("app", ["seen", "told"], "log", Settings(), outcomes=False, key=None)
SENTENCE = "no broker leads log[3]: nothing can be committed; look at the brokers"


class Cluster:
    """What the brokers say of leaders."""

    def __init__(self) -> None:
        self.asked = list[Partition]()
        self.gone = set[Partition]()

    def leaderless(self, partitions: Collection[Partition]) -> list[Partition]:
        """Name those that are gone."""
        self.asked = [*partitions]
        return [one for one in partitions if one in self.gone]


def test_not_ready_while_a_leader_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    """A service whose changelog has no leader is not ready, and says why, until it has one."""
    cluster, status, now = Cluster(), Status(60.0), [0.0]
    status.joined = True
    look = Leaders(HOME, {"out": 2}, cast("Producer", cluster), status, lambda: now[0])
    shards = [cast("Shard", Served(3))]

    def looked() -> tuple[bool, list[str]]:
        now[0] += 1.0
        look(shards)
        return status.view().ready, status.view().hints

    with caplog.at_level(logging.INFO):
        assert looked() == (True, [])
        needed = [("log", 3), ("out", 1), ("seen", 3), ("told", 3)]
        assert cluster.asked == needed
        cluster.gone = {Partition("log", 3), Partition("log", 4)}
        assert looked() == looked() == (False, [SENTENCE])
        cluster.gone = {Partition("log", 4)}
        assert looked() == (True, [])
    assert caplog.messages == [SENTENCE, "all partitions have a leader again"]


def test_looks_are_rare() -> None:
    """The brokers are asked once a second, however often the loop turns."""
    cluster, now = Cluster(), [0.0]
    look = Leaders(HOME, {}, cast("Producer", cluster), Status(60.0), lambda: now[0])
    look([cast("Shard", Served(0))])
    assert cluster.asked == []
    now[0] = 1.0
    look([cast("Shard", Served(0))])
    assert cluster.asked != []
