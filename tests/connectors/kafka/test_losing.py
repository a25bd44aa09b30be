"""Records that were deleted before they were read: nobody goes on without being told to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from kafka import TopicPartition
from tests.connectors.kafka.brokers import Message, unique

from abers.exceptions import StateError
from abers_connectors.config import Config, load
from abers_connectors.kafka.serving import home_of, opened
from abers_connectors.kafka.topic_creation import create
from abers_connectors.notify import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.kafka.service import Service

START = 1_700_000_000_000


@pytest.fixture
def configured(broker: Broker) -> Callable[..., Config]:
    """Configure an application with topics of its own, of one partition, in which nothing is."""
    app = unique("losing")

    def made(**more: Any) -> Config:  # noqa: ANN401 - keys of [kafka]
        kafka = {"bootstrap": broker.bootstrap, "app": app, "partitions": 1} | more
        named = {name: f"{app}-{name}" for name in ("observations", "labels", "predictions")}
        flags = {"kafka": kafka | named, "http": {"enabled": False}}
        return load(flags=flags, environ={})

    create(made())
    return made


def seen(*ids: int) -> Iterator[Message]:
    """Make observations."""
    for one in ids:
        value = {"id": f"a{one}", "time": START + one, "score": 0.5}
        yield Message(json.dumps(value).encode(), b"k", time=START + one)


def served(config: Config, until: Callable[[Service], bool]) -> None:
    """Serve until something holds."""
    with opened(config, home_of(config), None, Supervisor({})) as service:
        while not until(service):
            service.turn()


def predicted(consume: Callable[..., list[Any]], config: Config) -> list[str]:
    """Give the ids that have predictions."""
    assert config.kafka is not None
    return [json.loads(one.value)["id"] for one in consume(config.kafka.predictions)]


@pytest.fixture
def lost(
    broker: Broker, configured: Callable[..., Config], consume: Callable[..., list[Any]]
) -> Callable[..., Config]:
    """Let a service predict a0 to a2, stop it, and delete a3 and a4 before it reads them."""
    config = configured()
    assert config.kafka is not None
    topic = config.kafka.observations
    broker.produce(topic, seen(0, 1, 2))
    served(config, lambda _: len(predicted(consume, config)) == 3)
    broker.produce(topic, seen(3, 4, 5, 6))
    with broker.admin() as admin:
        admin.delete_records({TopicPartition(topic, 0): 5})
    return configured


def test_it_stops(lost: Callable[..., Config], consume: Callable[..., list[Any]]) -> None:
    """By default a loss ends the service, with the offsets, and nothing is written."""
    config = lost()
    assert config.kafka is not None
    told = (
        rf"{config.kafka.observations}\[0\]@3 is next, and the topic has only @5 to @7: .*; "
        "write kafka.lost_history"
    )
    with pytest.raises(StateError, match=told):
        served(config, lambda _: False)
    assert predicted(consume, config) == ["a0", "a1", "a2"]


def test_it_goes_on_with_what_is_left(
    lost: Callable[..., Config], consume: Callable[..., list[Any]]
) -> None:
    """With "earliest" all that is left is predicted, and later starts need no such key."""
    config = lost(lost_history="earliest")
    served(config, lambda _: len(predicted(consume, config)) == 5)
    assert predicted(consume, config) == ["a0", "a1", "a2", "a5", "a6"]
    again = lost()
    assert again.kafka is not None
    served(again, lambda service: service.status.view().ready)


def test_it_goes_on_with_what_comes(
    lost: Callable[..., Config], broker: Broker, consume: Callable[..., list[Any]]
) -> None:
    """With "latest" only what comes from then on is predicted."""
    config = lost(lost_history="latest")
    assert config.kafka is not None
    served(config, lambda service: service.status.view().ready)
    broker.produce(config.kafka.observations, seen(7))
    served(lost(), lambda _: len(predicted(consume, config)) == 4)
    assert predicted(consume, config) == ["a0", "a1", "a2", "a7"]
