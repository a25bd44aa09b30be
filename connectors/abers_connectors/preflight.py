"""Checks before a run: the native core, files, topics, libraries and secrets.

Libraries that a service needs. All of them are required before the first record, also the codecs: a
topic that others compressed cannot be read without theirs.

A run writes nothing before all of these pass.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from abers.backends import lacking
from abers.exceptions import BrokerError, ConfigError, MissingExtraError, ParameterError
from abers_connectors.extras import extra
from abers_connectors.http.credentials import ServeTokens, require_certificate, token_of
from abers_connectors.kafka.connection import login_problem
from abers_connectors.replay.job import file_problems, state_problems, unreadable
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.schemas.record_reader import EXTRAS
from abers_connectors.schemas.registry import login_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import (
        HttpSection,
        SchemaRegistrySection,
        SecuritySection,
        ServeSection,
    )

__all__ = ["missing_requirements", "require_ready", "run_problems"]

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
        needed.append(("http", "the HTTP server", "http", _SERVER))
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


def require_ready(config: Config, name: str) -> None:
    """Raise a ConfigError with everything that would stop a run; `name` is that of the file."""
    if found := [f"{name}: {line}" for line in run_problems(config, name=name)]:
        raise ConfigError(found)


def run_problems(
    config: Config, environ: Mapping[str, str] = os.environ, name: str | None = None
) -> Iterator[str]:
    """Yield what would stop a run before its first record: a dotted path, and what is wrong.

    The secrets are in the environment; `name` is that of the configuration file, if there is one.
    """
    if (problem := lacking()) is not None:
        yield problem
    if config.serve is not None:
        yield from _server_problems(config.http, config.serve, environ)
    elif config.kafka is None:
        yield from file_problems(config, name)
    else:
        yield from _service_problems(config, config.kafka.security, environ)
    if config.http.enabled:
        yield from _certificate_problems(config.http)
    yield from state_problems(config, environ)


def _server_problems(
    http: HttpSection, serve: ServeSection, environ: Mapping[str, str]
) -> Iterator[str]:
    if serve.learner is not None and (problem := unreadable(serve.learner)):
        yield f"serve.learner: {problem}"
    try:
        ServeTokens(http, environ)
    except ConfigError as error:
        yield from error.problems


def _service_problems(
    config: Config, security: SecuritySection, environ: Mapping[str, str]
) -> Iterator[str]:
    yield from missing_requirements(config)
    if config.http.enabled:
        yield from _token_problems(config.http, environ)
    for key in ("cafile", "certfile", "keyfile"):
        path = getattr(security, key)
        if path is not None and (problem := unreadable(path)):
            yield f"kafka.security.{key}: {problem}"
    if problem := login_problem(security, environ):
        yield problem
    if config.schema_registry is not None:
        yield from _registry_problems(config.schema_registry, environ)


def _registry_problems(
    registry: SchemaRegistrySection, environ: Mapping[str, str]
) -> Iterator[str]:
    if registry.cafile is not None and (problem := unreadable(registry.cafile)):
        yield f"schema_registry.cafile: {problem}"
    try:
        login_header(registry, environ)
    except ConfigError as error:
        yield from error.problems
    except BrokerError:
        return  # a token has expired, which may be renewed until the run


def _certificate_problems(http: HttpSection) -> Iterator[str]:
    try:
        require_certificate(http)
    except ConfigError as error:
        yield from error.problems


def _token_problems(http: HttpSection, environ: Mapping[str, str]) -> Iterator[str]:
    try:
        token_of(environ, http.token_file)
    except ConfigError as error:
        yield from error.problems
