"""Routing of labels that carry only their id: to the partition of their observation's model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.kafka.reads import TOPICS, Read

from abers.exceptions import StateError
from abers_connectors.config.model import load
from abers_connectors.runtime.application import Application
from abers_connectors.runtime.id_routes import IdRouting, LabelKeys, LabelRecovery, LabelSnapshots
from abers_connectors.runtime.label_routes import RoutingLimits
from abers_connectors.runtime.model_routes import UNREAD
from abers_connectors.runtime.slots import partition_of
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.runtime.transport import (
    BadHeaders,
    CommittedOffset,
    OffsetRange,
    TopicPartition,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.native

PARTITIONS = 97
FLAGS = {
    **TOPICS,
    "kafka.route_by": "model",
    "input.label_fields.model": "record:observation",
}
CONFIG = load(flags=FLAGS, environ={})
APPLICATION = Application.of(CONFIG)


class Log:
    """A log of both inputs in memory, as a `runtime.transport.Reader` reads it."""

    def __init__(self) -> None:
        self.records: dict[str, list[Read]] = {topic: [] for topic in APPLICATION.sources}
        self.read_since = list[tuple[TopicPartition, int]]()

    def offset_range(self, partition: TopicPartition) -> OffsetRange:
        """Return the range of offsets."""
        return OffsetRange(0, len(self.records[partition.topic]))

    def read(self, partition: TopicPartition, start: int, end: int) -> Iterator[list[Read]]:
        """Yield records, one by one."""
        self.read_since.append((partition, start))
        for one in self.records[partition.topic][start:end]:
            yield [one]

    def write(self, which: int, value: bytes | None, **more: Any) -> Read:  # noqa: ANN401 - fields
        """Write a record of an input, and return it."""
        topic = APPLICATION.sources[which]
        offset = len(self.records[topic])
        record = Read(value, offset, topic=topic, partition=2, **more)
        self.records[topic].append(record)
        return record


def seen(id_: str, model: str, time: int = 0) -> bytes:
    """Return the value of an observation."""
    return json.dumps({"id": id_, "model": model, "time": time, "score": 0.5}).encode()


def label(id_: str, time: int = 0) -> bytes:
    """Return the value of a label."""
    return json.dumps({"id": id_, "time": time, "label": 1}).encode()


class Opened(IdRouting):
    """A routing of which a test waits for the snapshots."""

    snapshots: LabelSnapshots


def opened(
    log: Log,
    committed: tuple[CommittedOffset, ...] = (),
    snapshots: SnapshotStore | None = None,
) -> Opened:
    """Return a routing that has begun at committed offsets, by default before all records."""
    keys = LabelKeys(CONFIG, {})
    limits = RoutingLimits.of(CONFIG.settings(), 16)
    recovery = LabelRecovery(
        APPLICATION,
        log,  # type: ignore[arg-type] # the part of a reader that it needs
        snapshots,
        limits=limits,
        keys=keys,
    )
    saves = None if snapshots is None else LabelSnapshots(APPLICATION, snapshots, every=2)
    routing = Opened(
        APPLICATION, PARTITIONS, keys=keys, recovery=recovery, snapshots=saves, hint=lambda _: None
    )
    if saves is not None:
        routing.snapshots = saves
    begin(routing, committed or (CommittedOffset(0), CommittedOffset(0)))
    return routing


def begin(routing: IdRouting, committed: tuple[CommittedOffset, ...]) -> None:
    """Begin at committed offsets of both inputs."""
    parts = [TopicPartition(topic, 2) for topic in APPLICATION.sources]
    for _ in routing.begin(dict(zip(parts, committed, strict=False))):
        pass


def test_a_label_follows_its_observation() -> None:
    """A label goes to the partition of the model, and an early one right after its observation."""
    log = Log()
    early = log.write(1, label("a"))
    late = log.write(1, label("b"))
    first, second = log.write(0, seen("b", "m")), log.write(0, seen("a", "n"))
    routes = opened(log).route([early, first, late, second], [1, 0, 1, 0])
    assert [one.offset for one in routes.records] == [0, 1, 1, 0]
    assert [*routes.inputs] == [0, 1, 0, 1]
    of_models = [partition_of(model, PARTITIONS) for model in "mmnn"]
    assert [*routes.partitions] == of_models
    assert [*routes.found] == [None, ("abers.model", b"m"), None, ("abers.model", b"n")]
    assert not routes.unread


@pytest.mark.parametrize(
    ("value", "more"),
    [
        (None, {}),
        (b"{", {}),
        (b'{"id": "a"}', {}),
        (b'{"id": "a", "time": "x", "model": "m"}', {}),
        (b'{"id": [], "time": 1, "model": "m"}', {}),
        (b'{"id": "\\ud800", "time": 1, "model": "m"}', {}),
        (seen("a", "m"), {"headers": BadHeaders()}),
    ],
)
def test_a_bad_record_is_no_event(value: bytes | None, more: dict[str, Any]) -> None:
    """What no task can read goes to a fixed partition, and the index does not know its id."""
    log = Log()
    bad = [log.write(0, value, **more), log.write(1, value, **more)]
    good = [log.write(1, label("a")), log.write(0, seen("a", "n"))]
    routes = opened(log).route([*bad, *good], [0, 1, 1, 0])
    assert [*routes.unread] == [0, 1]
    assert [*routes.partitions] == [UNREAD, UNREAD, *[partition_of("n", PARTITIONS)] * 2]


def test_it_goes_on_after_a_restart() -> None:
    """What waits at the committed offsets still waits, and no record is routed again."""
    log = Log()
    records = [log.write(1, label("a")), log.write(0, seen("b", "m")), log.write(1, label("b"))]
    before = opened(log)
    assert len(before.route(records, [1, 0, 1]).records) == 2
    waiting = before.first_waiting(TopicPartition(APPLICATION.sources[1], 2))
    assert waiting == 0
    note = f"waiting={waiting}"
    after = opened(log, (CommittedOffset(1), CommittedOffset(2, note)))
    routes = after.route([log.write(0, seen("a", "n")), log.write(1, label("b"))], [0, 1])
    assert [one.offset for one in routes.records] == [1, 0, 2]
    assert [*routes.inputs] == [0, 1, 1]


def test_an_aborted_transaction_changes_nothing() -> None:
    """At other offsets than it has reached it begins anew; at these it reads nothing."""
    log = Log()
    record = log.write(0, seen("a", "m"))
    routing = opened(log)
    routing.route([record], [0])
    begin(routing, (CommittedOffset(1), CommittedOffset(0)))
    assert log.read_since == []
    assert routing.route([log.write(1, label("a"))], [1]).found[0] == ("abers.model", b"m")
    begin(routing, (CommittedOffset(0), CommittedOffset(0)))
    assert routing.route([log.records[APPLICATION.sources[1]][0]], [1]).records == []


def test_a_snapshot_saves_reading(tmp_path: Path) -> None:
    """It goes on with the newest snapshot that is not after the offsets, and reads what follows."""
    log, store = Log(), SnapshotStore(str(tmp_path), APPLICATION.router_group)
    routing, places = opened(log, snapshots=store), [CommittedOffset(0), CommittedOffset(0)]
    for number in range(3):
        records = [log.write(1, label(f"early {number}")), log.write(0, seen(f"{number}", "m"))]
        routing.route(records, [1, 0])
        places = [CommittedOffset(number + 1), CommittedOffset(number + 1, "waiting=0")]
        routing.committed({})
        routing.snapshots.close(60.0)
    assert [one.offset for one in store.stored()] == [6, 4, 2]
    for name in tmp_path.rglob("*04.abers"):
        name.write_bytes(b"damaged")
    opened(log, (*places,), snapshots=store)
    assert log.read_since == []
    again = opened(log, (CommittedOffset(2), CommittedOffset(3, "waiting=0")), snapshots=store)
    assert log.read_since == [(TopicPartition(topic, 2), 1) for topic in APPLICATION.sources]
    routes = again.route([log.records["scores"][2], log.write(0, seen("early 2", "n"))], [0, 0])
    assert [(one.topic, one.offset) for one in routes.records] == [
        ("scores", 2),
        ("scores", 3),
        ("labels", 2),
    ]


def test_a_partition_of_one_input_is_refused() -> None:
    """A partition of observations without that of labels cannot be routed."""
    with pytest.raises(StateError, match="only one input"):
        opened(Log(), (CommittedOffset(0),))
