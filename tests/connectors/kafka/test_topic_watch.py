"""Topics that are changed while a service runs: it ends, and names topic, cause and remedy."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ConfigResource,
    ConfigResourceType,
    ResourcePattern,
    ResourceType,
)
from tests.connectors.kafka.applications import PARTITIONS, Served
from tests.connectors.kafka.brokers import PATIENCE
from tests.connectors.kafka.clients import (
    CLIENTS,
    on_each_classic_client_at_length,
    on_each_client,
    on_each_client_at_length,
)
from tests.connectors.kafka.streams import labels_of, observations

from abers_connectors.kafka import topic_watch
from abers_connectors.kafka.topics import NO_TOPIC, describe_topics
from abers_connectors.runtime.application import Application

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

OBSERVATIONS = observations(400, PARTITIONS)
LABELS = labels_of(OBSERVATIONS)
HALF = OBSERVATIONS[200].time
MORE = PARTITIONS + 1
AUTHORIZER = (
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found=true",
)


class Changed(Served):
    """A service that has processed half of a stream when its topics are changed."""

    def __init__(self, *words: Any) -> None:  # noqa: ANN401 - those of Served
        super().__init__(*words)
        self.produce_half(first=True)

    def on(self, client: str, instance: int = 0, **state: object) -> None:
        """Choose the client, the name of the process, and more keys of [state]."""
        keys = CLIENTS[client] | {"group_instance_id": str(instance), "stall_timeout": "60s"}
        self.configure(
            "\n".join(f'kafka.{key} = "{value}"' for key, value in keys.items()), **state
        )

    def produce_half(self, *, first: bool) -> None:
        """Write the first or the second half."""
        both = (OBSERVATIONS, LABELS)
        self.produce(*([one for one in part if (one.time < HALF) == first] for part in both))

    def running(self, stack: ExitStack) -> subprocess.Popen[bytes]:
        """Start a service, and wait until it has processed everything."""
        process, look = stack.enter_context(self.run()), stack.enter_context(self.log())
        while not look.drained():
            assert process.poll() is None, process.communicate()[1].decode()
            time.sleep(0.05)
        return process

    def set(self, name: str, **config: str) -> None:
        """Change settings of a topic."""
        dotted = {key.replace("_", "."): value for key, value in config.items()}
        resource = ConfigResource(ConfigResourceType.TOPIC, self.topics[name], dotted)
        with self.broker.admin() as admin:
            admin.alter_configs([resource], incremental=True)

    def grow(self, *names: str) -> None:
        """Add a partition to topics."""
        with self.broker.admin() as admin:
            admin.create_partitions({self.topics[name]: MORE for name in names})

    def predictions(self) -> int:
        """Return how many predictions there are."""
        return len(self.broker.consume(self.topics["predictions"]))


@pytest.fixture
def changed(
    broker: Broker, tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> Changed:
    """Create an application with half of a stream in its topics."""
    return Changed(broker, tmp_path, start)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Wait until a service ends by itself; return its code and its output."""
    err = process.communicate(timeout=PATIENCE)[1].decode()
    return process.returncode, err


@on_each_client
@pytest.mark.parametrize(
    "grown", [("labels",), ("observations", "labels", "changelog")], ids=["one input", "all"]
)
def test_added_partitions_end_a_service(
    client: str, grown: Sequence[str], changed: Changed
) -> None:
    """It ends with 78 before it processes a record of the new partition, and so does a restart."""
    changed.on(client)
    with ExitStack() as stack:
        process = changed.running(stack)
        before = changed.predictions()
        changed.grow(*grown)
        code, err = ended(process)
    assert code == 78, err
    assert f"{changed.topics['labels']} has {MORE}" in err
    assert "Start a new application" in err
    changed.produce_half(first=False)
    code, err = changed.refused()
    assert code == 78, err
    assert f"{changed.topics['labels']} has {MORE}" in err
    assert changed.predictions() == before


@on_each_classic_client_at_length
def test_a_process_without_partitions_ends_too(client: str, changed: Changed) -> None:
    """A process to which no partition is assigned ends like the others."""
    with ExitStack() as stack:
        admin, processes = stack.enter_context(changed.broker.admin()), []
        for instance in range(MORE):
            changed.on(client, instance)
            processes.append(changed.running(stack))
            while len(changed.members(admin)) <= instance:
                time.sleep(0.05)
        changed.grow("observations", "labels", "changelog")
        found = [ended(process) for process in processes]
    assert {code for code, _ in found} == {78}, "\n".join(err for _, err in found)


def test_partitions_of_the_changelog_alone(changed: Changed) -> None:
    """The error names another changelog as the remedy, which helps."""
    with ExitStack() as stack:
        process = changed.running(stack)
        changed.grow("changelog")
        code, err = ended(process)
    assert code == 78
    assert f"Name another topic of {PARTITIONS} partitions in kafka.changelog" in err


def test_partitions_of_an_output_change_nothing(changed: Changed) -> None:
    """A service goes on, and starts again, if a topic that it only writes has more partitions."""
    with ExitStack() as stack:
        process = changed.running(stack)
        changed.grow("predictions", "dead_letters")
        changed.produce_half(first=False)
        while changed.predictions() < len(OBSERVATIONS):
            assert process.poll() is None, process.communicate()[1].decode()
        process.terminate()
        assert ended(process)[0] == 0
    changed.serve()


@on_each_client
def test_a_changelog_that_is_made_compact(client: str, changed: Changed) -> None:
    """The error names topic, setting and remedy, and a service continues once it is set back."""
    changed.on(client)
    with ExitStack() as stack:
        process = changed.running(stack)
        changed.set("changelog", cleanup_policy="compact")
        changed.produce_half(first=False)
        code, err = ended(process)
    assert code == 78, err
    assert f"topic {changed.topics['changelog']} has cleanup.policy=compact" in err
    assert "refused, as they have no keys" in err
    assert "--add-config cleanup.policy=delete" in err
    assert "abers state rebuild" in err
    changed.set("changelog", cleanup_policy="delete")
    with ExitStack() as stack:
        changed.running(stack).terminate()
    assert changed.predictions() == len(OBSERVATIONS)


@pytest.mark.parametrize(
    "config", [{"retention_ms": "1000"}, {"max_message_bytes": "500"}], ids=["retention", "size"]
)
def test_other_settings_of_a_changelog(config: dict[str, str], changed: Changed) -> None:
    """With other settings that can lose state a service ends, though nothing has failed yet."""
    with ExitStack() as stack:
        process = changed.running(stack)
        changed.set("changelog", **config)
        code, err = ended(process)
    assert code == 78, err
    ((key, value),) = config.items()
    assert f"topic {changed.topics['changelog']} has {key.replace('_', '.')}={value}" in err


@on_each_client
def test_an_output_that_refuses_records(client: str, changed: Changed) -> None:
    """It ends to be restarted, names the setting, and goes on once that is set back."""
    changed.on(client)
    with ExitStack() as stack:
        process = changed.running(stack)
        changed.set("predictions", max_message_bytes="100")
        changed.produce_half(first=False)
        code, err = ended(process)
    assert code == 75, err
    why = f"topic {changed.topics['predictions']} has max.message.bytes=100, and the brokers refuse"
    assert why in err
    code, err = changed.refused()
    assert (code, why in err) == (75, True), err
    changed.set("predictions", max_message_bytes=str(1 << 20))
    with ExitStack() as stack:
        changed.running(stack).terminate()
    assert changed.predictions() == len(OBSERVATIONS)


def test_a_single_wrong_answer_ends_nothing(
    changed: Changed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that has just started may know no topic, and an error of the client may pass."""
    answers = list[Any]()

    def describe(*given: Any) -> Any:  # noqa: ANN401 - as the real one
        found = describe_topics(*given)
        answers.append(found)
        if len(answers) == 2:
            return found | {"labels": found["labels"]._replace(error=NO_TOPIC)}
        if len(answers) == 3:
            raise KeyError
        return found

    monkeypatch.setattr(topic_watch, "describe_topics", describe)
    monkeypatch.setattr(topic_watch, "_INTERVAL", 0.05)
    config = changed.config()
    watch = topic_watch.TopicWatch(config, Application.of(config), PARTITIONS)
    with closing(watch):
        while len(answers) < 5:
            watch.require()
            time.sleep(0.01)


@on_each_client_at_length
@pytest.mark.parametrize("name", ["labels", "changelog", "predictions"])
def test_a_topic_that_is_deleted(name: str, client: str, changed: Changed) -> None:
    """A service ends whose topic is gone, and names it, also if a client waits for the topic."""
    changed.on(client)
    with ExitStack() as stack:
        process = changed.running(stack)
        with changed.broker.admin() as admin:
            admin.delete_topics([changed.topics[name]])
        if name == "predictions":
            changed.produce_half(first=False)
        code, err = ended(process)
    assert code == 78, err
    assert f"there is no topic {changed.topics[name]}" in err


@on_each_client_at_length
def test_an_input_that_is_made_anew(client: str, changed: Changed) -> None:
    """A topic of the same name is another one, which the offsets do not fit."""
    changed.on(client, snapshot_every=50)
    with ExitStack() as stack:
        process = changed.running(stack)
        changed.broker.recreate(changed.topics["labels"], PARTITIONS)
        code, err = ended(process)
    assert code == 78, err
    assert changed.topics["labels"] in err
    assert "deleted and made anew" in err or "there is no topic" in err
    code, err = changed.refused()
    assert code == 78
    assert "is not the topic that the state has read" in err


@on_each_client_at_length
@pytest.mark.parametrize(
    ("name", "right"), [("predictions", "WRITE"), ("observations", "READ")], ids=["write", "read"]
)
def test_a_permission_that_is_taken_away(  # noqa: PLR0913, PLR0917 - fixtures, and what differs
    name: str,
    right: str,
    client: str,
    brokers: Callable[..., Broker],
    tmp_path: Path,
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    """The error names the permission and the topic."""
    changed = Changed(brokers("--properties", *AUTHORIZER), tmp_path, start)
    changed.on(client)
    topic = changed.topics[name]
    with ExitStack() as stack:
        process = changed.running(stack)
        pattern = ResourcePattern(ResourceType.TOPIC, topic)
        deny = (ACLOperation[right], ACLPermissionType.DENY, pattern)
        allow = (ACLOperation.ALL, ACLPermissionType.ALLOW, pattern)
        with changed.broker.admin() as admin:
            admin.create_acls([ACL("User:*", "*", *one) for one in (allow, deny)])
        changed.produce_half(first=False)
        code, err = ended(process)
    assert code == 78, err
    assert f"permission {right} on topic {topic} is missing" in err
