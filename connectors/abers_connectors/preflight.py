"""Checks before a run: the native core, files, topics, libraries and secrets.

A run writes nothing before all of these pass.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from abers.backends import lacking
from abers.exceptions import BrokerError, ConfigError
from abers_connectors.http.tls import require_certificate
from abers_connectors.http.token import token_of
from abers_connectors.kafka.login import login_problem
from abers_connectors.kafka.requirements import missing_requirements
from abers_connectors.replay.file_checks import file_problems, state_problems, unreadable
from abers_connectors.schemas.registry_login import login_header
from abers_connectors.serve.tokens import ServeTokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import (
        HttpSection,
        SchemaRegistrySection,
        SecuritySection,
        ServeSection,
    )

__all__ = ["require_ready", "run_problems"]


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
