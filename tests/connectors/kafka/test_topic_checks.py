"""Checks of an application's topics, and their creation."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.connectors.kafka.brokers import Message, unique

from abers.exceptions import ConfigError
from abers.stream import Settings
from abers_connectors.config.model import Config
from abers_connectors.config.sections import KafkaSection, LabelFieldsSection
from abers_connectors.kafka.topic_checks import check, create_topics, require_durable

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.kafka.topics import Finding

    Make = Callable[..., str]

DAY = 86_400_000
ROLES = ("observations", "labels", "predictions", "dead_letters", "changelog")
NOBODY = "127.0.0.1:1"


def configured(broker: Broker, **kafka: Any) -> Config:  # noqa: ANN401 - any key of [kafka]
    """Return the configuration of a new application."""
    app = unique("app")
    names = {"observations": f"{app}.in", "labels": f"{app}.labels", "predictions": f"{app}.out"}
    section = KafkaSection(
        bootstrap_servers=(broker.bootstrap,), application_id=app, **(names | kafka)
    )
    return Config(kafka=section, stream=Settings(label_timeout=DAY))


def created(broker: Broker, **kafka: Any) -> Config:  # noqa: ANN401
    """Return the configuration of an application whose topics exist."""
    config = configured(broker, **kafka)
    create_topics(config, {})
    return config


def fatal(found: list[Finding]) -> set[str]:
    """Return the keys of the fatal findings."""
    return {one.where for one in found if one.fatal}


def only(found: list[Finding], *parts: str) -> None:
    """Assert that there is one finding, whose sentence has these parts."""
    (one,) = found
    for part in parts:
        assert part in str(one)


def test_what_is_created_is_as_it_must_be(broker: Broker) -> None:
    """All missing topics are reported, and there are no findings once they are created."""
    config = configured(broker, partitions=3)
    found = check(config, {})
    assert fatal(found) == {
        f"kafka.{one}"
        for one in ("observations", "labels", "predictions", "dead_letters", "changelog")
    }
    assert all("there is no topic" in str(one) for one in found)
    assert len(create_topics(config, {})) == 5
    assert check(config, {}) == []
    assert create_topics(config, {}) == []
    with broker.admin() as admin:
        assert {len(one["partitions"]) for one in admin.describe_topics(all_of(config))} == {3}


def all_of(config: Config) -> list[str]:
    """Return the topics of a configuration."""
    assert config.kafka is not None
    return [getattr(config.kafka, role) for role in ROLES]


def test_what_is_created_has_as_many_partitions_as_there_are(broker: Broker, topics: Make) -> None:
    """New topics get the number of partitions of existing observations."""
    config = created(broker, observations=topics("in", 4), partitions=2)
    assert check(config, {}) == []
    with broker.admin() as admin:
        assert {len(one["partitions"]) for one in admin.describe_topics(all_of(config))} == {4}


def test_only_what_is_missing_is_created(broker: Broker, topics: Make) -> None:
    """A changelog that exists is left as it is, even if its settings are wrong."""
    wrong = topics("changelog", retention_ms="1000")
    config = created(broker, changelog=wrong)
    only(check(config, {}), f"--entity-name {wrong} --add-config retention.ms=-1,message.times")


def test_a_topic_that_cannot_be_created_is_reported(broker: Broker) -> None:
    """More replicas than brokers are refused, with the key and the reason."""
    with pytest.raises(ConfigError, match=r"^kafka\.observations: .* replication factor"):
        create_topics(configured(broker, replication_factor=3), {})


def test_inputs_of_different_partitions_are_fatal(broker: Broker, topics: Make) -> None:
    """Different numbers of partitions of the inputs are reported, with both numbers."""
    config = created(broker, observations=topics("in", 2), labels=topics("labels", 3))
    found = check(config, {})
    assert fatal(found) == {"kafka.labels"}
    only(found, "3 partitions", "2; a label meets")


def test_a_changed_number_of_partitions_is_fatal(broker: Broker, topics: Make) -> None:
    """A changelog with another number of partitions than its inputs is reported."""
    config = created(broker, changelog=topics("changelog", 2), partitions=1)
    found = check(config, {}, keys=False)
    assert "kafka.changelog" in fatal(found)
    assert "start again with another kafka.application_id" in str(found[0])


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("cleanup_policy", "compact"),
        ("retention_ms", "86400000"),
        ("retention_bytes", "1000000"),
        ("message_timestamp_type", "CreateTime"),
        ("max_message_bytes", "100000"),
    ],
)
def test_a_changelog_that_forgets_is_fatal(
    setting: str, value: str, broker: Broker, topics: Make
) -> None:
    """Each setting that can lose state is reported, with the command that fixes it."""
    good = {"message_timestamp_type": "LogAppendTime"}
    config = created(broker, changelog=topics("changelog", **(good | {setting: value})))
    found = check(config, {})
    assert fatal(found) == {"kafka.changelog"}
    name = setting.replace("_", ".")
    only(found, f"{name}={value}", "kafka-configs.sh --alter", f"--add-config {name}=")
    with pytest.raises(ConfigError, match=rf"^{re.escape(str(found[0]))}$"):
        require_durable(config, {})


def test_what_is_created_lets_a_service_start(broker: Broker, topics: Make) -> None:
    """A good changelog passes, whatever else is wrong, and so does a missing one."""
    require_durable(created(broker, labels=topics("labels", cleanup_policy="compact")), {})
    require_durable(configured(broker), {})


def test_short_retention_is_reported(broker: Broker, topics: Make) -> None:
    """A retention shorter than the label timeout is a finding, and not fatal."""
    config = created(broker, labels=topics("labels", retention_ms=str(DAY // 2)))
    found = check(config, {})
    assert fatal(found) == set()
    only(found, "kafka.labels", "12 hours", "1 day", f"retention.ms={DAY}")


def test_a_compacted_input_is_reported(broker: Broker, topics: Make) -> None:
    """An input that keeps only the last record of a key is a finding."""
    config = created(broker, observations=topics("in", cleanup_policy="compact"))
    only(check(config, {}), "kafka.observations", "is compacted")


def test_an_output_that_refuses_old_times_is_fatal(broker: Broker, topics: Make) -> None:
    """An output that would reject the time of an input record is a finding."""
    out = topics("out", message_timestamp_before_max_ms="1000")
    found = check(created(broker, predictions=out), {})
    assert fatal(found) == {"kafka.predictions"}
    only(found, "message.timestamp.before.max.ms=1000")


def test_an_input_that_accepts_times_far_ahead(broker: Broker, topics: Make) -> None:
    """An input whose brokers accept records of next year is a finding, and not fatal."""
    year = str(366 * DAY)
    seen = topics("in", message_timestamp_after_max_ms=year)
    out = topics("out", message_timestamp_after_max_ms=year)
    dead = topics("dead", message_timestamp_after_max_ms=year)
    found = check(created(broker, observations=seen, predictions=out, dead_letters=dead), {})
    assert fatal(found) == set()
    only(found, "kafka.observations", f"message.timestamp.after.max.ms={year}", "3600000 or less")


def test_the_same_key_in_other_partitions_is_fatal(
    broker: Broker, produce: Callable[..., list[int]]
) -> None:
    """Keys that CRC32 and murmur2 partition differently are a finding that names the cause."""
    config = created(broker, partitions=4)
    observations, labels = all_of(config)[:2]
    keys = [b"key-%d" % n for n in range(50)]
    produce(observations, [Message(b"{}", key=key) for key in keys])
    produce(labels, [Message(b"{}", key=key, partition=zlib.crc32(key) % 4) for key in keys])
    found = check(config, {})
    assert fatal(found) == {"kafka.labels"}
    only(
        found,
        "of the last 50 keys",
        f"topic {labels} is partitioned by CRC32",
        "partitioner=murmur2_random",
    )
    assert check(config, {}, keys=False) == []


def test_different_partitioners_are_found_without_a_common_key(
    broker: Broker, produce: Callable[..., list[int]]
) -> None:
    """Different partitioners are found by the partitions of keys, even if none is shared."""
    config = created(broker, partitions=2)
    observations, labels = all_of(config)[:2]
    keys = [b"o-%d" % n for n in range(50)]
    produce(observations, [Message(b"{}", key=key, partition=zlib.crc32(key) % 2) for key in keys])
    produce(labels, [Message(b"{}", key=b"l-%d" % n) for n in range(50)])
    only(check(config, {}), f"topic {observations} is partitioned by CRC32")


def test_equal_keys_in_equal_partitions_are_right(
    broker: Broker, produce: Callable[..., list[int]]
) -> None:
    """Inputs whose producers partition alike have no finding, in whichever way."""
    config = created(broker, partitions=3)
    keys = [b"key-%d" % n for n in range(50)]
    for topic in all_of(config)[:2]:
        produce(topic, [Message(b"{}", key=key, partition=zlib.crc32(key) % 3) for key in keys])
    assert check(config, {}) == []


def test_routers_are_recommended_where_keys_are_ids(
    broker: Broker, produce: Callable[..., list[int]]
) -> None:
    """Keys with one record each, and models with many, are a reason for routers."""
    config = created(broker, partitions=4)
    observations, labels = all_of(config)[:2]
    for topic in (observations, labels):
        values = [b'{"model": "m%d"}' % (n % 3) for n in range(60)]
        produce(topic, [Message(one, key=b"id-%d" % n) for n, one in enumerate(values)])
    found = check(config, {})
    assert fatal(found) == set()
    only(found, "kafka.observations", "60 keys and 3 models", 'kafka.route_by = "model"')


def test_records_without_keys_are_reported(
    broker: Broker, produce: Callable[..., list[int]]
) -> None:
    """Null keys are a finding with several partitions, and fatal if there are no others."""
    config = created(broker, partitions=2)
    observations, labels = all_of(config)[:2]
    produce(observations, [Message(b"{}"), Message(b"{}", key=b"a")])
    produce(labels, [Message(b"{}")])
    first, second = check(config, {})
    assert (first.where, first.fatal) == ("kafka.observations", False)
    assert "1 of the last 2 records" in first.text
    assert (second.where, second.fatal) == ("kafka.labels", True)


def test_a_routed_application(broker: Broker, topics: Make) -> None:
    """With routers inputs may differ; the routed topic must keep records, and fit the changelog."""
    given = {"partitions": 4, "route_by": "model", "labels": topics("labels", 3)}
    assert check(created(broker, **given), {}) == []
    config = created(broker, **given, routed=topics("routed", 3, retention_ms="1000"))
    first, *rest = check(config, {})
    only([first], "4 partitions are wanted", "has 3, as before", "--partitions 4")
    assert (first.fatal, fatal(rest)) == (False, {"kafka.routed"})
    only(rest, "retention.ms=1000", "--add-config", "retention.ms=-1", "max.message.bytes=")
    with pytest.raises(ConfigError, match=r"kafka\.routed"):
        require_durable(config, {})


def test_labels_with_only_an_id(
    broker: Broker, topics: Make, produce: Callable[..., list[int]]
) -> None:
    """If routers look labels up by ids, the inputs have equal partitions, and keys in the same."""
    given = {"partitions": 2, "route_by": "model"}
    inputs = {"observations": topics("in", 2), "labels": topics("labels", 3)}
    other = by_ids(created(broker, **given, **inputs))
    only(check(other, {}), "kafka.labels", "has 3 partitions", "input.label_fields.model")
    inputs = {"observations": topics("in", 2), "labels": topics("labels", 2)}
    config = by_ids(created(broker, **given, **inputs))
    observations, labels = inputs.values()
    many = [Message(b'{"model": "m"}', key=b"%d" % number, partition=0) for number in range(40)]
    produce(observations, many)
    produce(labels, many)
    assert check(config, {}) == []
    produce(labels, [many[0]._replace(partition=1)])
    only(check(config, {}), "kafka.labels", "several partitions")


def by_ids(config: Config) -> Config:
    """Return a configuration whose labels have only ids."""
    fields = LabelFieldsSection(model="record:observation")
    section = msgspec.structs.replace(config.input, label_fields=fields)
    return msgspec.structs.replace(config, input=section)


def test_one_partition_needs_no_keys(broker: Broker, produce: Callable[..., list[int]]) -> None:
    """With one partition keys are not checked."""
    config = created(broker, partitions=1)
    for topic in all_of(config)[:2]:
        produce(topic, [Message(b"{}")])
    assert check(config, {}) == []


def test_models_without_a_common_key_are_reported(
    broker: Broker, produce: Callable[..., list[int]]
) -> None:
    """Few keys, none of which is in both inputs, are a finding."""
    config = created(broker, partitions=2)
    observations, labels = all_of(config)[:2]
    produce(observations, [Message(b"{}", key=b"fraud")] * 30)
    produce(labels, [Message(b"{}", key=b"FRAUD")] * 30)
    found = check(config, {})
    assert fatal(found) == set()
    only(found, "share no key", "'FRAUD'", "'fraud'")


def test_one_topic_of_both_is_looked_at(broker: Broker, topics: Make) -> None:
    """Without a topic of labels none is missing."""
    config = created(broker, observations=topics("both", 2), labels=None)
    assert check(config, {}) == []


COMMANDED = """
[kafka]
bootstrap_servers = "{}"
application_id = "{}"
observations = "{}"
predictions = "{}"
"""


def test_the_command_tells_all(
    broker: Broker, topics: Make, invoke: Callable[..., Any], tmp_path: Path
) -> None:
    """`abers check --connect` prints every finding and ends with 78, or with 0 if none is fatal."""
    app, given = unique("app"), topics("in", retention_ms="1000")
    text = COMMANDED.format(broker.bootstrap, app, given, f"{app}.out")
    (tmp_path / "abers.toml").write_text(text)
    ran = invoke("check", "abers.toml", "--connect")
    assert ran.code == 78
    assert ran.err.count("error: abers.toml: kafka.") == 4
    with broker.admin() as admin:
        admin.create_topics([f"{app}.out", f"{app}.dead-letters"], wait_for_metadata=True)
    topic = topics("changelog", message_timestamp_type="LogAppendTime")
    (tmp_path / "abers.toml").write_text(f'{text}changelog = "{topic}"')
    ran = invoke("check", "abers.toml", "--connect")
    assert (ran.code, ran.err.count("Warning: abers.toml: kafka.observations")) == (0, 1)
    assert "topics: a service can use them" in ran.out


def test_the_command_ends_with_75_without_a_broker(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """A missing broker may come back: the exit code says so, and a sentence names the cause."""
    (tmp_path / "abers.toml").write_text(COMMANDED.format(NOBODY, "a", "b", "c"))
    # In a process of its own, as the client leaves the sockets open that nobody answered.
    ran = start("check", "abers.toml", "--connect")
    error = ran.communicate()[1].decode()
    assert ran.returncode == 75
    assert error == f"error: no answer from a broker at {NOBODY}: 111 ECONNREFUSED\n"


def test_the_command_needs_topics_to_connect(invoke: Callable[..., Any], tmp_path: Path) -> None:
    """`--connect` with a configuration of files is refused."""
    (tmp_path / "abers.toml").write_text('[input]\nobservations = "-"\nformat = "jsonl"')
    ran = invoke("check", "abers.toml", "--connect")
    assert (ran.code, "kafka: missing" in ran.err) == (78, True)
