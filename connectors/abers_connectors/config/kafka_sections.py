"""The sections of a service on topics: Kafka and the schema registry."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, ClassVar, Literal, TypeAlias

import msgspec

from abers.stream.option import ValueKind
from abers_connectors.config.section import Section, key
from abers_connectors.config.security_section import SecuritySection
from abers_connectors.config.value_types import (
    Bootstrap,
    Count,
    File,
    Label,
    Moment,
    Name,
    Pause,
    RegistryUrl,
    Start,
    Topic,
    Wait,
)

__all__ = [
    "NAMED_AFTER_APPLICATION",
    "KafkaSection",
    "OffsetGapPolicy",
    "SchemaRegistrySection",
    "default_client",
]

_SECOND = 1000

NAMED_AFTER_APPLICATION = {
    "dead_letters": "dead-letters",
    "changelog": "changelog",
    "routed": "routed",
}
"""Suffixes of topics that are named after the application by default, by their keys."""

OffsetGapPolicy: TypeAlias = Literal["stop", "earliest", "latest"]
"""What to do if the next record of an input was deleted before it was read."""


_Client: TypeAlias = Literal["kafka-python", "librdkafka"]


def default_client() -> _Client:
    """Return librdkafka where it is installed."""
    return "librdkafka" if find_spec("confluent_kafka") else "kafka-python"


class KafkaSection(Section, frozen=True, kw_only=True):
    """Section [kafka]: topics, and how to use them; durations in wall-clock time."""

    intro: ClassVar[str] = (
        "With this section observations and labels come from topics of Apache Kafka, and "
        "predictions go to a topic, exactly once each: without input.observations, input.format,"
        " and the files of [output]. deploy/abers.kafka.toml is a small example. Values shown "
        "here are defaults, except the required bootstrap_servers, observations and predictions,"
        " and where a comment says so. All durations of this section are wall-"
        "clock time."
    )

    bootstrap_servers: Annotated[
        Bootstrap,
        key(
            'One or more brokers, from which the client finds the others: "kafka-1:9092", or a '
            "list.",
            example="localhost:9092",
        ),
    ]
    client: Annotated[
        _Client,
        key(
            'The client library: "librdkafka", the default where the extra of that name is '
            'installed, or "kafka-python", which takes far more processor time.',
            "Both write the same; a restart may change it.",
            example="librdkafka",
        ),
    ] = msgspec.field(default_factory=default_client)
    group_protocol: Annotated[
        Literal["classic", "consumer"],
        key(
            'The protocol of the consumer group: "classic", or "consumer" (KIP-848), for '
            "librdkafka and brokers from 4.0 on.",
            "In the latter the brokers assign partitions, and set the session time-out of the "
            "group.",
        ),
    ] = "classic"
    application_id: Annotated[
        Label,
        key(
            "Name of this application in Kafka: its consumer group, and the prefix of the names "
            "below.",
            "Another name starts anew.",
        ),
    ] = "abers"
    group_instance_id: Annotated[
        Label,
        key(
            "Name of this process: a number or name that no other process of the application "
            "has, and that it keeps when it restarts, such as the ordinal of a StatefulSet."
        ),
    ] = "0"
    observations: Annotated[
        Topic,
        key("The topic of observations, or of observations and labels mixed.", example="scores"),
    ]
    labels: Annotated[
        Topic | None,
        key(
            "The topic of labels, if it is separate: it has as many partitions, and records have"
            " the key of their observations, without route_by.",
            "Default: none.",
            example="labels",
        ),
    ] = None
    predictions: Annotated[
        Topic,
        key(
            "Topic of predictions, with the key and the headers of their observations.",
            example="predictions",
        ),
    ]
    outcomes: Annotated[
        Topic | None,
        key("Topic of labels, each with its prediction.", "Default: none.", example="outcomes"),
    ] = None
    dead_letters: Annotated[
        Topic,
        key(
            "Topic of records that cannot be used, with the reason.",
            "Default: the application id with the suffix .dead-letters.",
            example="abers.dead-letters",
        ),
    ] = ""
    route_by: Annotated[
        Literal["model"] | None,
        key(
            'What brings records to tasks: "model" lets the topics of observations and labels have '
            "any keys, and any numbers of partitions, which may grow.",
            "Default: both have the same key and equally many partitions.",
            example="model",
        ),
    ] = None
    routed: Annotated[
        Topic,
        key(
            "Topic to which routers write all records by their models, with route_by.",
            "Default: the application id with the suffix .routed. It must never lose a record: "
            "abers run --create-topics configures it so.",
            example="abers.routed",
        ),
    ] = ""
    changelog: Annotated[
        Topic,
        key(
            "Topic of the state, as a log of all batches.",
            "Default: the application id with the suffix .changelog. It must never lose a "
            "record: abers run --create-topics configures it so.",
            example="abers.changelog",
        ),
    ] = ""
    alerts: Annotated[
        Topic | None,
        key(
            "Topic of alarms, raised when predictions become miscalibrated.",
            "Default: none.",
            example="alerts",
        ),
    ] = None
    starting_offset: Annotated[
        Start,
        key(
            'Where an application begins that never ran: "earliest", "latest", or a time, in '
            "milliseconds since 1970 or as RFC 3339."
        ),
    ] = "earliest"
    publish_from: Annotated[
        Moment | None,
        key(
            "Event time from which predictions are published; earlier events are only learned.",
            "Default: everything is published.",
            example="2026-01-31T12:00:00Z",
        ),
    ] = None
    on_offset_out_of_range: Annotated[
        OffsetGapPolicy,
        key(
            'What happens if records were deleted before they were read: "stop" ends the run, '
            '"earliest" continues with the oldest that are left, "latest" with new ones.'
        ),
    ] = "stop"
    max_records: Annotated[
        Count,
        key(
            "Maximum number of records of one transaction.",
            "With eight partitions or more in a process it is so many for each four of them.",
        ),
    ] = 2_000
    max_bytes: Annotated[Count, key("Maximum bytes of the records of one transaction.")] = 4 << 20
    commit_interval: Annotated[
        Pause, key("How long a transaction waits for more records after its first.")
    ] = 10
    max_task_idle: Annotated[
        Pause,
        key(
            "How long a record waits for an earlier one of the other topic, if that topic is "
            "silent."
        ),
    ] = 50
    session_timeout: Annotated[
        Wait,
        key(
            "How long the brokers wait for a silent process before others take its partitions.",
            "Only in the classic protocol: in the other one it is a setting of the group on the "
            "brokers.",
        ),
    ] = 10 * _SECOND
    transaction_timeout: Annotated[
        Wait, key("How long a transaction may take before the brokers abort it.")
    ] = 10 * _SECOND
    stall_timeout: Annotated[
        Wait,
        key(
            "How long a process may make no progress before it ends with exit code 75, to be "
            "restarted; longer than transaction_timeout."
        ),
    ] = 60 * _SECOND
    leave_group_on_close: Annotated[
        bool,
        key(
            "Whether a stopped process releases its partitions at once, which suits scaling down.",
            "Otherwise it keeps them for session_timeout, so a restart moves nothing.",
        ),
    ] = False
    compression: Annotated[
        Literal["none", "gzip", "lz4", "snappy", "zstd"],
        key('How written records are compressed: "none", "gzip", "lz4", "snappy" or "zstd".'),
    ] = "lz4"
    replication_factor: Annotated[
        Annotated[int, ValueKind(least=1, most=32_767)],
        key(
            "Replicas of each topic that abers run --create-topics creates; 3 is usual in "
            "production."
        ),
    ] = 1
    partitions: Annotated[
        Annotated[int, ValueKind(least=1, most=100_000)] | None,
        key(
            "Partitions of these topics.",
            "Default: those of the observations, and 16 of the topics routed and changelog with "
            "route_by.",
            example=6,
        ),
    ] = None
    security: SecuritySection = SecuritySection()

    def __post_init__(self) -> None:
        """Name topics without a name after the application."""
        super().__post_init__()
        for name, suffix in NAMED_AFTER_APPLICATION.items():
            if not getattr(self, name):
                msgspec.structs.force_setattr(self, name, f"{self.application_id}.{suffix}")


class SchemaRegistrySection(Section, frozen=True, kw_only=True):
    """Section [schema_registry]: the schemas of Avro, Protobuf and JSON Schema; no secrets."""

    intro: ClassVar[str] = (
        'With this section, input.format, input.label_format and output.format may be "avro", '
        '"protobuf" and "json-schema", with schemas in a registry with Confluent\'s '
        "interface. Only with [kafka]."
    )

    url: Annotated[
        RegistryUrl,
        key(
            'Its URL, with the path of the interface, such as "https://registry:8081" or, of '
            'Apicurio Registry, "https://registry:8080/apis/ccompat/v7".',
            example="http://localhost:8081",
        ),
    ]
    cafile: Annotated[
        File | None,
        key(
            "PEM file with the authorities of its certificate.",
            "Default: those of the system.",
            example="ca.pem",
        ),
    ] = None
    username: Annotated[
        Name | None,
        key(
            "The user; the password is ABERS_SCHEMA_REGISTRY_PASSWORD in the environment.",
            "Default: no login.",
            example="abers",
        ),
    ] = None
    password_file: Annotated[
        File | None,
        key(
            "A file with the password, instead of the environment.",
            example="/run/secrets/registry",
        ),
    ] = None
    token_file: Annotated[
        File | None,
        key(
            "A file with a bearer token, instead of a user.",
            "Default: ABERS_SCHEMA_REGISTRY_TOKEN in the environment.",
            example="/var/run/secrets/tokens/registry",
        ),
    ] = None
    timeout: Annotated[
        Wait,
        key("How long one question may take, with all attempts; shorter than kafka.stall_timeout."),
    ] = 10 * _SECOND
    on_unavailable: Annotated[
        Literal["stop", "dead-letter"],
        key(
            "What happens if a schema of a record is not known and the registry does not answer:"
            ' "stop" ends the process with exit code 75, to be restarted, and "dead-letter" '
            "makes the record a dead letter."
        ),
    ] = "stop"
