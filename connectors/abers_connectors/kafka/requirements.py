"""Libraries that a service needs.

All of them are required before the first record, also the codecs: a topic that others compressed
cannot be read without theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import MissingExtraError, ParameterError
from abers_connectors.extras import extra
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.schemas.record_reader import EXTRAS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers_connectors.config.model import Config

__all__ = ["missing_requirements"]

_CLIENT = ("kafka", "crc32c", "lz4.frame", "zstandard", "snappy")
_LIBRDKAFKA = ("confluent_kafka",)
_MECHANISMS = {
    "AWS_MSK_IAM": ("msk", ("aws_msk_iam_sasl_signer",)),
    "GSSAPI": ("kerberos", ("gssapi",)),
}
_SERVER = ("starlette", "uvicorn", "prometheus_client")
_TELEMETRY = (
    "opentelemetry.sdk",
    "opentelemetry.exporter.otlp.proto.http",
    "prometheus_client",
)


def missing_requirements(config: Config) -> Iterator[str]:
    """Yield a dotted path and a sentence for each library that a service needs and lacks."""
    for path, feature, group, modules in _needed(config):
        try:
            for module in modules:
                extra(module, feature, group)
        except MissingExtraError as error:
            yield f"{path}: {error}"
    if config.state.path is not None:
        try:
            SnapshotStore(config.state.path, "abers")
        except (MissingExtraError, ParameterError) as error:
            yield f"state.path: {error}"


def _needed(config: Config) -> list[tuple[str, str, str, Sequence[str]]]:
    """Return the key, the feature, the extra and the modules of each library."""
    needed: list[tuple[str, str, str, Sequence[str]]] = [
        ("kafka", "a section [kafka]", "kafka", _CLIENT)
    ]
    if config.kafka is not None and config.kafka.client == "librdkafka":
        needed.append(("kafka.client", 'kafka.client = "librdkafka"', "librdkafka", _LIBRDKAFKA))
    mechanism = None if config.kafka is None else config.kafka.security.mechanism
    if mechanism in _MECHANISMS:
        path = "kafka.security.mechanism"
        needed.append((path, f'{path} = "{mechanism}"', *_MECHANISMS[mechanism]))
    if config.http.enabled:
        needed.append(("http", "a section [http]", "http", _SERVER))
    if config.telemetry.endpoint is not None:
        needed.append(("telemetry.endpoint", "telemetry.endpoint", "otel", _TELEMETRY))
    formats = _formats(config)
    needed += [(key, f'{key} = "{one}"', one, EXTRAS.get(one, ())) for key, one in formats]
    return needed


def _formats(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the keys of formats, and the formats that they name."""
    first, second = config.topic_formats
    yield "input.format", first
    if config.input.label_format is not None:
        yield "input.label_format", second
    if config.output.format is not None:
        yield "output.format", config.output.format
