"""Routers: each record of inputs with any keys is taken once, by the task of its model."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.connectors.kafka.brokers import Message
from tests.connectors.kafka.clients import on_each_client, on_each_client_at_length
from tests.connectors.kafka.routed import (
    ORIGIN,
    START,
    Place,
    RoutedApplication,
    place,
    traffic,
)

from abers_connectors.errors import CONFIG
from abers_connectors.kafka.topic_checks import create_topics

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

    Start = Callable[..., subprocess.Popen[bytes]]

LAST = START + 10_000_000


def require_each_once(application: RoutedApplication) -> None:
    """Assert that all records of the inputs are routed once, unchanged, by model and in order."""
    routed = application.read("routed")
    read = {
        Place(which, one.partition, one.offset): one
        for which, key in enumerate(("observations", "labels"))
        for one in application.read(key)
    }
    places = [place(one) for one in routed]
    assert sorted(places) == sorted(read)
    partitions: dict[str, set[int]] = defaultdict(set)
    last: dict[tuple[int, int, int], int] = {}
    for one, at in zip(routed, places, strict=True):
        given = read[at]
        assert (one.key, one.value, one.timestamp) == (given.key, given.value, given.timestamp)
        assert [*one.headers[:-1]] == [*given.headers]
        assert last.get((one.partition, at.which, at.partition), -1) < at.offset
        last[one.partition, at.which, at.partition] = at.offset
        if b'"model": "' in (one.value or b""):
            partitions[json.loads(one.value)["model"]].add(one.partition)
    assert {len(some) for some in partitions.values()} == {1}


def require_predictions(application: RoutedApplication, count: int) -> None:
    """Assert that each observation has one prediction, as of a processor of the routed records."""
    found = [one.value for one in application.read("predictions")]
    assert len({json.loads(one)["id"] for one in found}) == len(found) == count
    assert sorted(found) == sorted(application.expected())


def predicts_more(application: RoutedApplication, count: int) -> bool:
    """Return whether more than so many predictions are committed."""
    return len(application.read("predictions")) > count


@on_each_client
def test_any_keys(broker: Broker, tmp_path: Path, start: Start, client: str) -> None:
    """Through kills each record is taken once, in the order of time, and names its origin."""
    application = RoutedApplication(broker, tmp_path, start, client)
    seen, labels = traffic(400, (4, 3))
    bad = [Message(b"{bad", b"k", 1, LAST), Message(None, b"k", 2, LAST)]
    application.produce("observations", [*seen, *bad])
    odd = {"id": "o1", "time": LAST, "label": 1, "model": []}
    odd_label = Message(json.dumps(odd).encode(), None, 0, LAST)
    application.produce("labels", labels)
    count = len(seen) + len(labels) + 3
    for predicted in (20, 150):
        with application.run() as process:
            application.until(partial(predicts_more, application, predicted), process)
            application.kill(process)
    application.produce("labels", [odd_label])  # a killed service may have taken all it had
    with application.run() as process:
        application.until(lambda: application.taken() >= count, process)
        application.stop(process)
    require_each_once(application)
    require_predictions(application, len(seen))
    times: dict[int, list[int]] = defaultdict(list)
    for one in application.read("routed"):
        times[one.partition].append(one.timestamp)
    assert all(a <= b for some in times.values() for a, b in pairwise(some)), "it was a backlog"
    dead = [json.loads(one.value) for one in application.read("dead_letters")]
    topics = application.topic("observations"), application.topic("labels")
    assert {(one["reason"], one["topic"], one["partition"]) for one in dead} == {
        ("bad-json", topics[0], 1),
        ("bad-model", topics[1], 0),
    }
    traces = {one.headers[0] for one in application.read("predictions") if one.headers}
    assert traces == {one.headers[0] for one in seen if one.headers}


@on_each_client
def test_growth(broker: Broker, tmp_path: Path, start: Start, client: str) -> None:
    """Partitions that are added are read from their beginning while the service runs."""
    application = RoutedApplication(broker, tmp_path, start, client, starting_offset="latest")
    with application.run() as process:
        application.until(
            lambda: (
                application.behind(f"{application.name}-router", "observations") == 0
                and bool(application.read("changelog"))
            ),
            process,
        )
        first, labels = traffic(60, (4, 3))
        application.produce("observations", first)
        application.grow("observations", 6)
        more, _ = traffic(120, (6, 3))
        more = [one._replace(partition=4 + n % 2) for n, one in enumerate(more[60:])]
        application.produce("observations", more)
        application.produce("labels", labels)
        count = len(first) + len(more) + len(labels)
        application.until(lambda: application.taken() >= count, process)
        application.stop(process)
    require_each_once(application)
    require_predictions(application, 120)


@on_each_client
def test_stages(broker: Broker, tmp_path: Path, start: Start, client: str) -> None:
    """Routers and tasks can be processes of their own, and each can be killed."""
    application = RoutedApplication(broker, tmp_path, start, client)
    seen, labels = traffic(300, (4, 3))
    application.produce("observations", seen)
    count = len(seen) + len(labels)
    with application.run("--stage", "router", instance="r") as router:
        application.until(lambda: len(application.read("routed")) > count // 4, router)
        application.kill(router)
    application.produce("labels", labels)  # the killed router may have routed all it had
    assert application.read("predictions") == []
    with application.run("--stage", "tasks", instance="t") as tasks:
        application.until(partial(predicts_more, application, 10), tasks)
        with application.run("--stage", "router", instance="r") as router:
            application.until(lambda: application.taken() >= count, router, tasks)
            application.stop(router)
        application.stop(tasks)
    require_each_once(application)
    require_predictions(application, len(seen))


@on_each_client_at_length
def test_two_routers_in_a_backlog(
    broker: Broker, tmp_path: Path, start: Start, client: str
) -> None:
    """Routers wait for one another: a record is late by the times of a few batches at most.

    A router may be a batch ahead of the slowest, which may have a batch under way. The times of a
    batch vary with the partitions that had records in time, by about a half.
    """
    count, records = 2_000, 100
    application = RoutedApplication(broker, tmp_path, start, client, max_records=records)
    seen, labels = traffic(count, (4, 3))
    application.produce("observations", seen)
    application.produce("labels", labels)
    create_topics(application.config())
    with (
        application.run("--stage", "router", instance="a") as first,
        application.run("--stage", "router", instance="b") as second,
    ):
        running = first, second
        application.until(lambda: len(application.read("routed")) == 2 * count, *running)
        for one in running:
            application.stop(one)
    require_each_once(application)
    highest: dict[int, int] = defaultdict(int)
    late = 0
    for one in application.read("routed"):
        late = max(late, highest[one.partition] - one.timestamp)
        highest[one.partition] = max(highest[one.partition], one.timestamp)
    own = 2 * 100 * records / 2  # milliseconds of a batch of one of two routers
    assert late <= 3 * own


def test_a_record_of_somebody_else(broker: Broker, tmp_path: Path, start: Start) -> None:
    """A record of the routed topic that no router wrote is a dead letter, and changes no model."""
    application = RoutedApplication(broker, tmp_path, start, "librdkafka")
    seen, labels = traffic(20, (4, 3))
    with application.run() as process:
        application.produce("observations", seen)
        application.until(lambda: len(application.read("routed")) == len(seen), process)
        foreign = seen[0]._replace(partition=2, headers=[(ORIGIN, b"short")])
        (offset,) = application.produce("routed", [foreign])
        application.until(lambda: bool(application.read("dead_letters")), process)
        application.stop(process)
    (dead,) = application.read("dead_letters")
    found = json.loads(dead.value)
    place_ = (found["reason"], found["topic"], found["partition"], found["offset"])
    assert place_ == ("not-routed", application.topic("routed"), 2, offset)
    assert len(application.read("predictions")) == len(seen)
    assert labels


def test_a_record_that_is_too_large(broker: Broker, tmp_path: Path, start: Start) -> None:
    """A record that the routed topic does not take is a dead letter with its beginning."""
    application = RoutedApplication(broker, tmp_path, start, "librdkafka")
    seen, _ = traffic(20, (4, 3))
    value = b'{"model": "a", "x": "' + b"x" * (2 << 20) + b'"}'
    large = Message(value, b"k", 2, START, [("h", b"v")])
    (offset,) = broker.produce(
        application.topic("observations"),
        [large],
        compression_type="gzip",
        max_request_size=4 << 20,
    )
    application.produce("observations", seen)
    with application.run() as process:
        application.until(partial(predicts_more, application, len(seen) - 1), process)
        application.until(lambda: bool(application.read("dead_letters")), process)
        application.stop(process)
    (dead,) = application.read("dead_letters")
    found = json.loads(dead.value)
    assert (found["reason"], found["partition"], found["offset"]) == ("too-large", 2, offset)
    assert found["raw"] == value[:1000].decode()


def test_ran_without_routers(broker: Broker, tmp_path: Path, start: Start) -> None:
    """An application that has read the inputs themselves is refused, with what to do."""
    application = RoutedApplication(broker, tmp_path, start, "librdkafka", (3, 3))
    application.produce("observations", [Message(b"{}", b"k", 0, START)])
    before = application.written(route_by=None, partitions=None)
    lines = (tmp_path / before).read_text().splitlines()
    kept = [one for one in lines if "null" not in one]
    (tmp_path / before).write_text("\n".join(kept) + "\n")
    with start("run", before, "--create-topics") as process:
        application.until(
            lambda: application.behind(application.name, "observations") == 0, process
        )
        application.stop(process)
    with application.run() as process:
        err = process.communicate()[1].decode()
    assert process.returncode == CONFIG
    assert "abers state rescale CONFIG --partitions N" in err
