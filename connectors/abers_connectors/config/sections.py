"""The sections of a configuration and their defaults.

deploy/abers.example.toml explains every key. Secrets are not keys: they come from the environment
or from files that keys name, so a configuration can be shown to anybody.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from abers.stream.settings import QUANTILES
from abers_connectors.config.units import milliseconds
from abers_connectors.config.value_types import (
    DROP,
    MAX_COUNT,
    Bootstrap,
    CollectorUrl,
    Count,
    Delay,
    Duration,
    Extensions,
    Features,
    File,
    Label,
    LabelValue,
    LabelValues,
    Moment,
    Name,
    Names,
    Numbers,
    Pause,
    Port,
    RegistryUrl,
    RunLength,
    Score,
    Section,
    Span,
    Start,
    TimeZone,
    Topic,
    Url,
    Wait,
)
from abers_connectors.files.formats import STANDARD

__all__ = [
    "PASSWORD_MECHANISMS",
    "TOKEN_MECHANISMS",
    "AlertsSection",
    "CalibratorSection",
    "HttpSection",
    "InputFieldsSection",
    "InputSection",
    "KafkaSection",
    "LabelFieldsSection",
    "LearnerSection",
    "LimitsSection",
    "MonitoringSection",
    "OffsetGapPolicy",
    "OutputSection",
    "SchemaRegistrySection",
    "SecuritySection",
    "StateSection",
    "TaskSection",
    "TelemetrySection",
    "TopicFormat",
    "dead_letters_beside",
    "default_client",
]

_SECOND, _DAY = 1000, 86_400_000
_Share = Annotated[float, Field(gt=0.0, lt=1.0)]


FileFormat: TypeAlias = Literal["csv", "jsonl", "parquet"]
TopicFormat: TypeAlias = Literal["json", "avro", "protobuf", "json-schema"]
"""Format of records in topics; the schemas of all but the first are in a schema registry."""


class TaskSection(Section):
    """Section [task]: the kind of prediction."""

    kind: Literal["binary", "multiclass", "regression"] = "binary"
    scores: Literal["any", "probability", "logit"] = "any"
    classes: Names = ()
    quantiles: Numbers = QUANTILES


class CalibratorSection(Section):
    """Section [calibrator]: the calibrator and its forgetting."""

    kind: Name | None = None
    probability: Literal["protected", "merged"] | None = None
    raw_weight: _Share = 0.25
    base_weight: _Share = 0.5
    coverage: _Share | None = None
    folds: Annotated[int, Field(ge=2, le=100)] = 5
    grid: Numbers = ()
    distributions: Literal["none", "scored", "full"] = "none"
    support: Numbers = ()
    window: Count | None = None
    max_age: Span | None = None
    half_life: Span | None = None


class LearnerSection(Section):
    """Section [learner]: the learner that scores features."""

    name: Name | None = None


class InputFieldsSection(Section):
    """Section [input.fields]: the fields of a record."""

    id: Name = "id"
    time: Name = "time"
    model: Name = "model"
    segment: Name | None = None
    score: Score = "score"
    x: Features | None = None
    label: Name = "label"
    label_time: Name | None = None
    passthrough: Names = ()


class LabelFieldsSection(Section):
    """Section [input.label_fields]: the fields of the second input, where they differ."""

    id: Name | None = None
    time: Name | None = None
    model: Name | None = None
    label: Name | None = None


class InputSection(Section):
    """Section [input]: the observations and the labels."""

    observations: File | None = None
    labels: File | None = None
    format: Literal[FileFormat, TopicFormat] | None = None
    label_format: TopicFormat | None = None
    delay: Delay | None = None
    pos_label: LabelValues = ()
    unlabelled: LabelValue = DROP
    timezone: TimeZone | None = None
    delimiter: Literal[",", ";", "\t", "|"] | None = None
    decimal: Literal[".", ","] = "."
    percent: bool = False
    max_record_bytes: Count = 1 << 20
    fields: InputFieldsSection = InputFieldsSection()
    label_fields: LabelFieldsSection = LabelFieldsSection()


class OutputSection(Section):
    """Section [output]: predictions, outcomes and dead letters."""

    predictions: File = "-"
    outcomes: File | None = None
    dead_letters: File | None = None
    format: TopicFormat | None = None
    on_bad_record: Literal["dead-letter", "stop"] = "dead-letter"
    max_dead_letter_ratio: Annotated[float, Field(ge=0.0, le=1.0)] = 0.1

    @property
    def dead_letters_path(self) -> str:
        """File of the dead letters, by default beside the predictions."""
        return self.dead_letters or dead_letters_beside(self.predictions)


class LimitsSection(Section):
    """Section [limits]: how long and how much is kept; durations in event time."""

    label_timeout: Duration = 7 * _DAY
    learn_after: Duration | None = None
    allowed_lateness: Duration = 0
    max_clock_skew: Duration = 300 * _SECOND
    max_jump: Duration | None = None
    dedup_ttl: Duration | None = None
    dedup_max_ids: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 1_000_000
    max_pending: Count = 1_000_000
    max_early: Count = 100_000
    max_bytes: Annotated[int, Field(ge=0)] = 1 << 29
    max_models: Count = 1_000
    retire_after: Duration | None = None
    max_id_bytes: Count = 256
    max_name_bytes: Count = 256


class StateSection(Section):
    """Section [state]: the saved state from which a stopped run continues."""

    path: File | None = None
    snapshot_every: Count = 100_000
    shared: bool = False
    retain: Count = 3
    key_file: File | None = None


class MonitoringSection(Section):
    """Section [monitoring]: scores of the predictions, and tests of their calibration."""

    enabled: bool = True
    tests: bool = True
    grace_period: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 200
    tolerance: Annotated[float, Field(ge=1.0, le=1000.0)] = 1.25
    average_run_length: RunLength = 1_000_000
    cooldown: Count = 10_000

    def run_length(self) -> dict[str, Any]:
        """Return the average run length as the processor has it, a count or a time."""
        length = self.average_run_length
        if isinstance(length, int):
            return {"average_run_length": length}
        return {"average_run_time": milliseconds(length)}


PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
TOKEN_MECHANISMS = ("OAUTHBEARER", "AWS_MSK_IAM")


class SecuritySection(Section):
    """Section [kafka.security]: TLS and SASL settings, without secrets."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    cafile: File | None = None
    certfile: File | None = None
    keyfile: File | None = None
    key_password_file: File | None = None
    check_hostname: bool = True
    mechanism: (
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM", "GSSAPI"]
        | None
    ) = None
    username: Name | None = None
    password_file: File | None = None
    token_endpoint_url: Url | None = None
    client_id: Name | None = None
    client_secret_file: File | None = None
    scope: Name | None = None
    token_file: File | None = None
    extensions: Extensions | None = None
    aws_region: Name | None = None
    kerberos_service_name: Name = "kafka"

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


def _topic_by_suffix(suffix: str) -> Any:  # noqa: ANN401 - pydantic's type of a default
    """Return a default topic that is named after the application."""
    return Field(default_factory=lambda given: f"{given.get('application_id', 'abers')}.{suffix}")


OffsetGapPolicy: TypeAlias = Literal["stop", "earliest", "latest"]
"""What to do if the next record of an input was deleted before it was read."""


_Client: TypeAlias = Literal["kafka-python", "librdkafka"]


def default_client() -> _Client:
    """Return librdkafka where it is installed."""
    return "librdkafka" if find_spec("confluent_kafka") else "kafka-python"


class KafkaSection(Section):
    """Section [kafka]: the topics, and how to read and write them; durations in wall-clock time."""

    bootstrap_servers: Bootstrap
    client: _Client = Field(default_factory=default_client)
    group_protocol: Literal["classic", "consumer"] = "classic"
    application_id: Label = "abers"
    group_instance_id: Label = "0"
    observations: Topic
    labels: Topic | None = None
    predictions: Topic
    outcomes: Topic | None = None
    dead_letters: Topic = _topic_by_suffix("dead-letters")
    changelog: Topic = _topic_by_suffix("changelog")
    alerts: Topic | None = None
    starting_offset: Start = "earliest"
    publish_from: Moment | None = None
    on_offset_out_of_range: OffsetGapPolicy = "stop"
    max_records: Count = 2_000
    max_bytes: Count = 4 << 20
    commit_interval: Pause = 10
    max_task_idle: Pause = 50
    session_timeout: Wait = 10 * _SECOND
    transaction_timeout: Wait = 10 * _SECOND
    stall_timeout: Wait = 60 * _SECOND
    leave_group_on_close: bool = False
    compression: Literal["none", "gzip", "lz4", "snappy", "zstd"] = "lz4"
    replication_factor: Annotated[int, Field(ge=1, le=32_767)] = 1
    partitions: Annotated[int, Field(ge=1, le=100_000)] | None = None
    security: SecuritySection = SecuritySection()


class SchemaRegistrySection(Section):
    """Section [schema_registry]: the schemas of Avro, Protobuf and JSON Schema; no secrets."""

    url: RegistryUrl
    cafile: File | None = None
    username: Name | None = None
    password_file: File | None = None
    token_file: File | None = None
    timeout: Wait = 10 * _SECOND
    on_unavailable: Literal["stop", "dead-letter"] = "stop"


class HttpSection(Section):
    """Section [http]: the server of health, metrics and the live page."""

    enabled: bool = True
    host: Name = "127.0.0.1"
    port: Port = 8090
    hosts: Names = ()
    check_host: bool = False
    token_file: File | None = None
    max_models: Count = 100


class TelemetrySection(Section):
    """Section [telemetry]: the collector of OpenTelemetry that gets metrics and traces."""

    endpoint: CollectorUrl | None = None


class AlertsSection(Section):
    """Section [alerts]: receivers of alarms besides the topic of alarms."""

    webhook: Url | None = Field(default=None, repr=False)


def dead_letters_beside(predictions: str) -> str:
    """Return the default file of dead letters for a file of predictions.

    >>> dead_letters_beside("out/scores.jsonl.gz"), dead_letters_beside("-")
    ('out/scores.jsonl.gz.dead.jsonl', 'abers.dead.jsonl')
    """
    return f"{'abers' if predictions == STANDARD else predictions}.dead.jsonl"
