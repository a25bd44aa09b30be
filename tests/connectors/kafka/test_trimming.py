"""A changelog that is shortened to what snapshots need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.connectors.kafka.applications import PARTITIONS, Served
from tests.connectors.kafka.streams import labels_of, observations, oracle

from abers_connectors.kafka.serving import snapshots_of
from abers_connectors.kafka.trimming import Trimming

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

SEEN = observations(500, PARTITIONS)
TOLD = labels_of(SEEN)


@pytest.fixture
def served(broker: Broker, tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]) -> Served:
    """Make an application with a stream in its topics."""
    found = Served(broker, tmp_path, start)
    found.produce(SEEN, TOLD)
    return found


def kept(served: Served) -> dict[int, list[int]]:
    """Give the offsets of the snapshots of each shard, oldest first."""
    snapshots = snapshots_of(served.config())
    assert snapshots is not None
    stored = snapshots.stored()
    return {
        n: sorted(one.offset for one in stored if one.partition == n) for n in range(PARTITIONS)
    }


def test_nothing_is_deleted_where_snapshots_are_not_shared(served: Served) -> None:
    """Another machine may restore from the beginning."""
    served.configure(every=50)
    served.serve()
    assert all(kept(served).values())
    with served.log() as look:
        assert set(look.starts(served.topics["changelog"]).values()) == {0}


def test_what_no_snapshot_needs_is_deleted(served: Served) -> None:
    """The changelog begins where the oldest snapshot goes on, and a restore is still right."""
    served.configure(every=50, shared="true", keep=2)
    served.serve()
    with served.log() as look:
        starts = look.starts(served.topics["changelog"])
        assert all(0 < starts[n] <= offsets[0] for n, offsets in kept(served).items())
        shards = look.shards()
    processors, _ = oracle(SEEN, TOLD, served.config().settings(), PARTITIONS)
    for shard, processor in zip(shards, processors, strict=True):
        assert shard.processor.state_bytes() == processor.state_bytes()
    served.produce([one._replace(time=one.time + 10**6) for one in SEEN], [])
    served.serve()


def test_a_damaged_snapshot_does_not_count(served: Served) -> None:
    """The oldest whole one is what the changelog is kept for, and without one all of it."""
    served.configure(every=50)
    served.serve()
    snapshots = snapshots_of(served.config())
    assert snapshots is not None
    with served.log() as look:
        trimming = Trimming(look.home, snapshots, served.broker.client)
        (oldest, *_), second = kept(served)[0], kept(served)[1]
        for one in snapshots.stored():
            if (one.partition, one.offset) == (0, oldest) or one.partition == 1:
                with open(one.name, "r+b") as file:  # noqa: PTH123 - a file to be spoilt
                    file.truncate(one.size - 1)
        for number in range(PARTITIONS):
            trimming.trim(number)
        starts = look.starts(served.topics["changelog"])
        assert second
        assert starts == {0: kept(served)[0][1], 1: 0}


def test_failures_cost_room_only(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    """A changelog that cannot be shortened is told of in the log."""
    served.configure(every=50)
    served.serve()
    snapshots = snapshots_of(served.config())
    assert snapshots is not None
    with served.log() as look:
        trimming = Trimming(
            look.home._replace(changelog="nobody-made-this"), snapshots, served.broker.client
        )
        trimming.trim(0)
    assert "the changelog is not shortened: " in caplog.text
