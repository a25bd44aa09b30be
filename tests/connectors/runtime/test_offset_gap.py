"""Records deleted before they were read are skipped only if the configuration says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from kafka import TopicPartition
from tests.connectors.kafka.brokers import Message, unique

from abers.exceptions import StateError
from abers_connectors.config.model import Config, load
from abers_connectors.kafka.assembly import open_worker
from abers_connectors.kafka.topic_checks import create_topics
from abers_connectors.process import Supervisor
from abers_connectors.runtime.application import Application

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.runtime.router import Router
    from abers_connectors.runtime.worker import Worker

START = 1_700_000_000_000


@pytest.fixture
def configured(broker: Broker) -> Callable[..., Config]:
    """Configure an application with empty topics of its own, of one partition."""
    app = unique("gaps")

    def made(**more: Any) -> Config:  # noqa: ANN401 - keys of [kafka]
        kafka = {
            "bootstrap_servers": broker.bootstrap,
            "application_id": app,
            "partitions": 1,
        } | more
        named = {name: f"{app}-{name}" for name in ("observations", "labels", "predictions")}
        flags = {"kafka": kafka | named, "http": {"enabled": False}}
        return load(flags=flags, environ={})

    create_topics(made())
    return made


def observations(*ids: int) -> Iterator[Message]:
    """Yield observations."""
    for one in ids:
        value = {"id": f"a{one}", "time": START + one, "score": 0.5}
        yield Message(json.dumps(value).encode(), b"k", time=START + one)


def served(config: Config, until: Callable[[Worker | Router], bool]) -> None:
    """Run a worker until a condition holds."""
    with open_worker(config, Application.of(config), None, Supervisor({})) as service:
        while not until(service):
            service.turn()


def predicted(consume: Callable[..., list[Any]], config: Config) -> list[str]:
    """Return the ids that have predictions."""
    assert config.kafka is not None
    return [json.loads(one.value)["id"] for one in consume(config.kafka.predictions)]


@pytest.fixture
def with_gap(
    broker: Broker, configured: Callable[..., Config], consume: Callable[..., list[Any]]
) -> Callable[..., Config]:
    """Run a service over a0 to a2, and delete a3 and a4 before it reads them."""
    config = configured()
    assert config.kafka is not None
    topic = config.kafka.observations
    broker.produce(topic, observations(0, 1, 2))
    served(config, lambda _: len(predicted(consume, config)) == 3)
    broker.produce(topic, observations(3, 4, 5, 6))
    with broker.admin() as admin:
        admin.delete_records({TopicPartition(topic, 0): 5})
    return configured


def test_it_stops(with_gap: Callable[..., Config], consume: Callable[..., list[Any]]) -> None:
    """By default a gap ends the service with an error that names it, and nothing is written."""
    config = with_gap()
    assert config.kafka is not None
    expected = (
        rf"{config.kafka.observations}\[0\]@3 is next, but the topic has only @5 to @7: .*; "
        "set kafka.on_offset_out_of_range"
    )
    with pytest.raises(StateError, match=expected):
        served(config, lambda _: False)
    assert predicted(consume, config) == ["a0", "a1", "a2"]


def test_earliest(with_gap: Callable[..., Config], consume: Callable[..., list[Any]]) -> None:
    """With "earliest" all remaining records are predicted, and later starts need no such key."""
    config = with_gap(on_offset_out_of_range="earliest")
    served(config, lambda _: len(predicted(consume, config)) == 5)
    assert predicted(consume, config) == ["a0", "a1", "a2", "a5", "a6"]
    again = with_gap()
    assert again.kafka is not None
    served(again, lambda service: service.status.view().ready)


def test_latest(
    with_gap: Callable[..., Config], broker: Broker, consume: Callable[..., list[Any]]
) -> None:
    """With "latest" only later records are predicted."""
    config = with_gap(on_offset_out_of_range="latest")
    assert config.kafka is not None
    served(config, lambda service: service.status.view().ready)
    broker.produce(config.kafka.observations, observations(7))
    served(with_gap(), lambda _: len(predicted(consume, config)) == 4)
    assert predicted(consume, config) == ["a0", "a1", "a2", "a7"]
