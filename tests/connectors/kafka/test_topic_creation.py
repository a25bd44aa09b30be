"""`abers run --create-topics`, which creates nothing where a service cannot run."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.kafka.brokers import PATIENCE, unique

from abers.exceptions import ConfigError, StateError
from abers_connectors.config.model import Config
from abers_connectors.config.sections import KafkaSection
from abers_connectors.kafka.topic_checks import create_topics_if

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

    Make = Callable[..., str]

SEEDLESS = "the initial state has no snapshot of partition 0"


def configured(broker: Broker, **kafka: Any) -> Config:  # noqa: ANN401 - any key of [kafka]
    """Return the configuration of a new application."""
    app = unique("app")
    names = {"observations": f"{app}.in", "labels": f"{app}.labels", "predictions": f"{app}.out"}
    return Config(
        kafka=KafkaSection(
            bootstrap_servers=(broker.bootstrap,), application_id=app, **(names | kafka)
        )
    )


def made(broker: Broker, app: str) -> set[str]:
    """Return the topics of an application that exist."""
    with broker.admin() as admin:
        return {name for name in admin.list_topics() if name.startswith(app)}


def app_of(config: Config) -> str:
    """Return the id of the application of a configuration."""
    assert config.kafka is not None
    return config.kafka.application_id


def test_all_is_made_where_nothing_hinders(broker: Broker, topics: Make) -> None:
    """Missing topics are created, once the number of partitions is accepted."""
    counts: list[int] = []
    config = configured(broker, partitions=3)
    assert {*create_topics_if(config, counts.append, {})} == made(broker, app_of(config))
    assert create_topics_if(config, counts.append, {}) == []
    assert (
        len(create_topics_if(configured(broker, labels=topics("labels", 2)), counts.append, {}))
        == 4
    )
    create_topics_if(configured(broker), counts.append, {})  # as many as the broker gives
    assert counts == [3, 3, 2, 1]


@pytest.mark.parametrize(
    ("kafka", "existing", "message"),
    [
        ({"replication_factor": 3}, {}, r"^kafka\.observations: .* replication factor"),
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
    """A topic that the brokers reject, or an existing one that is wrong, stops the creation."""
    good = {"changelog": {"message_timestamp_type": "LogAppendTime"}}
    there = {role: topics(role, **good.get(role, {}) | more) for role, more in existing.items()}
    config = configured(broker, **kafka, **there)
    with pytest.raises(ConfigError, match=message):
        create_topics_if(config, lambda _: None, {})
    assert made(broker, app_of(config)) == set()


def test_nothing_is_made_where_somebody_refuses(broker: Broker) -> None:
    """Nothing is created if another check raises before."""

    def refuse(_: int) -> None:
        raise StateError("no")

    config = configured(broker)
    with pytest.raises(StateError, match="no"):
        create_topics_if(config, refuse, {})
    assert made(broker, app_of(config)) == set()


def run(
    start: Callable[..., subprocess.Popen[bytes]],
    folder: Path,
    broker: Broker,
    more: str,
    *words: str,
) -> tuple[str, int, list[dict[str, Any]]]:
    """Run a service that creates its topics and ends; return its name, its code, and its log."""
    app = unique("app")
    (folder / "abers.toml").write_text(f"""
    kafka.bootstrap_servers = "{broker.bootstrap}"
    kafka.application_id = "{app}"
    kafka.observations = "{app}.in"
    kafka.predictions = "{app}.out"
    {more}
    """)
    process = start("run", "abers.toml", "--create-topics", *words)
    _, log = process.communicate(timeout=PATIENCE)
    return app, process.returncode, [json.loads(line) for line in log.splitlines()]


def test_nothing_is_made_where_the_port_is_in_use(
    broker: Broker, tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """A service that cannot listen ends before it creates a topic."""
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
    """A service whose initial state is missing or invalid ends before it creates a topic."""
    more = f"{more}\nhttp.enabled = false"
    app, code, lines = run(start, tmp_path, broker, more, "--initial-state", "nowhere")
    assert code == 78
    assert message in lines[-1]["message"]
    assert made(broker, app) == set()
