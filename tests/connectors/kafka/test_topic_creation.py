"""What `abers run --create-topics` makes, and that it makes nothing where a service cannot run."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.kafka.brokers import unique

from abers.exceptions import ConfigError, StateError
from abers_connectors.config import Config, Kafka
from abers_connectors.kafka.topic_creation import create_if

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

    Make = Callable[..., str]

TIMEOUT = 120
SEEDLESS = "the seed has no snapshot of partition 0"


def configured(broker: Broker, **kafka: Any) -> Config:  # noqa: ANN401 - any key of [kafka]
    """Return a configuration of an application that nobody has."""
    app = unique("app")
    names = {"observations": f"{app}.in", "labels": f"{app}.labels", "predictions": f"{app}.out"}
    return Config(kafka=Kafka(bootstrap=(broker.bootstrap,), app=app, **(names | kafka)))


def made(broker: Broker, app: str) -> set[str]:
    """Name the topics of an application that exist."""
    with broker.admin() as admin:
        return {name for name in admin.list_topics() if name.startswith(app)}


def app_of(config: Config) -> str:
    """Name the application of a configuration."""
    assert config.kafka is not None
    return config.kafka.app


def test_all_is_made_where_nothing_hinders(broker: Broker, topics: Make) -> None:
    """What is missing is created, once somebody has accepted the number of partitions."""
    counts: list[int] = []
    config = configured(broker, partitions=3)
    assert {*create_if(config, counts.append, {})} == made(broker, app_of(config))
    assert create_if(config, counts.append, {}) == []
    assert len(create_if(configured(broker, labels=topics("labels", 2)), counts.append, {})) == 4
    create_if(configured(broker), counts.append, {})  # as many as the broker gives
    assert counts == [3, 3, 2, 1]


@pytest.mark.parametrize(
    ("kafka", "existing", "message"),
    [
        ({"replication": 3}, {}, r"^kafka\.observations: .* replication factor"),
        ({}, {"changelog": {"retention_ms": "1000"}}, r"with which state can be lost"),
        ({"partitions": 2}, {"changelog": {"partitions": 3}}, "topic .* has 3 partitions, and"),
        ({}, {"labels": {"partitions": 2}, "observations": {}}, "a label meets its observation"),
    ],
)
def test_nothing_is_made_where_a_topic_will_not_do(
    kafka: dict[str, Any],
    existing: dict[str, dict[str, Any]],
    message: str,
    broker: Broker,
    topics: Make,
) -> None:
    """A topic that the brokers refuse, or one that exists and is wrong, leaves all as it was."""
    good = {"changelog": {"message_timestamp_type": "LogAppendTime"}}
    there = {role: topics(role, **good.get(role, {}) | more) for role, more in existing.items()}
    config = configured(broker, **kafka, **there)
    with pytest.raises(ConfigError, match=message):
        create_if(config, lambda _: None, {})
    assert made(broker, app_of(config)) == set()


def test_nothing_is_made_where_somebody_refuses(broker: Broker) -> None:
    """What is refused for another reason, before anything is made, is not made."""

    def refuse(_: int) -> None:
        raise StateError("no")

    config = configured(broker)
    with pytest.raises(StateError, match="no"):
        create_if(config, refuse, {})
    assert made(broker, app_of(config)) == set()


def run(
    start: Callable[..., subprocess.Popen[bytes]],
    folder: Path,
    broker: Broker,
    more: str,
    *words: str,
) -> tuple[str, int, list[dict[str, Any]]]:
    """Let a service start that creates its topics, and ends: its name, its code, and its log."""
    app = unique("app")
    (folder / "abers.toml").write_text(f"""
    kafka.bootstrap = "{broker.bootstrap}"
    kafka.app = "{app}"
    kafka.observations = "{app}.in"
    kafka.predictions = "{app}.out"
    {more}
    """)
    process = start("run", "abers.toml", "--create-topics", *words)
    _, told = process.communicate(timeout=TIMEOUT)
    return app, process.returncode, [json.loads(line) for line in told.splitlines()]


def test_nothing_is_made_where_the_port_is_in_use(
    broker: Broker, tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """A service that cannot listen ends before it makes a topic."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        app, code, lines = run(start, tmp_path, broker, f"http.port = {port}")
    assert (code, lines[-1]["level"]) == (1, "critical")
    assert "another process listens there" in lines[-1]["message"]
    assert made(broker, app) == set()


@pytest.mark.parametrize(("more", "message"), [("", "state.path"), ("state.path = 's'", SEEDLESS)])
def test_nothing_is_made_where_the_seed_is_wrong(
    more: str,
    message: str,
    broker: Broker,
    tmp_path: Path,
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    """A service whose seed has no place, or is no seed, ends before it makes a topic."""
    more = f"{more}\nhttp.enabled = false"
    app, code, lines = run(start, tmp_path, broker, more, "--seed", "nowhere")
    assert code == 78
    assert message in lines[-1]["message"]
    assert made(broker, app) == set()
