"""Routers with labels that carry only the id of their observation."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.kafka.brokers import Message
from tests.connectors.kafka.clients import on_each_client, on_each_client_at_length
from tests.connectors.kafka.routed import ORIGIN, START, Place, RoutedApplication, place

from abers_connectors.errors import CONFIG
from abers_connectors.kafka.topic_checks import create_topics

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

    Start = Callable[..., subprocess.Popen[bytes]]

MODELS = 12
TIMEOUT = 10_000
FOUND, REFUSED = "abers.model", "abers.refused"
LABELS = {
    "input.label_fields": {"model": "record:observation"},
    "limits": {"label_timeout": "10s"},
}


class Traffic:
    """Observations, and labels without a model: on time, early, of unknown and of two models."""

    def __init__(self, count: int, partitions: int) -> None:
        """Put each id into one partition of both inputs."""
        random = Random(3)  # noqa: S311 - not for secrets
        self.models: dict[str, str] = {}  # of ids with one model
        self.ambiguous, self.unknown = set[str](), set[str]()
        seen, labels = list[Message](), list[Message]()
        for number in range(count):
            id_, at = f"o{number}", START + 100 * number
            to, key = number * 7 % partitions, id_.encode()
            models = [f"model {one}" for one in random.sample(range(MODELS), 2)]
            several = models if number % 40 == 5 else models[:1]
            for model in several:
                one = {"id": id_, "time": at, "model": model, "score": random.random()}
                seen.append(Message(json.dumps(one).encode(), key, to, at))
            if len(several) > 1:
                self.ambiguous.add(id_)
            else:
                self.models[id_] = models[0]
            if number % 30 == 7 and not count // 2 < number < count * 9 // 10:
                id_ = f"lost {number}"
                if number < count // 2:  # the clock does not pass the last of them
                    self.unknown.add(id_)
            early = number % 10 == 3
            written = at + (-1_500 if early else 2_050)
            one = {"id": id_, "time": at + 20, "label": random.randrange(2)}
            labels.append(Message(json.dumps(one).encode(), key, to, written, [("trace", key)]))
        self.observations = seen
        self.labels = sorted(labels, key=lambda label: label.time or 0)

    def produce(self, application: RoutedApplication) -> None:
        """Write all records."""
        application.produce("observations", self.observations)
        application.produce("labels", self.labels)

    def ends(self) -> int:
        """Return the number of records that are routed in the end."""
        kept = self.models.keys() | self.ambiguous | self.unknown
        return len(self.observations) + sum(_id(one.value) in kept for one in self.labels)

    def require_each_once(self, application: RoutedApplication) -> None:
        """Assert that each record is routed once, unchanged, to its model, and names its origin."""
        read = {
            Place(which, one.partition, one.offset): one
            for which, key in enumerate(("observations", "labels"))
            for one in application.read(key)
            if which == 0 or _id(one.value) in {*self.models, *self.ambiguous, *self.unknown}
        }
        routed = application.read("routed")
        assert sorted(map(place, routed)) == sorted(read)
        partitions: dict[str, set[int]] = defaultdict(set)
        seen: dict[str, set[int]] = defaultdict(set)  # observations, by ids: labels follow them
        for one in routed:
            at, given = place(one), read[place(one)]
            assert (one.key, one.value, one.timestamp) == (given.key, given.value, given.timestamp)
            assert [*one.headers[: len(given.headers)]] == [*given.headers]
            (*own, (last, _)) = one.headers[len(given.headers) :]
            id_ = _id(one.value)
            assert last == ORIGIN
            assert own == self.found(id_, at)
            if at.which == 0:
                partitions[json.loads(one.value)["model"]].add(one.partition)
                seen[id_].add(one.partition)
            elif id_ in self.models:
                assert seen[id_] == {one.partition}
        assert {len(some) for some in partitions.values()} == {1}

    def found(self, id_: str, at: Place) -> list[tuple[str, bytes]]:
        """Return what a router says of a record."""
        if at.which == 0:
            return []
        if id_ in self.models:
            return [(FOUND, self.models[id_].encode())]
        return [(REFUSED, self.reason(id_).encode())]

    def reason(self, id_: str) -> str:
        """Return why a label is a dead letter."""
        return "ambiguous-id" if id_ in self.ambiguous else "unknown-id"

    def require_outputs(self, application: RoutedApplication) -> None:
        """Assert that outputs are those of a processor, and other labels are dead letters."""
        found = [one.value for key in ("predictions", "outcomes") for one in application.read(key)]
        assert sorted(found) == sorted(application.expected(self.models))
        assert len(application.read("outcomes")) > len(self.models) // 2
        dead = [json.loads(one.value) for one in application.read("dead_letters")]
        topic = application.topic("labels")
        places = {
            (self.reason(_id(one.value)), topic, one.partition, one.offset)
            for one in application.read("labels")
            if _id(one.value) in self.ambiguous | self.unknown
        }
        assert len(dead) == len(places)
        names = ("reason", "topic", "partition", "offset")
        assert {tuple(one[name] for name in names) for one in dead} == places
        kept = {one[0] for one in application.read("outcomes")[0].headers}
        assert kept == {"trace"}


def _id(value: bytes | None) -> str:
    return str(json.loads(value or b"")["id"])


def applied(
    broker: Broker,
    folder: Path,
    start: Start,
    client: str,
    **more: Any,  # noqa: ANN401 - keys
) -> RoutedApplication:
    """Return an application whose labels carry only ids."""
    outcomes = broker.create("outcomes", 2)
    more = {"partitions": (3, 3), "sections": LABELS, "outcomes": outcomes, **more}
    return RoutedApplication(broker, folder, start, client, **more)


def routes_more(application: RoutedApplication, count: int) -> bool:
    """Return whether more than so many records are routed."""
    return len(application.read("routed")) > count


@on_each_client
@pytest.mark.parametrize("state", [{"snapshot_every": 60}, {}])
def test_kills(
    broker: Broker, tmp_path: Path, start: Start, client: str, state: dict[str, Any]
) -> None:
    """Through kills each record is routed once, by snapshots or without, while labels wait."""
    if state:
        state = {"path": str(tmp_path / "state"), **state}
    sections = {**LABELS, "state": state}
    more = {"sections": sections, "max_records": 30, "leave_group_on_close": True}
    application = applied(broker, tmp_path, start, client, **more)
    traffic = Traffic(300, 3)
    application.produce("observations", traffic.observations)
    application.produce("labels", traffic.labels[:-10])
    for routed in (20, 150, 300):
        with application.run() as process:
            application.until(partial(routes_more, application, routed), process)
            application.kill(process)
    application.produce("labels", traffic.labels[-10:])  # a killed service may have routed the rest
    with application.run() as process:
        application.until(lambda: application.taken() >= traffic.ends(), process)
        application.stop(process)
    traffic.require_each_once(application)
    traffic.require_outputs(application)
    stored = [*(tmp_path / "state" / f"{application.name}-router").rglob("*.abers")]
    assert bool(stored) == bool(state)
    with start("state", "verify", application.written()) as process:
        assert process.wait() == 0


@on_each_client_at_length
def test_routers_take_over(broker: Broker, tmp_path: Path, start: Start, client: str) -> None:
    """A router that takes a partition over knows its ids, and what waits there."""
    application = applied(broker, tmp_path, start, client, max_records=30)
    traffic = Traffic(600, 3)
    traffic.produce(application)
    create_topics(application.config())
    with application.run("--stage", "router", instance="a") as first:
        application.until(partial(routes_more, application, 150), first)
        with application.run("--stage", "router", instance="b") as second:
            application.until(partial(routes_more, application, 500), first, second)
            second.kill()
            second.wait()
        application.until(lambda: len(application.read("routed")) >= traffic.ends(), first)
        application.stop(first)
    traffic.require_each_once(application)


def test_growth_is_refused(broker: Broker, tmp_path: Path, start: Start) -> None:
    """A router ends when an input grows, as ids then move, and does not start again."""
    application = applied(broker, tmp_path, start, "librdkafka")
    Traffic(30, 3).produce(application)
    with application.run("--stage", "router") as process:
        application.until(partial(routes_more, application, 20), process)
        application.grow("observations", 4)
        err = process.communicate()[1].decode()
    assert process.returncode == CONFIG
    with application.run("--stage", "router") as process:
        again = process.communicate()[1].decode()
    assert process.returncode == CONFIG
    for one in (err, again):
        assert "equally many" in one
        assert "input.label_fields.model" in one
