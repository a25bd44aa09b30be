"""The sections of a service: [kafka], [kafka.security], [http] and [alerts].

Governing rule: a secret never stands in a configuration, so that nobody who
shows one can show it; the environment has it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from abers_connectors._config_kafka_types import (
    Bootstrap,
    Label,
    Moment,
    Pause,
    Port,
    Start,
    Topic,
    Url,
    Wait,
)
from abers_connectors._config_types import Count, File, Name, Names, Section

__all__ = ["Alerts", "Http", "Kafka", "Security"]

_SECOND = 1000


def _beside(suffix: str) -> Any:  # noqa: ANN401 - what pydantic calls a default
    """Name a topic after the application by default."""
    return Field(default_factory=lambda given: f"{given.get('app', 'abers')}.{suffix}")


class Security(Section):
    """Section [kafka.security]: how the brokers know us, and we them; passwords are not in it."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    cafile: File | None = None
    certfile: File | None = None
    keyfile: File | None = None
    check_hostname: bool = True
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    username: Name | None = None

    @property
    def encrypted(self) -> bool:
        """Whether the connection is."""
        return self.protocol.endswith("SSL")

    @property
    def by_password(self) -> bool:
        """Whether a user logs in."""
        return self.protocol.startswith("SASL")


class Kafka(Section):
    """Section [kafka]: the topics, and how they are read and written; milliseconds of wall time."""

    bootstrap: Bootstrap
    app: Label = "abers"
    instance: Label = "0"
    observations: Topic
    labels: Topic | None = None
    predictions: Topic
    outcomes: Topic | None = None
    dead_letters: Topic = _beside("dead-letters")
    changelog: Topic = _beside("changelog")
    alerts: Topic | None = None
    start: Start = "earliest"
    publish_from: Moment | None = None
    lost_history: Literal["stop", "earliest", "latest"] = "stop"
    max_records: Count = 2_000
    max_bytes: Count = 4 << 20
    linger: Pause = 10
    max_idle: Pause = 50
    session_timeout: Wait = 10 * _SECOND
    transaction_timeout: Wait = 10 * _SECOND
    watchdog: Wait = 60 * _SECOND
    leave_on_stop: bool = False
    compression: Literal["none", "gzip", "lz4", "snappy", "zstd"] = "lz4"
    replication: Annotated[int, Field(ge=1, le=32_767)] = 1
    partitions: Annotated[int, Field(ge=1, le=100_000)] | None = None
    security: Security = Security()


class Http(Section):
    """Section [http]: where health, metrics and the live page are served."""

    enabled: bool = True
    host: Name = "127.0.0.1"
    port: Port = 8090
    hosts: Names = ()
    check_host: bool = False


class Alerts(Section):
    """Section [alerts]: whom alarms are told, beside the topic of alarms."""

    webhook: Url | None = Field(default=None, repr=False)
