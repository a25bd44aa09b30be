"""The sections of a service on topics: Kafka, its security, and the schema registry."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, ClassVar, Literal, TypeAlias

import msgspec

from abers.stream.option import ValueKind
from abers_connectors.config.values import (
    Bootstrap,
    Count,
    Extensions,
    File,
    Label,
    Moment,
    Name,
    Pause,
    RegistryUrl,
    Section,
    Start,
    Topic,
    Url,
    Wait,
    key,
)

__all__ = [
    "NAMED_AFTER_APPLICATION",
    "PASSWORD_MECHANISMS",
    "TOKEN_MECHANISMS",
    "KafkaSection",
    "OffsetGapPolicy",
    "SchemaRegistrySection",
    "SecuritySection",
    "default_client",
]

PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
TOKEN_MECHANISMS = ("OAUTHBEARER", "AWS_MSK_IAM")


class SecuritySection(Section, frozen=True, kw_only=True):
    """Section [kafka.security]: TLS and SASL settings, without secrets."""

    intro: ClassVar[str] = (
        "Secrets are not allowed here. Each comes from a variable, or from a file that a key "
        "here names."
    )

    protocol: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
        key(
            'The protocol: "PLAINTEXT", "SSL" (which is TLS), "SASL_PLAINTEXT" or '
            '"SASL_SSL", as on the '
            "brokers."
        ),
    ] = "PLAINTEXT"
    cafile: Annotated[
        File | None,
        key(
            "PEM file with the authorities of the brokers.",
            "Default: those of the system.",
            example="ca.pem",
        ),
    ] = None
    certfile: Annotated[
        File | None,
        key(
            "PEM file with the certificate of the client.",
            "Default: no certificate.",
            example="client.pem",
        ),
    ] = None
    keyfile: Annotated[
        File | None,
        key(
            "PEM file with the key of this certificate, if that is in a file of its own.",
            example="client.key",
        ),
    ] = None
    key_password_file: Annotated[
        File | None,
        key(
            "File with the password of the key.",
            "Default: ABERS_KAFKA_KEY_PASSWORD in the environment.",
            example="/run/secrets/key_password",
        ),
    ] = None
    check_hostname: Annotated[
        bool, key("Whether the certificate of a broker must match its name.")
    ] = True
    mechanism: Annotated[
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM", "GSSAPI"]
        | None,
        key(
            "SASL mechanism.",
            '"PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512" with user and password; '
            '"OAUTHBEARER" with '
            'a token; "AWS_MSK_IAM" with the credentials of AWS; "GSSAPI" with Kerberos. Default: '
            "no login.",
            example="SCRAM-SHA-512",
        ),
    ] = None
    username: Annotated[
        Name | None, key("The user of a login with a password.", example="abers")
    ] = None
    password_file: Annotated[
        File | None,
        key(
            "File with the password.",
            "Default: ABERS_KAFKA_PASSWORD in the environment.",
            example="/run/secrets/password",
        ),
    ] = None
    token_endpoint_url: Annotated[
        Url | None,
        key(
            "OAUTHBEARER with tokens from an issuer: its token endpoint.",
            example="https://login.example.com/oauth2/token",
        ),
    ] = None
    client_id: Annotated[
        Name | None, key("OAUTHBEARER with tokens from an issuer: the client.", example="abers")
    ] = None
    client_secret_file: Annotated[
        File | None,
        key(
            "OAUTHBEARER with tokens from an issuer: a file with the secret of the client.",
            "Default: ABERS_KAFKA_CLIENT_SECRET in the environment.",
            example="/run/secrets/client_secret",
        ),
    ] = None
    scope: Annotated[
        Name | None,
        key(
            "OAUTHBEARER with tokens from an issuer: the scope, if the issuer wants one.",
            example="kafka",
        ),
    ] = None
    token_file: Annotated[
        File | None,
        key(
            "OAUTHBEARER with a token that others renew: its file.",
            "Default: ABERS_KAFKA_TOKEN in the environment.",
            example="/var/run/secrets/tokens/kafka",
        ),
    ] = None
    extensions: Annotated[
        Extensions | None,
        key(
            "OAUTHBEARER: SASL extensions that the brokers want.",
            example={"logicalCluster": "lkc-1", "identityPoolId": "pool-1"},
        ),
    ] = None
    aws_region: Annotated[
        Name | None, key("AWS_MSK_IAM: region of the cluster.", example="eu-west-1")
    ] = None
    kerberos_service_name: Annotated[
        Name, key("GSSAPI: name of the brokers' service, the first part of their principals.")
    ] = "kafka"

    @property
    def encrypted(self) -> bool:
        """Whether the connection uses TLS."""
        return self.protocol.endswith("SSL")

    @property
    def by_password(self) -> bool:
        """Whether a user logs in with a password."""
        return self.mechanism in PASSWORD_MECHANISMS

    @property
    def by_token(self) -> bool:
        """Whether the process logs in with a token."""
        return self.mechanism in TOKEN_MECHANISMS


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
            "Topic of alarms, raised when predictions are off by more than the tolerance.",
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
            "With eight partitions or more in a process it is this many for each four of them.",
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
