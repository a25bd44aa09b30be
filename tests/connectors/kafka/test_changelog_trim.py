"""A changelog that is trimmed to the records that snapshots need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.connectors.kafka.applications import PARTITIONS, Served
from tests.connectors.kafka.streams import labels_of, observations, oracle

from abers_connectors.kafka.assembly import snapshot_store
from abers_connectors.kafka.topic_watch import ChangelogTrimmer
from abers_connectors.runtime.application import Application

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

OBSERVATIONS = observations(500, PARTITIONS)
LABELS = labels_of(OBSERVATIONS)


@pytest.fixture
def served(broker: Broker, tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]) -> Served:
    """Create an application with a stream in its topics."""
    found = Served(broker, tmp_path, start)
    found.produce(OBSERVATIONS, LABELS)
    return found


def kept(served: Served) -> dict[int, list[int]]:
    """Return the offsets of the snapshots of each task, oldest first."""
    snapshots = snapshot_store(served.config(), Application.of(served.config()))
    assert snapshots is not None
    stored = snapshots.stored()
    return {
        n: sorted(one.offset for one in stored if one.partition == n) for n in range(PARTITIONS)
    }


def test_nothing_is_deleted_where_snapshots_are_not_shared(served: Served) -> None:
    """Another machine may restore from the beginning."""
    served.configure(snapshot_every=50)
    served.serve()
    assert all(kept(served).values())
    with served.log() as look:
        assert set(look.starts(served.topics["changelog"]).values()) == {0}


def test_what_no_snapshot_needs_is_deleted(served: Served) -> None:
    """The changelog begins at the oldest snapshot, and a restore is still right."""
    served.configure(snapshot_every=50, shared="true", retain=2)
    served.serve()
    with served.log() as look:
        starts = look.starts(served.topics["changelog"])
        assert all(0 < starts[n] <= offsets[0] for n, offsets in kept(served).items())
        tasks = look.tasks()
    processors, _ = oracle(OBSERVATIONS, LABELS, served.config().settings(), PARTITIONS)
    for task, processor in zip(tasks, processors, strict=True):
        assert task.processor.state_bytes() == processor.state_bytes()
    served.produce([one._replace(time=one.time + 10**6) for one in OBSERVATIONS], [])
    served.serve()


def test_a_damaged_snapshot_does_not_count(served: Served) -> None:
    """The changelog is kept from the oldest intact snapshot on, or all of it without one."""
    served.configure(snapshot_every=50)
    served.serve()
    snapshots = snapshot_store(served.config(), Application.of(served.config()))
    assert snapshots is not None
    with served.log() as look:
        trimming = ChangelogTrimmer(look.application, snapshots, served.broker.client)
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
    """A changelog that cannot be trimmed is reported in the log."""
    served.configure(snapshot_every=50)
    served.serve()
    snapshots = snapshot_store(served.config(), Application.of(served.config()))
    assert snapshots is not None
    with served.log() as look:
        trimming = ChangelogTrimmer(
            look.application._replace(changelog="nobody-made-this"), snapshots, served.broker.client
        )
        trimming.trim(0)
    assert "changelog not trimmed: " in caplog.text
